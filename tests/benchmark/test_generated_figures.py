"""Figures in README and docs are those of the results files: the scripts that wrote them would write the same again."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from tests.benchmark.scripts import ROOT, script

GPU = {"engine-cuda", "training-cuda", "evaluation-cuda", "speed-gpu", "gpu-tests"}


def results(name: str) -> dict[str, object]:
    return dict(json.loads((ROOT / "benchmarks" / "results" / name).read_text()))


@pytest.mark.parametrize(
    ("name", "write", "marks"),
    [
        ("demo", lambda module: module.page(results("demo.json")), {"demo"}),
        ("losses_page", lambda module: module.page(results("losses-cpu.json")), {"losses-cpu", "speed"}),
        ("evaluation", lambda module: module.page(results("evaluation-cpu.json")), {"evaluation"}),
        ("gpu_page", lambda module: module.main(), GPU),
    ],
)
def test_pages_say_what_was_measured(
    name: str, write: Callable[[ModuleType], None], marks: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    module, filled = script(name), set()

    def compare(page: Path, mark: str, text: str) -> None:
        content = page.read_text()
        begin, end = content.index(f"<!-- {mark} -->") + len(f"<!-- {mark} -->"), content.index(f"<!-- /{mark} -->")
        there = content[begin:end].strip()
        if mark == "gpu-tests":  # its second paragraph hangs on the tests of today, none of which must break this one
            there, text = there.split("\n\n")[0], text.split("\n\n")[0]
        assert there == text.strip(), f"{mark} in {page.name}"
        filled.add(mark)

    monkeypatch.setattr(module, "fill", compare)
    for drawn in ("save", "panels"):
        monkeypatch.setattr(module, drawn, lambda *given: None, raising=False)
    write(module)
    assert filled == marks
