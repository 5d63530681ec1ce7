"""The figure: every point where it belongs, both axes to one scale, whole as XML."""

from __future__ import annotations

import itertools
import re
from xml.etree import ElementTree

import pytest
import torch

from nearkin.plane import Panel, figure
from nearkin.plane.figure import APART, LEFT, PARTS, SIDE, TOP, spread, ticks

SVG = "{http://www.w3.org/2000/svg}"


def panel(title: str = "nra", count: int = 60, scale: float = 1.0, classes: int = 10) -> Panel:
    generator = torch.Generator().manual_seed(count)
    points = scale * torch.randn(count, 2, generator=generator) * torch.tensor([3.0, 1.0]) + 5 * scale
    return Panel(title, "mAP 12.3 %", points, torch.arange(count) % classes)


def parsed(*panels: Panel, names: str = "0123456789") -> ElementTree.Element:
    return ElementTree.fromstring(figure(panels, list(names), "ten digits & more"))


def dots(part: ElementTree.Element) -> dict[int, list[tuple[float, float]]]:
    """The pixels of the dots of each class, read back from the paths of relative moves."""
    found: dict[int, list[tuple[float, float]]] = {}
    for path in part.iter(SVG + "path"):
        kind = path.get("class", "")
        if not kind.startswith("c"):
            continue
        assert re.fullmatch(r"(m-?\d+[ -]\d+h0)+", path.get("d", "").replace(" -", "-"))
        x = y = 0
        for across, down in re.findall(r"m(-?\d+) ?(-?\d+)h0", path.get("d", "")):
            x, y = x + int(across), y + int(down)
            found.setdefault(int(kind[1:]), []).append((x / PARTS, y / PARTS))
    return found


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e4])
def test_every_point_is_drawn_to_scale(scale: float) -> None:
    shown = panel(scale=scale)
    [part] = [group for group in parsed(shown) if group.tag == SVG + "g"]
    found = dots(part)
    points = shown.points.double()
    low, high = points.min(0).values, points.max(0).values
    for label in range(10):
        own = points[shown.labels == label]
        assert len(found[label]) == len(own)
        pixels = torch.tensor(found[label], dtype=torch.float64)
        assert pixels.min() > 0 and pixels.max() < SIDE
        # One factor for both axes, up is up: undo it and find every point again.
        factor = SIDE / 1.06 / float((high - low).max())
        expected = (own - (low + high) / 2) * factor * torch.tensor([1.0, -1.0]) + SIDE / 2
        gaps = torch.cdist(expected, pixels)
        assert float(gaps.min(1).values.max()) < 1 / PARTS


def test_points_in_one_place_are_drawn_once() -> None:
    shown = Panel("a", "b", torch.tensor([[0.0, 0.0], [0.0, 0.0], [1.0, 1.0], [1.0, 1.0]]), torch.tensor([0, 0, 0, 1]))
    [part] = [group for group in parsed(shown, names="01") if group.tag == SVG + "g"]
    assert {label: len(found) for label, found in dots(part).items()} == {0: 2, 1: 1}


def test_digits_stand_at_their_centres() -> None:
    centers = torch.tensor([[0.0, 0.0], [10.0, 0.0], [0.0, 10.0]])
    shown = Panel("a", "b", centers.repeat_interleave(3, 0), torch.arange(3).repeat_interleave(3))
    words = [entry for entry in parsed(shown, names="xyz").iter(SVG + "text") if entry.get("class") == "name"]
    assert [entry.text for entry in words] == ["x", "y", "z"]
    places = torch.tensor([[float(entry.get("x", "")), float(entry.get("y", "")) - 6] for entry in words])
    edge = SIDE * 0.03 / 1.06
    expected = torch.tensor([[edge, SIDE - edge], [SIDE - edge, SIDE - edge], [edge, edge]])
    assert torch.allclose(places, expected, atol=0.1)


@pytest.mark.parametrize(("count", "columns", "rows"), [(1, 1, 1), (2, 2, 1), (3, 2, 2), (4, 2, 2), (5, 2, 3)])
def test_panels_lie_in_a_grid(count: int, columns: int, rows: int) -> None:
    root = parsed(*(panel(f"loss {number}") for number in range(count)))
    groups = [group for group in root if group.tag == SVG + "g"]
    places = [tuple(map(int, re.findall(r"\d+", group.get("transform", "")))) for group in groups]
    assert len(set(places)) == count and places[0] == (LEFT, TOP)
    width, height = int(root.get("width", "")), int(root.get("height", ""))
    assert (width // (LEFT + SIDE), height // (TOP + SIDE)) == (columns, rows)
    assert all(x + SIDE <= width and y + SIDE <= height for x, y in places)
    shown = [entry.text for entry in root.iter(SVG + "text")]
    assert all(f"loss {number}" in shown for number in range(count)) and shown.count("mAP 12.3 %") == count
    assert root[0].text == "ten digits & more"


def test_the_same_points_give_the_same_figure() -> None:
    assert figure([panel()], list("0123456789"), "w") == figure([panel()], list("0123456789"), "w")


def test_all_points_in_one_place_are_still_a_figure() -> None:
    shown = Panel("a", "b", torch.full((20, 2), 3.0), torch.arange(20) % 10)
    [part] = [group for group in parsed(shown) if group.tag == SVG + "g"]
    assert set(map(tuple, (spot for spots in dots(part).values() for spot in spots))) == {(SIDE / 2, SIDE / 2)}


def test_written_digits_stand_apart() -> None:
    spots = torch.zeros(10, 2)
    spots[9] = 300.0
    moved = spread(spots)
    assert float(torch.pdist(moved).min()) > APART - 0.2
    assert moved[9].tolist() == [300.0, 300.0]
    assert float(moved[:9].abs().max()) < 4 * APART


@pytest.mark.parametrize(("low", "high"), [(-12.0, 31.0), (0.0, 1e-3), (99.2, 100.1), (-3e5, 2.0)])
def test_ticks_are_round_and_inside(low: float, high: float) -> None:
    found = ticks(low, high)
    assert 3 <= len(found) <= 7 and low <= found[0] < found[-1] <= high
    steps = {f"{later - sooner:.3g}" for sooner, later in itertools.pairwise(found)}
    assert len(steps) == 1 and steps.pop().strip("0.").split("e")[0].strip("0.") in ("1", "2", "5")


def test_what_cannot_be_drawn_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^panels must be at least one, got none; pass a loss\.$"):
        figure([], ["0"], "")
    with pytest.raises(ValueError, match=r"^names must be at most 10, one colour each, got 11; leave some out\.$"):
        figure([panel()], list("0123456789X"), "")
