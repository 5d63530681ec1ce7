"""Figures: what they show is what they were given."""

from __future__ import annotations

import itertools
import math
import re
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nearkin.report import palette, raster
from nearkin.report.figures import draw, labels
from nearkin.report.figures.bars import Bar, bars
from nearkin.report.figures.dots import beside, dots
from nearkin.report.figures.draw import Figure, sheet
from nearkin.report.figures.groups import Place, groups
from nearkin.report.figures.histogram import histogram, overlap
from nearkin.report.figures.lines import Axis, Line, lines
from nearkin.report.figures.points import Point, points
from nearkin.report.figures.scale import apart, around, log_ticks, ticks
from nearkin.report.figures.scatter import Spot, scatter
from nearkin.report.palette import style

HOSTILE = "<script>alert(1)</script> & \"quotes\" 'too'"

# Machado, Oliveira and Fernandes 2009, severity 1, on linear RGB.
VISIONS = {
    "protan": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deutan": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritan": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
    "usual": [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
}


def linear(colour: str) -> np.ndarray:
    parts = np.array([int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)])
    return np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)


def contrast(one: str, other: str) -> float:
    low, high = sorted(float(linear(colour) @ [0.2126, 0.7152, 0.0722]) for colour in (one, other))
    return (high + 0.05) / (low + 0.05)


