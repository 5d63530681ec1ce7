"""How exact the compiled engine is on a GPU: beside plain torch in the same precision, both against float64."""

from __future__ import annotations

import contextlib
import json
import math
import statistics
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch
from batches import WAY
from engine_compared import batch, make
from torch import Tensor

from nearkin.engine import dense

EXACT = (4096, 8192)
PRECISIONS = ("highest", "high")
"""How torch multiplies matrices of float32: as they are, or with the ten binary digits that tensor cores take (tf32)."""
DRAWN = 24
"""Batches of a random miner: what it draws hangs on the last digit, so its errors are few large ones, and mostly luck."""


def plain(loss: Any, embeddings: Tensor, labels: Tensor) -> Tensor:
    """The loss as plain torch does it: one product in the precision of the batch, the rest in float32 under autograd."""
    plan = loss.plan(embeddings, labels)
    columns = plan.columns if plan.column_gradient else plan.columns.detach()
    dot = (plan.queries.to(embeddings.dtype) @ columns.to(embeddings.dtype).T).to(plan.queries.dtype)
    return dense(plan, dot=dot)


def step(loss: Any, call: Callable[..., Tensor], embeddings: Tensor, labels: Tensor, number: int) -> list[Tensor]:
    """The value of a call and its gradients: of the batch and of the parameters. A random miner draws for the batch of
    that number."""
    if "draws" in dict(loss.named_buffers()):
        loss.draws.fill_(number)
    leaf = embeddings.detach().clone().requires_grad_(True)
    value = call(leaf, labels)
    return [value.detach(), *torch.autograd.grad(value, [leaf, *loss.parameters()])]


@contextlib.contextmanager
def multiplying(precision: str | None) -> Iterator[None]:
    """Let torch multiply matrices of float32 so; None: as it does."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(precision or before)
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def exact(entry: str, n: int, batches: int = 6, precision: str | None = None) -> dict[str, Any]:
    """Errors against float64 beside those of plain dense torch, as roots of mean squares over several batches, since the
    error of one value is a matter of luck; and whether two runs give equal bits. The gradient is that of the batch, or
    that of the proxies if its error is larger. Batches are in bfloat16, with a ``precision`` in float32."""
    dtype = torch.float32 if precision else torch.bfloat16
    errors: dict[str, list[tuple[float, float]]] = {"compiled": [], "plain": []}
    same = True
    loss, truth = make(entry, n, "compiled"), make(entry, n, "dense").double()
    truth.load_state_dict(loss.state_dict())
    batches = DRAWN if "draws" in dict(loss.named_buffers()) else batches
    with multiplying(precision):
        for seed in range(batches):
            embeddings, labels = batch(n, seed, dtype)
            expected, *truths = step(truth, truth, embeddings.detach().double(), labels, seed)
            for name, call in (("compiled", loss), ("plain", partial(plain, loss))):
                first, second = (step(loss, call, embeddings, labels, seed) for _ in range(2))
                same = same and (name == "plain" or all(map(torch.equal, first, second)))
                off = max(
                    float((got.double() - wanted).norm() / wanted.norm())
                    for got, wanted in zip(first[1:], truths, strict=True)
                )
                errors[name].append((float(first[0] / expected) - 1, off))
    row: dict[str, Any] = {"loss": entry, "n": n, "batch": WAY, "batches": batches, "same bits": same}
    row |= {"precision": precision} if precision else {}
    for name, seen in errors.items():
        row[name] = {
            part: math.sqrt(statistics.fmean(x[place] ** 2 for x in seen))
            for place, part in enumerate(("value", "gradient"))
        }
    print(json.dumps(row), flush=True)
    torch.cuda.empty_cache()
    return row
