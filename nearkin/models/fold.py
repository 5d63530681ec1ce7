"""A convolution and what stands behind it as one: where a batch norm's statistics do not change, it is part of the weights.

With frozen statistics, norm(conv(x)) = scale * (w * x) + shift = (scale * w) * x + shift. So nothing of the size of a map is
computed for the norm, forward or backward, and what the norm learns gets its gradient through the weights. On a GPU
that is a third of the time of a ResNet-50. There the shift, a shortcut and the rectifier go in one pass too (``bent``).
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from nearkin import kernels

HALF = (torch.float16, torch.bfloat16)
# A map, and the shift of each channel that is still to be added to it.
Unshifted = tuple[Tensor, Tensor | None]


def normed(convolution: nn.Conv2d, norm: nn.BatchNorm2d, value: Tensor) -> Tensor:
    """``norm(convolution(value))``; in evaluation mode, or frozen, by one convolution with other weights.

    >>> convolution, norm = nn.Conv2d(3, 4, 3, bias=False), nn.BatchNorm2d(4).eval()
    >>> images = torch.rand(2, 3, 8, 8)
    >>> torch.allclose(normed(convolution, norm, images), norm(convolution(images)), atol=1e-5)
    True
    """
    if norm.training or norm.running_var is None or norm.running_mean is None:
        found: Tensor = norm(convolution(value))
        return found
    weight, shift = _folded(convolution, norm)
    return convolution._conv_forward(value, weight, shift)


def _folded(convolution: nn.Conv2d, norm: nn.BatchNorm2d) -> tuple[Tensor, Tensor]:
    """The weights of both together, and their shift."""
    assert norm.running_var is not None and norm.running_mean is not None
    scale = norm.weight * (norm.running_var + norm.eps).rsqrt()
    shift = norm.bias - norm.running_mean * scale
    if convolution.bias is not None:
        shift = shift + convolution.bias * scale
    return convolution.weight * scale[:, None, None, None], shift


def bent(convolution: nn.Conv2d, norm: nn.BatchNorm2d, value: Tensor, short: Unshifted | None = None) -> Tensor:
    """``relu(norm(convolution(value)) + short)``, without ``short`` if there is none (see ``unshifted``).

    >>> convolution, norm = nn.Conv2d(3, 4, 3, bias=False), nn.BatchNorm2d(4).eval()
    >>> images = torch.rand(2, 3, 8, 8)
    >>> torch.allclose(bent(convolution, norm, images), norm(convolution(images)).relu(), atol=1e-5)
    True
    """
    found, shift = unshifted(convolution, norm, value)
    other, more = short or (None, None)
    if shift is not None and _side_by_side(found) and (other is None or _alike(found, other)):
        from nearkin.models.bend_kernel import bend

        return bend(found, shift.float() if more is None else (shift + more).float(), other)
    for extra in (shift, more):
        found = found if extra is None else found + extra.to(found.dtype)[:, None, None]
    return functional.relu(found if other is None else found + other, inplace=True)


def unshifted(convolution: nn.Conv2d, norm: nn.BatchNorm2d, value: Tensor) -> Unshifted:
    """``norm(convolution(value))``; where one pass is to do the rest, without its shift, which comes apart."""
    if norm.training or norm.running_var is None or norm.running_mean is None or not _one_pass(value):
        return normed(convolution, norm, value), None
    weight, shift = _folded(convolution, norm)
    return convolution._conv_forward(value, weight, None), shift


def _one_pass(value: Tensor) -> bool:
    """Whether a map is made on a GPU in 16 bits, channels side by side, and nobody is compiling, who would put passes
    together too."""
    if torch.compiler.is_compiling() or not value.is_cuda:
        return False
    kind = torch.get_autocast_dtype("cuda") if torch.is_autocast_enabled("cuda") else value.dtype
    return kind in HALF and value.is_contiguous(memory_format=torch.channels_last) and kernels.usable()


def _side_by_side(value: Tensor) -> bool:
    """Whether the channels of a pixel lie side by side, in 16 bits."""
    return value.dtype in HALF and value.is_contiguous(memory_format=torch.channels_last)


def _alike(value: Tensor, other: Tensor) -> bool:
    return other.dtype == value.dtype and other.shape == value.shape and _side_by_side(other)
