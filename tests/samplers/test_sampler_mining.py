"""Hard class and smart batches against their rules, written again as plain loops."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
import torch

from nearkin.samplers import PK, HardClass, Smart
from nearkin.samplers.hard_class import greedy

LABELS = np.random.default_rng(2).permutation(np.repeat(np.arange(30), 6))
EMBEDDINGS = torch.randn(len(LABELS), 5, generator=torch.Generator().manual_seed(3), dtype=torch.float64)


def cosine(a: list[float], b: list[float]) -> float:
    return sum(x * y for x, y in zip(a, b, strict=True)) / math.hypot(*a) / math.hypot(*b)


def test_hard_class_is_pk_before_any_update() -> None:
    assert list(HardClass(LABELS, 5, 3, seed=4, epoch=2)) == list(PK(LABELS, 5, 3, seed=4, epoch=2))


@pytest.mark.parametrize("pool", [None, 5, 12])
def test_hard_class_follows_the_greedy_rule(pool: int | None) -> None:
    sampler = HardClass(LABELS, 5, 3, pool=pool, batches=15)
    sampler.update(EMBEDDINGS)
    units = [[x / math.hypot(*row) for x in row] for row in EMBEDDINGS.tolist()]
    members = [[i for i, label in enumerate(LABELS) if label == c] for c in range(30)]
    means = [[sum(units[i][axis] for i in rows) / len(rows) for axis in range(5)] for rows in members]
    for batch in sampler:
        order = LABELS[batch][::3].tolist()
        assert LABELS[batch].tolist() == [c for c in order for _ in range(3)]
        for count in range(1, 5):
            score = {c: max(cosine(means[c], means[b]) for b in order[:count]) for c in range(30)}
            better = [c for c in score if c not in order[:count] and score[c] > score[order[count]] + 1e-12]
            # With the whole set as pool nothing better is left; a smaller pool hides 30 - pool.
            assert len(better) <= 30 - min(30, pool or 50)


@pytest.mark.parametrize("kind", [HardClass, Smart])
def test_what_was_mined_composes_the_rest_of_an_epoch(kind: type[HardClass] | type[Smart]) -> None:
    sampler, again = kind(LABELS, 12, seed=1), kind(LABELS, 12, seed=1)
    assert sampler.state() == {}
    sampler.update(EMBEDDINGS)
    again.restore(sampler.state())
    for each in (sampler, again):
        each.set_epoch(2, 3)
    assert list(again) == list(sampler)
    again.restore({})
    assert list(again) != list(sampler)


def test_hard_class_starts_from_each_class_evenly() -> None:
    sampler = HardClass(LABELS, 5, 3, batches=60)
    sampler.update(EMBEDDINGS)
    firsts = Counter(int(LABELS[batch[0]]) for batch in sampler)
    assert set(firsts.values()) == {2} and len(firsts) == 30


def test_greedy_order_and_ties() -> None:
    centers = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0], [-1.0, 0.0]])
    assert list(greedy(centers, np.array([0, 2, 1, 3]))) == [0, 2, 1, 3]
    assert list(greedy(centers, np.array([3, 1, 0, 2]))) == [3, 1, 2, 0]


def test_hard_class_fills_up_small_classes() -> None:
    labels = np.repeat(np.arange(10), [1, 1, 1, 1, 1, 1, 1, 1, 4, 4])
    sampler = HardClass(labels, 3, 3, pool=3, batches=20)
    sampler.update(torch.randn(len(labels), 4, generator=torch.Generator().manual_seed(0)))
    assert all(len(batch) == len(set(batch)) == 9 for batch in sampler)


def test_hard_class_pool_below_classes() -> None:
    with pytest.raises(ValueError) as caught:
        HardClass(LABELS, 5, 3, pool=4)
    assert str(caught.value) == "hard_class: pool must be a whole number at least 5, got 4; change pool."


def test_smart_is_pk_with_two_images_before_any_update() -> None:
    assert list(Smart(LABELS, 20, seed=4, epoch=2)) == list(PK(LABELS, 10, 2, seed=4, epoch=2))


def test_smart_before_any_update_fills_large_batches_from_few_classes() -> None:
    labels = np.repeat(np.arange(3), 10)
    for batch in Smart(labels, 12):
        assert Counter(labels[batch].tolist()) == {0: 4, 1: 4, 2: 4}


def nearest_negatives(count: int) -> list[list[int]]:
    """The rule as a double loop: most similar first, lower row on ties."""
    points = EMBEDDINGS.tolist()
    found = []
    for i, point in enumerate(points):
        others = [(-cosine(point, points[j]), j) for j in range(len(points)) if LABELS[j] != LABELS[i]]
        found.append([j for _, j in sorted(others)[:count]])
    return found


def test_smart_search_is_exact() -> None:
    sampler = Smart(LABELS, 20, negatives=3, memory=1)
    sampler.update(EMBEDDINGS)
    assert sampler.hardest is not None and sampler.hardest.tolist() == nearest_negatives(3)


def test_smart_follows_its_rule() -> None:
    sampler = Smart(LABELS, 20, negatives=3, batches=40)
    sampler.update(EMBEDDINGS)
    hardest = nearest_negatives(3)
    anchors: Counter[int] = Counter()
    for batch in sampler:
        assert len(batch) == len(set(batch)) == 20
        place = 0
        while place < len(batch):
            anchor, before = batch[place], set(batch[:place])
            anchors[anchor] += 1
            group = [anchor]
            if place + 1 < len(batch):
                positive = batch[place + 1]
                assert LABELS[positive] == LABELS[anchor]
                group.append(positive)
            group += [row for row in hardest[anchor] if row not in before]
            assert batch[place : place + len(group)] == group[: len(batch) - place]
            place += len(group)
    # Every image has its turn as an anchor unless a batch held it already.
    assert max(anchors.values()) <= 2


def test_smart_anchor_without_a_positive_left() -> None:
    labels = [0, 0, 1, 1, 2, 2]
    sampler = Smart(labels, batch=6, negatives=4, batches=5)
    sampler.update(torch.eye(6))
    assert all(sorted(batch) == [0, 1, 2, 3, 4, 5] for batch in sampler)


def test_smart_fills_from_single_images_when_anchors_run_out() -> None:
    labels = [0, 0, 1, 2, 3, 4, 5]
    sampler = Smart(labels, batch=7, negatives=1)
    sampler.update(torch.eye(7))
    (batch,) = sampler
    assert sorted(batch) == list(range(7)) and set(batch[:2]) == {0, 1}


def test_smart_with_one_class_only_has_no_negatives() -> None:
    sampler = Smart([0] * 6, batch=4)
    sampler.update(torch.randn(6, 3))
    assert all(len(set(batch)) == 4 for batch in sampler)


def test_smart_bad_settings() -> None:
    for labels, settings, sentence in [
        (
            [0, 0, 1],
            {"batch": 4},
            "smart: batch must be at most the number of images (3), got 4; use smaller batches.",
        ),
        (
            [0, 1, 2],
            {"batch": 2},
            "smart: labels must hold a class with two images, got none; add a positive.",
        ),
        (
            [0, 0, 1],
            {"batch": 2, "negatives": 0},
            "smart: negatives must be a whole number at least 1, got 0; change negatives.",
        ),
    ]:
        with pytest.raises(ValueError) as caught:
            Smart(labels, **settings)
        assert str(caught.value) == sentence


@pytest.mark.parametrize("kind", [HardClass, Smart])
def test_bad_embeddings_change_nothing(kind: type[HardClass] | type[Smart]) -> None:
    sampler = HardClass(LABELS, 5, 3) if kind is HardClass else Smart(LABELS, 20)
    before = list(sampler)
    bad = EMBEDDINGS.clone()
    bad[7, 2] = math.nan
    for value, error, sentence in [
        (
            EMBEDDINGS[:-1],
            ValueError,
            f"{sampler.name}: embeddings must have one row per label (180), got 179; "
            f"embed the whole training set in the order of labels.",
        ),
        (
            bad,
            ValueError,
            "embeddings must be finite, got NaN or Inf in row 7; check the model that made them or drop such rows.",
        ),
        (
            EMBEDDINGS[0],
            ValueError,
            "embeddings must have shape (rows, dim), got (5,); reshape it to two dimensions.",
        ),
    ]:
        with pytest.raises(error) as caught:
            sampler.update(value)
        assert str(caught.value) == sentence
    sampler.set_epoch(0)
    assert list(sampler) == before


def test_update_takes_arrays_and_half_precision() -> None:
    one, two = HardClass(LABELS, 5, 3), HardClass(LABELS, 5, 3)
    one.update(EMBEDDINGS.half())
    two.update(EMBEDDINGS.half().float().numpy())
    assert list(one) == list(two)
