"""How exact the compiled engine is on a GPU: beside plain torch in the same precision, both against float64."""

from __future__ import annotations

import itertools
import json
import math
import statistics
from collections.abc import Iterator
from typing import Any

import torch
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


def exact(entries: list[str], numbers: tuple[int, ...] = EXACT, batches: int = 6) -> Iterator[dict[str, Any]]:
    """Errors against float64 beside those of plain dense torch in bfloat16, as roots of mean squares over several batches,
    since the error of one value is a matter of luck; and whether two runs give equal bits."""
    for n, entry in itertools.product(numbers, entries):
        if entry == "margin, distance_weighted":
            continue  # which negatives are drawn hangs on the last digit
        errors: dict[str, list[tuple[float, float]]] = {"compiled": [], "plain": []}
        same = True
        loss, truth = make(entry, n, "compiled"), make(entry, n, "dense").double()
        truth.load_state_dict(loss.state_dict())
        for seed in range(batches):
            embeddings, labels = batch(n, seed=seed)
            precise = embeddings.detach().double().requires_grad_(True)
            value = truth(precise, labels)
            value.backward()
            assert precise.grad is not None
            for name, seen in errors.items():
                grads: list[Tensor] = []
                for _ in range(2):
                    leaf = embeddings.detach().clone().requires_grad_(True)
                    got = loss(leaf, labels) if name == "compiled" else plain(loss, leaf, labels)
                    got.backward()
                    assert leaf.grad is not None
                    grads.append(leaf.grad)
                off = float((grads[0].double() - precise.grad).norm() / precise.grad.norm())
                seen.append((float(got.detach() / value.detach()) - 1, off))
                same = same and (name == "plain" or torch.equal(*grads))
        row: dict[str, Any] = {"loss": entry, "n": n, "batches": batches, "same bits": same}
        for name, seen in errors.items():
            row[name] = {
                part: math.sqrt(statistics.fmean(x[place] ** 2 for x in seen))
                for place, part in enumerate(("value", "gradient"))
            }
        print(json.dumps(row), flush=True)
        torch.cuda.empty_cache()
        yield row
