"""The reference against values worked out by hand on a few points of the plane."""

import math
import random as python_random
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from sklearn.metrics import normalized_mutual_info_score
from torch import Tensor

from . import losses, metrics, miners, weights
from .losses.struct_clust import objective, select
from .samples import Samples

ROOT3 = math.sqrt(3)
D12 = math.sqrt(2 - ROOT3)  # distance of two unit vectors 30 degrees apart
COS = {degrees: math.cos(math.radians(degrees)) for degrees in range(0, 181, 10)}


def sigmoid(value: float) -> float:
    return 1 / (1 + math.exp(-value))


def softplus(value: float) -> float:
    return math.log(1 + math.exp(value))


def plane(degrees: Sequence[float], norms: Sequence[float] | None = None) -> Tensor:
    """Vectors of the plane by angle and norm."""
    rows = []
    for index, angle in enumerate(degrees):
        norm = 1.0 if norms is None else norms[index]
        rows.append([norm * math.cos(math.radians(angle)), norm * math.sin(math.radians(angle))])
    return torch.tensor(rows, dtype=torch.float64)


def three() -> Samples:
    """0, 60 and 90 degrees, labels 0, 0, 1: s01 = 1/2, s02 = 0, s12 = sqrt(3)/2; norms do not matter."""
    return Samples(plane([0, 60, 90], norms=[2, 1, 3]), [0, 0, 1])


def line(*positions: float) -> Tensor:
    return torch.tensor([[position, 0.0] for position in positions], dtype=torch.float64)


def near(expected: Any) -> Any:
    return pytest.approx(expected, rel=1e-12, abs=1e-13)


def numbers(values: Tensor | list[Tensor]) -> Any:
    return [value.item() for value in values] if isinstance(values, list) else values.item()


def test_samples_sets_and_measures() -> None:
    points = three()
    assert points.positive == [[1], [0], []]
    assert points.negative == [[2], [2], [0, 1]]
    assert points.triplet_list() == [(0, 1, 2), (1, 0, 2)]
    assert points.cosine(0, 1).item() == near(0.5)
    assert points.dot(0, 1).item() == near(1.0)
    assert points.distance(1, 2).item() == near(D12)
    assert points.raw_distance(0, 1).item() == near(ROOT3)
    assert points.unordered(points.positive) == [(0, 1)]
    assert points.unordered(points.negative) == [(0, 2), (1, 2)]


def test_duplicates_are_positives_but_the_query_is_not() -> None:
    f = plane([0, 0, 90]).requires_grad_()
    points = Samples(f, [0, 0, 1])
    assert points.positive[0] == [1]
    (gradient,) = torch.autograd.grad(points.distance(0, 1) + points.zero(), f)
    assert torch.equal(gradient, torch.zeros_like(f))
    apart = Samples(f, [0, 0, 1], gallery=f.detach(), gallery_labels=[0, 0, 1], self_index=[1, -1, -1])
    assert apart.positive == [[0], [0, 1], [2]]


def test_contrastive() -> None:
    assert numbers(losses.contrastive(three())) == near([0.5, ROOT3 / 2, ROOT3 / 2 - 0.5])
    push = (1 - D12) ** 2
    assert numbers(losses.contrastive(three(), distance="euclidean")) == near([1, 1 + push, push])
    raw = Samples(plane([0, 60, 90], norms=[2, 1, 1]), [0, 0, 1])
    value = losses.contrastive(raw, distance="euclidean", margin=3.0, normalize=False)[0]
    assert value.item() == near(3 + (3 - math.sqrt(5)) ** 2)


def test_triplet() -> None:
    assert numbers(losses.triplet(three())) == near((ROOT3 / 2 - 0.4) / 2)
    assert numbers(losses.triplet(three(), distance="euclidean")) == near((ROOT3 - 0.8) / 2)
    assert numbers(losses.triplet(three().with_triplets([]))) == 0
    raw = Samples(line(0, 2, 3), [0, 0, 1])
    assert numbers(losses.triplet(raw, distance="euclidean", normalize=False)) == near((0 + 3.2) / 2)


