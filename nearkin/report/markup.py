"""Pieces of HTML. Whatever comes from outside, names above all, goes through ``words``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

from nearkin.report.figures.draw import Figure, mark
from nearkin.report.palette import style
from nearkin.tournament import Experiment

# With more panels than this they are folded by data set.
MANY = 6
# Up to this many small panels stand below each other on a telephone.
FEW = 4


@dataclass(frozen=True)
class Section:
    """A part of the page: its anchor, title, a sentence on how to read it, and what it holds."""

    anchor: str
    title: str
    lead: str
    body: str
    figures: tuple[Figure, ...] = ()


def words(text: object) -> str:
    """A text as HTML.

    >>> words("<b> & 'c'")
    '&lt;b&gt; &amp; &#x27;c&#x27;'
    """
    return escape(str(text))


def unbroken(text: str) -> str:
    """A text as HTML whose intervals, p-values and numbers with a unit stay on one line.

    >>> unbroken("ahead [1.00, 2.00] & sure")
    'ahead <span class="whole">[1.00, 2.00]</span> &amp; sure'
    """
    return re.sub(
        r"\[[^\[\]]*\]|[\d.]+ (?:%|(?:s|min|h|[kMG]?B)\b)|p [=&lt;]+ [\d.e-]+",
        r'<span class="whole">\g<0></span>',
        words(text),
    )


def badge(protocol: str) -> str:
    """How the epoch was chosen; test_feedback stands out."""
    kind = "badge warned" if protocol == "test_feedback" else "badge"
    return f'<span class="{kind}">{words(protocol)}</span>'


def name(table: Experiment) -> str:
    """An experiment in words, with its protocol as a badge."""
    return f"{words(joined(table.data, table.network, f'{table.dim} dimensions'))} {badge(table.protocol)}"


def plain_name(table: Experiment) -> tuple[str, str]:
    """An experiment as the title of a panel and its protocol, for the line under it."""
    return joined(table.data, table.network, str(table.dim)), table.protocol


def joined(*parts: str) -> str:
    """What is known of an experiment, with commas between; models trained elsewhere may come without the name of a network.

    >>> joined("mine", "", "12 dimensions")
    'mine, 12 dimensions'
    """
    return ", ".join(filter(None, parts))


def breakable(label: str) -> str:
    """A name that may be broken after an underscore or a hyphen, as HTML."""
    return words(label).replace("_", "_<wbr>").replace("-", "-<wbr>")


def panel(figure: Figure) -> str:
    """A figure in the page."""
    drawn = figure.inline()
    if figure.narrow is not None:
        drawn = f'<div class="on-wide">{drawn}</div><div class="on-narrow">{figure.narrow.inline()}</div>'
    kind = "panel wide" if figure.width > 600 else "panel"
    return f'<figure class="{kind}">{drawn}</figure>'


def panels(figures: Iterable[Figure], kind: str = "") -> str:
    """Figures side by side, as many as there is room for; on a telephone many small ones are swiped through."""
    made, hint = [panel(figure) for figure in figures], ""
    if kind == "small" and len(made) > FEW:
        kind = 'small many" tabindex="0'
        hint = f'<p class="note swipe" aria-hidden="true">{len(made)} panels: swipe sideways →</p>'
    return f'{hint}<div class="panels {kind}">{"".join(made)}</div>'


def by_data(drawn: Sequence[tuple[str, Figure]], unfolded: bool = False) -> str:
    """Panels with the data sets they belong to; many of several data sets are folded by data set, all open if asked."""
    names = list(dict.fromkeys(data for data, _ in drawn))
    if len(drawn) <= MANY or len(names) < 2:
        return panels(figure for _, figure in drawn)
    return folded([(words(name), panels(figure for data, figure in drawn if data == name)) for name in names], unfolded)


def folded(parts: Sequence[tuple[str, str]], unfolded: bool = False) -> str:
    """Parts under their headings (HTML), which can be folded; of several, all but the first are, unless all stay open."""
    if len(parts) == 1:
        return f"<h3>{parts[0][0]}</h3>{parts[0][1]}"
    made = []
    for number, (heading, body) in enumerate(parts):
        made.append(
            f"<details{' open' if unfolded or number == 0 else ''}><summary>{heading}</summary>{body}</details>"
        )
    return "".join(made)


def legend(names: Sequence[str]) -> str:
    """Names with the marks of their series, the first series first."""
    items = "".join(
        f'<li><svg viewBox="0 0 12 12" aria-hidden="true">{mark(6, 6, style(number), 4.6)}</svg>{words(label)}</li>'
        for number, label in enumerate(names)
    )
    return f'<ul class="legend">{items}</ul>' if items else ""


def cell(content: str, sort: float | str | None = None, kind: str = "", title: str = "") -> str:
    """A cell of a table; ``content`` is HTML, ``sort`` what the column is sorted by."""
    extra = f' class="{kind}"' if kind else ""
    extra += f' data-sort="{escape(str(sort))}"' if sort is not None else ""
    extra += f' title="{escape(title)}"' if title else ""
    if kind == "word":  # a box whose width can have a limit, which that of a cell has not
        content = f'<span class="name">{content}</span>'
    return f"<td{extra}>{content}</td>"


def grid(headings: Sequence[tuple[str, str]], rows: Iterable[str], kind: str = "", caption: str = "") -> str:
    """A table in a box of its own that scrolls where it is too wide; headings are (HTML, class)."""
    head = "".join(f'<th scope="col" class="{css}">{title}</th>' for title, css in headings)
    caption = f"<caption>{caption}</caption>" if caption else ""
    return (
        f'<div class="scroll" tabindex="0"><table class="{kind}">{caption}<thead><tr>{head}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )


def listed(sentences: Iterable[str], kind: str = "") -> str:
    items = "".join(f"<li>{words(sentence)}</li>" for sentence in sentences)
    return f'<ul class="{kind}">{items}</ul>' if items else ""
