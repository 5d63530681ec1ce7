"""The table of a figure: measures of each loss, over one seed or several."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

# measure: heading, factor, decimals
COLUMNS = {
    "map": ("mAP", 100, 1),
    "map_by_angle": ("by angle", 100, 1),
    "recall@1": ("R@1", 100, 1),
    "tightness": ("tightness", 1, 2),
    "ratio": ("widest/narrowest", 1, 1),
    "follows_variance": ("follows variance", 1, 2),
}


def table(rows: dict[str, Sequence[dict[str, Any]]]) -> str:
    """Rows of text, columns aligned: the mean over the seeds, and the lowest and highest where there are several.

    >>> found = {"map": 0.5, "map_by_angle": 0.4, "recall@1": 1.0, "tightness": 0.1, "ratio": 2.0, "follows_variance": 0.0}
    >>> print(table({"nra": [found]}))
    loss   mAP  by angle    R@1  tightness  widest/narrowest  follows variance
    nra   50.0      40.0  100.0       0.10               2.0              0.00
    """
    heads = ["loss", *(heading for heading, _, _ in COLUMNS.values())]
    lines = [heads] + [[name, *(_cell(key, found) for key in COLUMNS)] for name, found in rows.items()]
    sizes = [max(len(line[place]) for line in lines) for place in range(len(heads))]
    return "\n".join(
        "  ".join(
            cell.rjust(size) if place else cell.ljust(size)
            for place, (cell, size) in enumerate(zip(line, sizes, strict=True))
        )
        for line in lines
    )


def _cell(key: str, found: Sequence[dict[str, Any]]) -> str:
    _, factor, decimals = COLUMNS[key]
    values = [factor * entry[key] for entry in found]
    shown = f"{statistics.fmean(values):.{decimals}f}"
    return shown if len(values) == 1 else f"{shown} ({min(values):.{decimals}f} to {max(values):.{decimals}f})"
