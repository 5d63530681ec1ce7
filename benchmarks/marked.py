"""Which tests want a GPU, read from the tests themselves: nothing is imported, so nothing they need must be installed."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from harness import ROOT


def marked(folder: Path = ROOT / "tests") -> list[str]:
    """Names of tests marked ``gpu``, as the record of their results has them."""
    found: list[str] = []
    for path in sorted(folder.rglob("test_*.py")):
        module = ".".join(path.relative_to(folder.parent).with_suffix("").parts)
        found += tests(ast.parse(path.read_text()), module)
    return found


def tests(body: ast.Module | ast.ClassDef, name: str, every: bool = False) -> Iterator[str]:
    every = every or any(_pytestmark(node) for node in body.body)
    for node in body.body:
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        wanted = every or any(map(_gpu, node.decorator_list))
        if isinstance(node, ast.ClassDef):
            if node.name.startswith("Test"):
                yield from tests(node, f"{name}.{node.name}", wanted)
        elif wanted and node.name.startswith("test_"):
            yield f"{name}.{node.name}"


def _pytestmark(node: ast.stmt) -> bool:
    targets = node.targets if isinstance(node, ast.Assign) else []
    return any(ast.unparse(target) == "pytestmark" for target in targets) and _gpu(node)


def _gpu(node: ast.AST) -> bool:
    return "pytest.mark.gpu" in {ast.unparse(part) for part in ast.walk(node) if isinstance(part, ast.Attribute)}
