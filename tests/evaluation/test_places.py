"""Places of relevant items by counting, against sorting in plain loops: ties, blocks, collapse, large classes."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from nearkin.evaluation.layout import layout
from nearkin.evaluation.places import _Count, places
from nearkin.evaluation.positives import all_positives, nearest_positives
from nearkin.evaluation.similarity import directions
from tests.evaluation import plain

PLACES = "nearkin.evaluation.places"


def counted(
    points: torch.Tensor, labels: list[int], query: list[bool] | None, memory: int
) -> tuple[dict[int, list[int]], dict[int, int]]:
    """The places of all relevant items of each query row, and the place of the nearest one."""
    every, mask = torch.arange(len(points)), torch.tensor(query or [True] * len(points))
    rows = layout(torch.tensor(labels), every[mask], every if query is None else every[~mask], own=query is None)
    scored = directions(points)
    found = all_positives(scored, rows, torch.ones(len(rows.queries), dtype=torch.bool))
    ranks = places(scored, rows, found, memory).split(found.count.tolist())
    every_place = {int(row): part.tolist() for row, part in zip(rows.queries, ranks, strict=True) if len(part)}
    first = nearest_positives(scored, rows, memory)
    nearest = places(scored, rows, first, memory)
    return every_place, dict(zip(rows.queries[first.query].tolist(), nearest.tolist(), strict=True))


def expected(points: torch.Tensor, labels: list[int], query: list[bool] | None) -> dict[int, list[int]]:
    n = len(points)
    asks = [i for i in range(n) if query is None or query[i]]
    gallery = [i for i in range(n) if query is None or not query[i]]
    own = asks if query is None else None
    ranked = plain.ranking([points[i].tolist() for i in asks], [points[i].tolist() for i in gallery], own)[1]
    found = {}
    for i, row in zip(asks, ranked, strict=True):
        hits = [place for place, j in enumerate(row, 1) if labels[gallery[j]] == labels[i]]
        if hits:
            found[i] = hits
    return found


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_places_equal_the_loops_with_ties_in_blocks(data: st.DataObject) -> None:
    n = data.draw(st.integers(2, 16))
    points, labels = data.draw(plain.corners(n)), data.draw(plain.some_labels(n))
    query = None
    if data.draw(st.booleans()):
        query = data.draw(st.lists(st.booleans(), min_size=n, max_size=n).filter(lambda mask: 0 < sum(mask) < n))
    memory = data.draw(st.sampled_from([1, 100, 300, 1000, 2**20]))
    every, nearest = counted(points, labels, query, memory)
    truth = expected(points, labels, query)
    assert every == truth
    assert nearest == {row: hits[0] for row, hits in truth.items()}


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_places_within_a_depth_are_exact_and_the_others_lie_beyond(data: st.DataObject) -> None:
    n = data.draw(st.integers(2, 24))
    points, labels = data.draw(plain.corners(n)), torch.tensor(data.draw(plain.some_labels(n)))
    every = torch.arange(n)
    query = torch.tensor(data.draw(st.lists(st.booleans(), min_size=n, max_size=n)))
    apart = bool(query.any()) and not bool(query.all()) and data.draw(st.booleans())
    rows = layout(labels, every[query] if apart else every, every[~query] if apart else every, own=not apart)
    scored, memory = directions(points), data.draw(st.sampled_from([1, 100, 300, 1000, 2**20]))
    found = all_positives(scored, rows, torch.ones(len(rows.queries), dtype=torch.bool))
    depth = torch.tensor(data.draw(st.lists(st.integers(0, n), min_size=len(found.item), max_size=len(found.item))))
    truth, limited = places(scored, rows, found, memory), places(scored, rows, found, memory, depth)
    within = truth <= depth
    assert torch.equal(limited[within], truth[within])
    assert bool((limited > depth)[~within].all())


def test_what_lies_deeper_is_looked_at_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counting only down to R takes a small part of the comparisons that counting everything takes."""
    generator = torch.Generator().manual_seed(0)
    labels = torch.arange(2000) // 5
    points = torch.randn(400, 32, generator=generator)[labels] + 1.6 * torch.randn(2000, 32, generator=generator)
    every = torch.arange(2000)
    rows, scored = layout(labels, every, every, own=True), directions(points)
    found = all_positives(scored, rows, torch.ones(2000, dtype=torch.bool))
    compared, plainly = [0], _Count._tally

    def tally(self: _Count, similarity: torch.Tensor, bound: torch.Tensor) -> torch.Tensor:
        compared[0] += similarity.numel() * bound.shape[1]
        return plainly(self, similarity, bound)

    monkeypatch.setattr(_Count, "_tally", tally)
    numbers = []
    for depth in (None, found.count[found.query]):
        compared[0] = 0
        places(scored, rows, found, 2**18, depth)
        numbers.append(compared[0])
    assert numbers[1] < numbers[0] / 2


