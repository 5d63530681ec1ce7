"""Colours that every kind of colour vision can tell apart, in a light and a dark form, and the marks that go with them.

A figure never names a colour: its elements have classes. In the page the classes follow the theme by CSS variables; a file
of its own carries the light colours, and the dark ones for systems that ask for them. Colour never speaks alone: every
series has a mark of its own shape, hits and misses have signs, and numbers are printed.
"""

from __future__ import annotations

from dataclasses import dataclass

# name: light, dark. The colours of series stand at least 3:1 against the card and lie well apart from each other in every
# kind of colour vision; the tests hold them to it.
COLOURS: dict[str, tuple[str, str]] = {
    "ground": ("#f6f7f9", "#101216"),
    "card": ("#ffffff", "#181b21"),
    "ink": ("#1a1d23", "#e8eaee"),
    "soft": ("#5b6270", "#a3abb9"),
    "line": ("#dfe2e8", "#2d323c"),
    "axis": ("#9aa1ae", "#626b7a"),
    "accent": ("#0067a3", "#62b5e5"),
    "warn": ("#a84600", "#ffa066"),
    "warn-ground": ("#fff1e6", "#33231a"),
    "good-ground": ("#e8f3fa", "#182833"),
    "hit": ("#0072b2", "#5db4e8"),
    "miss": ("#c85000", "#ff9350"),
    "s0": ("#005197", "#4e86ba"),
    "s1": ("#a04c00", "#ef7244"),
    "s2": ("#008352", "#53e39b"),
    "s3": ("#b66697", "#c27d94"),
    "s4": ("#cd7f00", "#f1be32"),
    "s5": ("#1f96e1", "#99cbfd"),
    "s6": ("#553f4e", "#cedfe2"),
    "s7": ("#6b4ad4", "#9090ff"),
}
SERIES = 8
MARKS = ("circle", "square", "triangle", "diamond", "wedge", "plus", "cross", "ring")


@dataclass(frozen=True)
class Style:
    """How a series looks: the number of its colour, its mark, and whether its line is dashed."""

    colour: int
    mark: str
    dashed: bool


def style(number: int) -> Style:
    """The look of the series of that number; colour, mark and dashes together repeat after 64.

    >>> style(0), style(9)
    (Style(colour=0, mark='circle', dashed=False), Style(colour=1, mark='wedge', dashed=True))
    """
    turn, colour = divmod(number, SERIES)
    return Style(colour, MARKS[(colour + 3 * turn) % len(MARKS)], turn % 2 == 1)


def variables(dark: bool = False) -> str:
    """The colours as CSS variables."""
    return "".join(f"--{name}:{pair[dark]};" for name, pair in COLOURS.items())


def rules(dark: bool | None = None) -> str:
    """The CSS of the classes in figures: with variables, or with the colours of one theme."""

    def colour(name: str) -> str:
        return f"var(--{name})" if dark is None else COLOURS[name][dark]

    fills = ("hit", "miss", *(f"s{number}" for number in range(SERIES)))
    made = [f".f-{name}{{fill:{colour(name)}}}.k-{name}{{stroke:{colour(name)};fill:none}}" for name in fills]
    made += [
        f".paper{{fill:{colour('card')}}}",
        f".ink{{fill:{colour('ink')}}}",
        f".soft{{fill:{colour('soft')}}}",
        f".grey{{fill:{colour('axis')}}}",
        f".warn{{fill:{colour('warn')}}}",
        f".band{{fill:{colour('hit')};fill-opacity:.08}}",
        f".grid{{stroke:{colour('line')};fill:none}}",
        f".axis{{stroke:{colour('axis')};fill:none}}",
        f".mark{{stroke:{colour('card')};stroke-width:1}}",
        f".open{{fill:{colour('card')}}}",
        # A name that lies on a line of the grid stands free of it.
        f".free{{paint-order:stroke;stroke:{colour('card')};stroke-width:3;stroke-linejoin:round}}",
        f".pen{{stroke:{colour('ink')};fill:none}}",
        f".nearkin-figure{{color:{colour('ink')}}}",
    ]
    return "".join(made)


def standalone() -> str:
    """The style of a figure in a file of its own: light, or dark where the reader's system asks for it."""
    return f"<style>{rules(False)}@media (prefers-color-scheme:dark){{{rules(True)}}}</style>"
