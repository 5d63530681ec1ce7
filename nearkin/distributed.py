"""Several processes as one: the only file that names torch.distributed.

Each process embeds its share of the batch and gathers all shares. Gradients of the processes add up to the gradient that
one process would have computed on the whole batch.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from nearkin.derivatives import once

# Gradients travel in packages of about this many bytes: fewer messages, bounded memory.
PACKAGE = 2**25


@dataclass(frozen=True)
class Ranks:
    """Which of how many processes this is."""

    rank: int = 0
    ranks: int = 1

    @property
    def first(self) -> bool:
        """Whether this process writes files and shows progress."""
        return self.rank == 0

    # -------------------------------------------------------------------------------------- data

    def gather(self, own: Tensor, counts: list[int] | None = None) -> Tensor:
        """The rows of all processes in order, (all rows, ...); gradients of this process's use of other rows are sent
        back to them. ``counts``: how many rows each process has; without it they are asked, and the device waits."""
        return own if self.ranks == 1 else _Gather.apply(own, self, counts)

    def constant(self, own: Tensor, counts: list[int] | None = None) -> Tensor:
        """The rows of all processes in order, without gradient."""
        if self.ranks == 1:
            return own.detach()
        import torch.distributed as dist

        own = own.detach().contiguous()
        counts = self.counts(len(own), own.device) if counts is None else counts
        most = max(counts)
        padded = torch.cat([own, own.new_zeros(most - len(own), *own.shape[1:])])
        parts = [torch.empty_like(padded) for _ in range(self.ranks)]
        dist.all_gather(parts, padded)
        return torch.cat([part[:count] for part, count in zip(parts, counts, strict=True)])

    def counts(self, own: int, device: torch.device) -> list[int]:
        """How many rows each process has."""
        if self.ranks == 1:
            return [own]
        import torch.distributed as dist

        mine = torch.tensor([own], dtype=torch.int64, device=device)
        parts = [torch.empty_like(mine) for _ in range(self.ranks)]
        dist.all_gather(parts, mine)
        return [int(part) for part in parts]

    def total(self, value: Tensor) -> Tensor:
        """The sum over all processes, without gradient."""
        if self.ranks == 1:
            return value
        import torch.distributed as dist

        value = value.detach().clone()
        dist.all_reduce(value)
        return value

    # -------------------------------------------------------------------------------------- parameters

    def add_gradients(self, parameters: Iterable[nn.Parameter]) -> None:
        """Replace each gradient by its sum over all processes."""
        if self.ranks == 1:
            return
        import torch.distributed as dist

        live = [parameter for parameter in parameters if parameter.requires_grad]
        for parameter in live:  # a loss may leave a parameter of this share untouched, another process's not
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
        for package in _packages([parameter.grad for parameter in live if parameter.grad is not None]):
            flat = torch.cat([grad.reshape(-1) for grad in package])
            dist.all_reduce(flat)
            for grad, part in zip(package, flat.split([grad.numel() for grad in package]), strict=True):
                grad.copy_(part.view_as(grad))

    def share(self, module: nn.Module) -> None:
        """Give every process the first one's parameters and buffers."""
        if self.ranks == 1:
            return
        import torch.distributed as dist

        for value in [*module.parameters(), *module.buffers()]:
            dist.broadcast(value.data, 0)

    def shares(self, rows: int) -> list[int]:
        """How many of so many rows each process has, as samplers deal them.

        >>> Ranks(0, 3).shares(8)
        [2, 3, 3]
        """
        return [rows * (rank + 1) // self.ranks - rows * rank // self.ranks for rank in range(self.ranks)]

    def wait(self) -> None:
        """Go on when all processes have come this far."""
        if self.ranks > 1:
            import torch.distributed as dist

            dist.barrier()


class _Gather(torch.autograd.Function):
    """Forward: the rows of all processes. Backward: what all processes together want of this process's rows."""

    @staticmethod
    def forward(ctx: Any, own: Tensor, ranks: Ranks, counts: list[int] | None) -> Tensor:
        counts = ranks.counts(len(own), own.device) if counts is None else counts
        ctx.ranks, ctx.start, ctx.rows = ranks, sum(counts[: ranks.rank]), len(own)
        return ranks.constant(own, counts)

    @staticmethod
    @once
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        return ctx.ranks.total(grad)[ctx.start : ctx.start + ctx.rows], None, None


def _packages(tensors: list[Tensor]) -> Iterator[list[Tensor]]:
    """Consecutive tensors of one type, up to PACKAGE bytes at a time."""
    package: list[Tensor] = []
    size = 0
    for tensor in tensors:
        if package and (size + tensor.nbytes > PACKAGE or tensor.dtype != package[0].dtype):
            yield package
            package, size = [], 0
        package.append(tensor)
        size += tensor.nbytes
    if package:
        yield package


@contextmanager
def start(device: torch.device) -> Iterator[Ranks]:
    """The processes that ``torchrun`` started, joined; one process alone where it did not."""
    count = int(os.environ.get("WORLD_SIZE", "1"))
    if count == 1:
        yield Ranks()
        return
    import torch.distributed as dist

    fresh = not dist.is_initialized()
    if fresh:
        dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
    try:
        yield Ranks(dist.get_rank(), dist.get_world_size())
    finally:
        if fresh:
            dist.destroy_process_group()


def local_device(device: torch.device) -> torch.device:
    """The device of this process where several share a machine, with its number."""
    if device.type == "cuda" and device.index is None:
        return torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))
    return device
