"""Every miner against the reference sets, random ones against their probabilities."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from nearkin import losses, miners
from nearkin.miners import Context
from nearkin.pairs import Few, few, number, spread
from tests.losses.cases import batch
from tests.reference import miners as reference
from tests.reference.samples import Samples

FIXED: list[tuple[str, dict[str, Any]]] = [
    ("all", {}),
    ("semihard", {}),
    ("semihard", {"fallback": "easiest"}),
    ("hard", {}),
    ("vthm", {}),
    ("vthm", {"margin": 0.4}),
    ("non_trivial", {}),
    ("non_trivial", {"alpha": 1.4, "margin": 0.7}),
]


def rows(seed: int, n: int = 9, classes: int = 3) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    embeddings, labels = batch(seed, n, dim=4, classes=classes, grad=False)
    unit = embeddings / embeddings.norm(dim=1, keepdim=True)
    same = labels[:, None] == labels
    positive, negative = (same & ~torch.eye(n, dtype=torch.bool)).double(), (~same).double()
    return embeddings, labels, unit @ unit.T, positive, negative


def counts(lists: list[list[int]], m: int) -> Tensor:
    return torch.tensor([[float(Counter(row)[j]) for j in range(m)] for row in lists], dtype=torch.float64)


@pytest.mark.parametrize(("name", "chosen"), FIXED, ids=str)
@pytest.mark.parametrize("side_by_side", [True, False])
@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10**6), classes=st.integers(1, 5))
def test_the_kept_sets_are_those_of_the_reference(
    name: str, chosen: dict[str, Any], side_by_side: bool, seed: int, classes: int
) -> None:
    embeddings, labels, similarity, counts_of_positives, negative = rows(seed, classes=classes)
    n = len(labels)
    positive = few(counts_of_positives, n) if side_by_side else counts_of_positives
    mined = miners.create(name, **chosen)(
        similarity, positive, negative, Context(n, 4, torch.tensor(0), torch.arange(n))
    )
    expected = getattr(reference, name)(Samples(embeddings, labels.tolist()), **chosen)
    assert torch.equal(spread(mined.positive, similarity), counts(expected.positive, n))
    assert torch.equal(spread(mined.negative, similarity), counts(expected.negative, n))
    assert mined.linked == (expected.triplets is not None)
    if expected.triplets is not None:
        p, m = mined.positive, mined.negative
        assert isinstance(p, Few) and isinstance(m, Few)
        found = [
            (i, int(p.columns[i, k]), int(m.columns[i, k]))
            for i in range(n)
            for k in range(p.columns.shape[1])
            if m.counts[i, k] > 0 and p.counts[i, k] > 0
        ]
        assert sorted(found) == sorted(expected.triplets)


@pytest.mark.parametrize("name", ["distance_weighted", "random"])
def test_random_miners_draw_with_the_right_chances(name: str) -> None:
    """20,000 draws per positive: every frequency within five standard deviations of its probability."""
    embeddings, labels, similarity, positive, negative = rows(4)
    n, times = len(labels), 20_000
    chances = getattr(reference, name)(Samples(embeddings, labels.tolist()))
    miner = miners.create(name)
    a = next(i for i in range(n) if len(chances[i]) > 1)
    many = slice(a, a + 1)
    repeated = [m[many].expand(times, n).contiguous() for m in (similarity, positive, negative)]
    mined = miner(*repeated, Context(n, 4, torch.tensor(5), torch.arange(times)))
    assert isinstance(mined.negative, Few)
    drawn = mined.negative.columns[mined.negative.counts > 0]
    total = len(drawn)
    assert total == times * int(positive[a].sum())
    frequency = torch.bincount(drawn, minlength=n).double() / total
    for j in range(n):
        chance = float(chances[a].get(j, 0.0))
        assert abs(frequency[j].item() - chance) <= 5 * (chance * (1 - chance) / total) ** 0.5 + 1e-12, j


def test_distance_weighted_keeps_a_positive_without_candidate() -> None:
    similarity = torch.tensor([[1.0, 0.5, -0.9, -0.8]], dtype=torch.float64)
    positive, negative = torch.tensor([[0.0, 1, 0, 0]]).double(), torch.tensor([[0.0, 0, 1, 1]]).double()
    mined = miners.create("distance_weighted")(
        similarity, positive, negative, Context(1, 8, torch.tensor(0), torch.arange(1))
    )
    assert spread(mined.positive, similarity).tolist() == [[0, 1, 0, 0]]
    assert number(mined.negative).sum() == 0


def test_a_function_may_be_a_miner() -> None:
    embeddings, labels = batch(0, 9)

    def hardest_half(similarity: Tensor, positive: Tensor, negative: Tensor) -> tuple[Tensor, Tensor]:
        return positive, negative.bool() & (similarity > 0.2)

    loss = losses.create("contrastive", miner=hardest_half, margin=0.0)
    unit = embeddings / embeddings.norm(dim=1, keepdim=True)
    s = unit @ unit.T
    same = labels[:, None] == labels
    expected = torch.where(same, 1 - s, torch.where(s > 0.2, s, 0)).sum(1).mean()
    torch.testing.assert_close(loss(embeddings, labels), expected)
    blocked = losses.create("contrastive", miner=hardest_half, margin=0.0, engine="blocked")
    torch.testing.assert_close(blocked(embeddings, labels), expected)


@pytest.mark.parametrize(
    ("miner", "sentence"),
    [
        (
            lambda s, p, n: (p, n - 1),
            "miner <lambda>: negative must hold no number below 0, got -1; pass 0 for a pair that does not count.",
        ),
        (
            lambda s, p, n: (p, torch.ones_like(n)),
            "miner <lambda>: negative must leave out the pairs of miner <lambda>: positive, got 8 that are in both; "
            "pass each pair in one of them.",
        ),
        (
            lambda s, p, n: (p[:, 0], n),
            "miner <lambda>: positive must have shape (9, 9), one entry per pair of query and column, got (9,); build it "
            "from the same batch.",
        ),
        (
            lambda s, p, n: (p, n, n),
            "miner <lambda> must return two masks of shape (9, 9), positive and negative, got 3 things; return the pairs "
            "to keep, as in (positive, negative * (similarity > 0.5)).",
        ),
        (
            lambda s, p, n: n,
            "miner <lambda> must return two masks of shape (9, 9), positive and negative, got Tensor; return the pairs to "
            "keep, as in (positive, negative * (similarity > 0.5)).",
        ),
    ],
)
def test_what_a_function_returns_is_checked(miner: Any, sentence: str) -> None:
    embeddings, labels = batch(0, 9)
    with pytest.raises((TypeError, ValueError)) as caught:
        losses.create("contrastive", miner=miner)(embeddings, labels)
    assert str(caught.value) == sentence


@pytest.mark.parametrize("miner", miners.names())
@pytest.mark.parametrize("name", [n for n in losses.names() if issubclass(losses.LOSSES[n], losses.PairLoss)])
def test_every_pair_loss_takes_every_miner(name: str, miner: str) -> None:
    embeddings, labels = batch(0, 12)
    value = losses.create(name, miner=miner)(embeddings, labels)
    assert torch.isfinite(value)
    assert torch.isfinite(torch.autograd.grad(value, embeddings)[0]).all()


def test_miner_all_is_no_miner() -> None:
    embeddings, labels = batch(0, 12)
    for name in ("triplet", "contrastive", "margin", "struct_clust"):
        torch.testing.assert_close(
            losses.create(name, miner="all")(embeddings, labels), losses.create(name, miner=None)(embeddings, labels)
        )
