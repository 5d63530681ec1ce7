"""The cross-batch memory: columns of earlier batches, all state in buffers."""

from __future__ import annotations

import pytest
import torch

from nearkin import CrossBatchMemory, losses
from tests.losses.cases import DIM, PAIR, Case, batch, gradients


@pytest.mark.parametrize("case", PAIR, ids=lambda case: case.id)
def test_a_memory_is_a_gallery_of_what_came_before(case: Case) -> None:
    loss = case.make()
    loss.eval()  # random miners draw the same in both calls
    memory = CrossBatchMemory(loss, dim=DIM, size=10).double()
    loss.eval()
    first, first_labels = batch(0, 6, grad=False)
    second, labels = batch(1, 6)
    torch.testing.assert_close(memory(first, first_labels), loss(first, first_labels))
    value = memory(second, labels)
    everything = torch.cat([second, first])
    expected = loss(second, labels, everything, torch.cat([labels, first_labels]), self_index=torch.arange(6))
    torch.testing.assert_close(value, expected)
    torch.testing.assert_close(gradients(value, second)[0], gradients(expected, second)[0])


def test_the_oldest_are_replaced() -> None:
    memory = CrossBatchMemory(losses.create("contrastive"), dim=1, size=5)
    for start in (0, 3, 6):
        memory(torch.arange(start, start + 3.0)[:, None] + 1, torch.arange(start, start + 3))
    assert sorted(memory.labels.tolist()) == [4, 5, 6, 7, 8]
    assert sorted(memory.embeddings.flatten().tolist()) == [5, 6, 7, 8, 9]
    memory(torch.arange(8.0)[:, None] + 1, torch.arange(8))
    assert sorted(memory.labels.tolist()) == [3, 4, 5, 6, 7]
    memory.reset()
    assert not memory.filled.any()


def test_it_survives_a_round_trip_and_goes_on_alike() -> None:
    batches = [batch(seed, 6, grad=False) for seed in range(5)]
    memory = CrossBatchMemory(losses.create("margin"), dim=DIM, size=8).double()
    for embeddings, labels in batches[:3]:
        memory(embeddings, labels)
    again = CrossBatchMemory(losses.create("margin"), dim=DIM, size=8).double()
    again.load_state_dict(memory.state_dict())
    for embeddings, labels in batches[3:]:
        assert again(embeddings, labels).item() == memory(embeddings, labels).item()
    assert all(torch.equal(again.state_dict()[key], value) for key, value in memory.state_dict().items())


def test_evaluation_does_not_fill_it() -> None:
    memory = CrossBatchMemory(losses.create("contrastive"), dim=DIM, size=8).eval()
    memory(*batch(0, 6, grad=False, dtype=torch.float32))
    assert not memory.filled.any()


def test_blocked_and_half_precision_work() -> None:
    embeddings, labels = batch(0, 6, grad=False)
    dense = CrossBatchMemory(losses.create("ranked_list"), dim=DIM, size=8)
    blocked = CrossBatchMemory(losses.create("ranked_list", engine="blocked"), dim=DIM, size=8)
    for _ in range(2):
        assert dense(embeddings.half(), labels).item() == pytest.approx(blocked(embeddings.half(), labels).item())


def test_bad_input() -> None:
    with pytest.raises(TypeError, match="^loss must be a pair loss, got Softmax: a memory adds columns of samples"):
        CrossBatchMemory(losses.create("softmax", classes=2, dim=2), dim=2)  # type: ignore[arg-type]
    with pytest.raises(
        ValueError, match="^CrossBatchMemory: size must be a whole number at least 1, got 0; change size"
    ):
        CrossBatchMemory(losses.create("contrastive"), dim=2, size=0)
    memory = CrossBatchMemory(losses.create("contrastive"), dim=2)
    with pytest.raises(
        ValueError, match="^embeddings must have the memory's dim 2, got 3; create the memory with dim=3"
    ):
        memory(torch.ones(4, 3), torch.arange(4))
    with pytest.raises(TypeError) as caught:
        CrossBatchMemory(losses.create("contrastive"), embedding_size=8)
    assert str(caught.value) == (
        "CrossBatchMemory: setting 'embedding_size' is not known; pass dim=, the number of embedding dimensions, and size=, "
        "that of the samples it holds."
    )
    with pytest.raises(
        TypeError, match="^CrossBatchMemory needs dim=, got none; pass the number of embedding dimensions.$"
    ):
        CrossBatchMemory(losses.create("contrastive"))


@pytest.mark.parametrize("wrong", ["positive", "negative", "gallery", "gallery_labels", "self_index", "valid", "waits"])
def test_its_columns_are_its_own(wrong: str) -> None:
    memory = CrossBatchMemory(losses.create("contrastive"), dim=2)
    embeddings, labels = torch.ones(4, 2), torch.arange(4)
    sentence = (
        f"{wrong} must not be given to a CrossBatchMemory, got one: it compares the batch with itself and with what it "
        f"holds, by labels; leave it out, or call the loss itself with memory.embeddings as gallery."
    )
    with pytest.raises(TypeError) as caught:
        memory(embeddings, labels, **{wrong: labels})
    assert str(caught.value) == sentence
    if wrong == "gallery":
        with pytest.raises(TypeError) as caught:
            memory(embeddings, labels, embeddings, labels)
        assert str(caught.value) == sentence
    assert not memory.filled.any()


@pytest.mark.parametrize("bad", [torch.inf, -torch.inf, torch.nan])
def test_one_bad_batch_does_not_stay(bad: float) -> None:
    """The value is NaN once, and what was not finite is as if it had never come."""
    embeddings, labels = batch(0, 4, grad=False)
    memory = CrossBatchMemory(losses.create("contrastive"), dim=DIM, size=8)
    broken = embeddings.float().clone()
    broken[1, 0] = bad
    assert torch.isnan(memory(broken, labels))
    assert memory.filled.tolist() == [True, False, True, True] + 4 * [False]
    assert torch.isfinite(memory.embeddings).all()
    assert torch.isfinite(memory(embeddings.float(), labels))
    beyond = CrossBatchMemory(losses.create("contrastive"), dim=DIM, size=8)
    beyond.put(embeddings.double() * 1e300, labels)  # finite, but not in the type of the memory
    assert not beyond.filled.any()
