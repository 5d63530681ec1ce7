"""What bad input gets: one sentence with the argument, what it must be, what came, and the remedy.

Nothing here looks at values that live on another device than the CPU: a check must not make a training step wait.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import torch
from torch import Tensor

from nearkin.limits import ANY, COUNT, NOT_NEGATIVE, POSITIVE, SEED, Limit, plain, setting, unknown
from nearkin.tracing import by_engine

__all__ = [
    "ANY",
    "COUNT",
    "FLOATS",
    "INTEGERS",
    "NOT_NEGATIVE",
    "NUMBERING",
    "POSITIVE",
    "SEED",
    "Limit",
    "class_name",
    "column_mask",
    "disjoint",
    "label_range",
    "labels",
    "mask",
    "plain",
    "sample_weights",
    "setting",
    "unknown",
    "vectors",
]

INTEGERS = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)
FLOATS = (torch.float64, torch.float32, torch.float16, torch.bfloat16)


def vectors(name: str, value: object, least: int = 1) -> None:
    """Raise unless ``value`` is a floating (rows, dim) tensor with at least ``least`` rows."""
    if isinstance(value, Mapping) and value:
        raise TypeError(
            f"{name} must be a tensor of shape (rows, dim), got a {type(value).__name__} of {', '.join(map(repr, value))}; "
            f"pick a level, such as model(x)[{list(value)[-1]!r}]."
        )
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


def class_name(value: object) -> str | None:
    """The first name where a list or an array holds names instead of numbers."""
    first = next(iter(value), None) if isinstance(value, Iterable) and getattr(value, "ndim", 1) == 1 else None
    return str(first) if isinstance(first, str) else None


def labels(name: str, value: object, rows: int, of: str, device: torch.device, numbers: str = "") -> None:
    """Raise unless ``value`` is an integer (rows,) tensor beside the vectors it names.

    ``numbers`` says what they are where they are no labels, such as "row numbers of the gallery".
    """
    if not isinstance(value, Tensor):
        named = class_name(value)
        came = type(value).__name__ if named is None else f"class names such as {named!r}"
        remedy = "wrap it with torch.as_tensor" if named is None else NUMBERING
        raise TypeError(f"{name} must be an integer tensor of shape ({rows},), got {came}; {remedy}.")
    if value.dtype not in INTEGERS:
        remedy = f"pass {numbers}" if numbers else "convert class names or one-hot rows to class numbers"
        raise TypeError(f"{name} must be an integer tensor, got {value.dtype}; {remedy} of type int64.")
    if value.dim() != 1:
        remedy = f"pass {numbers}, one" if numbers else "pass one class number"
        raise ValueError(f"{name} must have shape ({rows},), got {tuple(value.shape)}; {remedy} per row of {of}.")
    if len(value) != rows:
        remedy = f"pass {numbers}, one per row" if numbers else "pass the labels of exactly these rows"
        raise ValueError(f"{name} must have one entry per row of {of} ({rows}), got {len(value)}; {remedy}.")
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
    if value.dtype != torch.bool and _seen(value) and value.numel() and not bool(value.amin() >= 0):
        raise ValueError(
            f"{name} must hold no number below 0, got {float(value.amin()):g}; pass 0 for a pair that does not count."
        )


def disjoint(first: str, one: Tensor, second: str, other: Tensor) -> None:
    """Raise if two masks on the CPU both count a pair: no formula pulls and pushes the same one."""
    if _seen(one) and _seen(other):
        both = int(torch.logical_and(one, other).sum())
        if both:
            raise ValueError(
                f"{second} must leave out the pairs of {first}, got {both} that {'is' if both == 1 else 'are'} in both; "
                f"pass each pair in one of them."
            )


def column_mask(name: str, value: object, rows: int, of: str) -> None:
    """Raise unless ``value`` says of every row of ``of`` whether it counts."""
    if not isinstance(value, Tensor) or value.dtype not in (torch.bool, *FLOATS):
        came = value.dtype if isinstance(value, Tensor) else type(value).__name__
        raise TypeError(
            f"{name} must be a boolean tensor, got {came}; pass True for the rows of {of} that count, "
            f"as in torch.zeros(rows, dtype=torch.bool).index_fill(0, places, True)."
        )
    if tuple(value.shape) != (rows,):
        raise ValueError(
            f"{name} must have one entry per row of {of} ({rows}), got {tuple(value.shape)}; "
            f"pass which {of} rows count."
        )
    if value.dtype != torch.bool and _seen(value) and not bool(((value == 0) | (value == 1)).all()):
        raise ValueError(f"{name} must hold 0 and 1 only, got other numbers; pass booleans.")


def _seen(value: Tensor) -> bool:
    """Whether looking at a tensor's numbers makes nobody wait, and there are any."""
    return value.device.type == "cpu" and not by_engine()


def sample_weights(name: str, value: object, rows: int) -> None:
    """Raise unless ``value`` is a (rows,) tensor of weights; negative ones are seen on the CPU only."""
    if not isinstance(value, Tensor) or value.dtype not in (*FLOATS, *INTEGERS):
        came = value.dtype if isinstance(value, Tensor) else type(value).__name__
        raise TypeError(f"{name} must be a tensor of {rows} numbers, got {came}; pass one weight per row.")
    if tuple(value.shape) != (rows,):
        raise ValueError(f"{name} must have shape ({rows},), got {tuple(value.shape)}; pass one weight per row.")
    if value.requires_grad and torch.is_grad_enabled():
        # Of large batches nobody would get it: a gradient that depends on the size of a batch is worse than none.
        raise ValueError(
            f"{name} must not want a gradient, got one that does; losses give it none, pass {name}.detach()."
        )
    if value.device.type == "cpu" and bool((value < 0).any()):
        raise ValueError(f"{name} must not be negative, got {float(value.min()):g}; clip them at 0.")
