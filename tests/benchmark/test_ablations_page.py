"""The page of ablations says what was measured, and its tables are those of the sources."""

from __future__ import annotations

import dataclasses
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


@pytest.mark.parametrize(
    ("seeds", "runs", "few"),
    [([1, 1], False, "One seed says how"), ([2, 2], True, "Two seeds say little"), ([3, 3], True, "")],
)
def test_the_page_says_where_p_comes_from(ablations: ModuleType, seeds: list[int], runs: bool, few: str) -> None:
    said = ablations._judged(seeds)
    assert ("the larger of a paired permutation test" in said and "a test over classes and runs" in said) == runs
    assert few in said and said.count("seed says how") == (seeds[0] == 1) and said.count("Two seeds") == (2 in seeds)


def test_a_p_that_cannot_be_less_is_explained_where_it_is_shown(ablations: ModuleType) -> None:
    said = "p = 0.001 is the least that 20,000 random patterns of signs show when corrected"
    parts = ablations.page().split("\n## ")
    assert [said in part for part in parts] == ["| 0.001 |" in part for part in parts]
    assert sum(said in part for part in parts) == 1


def test_no_finished_run_is_dropped_without_a_word(ablations: ModuleType) -> None:
    """Every run is in a row, or named under its table with what it got."""
    page = ablations.page()
    with ablations.unpacked(ablations.PACKED) as folder:
        runs = ablations.results.read(folder)
        tables = ablations.tables_of(runs, folder)
    named = 0
    for entry in ablations.ABLATIONS:
        own, part = ablations.chosen(entry, runs), page.split(f"## {entry.title}\n")[1].split("\n## ")[0]
        for run in own:
            used = run.label in tables[entry.grid].labels and (run.fold, run.seed) in tables[entry.grid].parts
            told = f"seed {run.seed} of {run.label} ({100 * run.metrics['recall@1']:.1f})"
            assert used != (told in part), (entry.grid, told)
            named += not used
    assert named


def test_a_run_that_failed_is_named(ablations: ModuleType) -> None:
    with ablations.unpacked(ablations.PACKED) as folder:
        runs = ablations.results.read(folder)
        own = ablations.chosen(ablations.ABLATIONS[-1], runs)
        own[0] = dataclasses.replace(own[0], status="failed", metrics={})
        [table] = ablations.experiments(own, folder, "recall@1")
    assert f"Failed: seed {own[0].seed} of {own[0].label}." in ablations.left_out(table, own)


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
