"""A module that reads other tensors in the place of its parameters, beside the one that others go on using."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from torch import Tensor, nn

_ORIGIN = "_stands_for"


def shadow(module: nn.Module, parameters: Mapping[int, Tensor]) -> nn.Module:
    """The module with tensors, by the ``id`` of the parameters they replace, in it and in all its parts.

    Buffers and everything else are those of the module.
    """
    return _shadow(module, parameters, {})


def _shadow(module: nn.Module, parameters: Mapping[int, Tensor], made: dict[nn.Module, nn.Module]) -> nn.Module:
    if module not in made:
        made[module] = double = type(module).__new__(type(module))
        own: dict[str, Any] = vars(double)
        own.update(vars(module))
        own[_ORIGIN] = module
        own["_parameters"] = {key: x if x is None else parameters[id(x)] for key, x in module._parameters.items()}
        own["_modules"] = {
            key: part if part is None else _shadow(part, parameters, made) for key, part in module._modules.items()
        }
    return made[module]


def origin(module: Any) -> Any:
    """What a shadow stands for, or the module itself."""
    return vars(module).get(_ORIGIN, module)


@contextmanager
def apart(double: nn.Module) -> Iterator[None]:
    """Meanwhile a shadow counts in buffers of its own: what it stands for may be in use by another thread."""
    parts = [(vars(part), part._buffers) for part in double.modules()]
    copies = {id(x): x.clone() for _, buffers in parts for x in buffers.values() if x is not None}
    for own, buffers in parts:
        own["_buffers"] = {key: x if x is None else copies[id(x)] for key, x in buffers.items()}
    try:
        yield
    finally:
        for own, buffers in parts:
            own["_buffers"] = buffers


def reaches_beyond(value: Tensor, leaves: Iterable[Tensor]) -> bool:
    """Whether a value was made of something that learns besides these leaves, which autograd would tell nobody who asks
    for theirs."""
    known = {id(x) for x in leaves}
    waiting, seen = [value.grad_fn], set()
    while waiting:
        node = waiting.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        leaf = getattr(node, "variable", None)
        if leaf is not None and id(leaf) not in known:
            return True
        waiting += [after for after, _ in node.next_functions]
    return False
