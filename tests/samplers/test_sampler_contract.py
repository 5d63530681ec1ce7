"""What every sampler promises, checked for each of them in every state it can be in."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset

from nearkin import samplers
from nearkin.samplers import Batches

# 23 classes with 1 to 9 images, in mixed order.
LABELS = np.random.default_rng(5).permutation(np.repeat(np.arange(23) * 3 + 7, np.arange(23) % 9 + 1))
EMBEDDINGS = torch.randn(len(LABELS), 6, generator=torch.Generator().manual_seed(1))

SETTINGS: dict[str, dict[str, int]] = {
    "pk": {"classes": 5, "images": 3},
    "n_pair": {"classes": 6},
    "random": {"batch": 17},
    "hard_class": {"classes": 5, "images": 3, "pool": 9},
    "smart": {"batch": 17, "negatives": 3},
}
CASES = [(name, False) for name in SETTINGS] + [("hard_class", True), ("smart", True)]

Make = Callable[..., Batches]


@pytest.fixture(params=CASES, ids=[name + "-updated" * updated for name, updated in CASES])
def make(request: pytest.FixtureRequest) -> Make:
    name, updated = request.param

    def build(labels: object = LABELS, **settings: int) -> Batches:
        sampler = samplers.create(name, labels, **(SETTINGS[name] | settings))  # type: ignore[arg-type]
        if updated:
            assert isinstance(sampler, samplers.HardClass | samplers.Smart)
            sampler.update(EMBEDDINGS)
        return sampler

    return build


def test_every_sampler_is_covered() -> None:
    assert list(SETTINGS) == samplers.names() == list(samplers.SAMPLERS)


def test_same_arguments_give_the_same_batches(make: Make) -> None:
    assert list(make(seed=3, epoch=2)) == list(make(seed=3, epoch=2))


def test_each_time_goes_through_the_next_epoch(make: Make) -> None:
    sampler = make(epoch=2)
    assert [list(sampler) for _ in range(3)] == [list(make(epoch=epoch)) for epoch in (2, 3, 4)]
    sampler.set_epoch(2, start=1)
    assert list(sampler) == list(make(epoch=2))[1:] and list(sampler) == list(make(epoch=3))


def test_an_epoch_left_in_the_middle_begins_again(make: Make) -> None:
    sampler = make(batches=5)
    next(iter(sampler))
    assert list(sampler) == list(make(batches=5))


def test_global_random_state_is_neither_read_nor_changed(make: Make) -> None:
    np.random.seed(1)
    before = np.random.get_state()[1].tolist()  # type: ignore[index]
    torch_before = torch.get_rng_state()
    first = list(make())
    assert np.random.get_state()[1].tolist() == before  # type: ignore[index]
    assert torch.equal(torch.get_rng_state(), torch_before)
    np.random.seed(2)
    assert list(make()) == first


def test_epoch_and_seed_change_the_order(make: Make) -> None:
    sampler = make(seed=1)
    first = list(sampler)
    sampler.set_epoch(1)
    second = list(sampler)
    assert second != first
    assert second == list(make(seed=1, epoch=1))
    assert list(make(seed=2)) != first


def test_indices_are_valid_and_distinct(make: Make) -> None:
    for batch in make(batches=40):
        assert all(type(row) is int and 0 <= row < len(LABELS) for row in batch)
        assert len(set(batch)) == len(batch)


def test_batches_have_the_stated_size(make: Make) -> None:
    sampler = make(batches=40)
    assert {len(batch) for batch in sampler} == {sampler.size}


@pytest.mark.parametrize("batches", [None, 1, 3, 40])
def test_length_is_exact(make: Make, batches: int | None) -> None:
    sampler = make() if batches is None else make(batches=batches)
    assert len(sampler) == len(list(sampler)) == sampler.batches
    if batches is not None:
        assert len(sampler) == batches


def test_default_length_is_about_one_epoch(make: Make) -> None:
    sampler = make()
    images = sum(map(len, sampler.members))
    assert len(sampler) == images // sampler.size


@pytest.mark.parametrize("ranks", [2, 3, 10])
def test_shares_of_the_ranks_make_the_batch_of_one_process(make: Make, ranks: int) -> None:
    whole = list(make(batches=12))
    shares = [list(make(batches=12, rank=rank, ranks=ranks)) for rank in range(ranks)]
    assert [list(chain(*parts)) for parts in zip(*shares, strict=True)] == whole
    for parts in zip(*shares, strict=True):
        sizes = [len(part) for part in parts]
        assert max(sizes) - min(sizes) <= 1 and min(sizes) >= 1


@pytest.mark.parametrize("start", [0, 1, 5, 12])
def test_start_skips_exactly(make: Make, start: int) -> None:
    sampler = make(batches=12, epoch=4)
    whole = list(sampler)
    sampler.set_epoch(4, start=start)
    assert len(sampler) == 12 - start
    assert list(sampler) == whole[start:]
    sampler.set_epoch(4)
    assert list(sampler) == whole


def test_an_iteration_under_way_keeps_its_epoch(make: Make) -> None:
    sampler = make(batches=5)
    walk = iter(sampler)
    sampler.set_epoch(9, start=2)
    assert list(walk) == list(make(batches=5))
    assert (sampler.epoch, sampler.start) == (9, 2)


def test_labels_may_be_tensor_array_or_sequence(make: Make) -> None:
    expected = list(make())
    for labels in (
        torch.from_numpy(LABELS),
        LABELS.astype(np.int16),
        LABELS.tolist(),
        tuple(LABELS.tolist()),
    ):
        assert list(make(labels)) == expected


def test_only_the_partition_matters_not_the_label_values(make: Make) -> None:
    assert list(make(LABELS * 2 - 50)) == list(make())


def test_works_in_a_data_loader(make: Make) -> None:
    data = TensorDataset(torch.arange(len(LABELS)))
    sampler = make()
    loader = DataLoader(data, batch_sampler=sampler)
    assert len(loader) == len(sampler)
    for epoch in range(2):
        assert [rows.tolist() for (rows,) in loader] == list(make(epoch=epoch))


COMMON = [
    ({"batches": 0}, "batches must be a whole number at least 1, got 0; change batches."),
    ({"seed": -1}, "seed must be a whole number at least 0, got -1; change seed."),
    ({"epoch": -1}, "epoch must be a whole number at least 0, got -1; change epoch."),
    ({"ranks": 0}, "ranks must be a whole number at least 1, got 0; change ranks."),
    ({"rank": -1}, "rank must be a whole number at least 0, got -1; change rank."),
    ({"rank": 2, "ranks": 2}, "rank must be below ranks (2), got 2; count ranks from 0."),
]


@pytest.mark.parametrize(("settings", "sentence"), COMMON)
def test_bad_common_settings(make: Make, settings: dict[str, int], sentence: str) -> None:
    with pytest.raises(ValueError) as caught:
        make(**settings)
    assert str(caught.value) == f"{make().name}: {sentence}"


def test_more_ranks_than_images_in_a_batch(make: Make) -> None:
    sampler = make()
    with pytest.raises(ValueError) as caught:
        make(ranks=sampler.size + 1)
    assert str(caught.value) == (
        f"{sampler.name}: ranks must be at most the batch size ({sampler.size}), got {sampler.size + 1}; "
        f"use larger batches or fewer ranks."
    )


def test_start_beyond_the_epoch(make: Make) -> None:
    sampler = make(batches=5)
    with pytest.raises(ValueError) as caught:
        sampler.set_epoch(0, start=6)
    assert str(caught.value) == (
        f"{sampler.name}: start must be at most the batches of an epoch (5), got 6; go on with the next epoch."
    )
    assert (sampler.epoch, sampler.start) == (0, 0)


@pytest.mark.parametrize(
    ("labels", "error", "sentence"),
    [
        ([], ValueError, "labels must hold at least one row, got none; pass one label per image."),
        ([0.5, 1.0], TypeError, "labels must be an integer tensor, got torch.float32; "),
        ([[0, 1], [1, 0]], ValueError, "labels must have shape (4,), got (2, 2); "),
        (
            ["a", "b"],
            TypeError,
            "labels must be an integer tensor of shape (2,), got class names such as 'a'; number the ",
        ),
        (
            ["a", None],
            TypeError,
            "labels must be an integer tensor of shape (2,), got class names such as 'a'; number the ",
        ),
        ([None, "a"], TypeError, "labels must be integers of shape (rows,), got list; "),
        (torch.tensor([True, False]), TypeError, "labels must be an integer tensor, got torch.bool; "),
    ],
)
def test_bad_labels(make: Make, labels: object, error: type[Exception], sentence: str) -> None:
    with pytest.raises(error) as caught:
        make(labels)
    assert sentence in str(caught.value)
