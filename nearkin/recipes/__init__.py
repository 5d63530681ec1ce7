"""Settings of the papers, by name. A recipe is a function of what the person has chosen, such as data set and network.

What is typed overrides what a recipe says, so ``--recipe deep_dive --lr 1e-5`` changes one thing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from nearkin import checks
from nearkin.recipes import deep_dive, default, nra, proxy_anchor, ranked_list, unified_view

__all__ = ["RECIPES", "names", "settings"]

Recipe = Callable[[Mapping[str, Any]], dict[str, Any]]

RECIPES: dict[str, Recipe] = {
    "default": default.settings,
    "ranked_list": ranked_list.settings,
    "deep_dive": deep_dive.settings,
    "unified_view": unified_view.settings,
    "nra": nra.settings,
    "proxy_anchor": proxy_anchor.settings,
}


def names() -> list[str]:
    """The names that ``settings`` knows."""
    return list(RECIPES)


def settings(name: str, chosen: Mapping[str, Any]) -> dict[str, Any]:
    """What the recipe of that name sets, given what was chosen.

    >>> settings("ranked_list", {"data": "cub200"})["lr"]
    0.001
    """
    if name not in RECIPES:
        raise ValueError(checks.unknown("recipe", name, RECIPES))
    return RECIPES[name](chosen)
