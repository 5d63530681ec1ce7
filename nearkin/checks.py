"""What bad input gets: one sentence with the argument, what it must be, what came, and the remedy.

Nothing here looks at values that live on another device than the CPU: a check must not make a training step wait.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor

INTEGERS = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)
FLOATS = (torch.float64, torch.float32, torch.float16, torch.bfloat16)


def unknown(kind: str, name: object, known: Iterable[str]) -> str:
    """The sentence for a misspelt name: it offers the nearest right one."""
    options = sorted(known)
    close = difflib.get_close_matches(str(name), options, n=1, cutoff=0.4)
    hint = f"did you mean {close[0]!r}?" if close else f"choose one of {', '.join(options)}."
    return f"{kind} {name!r} is not known; {hint}"


@dataclass(frozen=True)
class Limit:
    """The range a numeric setting must lie in, as data, so that tests can walk over every setting."""

    low: float = -math.inf
    high: float = math.inf
    low_open: bool = False
    high_open: bool = False
    whole: bool = False
    none: bool = False

    def allows(self, value: object) -> bool:
        if value is None:
            return self.none
        if isinstance(value, bool) or not isinstance(value, int if self.whole else (int, float)):
            return False
        number = float(value)
        if not math.isfinite(number):
            return False
        above = number > self.low if self.low_open else number >= self.low
        below = number < self.high if self.high_open else number <= self.high
        return above and below

    def __str__(self) -> str:
        kind = "a whole number" if self.whole else "a finite number"
        parts = []
        if self.low > -math.inf:
            parts.append(f"{'above' if self.low_open else 'at least'} {self.low:g}")
        if self.high < math.inf:
            parts.append(f"{'below' if self.high_open else 'at most'} {self.high:g}")
        return f"{kind} {' and '.join(parts)}".rstrip() + (" or None" if self.none else "")


ANY = Limit()
POSITIVE = Limit(low=0, low_open=True)
NOT_NEGATIVE = Limit(low=0)
COUNT = Limit(low=1, whole=True)


def setting(owner: str, name: str, value: object, limit: Limit | tuple[object, ...]) -> None:
    """Raise unless ``value`` lies within ``limit`` (a range, or a tuple of choices)."""
    if isinstance(limit, Limit):
        if not limit.allows(value):
            raise ValueError(f"{owner}: {name} must be {limit}, got {value!r}; change {name}.")
    elif not any(value is choice or (type(value) is type(choice) and value == choice) for choice in limit):
        choices = " or ".join(repr(choice) for choice in limit)
        raise ValueError(f"{owner}: {name} must be {choices}, got {value!r}; choose one of these.")


def vectors(name: str, value: object, least: int = 1) -> None:
    """Raise unless ``value`` is a floating (rows, dim) tensor with at least ``least`` rows."""
    if not isinstance(value, Tensor):
        raise TypeError(
            f"{name} must be a tensor of shape (rows, dim), got {type(value).__name__}; wrap it with torch.as_tensor."
        )
    if value.dtype not in FLOATS:
        raise TypeError(f"{name} must be a floating-point tensor, got {value.dtype}; convert it with .float().")
    if value.dim() != 2:
        raise ValueError(f"{name} must have shape (rows, dim), got {tuple(value.shape)}; reshape it to two dimensions.")
    if value.shape[0] < least:
        raise ValueError(
            f"{name} must hold at least {least} row{'s' * (least > 1)}, got {value.shape[0]}; "
            f"{'a pair needs two samples: use a larger batch.' if least > 1 else 'drop empty batches.'}"
        )
    if value.shape[1] < 1:
        raise ValueError(
            f"{name} must have at least one dimension, got shape {tuple(value.shape)}; check the layer that makes them."
        )


NUMBERING = (
    "number the classes of all data once, numbers = {name: at for at, name in enumerate(sorted(set(names)))}, "
    "and pass torch.tensor([numbers[name] for name in batch])"
)


def _class_name(value: object) -> str | None:
    """The first name where a list or an array holds names instead of numbers."""
    first = next(iter(value), None) if isinstance(value, Iterable) and getattr(value, "ndim", None) != 0 else None
    return str(first) if isinstance(first, str) else None


def labels(name: str, value: object, rows: int, of: str, device: torch.device) -> None:
    """Raise unless ``value`` is an integer (rows,) tensor beside the vectors it names."""
    if not isinstance(value, Tensor):
        named = _class_name(value)
        came = type(value).__name__ if named is None else f"class names such as {named!r}"
        remedy = "wrap it with torch.as_tensor" if named is None else NUMBERING
        raise TypeError(f"{name} must be an integer tensor of shape ({rows},), got {came}; {remedy}.")
    if value.dtype not in INTEGERS:
        raise TypeError(
            f"{name} must be an integer tensor, got {value.dtype}; convert class names or one-hot rows "
            f"to class numbers of type int64."
        )
    if value.dim() != 1:
        raise ValueError(
            f"{name} must have shape ({rows},), got {tuple(value.shape)}; pass one class number per row of {of}."
        )
    if len(value) != rows:
        raise ValueError(
            f"{name} must have one entry per row of {of} ({rows}), got {len(value)}; "
            f"pass the labels of exactly these rows."
        )
    if value.device != device:
        raise ValueError(f"{name} must be on the device of {of} ({device}), got {value.device}; move them there.")


def label_range(name: str, value: Tensor, classes: int) -> None:
    """Raise if a label on the CPU is not a proxy's number; labels elsewhere poison the loss instead."""
    if value.device.type == "cpu" and len(value):
        low, high = (int(bound) for bound in value.aminmax())
        if low < 0 or high >= classes:
            raise ValueError(
                f"{name} must lie between 0 and classes - 1 = {classes - 1}, got values from {low} to "
                f"{high}; renumber the labels or create the loss with more classes."
            )


def mask(name: str, value: object, shape: tuple[int, int]) -> None:
    """Raise unless ``value`` is a boolean or count tensor with the shape of the pair matrix."""
    if not isinstance(value, Tensor) or value.dtype not in (torch.bool, *INTEGERS, *FLOATS):
        came = value.dtype if isinstance(value, Tensor) else type(value).__name__
        raise TypeError(
            f"{name} must be a boolean tensor or a tensor of counts of shape {shape}, got {came}; "
            f"pass one entry per pair of query and column."
        )
    if tuple(value.shape) != shape:
        raise ValueError(
            f"{name} must have shape {shape}, one entry per pair of query and column, got "
            f"{tuple(value.shape)}; build it from the same batch."
        )


def sample_weights(name: str, value: object, rows: int) -> None:
    """Raise unless ``value`` is a (rows,) tensor of weights; negative ones are seen on the CPU only."""
    if not isinstance(value, Tensor) or value.dtype not in (*FLOATS, *INTEGERS):
        came = value.dtype if isinstance(value, Tensor) else type(value).__name__
        raise TypeError(f"{name} must be a tensor of {rows} numbers, got {came}; pass one weight per row.")
    if tuple(value.shape) != (rows,):
        raise ValueError(f"{name} must have shape ({rows},), got {tuple(value.shape)}; pass one weight per row.")
    if value.device.type == "cpu" and bool((value < 0).any()):
        raise ValueError(f"{name} must not be negative, got {float(value.min()):g}; clip them at 0.")
