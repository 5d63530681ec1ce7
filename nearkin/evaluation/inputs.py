"""What callers hand over (tensors, arrays, sequences) turned into checked tensors; bad input gets one
sentence.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nearkin import checks

Vectors = Tensor | np.ndarray[Any, Any] | Sequence[Sequence[float]]
Labels = Tensor | np.ndarray[Any, Any] | Sequence[int]
Index = Tensor | np.ndarray[Any, Any] | Sequence[Sequence[int]]


def tensor(name: str, value: object, kind: str) -> Tensor:
    """A tensor of ``value``, sharing its memory where possible; tables, such as those of pandas, as their arrays."""
    try:
        if hasattr(value, "to_numpy"):
            array = value.to_numpy()
            value = array if array.flags.writeable else array.copy()  # torch warns of those that are read-only
        return torch.as_tensor(value).detach()
    except (TypeError, ValueError, RuntimeError) as error:
        came = type(value).__name__
        message = f"{name} must be {kind}, got {came}; convert it to a tensor or a NumPy array of numbers."
        raise TypeError(message) from error


def vector_tensor(name: str, value: object, least: int = 1) -> Tensor:
    """A finite (rows, dim) tensor in float32 or float64, without gradient history.

    >>> vector_tensor("embeddings", np.ones((2, 3), np.float16)).dtype
    torch.float32
    """
    vectors = tensor(name, value, "a floating-point array of shape (rows, dim)")
    if vectors.dim() == 2 and len(vectors) < least:
        few = "two vectors" if least == 2 else "one vector"
        message = f"{name} must hold at least {least} row{'s' * (least > 1)}, got {len(vectors)}; pass at least {few}."
        raise ValueError(message)
    checks.vectors(name, vectors)
    finite = torch.isfinite(vectors).all(1)
    if not bool(finite.all()):
        row = int((~finite).nonzero()[0])
        remedy = "check the model that made them or drop such rows"
        message = f"{name} must be finite, got NaN or Inf in row {row}; {remedy}."
        raise ValueError(message)
    return vectors if vectors.dtype == torch.float64 else vectors.float()


def label_tensor(
    name: str, value: object, rows: int | None, of: str, device: torch.device | None = None, numbers: str = ""
) -> Tensor:
    """An int64 (rows,) tensor on ``device``; ``rows=None`` takes any length, ``numbers`` as in ``checks.labels``.

    >>> label_tensor("labels", [3, 1, 3], None, "the data set")
    tensor([3, 1, 3])
    """
    if not numbers and not isinstance(value, Tensor) and checks.class_name(value) is not None:
        checks.labels(name, value, len(value) if rows is None else rows, of, torch.device("cpu"))  # type: ignore[arg-type]
    labels = tensor(name, value, "integers of shape (rows,)")
    if not labels.numel():
        labels = labels.long()  # an empty list has no type of its own
    checks.labels(name, labels, labels.numel() if rows is None else rows, of, labels.device, numbers)
    return labels.to(device=device, dtype=torch.int64)


def index_tensor(name: str, value: object, rows: int, columns: int, device: torch.device) -> Tensor:
    """An int64 (rows,) tensor of gallery rows, -1 for none."""
    index = label_tensor(name, value, rows, "queries", device, "row numbers of the gallery")
    check_index(name, index, columns)
    return index


def check_index(name: str, index: Tensor, columns: int) -> None:
    """Raise unless every entry is a gallery row or -1."""
    if index.numel():
        low, high = (int(bound) for bound in index.aminmax())
        if low < -1 or high >= columns:
            message = (
                f"{name} must hold gallery rows from 0 to {columns - 1} or -1 for none, got values "
                f"from {low} to {high}; number the rows of this gallery."
            )
            raise ValueError(message)


def whole(owner: str, name: str, value: object, low: int, high: float = math.inf) -> int:
    """``value`` as an int from ``low`` to ``high``; NumPy and torch integers count, booleans do not."""
    number: object = value
    if not isinstance(value, bool) and hasattr(value, "__index__"):
        try:
            number = operator.index(value)
        except TypeError:  # an array with several entries
            number = value
    checks.setting(owner, name, number, checks.Limit(low=low, high=high, whole=True))
    assert isinstance(number, int)
    return number


def several(owner: str, name: str, value: object) -> list[int]:
    """Numbers of at least 1: several, or a single one.

    >>> several("evaluate", "ks", 1), several("evaluate", "ks", (1, 2))
    ([1], [1, 2])
    """
    if getattr(value, "ndim", 0) > 1:
        message = (
            f"{owner}: {name} must be whole numbers at least 1, got an array of shape {tuple(value.shape)}; "  # type: ignore[attr-defined]
            f"to search a gallery, join queries and gallery in embeddings and labels and mark the queries with query=."
        )
        raise TypeError(message)
    try:
        numbers = list(value)  # type: ignore[call-overload]
    except TypeError:  # one number
        numbers = [value]
    return [whole(owner, name, number, 1) for number in numbers]