def lab(light: np.ndarray) -> np.ndarray:
    matrix = [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
    parts = np.array(matrix) @ np.clip(light, 0, 1) / [0.95047, 1, 1.08883]
    root = np.where(parts > 0.008856, np.cbrt(parts), 7.787 * parts + 16 / 116)
    return np.array([116 * root[1] - 16, 500 * (root[0] - root[1]), 200 * (root[1] - root[2])])


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
@pytest.mark.parametrize("vision", VISIONS)
def test_series_are_told_apart_by_every_kind_of_colour_vision(vision: str, theme: int) -> None:
    seen = [lab(np.array(VISIONS[vision]) @ linear(palette.COLOURS[f"s{number}"][theme])) for number in range(8)]
    nearest = min(float(np.linalg.norm(one - other)) for one, other in itertools.combinations(seen, 2))
    assert nearest > 15
    hit, miss = (lab(np.array(VISIONS[vision]) @ linear(palette.COLOURS[name][theme])) for name in ("hit", "miss"))
    assert np.linalg.norm(hit - miss) > 60


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_words_and_marks_are_readable(theme: int) -> None:
    def of(name: str) -> str:
        return palette.COLOURS[name][theme]

    for word, ground in itertools.product(("ink", "soft", "accent", "warn", "hit", "miss"), ("card", "ground")):
        assert contrast(of(word), of(ground)) > (3 if word == "miss" else 4.5), word  # miss is a frame and a mark
    assert contrast(of("warn"), of("warn-ground")) > 4.5
    assert contrast(of("soft"), of("warn-ground")) > 4.5
    assert all(contrast(of(f"s{number}"), of("card")) > 3 for number in range(8))


def test_styles_do_not_repeat() -> None:
    assert len({style(number) for number in range(60)}) == 60


@given(st.lists(st.floats(0, 100), max_size=20), st.floats(0.5, 9))
def test_labels_do_not_overlap_and_keep_their_order(wanted: list[float], gap: float) -> None:
    found = apart(wanted, gap, 0, 200)
    assert len(found) == len(wanted)
    order = sorted(range(len(wanted)), key=lambda place: wanted[place])
    for one, other in itertools.pairwise(order):
        assert found[other] - found[one] > gap - 1e-6
    assert all(-1e-6 <= place <= 200 + 1e-6 for place in found)


@given(st.floats(-1e4, 1e4), st.floats(1e-3, 1e4))
def test_ticks_lie_within_round_bounds(low: float, span: float) -> None:
    first, last = around(low, low + span)
    assert first <= low + 1e-6 * span and last >= low + span - 1e-6 * span
    found = ticks(first, last)
    assert 1 <= len(found) <= 12
    assert all(first - 1e-6 * span <= tick <= last + 1e-6 * span for tick in found)


def test_log_ticks_are_few() -> None:
    assert log_ticks(0.9, 1e6) == [1.0, 10.0, 100.0, 1000.0, 10000.0, 100000.0, 1000000.0]
    assert log_ticks(1, 10) == [1.0, 2.0, 5.0, 10.0]


def every() -> list[Figure]:
    """One figure of each kind, with hostile names."""
    look = style(0)
    edges = np.linspace(-1, 1, 101).tolist()
    counts = [float(number % 7) for number in range(100)]
    made = [
        bars("bars", HOSTILE, HOSTILE, [Bar(HOSTILE, look, 0.5, 0.4, 0.6, "a", ((0.55, "test_feedback"),))]),
        lines("lines", HOSTILE, HOSTILE, [Line(HOSTILE, look, ((1, 2), (2, 3)))], Axis(HOSTILE), Axis(HOSTILE)),
        dots("dots", HOSTILE, HOSTILE, [(HOSTILE, {HOSTILE: 0.4, "other": 0.5})], [HOSTILE, "other"]),
        histogram("histogram", HOSTILE, edges, counts, counts[::-1]),
        scatter(
            "scatter", HOSTILE, HOSTILE, [Spot(HOSTILE, look, 1, 2, HOSTILE), Spot("b", look, 90, 3, "b")], "x", HOSTILE
        ),
        groups("groups", HOSTILE, HOSTILE, [Place(HOSTILE, 5, HOSTILE, 4, 6), Place("b", 5, "5")], [[0, 1]]),
        points("map", HOSTILE, HOSTILE, [Point(0, 0, HOSTILE, True), Point(1, 1, "b", False)], [HOSTILE]),
    ]
    return [*made, sheet("sheet", HOSTILE, made)]


@pytest.mark.parametrize("figure", every(), ids=lambda figure: figure.name)
def test_figures_are_well_formed_and_escape_names(figure: Figure) -> None:
    for text in (figure.file(), figure.inline()):
        root = ElementTree.fromstring(text)
        assert not [element for element in root.iter() if element.tag.endswith("script")]
        assert "var(" not in text and not re.search(r"\bnan\b", text)
        _, _, width, height = map(float, root.attrib["viewBox"].split())
        assert width > 0 and height > 0


@pytest.mark.skipif(not raster.available(), reason="resvg-py is not installed")
@pytest.mark.parametrize("figure", every()[:1], ids=lambda figure: figure.name)
def test_png_is_twice_the_size_and_not_empty(figure: Figure) -> None:
    import io

    from PIL import Image

    image = Image.open(io.BytesIO(raster.png(figure))).convert("RGB")
    assert image.size == (2 * round(figure.width + 2 * draw.MARGIN), 2 * round(figure.height + 2 * draw.MARGIN))
    assert image.getpixel((1, 1)) == (255, 255, 255)
    colours = {colour for _, colour in image.getcolors(1 << 20) or []}
    assert len(colours) > 20


def test_bars_have_the_length_of_their_values() -> None:
    figure = bars("bars", "title", "", [Bar("a", style(0), 0.6), Bar("b", style(1), 0.3), Bar("c", style(2), 0.15)])
    found = [float(width) for width in re.findall(r'<rect class="f-s\d" [^>]*width="([\d.]+)"', figure.body)]
    assert found[0] / found[1] == pytest.approx(2, rel=0.01)
    assert found[0] / found[2] == pytest.approx(4, rel=0.02)
    assert "60.00" in figure.body and "30.00" in figure.body


@given(st.lists(st.tuples(st.floats(40, 44), st.floats(60, 62)), min_size=2, max_size=6))
def test_labels_of_a_scatter_do_not_cover_each_other(places: list[tuple[float, float]]) -> None:
    spots = [Spot(f"loss {number}", style(number), x, y, "") for number, (x, y) in enumerate(places)]
    body = scatter("scatter", "", "", spots, "x", "y").body
    boxes = []
    for x, y, anchor, label in re.findall(r'x="([\d.]+)" y="([\d.]+)"(?: text-anchor="(\w+)")? [^>]*>(loss \d)<', body):
        long, start = draw.wide(label, 11), float(x)
        start -= {"end": long, "middle": long / 2}.get(anchor, 0)
        boxes.append((start, float(y) - 9, start + long, float(y) + 2))
    assert boxes
    for one, other in itertools.combinations(boxes, 2):
        assert one[2] <= other[0] or other[2] <= one[0] or one[3] <= other[1] or other[3] <= one[1]


def test_nobody_takes_a_name_for_that_of_another_mark() -> None:
    crowd = {
        "arcface": (44.6, 67.9),
        "nra": (46.6, 69.0),
        "margin": (50.0, 68.3),
        "proxy_nca": (47.6, 68.3),
        "multi_similarity": (47.4, 67.5),
        "soft_triple": (46.7, 65.8),
        "triplet": (51.7, 65.9),
    }
    marks = [(52 + 11.8 * (x - 30), 262 - 14.9 * (y - 55), draw.wide(name, 11)) for name, (x, y) in crowd.items()]
    for mark, place in zip(marks, labels.places(marks, (44, 10, 366, 262)), strict=True):
        assert place is not None
        space = labels._space(place, mark[2])
        nearest = min(labels._away(space, other) for other in marks if other != mark)
        assert nearest >= (labels.HALF if labels.far(mark, place) else labels._away(space, mark) + 3)


@given(st.lists(st.tuples(st.floats(60, 340), st.floats(30, 250)), min_size=2, max_size=12))
def test_a_name_is_near_its_mark_or_joined_to_it(points: list[tuple[float, float]]) -> None:
    marks = [(x, y, 40.0 + 7 * number) for number, (x, y) in enumerate(points)]
    inside = (44, 10, 366, 262)
    for mark, place in zip(marks, labels.places(marks, inside), strict=True):
        if place is None:
            continue
        space, end = labels._space(place, mark[2]), labels.joint(mark, place, marks)
        if end is None:
            others = [labels._away(space, other) for other in marks if other != mark]
            assert min(others) >= labels._away(space, mark) + 3
        else:
            assert space[0] - 9 <= end[0] <= space[2] + 9 and space[1] - 1 <= end[1] <= space[3] + 1


def test_a_hole_has_no_bar() -> None:
    figure = bars("bars", "title", "", [Bar("a", style(0), 0.6), Bar("b", style(1), hole="failed: no luck")])
    assert len(re.findall(r'<rect class="f-s\d"', figure.body)) == 1
    assert "hole: failed: no luck" in figure.body


def test_the_reason_of_a_hole_stands_whole_and_makes_room_for_itself() -> None:
    why = "2 of 2 runs failed: DivergedError: the loss became infinite in step 7; lower lr or clip gradients"
    rows = [Bar("a", style(0), 0.6), Bar("b", style(1), hole=why), Bar("c", style(2), hole="failed: no luck")]
    figure = bars("bars", "title", "", rows)
    lines = re.findall(r'<text class="warn" x="([\d.]+)" y="([\d.]+)"[^>]*>([^<]+)<', figure.body)
    assert " ".join(words for _, _, words in lines) == f"hole: {why} hole: failed: no luck"
    assert len(lines) > 3 and all(float(x) + draw.wide(words, 11) <= figure.width for x, _, words in lines)
    heights = [float(y) for _, y, _ in lines]
    assert all(other - one >= 11 for one, other in itertools.pairwise(heights)) and heights[-1] < figure.height - 20
    endless = bars("bars", "title", "", [Bar("a", style(0), 0.6), Bar("b", style(1), hole="word " * 200)])
    assert endless.height < 200 and "…" in endless.body


def test_a_published_number_says_its_protocol() -> None:
    figure = bars("bars", "title", "", [Bar("a", style(0), 0.6, published=((0.5, "test_feedback"),))])
    assert "published: 50.00 (test_feedback)" in figure.body


def test_a_hole_breaks_a_line() -> None:
    whole = Line("a", style(0), ((1, 1), (2, 2), (3, 3), (4, 4)))
    broken = Line("a", style(0), ((1, 1), (2, 2), (3, math.nan), (4, 4), (5, 5)))
    drawn = [lines("l", "t", "", [entry], Axis("x"), Axis("y")).body for entry in (whole, broken)]
    count = [len(re.findall('<path class="k-s0"', body)) for body in drawn]
    assert count == [1, 2]


def test_every_group_has_a_column_of_dots_within_the_panel() -> None:
    rows = [Place(f"a_loss_with_a_long_name_{number}", 60.0 - number, f"{60 - number}.00") for number in range(16)]
    joined = [list(range(first, first + 4)) for first in range(0, 12, 2)]
    figure = groups("groups", "title", "", rows, joined)
    dots = [tuple(map(float, spot)) for spot in re.findall(r'cx="([\d.]+)" cy="([\d.]+)" r="3.4"', figure.body)]
    columns = sorted({x for x, _ in dots})
    assert len(dots) == 24 and len(columns) == 6 and columns[-1] + 3.4 <= figure.width
    means = [(float(x), float(y)) for x, y in re.findall(r'cx="([\d.]+)" cy="([\d.]+)" r="3.8"', figure.body)]
    assert [x for x, _ in means] == sorted((x for x, _ in means), reverse=True) and means[0][0] < columns[0]
    assert {y for x, y in dots if x == columns[0]} == {y for _, y in means[:4]}


def test_no_title_is_cut() -> None:
    long = "cub200_with_a_long_name, timm:vit_base_patch16_224, 512 dimensions, test_feedback"
    shown, _ = draw.heading(200, "cub200", long)
    assert "test_feedback" in shown and "…" not in shown


def test_overlap_is_the_shared_area() -> None:
    rng = np.random.default_rng(0)
    one, other = rng.integers(0, 99, 50).astype(float), rng.integers(0, 99, 50).astype(float)
    expected = np.minimum(one / one.sum(), other / other.sum()).sum()
    assert overlap(one.tolist(), other.tolist()) == pytest.approx(float(expected))
    assert overlap([1, 0], [0, 1]) == 0 and overlap([3, 1], [6, 2]) == pytest.approx(1)


def said_on(figure: Figure, row: str) -> list[float]:
    """The numbers in the row of a histogram's axis that has this name."""
    height = re.search(rf'y="([\d.]+)" font-size="10">{row}<', figure.body)
    assert height is not None
    return [float(one) for one in re.findall(rf'y="{height[1]}"[^>]*font-size="10">([-\d.]+)<', figure.body)]


@pytest.mark.parametrize(("low", "high"), [(-1.0, 1.0), (0.93, 1.0), (0.991, 1.0), (0.998, 1.0), (0.99987, 0.99999)])
def test_the_axis_of_pairs_follows_their_range(low: float, high: float) -> None:
    edges = np.linspace(low, high, 41)
    one, other = np.arange(40.0), np.arange(40.0)[::-1]
    figure = histogram("histogram", "", edges.tolist(), one.tolist(), other.tolist())
    cosines, distances = said_on(figure, "cosine"), said_on(figure, "distance")
    assert len(set(cosines)) >= 3 and len(set(distances)) >= 2
    assert max(cosines) - min(cosines) >= 0.4 * (high - low)
    drawn = re.findall(r'<path class="k-hit" d="M([^"]+)"', figure.body)[0]
    places = [float(point.split()[0]) for point in drawn.split("L")]
    assert max(places) - min(places) > 100  # it fills the panel


@given(st.integers(-100, 99), st.integers(1, 200))
def test_no_mark_of_the_axis_of_pairs_lies_beyond_it(first: int, steps: int) -> None:
    edges = [number / 100 for number in range(first, min(first + steps, 100) + 1)]
    counts = [1.0] * (len(edges) - 1)
    figure = histogram("histogram", "", edges, counts, counts)
    assert all(-1 <= cosine <= 1 for cosine in said_on(figure, "cosine"))
    across = [float(at) for at in re.findall(r'<path class="axis" d="M([\d.]+)', figure.body)]
    words = [float(at) for at in re.findall(r'<text[^>]* x="([\d.]+)"', figure.body)]
    assert across and words and max(across) <= figure.width - 7.9 and max(words) <= figure.width - 7.9


def test_steps_too_coarse_for_their_pairs_say_no_overlap() -> None:
    """Results of earlier versions have a hundred steps, whatever the range."""
    edges = np.linspace(-1, 1, 101).round(4).tolist()
    counts = [0.0] * 98 + [3.0, 900.0]
    figure = histogram("histogram", "", edges, counts, counts)
    assert "overlap not known: all pairs lie between 0.96 and 1" in figure.words and "100.0 %" not in figure.body


@pytest.mark.parametrize("epochs", [2, 3, 6, 8, 15, 40])
def test_the_scale_of_epochs_can_be_read(epochs: int) -> None:
    """Three marks or more where there are so many epochs, none beyond the last, none between two of them."""
    series = [Line("a", style(0), tuple((float(epoch), 1.0 + epoch) for epoch in range(1, epochs + 1)))]
    for width in (260.0, 370.0, 720.0):
        figure = lines("lines", "", "", series, Axis("epoch", whole=True), Axis("loss"), width=width)
        marks = re.findall(r'text-anchor="middle" font-size="11">([\d,.]+)<', figure.body)
        assert len(marks) >= min(3, epochs) and max(map(float, marks)) <= epochs
        assert all(mark.isdecimal() for mark in marks)


def test_the_axis_of_a_scatter_holds_the_band() -> None:
    """Two losses a point apart, each known to eleven points, stood at the top and at the bottom."""
    spots = [Spot("a", style(0), 1, 71.5, ""), Spot("b", style(1), 2, 72.6, "")]
    assert "band" not in scatter("scatter", "", "", spots, "x", "y").body
    body = scatter("scatter", "", "", spots, "x", "y", (61.8, 84.3)).body
    [(y, height)] = re.findall(r'<rect class="band" x="[\d.]+" y="([\d.]+)" width="[\d.]+" height="([\d.]+)"', body)
    ticks = {
        float(said): float(at) - 4 for at, said in re.findall(r'y="([\d.]+)" text-anchor="end"[^>]*>([\d.]+)<', body)
    }
    assert set(ticks) == {60.0, 70.0, 80.0, 90.0}
    point = (ticks[60] - ticks[90]) / 30
    assert float(height) == pytest.approx((84.3 - 61.8) * point, abs=0.2)
    assert float(y) == pytest.approx(ticks[90] + (90 - 84.3) * point, abs=0.2)


def test_marks_of_equal_values_are_all_seen() -> None:
    """One of two seeds with the same score lay under the other."""
    kinds = [f"seed {number}" for number in range(8)]
    body = dots("dots", "", "", [("a", {"seed 0": 0.5, "seed 7": 0.5, "seed 2": 0.9})], kinds).body
    drawn = re.findall(r'<circle[^>]* cx="([\d.]+)" cy="([\d.]+)"', body.split('class="row"')[1])
    assert len(drawn) == 2 and drawn[0][0] == drawn[1][0]
    assert abs(float(drawn[0][1]) - float(drawn[1][1])) == pytest.approx(6, abs=0.1)
    for number in range(2, 9):
        aside = sorted(beside(dict.fromkeys(kinds[:number], 100.0)).values())
        assert max(map(abs, aside)) <= 7 and min(b - a for a, b in itertools.pairwise(aside)) >= 1.9
    assert set(beside({"seed 0": 40.0, "seed 1": 47.0, "seed 2": 60.0}).values()) == {0.0}


def test_the_axis_of_rows_holds_the_band() -> None:
    rows = [("a", {"one": 0.715, "other": 0.726})]
    assert "band" not in dots("dots", "", "", rows, ["one", "other"]).body
    body = dots("dots", "", "", rows, ["one", "other"], band=(0.618, 0.843)).body
    ticks = {
        float(said): float(at) for at, said in re.findall(r'<text[^>]* x="([\d.]+)"[^>]*middle[^>]*>([\d.]+)<', body)
    }
    [(x, width)] = re.findall(r'<rect class="band" x="([\d.]+)" y="[\d.]+" width="([\d.]+)"', body)
    point = (ticks[80] - ticks[70]) / 10
    assert float(x) == pytest.approx(ticks[70] - 8.2 * point, abs=0.2)
    assert float(width) == pytest.approx(22.5 * point, abs=0.2)
