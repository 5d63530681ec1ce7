"""How exact the compiled engine is on a GPU: beside plain torch in the same precision, both against float64."""

from __future__ import annotations

import itertools
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


def plain(loss: Any, embeddings: Tensor, labels: Tensor) -> Tensor:
    """The loss as plain torch does it in bfloat16: one product of 16-bit vectors, the rest in float32 under autograd."""
    plan = loss.plan(embeddings, labels)
    columns = plan.columns if plan.column_gradient else plan.columns.detach()
    dot = (plan.queries.bfloat16() @ columns.bfloat16().T).float()
    return dense(plan, dot=dot)


def step(loss: Any, call: Callable[..., Tensor], embeddings: Tensor, labels: Tensor) -> list[Tensor]:
    """The value of a call and its gradients: of the batch and of the parameters."""
    leaf = embeddings.detach().clone().requires_grad_(True)
    value = call(leaf, labels)
    return [value.detach(), *torch.autograd.grad(value, [leaf, *loss.parameters()])]


def exact(entries: list[str], numbers: tuple[int, ...] = EXACT, batches: int = 6) -> Iterator[dict[str, Any]]:
    """Errors against float64 beside those of plain dense torch in bfloat16, as roots of mean squares over several batches,
    since the error of one value is a matter of luck; and whether two runs give equal bits. The gradient is that of the
    batch, or that of the proxies if its error is larger."""
    for n, entry in itertools.product(numbers, entries):
        if entry == "margin, distance_weighted":
            continue  # which negatives are drawn hangs on the last digit
        errors: dict[str, list[tuple[float, float]]] = {"compiled": [], "plain": []}
        same = True
        loss, truth = make(entry, n, "compiled"), make(entry, n, "dense").double()
        truth.load_state_dict(loss.state_dict())
        for seed in range(batches):
            embeddings, labels = batch(n, seed=seed)
            expected, *truths = step(truth, truth, embeddings.detach().double(), labels)
            for name, call in (("compiled", loss), ("plain", partial(plain, loss))):
                first, second = (step(loss, call, embeddings, labels) for _ in range(2))
                same = same and (name == "plain" or all(map(torch.equal, first, second)))
                off = max(
                    float((got.double() - wanted).norm() / wanted.norm())
                    for got, wanted in zip(first[1:], truths, strict=True)
                )
                errors[name].append((float(first[0] / expected) - 1, off))
        row: dict[str, Any] = {"loss": entry, "n": n, "batch": WAY, "batches": batches, "same bits": same}
        for name, seen in errors.items():
            row[name] = {
                part: math.sqrt(statistics.fmean(x[place] ** 2 for x in seen))
                for place, part in enumerate(("value", "gradient"))
            }
        print(json.dumps(row), flush=True)
        torch.cuda.empty_cache()
        yield row
