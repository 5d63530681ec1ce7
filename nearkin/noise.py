"""Random numbers that are a function of their key, so that every engine and every rank draws the same ones."""

from __future__ import annotations

from torch import Tensor

# Odd 62-bit multipliers of a multiply-and-shift hash; torch's int64 arithmetic wraps around.
_FIRST = 0x2545F4914F6CDD1D
_SECOND = 0x1B873593CC9E2D51
# Others, to make one number of three.
_THIRD = 0x2C1B3C6D9E3779B9
_FOURTH = 0x27D4EB2F165667C5


def _mix(key: Tensor) -> Tensor:
    key = (key ^ (key >> 31)) * _FIRST
    key = (key ^ (key >> 29)) * _SECOND
    return key ^ (key >> 32)


def uniform(seed: Tensor, *keys: Tensor) -> Tensor:
    """Numbers in [0, 1) with 24 random bits, one per entry of the broadcast integer keys.

    >>> uniform(torch.tensor(0), torch.arange(3)).equal(uniform(torch.tensor(0), torch.arange(3)))
    True
    """
    state = _mix(seed.long() + 1)
    for key in keys:
        state = _mix(state ^ _mix(key.long() + 0x51ED27))
    return _share(state)


def of_pairs(seed: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
    """Such numbers for pairs, by one hash instead of five: on a GPU each of its steps is a launch.

    >>> of_pairs(torch.tensor(0), torch.arange(2)[:, None], torch.arange(3)).shape
    torch.Size([2, 3])
    """
    return _share(_mix(seed.long() * _THIRD + rows.long() * _FOURTH + columns.long() * _FIRST))


def _share(state: Tensor) -> Tensor:
    return ((state >> 20) & 0xFFFFFF).double() / 2**24
