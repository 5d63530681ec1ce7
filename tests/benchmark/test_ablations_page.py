"""The page of ablations says what was measured, and its tables are those of the sources."""

from __future__ import annotations

from types import ModuleType

import pytest

from nearkin import losses
from nearkin.benchmark import grid
from tests.benchmark.scripts import ROOT, check_no_places, script


@pytest.fixture(scope="module")
def ablations() -> ModuleType:
    return script("ablations")


def test_the_page_is_what_was_measured(ablations: ModuleType) -> None:
    assert ablations.page() == (ROOT / "docs" / "ablations.md").read_text()


def test_nothing_kept_says_where_files_lay(ablations: ModuleType) -> None:
    check_no_places(ablations.PACKED)


def test_every_row_is_that_of_its_grid_and_of_its_source(ablations: ModuleType) -> None:
    for entry in ablations.ABLATIONS:
        labels = {job.label for job in grid.read(entry.grid).jobs}
        assert entry.choice in labels and (not entry.shared or entry.shared in labels)
        assert not entry.rows or set(entry.rows) == labels
        assert all(ablations.printed(entry, label) is not None for label in entry.rows), entry.grid


def test_the_runs_of_all_tables_are_those_of_their_grids(ablations: ModuleType) -> None:
    """One file holds every run once: with the same settings."""

    def settings(name: str) -> dict[str, object]:
        aside = ("seed", "out")
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