@pytest.mark.parametrize("spread", [1.0, 1e-3, 1e-4, 1e-7, 0.0])
@pytest.mark.parametrize("crowded", [1, 64, 10**9])
def test_collapsed_embeddings_are_ranked_as_in_float64(
    spread: float, crowded: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # All cosines lie closer together than a float32 product can tell; both ways to settle that must agree.
    monkeypatch.setattr(f"{PLACES}.CROWDED", crowded)
    generator = torch.Generator().manual_seed(3)
    points = torch.ones(60, 9) + spread * torch.randn(60, 9, generator=generator)
    labels = torch.randint(12, (60,), generator=generator).tolist()
    for query in (None, [row % 3 == 0 for row in range(60)]):
        every, nearest = counted(points, labels, query, 16 * 17**2)
        truth = expected(points, labels, query)
        assert every == truth and nearest == {row: hits[0] for row, hits in truth.items()}


@pytest.mark.parametrize("crowded", [1, 10**9])
def test_copies_of_a_relevant_item_with_another_label_rank_by_row(
    crowded: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"{PLACES}.CROWDED", crowded)
    generator = torch.Generator().manual_seed(0)
    distinct = torch.randn(15, 33, generator=generator)
    which = torch.randint(15, (90,), generator=generator)
    labels = torch.randint(9, (90,), generator=generator)
    every, _ = counted(distinct[which], labels.tolist(), None, 16 * 20**2)
    # Ranking the few distinct vectors and then the rows is exact, whatever a sum over 33 numbers rounds to.
    order = plain.ranking(distinct.tolist(), distinct.tolist())[1]
    for i, found in every.items():
        rank = {vector: place for place, vector in enumerate(order[int(which[i])])}
        row = sorted((j for j in range(90) if j != i), key=lambda j: (rank[int(which[j])], j))
        assert found == [place for place, j in enumerate(row, 1) if labels[j] == labels[i]]


@pytest.mark.parametrize("query", [False, True])
def test_nearest_of_large_classes(query: bool) -> None:
    generator = torch.Generator().manual_seed(1)
    labels = torch.cat([torch.zeros(150), torch.ones(100), torch.full((30,), 2)]).long()
    points = torch.randn(280, 6, generator=generator)
    points[10:20] = points[0:10]
    mask = (torch.rand(280, generator=generator) < 0.4).tolist() if query else None
    every, nearest = counted(points, labels.tolist(), mask, 40_000)
    assert nearest == {row: hits[0] for row, hits in every.items()} and len(nearest) > 80
    assert every == expected(points, labels.tolist(), mask)


def test_half_of_the_products_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    entries = []
    product = torch.mm

    def counting(left: torch.Tensor, right: torch.Tensor, *, out: torch.Tensor) -> torch.Tensor:
        entries.append(out.numel())
        return product(left, right, out=out)

    monkeypatch.setattr(torch, "mm", counting)
    points = torch.randn(100, 5, generator=torch.Generator().manual_seed(0))
    every = torch.arange(100)
    rows = layout(every % 25, every, every, own=True)
    scored = directions(points)
    places(scored, rows, nearest_positives(scored, rows, 2**20), 16 * 10**2)
    assert sum(entries) == 55 * 100


def test_the_layout_holds_each_class_in_one_stretch() -> None:
    generator = torch.Generator().manual_seed(0)
    labels = torch.randint(-5, 20, (200,), generator=generator)
    mask = torch.rand(200, generator=generator) < 0.3
    every = torch.arange(200)
    for asks, gallery, own in ((every, every, True), (every[mask], every[~mask], False), (every[7:50:3], every, True)):
        rows = layout(labels, asks, gallery, own=own)
        assert sorted(rows.queries.tolist()) == asks.tolist() and sorted(rows.gallery.tolist()) == gallery.tolist()
        assert rows.relevant.tolist() == sorted(rows.relevant.tolist())
        for row, start, end in zip(rows.queries.tolist(), rows.start.tolist(), rows.end.tolist(), strict=True):
            members = [j for j in gallery.tolist() if labels[j] == labels[row]]
            assert rows.gallery[start:end].tolist() == members
