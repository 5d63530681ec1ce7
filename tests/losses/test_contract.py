"""What every loss of the table must hold: invariances, round trips, module equals function."""

from __future__ import annotations

import importlib
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from nearkin import CrossBatchMemory, losses
from tests.losses.cases import ALL, CLASSES, DIM, FIXED, PAIR, Case, batch, gradients


def test_the_table_holds_every_name() -> None:
    assert {case.name for case in ALL} == set(losses.names())
    assert set(losses.LOSSES.values()) == {
        cls for cls in vars(losses).values() if isinstance(cls, type) and hasattr(cls, "name")
    }


@pytest.mark.parametrize("case", FIXED, ids=lambda case: case.id)
@settings(max_examples=5, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_the_order_of_the_batch_does_not_matter(case: Case, seed: int) -> None:
    n = 15 if case.name == "struct_clust" else 11
    embeddings, labels = batch(seed, n)
    if case.name == "struct_clust":
        # Either of two points serves the two equally well as a medoid, and the first is taken: classes of three, far
        # apart, leave no such ties.
        corners = torch.cat([torch.eye(DIM), -torch.eye(DIM)])[: int(labels.max()) + 1].to(embeddings)
        embeddings = 0.3 * embeddings + 4 * corners[labels]
    order = torch.randperm(n, generator=torch.Generator().manual_seed(seed))
    loss = case.make()
    torch.testing.assert_close(loss(embeddings[order], labels[order]), loss(embeddings, labels), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("case", [case for case in PAIR if not case.settings.get("classes")], ids=lambda case: case.id)
@settings(max_examples=5, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_the_names_of_the_classes_do_not_matter(case: Case, seed: int) -> None:
    embeddings, labels = batch(seed, 11)
    loss = case.make()
    loss.eval()
    renamed = torch.tensor([17, -3, 2**40, 0, 5])[labels]
    torch.testing.assert_close(loss(embeddings, renamed), loss(embeddings, labels), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("case", ALL, ids=lambda case: case.id)
@settings(max_examples=5, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_a_rotation_of_the_space_does_not_matter(case: Case, seed: int) -> None:
    embeddings, labels = batch(seed, 11)
    turn = torch.linalg.qr(torch.randn(DIM, DIM, generator=torch.Generator().manual_seed(seed), dtype=torch.float64))[0]
    loss = case.make()
    loss.eval()
    before = loss(embeddings, labels)
    if case.proxy:
        loss.proxies.data = loss.proxies.data @ turn
    torch.testing.assert_close(loss(embeddings @ turn, labels), before, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("case", ALL, ids=lambda case: case.id)
def test_state_and_settings_come_back(case: Case) -> None:
    embeddings, labels = batch(1, 11)
    loss = case.make()
    loss(embeddings, labels)
    again = losses.create(loss.name, **loss.settings).double()
    assert again.settings == loss.settings
    again.load_state_dict(loss.state_dict())
    assert again(embeddings, labels).item() == loss(embeddings, labels).item()
    assert loss.name in losses.LOSSES
    assert all(f"{key}=" in repr(loss) for key in loss.settings)


@pytest.mark.parametrize("case", ALL, ids=lambda case: case.id)
def test_learned_tensors_are_parameters_and_get_a_gradient(case: Case) -> None:
    embeddings, labels = batch(1, 11)
    loss = case.make()
    assert bool(list(loss.parameters())) == (case.proxy or case.name == "margin")
    if not list(loss.parameters()):
        return
    for parameter, grad in zip(loss.parameters(), gradients(loss(embeddings, labels), *loss.parameters()), strict=True):
        assert grad.shape == parameter.shape
        assert grad.abs().sum() > 0


FUNCTIONS: list[tuple[str, dict[str, Any], str, dict[str, Any]]] = [
    ("contrastive", {}, "contrastive", {"margin": 0.5}),
    ("contrastive", {"distance": "euclidean"}, "contrastive_euclidean", {"margin": 1.0}),
    ("lifted_structure", {"form": "generalized"}, "lifted_structure_generalized", {}),
    ("binomial_deviance", {}, "binomial_deviance", {}),
    ("multi_similarity", {"epsilon": None}, "multi_similarity", {}),
    ("ranked_list", {}, "ranked_list", {}),
    ("nra", {}, "nra", {}),
    ("circle", {}, "circle", {}),
    ("supcon", {}, "supcon", {}),
    ("nt_xent", {}, "nt_xent", {}),
    ("smooth_ap", {}, "smooth_ap", {"depth": 11}),
    ("recall_at_k", {}, "recall_at_k", {"depth": 11}),
]


@pytest.mark.parametrize(("name", "chosen", "function", "options"), FUNCTIONS, ids=lambda value: str(value)[:30])
def test_the_module_is_its_function(name: str, chosen: dict[str, Any], function: str, options: dict[str, Any]) -> None:
    """Each file's pure function of (matrix, positive, negative), called by hand with its defaults."""
    embeddings, labels = batch(2, 11)
    loss = losses.create(name, **chosen)
    pure = getattr(importlib.import_module(f"nearkin.losses.{name}"), function)
    equal = labels[:, None] == labels
    positive, negative = (equal & ~torch.eye(11, dtype=torch.bool)).double(), (~equal).double()
    unit = embeddings / embeddings.norm(dim=1, keepdim=True)
    matrix = {
        "nra": torch.cdist(embeddings, embeddings, compute_mode="donot_use_mm_for_euclid_dist"),
        "ranked_list": torch.cdist(unit, unit, compute_mode="donot_use_mm_for_euclid_dist"),
        "contrastive_euclidean": torch.cdist(unit, unit, compute_mode="donot_use_mm_for_euclid_dist"),
    }.get(function, unit @ unit.T)
    torch.testing.assert_close(pure(matrix, positive, negative, **options), loss(embeddings, labels, reduction="none"))


@pytest.mark.parametrize("case", PAIR, ids=lambda case: case.id)
def test_explicit_masks_equal_labels(case: Case) -> None:
    embeddings, labels = batch(2, 11)
    loss = case.make()
    loss.eval()
    positive = labels[:, None] == labels
    beta = {"labels": labels} if case.settings.get("classes") else {}
    expected = loss(embeddings, labels)
    torch.testing.assert_close(loss(embeddings, positive=positive, **beta), expected)
    torch.testing.assert_close(loss(embeddings, positive=positive, negative=~positive, **beta), expected)
    torch.testing.assert_close(
        loss(embeddings, positive=positive.int(), negative=(~positive).double(), **beta), expected
    )


@pytest.mark.parametrize(
    "case", [case for case in PAIR if case.name not in ("struct_clust", "spectral_clust")], ids=lambda case: case.id
)
def test_masks_may_overlap_like_multi_label_relevance(case: Case) -> None:
    """Relevance that is no partition into classes: a pair is positive when its members share a tag."""
    embeddings, _ = batch(2, 11)
    tags = torch.rand(11, 6, generator=torch.Generator().manual_seed(0)) < 0.2
    share = (tags.double() @ tags.double().T) > 0
    labels = {"labels": torch.zeros(11, dtype=torch.long)} if case.settings.get("classes") else {}
    value = case.make()(embeddings, positive=share, **labels)
    assert torch.isfinite(value)
    assert torch.isfinite(gradients(value, embeddings)[0]).all()
    left_out = share.clone()
    left_out[0] = left_out[:, 0] = False
    assert case.make()(embeddings, positive=left_out, negative=~share, **labels).item() != value.item()


@pytest.mark.parametrize("case", ALL, ids=lambda case: case.id)
def test_a_weight_of_zero_leaves_an_anchor_out_and_equal_weights_change_nothing(case: Case) -> None:
    embeddings, labels = batch(2, 11)
    loss = case.make()
    loss.eval()
    plain = loss(embeddings, labels)
    equal = loss(embeddings, labels, weights=torch.full((11,), 2.0))
    if case.name in ("struct_clust", "proxy_anchor", "proxy_repulsion"):  # sums over samples, not means
        assert equal.item() != plain.item()
    else:
        torch.testing.assert_close(equal, plain)
    weights = torch.ones(11)
    weights[3] = 0.0
    torch.testing.assert_close(
        loss(embeddings, labels, weights=weights), loss(embeddings, labels, weights=weights.double())
    )
    if case.rowwise and not (case.proxy and loss.proxies_are_rows):
        each = loss(embeddings, labels, weights=weights, reduction="none")
        assert each[3].item() == (
            loss.apart(loss.plan(embeddings, labels)).item() if case.name == "soft_triple" and loss.centers > 1 else 0
        )


@pytest.mark.parametrize("case", [case for case in PAIR if case.rowwise and not case.random], ids=lambda case: case.id)
def test_a_weight_of_two_counts_an_anchor_twice(case: Case) -> None:
    embeddings, labels = batch(2, 11)
    loss = case.make()
    weights = torch.ones(11)
    weights[4] = 2.0
    index = torch.tensor([*range(11), 4])
    twice = loss(embeddings[index], labels[index], embeddings, labels, self_index=index)
    torch.testing.assert_close(loss(embeddings, labels, weights=weights), twice)


def test_a_weight_counts_a_sample_as_that_many_equal_ones_for_spectral_clust() -> None:
    embeddings, labels = batch(2, 11)
    loss = losses.create("spectral_clust")
    weights = torch.ones(11)
    weights[4] = 3.0
    index = torch.tensor([*range(11), 4, 4])
    torch.testing.assert_close(loss(embeddings, labels, weights=weights), loss(embeddings[index], labels[index]))
    gallery = torch.cat([embeddings, embeddings[:3] + 1])
    union = loss(embeddings, labels, gallery, torch.cat([labels, labels[:3]]), self_index=torch.arange(11))
    torch.testing.assert_close(union, loss(gallery, torch.cat([labels, labels[:3]])))


def test_n_pair_mc_takes_the_other_classes_second_elements() -> None:
    embeddings, _ = batch(2, 8)
    labels = torch.tensor([0, 1, 0, 2, 1, 2, 3, 3])
    first, second = embeddings[[0, 1, 3, 6]], embeddings[[2, 4, 5, 7]]
    dot = first @ second.T
    own = dot.diagonal()
    others = torch.exp(dot - own[:, None]).sum(1) - 1
    expected = (torch.log(1 + others) + 0.02 * first.square().sum(1)).mean()
    loss = losses.create("n_pair", form="mc")
    torch.testing.assert_close(loss(embeddings, labels), expected)
    torch.testing.assert_close(loss(first, torch.arange(4), second, torch.arange(4)), expected)
    torch.testing.assert_close(losses.create("n_pair", form="mc", engine="blocked")(embeddings, labels), expected)


def test_the_two_names_of_multi_similarity_are_one_loss() -> None:
    embeddings, labels = batch(2, 11)
    assert (
        losses.create("raw")(embeddings, labels).item() == losses.create("multi_similarity")(embeddings, labels).item()
    )


def test_classes_of_proxies_can_be_more_than_those_of_the_batch() -> None:
    embeddings, labels = batch(2, 11)
    for case in ALL:
        if case.proxy:
            assert torch.isfinite(case.make(classes=CLASSES + 20)(embeddings, labels))


@pytest.mark.parametrize("slack", [0.0, 0.1])
def test_nra_is_blind_to_scale_unless_its_range_is_constant(slack: float) -> None:
    """The derivative along the embeddings themselves is 0 in the paper's form; with constants for the range it is not."""
    embeddings, labels = batch(3, 20)
    [gradient] = torch.autograd.grad(losses.create("nra", range_slack=slack)(embeddings, labels), [embeddings])
    pull = float((embeddings.detach() * gradient).sum())
    assert abs(pull) < 1e-12 if slack == 0 else abs(pull) > 0.1


@pytest.mark.parametrize(("first", "second"), [("random", None), (None, "random"), ("random", "distance_weighted")])
@pytest.mark.parametrize("strict", [True, False])
def test_what_was_learned_is_loaded_under_another_miner(first: str | None, second: str | None, strict: bool) -> None:
    """Alone and as a part of something; a count of batches that is kept goes on."""
    embeddings, labels = batch(0)
    old, new = (losses.create("margin", miner=miner, beta=beta) for miner, beta in ((first, 0.7), (second, 1.2)))
    old(embeddings.float(), labels)
    found = new.load_state_dict(old.state_dict(), strict=strict)
    assert not found.missing_keys
    assert not found.unexpected_keys
    assert new.thresholds.item() == old.thresholds.item()  # type: ignore[operator, union-attr]
    if first and second:
        assert new.draws.item() == 1  # type: ignore[operator, union-attr]
    memories = [CrossBatchMemory(loss, dim=DIM) for loss in (old, new)]  # type: ignore[arg-type]
    torch.nn.ModuleDict({"level": memories[1]}).load_state_dict(
        torch.nn.ModuleDict({"level": memories[0]}).state_dict()
    )


@pytest.mark.parametrize("case", ALL, ids=lambda case: case.id)
def test_every_loss_has_groups_for_an_optimiser(case: Case) -> None:
    """All that is learned, once, at a rate of its own; nothing where nothing is learned."""
    faster = {"lr_multiplier": 100.0} if case.proxy or case.name == "margin" else {}
    loss = case.make(**faster)
    learned = [id(parameter) for parameter in loss.parameters()]
    groups = loss.parameter_groups(1e-3)
    assert [id(parameter) for group in groups for parameter in group["params"]] == learned
    assert [group["lr"] for group in groups] == ([pytest.approx(0.1)] if faster else [])
    if not case.proxy:
        [*memory] = CrossBatchMemory(loss, dim=DIM).parameter_groups(1e-3)
        assert [group["lr"] for group in memory] == [group["lr"] for group in groups]
    assert losses.create("margin", learn_beta=False).parameter_groups(1e-3) == []


@pytest.mark.parametrize("case", [case for case in ALL if case.rowwise], ids=lambda case: case.id)
def test_values_are_of_anchors_and_those_of_proxies_where_proxies_are(case: Case) -> None:
    embeddings, labels = batch(0, 9)
    values = case.make()(embeddings, labels, reduction="none")
    proxies = case.name in ("proxy_anchor", "proxy_repulsion")
    assert values.shape == ((CLASSES,) if proxies else (9,))
