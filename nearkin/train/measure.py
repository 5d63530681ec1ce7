"""Embed a pack with a model and measure the embedding, shared out over all processes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nearkin import evaluation
from nearkin.data.feed import Feed
from nearkin.data.pack import Pack
from nearkin.distributed import Ranks
from nearkin.evaluation import PerQuery
from nearkin.models import Embedder
from nearkin.train import answers
from nearkin.train.prepare import autocast
from nearkin.train.settings import Train

METRICS = ("recall", "r_precision", "map@r", "nmi")
QUICK = ("recall", "map@r")  # what chooses an epoch


@torch.no_grad()
def embed(
    model: Embedder, feed: Feed, ranks: Ranks, settings: Train, device: torch.device, progress: Any = None
) -> Tensor:
    """Unit vectors of all images of a feed, in order (n, total); every process embeds its share."""
    was = model.training
    model.eval()
    rows = np.arange(len(feed.pack))
    counts = ranks.shares(len(rows))
    start = sum(counts[: ranks.rank])
    own = rows[start : start + counts[ranks.rank]]
    parts = []
    for images, _, _ in feed.test(own):
        with autocast(settings, device):
            found = model.embed(images)
        parts.append(found.to(torch.promote_types(found.dtype, torch.float32)))
        if progress is not None:
            progress(sum(map(len, parts)), len(own))
    model.train(was)
    width = model.total
    return ranks.constant(torch.cat(parts) if parts else torch.empty(0, width, device=device), counts)


def measure(
    model: Embedder,
    feed: Feed,
    pack: Pack,
    ranks: Ranks,
    settings: Train,
    device: torch.device,
    metrics: Iterable[str] = METRICS,
    per_class: bool = False,
    keep: Path | None = None,
    also: Callable[[Tensor], None] | None = None,
) -> dict[str, Any]:
    """The measures of a model on the images of a pack; with ``per_class`` also those of each class by its name.

    ``keep``: folder into which the first process writes what each query got; ``also``: what it does with the vectors.
    """
    vectors = embed(model, feed, ranks, settings, device)
    if also is not None and ranks.first:
        also(vectors)
    query = None if pack.query is None else torch.from_numpy(np.array(pack.query))
    labels = np.array(pack.labels)
    if keep is not None and ranks.first:
        answers.write(keep, vectors, labels, pack.class_names, query, settings.ks)
    wanted = tuple(metrics)
    found: dict[str, Any] = evaluation.evaluate(
        vectors,
        labels,
        ks=settings.ks,
        query=query,
        metrics=wanted,
        per_class=per_class,
        answers=_shared(vectors, labels, settings.ks, query, wanted, ranks) if ranks.ranks > 1 else None,
    )
    if per_class:
        columns = found.pop("per_class")
        classes = columns.pop("classes")
        found["per_class"] = {
            pack.class_names[label]: {name: values[row] for name, values in columns.items()}
            for row, label in enumerate(classes)
        }
    return found


def _shared(
    vectors: Tensor,
    labels: NDArray[np.int64],
    ks: tuple[int, ...],
    query: Tensor | None,
    metrics: tuple[str, ...],
    ranks: Ranks,
) -> PerQuery:
    """What all queries got, each process having looked after its share."""
    retrieval = [name for name in metrics if name in evaluation.RETRIEVAL]
    own = evaluation.per_query(vectors, labels, ks, query, metrics=retrieval, rows=slice(ranks.rank, None, ranks.ranks))
    counts = ranks.counts(len(own.rows), vectors.device)
    facts = ranks.constant(torch.stack([own.rows, own.labels, own.relevant], 1), counts)
    order = facts[:, 0].argsort()
    rows, classes, relevant = facts[order].unbind(1)
    names = list(own.values)
    columns = torch.stack([own.values[name] for name in names], 1) if names else own.rows.new_empty(len(own.rows), 0)
    values = ranks.constant(columns, counts)[order].unbind(1)
    nothing = own.nearest.new_empty(len(rows), 0)
    return PerQuery(rows, classes, relevant, dict(zip(names, values, strict=True)), nothing, nothing.to(vectors.dtype))
