"""Ten colours, one for each digit, on a light ground and on a dark one.

They were chosen so that any two of them stay apart for every kind of colour vision; the tests say by how much. Each class
also has its digit written at its centre, so colour never speaks alone.
"""

from __future__ import annotations

LIGHT = (
    "#7195ff", "#f5a811", "#981b00", "#6c79a5", "#7b28a5", "#6c3231", "#da6478", "#9e9a46", "#213454", "#19cdc0",
)  # fmt: skip
DARK = (
    "#60aaf8", "#ffc925", "#ff3b1d", "#758cae", "#8a46e0", "#995f49", "#ff909b", "#afe97c", "#ffffec", "#5be9fc",
)  # fmt: skip

# name: light, dark
GROUND = {
    "paper": ("#ffffff", "#15181d"),
    "ink": ("#1a1d23", "#e8eaee"),
    "soft": ("#5b6270", "#a3abb9"),
    "line": ("#e3e6eb", "#2a2f38"),
}


def style() -> str:
    """The style of the figure: light, or dark where the reader's system asks for it."""
    return f"<style>{_rules(0)}@media (prefers-color-scheme:dark){{{_rules(1)}}}</style>"


def _rules(dark: int) -> str:
    paper, ink, soft, line = (pair[dark] for pair in GROUND.values())
    dots = (LIGHT, DARK)[dark]
    return (
        f".paper{{fill:{paper}}}.ink{{fill:{ink}}}.soft{{fill:{soft}}}.line{{stroke:{line};fill:none}}"
        f".name{{fill:{ink};stroke:{paper};stroke-width:4px;stroke-linejoin:round;paint-order:stroke}}"
    ) + "".join(f".c{number}{{stroke:{colour}}}" for number, colour in enumerate(dots))
