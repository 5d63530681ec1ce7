"""Retrieval measures of every single query: what means, results per class and tests of significance are made of."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from nearkin import checks
from nearkin.evaluation.inputs import Labels, Vectors, label_tensor, several, tensor, vector_tensor, whole
from nearkin.evaluation.layout import Layout, layout
from nearkin.evaluation.neighbours import MEMORY, ranked_blocks
from nearkin.evaluation.places import places
from nearkin.evaluation.positives import Positives, all_positives, nearest_positives
from nearkin.evaluation.retrieval import Hits, check_answerable, hits
from nearkin.evaluation.similarity import Directions, directions, from_steps

# From cheap to dear: recall looks at the nearest relevant item only; "map" needs the places of all of them.
RETRIEVAL = ("recall", "r_precision", "map@r", "map")

# Up to this many relevant items of a query are counted into their places one by one; beyond, sorting costs less.
FEW = 16

# Which of the queries ask.
Share = slice | Tensor | Sequence[int]


@dataclass(frozen=True)
class PerQuery:
    """What each of q queries got.

    - ``rows`` (q,): the rows of the embeddings that asked, ``labels`` (q,): their labels;
    - ``relevant`` (q,): R, how many relevant items the gallery holds; a query with none is left out of every mean;
    - ``values``: (q,) float64 under "recall@1", ..., "r_precision", "map@r", "map"; NaN where R = 0;
    - ``nearest`` (q, k), ``similarity`` (q, k): the rows of the embeddings that were found first and their cosines,
      -1 and -inf where there is no such item.
    """

    rows: Tensor
    labels: Tensor
    relevant: Tensor
    values: dict[str, Tensor]
    nearest: Tensor
    similarity: Tensor

    def sums(self) -> dict[str, float]:
        """The sum of each measure, and the counts "queries" (measured) and "left_out".

        Sums and counts of several shares of the queries may be added up and divided.
        """
        answered = self.relevant > 0
        sums: dict[str, float] = {name: float(value[answered].sum()) for name, value in self.values.items()}
        queries = int(answered.sum())
        return sums | {"queries": queries, "left_out": len(answered) - queries}

    def means(self) -> dict[str, float]:
        """The mean of each measure over the queries with a relevant item, and the counts of ``sums``."""
        check_answerable(self.relevant)
        sums = self.sums()
        return {name: sums[name] / sums["queries"] for name in self.values} | {
            name: sums[name] for name in ("queries", "left_out")
        }

    def per_class(self, classes: Tensor) -> dict[str, list[float | None]]:
        """The mean of each measure over the queries of each of ``classes`` (c,), sorted, and their number.

        None where no query of a class has a relevant item.
        """
        answered = self.relevant > 0
        group = torch.searchsorted(classes, self.labels[answered])
        counts = torch.bincount(group, minlength=len(classes))
        order = group.argsort(stable=True)
        result: dict[str, list[float | None]] = {}
        for name, value in self.values.items():
            # Added in order, so that runs agree bit for bit.
            sums = torch.segment_reduce(value[answered][order], "sum", lengths=counts, unsafe=True)
            means = (sums / counts.clamp(min=1)).tolist()
            result[name] = [mean if count else None for mean, count in zip(means, counts.tolist(), strict=True)]
        return result | {"queries": counts.tolist()}


def join(shares: Iterable[PerQuery]) -> PerQuery:
    """The results of several shares of the queries as one, in the order of the rows.

    >>> points, labels = torch.eye(3)[[0, 0, 1, 1]], [4, 4, 5, 5]
    >>> shares = [per_query(points, labels, rows=slice(part, None, 2)) for part in range(2)]
    >>> join(shares).rows
    tensor([0, 1, 2, 3])
    """
    parts = list(shares)
    if not parts:
        raise ValueError("shares must hold at least one result of per_query, got none; pass what the shares returned.")
    rows, order = torch.cat([part.rows for part in parts]).sort(stable=True)
    twice = rows[1:][rows[1:] == rows[:-1]]
    if len(twice):
        raise ValueError(
            f"shares must hold each query once, got row {int(twice[0])} twice; "
            f"give each share its own queries, per_query(..., rows=slice(rank, None, processes))."
        )

    def joined(pieces: list[Tensor]) -> Tensor:
        return torch.cat(pieces)[order]

    return PerQuery(
        rows,
        joined([part.labels for part in parts]),
        joined([part.relevant for part in parts]),
        {name: joined([part.values[name] for part in parts]) for name in parts[0].values},
        joined([part.nearest for part in parts]),
        joined([part.similarity for part in parts]),
    )


def chosen(answers: PerQuery, rows: Tensor, labels: Tensor, ks: list[int], metrics: list[str]) -> PerQuery:
    """The measures asked for of answers known already, which must be those of exactly the queries ``rows``."""
    if not torch.equal(answers.rows.to(rows.device), rows):
        came = f"{len(answers.rows)} rows" if len(answers.rows) != len(rows) else "others"
        message = (
            f"answers must hold every query in rising order ({len(rows)} rows), got {came}; "
            f"join the shares of all processes."
        )
        raise ValueError(message)
    if not torch.equal(answers.labels.to(labels.device), labels):
        message = "answers must have the labels of these queries, got others; pass what per_query found for this data."
        raise ValueError(message)
    names = _columns(metrics, ks)
    missing = [name for name in names if name not in answers.values]
    if missing:
        message = (
            f"answers must hold {missing[0]!r}, which ks and metrics ask for, got {', '.join(answers.values) or 'none'}; "
            f"call per_query with the same ks and metrics."
        )
        raise ValueError(message)
    return replace(answers, values={name: answers.values[name] for name in names})


def per_query(
    embeddings: Vectors,
    labels: Labels,
    ks: int | Iterable[int] = (1, 2, 4, 8),
    query: Tensor | Iterable[bool] | None = None,
    *,
    metrics: Iterable[str] = RETRIEVAL,
    rows: Share | None = None,
    nearest: int = 0,
    memory: int = MEMORY,
) -> PerQuery:
    """Retrieval measures of each query, and the rows it finds first.

    Arguments as in ``evaluate``; ``metrics`` any of "recall", "r_precision", "map@r", "map". ``rows`` lets a share of
    the queries ask: a slice of their numbers or the numbers themselves (0: the first row that is a query). The share
    of rank r of w is ``slice(r, None, w)``; ``join`` puts shares together, with results equal to those of one run.
    ``nearest``: how many of the nearest rows to return for each query.

    >>> points, labels = torch.tensor([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0]]), [4, 4, 5]
    >>> found = per_query(points, labels, ks=(1,), metrics="recall", nearest=2)
    >>> found.values, found.nearest.tolist()
    ({'recall@1': tensor([1., 1., nan], dtype=torch.float64)}, [[1, 2], [0, 2], [1, 0]])
    """
    vectors = vector_tensor("embeddings", embeddings, least=2)
    device = vectors.device
    classes = label_tensor("labels", labels, len(vectors), "embeddings", device)
    wanted = metric_names(metrics, RETRIEVAL)
    depths = several("per_query", "ks", ks)
    if "recall" in wanted and not depths:
        raise ValueError('ks must hold at least one number, got none; leave "recall" out of metrics instead.')
    nearest, memory = whole("per_query", "nearest", nearest, 0), whole("per_query", "memory", memory, 1)
    asking, gallery = asking_and_gallery(query, len(vectors), device)
    if rows is not None:
        asking = _share(rows, asking)
    arranged = layout(classes, asking, gallery, own=query is None)
    # The layout has its own order: number[i] is the place in ``asking`` of its i-th query.
    number = torch.searchsorted(asking, arranged.queries)
    relevant = torch.empty_like(asking)
    relevant[number] = arranged.relevant
    scored = directions(vectors)
    values = {
        name: torch.empty_like(value).index_copy_(0, number, value)
        for name, value in _measure(scored, classes, arranged, depths, wanted, memory).items()
    }
    first, similarity = _nearest(scored, asking, gallery, nearest, own=query is None, memory=memory)
    return PerQuery(asking, classes[asking], relevant, values, first, similarity.to(vectors.dtype))


def _measure(
    vectors: Directions, labels: Tensor, rows: Layout, ks: list[int], metrics: list[str], memory: int
) -> dict[str, Tensor]:
    """The values (q,) of each measure, in the order of the layout."""
    if not metrics or not len(rows.queries):
        empty = torch.empty(0, dtype=torch.float64, device=labels.device)
        return dict.fromkeys(_columns(metrics, ks), empty)
    # Counting finds every place, however deep.
    relevant, size = rows.relevant, max(len(rows.gallery), *ks, 1)
    if metrics == ["recall"]:
        found = nearest_positives(vectors, rows, memory)
        deepest = torch.full_like(found.item, max(ks))
        return _read(Hits(places(vectors, rows, found, memory, deepest), found.count, relevant, size), ks, metrics)
    # Classes stand in the order of size: the queries with few relevant items come first.
    few = int((relevant <= FEW).sum())
    parts = []
    if few:
        found = all_positives(vectors, rows, relevant <= FEW)
        depth = None if "map" in metrics else _depth(found, ks if "recall" in metrics else [1])
        ranked = Hits(places(vectors, rows, found, memory, depth), found.count[:few], relevant[:few], size)
        parts.append(_read(ranked, ks, metrics))
    if few < len(relevant):
        parts += _by_ranking(vectors, labels, rows, few, ks, metrics, memory)
    return {name: torch.cat([part[name] for part in parts]) for name in parts[0]}


def _depth(found: Positives, ks: list[int]) -> Tensor:
    """(p,): down to which place the place of each positive matters: R, and for the nearest one the largest k too."""
    depth = found.count[found.query]
    first = torch.ones_like(found.query, dtype=torch.bool)
    first[1:] = found.query[1:] != found.query[:-1]
    return torch.where(first, depth.clamp(min=max(ks)), depth)


def _by_ranking(
    vectors: Directions, labels: Tensor, rows: Layout, start: int, ks: list[int], metrics: list[str], memory: int
) -> list[dict[str, Tensor]]:
    """The measures of the queries from ``start`` on, block by block, by ranking the gallery for each of them."""
    asking, relevant = rows.queries[start:], rows.relevant[start:]
    gallery = rows.gallery.sort().values
    depth = max(ks) if "recall" in metrics else 1
    if {"r_precision", "map@r"} & set(metrics):
        depth = max(depth, int(relevant.max()))
    if "map" in metrics:
        depth = max(depth, len(gallery))
    parts = []
    for part, _, index in ranked_blocks(
        vectors.take(asking),
        vectors.take(gallery),
        depth,
        self_index=asking if rows.own else None,
        scores=False,
        memory=memory,
    ):
        parts.append(_read(hits(index, labels[asking[part]], labels[gallery], relevant[part]), ks, metrics))
    return parts


def _columns(metrics: list[str], ks: list[int]) -> list[str]:
    """The names of the values in their order."""
    recall = [f"recall@{k}" for k in ks] if "recall" in metrics else []
    return recall + [name for name in RETRIEVAL[1:] if name in metrics]


def _read(ranked: Hits, ks: list[int], metrics: list[str]) -> dict[str, Tensor]:
    """Every measure of the ranking, by name."""
    columns: list[Tensor] = []
    if "recall" in metrics:
        columns += ranked.recall(ks).T
    for name, measure in (
        ("r_precision", ranked.r_precision),
        ("map@r", ranked.map_at_r),
        ("map", ranked.average_precision),
    ):
        if name in metrics:
            columns.append(measure())
    return dict(zip(_columns(metrics, ks), columns, strict=True))


def _nearest(
    vectors: Directions, asking: Tensor, gallery: Tensor, k: int, *, own: bool, memory: int
) -> tuple[Tensor, Tensor]:
    """Rows (q, k) and cosines (q, k) of what each query finds first."""
    index = torch.empty(len(asking), k, dtype=torch.int64, device=asking.device)
    similarity = torch.empty(len(asking), k, dtype=torch.float64, device=asking.device)
    if k and len(asking):
        for part, steps, place in ranked_blocks(
            vectors.take(asking), vectors.take(gallery), k, self_index=asking if own else None, memory=memory
        ):
            index[part] = torch.where(place < 0, -1, gallery[place])
            similarity[part] = from_steps(steps)
    return index, similarity


def metric_names(metrics: Iterable[str], known: Sequence[str]) -> list[str]:
    """The names asked for, each once, in the order of ``known``."""
    names = [metrics] if isinstance(metrics, str) else list(metrics)
    for name in names:
        if str(name).startswith("recall@") and str(name)[7:].isdigit():
            raise ValueError(f"metric {name!r} is not known; ask for 'recall' with ks=({name[7:]},).")
        if name not in known:
            raise ValueError(checks.unknown("metric", name, known))
    return [name for name in known if name in names]


def asking_and_gallery(query: Tensor | Iterable[bool] | None, rows: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """The rows that ask and the rows that are asked, rising: all of them where there is no mask."""
    every = torch.arange(rows, device=device)
    if query is None:
        return every, every
    mask = query_mask(query, rows, device)
    return every[mask], every[~mask]


def query_mask(query: Tensor | Iterable[bool], rows: int, device: torch.device) -> Tensor:
    """The checked mask of the rows that ask."""
    mask = tensor("query", query, f"a boolean mask of shape ({rows},)").to(device)
    if mask.dtype != torch.bool or tuple(mask.shape) != (rows,):
        message = (
            f"query must be a boolean mask of shape ({rows},), got {mask.dtype} of shape "
            f"{tuple(mask.shape)}; mark each row of embeddings as query (True) or gallery (False)."
        )
        raise ValueError(message)
    if bool(mask.all()) or not bool(mask.any()):
        message = (
            f"query must mark some rows as queries and leave some as gallery, got {int(mask.sum())} "
            f"queries of {rows} rows; pass None to let every row ask all others."
        )
        raise ValueError(message)
    return mask


def _share(rows: Share, asking: Tensor) -> Tensor:
    """The chosen queries, rising."""
    total = len(asking)
    if isinstance(rows, slice):
        numbers = torch.tensor(range(*rows.indices(total)), dtype=torch.int64)
    else:
        numbers = label_tensor("rows", rows, None, "the queries", numbers="numbers of queries")
    numbers = numbers.sort().values.to(asking.device)
    if len(numbers) and (int(numbers[0]) < 0 or int(numbers[-1]) >= total):
        message = (
            f"rows must hold numbers of queries from 0 to {total - 1}, got values from {int(numbers[0])} to "
            f"{int(numbers[-1])}; number the queries, not the rows of the gallery."
        )
        raise ValueError(message)
    if bool((numbers[1:] == numbers[:-1]).any()):
        raise ValueError(f"rows must name each query once, got {len(numbers)} numbers with repeats; drop the repeats.")
    return asking[numbers]
