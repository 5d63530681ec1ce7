"""The weight each loss gives a pair, against the pair's similarity."""

from __future__ import annotations

import functools
import json
from typing import Any

import torch

from nearkin.report.bench import Bench, ordered
from nearkin.report.figures.draw import Figure, sheet
from nearkin.report.figures.lines import Axis, Line, lines
from nearkin.report.markup import Section, panels
from nearkin.report.palette import Style
from nearkin.weights import Curve

POSITIVE, NEGATIVE = Style(0, "circle", False), Style(1, "square", True)
POINTS = 81


def section(bench: Bench) -> Section | None:
    """A panel for each loss of the benchmark, with the settings it was run with."""
    drawn: list[Figure] = []
    seen: dict[str, tuple[str, dict[str, Any]]] = {}
    for result in bench.begun:
        seen.setdefault(result.label, (result.loss, result.settings.get("loss_settings") or {}))
    for label in ordered(bench, list(seen)):
        loss, settings = seen[label]
        found = curve(loss, json.dumps(settings, sort_keys=True))
        if found is None:
            continue
        xs = found.similarity.tolist()
        series = [
            Line("pair of one class", POSITIVE, tuple(zip(xs, found.positive.tolist(), strict=True))),
            Line("pair of two classes", NEGATIVE, tuple(zip(xs, found.negative.tolist(), strict=True))),
        ]
        said = ", ".join(f"{key}={value}" for key, value in settings.items())
        drawn.append(
            lines(
                f"weights-{len(drawn) + 1}",
                label,
                said,
                series,
                Axis("cosine of the pair", (-1.0, -0.5, 0.0, 0.5, 1.0)),
                Axis("weight"),
                height=150.0,
                width=280.0,
                marks=False,
                named=False,
            )
        )
    lead = (
        "How strongly a loss pulls or pushes a pair as its cosine changes, the rest of its batch fixed. "
        '<span class="hit-word">Solid: a pair of one class.</span> <span class="miss-word">Dashed: of two.</span> Each '
        "panel has its own scale; below zero a pair is moved against its label."
    )
    if not drawn:
        return None
    whole = sheet("weights", "The weight of a pair against its cosine; solid: one class, dashed: two", drawn)
    return Section("weights", "What each loss looks at", lead, panels(drawn, "small"), (whole,))


@functools.cache
def curve(loss: str, settings: str) -> Curve | None:
    """The curve of a loss with these settings (JSON); None where this version knows no such loss or setting."""
    from nearkin import losses, weights

    if loss not in losses.LOSSES:
        return None
    given = {key: value for key, value in json.loads(settings).items() if key not in ("classes", "dim")}
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # sixteen rows gain nothing from more, and lose much on a busy machine
    try:
        return weights.curve(losses.example(loss, given, classes=10, dim=8).double(), points=POINTS)
    except (ValueError, TypeError, RuntimeError):
        return None
    finally:
        torch.set_num_threads(threads)
