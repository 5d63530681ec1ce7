"""P x K batches and the decks they are dealt from, N-pair and random batches."""

from __future__ import annotations

from collections import Counter
from itertools import chain, islice

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nearkin.samplers import PK, NPair, Random
from nearkin.samplers.deck import Deck


@given(st.integers(1, 12), st.lists(st.integers(0, 12), max_size=12), st.integers(0, 5))
def test_deck_deals_evenly_and_without_repeats(size: int, counts: list[int], seed: int) -> None:
    deck = Deck(np.arange(size) + 3, np.random.default_rng(seed))
    seen: Counter[int] = Counter(dict.fromkeys(range(3, size + 3), 0))
    for count in counts:
        hand = list(islice(deck.deal(), count))
        assert len(hand) == len(set(hand)) == min(count, size)
        seen.update(hand)
        assert max(seen.values()) - min(seen.values()) <= 1


def test_balanced_data_gives_p_classes_with_k_images() -> None:
    labels = np.tile(np.arange(20), 6)
    for batch in PK(labels, classes=7, images=4, batches=30):
        assert sorted(Counter(labels[batch].tolist()).values()) == [4] * 7
        # Images of a class stand side by side.
        assert (np.diff(labels[batch]) != 0).sum() == 6


@given(st.lists(st.integers(1, 7), min_size=1, max_size=10), st.data())
def test_small_classes_give_what_they_have_and_others_fill(sizes: list[int], data: st.DataObject) -> None:
    labels = np.repeat(np.arange(len(sizes)), sizes)
    classes, images = data.draw(st.integers(1, len(sizes))), data.draw(st.integers(1, 5))
    sampler = PK(labels, classes, images, batches=6)
    assert sampler.size == min(classes * images, sum(min(images, size) for size in sizes))
    for batch in sampler:
        assert len(batch) == len(set(batch)) == sampler.size
        counts = Counter(labels[batch].tolist())
        # At most the last class to fill the batch gives fewer than it could.
        cut = [c for c, count in counts.items() if count < min(images, sizes[c])]
        assert len(cut) <= 1 and all(count <= images for count in counts.values())
        assert not cut or cut[0] == labels[batch[-1]]


def test_classes_are_visited_evenly_and_all_images_used() -> None:
    labels = np.repeat(np.arange(11), 8)
    sampler = PK(labels, classes=4, images=3, batches=44)
    rows = list(chain.from_iterable(sampler))
    visits = Counter(labels[rows].tolist())
    assert set(visits.values()) == {44 * 4 // 11 * 3}
    uses = Counter(rows)
    assert len(uses) == len(labels) and max(uses.values()) - min(uses.values()) <= 1


def test_epoch_of_equal_classes_uses_nearly_all_images() -> None:
    labels = np.repeat(np.arange(12), 6)
    assert len(set(chain.from_iterable(PK(labels, classes=4, images=3)))) == len(labels)


def test_defaults_are_those_of_ranked_list_loss() -> None:
    sampler = PK(np.repeat(np.arange(100), 5))
    assert (sampler.classes, sampler.images, sampler.size, len(sampler)) == (60, 3, 180, 2)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (
            {"classes": 4},
            "pk: classes must be at most the number of classes in labels (3), got 4; ask for fewer classes per batch.",
        ),
        ({"classes": 0}, "pk: classes must be a whole number at least 1, got 0; change classes."),
        ({"classes": 2, "images": 0}, "pk: images must be a whole number at least 1, got 0; change images."),
        (
            {"classes": 2, "images": 1.5},
            "pk: images must be a whole number at least 1, got 1.5; change images.",
        ),
        ({"classes": True}, "pk: classes must be a whole number at least 1, got True; change classes."),
    ],
)
def test_pk_bad_settings(settings: dict[str, int], sentence: str) -> None:
    with pytest.raises(ValueError) as caught:
        PK([0, 0, 1, 1, 2, 2], **settings)
    assert str(caught.value) == sentence


def test_numpy_integers_are_integers() -> None:
    assert PK([0, 0, 1, 1], classes=np.int64(2), images=np.int32(2)).size == 4  # type: ignore[arg-type]


def test_n_pair_puts_the_two_images_of_a_class_side_by_side() -> None:
    labels = np.repeat(np.arange(9), [1, 2, 3, 4, 5, 1, 2, 2, 7])
    sampler = NPair(labels, classes=5, batches=20)
    for batch in sampler:
        classes = labels[batch]
        assert (classes[::2] == classes[1::2]).all()
        assert len(set(classes[::2].tolist())) == 5
        assert not {0, 5} & set(classes.tolist())
    assert len(NPair(labels, classes=5)) == 25 // 10


def test_n_pair_uses_first_and_second_evenly() -> None:
    labels = np.repeat(np.arange(6), 2)
    firsts = {row % 2 for batch in NPair(labels, classes=3, batches=20) for row in batch[::2]}
    assert firsts == {0, 1}


def test_n_pair_too_many_classes() -> None:
    with pytest.raises(ValueError) as caught:
        NPair([0, 0, 1, 2, 2], classes=3)
    assert str(caught.value) == (
        "n_pair: classes must be at most the number of classes with two images in labels (2), got 3; "
        "ask for fewer classes per batch."
    )


def test_random_goes_through_the_data_without_repeats() -> None:
    sampler = Random([0] * 50, batch=8)
    rows = list(chain.from_iterable(sampler))
    assert len(sampler) == 6 and len(rows) == len(set(rows)) == 48
    counts = Counter(chain.from_iterable(Random([0] * 50, batch=8, batches=25)))
    assert set(counts.values()) == {4} and len(counts) == 50


@pytest.mark.parametrize(
    ("batch", "sentence"),
    [
        (6, "random: batch must be at most the number of images (5), got 6; use smaller batches."),
        (0, "random: batch must be a whole number at least 1, got 0; change batch."),
    ],
)
def test_random_bad_batch(batch: int, sentence: str) -> None:
    with pytest.raises(ValueError) as caught:
        Random([0, 1, 2, 3, 4], batch=batch)
    assert str(caught.value) == sentence
