"""The spaces of all losses as a table for the documentation."""

from __future__ import annotations

from nearkin.tune.ranges import Choice, Parameter
from nearkin.tune.spaces import COMMON, SPACES

TABLE_15 = ("multi_similarity", "raw", "soft_triple", "proxy_anchor")


def words(parameter: Parameter) -> str:
    """A range as a person reads it.

    >>> words(SPACES["proxy_anchor"]["margin"]), words(COMMON["lr"])
    ('0 to 1, step 0.1', '1e-06 to 0.01, log')
    """
    if isinstance(parameter, Choice):
        return " or ".join(map(str, parameter.choices))
    step = f", step {parameter.step:g}" if parameter.step else ""
    return f"{parameter.low:g} to {parameter.high:g}{step}{', log' if parameter.log else ''}"


def page() -> str:
    """Markdown: every loss and what is searched for it, then what can be searched for any."""
    rows = ["| loss | parameters it brings |", "|---|---|"]
    for loss in sorted(SPACES):
        found = "; ".join(f"`{name}` {words(parameter)}" for name, parameter in SPACES[loss].items())
        rows.append(f"| {loss}{' (Table 15)' if loss in TABLE_15 else ''} | {found} |")
    rows.append(f"| any, when named | {'; '.join(f'`{name}` {words(entry)}' for name, entry in COMMON.items())} |")
    return "\n".join(rows) + "\n"
