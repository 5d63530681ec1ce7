"""Settings of a command: one frozen dataclass whose fields are its flags and the keys of its TOML file.

A field is made by ``option(default, help, ...)``; the default's type is the type of the setting. A table (a dict) holds
settings of something else, such as a loss: ``--loss-settings alpha=1.4 margin=0.3`` or ``loss_settings = {alpha = 1.4}``.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from nearkin import limits

Settings = TypeVar("Settings")


def option(
    default: Any,
    text: str,
    limit: limits.Limit | tuple[object, ...] | None = None,
    *,
    positional: bool = False,
    optional: bool = False,
    machine: bool = False,
    of: type | None = None,
    group: str = "",
) -> Any:
    """A field of a command: its default, its help, and the range or choices its value must keep to.

    ``positional``: given without a flag; ``optional``: and may be left out. ``machine``: says where and how to compute,
    not what, so it is no part of a run's identity. ``of``: what a list holds, where its default is empty. ``group``: the
    heading in help of this field and of those that come after it, up to the next group.
    """
    facts = {
        "help": text,
        "limit": limit,
        "type": type(default),
        "positional": positional,
        "optional": optional,
        "machine": machine,
        "group": group,
    }
    if isinstance(default, tuple):
        facts["of"] = of or type(default[0])
    if isinstance(default, dict):
        return dataclasses.field(default_factory=dict, metadata=facts)
    return dataclasses.field(default=default, metadata=facts)


def names(kind: type) -> list[str]:
    return [field.name for field in dataclasses.fields(kind)]


def tables(kind: type) -> set[str]:
    """The fields that hold settings of something else."""
    return {field.name for field in dataclasses.fields(kind) if field.metadata["type"] is dict}


def check(owner: str, settings: Any) -> None:
    """Raise unless every field holds a value of its type and within its limit; whole numbers become floats where due."""
    for field in dataclasses.fields(settings):
        value = getattr(settings, field.name)
        right = _fitted(field, value)
        if right is None:
            texts = field.metadata.get("of") is str
            article = "a list of texts" if texts else _ARTICLES[field.metadata["type"]]
            raise ValueError(f"{owner}: {field.name} must be {article}, got {value!r}; change {field.name}.")
        if right is not value:
            object.__setattr__(settings, field.name, right)
        limit = field.metadata.get("limit")
        if limit is not None:
            many = isinstance(right, tuple)
            for entry in right if many else (right,):
                limits.setting(owner, field.name, entry, limit)


_ARTICLES = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "a text",
    tuple: "a list of numbers",
    dict: "a table of settings",
}


def _fitted(field: Any, value: Any) -> Any:
    """The value in the type of its field, None if it does not fit."""
    kind = field.metadata["type"]
    if kind is tuple:
        of = field.metadata["of"]
        if not isinstance(value, tuple | list) or not all(_entry(entry, of) for entry in value):
            return None
        return value if isinstance(value, tuple) and all(type(v) is of for v in value) else tuple(map(of, value))
    if kind is dict:
        return dict(value) if isinstance(value, Mapping) else None
    if kind is float and _number(value, float):
        return value if isinstance(value, float) else float(value)
    return value if type(value) is kind else None


def _entry(value: Any, kind: type) -> bool:
    return isinstance(value, str) if kind is str else _number(value, kind)


def _number(value: Any, kind: type) -> bool:
    return not isinstance(value, bool) and isinstance(value, int if kind is int else (int, float))


# ------------------------------------------------------------------------------------------------- flags


def add_flags(parser: argparse.ArgumentParser, kind: type) -> None:
    """A flag for every field; what is not given on the command line stays out of the result.

    ``kind.shown_defaults()``, where there is one, says what help shows for a field that gets its default elsewhere. Fields
    in groups are many: the line of usage then names none of them.
    """
    shown = kind.shown_defaults() if hasattr(kind, "shown_defaults") else {}
    place: Any = parser
    for field in dataclasses.fields(kind):
        kind_of = field.metadata["type"]
        if field.metadata["group"]:
            place = parser.add_argument_group(field.metadata["group"])
            parser.usage = "%(prog)s [--FLAG VALUE ...]"
        if not field.metadata["help"]:  # filled by the command itself
            continue
        if field.metadata.get("positional"):
            rest: dict[str, Any] = {"nargs": "?", "default": argparse.SUPPRESS} if field.metadata["optional"] else {}
            place.add_argument(field.name, type=kind_of, metavar=field.name.upper(), help=_help(field, shown), **rest)
            continue
        flag, text = "--" + field.name.replace("_", "-"), _help(field, shown)
        if kind_of is bool:
            place.add_argument(flag, action=argparse.BooleanOptionalAction, default=argparse.SUPPRESS, help=text)
        elif kind_of is dict:
            place.add_argument(flag, nargs="+", metavar="KEY=VALUE", default=argparse.SUPPRESS, help=text)
        elif kind_of is tuple:
            of = field.metadata["of"]
            word = _WORDS[of]
            place.add_argument(flag, nargs="+", type=of, metavar=word, default=argparse.SUPPRESS, help=text)
        else:
            word = _WORDS[kind_of]
            short = [f"-{field.name}"] if len(field.name) == 1 else []
            place.add_argument(*short, flag, type=kind_of, metavar=word, default=argparse.SUPPRESS, help=text)


_WORDS = {int: "N", float: "X", str: "TEXT"}


def _help(field: Any, shown: Mapping[str, str]) -> str:
    text, limit = field.metadata["help"], field.metadata.get("limit")
    if text == argparse.SUPPRESS:  # a flag that is known and not shown
        return argparse.SUPPRESS
    choices = f"one of {', '.join(map(str, limit))}" if isinstance(limit, tuple) else ""
    default = shown.get(field.name, "" if field.default is dataclasses.MISSING else plain(field.default))
    facts = "; ".join(filter(None, (choices, f"default: {default}" if default else "")))
    return f"{text}{f' ({facts})' if facts else ''}".replace("%", "%%")


def plain(value: Any) -> str:
    """A value as it is typed on the command line.

    >>> plain((0.16, 1.0)), plain(False)
    ('0.16 1.0', 'no')
    """
    if isinstance(value, bool):
        return "yes" if value else "no"
    return " ".join(map(str, value)) if isinstance(value, tuple | list) else str(value)


def given(kind: type, parsed: Mapping[str, Any]) -> dict[str, Any]:
    """Values as the command line gave them; tables from their KEY=VALUE words."""
    own = tables(kind)
    return {name: table(name, value) if name in own else value for name, value in parsed.items()}


def table(name: str, words: list[str]) -> dict[str, Any]:
    """Settings written as KEY=VALUE; a value is read as TOML, or taken as a text.

    >>> table("loss_settings", ["alpha=1.4", "miner=hard", "normalized=true"])
    {'alpha': 1.4, 'miner': 'hard', 'normalized': True}
    """
    found: dict[str, Any] = {}
    for word in words:
        key, equals, text = word.partition("=")
        if not equals or not key:
            raise ValueError(f"{name} must be words like key=value, got {word!r}; write key=value without spaces.")
        try:
            found[key] = tomllib.loads(f"value = {text}")["value"]
        except tomllib.TOMLDecodeError:
            found[key] = text
    return found


# ------------------------------------------------------------------------------------------------- files


def read(path: Path, kind: type) -> dict[str, Any]:
    """Settings from a TOML file; a key that is no field is an error that names the nearest."""
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ValueError(
            f"config must be a TOML file, got {str(path)!r}, which is not there; check the path."
        ) from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ValueError(f"config must be a TOML file, got {str(path)!r}: {error}; mend the file.") from None
    return _known(found, kind, path.name)


def parse(text: str, kind: type, name: str) -> dict[str, Any]:
    """Settings from a TOML text, as ``dump`` writes it; ``name`` says in errors where it came from."""
    return _known(tomllib.loads(text), kind, name)


def _known(found: dict[str, Any], kind: type, name: str) -> dict[str, Any]:
    known = names(kind)
    for key in found:
        if key not in known:
            raise ValueError(limits.unknown(f"{name}: key", key, known))
    return found


def dump(settings: Any) -> str:
    """The settings as TOML, one line each; ``read`` gives the same settings again."""
    return "".join(f"{field.name} = {_toml(getattr(settings, field.name))}\n" for field in dataclasses.fields(settings))


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, tuple | list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_text(str(key))} = {_toml(entry)}" for key, entry in value.items()) + "}"
    raise TypeError(f"a setting must be a number, a text, a list or a table, got {type(value).__name__}; change it.")


def _text(value: str) -> str:
    # JSON and TOML escape alike, but for one control character and for pairs of surrogates.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def changed(kind: type[Settings], *layers: Mapping[str, Any]) -> Settings:
    """Settings from their defaults and layers over them, later layers first; tables are merged key by key.

    What should be a table and is none goes before the tables over it, so that the settings refuse it.
    """
    known, values, own = names(kind), dict[str, Any](), tables(kind)
    for layer in layers:
        for key, value in layer.items():
            if key not in known:
                raise ValueError(limits.unknown("setting", key, known))
            before = values.get(key, {})
            if key not in own:
                values[key] = value
            elif isinstance(before, dict):
                values[key] = before | value if isinstance(value, dict) else value
    return kind(**values)
