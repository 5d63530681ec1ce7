"""Settings of a loss: keyword arguments, kept as attributes of the same names, checked when the loss is made."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from torch import nn

from nearkin import checks, engine
from nearkin.space import Space


def keywords(cls: type[nn.Module], common: type) -> list[str]:
    """The settings a loss class takes: those of its own constructor and the common ones."""
    signature = inspect.signature(cls.__init__)
    own = [p.name for p in signature.parameters.values() if p.kind is p.KEYWORD_ONLY]
    return own + [name for name in common.__annotations__ if name not in own]


def configure(cls: Any, common: type) -> None:
    """Make the constructor of a loss class refuse unknown keywords by name and check every value at its end."""
    original: Callable[..., None] = cls.__init__

    @functools.wraps(original)
    def __init__(self: Any, *args: Any, **settings: Any) -> None:  # noqa: N807
        if not isinstance(getattr(cls, "name", None), str):
            came = type(cls.name).__name__ if hasattr(cls, "name") else "none"
            raise TypeError(f"{cls.__name__}: name must be a string, got {came}; write name = 'own' into the class.")
        known = keywords(cls, common)
        if args:
            raise TypeError(
                f"{cls.name} takes its settings by name, got {args[0]!r} without one; the names are {', '.join(known)}."
            )
        for key in settings:
            if key not in known:
                raise TypeError(checks.unknown(f"{cls.name}: setting", key, known))
        original(self, **{key: checks.plain(value) for key, value in settings.items()})
        if type(self) is cls:  # a class made of this one has not set all of its own settings yet
            verify(self)

    cls.__init__ = __init__


def verify(loss: Any) -> None:
    """Check every setting against the limits of its class, then what only makes sense together."""
    for key, limit in loss.limits.items():
        checks.setting(loss.name, key, getattr(loss, key), limit)
    loss.check_together()


def assigned(loss: Any, key: str, value: Any) -> Any:
    """What a setting of a loss becomes that is given another value after the loss was made, or an error."""
    if key not in loss.fixed and key not in loss.limits:
        return value
    value, before = checks.plain(value), getattr(loss, key)
    if key in loss.fixed and value != before:
        raise ValueError(
            f"{loss.name}: {key} must stay {before!r} once the loss is made, got {value!r}: {loss.fixed[key]}; create the "
            f"loss anew with {key}={value!r}."
        )
    if key in loss.limits:
        checks.setting(loss.name, key, value, loss.limits[key])
    return value


def reduces(loss: Any, reduction: object) -> None:
    """Raise unless a loss can be reduced so: one of the whole batch has no values to leave as they are."""
    if reduction not in engine.REDUCTIONS:
        raise ValueError(checks.unknown(f"{loss.name}: reduction", reduction, engine.REDUCTIONS))
    if reduction == "none" and not loss.rowwise:
        raise ValueError(
            f"{loss.name} has no value per anchor, got reduction='none': {loss.why}; use reduction='mean'."
        )


def written(loss: Any, base: type, parts: tuple[str, ...]) -> None:
    """Raise unless a class of losses says which matrix it wants and has one of these parts written anew."""
    if not isinstance(loss.space, Space):
        raise TypeError(
            f"{loss.name}: space must be a Space, got {loss.space!r}; write space = losses.COSINE into the class, or "
            f"UNIT_DISTANCE, DOT or RAW_SQUARE."
        )
    if all(getattr(type(loss), part) is getattr(base, part) for part in parts):
        raise TypeError(f"{loss.name}: {parts[0]} must be written, got none; see docs/losses.md, A loss of your own.")


def groups(loss: nn.Module, lr: float) -> list[dict[str, Any]]:
    """What a loss learns, at ``lr`` times its ``lr_multiplier``, for an optimiser; none where nothing is learned."""
    checks.setting("parameter_groups", "lr", lr, checks.NOT_NEGATIVE)
    learned = [parameter for parameter in loss.parameters() if parameter.requires_grad]
    return [{"params": learned, "lr": lr * getattr(loss, "lr_multiplier", 1.0)}] if learned else []


def read(loss: Any, common: type) -> dict[str, Any]:
    """The settings of a loss, ready for ``losses.create(loss.name, **settings)``."""
    return {key: getattr(loss, key) for key in keywords(type(loss), common)}
