"""Figures: everything inside, nothing over each other, said in words too."""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from nearkin.tournament import Verdict, critical_difference_svg, intervals_svg, printed, settle
from nearkin.tournament.diagram import _levels, _ticks, svg
from nearkin.tournament.settle import judge
from tests.tournament.made import benchmark, result

SVG = "{http://www.w3.org/2000/svg}"


def several(labels: list[str], count: int = 12) -> Verdict:
    runs = [
        result(
            label,
            data=f"set{number}",
            metrics={"recall@1": 0.9 - 0.01 * ((place + number * (place > 3)) % len(labels))},
        )
        for number in range(count)
        for place, label in enumerate(labels)
    ]
    return settle(runs, Path("nowhere"))


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> Verdict:
    folder = tmp_path_factory.mktemp("benchmark")
    levels = {"ranked_list L/M/H": 1.5, "proxy_anchor": 0.8, "multi_similarity": 0.75, "triplet": -0.2}
    return settle(benchmark(folder, levels), folder)


def boxes(figure: str) -> list[tuple[str, float, float, float, float]]:
    """What is written where: words, left, top, right, bottom, by the widths of a wide font."""
    text_path = pytest.importorskip("matplotlib.textpath", reason="measures letters with matplotlib").TextPath
    found = []
    for element in ElementTree.fromstring(figure).iter(f"{SVG}text"):
        words = element.text or ""
        # Spaces at the end of a word have no outline, so the words are measured between two bars.
        bar = text_path((0, 0), "||", size=13).get_extents().width
        width = text_path((0, 0), f"|{words}|".replace("$", ""), size=13).get_extents().width - bar
        width *= 1.1 if element.get("font-weight") == "bold" else 1.0
        x, y = float(element.get("x", "nan")), float(element.get("y", "nan"))
        left = {"start": x, "middle": x - width / 2, "end": x - width}[element.get("text-anchor", "start")]
        found.append((words, left, y - 10, left + width, y + 3))
    return found


def check(figure: str) -> None:
    root = ElementTree.fromstring(figure)
    _, _, width, height = (float(number) for number in root.get("viewBox", "").split())
    places = boxes(figure)
    for words, left, top, right, bottom in places:
        assert left >= 0 and top >= 0 and right <= width and bottom <= height, words
    for one, other in itertools.combinations(places, 2):
        apart = one[3] <= other[1] or other[3] <= one[1] or one[4] <= other[2] or other[4] <= one[2]
        assert apart, (one[0], other[0])


@pytest.mark.parametrize("count", [2, 3, 10, 17])
def test_ranks_are_readable(count: int) -> None:
    verdict = several([f"loss_number_{place}" for place in range(count)])
    figure = critical_difference_svg(verdict)
    check(figure)
    written = " ".join(words for words, *_ in boxes(figure))
    for entry in verdict.standings:
        assert f"{entry.label}  {entry.mean:.2f}" in written


def test_the_critical_difference_is_printed_and_drawn_to_scale() -> None:
    verdict = judge(printed(), "recall@1")
    figure = critical_difference_svg(verdict)
    check(figure)
    words = [words for words, *_ in boxes(figure)]
    assert "critical difference 3.91" in words
    assert "Mean rank by recall@1 over 12 experiments, test_feedback" in words
    bar = re.search(r'd="M([\d.]+) 50.0L([\d.]+) 50.0"', figure)
    ticks = {word: left for word, left, *_ in boxes(figure) if word in ("2", "3")}
    assert bar is not None
    assert float(bar[2]) - float(bar[1]) == pytest.approx(3.911 * (ticks["3"] - ticks["2"]), rel=0.01)
    assert figure.count('stroke="#3b82c4"') == len(verdict.groups) == 4


def test_a_difference_wider_than_the_line_is_said_in_words() -> None:
    figure = critical_difference_svg(several(["a", "b", "c"], 2))
    assert "critical difference 2.34: more than the whole line" in figure


def test_two_losses_show_their_test() -> None:
    figure = critical_difference_svg(several(["a", "b"], 6))
    assert "Wilcoxon signed-rank test, p = 0.031" in figure
    assert "critical" not in figure


def test_intervals_are_readable(one: Verdict) -> None:
    figure = intervals_svg(one)
    check(figure)
    words = [words for words, *_ in boxes(figure)]
    assert "recall@1 in percent, cub200, resnet50, 512 dimensions, fixed_validation" in words
    assert [word for word in words if word in {entry.label for entry in one.standings}] == [
        entry.label for entry in one.standings
    ]
    circles = len(re.findall("<circle", figure))
    assert circles == 4 + sum(map(len, one.groups))


def test_scores_without_intervals_are_drawn_too() -> None:
    runs = [result(name, metrics={"recall@1": value}) for name, value in (("a", 0.61), ("b", 0.6))]
    figure = intervals_svg(settle(runs, Path("nowhere")))
    check(figure)
    assert "[" not in figure


def test_equal_scores_are_drawn() -> None:
    check(intervals_svg(settle([result("a"), result("b")], Path("nowhere"))))


def test_it_takes_the_colour_of_its_page_or_of_the_system(one: Verdict) -> None:
    assert "prefers-color-scheme" in intervals_svg(one)
    assert "<style>" not in intervals_svg(one, standalone=False)
    colours = set(re.findall(r'(?:fill|stroke)="([^"]+)"', intervals_svg(one)))
    assert colours == {"currentColor", "#3b82c4"}


def test_names_cannot_break_the_file() -> None:
    figure = critical_difference_svg(several(["<b>&", 'c"', "d"]))
    assert "<b>&  " in " ".join(words for words, *_ in boxes(figure))


def test_the_figure_that_fits_is_chosen(one: Verdict) -> None:
    assert svg(one) == intervals_svg(one)
    verdict = several(["a", "b", "c"])
    assert svg(verdict) == critical_difference_svg(verdict)
    with pytest.raises(
        ValueError, match=r"needs at least 2 experiments, got 1; draw one experiment with intervals_svg"
    ):
        critical_difference_svg(one)
    with pytest.raises(ValueError, match=r"shows one experiment, got 12; draw several with critical_difference_svg"):
        intervals_svg(verdict)


def test_bars_of_one_height_do_not_touch() -> None:
    assert _levels([(0, 1, 2), (1, 2, 3), (3, 4), (5, 6)]) == [(0, (0, 1, 2)), (1, (1, 2, 3)), (0, (3, 4)), (0, (5, 6))]


@pytest.mark.parametrize(("low", "high"), [(57.3, 62.9), (60.0, 60.0), (0.0, 100.0), (61.234, 61.237)])
def test_ticks_hold_both_ends(low: float, high: float) -> None:
    ticks = _ticks(low, high)
    assert ticks[0] <= low <= high <= ticks[-1]
    assert 2 <= len(ticks) <= 9
