"""The figure as SVG: one panel for each loss, both axes of a panel to one scale, a dot for every image."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

import torch
from torch import Tensor

from nearkin.plane.colours import LIGHT, style
from nearkin.plane.shape import shape

SIDE = 400  # of a panel's square, in pixels
LEFT, RIGHT, TOP, BOTTOM = 46, 14, 54, 30
DOT = 2.4
# Coordinates are whole numbers of this many parts of a pixel. Dots of a class in one place are drawn once.
PARTS = 4
LAYERS = 6  # the classes take turns, so that the last one does not hide the others
APART = 17.0  # least distance of two written digits, in pixels


@dataclass(frozen=True)
class Panel:
    """``title`` and ``note`` stand above the points (n, 2) with labels (n,)."""

    title: str
    note: str
    points: Tensor
    labels: Tensor


def figure(panels: Sequence[Panel], names: Sequence[str], words: str) -> str:
    """Panels side by side, two in a row; ``names`` of the classes are written at their centres; ``words`` say it all."""
    if not panels:
        raise ValueError("panels must be at least one, got none; pass a loss.")
    if len(names) > len(LIGHT):
        raise ValueError(f"names must be at most {len(LIGHT)}, one colour each, got {len(names)}; leave some out.")
    columns = min(2, len(panels))
    rows = -(-len(panels) // columns)
    wide, high = LEFT + SIDE + RIGHT, TOP + SIDE + BOTTOM
    width, height = columns * wide, rows * high
    parts = [
        f'<g transform="translate({LEFT + number % columns * wide} {TOP + number // columns * high})">'
        + "".join(_panel(panel, names))
        + "</g>"
        for number, panel in enumerate(panels)
    ]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'font-family="system-ui, sans-serif" font-size="12" role="img"><title>{escape(words)}</title>{style()}\n'
        f'<rect class="paper" width="{width}" height="{height}"/>\n' + "\n".join(parts) + "\n</svg>\n"
    )


def _panel(panel: Panel, names: Sequence[str]) -> list[str]:
    points, labels = panel.points.double().cpu(), panel.labels.cpu()
    low, high = points.min(0).values, points.max(0).values
    middle, span = (low + high) / 2, max(float((high - low).max()), 1e-12) * 1.06
    # To pixels: one scale for both axes, up is up.
    scale = SIDE / span
    corner = (float(middle[0]) - span / 2, float(middle[1]) + span / 2)
    x, y = (points[:, 0] - corner[0]) * scale, (corner[1] - points[:, 1]) * scale
    parts = [
        f'<text class="ink" y="-30" font-size="17" font-weight="600">{escape(panel.title)}</text>',
        f'<text class="soft" y="-11" font-size="13">{escape(panel.note)}</text>',
    ]
    for tick in ticks(corner[0], corner[0] + span):
        at = (tick - corner[0]) * scale
        parts += [f'<path class="line" d="M{at:.1f} 0V{SIDE}"/>', _tick(at, SIDE + 17, "middle", tick)]
    for tick in ticks(corner[1] - span, corner[1]):
        at = (corner[1] - tick) * scale
        parts += [f'<path class="line" d="M0 {at:.1f}H{SIDE}"/>', _tick(-7, at + 4, "end", tick)]
    parts += [f'<rect class="line" width="{SIDE}" height="{SIDE}"/>']
    parts += [_dots(torch.stack([x, y], 1), labels, len(names))]
    centers = shape(points, labels, len(names)).centers
    spots = torch.stack([(centers[:, 0] - corner[0]) * scale, (corner[1] - centers[:, 1]) * scale], 1)
    for name, (across, down) in zip(names, spread(spots).tolist(), strict=True):
        parts += [
            f'<text class="name" x="{across:.1f}" y="{down + 6:.1f}" text-anchor="middle" font-size="17" '
            f'font-weight="700">{escape(name)}</text>'
        ]
    return parts


def _tick(x: float, y: float, anchor: str, value: float) -> str:
    shown = f"{value:g}".replace("-", "−")
    return f'<text class="soft" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{shown}</text>'


def _dots(places: Tensor, labels: Tensor, classes: int) -> str:
    """Paths of round dots: a move and a line of no length for each, the classes in turns."""
    layers: list[list[str]] = [[] for _ in range(LAYERS)]
    for label in range(classes):
        seen = (places[labels == label] * PARTS).round().long().unique(dim=0)
        # A fixed shuffle: rows that follow one another in a layer lie anywhere.
        mixed = seen[torch.randperm(len(seen), generator=torch.Generator().manual_seed(label))]
        for layer, chunk in enumerate(mixed.chunk(LAYERS)):
            layers[layer].append(f'<path class="c{label}" d="{_path(chunk)}"/>')
    drawn = "".join("".join(layer[turn:] + layer[:turn]) for turn, layer in enumerate(layers))
    return (
        f'<g transform="scale({1 / PARTS:g})" fill="none" stroke-linecap="round" stroke-width="{DOT * PARTS:g}" '
        f'stroke-opacity=".8">{drawn}</g>'
    )


def _path(places: Tensor) -> str:
    # In the order of the rows, and relative, the numbers are short.
    order = places[(places[:, 0] // 40 * 100_000 + places[:, 1]).argsort()]
    moves = torch.cat([order[:1], order[1:] - order[:-1]])
    return "".join(f"m{x}{y:+d}h0".replace("+", " ") for x, y in moves.tolist())


def spread(spots: Tensor) -> Tensor:
    """The same spots, moved as little as makes any two of them stand apart.

    >>> moved = spread(torch.tensor([[0.0, 0.0], [1.0, 0.0], [90.0, 0.0]]))
    >>> bool((moved[0] - moved[1]).norm() > APART - 0.1), moved[2].tolist()
    (True, [90.0, 0.0])
    """
    moved = spots.double().clone()
    for _ in range(100):
        gap = moved[:, None] - moved[None]
        length = gap.norm(dim=2)
        # Where two coincide, each goes its own way round.
        turn = torch.arange(len(moved), dtype=torch.float64) * 2.4
        away = torch.where(length[..., None] > 1e-9, gap, torch.stack([turn.cos(), turn.sin()], 1)[:, None])
        away = away / away.norm(dim=2, keepdim=True)
        short = (APART - length).clamp(min=0)
        short.fill_diagonal_(0)
        if not bool((short > 0.05).any()):
            break
        # Half of what is missing, shared among all that press: the other half is the neighbour's.
        moved = moved + (away * short[..., None]).sum(1) / (1 + (short > 0).sum(1, keepdim=True))
    return moved


def ticks(low: float, high: float) -> list[float]:
    """Round numbers between two ends, four or so.

    >>> ticks(-12.0, 31.0)
    [-10.0, 0.0, 10.0, 20.0, 30.0]
    """
    gap = (high - low) / 4.5
    scale = 10.0 ** math.floor(math.log10(gap))
    step = next(scale * factor for factor in (1, 2, 5, 10) if scale * factor >= gap * 0.8)
    first, last = math.ceil(low / step), math.floor(high / step)
    digits = max(0, -math.floor(math.log10(step)))
    return [round(step * number, digits) + 0.0 for number in range(first, last + 1)]
