"""The page of ablations says what was measured, and its tables are those of the sources."""

from __future__ import annotations

import importlib.util
import sys
import tarfile
from pathlib import Path
from types import ModuleType

import pytest

from nearkin import losses
from nearkin.benchmark import grid

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def ablations() -> ModuleType:
    """benchmarks/ablations.py, which is a script beside the package."""
    sys.path.insert(0, str(ROOT / "benchmarks"))
    try:
        spec = importlib.util.spec_from_file_location("ablations_page", ROOT / "benchmarks" / "ablations.py")
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules["ablations_page"] = module
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(ROOT / "benchmarks"))
    return module


def test_the_page_is_what_was_measured(ablations: ModuleType) -> None:
    assert ablations.page() == (ROOT / "docs" / "ablations.md").read_text()


def test_nothing_kept_says_where_files_lay(ablations: ModuleType) -> None:
    with tarfile.open(ablations.PACKED) as archive:
        for entry in archive.getmembers():
            file = archive.extractfile(entry)
            assert file is not None
            if not entry.name.endswith(".safetensors"):
                assert b"/root" not in (content := file.read()) and b"/tmp" not in content, entry.name


def test_every_row_is_that_of_its_grid_and_of_its_source(ablations: ModuleType) -> None:
    for entry in ablations.ABLATIONS:
        labels = {job.label for job in grid.read(entry.grid).jobs}
        assert entry.choice in labels and (not entry.shared or entry.shared in labels)
        assert not entry.rows or set(entry.rows) == labels
        assert all(ablations.printed(entry, label) is not None for label in entry.rows), entry.grid


def test_the_runs_of_all_tables_are_those_of_their_grids(ablations: ModuleType) -> None:
    """One file holds every run once: with the same settings, but for how often it measures and what it keeps."""

    def settings(name: str) -> dict[str, object]:
        aside = ("evaluate_every", "tensorboard", "checkpoint_every", "seed", "out", "audit")
        found: dict[str, object] = {}
        for job in grid.read(name).jobs:
            plain = {key: value for key, value in vars(job.settings).items() if key not in aside}
            # A setting that is named is the same as one that is left as it is.
            found[job.label] = plain | {
                "loss_settings": losses.create(job.settings.loss, **plain["loss_settings"]).settings
            }
        return found

    whole = settings(str(ROOT / "benchmarks" / "ablations.toml"))
    for entry in ablations.ABLATIONS:
        for label, chosen in settings(entry.grid).items():
            assert chosen == whole[ablations.SHARED if label == entry.shared else label], (entry.grid, label)
