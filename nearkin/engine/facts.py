"""What a compiled step or a recording holds as constants, as a key that changes when any of it does."""

from __future__ import annotations

import dataclasses
import weakref
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

_FEW = 64
"""Numbers of a tensor on the CPU up to which they are looked at; a recording reads single ones of those at most."""
_PLAIN = frozenset((str, bool, int, float, type(None)))
_HELD: tuple[type, ...] = (str, bool, int, float, type(None), Tensor, list, tuple, dict)
"""What is looked at of somebody's object that is called; objects that it holds are read once."""
MODE = "training"
_TORCHS = frozenset(vars(nn.Module())) - {MODE}
"""What every module holds for torch: parameters, buffers and parts are looked at elsewhere."""


class _Same:
    """The very object, not one that looks like it, or that came to lie where it has been."""

    __slots__ = ("found", "number")

    def __init__(self, value: Any) -> None:
        self.number = id(value)
        self.found: Callable[[], Any]
        try:
            self.found = weakref.ref(value)
        except TypeError:  # what cannot be referred to is kept
            self.found = lambda: value

    def __hash__(self) -> int:
        return self.number

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Same) or self.number != other.number:
            return False
        value = self.found()
        return value is not None and value is other.found()


def facts(module: nn.Module, *, mode: bool = True) -> tuple[Any, ...]:
    """Everything plain that a module and its parts hold, settings and, if wanted, their mode."""
    own = [
        (key, value if type(value) in _PLAIN else _fact(value))
        for key, value in vars(module).items()
        if key not in _TORCHS and (mode or key != MODE)
    ]
    parts = [(key, facts(part, mode=mode)) for key, part in module._modules.items() if part is not None]
    return (*own, *parts)


def _fact(value: Any) -> Any:
    """A key that changes with a value. Numbers on a device are not looked at: it would have to be waited for."""
    if type(value) in _PLAIN:
        return value
    if isinstance(value, Tensor):
        if value.device.type == "cpu" and value.numel() <= _FEW and value.layout is torch.strided:
            # A recording has these numbers in it, and another tensor may come to lie where one has been.
            return "numbers", value.shape, value.dtype, *value.detach().flatten().tolist()
        version = 0 if value.is_inference() else value._version
        place = value.data_ptr() if value.layout is torch.strided else id(value)
        return "tensor", place, value.shape, value.stride(), value.dtype, value.device, version
    if isinstance(value, list | tuple):
        return type(value), *map(_fact, value)
    if isinstance(value, dict):
        return dict, *((repr(key), _fact(part)) for key, part in value.items())
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return type(value), *(_fact(getattr(value, field.name)) for field in dataclasses.fields(value))
    if callable(value):
        return _function(value)
    return repr(value)


def _function(value: Any) -> Any:
    """A function, or an object that is called, with what it holds; what it finds elsewhere is read once."""
    method = getattr(value, "__func__", None)
    if method is not None:
        return _function(value.__self__), _Same(method)
    held = getattr(value, "__dict__", {})
    return _Same(value), *((key, _fact(x)) for key, x in held.items() if key not in _TORCHS and isinstance(x, _HELD))
