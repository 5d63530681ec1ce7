"""First derivatives only, in their own precision: what is written by hand here has no derivative of its own."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

import torch

Found = TypeVar("Found")


def once(backward: Callable[..., Found]) -> Callable[..., Found]:
    """A backward that is an error where its result is to be differentiated again.

    torch's ``once_differentiable`` is silent where the gradient that comes in is a constant, as that of a loss is: what goes
    out is then a constant too, and a penalty on it does nothing.
    """

    @functools.wraps(backward)
    def checked(ctx: Any, *grads: Any) -> Found:
        if torch.is_grad_enabled() and not torch.compiler.is_compiling():
            raise RuntimeError(
                "create_graph must be False for a loss of nearkin, got True: it has first derivatives only; leave "
                "create_graph out, and take penalties on gradients of something else."
            )
        kind = next((grad.device.type for grad in grads if isinstance(grad, torch.Tensor)), "cpu")
        if not torch.is_autocast_enabled(kind):
            with torch.no_grad():
                return backward(ctx, *grads)
        with torch.no_grad(), torch.autocast(kind, enabled=False):  # somebody goes backward under it
            return backward(ctx, *grads)

    return checked
