"""A loss that is told how many samples a class has at most gives the same, and asks nothing."""

from __future__ import annotations

import pytest
import torch

from nearkin import samplers
from nearkin.losses.batch import Batch
from tests.losses.cases import PAIR, Case, batch, gradients

COUNTING = [case for case in PAIR if case.make().counts]


@pytest.mark.parametrize("more", [0, 3])
@pytest.mark.parametrize("engine", ["dense", "blocked"])
@pytest.mark.parametrize("case", COUNTING, ids=lambda case: case.id)
def test_told_or_counted(case: Case, engine: str, more: int) -> None:
    embeddings, labels = batch(3, 11)
    most = int(torch.bincount(labels).max())
    found = []
    for members in (None, most + more):
        loss = case.make(engine=engine if case.rowwise else "dense")
        loss.members = members
        assert loss.asks(Batch(embeddings, labels)) == (members is None or not case.rowwise)
        value = loss(embeddings, labels)
        found.append([value.detach(), *gradients(value, embeddings, *loss.parameters())])
    for first, second in zip(*found, strict=True):
        torch.testing.assert_close(first, second)


@pytest.mark.parametrize("case", COUNTING, ids=lambda case: case.id)
def test_a_class_that_is_larger_than_told_is_noticed(case: Case) -> None:
    embeddings, labels = batch(3, 11)
    loss = case.make()
    loss.members = int(torch.bincount(labels).max()) - 1
    with pytest.raises(ValueError, match=r"no class more than \d+ times since members=\d+ was set.*raise members"):
        loss(embeddings, labels)


def test_masks_are_counted_whatever_was_told() -> None:
    embeddings, labels = batch(3, 11)
    loss = COUNTING[0].make()
    positive = (labels[:, None] == labels) & ~torch.eye(11, dtype=torch.bool)
    expected = loss(embeddings, positive=positive)
    loss.members = 1
    assert loss.asks(Batch(embeddings, positive=positive))
    torch.testing.assert_close(loss(embeddings, positive=positive), expected)


def test_samplers_know_the_most_of_a_class() -> None:
    labels = torch.arange(60) // 6
    for sampler in (
        samplers.PK(labels, classes=3, images=4),
        samplers.HardClass(labels, classes=3, images=4),
        samplers.NPair(labels, classes=3),
    ):
        assert sampler.most is not None
        assert max(int(torch.bincount(labels[rows]).max()) for rows in sampler) == sampler.most
    assert samplers.Random(labels, batch=12).most is None
