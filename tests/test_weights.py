"""The pair-weight view: closed forms of the unified view, gradient equivalence, and losses made of rules."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from nearkin import WeightedPairs, curve, losses, pair_weights, weights
from nearkin.memory import CrossBatchMemory
from tests.losses.cases import ALL, DIM, FIXED, PAIR, Case, batch, gradients
from tests.reference import weights as closed_forms
from tests.reference.miners import hard
from tests.reference.samples import Samples

CLOSED: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("contrastive", {"margin": 0.3}, {"margin": 0.3}),
    ("lifted_structure", {"form": "generalized", "margin": 0.5}, {"margin": 0.5}),
    ("binomial_deviance", {}, {"alpha": 2.0, "beta": 50.0, "gamma": 0.5}),
    ("multi_similarity", {}, {"alpha": 2.0, "beta": 50.0, "gamma": 0.5, "epsilon": 0.1}),
    ("multi_similarity", {"epsilon": None}, {"alpha": 2.0, "beta": 50.0, "gamma": 0.5, "epsilon": None}),
]


def matrix(rows: list[dict[int, Any]], m: int) -> Tensor:
    return torch.tensor([[float(row.get(j, 0.0)) for j in range(m)] for row in rows], dtype=torch.float64)


@pytest.mark.parametrize(("name", "chosen", "closed"), CLOSED, ids=str)
@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_closed_forms_of_the_paper_are_n_times_the_weights(
    name: str, chosen: dict[str, Any], closed: dict[str, Any], seed: int
) -> None:
    embeddings, labels = batch(seed, 9, grad=False)
    view = pair_weights(losses.create(name, **chosen), embeddings, labels)
    expected = matrix(getattr(closed_forms, name)(Samples(embeddings, labels.tolist()), **closed), 9)
    torch.testing.assert_close(view.weights * 9, expected, rtol=1e-9, atol=1e-10)


def test_the_closed_form_of_triplet_is_per_triplet() -> None:
    embeddings, labels = batch(3, 9, grad=False)
    samples = hard(Samples(embeddings, labels.tolist()))
    view = pair_weights(losses.create("triplet", miner="hard", margin=0.4), embeddings, labels)
    assert samples.triplets
    expected = matrix(closed_forms.triplet(samples, margin=0.4), 9)
    assert expected.sum() > 0
    torch.testing.assert_close(view.weights * len(samples.triplets), expected)


@pytest.mark.parametrize("case", [c for c in FIXED if c.name not in ("nra", "n_pair")], ids=lambda case: case.id)
def test_the_weighted_sum_has_the_gradient_of_the_loss(case: Case) -> None:
    """sum_i (sum_N w s - sum_P w s) with w constant is gradient-equivalent to L, through the similarities."""
    embeddings, labels = batch(1, 11)
    loss = case.make()
    if case.settings.get("normalize") is False or case.name == "spectral_clust":
        pytest.skip("a loss of raw vectors also depends on their norms, which are no pair")
    view = pair_weights(loss, embeddings, labels)
    space = loss.space
    samples = space.prepare(embeddings)
    others = samples
    if case.proxy:
        centers = loss.proxies.transpose(0, 1) if loss.proxies.dim() == 3 else loss.proxies
        proxies = space.prepare(centers.flatten(0, -2))
        rows, columns = (proxies, samples) if loss.proxies_are_rows else (samples, proxies)
    else:
        rows, columns = samples, others if loss.column_gradient else others.detach()
    similarity = rows @ columns.T
    weighted = (view.weights.detach() * similarity * (view.negative.double() - view.positive.double())).sum()
    torch.testing.assert_close(
        gradients(weighted, embeddings)[0], gradients(loss(embeddings, labels), embeddings)[0], rtol=1e-7, atol=1e-9
    )


def test_nra_gives_weights_of_the_wrong_sign() -> None:
    """The claim w >= 0 of the unified view fails: the widest pair of a row sets the scale and is pushed the wrong way."""
    embeddings, labels = batch(0, 12, grad=False)
    embeddings = embeddings + 2 * torch.nn.functional.one_hot(labels, 5)[:, :DIM]
    view = pair_weights(losses.create("nra"), embeddings, labels)
    assert (view.weights < -1e-6).any()
    found = curve(losses.create("nra"))
    assert (found.negative < -1e-6).any()


@pytest.mark.parametrize(
    "name", ["contrastive", "binomial_deviance", "multi_similarity", "ranked_list", "triplet", "supcon"]
)
def test_weights_of_the_usual_losses_have_the_right_sign_where_the_paper_says(name: str) -> None:
    embeddings, labels = batch(0, 12, grad=False)
    view = pair_weights(losses.create(name), embeddings, labels)
    assert (view.weights[view.negative] >= 0).all()
    if name != "supcon":  # other positives stand in its denominator
        assert (view.weights[view.positive] >= 0).all()


def test_nra_loses_the_gradient_of_a_nearest_negative_and_slack_restores_it() -> None:
    embeddings = torch.tensor([[0.0], [2.0], [1.0], [9.0]], dtype=torch.float64)  # nearest to row 0 is a negative
    nobody, others = torch.zeros(4, 4), 1 - torch.eye(4)  # the negative term alone
    plain = pair_weights(losses.create("nra"), embeddings, None, positive=nobody, negative=others)
    slack = pair_weights(losses.create("nra", range_slack=0.1), embeddings, None, positive=nobody, negative=others)
    assert plain.weights[0, 2].abs() < 1e-12
    assert slack.weights[0, 2] > 1e-3


def test_raw_and_multi_similarity_have_equal_curves() -> None:
    raw, multi = curve(losses.create("raw")), curve(losses.create("multi_similarity"))
    assert torch.equal(raw.positive, multi.positive)
    assert torch.equal(raw.negative, multi.negative)


def test_the_curves_of_the_paper() -> None:
    """Figure 1: contrastive is a step, binomial a sigmoid of the pair alone, vthm cuts easy pairs to 0."""
    contrastive = curve(losses.create("contrastive"))
    s = contrastive.similarity
    assert torch.equal(contrastive.positive, torch.ones_like(s))
    assert torch.equal(contrastive.negative, (s > 0.5).double())
    binomial = curve(losses.create("binomial_deviance"))
    torch.testing.assert_close(binomial.positive, 2 / 3 * torch.sigmoid(2 * (0.5 - s)))
    torch.testing.assert_close(binomial.negative, 50 / 12 * torch.sigmoid(50 * (s - 0.5)))
    mined, unmined = curve(losses.create("multi_similarity")), curve(losses.create("multi_similarity", epsilon=None))
    easy = s < 0.24
    assert (mined.negative[easy] == 0).all()
    assert (unmined.negative[easy] > 0).any()


@pytest.mark.parametrize("case", ALL, ids=lambda case: case.id)
def test_every_loss_has_a_curve(case: Case) -> None:
    loss = case.make()
    state = {key: value.clone() for key, value in loss.state_dict().items()}
    found = curve(loss, points=21)
    assert found.similarity.shape == found.positive.shape == found.negative.shape == (21,)
    assert torch.isfinite(found.positive).all()
    assert torch.isfinite(found.negative).all()
    # spectral clusterings move together; variant 1 of proxy_repulsion has no negative pairs of samples and proxies.
    if case.name != "struct_clust":
        assert found.positive.abs().max() > 0
    assert loss.training
    assert all(torch.equal(loss.state_dict()[key], value) for key, value in state.items())


def test_the_closed_form_of_spectral_clust_is_its_gradient() -> None:
    """(G + G^T) F = dL / dF for the matrix of inner products, norms included."""
    embeddings, labels = batch(1, 11)
    loss = losses.create("spectral_clust")
    plan: Any = loss.plan(embeddings, labels)
    both = weights.similarity_gradient(loss, plan, (embeddings @ embeddings.T).detach())
    torch.testing.assert_close((both + both.T) @ embeddings, gradients(loss(embeddings, labels), embeddings)[0])


def test_a_rule_becomes_a_loss() -> None:
    """RAW's closed-form weights as a rule train exactly like multi_similarity."""
    embeddings, labels = batch(5, 11)
    alpha, beta, gamma = 2.0, 50.0, 0.5

    def raw_rule(s: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        pull, push = torch.exp(-alpha * (s - gamma)), torch.exp(beta * (s - gamma))
        return torch.where(
            positive > 0,
            pull / (1 + (pull * positive).sum(1, keepdim=True)),
            push / (1 + (push * negative).sum(1, keepdim=True)),
        )

    expected = gradients(losses.create("multi_similarity")(embeddings, labels), embeddings)[0]
    for engine in ("dense", "blocked", "compiled:aot_eager"):
        loss = WeightedPairs(rule=raw_rule, miner="vthm", engine=engine)
        torch.testing.assert_close(gradients(loss(embeddings, labels), embeddings)[0], expected)


def test_a_rule_that_is_none() -> None:
    with pytest.raises(TypeError, match="^weighted_pairs: rule must be a function of .*, got int; pass a function"):
        WeightedPairs(rule=3)  # type: ignore[arg-type]
    loss = WeightedPairs(rule=lambda s, positive, negative: s[:, :2])
    with pytest.raises(
        ValueError, match=r"^rule must return weights of shape \(9, 9\), got \(9, 2\); return one weight per pair"
    ):
        loss(*batch(0, 9))
    loss = WeightedPairs(rule=lambda s, positive, negative: (s, s))  # type: ignore[arg-type, return-value]
    with pytest.raises(
        TypeError,
        match=r"^rule must return a tensor of weights of shape \(9, 9\), got tuple; return one weight per pair",
    ):
        loss(*batch(0, 9))


@pytest.mark.parametrize(
    ("settings", "came"),
    [
        ({}, "none"),
        ({"rule": 3}, "int"),
        ({"rule": lambda s, positive: s}, "one of (s, positive)"),
        ({"rule": lambda s, positive, negative, margin: s}, "one of (s, positive, negative, margin)"),
    ],
)
def test_a_rule_is_checked_when_the_loss_is_made(settings: dict[str, Any], came: str) -> None:
    with pytest.raises(TypeError) as caught:
        WeightedPairs(**settings)
    wanted = "weighted_pairs: rule must be a function of (similarity, positive, negative)"
    remedy = "return one weight per pair" if came.startswith("one") else "pass a function that returns weights"
    assert str(caught.value) == f"{wanted}, got {came}; {remedy}."


def test_a_weighted_loss_is_made_again_by_its_class() -> None:
    loss = WeightedPairs(rule=lambda s, positive, negative: s, miner="vthm")
    assert WeightedPairs(**loss.settings).settings == loss.settings


@pytest.mark.parametrize("look", [curve, lambda loss: pair_weights(loss, *batch(0, 6))], ids=["curve", "pair_weights"])
@pytest.mark.parametrize(
    ("loss", "came"),
    [
        ("contrastive", "'contrastive'"),
        (CrossBatchMemory(losses.create("contrastive"), dim=DIM), "CrossBatchMemory"),
        (None, "NoneType"),
    ],
)
def test_what_is_no_loss_has_no_weights(look: Any, loss: Any, came: str) -> None:
    with pytest.raises(TypeError) as caught:
        look(loss)
    sentence = f"loss must be a pair or proxy loss, got {came}; pass losses.create(NAME), and of a memory memory.loss."
    assert str(caught.value) == sentence


@pytest.mark.parametrize(
    ("name", "changes", "sentence"),
    [
        ("margin", {"embeddings": np.eye(4)}, "embeddings must be a tensor of shape (rows, dim), got ndarray; "),
        ("proxy_nca", {"embeddings": np.eye(4)}, "embeddings must be a tensor of shape (rows, dim), got ndarray; "),
        ("proxy_nca", {"embeddings": torch.eye(4)[:, :3]}, "embeddings must have dim 4 for proxy_nca, got 3; "),
        ("proxy_nca", {"labels": None}, "labels must be an integer tensor of shape (4,), got NoneType; "),
        ("proxy_nca", {"positive": torch.eye(4)}, "positive must not be given to proxy_nca, got one: "),
    ],
)
def test_what_has_no_weights_is_one_sentence(name: str, changes: dict[str, Any], sentence: str) -> None:
    given: dict[str, Any] = {"embeddings": torch.eye(4), "labels": torch.tensor([0, 0, 1, 1])}
    with pytest.raises((ValueError, TypeError)) as caught:
        pair_weights(losses.example(name, {}, dim=4), **{**given, **changes})
    assert str(caught.value).startswith(sentence)


def test_pair_weights_of_masks_need_no_labels() -> None:
    embeddings, labels = batch(0, 6, grad=False)
    positive = (labels[:, None] == labels) & ~torch.eye(6, dtype=torch.bool)
    negative = labels[:, None] != labels
    by_masks = pair_weights(losses.create("margin"), embeddings, positive=positive, negative=negative)
    torch.testing.assert_close(by_masks.weights, pair_weights(losses.create("margin"), embeddings, labels).weights)


def test_pair_weights_of_a_gallery() -> None:
    embeddings, labels = batch(0, 6, grad=False)
    gallery, gallery_labels = batch(1, 9, grad=False)
    for case in PAIR:
        if case.rowwise:
            view = pair_weights(case.make(), embeddings, labels, gallery, gallery_labels)
            assert view.weights.shape == (6, 9)
    assert embeddings.shape[1] == DIM
