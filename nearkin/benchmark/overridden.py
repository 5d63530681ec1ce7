"""Settings that are typed beside a grid: what every entry gives too is replaced or refused, never passed over in silence."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from nearkin.tournament.words import series

ONLY = {"folds": "cross_validation", "fold": "cross_validation", "ratio": "fixed_validation"}
"""The protocol that a setting is for: entries of others do not have it."""


def by(name: str, axis: str, word: str, entries: Any, typed: Mapping[str, Any], strict: bool = True) -> Any:
    """The entries of an axis with what was typed in place of their own.

    Where all entries that a setting is for give it alike, what was typed takes its place: nothing else can be meant. Where
    they differ in it, or are called by it, that is what the grid compares, and with ``strict`` an error. Where only some
    give it, it is a part of what these are, and the others take what was typed.
    """
    if not isinstance(entries, list):
        return entries
    for place, value in _places(typed):
        concerned = [entry for entry in entries if _is_for(entry, place[0], axis, word)]
        own = [found[0] for entry in concerned if (found := _found(entry, place))]
        if not own or len(own) < len(concerned):
            continue
        if own.count(own[0]) == len(own) and not (axis == "losses" and any("label" in entry for entry in concerned)):
            entries = [_without(entry, place) if entry in concerned else entry for entry in entries]
        elif strict:
            raise ValueError(_varied(name, axis, word, place, value, own, concerned))
    return entries


def _places(typed: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Each setting with the keys that lead to it: tables of settings are merged key by key."""
    for key, value in typed.items():
        if isinstance(value, dict):
            yield from (((key, name), each) for name, each in value.items())
        else:
            yield (key,), value


def _is_for(entry: Any, key: str, axis: str, word: str) -> bool:
    protocol = entry.get(word) if isinstance(entry, dict) else entry
    return axis != "protocols" or key not in ONLY or protocol == ONLY[key]


def _found(entry: Any, place: Sequence[str]) -> list[Any]:
    """What an entry says there, alone in a list; nothing where it says nothing."""
    for key in place:
        if not isinstance(entry, dict) or key not in entry:
            return []
        entry = entry[key]
    return [entry]


def _without(entry: dict[str, Any], place: Sequence[str]) -> dict[str, Any]:
    key, *rest = place
    left = {name: value for name, value in entry.items() if name != key}
    return {name: _without(entry[name], rest) if name == key else entry[name] for name in entry} if rest else left


def _varied(
    name: str, axis: str, word: str, place: Sequence[str], value: Any, own: Sequence[Any], entries: Sequence[Any]
) -> str:
    """The sentence for a setting that the grid gives each entry of an axis."""
    named = list(dict.fromkeys(str(entry.get(word)) for entry in entries))
    first = named[0] if len(named) == 1 else "NAME"
    given = series([str(each) for each in own], 4)
    typed = f"{place[0]}={value}" if len(place) == 1 else f"'{place[0]}={{{place[1]} = {json.dumps(value)}}}'"
    return (
        f"{name}: {' '.join(place)} must be left to the entries of {axis}, which give it themselves ({given}), got {value} "
        f"in --settings; leave it out, or put one entry in their place: --settings {word}={first} {typed}."
    )
