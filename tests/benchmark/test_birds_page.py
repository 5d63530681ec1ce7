"""The page about birds says what was measured, and what is kept of the runs tells nothing of the machine."""

from __future__ import annotations

import json
import math
from types import ModuleType

import pytest

from nearkin import losses, results
from tests.benchmark.scripts import ROOT, check_no_places, script

REPORT = [path for path in sorted((ROOT / "docs" / "birds").iterdir()) if path.is_file()]


@pytest.fixture(scope="module")
def birds() -> ModuleType:
    return script("birds")


@pytest.fixture(scope="module")
def tested() -> ModuleType:
    return script("claims_tested")


def test_the_page_is_what_was_measured(birds: ModuleType) -> None:
    assert birds.page() == (ROOT / "docs" / "birds.md").read_text()


def test_nothing_kept_says_where_files_lay(birds: ModuleType) -> None:
    check_no_places(birds.PACKED)
    for path in REPORT:
        text = path.read_text()
        assert "/root" not in text and "/tmp" not in text and "/home" not in text, path.name


def test_the_report_shows_the_same_results() -> None:
    said = (ROOT / "docs" / "birds.md").read_text().split("**")[1]
    pages = {path.name: path.read_text() for path in REPORT}
    assert said in pages["index.html"] and said in pages["results.md"].replace("\\", "")
    assert len(pages["runs.csv"].splitlines()) == 1 + 48
    assert sum(map(len, pages.values())) < 4e6


def test_a_p_that_cannot_be_less_is_explained(birds: ModuleType) -> None:
    """120 pairs of 16 losses over 20,001 patterns of signs."""
    page = birds.page()
    assert "| 0.006 | **" in page and math.isclose(120 / 20001, 0.006, abs_tol=1e-4)
    assert "p = 0.006 is the least that 20,000 random patterns of signs show when corrected" in page


@pytest.mark.parametrize(
    ("here", "there", "alone", "corrected", "outcome", "agreement"),
    [
        (2.0, 3.0, 0.001, 0.01, "**better**", "confirmed"),
        (-2.0, 3.0, 0.001, 0.01, "**worse**", "contradicted"),
        (-2.0, -3.0, 0.001, 0.01, "**worse**", "confirmed"),
        (2.0, 3.0, 0.04, 0.9, "ahead, not certain", "the same way but not certain"),
        (-2.0, 3.0, 0.04, 0.9, "behind, not certain", "the other way but not certain"),
        (-2.0, 3.0, 0.06, 1.0, "cannot be told apart", "open"),
    ],
)
def test_words_follow_from_the_tests(
    tested: ModuleType, here: float, there: float, alone: float, corrected: float, outcome: str, agreement: str
) -> None:
    pair = tested.Pair("triplet", there, here, here - 1, here + 1, here, alone, corrected)
    assert (pair.outcome, pair.agreement) == (outcome, agreement)
    assert agreement in tested.AGREEMENTS


def test_a_difference_of_recipes_stands_beside_that_of_equal_settings(birds: ModuleType) -> None:
    """Where the ablations have the pair, with the figures that their own page shows."""
    page, ablated = ((ROOT / "docs" / name).read_text() for name in ("birds.md", "ablations.md"))
    rows = {
        cells[1].strip(" *"): cells for cells in (line.split("|") for line in ablated.splitlines()) if len(cells) > 5
    }
    seen = 0
    for entry in birds.CLAIMS:
        said = page.split(f"**{entry.title}.**")[1].split("\n")[0]
        for pair in entry.alike:
            gap = float(rows[pair.against][4] or "nan"), float(rows[pair.one][4].strip() or "nan")
            expected = -gap[0] if math.isnan(gap[1]) else gap[1]
            assert f"{expected:+.1f} points at " in said and "were not trained alike: they differ in " in said
            seen += 1
    assert seen == 3


def test_how_often_each_recipe_was_tried_is_counted() -> None:
    """By hand from the files, beside the table and the sentence of the page."""
    page = (ROOT / "docs" / "birds.md").read_text().split("## Where the recipes differ")[1].split("\n## ")[0]
    counts: dict[str, list[int]] = {}
    for place, name in enumerate(("cub-validation.json", "cub-tuning.json")):
        for run in json.loads((ROOT / "benchmarks" / "results" / name).read_text())["runs"]:
            counts.setdefault(run["run"], [0, 0])[place] += 1
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in page.splitlines() if line.startswith("| ")][1:]
    assert len(rows) == 16
    assert {row[0]: [int(cell) for cell in row[-2:]] for row in rows} == {
        row[0]: counts.get(row[0], [0, 0]) for row in rows
    }
    most = max(counts, key=lambda name: sum(counts[name]))
    assert f"to {sum(counts[most])} ({most}), and by none of their own for binomial_deviance and proxy" in page


def test_pairs_that_were_trained_alike_need_no_word(birds: ModuleType) -> None:
    entry = next(entry for entry in birds.CLAIMS if entry.alike)
    own = {"loss": ["a", "b"], "loss_settings": ["", "margin=1"]}
    assert birds.beside(entry, {pair.other: own for pair in entry.alike}) == ""


def test_the_sources_rows_are_found(birds: ModuleType) -> None:
    ranked, levels, unified, nra, second, first = birds.CLAIMS
    assert ranked.printed("ranked_list") == 57.4 and levels.printed("ranked_list L/M/H") == 61.3
    assert unified.printed("multi_similarity") == 66.85 and unified.printed("binomial_deviance") == 64.45
    assert nra.printed("nra") == 64.3 and nra.printed("lifted_structure") == 55.7  # 512 dimensions, not 64
    assert second.printed("proxy_repulsion 2") == 65.42 and math.isnan(first.printed("proxy_repulsion 1"))
    for entry in birds.CLAIMS:
        assert all(not math.isnan(entry.printed(label)) for label in entry.rows)


def test_what_is_said_of_forms_is_what_ran(birds: ModuleType) -> None:
    """The sources' lifted structure and N-pair are others than those that ran under these names."""
    with birds.unpacked(birds.PACKED) as folder:
        ran = {run.label: run.settings for run in results.read(folder)}
    assert ran["lifted_structure"]["loss_settings"] == {"form": "generalized", "miner": "vthm"}
    assert ran["n_pair"]["loss_settings"] == ran["triplet"]["loss_settings"] == {}
    assert losses.create("n_pair").form == "all" and losses.create("triplet").distance == "cosine"
    assert ran["n_pair"]["images"] == 5
    said = (ROOT / "docs" / "birds.md").read_text()
    named = [entry for entry in birds.CLAIMS if {"lifted_structure", "n_pair"} <= {*entry.rows}]
    assert len(named) == 3 and all({"lifted_structure", "n_pair"} <= {*entry.forms} for entry in named)
    for entry in named:
        paragraph = said.split(f"**{entry.title}.**")[1].split("\n")[0]
        assert "lifted_structure is the original form (here the generalized one, mined by vthm)" in paragraph
        assert "n_pair in another form" in paragraph