def test_n_pair() -> None:
    unit = Samples(plane([0, 60, 90]), [0, 0, 1])
    expected = [softplus(-0.5) + 0.02, softplus(ROOT3 / 2 - 0.5) + 0.02, 0.02]
    assert numbers(losses.n_pair(unit)) == near(expected)
    f = torch.tensor([[2, 0], [0, 1], [1, 1], [1, 2]], dtype=torch.float64)
    pairs = Samples(f, [0, 1, 0, 1])
    assert numbers(losses.n_pair(pairs, form="mc")) == near([math.log(2) + 0.08, softplus(-1) + 0.02])


def test_lifted_structure() -> None:
    inner = math.log(math.exp(1 - math.sqrt(2)) + math.exp(1 - D12)) + 1
    assert numbers(losses.lifted_structure(three())) == near(inner**2 / 2)
    square = Samples(plane([0, 60, 180, 240]), [0, 0, 1, 1])
    inner = math.log(2 * math.exp(-1) + 2 * math.exp(1 - ROOT3)) + 1
    assert numbers(losses.lifted_structure(square)) == near(inner**2 / 2)
    raw = Samples(line(0, 1, 3), [0, 0, 1])
    inner = math.log(math.exp(-2) + math.exp(-1)) + 1
    assert numbers(losses.lifted_structure(raw, normalize=False)) == near(inner**2 / 2)
    assert numbers(losses.lifted_structure(three(), form="generalized")) == near([0, ROOT3 / 2, 0])


def test_binomial_deviance() -> None:
    easy, strong = softplus(-25), softplus(50 * (ROOT3 / 2 - 0.5))
    expected = [math.log(2) + easy, math.log(2) + strong, (easy + strong) / 2]
    assert numbers(losses.binomial_deviance(three())) == near(expected)


def test_margin() -> None:
    value = losses.margin(three(), margin=0.3)
    assert numbers(value) == near((2 * 0.1 + 2 * (1.5 - math.sqrt(2)) + 2 * (1.5 - D12)) / 6)
    beta = torch.tensor(0.5, dtype=torch.float64, requires_grad=True)
    value = losses.margin(three(), beta=[beta, beta, beta])
    assert numbers(value) == near((2 * 0.7 + 2 * (0.7 - D12)) / 4)
    (gradient,) = torch.autograd.grad(value, beta)
    assert gradient.item() == near((-2 + 2) / 4)
    repeated = three().with_pairs([[1, 1], [], []], [[], [2], []])
    assert numbers(losses.margin(repeated, beta=0.5)) == near((2 * 0.7 + 0.7 - D12) / 3)


def test_multi_similarity() -> None:
    strong = softplus(50 * (ROOT3 / 2 - 0.5)) / 50
    assert numbers(losses.multi_similarity(three())) == near([0, math.log(2) / 2 + strong, 0])
    first = losses.multi_similarity(three(), epsilon=None)[0]
    assert first.item() == near(math.log(2) / 2 + softplus(-25) / 50)


def test_ranked_list() -> None:
    assert numbers(losses.ranked_list(three())) == near([0.2, 0.2 + 1.2 - D12, 1.2 - D12])
    points = Samples(plane([0, 60, 30]), [0, 1, 1])
    a, b = math.exp(10 * 0.2), math.exp(10 * (1.2 - D12))
    assert losses.ranked_list(points, balance=2)[0].item() == near(2 * (a * 0.2 + b * (1.2 - D12)) / (a + b))


def test_ranked_list_gradient() -> None:
    f = plane([0, 60, 90]).requires_grad_()
    points = Samples(f, [0, 0, 1])
    (gradient,) = torch.autograd.grad(losses.ranked_list(points)[0], f)
    assert torch.allclose(gradient, torch.tensor([[0, -ROOT3 / 2], [0, 0], [0, 0]], dtype=torch.float64))
    (gradient,) = torch.autograd.grad(losses.ranked_list(points, gallery_gradient=True)[0], f)
    assert torch.linalg.vector_norm(gradient[1]).item() == near(ROOT3 / 2)


