"""Scripts that lie beside the package, as modules."""

from __future__ import annotations

import importlib.util
import sys
import tarfile
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parents[2]


def script(name: str) -> ModuleType:
    """benchmarks/NAME.py, which finds its neighbours there."""
    sys.path.insert(0, str(ROOT / "benchmarks"))
    try:
        spec = importlib.util.spec_from_file_location(f"{name}_page", ROOT / "benchmarks" / f"{name}.py")
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[f"{name}_page"] = module
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(ROOT / "benchmarks"))
    return module


def check_no_places(packed: Path) -> None:
    """Nothing that was kept says where files lay."""
    with tarfile.open(packed) as archive:
        for entry in archive.getmembers():
            file = archive.extractfile(entry)
            assert file is not None
            content = file.read()
            if not entry.name.endswith(".safetensors"):
                assert not any(place in content for place in (b"/root", b"/tmp", b"/home")), entry.name
