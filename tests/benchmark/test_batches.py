"""The batches that losses are measured with hold what the losses weigh."""

from __future__ import annotations

import pytest
import torch

from nearkin import losses, pair_weights
from tests.benchmark.scripts import script

clustered = script("batches").clustered


@pytest.mark.parametrize("n", [180, 1024])
@pytest.mark.parametrize("name", ["ranked_list", "contrastive", "multi_similarity", "margin", "triplet"])
def test_every_loss_has_pairs_of_both_kinds_to_weigh_and_not_all(name: str, n: int) -> None:
    embeddings, labels = clustered(n, 4)
    same = labels[:, None] == labels
    apart = ~same
    same.fill_diagonal_(False)
    weighed = pair_weights(losses.create(name), embeddings, labels).weights != 0
    assert 0.0005 < weighed[apart].float().mean() < 0.3
    assert weighed[same].float().mean() > 0.1


def test_a_seed_is_a_batch() -> None:
    first, second, other = (clustered(180, 4, seed=seed)[0] for seed in (0, 0, 1))
    assert torch.equal(first, second) and not torch.equal(first, other)


def test_the_page_says_which_rows_had_other_batches() -> None:
    told, way = script("batches").told, script("batches").WAY
    new, old, plain = {"batch": way, "loss": "margin"}, {"loss": "contrastive"}, {"loss": "margin"}
    assert told([new]) == ""
    assert told([new, old]).startswith("1 of 2 rows were measured with batches in which no negative is near")
    assert "but in contrastive no negative had a weight" in told([new, old, plain])
    assert told([new, plain]).endswith("the same passes over the same matrices, and none is of these two.")
    assert told([old, {"loss": "ranked_list"}]).startswith("All rows were measured")
    assert "contrastive and ranked_list no negative" in told([old, {"loss": "ranked_list"}])