def test_nra() -> None:
    eps = 1e-4
    points = Samples(line(0, 1, 4), [0, 0, 1])
    good = -2 * math.log(1 + eps)
    assert numbers(losses.nra(points)) == near([good, good, -math.log(eps)])
    points = Samples(line(0, 1, 2, 5), [0, 1, 0, 1])
    values = losses.nra(points)
    assert values[0].item() == near(-(math.log(1 - 1 / 32 + eps) + math.log(eps)))
    assert values[3].item() == near(-(math.log(0.5 + eps) + math.log(eps)))
    slack = losses.nra(points, range_slack=0.1)[0]
    far, close = (2 * 1.4 / 4.8) ** 4 / 2, (2 * 0.4 / 4.8) ** 4 / 2
    assert slack.item() == near(-(math.log(1 - far + eps) + math.log(close + eps)))
    assert numbers(losses.nra(Samples(line(0, 1), [0, 0]))) == [0, 0]


def test_nra_gradient_of_a_nearest_negative() -> None:
    f = line(0, 1, 2, 5).requires_grad_()
    points = Samples(f, [0, 1, 0, 1])
    (gradient,) = torch.autograd.grad(losses.nra(points)[0], f)
    # only r+ = (D02 - D01)/(D03 - D01) = 1/4 acts: dw/dr = power (2r)^3 = 1/2, l = -log(1 - w + eps)
    slope = 0.5 / (1 - 1 / 32 + 1e-4)
    assert gradient[:, 0].tolist() == near([0, slope * (-1 / 4 + 1 / 16), slope / 4, -slope / 16])
    (gradient,) = torch.autograd.grad(losses.nra(points, range_slack=0.1)[0], f)
    assert gradient[1, 0].item() < 0  # descent pushes the negative away


def test_histogram() -> None:
    points = Samples(plane([0, 60, 90]), [1, 0, 0])
    assert numbers(losses.histogram(points, bins=4)) == near((2 - ROOT3) / 2)
    assert numbers(losses.histogram(Samples(plane([0, 60, 90]), [0, 1, 0]), bins=4)) == near(1)
    top = Samples(plane([0, 0, 180]), [0, 0, 1])
    assert numbers(losses.histogram(top)) == near(0)


def test_angular() -> None:
    assert numbers(losses.angular(three())) == near(softplus(2 * ROOT3 - 2))
    assert numbers(losses.angular(three(), degrees=30)) == near(softplus(2 / ROOT3 - 4 / 3))


def test_quadruplet() -> None:
    points = Samples(plane([0, 60, 90, 180]), [0, 0, 1, 2])
    value = losses.quadruplet(points, first_margin=1.1, second_margin=1.2)
    assert numbers(value) == near((0.1 + 0.1 + ROOT3 + 4 * 0.2) / 4)
    mined = points.with_triplets([(1, 0, 2)])
    assert numbers(losses.quadruplet(mined)) == near(ROOT3)
    assert numbers(losses.quadruplet(three())) == 0


def test_struct_clust() -> None:
    points = Samples(plane([0, 60, 180, 240]), [0, 0, 1, 1])
    assert numbers(losses.struct_clust(points, gamma=4)) == near(6 - 2 * ROOT3)
    assert numbers(losses.struct_clust(points)) == near(0)


def test_struct_clust_selection_cannot_be_improved_by_a_swap() -> None:
    generator = torch.Generator().manual_seed(3)
    f = torch.randn(9, 3, dtype=torch.float64, generator=generator)
    labels = [i // 3 for i in range(9)]
    d = torch.cdist(f, f).tolist()
    chosen = select(d, labels, 1.0)
    best = objective(d, labels, chosen, 1.0)
    assert len(set(chosen)) == 3
    for position in range(3):
        for j in set(range(9)) - set(chosen):
            assert objective(d, labels, [*chosen[:position], j, *chosen[position + 1 :]], 1.0) <= best + 1e-12


def test_spectral_clust() -> None:
    f = torch.tensor([[1.0], [2.0], [2.0]], dtype=torch.float64, requires_grad=True)
    value = losses.spectral_clust(Samples(f, [0, 0, 1]))
    assert numbers(value) == near(10 / 9)
    (gradient,) = torch.autograd.grad(value, f)
    assert gradient[0].item() == near(-20 / 81)
    with pytest.raises(ValueError):
        losses.spectral_clust(Samples(plane([0, 90]), [0, 1]))


def test_circle() -> None:
    assert numbers(losses.circle(three())) == near([softplus(-12.8 + 7.2), softplus(47.2 + 7.2), 0])
    query = plane([0]).requires_grad_()
    points = Samples(query, [0], gallery=plane([60, 90]), gallery_labels=[0, 1])
    (gradient,) = torch.autograd.grad(losses.circle(points)[0], query)
    assert gradient[0, 1].item() == near(sigmoid(-5.6) * 80 * (0.4 - 0.9 * ROOT3 / 2))


def test_supcon() -> None:
    expected = [math.log(math.exp(0.5) + 1) - 0.5, math.log(math.exp(0.5) + math.exp(ROOT3 / 2)) - 0.5, 0]
    assert numbers(losses.supcon(three(), temperature=1)) == near(expected)


def test_nt_xent() -> None:
    assert numbers(losses.nt_xent(three(), temperature=0.5)) == near([softplus(-1), softplus(ROOT3 - 1), 0])


def test_smooth_ap() -> None:
    points = Samples(plane([0, 60, 90, 180]), [0, 0, 0, 1])
    first = (1 + sigmoid(-0.5)) / (1 + sigmoid(-0.5) + sigmoid(-1.5))
    second = (1 + sigmoid(0.5)) / (1 + sigmoid(0.5) + sigmoid(-1))
    values = losses.smooth_ap(points, temperature=1)
    assert values[0].item() == near(1 - (first + second) / 2)
    assert values[3].item() == 0


def test_recall_at_k() -> None:
    points = Samples(plane([0, 60, 90, 180]), [0, 0, 0, 1])
    a = 1 + sigmoid(-0.5) + sigmoid(-1.5)
    b = 1 + sigmoid(0.5) + sigmoid(-1)
    one = sigmoid(1 - a) + sigmoid(1 - b)
    two = (sigmoid(2 - a) + sigmoid(2 - b)) / 2
    assert losses.recall_at_k(points, ks=(1, 2), t2=1)[0].item() == near(1 - (one + two) / 2)
    alike = Samples(plane([0, 60, 90, 180]), [0, 0, 0, 0])
    assert losses.recall_at_k(alike, ks=(1,), t1=100, t2=1)[0].item() == near(0)


def at_sixty() -> tuple[Samples, Tensor]:
    """One query of class 0 at 60 degrees, proxies at 0 and 90 degrees."""
    return Samples(plane([60], norms=[2]), [0]), plane([0, 90], norms=[2, 3])


def test_softmax() -> None:
    assert numbers(losses.softmax(*at_sixty())) == near([softplus(3 * ROOT3 - 2)])
    assert numbers(losses.softmax(*at_sixty(), normalized=True)) == near([softplus(10 * ROOT3 - 10)])


def test_proxy_nca() -> None:
    assert numbers(losses.proxy_nca(*at_sixty())) == near([9 * (ROOT3 - 1)])
    values = losses.proxy_nca(three(), plane([10, 80, 200]), assignment="dynamic")
    assert numbers(values) == near([0, 18 * (COS[20] - COS[50]), 0])


def test_arcface() -> None:
    assert numbers(losses.arcface(*at_sixty(), degrees=30, scale=2)) == near([softplus(ROOT3)])
    behind = Samples(plane([170]), [0])
    target = 2 * (COS[170] - math.pi / 6 * 0.5)
    value = losses.arcface(behind, plane([0, 90]), degrees=30, scale=2)
    assert numbers(value) == near([softplus(2 * COS[80] - target)])
    assert math.isfinite(losses.arcface(behind, plane([0, 90]))[0].item())


def test_cosface() -> None:
    assert numbers(losses.cosface(*at_sixty())) == near([softplus(64 * (ROOT3 / 2 - 0.15))])


def test_sub_center_arcface() -> None:
    proxies = torch.stack([plane([0, 30]), plane([90, 180])])
    query = Samples(plane([60]), [0])
    value = losses.sub_center_arcface(query, proxies, degrees=30, scale=2)
    assert numbers(value) == near([softplus(ROOT3 - 1)])


def test_soft_triple() -> None:
    proxies = torch.stack([plane([0, 60]), plane([90, 180])])
    query = Samples(plane([60]), [0])
    own = (0.5 * math.exp(0.5) + math.exp(1)) / (math.exp(0.5) + math.exp(1))
    a, b = math.exp(ROOT3 / 2), math.exp(-0.5)
    other = (ROOT3 / 2 * a - 0.5 * b) / (a + b)
    value = losses.soft_triple(query, proxies, scale=2, gamma=1)
    assert numbers(value) == near([softplus(2 * (other - own + 0.01)) + 0.2 / 4 * (1 + math.sqrt(2))])
    single = losses.soft_triple(query, plane([0, 90])[:, None], scale=2)
    assert numbers(single) == near([softplus(2 * (ROOT3 / 2 - 0.5 + 0.01))])


ATTRACTION = (math.log(1 + math.exp(-1.8) + math.exp(-0.8)) + math.log(1 + math.exp(-1.8))) / 2


def test_proxy_anchor() -> None:
    value = losses.proxy_anchor(three(), plane([0, 90, 180]), scale=2)
    push = [
        softplus(0.2),
        math.log(1 + math.exp(0.2) + math.exp(ROOT3 + 0.2)),
        math.log(1 + math.exp(-1.8) + math.exp(-0.8) + math.exp(0.2)),
    ]
    assert numbers(value) == near(ATTRACTION + sum(push) / 3)


def test_proxy_repulsion() -> None:
    value = losses.proxy_repulsion(three(), plane([0, 90, 180]), scale=2)
    push = 2 * math.log(1 + math.exp(0.2) + math.exp(-1.8)) + math.log(1 + 2 * math.exp(0.2))
    assert numbers(value) == near(ATTRACTION + push / 3)
    value = losses.proxy_repulsion(three(), plane([0, 90, 180]), scale=2, variant=2)
    near_pair, far_pair, opposite = (
        math.exp(2 * (ROOT3 / 4 + 0.1)),
        math.exp(2 * (0.1 - ROOT3 / 4)),
        math.exp(2 * (0.1 - 1.25)),
    )
    push = math.log(1 + near_pair + opposite)
    push += math.log(1 + near_pair + far_pair) + math.log(1 + opposite + far_pair)
    assert numbers(value) == near(ATTRACTION + push / 3)


def test_all_and_random_miners() -> None:
    emptied = three().with_pairs([[], [], []], [[], [], []])
    assert miners.all(emptied).positive == three().positive
    assert miners.all(emptied).triplet_list() == three().triplet_list()
    assert miners.random(three()) == [{2: 1.0}, {2: 1.0}, {0: 0.5, 1: 0.5}]


def test_semihard() -> None:
    mined = miners.semihard(three())
    assert mined.triplets == [(0, 1, 2)]
    assert (mined.positive, mined.negative) == ([[1], [], []], [[2], [], []])
    assert miners.semihard(three(), fallback="easiest").triplets == [(0, 1, 2), (1, 0, 2)]
    row = Samples(plane([0, 60, 180, 90, 30]), [0, 0, 1, 1, 1])
    triplets = miners.semihard(row).triplets
    assert triplets is not None and triplets[0] == (0, 1, 3)


def test_hard() -> None:
    points = Samples(plane([0, 60, 90, 180, 150]), [0, 0, 0, 1, 2])
    assert miners.hard(points).triplets == [(0, 2, 4), (1, 0, 4), (2, 0, 4)]
    assert miners.hard(points).positive == [[2], [0], [0], [], []]


def test_vthm() -> None:
    mined = miners.vthm(three())
    assert (mined.positive, mined.negative) == ([[], [0], []], [[], [2], []])


def test_distance_weighted() -> None:
    angles = [0.0, 60.0, 20.0, 90.0]
    flat = plane(angles)
    points = Samples(torch.cat([flat, torch.zeros(4, 1, dtype=torch.float64)], dim=1), [0, 1, 1, 1])
    # three dimensions: weight 1/d with d = 1, d = 0.347 clipped to 0.5, d = 1.414 beyond the limit
    assert miners.distance_weighted(points)[0] == near({1: 1 / 3, 2: 2 / 3})
    # two dimensions: weight sqrt(1 - d^2/4)
    a, b = math.sqrt(1 - 1 / 4), math.sqrt(1 - 1 / 16)
    expected = {1: a / (a + b), 2: b / (a + b)}
    assert miners.distance_weighted(Samples(flat, [0, 1, 1, 1]))[0] == near(expected)
    assert miners.distance_weighted(Samples(plane([0, 180]), [0, 1])) == [{}, {}]


def test_non_trivial() -> None:
    mined = miners.non_trivial(three())
    assert (mined.positive, mined.negative) == ([[1], [0], []], [[], [2], [1]])
    assert miners.non_trivial(three(), margin=0.1).positive == [[], [], []]


def test_retrieval_metrics() -> None:
    # hits in order of similarity: row 0 [1, 0, 1], rows 1 and 3 [0, 1, 1], row 2 has no relevant item
    f, labels = plane([0, 60, 90, 180]), [0, 0, 1, 0]
    assert metrics.recall_at_k(f, labels, 1) == near(1 / 3)
    assert metrics.recall_at_k(f, labels, 2) == near(1)
    assert metrics.r_precision(f, labels) == near(1 / 2)
    assert metrics.map_at_r(f, labels) == near((1 / 2 + 1 / 4 + 1 / 4) / 3)
    assert metrics.mean_average_precision(f, labels) == near((5 / 6 + 7 / 12 + 7 / 12) / 3)
    tied = plane([0, 60, 60])
    assert metrics.recall_at_k(tied, [0, 1, 0], 1) == 0
    assert metrics.recall_at_k(tied, [0, 1, 0], 2) == 1
    assert metrics.recall_at_k(f[:1], [0], 1, gallery=f[1:], gallery_labels=[1, 0, 0]) == 0
    assert metrics.recall_at_k(f[:1], [0], 1, gallery=f[1:], gallery_labels=[0, 0, 0]) == 1


def test_nmi() -> None:
    assert metrics.nmi([0, 0, 0], [1, 1, 1]) == 1
    assert metrics.nmi([0, 0, 1], [1, 1, 1]) == 0
    # the clusters determine the classes, so I = H(y) = log 2, and H(g) = 1.5 log 2
    assert metrics.nmi([0, 0, 1, 1], [0, 1, 2, 2]) == near(math.log(2) / (1.25 * math.log(2)))
    generator = python_random.Random(0)
    for _ in range(50):
        size = generator.randint(2, 20)
        labels = [generator.randint(0, 3) for _ in range(size)]
        clusters = [generator.randint(0, 4) for _ in range(size)]
        assert metrics.nmi(labels, clusters) == near(normalized_mutual_info_score(labels, clusters))


def test_pair_f1() -> None:
    assert metrics.pair_f1([0, 0, 1, 1], [0, 0, 0, 1]) == near(2 / 5)
    assert metrics.pair_f1([0, 0, 1, 1], [5, 5, 3, 3]) == 1


def test_weights_by_hand() -> None:
    assert weights.contrastive(three()) == [{1: 1.0, 2: 0.0}, {0: 1.0, 2: 1.0}, {0: 0.0, 1: 1.0}]
    assert weights.triplet(three()) == [{1: 0.0, 2: 0.0}, {0: 1.0, 2: 1.0}, {}]
    assert weights.lifted_structure(three())[1] == {0: 1.0, 2: 1.0}
    row = weights.binomial_deviance(three())[2]
    assert row == near({0: 25 * sigmoid(-25), 1: 25 * sigmoid(25 * (ROOT3 - 1))})
    row = weights.multi_similarity(three())[1]
    assert row == near({0: 0.5, 2: sigmoid(25 * (ROOT3 - 1))})


def cloud(seed: int, dim: int = 5) -> Samples:
    generator = torch.Generator().manual_seed(seed)
    f = torch.randn(10, dim, dtype=torch.float64, generator=generator) + 0.7
    return Samples(f.requires_grad_(), [0, 0, 0, 1, 1, 1, 2, 2, 2, 3])


def row_sum(values: Tensor | list[Tensor], count: int) -> Tensor:
    return torch.stack(values).sum() if isinstance(values, list) else values * count


def triplets_of(samples: Samples) -> int:
    return len(samples.triplet_list())


@pytest.mark.parametrize(
    ("weigh", "loss", "settings"),
    [
        (weights.contrastive, losses.contrastive, {}),
        (weights.triplet, losses.triplet, {}),
        (weights.lifted_structure, losses.lifted_structure, {"form": "generalized"}),
        (weights.binomial_deviance, losses.binomial_deviance, {}),
        (weights.multi_similarity, losses.multi_similarity, {}),
    ],
)
def test_weights_are_gradient_equivalent(
    weigh: Callable[[Samples], list[dict[int, float]]], loss: Callable[..., Any], settings: dict[str, str]
) -> None:
    samples = cloud(1)
    (expected,) = torch.autograd.grad(row_sum(loss(samples, **settings), triplets_of(samples)), samples.queries)
    value = samples.zero()
    for i, row in enumerate(weigh(samples)):
        for j, weight in row.items():
            value = value + (-weight if samples.same(i, j) else weight) * samples.cosine(i, j)
    (gradient,) = torch.autograd.grad(value, samples.queries)
    assert torch.allclose(gradient, expected, rtol=1e-10, atol=1e-12)


PROXY_SHAPES = {
    "softmax": (4,),
    "proxy_nca": (4,),
    "arcface": (4,),
    "cosface": (4,),
    "proxy_anchor": (4,),
    "proxy_repulsion": (4,),
    "sub_center_arcface": (4, 3),
    "soft_triple": (4, 3),
}


def evaluate(name: str, samples: Samples) -> Tensor:
    extra = []
    if name in PROXY_SHAPES:
        generator = torch.Generator().manual_seed(9)
        shape = (*PROXY_SHAPES[name], samples.queries.shape[1])
        extra.append(torch.randn(shape, dtype=torch.float64, generator=generator))
    return row_sum(getattr(losses, name)(samples, *extra), 1)


@pytest.mark.parametrize("name", losses.__all__)
def test_finite_with_duplicates_and_lonely_classes(name: str) -> None:
    f = cloud(2).queries.detach().clone()
    f[1], f[4] = f[0], f[0]
    f.requires_grad_()
    for labels in ([0, 0, 0, 1, 1, 1, 2, 2, 2, 3], [0] * 10, list(range(10))):
        if max(labels) > 3 and name in PROXY_SHAPES:
            continue
        value = evaluate(name, Samples(f, labels))
        (gradient,) = torch.autograd.grad(value, f)
        assert math.isfinite(value.item())
        assert torch.isfinite(gradient).all()


@pytest.mark.parametrize("name", sorted(set(losses.__all__) - {"spectral_clust"}))
def test_a_copied_gallery_changes_no_value(name: str) -> None:
    samples = cloud(3)
    copied = Samples(
        samples.queries,
        samples.labels,
        gallery=samples.queries.detach().clone(),
        gallery_labels=samples.labels,
        self_index=list(samples.rows),
    )
    assert evaluate(name, copied).item() == near(evaluate(name, samples).item())


SMOOTH = sorted(set(losses.__all__) - {"ranked_list", "circle"})


@pytest.mark.parametrize("name", SMOOTH)
def test_gradient_is_the_finite_difference(name: str) -> None:
    samples = cloud(4, dim=3)
    f = samples.queries.detach()
    direction = torch.randn(f.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(5))
    (gradient,) = torch.autograd.grad(evaluate(name, samples), samples.queries)
    step = 1e-6
    above = evaluate(name, Samples(f + step * direction, samples.labels)).item()
    below = evaluate(name, Samples(f - step * direction, samples.labels)).item()
    slope = (gradient * direction).sum().item()
    assert slope == pytest.approx((above - below) / (2 * step), rel=1e-5, abs=1e-6)
