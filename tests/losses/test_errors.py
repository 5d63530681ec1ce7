"""What bad input gets: one sentence with the argument, what it must be, what came and the remedy; nothing changed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from nearkin import CrossBatchMemory, losses, masks, miners
from nearkin.checks import Limit
from tests.losses.cases import ALL, CLASSES, DIM, PAIR, Case, batch

X, Y = batch(0, 6, grad=False)
CONTRASTIVE = losses.create("contrastive")

CALLS: list[tuple[str, dict[str, Any], type[Exception], str]] = [
    (
        "labels too short",
        {"embeddings": X, "labels": Y[:5]},
        ValueError,
        "labels must have one entry per row of embeddings (6), got 5; pass the labels of exactly these rows.",
    ),
    (
        "labels of two dimensions",
        {"embeddings": X, "labels": Y[:, None]},
        ValueError,
        "labels must have shape (6,), got (6, 1); pass one class number per row of embeddings.",
    ),
    (
        "float labels",
        {"embeddings": X, "labels": Y.float()},
        TypeError,
        "labels must be an integer tensor, got torch.float32; convert class names or one-hot rows to class numbers of "
        "type int64.",
    ),
    (
        "boolean labels",
        {"embeddings": X, "labels": Y > 1},
        TypeError,
        "labels must be an integer tensor, got torch.bool; convert class names or one-hot rows to class numbers of "
        "type int64.",
    ),
    (
        "labels as a list",
        {"embeddings": X, "labels": Y.tolist()},
        TypeError,
        "labels must be an integer tensor of shape (6,), got list; wrap it with torch.as_tensor.",
    ),
    (
        "labels as names",
        {"embeddings": X, "labels": ["cat", "cat", "dog", "dog", "owl", "owl"]},
        TypeError,
        "labels must be an integer tensor of shape (6,), got class names such as 'cat'; number the classes of all data "
        "once, numbers = {name: at for at, name in enumerate(sorted(set(names)))}, and pass "
        "torch.tensor([numbers[name] for name in batch]).",
    ),
    (
        "embeddings as a list",
        {"embeddings": X.tolist(), "labels": Y},
        TypeError,
        "embeddings must be a tensor of shape (rows, dim), got list; wrap it with torch.as_tensor.",
    ),
    (
        "levels of a network",
        {"embeddings": {"stage2": X, "stage3": X}, "labels": Y},
        TypeError,
        "embeddings must be a tensor of shape (rows, dim), got a dict of 'stage2', 'stage3'; pick a level, such as "
        "model(x)['stage3'].",
    ),
    (
        "integer embeddings",
        {"embeddings": X.long(), "labels": Y},
        TypeError,
        "embeddings must be a floating-point tensor, got torch.int64; convert it with .float().",
    ),
    (
        "embeddings of three dimensions",
        {"embeddings": X[None], "labels": Y},
        ValueError,
        "embeddings must have shape (rows, dim), got (1, 6, 3); reshape it to two dimensions.",
    ),
    (
        "no column",
        {"embeddings": X[:, :0], "labels": Y},
        ValueError,
        "embeddings must have at least one dimension, got shape (6, 0); check the layer that makes them.",
    ),
]
PAIR_CALLS: list[tuple[str, dict[str, Any], type[Exception], str]] = [
    (
        "no rows",
        {"embeddings": X[:0], "labels": Y[:0]},
        ValueError,
        "embeddings must hold at least 2 rows, got 0; a pair needs two samples: use a larger batch.",
    ),
    (
        "one row",
        {"embeddings": X[:1], "labels": Y[:1]},
        ValueError,
        "embeddings must hold at least 2 rows, got 1; a pair needs two samples: use a larger batch.",
    ),
    (
        "an empty gallery",
        {"embeddings": X, "labels": Y, "gallery": X[:0], "gallery_labels": Y[:0]},
        ValueError,
        "gallery must hold at least 1 row, got 0; drop empty batches.",
    ),
    (
        "no labels",
        {"embeddings": X},
        ValueError,
        "labels must be given where no positive mask is, got None; pass labels or positive.",
    ),
    (
        "gallery without labels",
        {"embeddings": X, "labels": Y, "gallery": X},
        ValueError,
        "gallery_labels must be given with gallery, got None; pass one label per gallery row.",
    ),
    (
        "gallery of another dim",
        {"embeddings": X, "labels": Y, "gallery": X[:, :2], "gallery_labels": Y},
        ValueError,
        "gallery must have the dim of embeddings (3), got 2; embed both with the same network.",
    ),
    (
        "gallery labels too long",
        {"embeddings": X, "labels": Y, "gallery": X[:5], "gallery_labels": Y},
        ValueError,
        "gallery_labels must have one entry per row of gallery (5), got 6; pass the labels of exactly these rows.",
    ),
    (
        "labels of a missing gallery",
        {"embeddings": X, "labels": Y, "gallery_labels": Y},
        ValueError,
        "gallery_labels needs a gallery, got none; pass gallery too or leave gallery_labels out.",
    ),
    (
        "own column a fraction",
        {"embeddings": X, "labels": Y, "gallery": X, "gallery_labels": Y, "self_index": Y.float()},
        TypeError,
        "self_index must be an integer tensor, got torch.float32; pass row numbers of the gallery of type int64.",
    ),
    (
        "own column outside",
        {"embeddings": X, "labels": Y, "gallery": X, "gallery_labels": Y, "self_index": Y * 0 + 6},
        ValueError,
        "self_index must be -1 or a column of gallery (below 6), got 6; pass the position of each query in the gallery.",
    ),
    (
        "mask of another shape",
        {"embeddings": X, "positive": torch.ones(6, 5)},
        ValueError,
        "positive must have shape (6, 6), one entry per pair of query and column, got (6, 5); build it from the same batch.",
    ),
    (
        "mask that is no tensor",
        {"embeddings": X, "positive": [1]},
        TypeError,
        "positive must be a boolean tensor or a tensor of counts of shape (6, 6), got list; "
        "pass one entry per pair of query and column.",
    ),
    (
        "masks of +1 and -1",
        {"embeddings": X, "positive": torch.eye(6) * 2 - 1},
        ValueError,
        "positive must hold no number below 0, got -1; pass 0 for a pair that does not count.",
    ),
    (
        "a mask that is not a number",
        {"embeddings": X, "positive": torch.eye(6) * torch.nan},
        ValueError,
        "positive must hold no number below 0, got nan; pass 0 for a pair that does not count.",
    ),
    (
        "negatives below 0",
        {"embeddings": X, "positive": torch.eye(6), "negative": -torch.ones(6, 6).int()},
        ValueError,
        "negative must hold no number below 0, got -1; pass 0 for a pair that does not count.",
    ),
    (
        "a pair on both sides",
        {"embeddings": X, "positive": torch.eye(6)[[1, 0, 2, 3, 4, 5]], "negative": torch.ones(6, 6) > 0},
        ValueError,
        "negative must leave out the pairs of positive, got 6 that are in both; pass each pair in one of them.",
    ),
    (
        "places of valid columns",
        {"embeddings": X, "labels": Y, "gallery": X, "gallery_labels": Y, "valid": torch.arange(6)},
        TypeError,
        "valid must be a boolean tensor, got torch.int64; pass True for the rows of gallery that count, as in "
        "torch.zeros(rows, dtype=torch.bool).index_fill(0, places, True).",
    ),
    (
        "counts of valid columns",
        {"embeddings": X, "labels": Y, "gallery": X, "gallery_labels": Y, "valid": torch.arange(6.0)},
        ValueError,
        "valid must hold 0 and 1 only, got other numbers; pass booleans.",
    ),
    (
        "valid of another length",
        {"embeddings": X, "labels": Y, "gallery": X, "gallery_labels": Y, "valid": torch.ones(5) > 0},
        ValueError,
        "valid must have one entry per row of gallery (6), got (5,); pass which gallery rows count.",
    ),
    (
        "negative alone",
        {"embeddings": X, "labels": Y, "negative": torch.ones(6, 6)},
        ValueError,
        "negative needs positive, got none; pass both masks, or labels instead.",
    ),
    (
        "weights of another length",
        {"embeddings": X, "labels": Y, "weights": torch.ones(5)},
        ValueError,
        "weights must have shape (6,), got (5,); pass one weight per row.",
    ),
    (
        "negative weights",
        {"embeddings": X, "labels": Y, "weights": -torch.ones(6)},
        ValueError,
        "weights must not be negative, got -1; clip them at 0.",
    ),
    (
        "learned weights",
        {"embeddings": X, "labels": Y, "weights": torch.ones(6, requires_grad=True)},
        ValueError,
        "weights must not want a gradient, got one that does; losses give it none, pass weights.detach().",
    ),
    (
        "unknown reduction",
        {"embeddings": X, "labels": Y, "reduction": "means"},
        ValueError,
        "contrastive: reduction 'means' is not known; did you mean 'mean'?",
    ),
]


@pytest.mark.parametrize(
    ("kind", "call", "error", "sentence"), CALLS + PAIR_CALLS, ids=lambda v: v if isinstance(v, str) else ""
)
def test_a_bad_batch_of_a_pair_loss(kind: str, call: dict[str, Any], error: type[Exception], sentence: str) -> None:
    with pytest.raises(error) as caught:
        CONTRASTIVE(**call)
    assert str(caught.value) == sentence


@pytest.mark.parametrize("case", ALL, ids=lambda case: case.id)
def test_every_loss_refuses_a_bad_batch_and_changes_nothing(case: Case) -> None:
    loss = case.make()
    before = {key: value.clone() for key, value in loss.state_dict().items()}
    for _, call, error, sentence in CALLS if case.proxy else CALLS + PAIR_CALLS[:2]:
        with pytest.raises(error) as caught:
            loss(**call)
        assert str(caught.value) == sentence
    after = loss.state_dict()
    assert all(torch.equal(after[key], value) for key, value in before.items())


@pytest.mark.parametrize("case", [case for case in ALL if case.proxy], ids=lambda case: case.id)
def test_proxy_losses_check_labels_and_dim(case: Case) -> None:
    loss = case.make()
    if case.settings.get("assignment") != "dynamic":
        for bad, low, high in ((Y * 0 + CLASSES, CLASSES, CLASSES), (Y * 0 - 1, -1, -1)):
            with pytest.raises(ValueError, match="^labels must") as caught:
                loss(X, bad)
            assert str(caught.value) == (
                f"labels must lie between 0 and classes - 1 = {CLASSES - 1}, got values from {low} to {high}; "
                f"renumber the labels or create the loss with more classes."
            )
    with pytest.raises(
        ValueError, match=f"^embeddings must have dim {DIM} for {case.name}, got 2; create the loss with dim=2"
    ):
        loss(X[:, :2], Y)
    with pytest.raises(ValueError, match=r"^embeddings must hold at least 1 row, got 0; drop empty batches\.$"):
        loss(X[:0], Y[:0])
    assert torch.isfinite(loss(X[:1], Y[:1])), "one sample and its proxies are a batch"
    with pytest.raises(TypeError, match=f"^{case.name} needs classes=, got none; pass the number of training classes"):
        losses.create(case.name, dim=3)
    with pytest.raises(ValueError, match=f"^{case.name}: dim must be a whole number at least 1, got 0; change dim"):
        losses.create(case.name, classes=3, dim=0)


@pytest.mark.gpu
@pytest.mark.parametrize("case", [case for case in ALL if case.proxy], ids=lambda case: case.id)
def test_labels_out_of_range_on_the_device_give_nan(case: Case) -> None:
    loss = case.make().cuda()
    if case.settings.get("assignment") != "dynamic":
        assert torch.isnan(loss(X.cuda(), (Y * 0 + CLASSES).cuda()))


@pytest.mark.parametrize("name", losses.names())
def test_a_misspelt_setting_names_the_nearest(name: str) -> None:
    known = [key for key in losses.LOSSES[name].limits if len(key) > 3]
    for key in known:
        with pytest.raises(TypeError) as caught:
            losses.create(name, **{key[:-1]: 1})
        assert (
            str(caught.value) == f"{losses.LOSSES[name].name}: setting {key[:-1]!r} is not known; did you mean {key!r}?"
        )
        with pytest.raises(TypeError):
            losses.LOSSES[name](**{key[:-1]: 1})


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("ranked_lists", "ranked_list"),
        ("proxyanchor", "proxy_anchor"),
        ("multisimilarity", "multi_similarity"),
        ("tripplet", "triplet"),
        ("ArcFace", "arcface"),
    ],
)
def test_a_misspelt_name_names_the_nearest(wrong: str, right: str) -> None:
    with pytest.raises(ValueError) as caught:
        losses.create(wrong)
    assert str(caught.value) == f"loss {wrong!r} is not known; did you mean {right!r}?"


def test_an_unlike_name_lists_all() -> None:
    with pytest.raises(ValueError, match=r"^loss '###' is not known; choose one of angular, arcface, .*, triplet\.$"):
        losses.create("###")


def test_settings_go_by_name() -> None:
    with pytest.raises(
        TypeError, match=r"^ranked_list takes its settings by name, got 1\.2 without one; the names are alpha"
    ):
        losses.RankedList(1.2)  # type: ignore[misc]


@pytest.mark.parametrize("case", ALL, ids=lambda case: case.id)
def test_every_setting_refuses_what_lies_outside_its_limit(case: Case) -> None:
    cls = losses.LOSSES[case.name]
    given = case.settings | ({"classes": CLASSES, "dim": DIM} if case.proxy else {})
    for key, limit in cls.limits.items():
        bad: list[Any] = ["x", float("nan"), float("inf")]
        if isinstance(limit, Limit):
            bad += [limit.low] if limit.low_open else [limit.low - 1] if limit.low > -1e9 else []
            bad += [limit.high + 1] if limit.high < 1e9 else []
            bad += [1.5] if limit.whole else []
            bad += [] if limit.none or key == "margin" else [None]
        for value in bad:
            with pytest.raises(ValueError) as caught:
                losses.create(case.name, **given | {key: value})
            text = str(caught.value)
            assert text.startswith(f"{cls.name}: {key} must be "), text
            assert f"got {value!r};" in text


@pytest.mark.parametrize(
    ("name", "settings", "sentence"),
    [
        (
            "ranked_list",
            {"alpha": 1.0, "margin": 1.2},
            "ranked_list: margin must be at most alpha = 1, got 1.2: the ball of "
            "positives has radius alpha - margin; lower margin or raise alpha.",
        ),
        (
            "ranked_list",
            {"temperature": -1},
            "ranked_list: temperature must be a finite number at least 0, got -1; change temperature.",
        ),
        (
            "supcon",
            {"temperature": -0.1},
            "supcon: temperature must be a finite number above 0, got -0.1; change temperature.",
        ),
        (
            "contrastive",
            {"normalize": False},
            "contrastive: normalize=False needs distance='euclidean', got 'cosine'; set "
            "distance='euclidean' or leave normalize at True.",
        ),
        (
            "contrastive",
            {"distance": "cosin"},
            "contrastive: distance must be 'cosine' or 'euclidean', got 'cosin'; choose one of these.",
        ),
        (
            "lifted_structure",
            {"form": "generalized", "normalize": False},
            "lifted_structure: normalize=False needs form='original', got 'generalized'; cosines are of unit vectors.",
        ),
        (
            "recall_at_k",
            {"ks": ()},
            "recall_at_k: ks must hold at least one k, got none; pass for example ks=(1, 2, 4, 8).",
        ),
        ("recall_at_k", {"ks": (0,)}, "recall_at_k: ks must be a whole number at least 1, got 0; change ks."),
        ("contrastive", {"engine": "block"}, "contrastive: engine 'block' is not known; did you mean 'blocked'?"),
        ("contrastive", {"miner": "semi_hard"}, "miner 'semi_hard' is not known; did you mean 'semihard'?"),
        ("contrastive", {"reduction": "sum"}, "contrastive: reduction 'sum' is not known; choose one of mean, none."),
        (
            "contrastive",
            {"seed": -1},
            "contrastive: seed must be a whole number at least 0 and at most 9223372036854775807, got -1; change seed.",
        ),
        (
            "histogram",
            {"reduction": "none"},
            "histogram has no value per anchor, got reduction='none': its two histograms are of "
            "all pairs of the batch; use reduction='mean'.",
        ),
        (
            "proxy_nca",
            {"classes": 3, "dim": 8, "assignment": "dynamic", "reduction": "none"},
            "proxy_nca has no value per anchor, got reduction='none': dynamic assignment reads the nearest proxies of "
            "the whole batch; use reduction='mean'.",
        ),
    ],
)
def test_impossible_settings(name: str, settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises((ValueError, TypeError)) as caught:
        losses.create(name, **settings)
    assert str(caught.value) == sentence


@pytest.mark.parametrize("settings", [{}, {"classes": 3, "dim": 8}], ids=["pairs", "proxies"])
def test_an_engine_that_is_set_later_is_checked_too(settings: dict[str, Any]) -> None:
    loss = losses.create("proxy_anchor" if settings else "contrastive", **settings)
    with pytest.raises(ValueError, match=r": engine 'blockd' is not known; did you mean 'blocked'\?$"):
        loss.engine = "blockd"
    assert loss.engine == "auto"
    loss.engine = "blocked"
    assert loss.engine == "blocked"


def test_a_miner_of_the_wrong_type() -> None:
    with pytest.raises(
        TypeError, match=r"^contrastive: miner must be a name, a function or None, got int; see nearkin\.miners"
    ):
        losses.create("contrastive", miner=3)
    sentence = (
        "contrastive: miner must be a function of (similarity, positive, negative), got one of (a, b); return the two masks "
        "of the pairs to keep."
    )
    with pytest.raises(TypeError) as caught:
        losses.create("contrastive", miner=lambda a, b: (a, b))
    assert str(caught.value) == sentence
    with pytest.raises(TypeError, match=r"^vthm: setting 'margn' is not known; did you mean 'margin'\?$"):
        miners.create("vthm", margn=0.1)
    with pytest.raises(TypeError, match=r"^hard takes no setting, got 'margin'; leave it out\.$"):
        miners.create("hard", margin=0.1)
    with pytest.raises(
        ValueError, match=r"^semihard: fallback must be None or 'easiest', got 'hardest'; choose one of these\.$"
    ):
        miners.create("semihard", fallback="hardest")


def test_n_pair_mc_needs_pairs() -> None:
    loss = losses.create("n_pair", form="mc")
    with pytest.raises(
        ValueError, match="^labels must hold every class exactly twice for n_pair form='mc', got a class 3 times"
    ):
        loss(X, torch.tensor([0, 0, 0, 1, 1, 2]))
    with pytest.raises(ValueError, match="^labels must be given for n_pair form='mc', got masks; pass labels"):
        loss(X, positive=torch.ones(6, 6))


def test_cluster_losses_need_a_partition() -> None:
    overlap = torch.eye(6, dtype=torch.bool)
    overlap[0, 1] = overlap[1, 2] = True
    for name in ("struct_clust", "spectral_clust"):
        with pytest.raises(
            ValueError, match=f"^positive must split the batch into classes for {name}, got overlapping sets"
        ):
            losses.create(name)(X, positive=overlap)
    with pytest.raises(
        ValueError, match="^embeddings must hold more rows than their rank for spectral_clust, got 3 rows of rank 3"
    ):
        losses.create("spectral_clust")(X[:3], Y[:3])
    for name in ("lifted_structure", "quadruplet"):
        with pytest.raises(
            ValueError, match=f"^gallery_labels must be given for {name} with a gallery, got masks only"
        ):
            losses.create(name)(X, gallery=X, positive=torch.ones(6, 6))


def test_margin_with_one_beta_per_class_needs_labels() -> None:
    loss = losses.create("margin", classes=CLASSES, miner=None).double()
    with pytest.raises(
        ValueError, match="^labels must be given for margin with one beta per class, got masks only; pass labels"
    ):
        loss(X, positive=torch.ones(6, 6))
    with pytest.raises(ValueError, match="^labels must lie between 0 and classes - 1 = 4, got values from 5 to 5"):
        loss(X, Y * 0 + 5)


def test_every_error_is_one_sentence() -> None:
    for _, _, _, sentence in CALLS + PAIR_CALLS:
        assert sentence.endswith((".", "?"))
        assert "\n" not in sentence


def test_proxy_losses_refuse_galleries_and_masks() -> None:
    assert all(not case.proxy for case in PAIR)
    loss = losses.create("softmax", classes=CLASSES, dim=DIM).double()
    calls: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
        ("gallery", (X, Y), {}),
        ("gallery", (), {"gallery": X, "gallery_labels": Y}),
        ("positive", (), {"positive": torch.ones(6, 6)}),
    ]
    for name, more, options in calls:
        with pytest.raises(TypeError) as caught:
            loss(X, Y, *more, **options)
        assert str(caught.value) == (
            f"{name} must not be given to softmax, got one: proxy losses compare samples with proxies and have no gallery "
            f"and no masks; leave it out, or use a pair loss."
        )
    with pytest.raises(TypeError, match=r"^softmax: argument 'weigths' is not known; did you mean 'weights'\?$"):
        loss(X, Y, weigths=torch.ones(6))


def test_numbers_of_numpy_are_numbers() -> None:
    """And kept as Python's own, so that they can be stored."""
    found = [
        losses.create("proxy_anchor", classes=np.int64(6), dim=np.int32(3), scale=np.float32(0.5)).settings,
        losses.create("recall_at_k", ks=np.array([1, 2]), t1=np.float64(0.5)).settings,
        losses.create("margin", learn_beta=np.bool_(False)).settings,
        miners.create("vthm", margin=np.float32(0.5)).settings,
    ]
    assert (found[0]["classes"], found[0]["dim"], found[0]["scale"]) == (6, 3, 0.5)
    assert (found[1]["ks"], found[1]["t1"], found[2]["learn_beta"], found[3]["margin"]) == ((1, 2), 0.5, False, 0.5)
    values = [value for part in found for value in part.values()]
    assert not any(type(value).__module__ == "numpy" for value in [*values, *found[1]["ks"]])
    assert CrossBatchMemory(losses.create("supcon"), dim=np.int64(3), size=np.int64(4)).embeddings.shape == (4, 3)
    with pytest.raises(ValueError, match="^proxy_anchor: classes must be a whole number at least 1, got 6.5; change"):
        losses.create("proxy_anchor", classes=np.float32(6.5), dim=3)


class Own(losses.PairLoss):
    """A loss as a user writes it, with what most easily goes wrong in its place."""

    name = "own"

    def rows(self, matrix: Tensor, mined: Any, extra: Any, sizes: Any) -> Any:
        return self.answer(matrix, mined)

    def answer(self, matrix: Tensor, mined: Any) -> Any:
        return (matrix * mined.positive).sum(1)


def test_arithmetic_with_few_columns_says_how_masks_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Works with few samples, where masks are matrices."""
    monkeypatch.setattr(masks, "SHARE", 8)
    monkeypatch.setattr(masks, "SMALL", 2**17)
    assert torch.isfinite(Own()(X, Y))
    labels = torch.arange(512) // 2
    embeddings = torch.randn(512, 4)
    sentence = (
        "a mask must be read with nearkin.pairs.split or take, got Few used as a matrix: large batches name the few columns "
        "that count instead; write near, p, far, n = split(matrix, mined.positive, mined.negative)."
    )
    for answer in (
        lambda matrix, mined: matrix * mined.positive,
        lambda matrix, mined: mined.positive * matrix,
        lambda matrix, mined: 1 - mined.positive,
        lambda matrix, mined: mined.positive > 0,
        lambda matrix, mined: mined.positive.sum(1),
    ):
        loss: Any = Own()
        loss.answer = answer
        with pytest.raises((TypeError, AttributeError)) as caught:
            loss(embeddings, labels)
        assert str(caught.value) == sentence


def test_arithmetic_with_the_whole_says_where_the_matrix_is() -> None:
    class Sums(losses.PairLoss):
        name = "sums"
        rowwise = False

        def whole(self, pairs: Any) -> Tensor:
            return (pairs * torch.ones(6, 6)).sum()

    with pytest.raises(TypeError) as caught:
        Sums()(X, Y)
    assert str(caught.value) == (
        "whole must take its matrix from what it is given, got arithmetic with Whole itself; write pairs.matrix, and "
        "nearkin.pairs.split(pairs.matrix, pairs.mined.positive, pairs.mined.negative) for the pairs that count."
    )


@pytest.mark.parametrize(
    ("base", "parts", "sentence"),
    [
        (losses.PairLoss, {}, "Mine: name must be a string, got none; write name = 'own' into the class."),
        (losses.ProxyLoss, {}, "Mine: name must be a string, got none; write name = 'own' into the class."),
        (losses.PairLoss, {"name": 3}, "Mine: name must be a string, got int; write name = 'own' into the class."),
        (
            Own,
            {"space": "cosine"},
            "own: space must be a Space, got 'cosine'; write space = losses.COSINE into the class, or UNIT_DISTANCE, DOT "
            "or RAW_SQUARE.",
        ),
        (
            losses.PairLoss,
            {"name": "own"},
            "own: rows must be written, got none; see docs/losses.md, A loss of your own.",
        ),
        (
            losses.PairLoss,
            {"name": "own", "rowwise": False},
            "own: whole must be written, got none; see docs/losses.md, A loss of your own.",
        ),
        (
            losses.ProxyLoss,
            {"name": "own"},
            "own: rows must be written, got none; see docs/losses.md, A loss of your own.",
        ),
    ],
)
def test_what_a_class_of_losses_lacks(base: type, parts: dict[str, Any], sentence: str) -> None:
    cls = type("Mine", (base,), parts)
    with pytest.raises(TypeError) as caught:
        cls(**{"classes": 3, "dim": 3} if base is losses.ProxyLoss else {})
    assert str(caught.value) == sentence


@pytest.mark.parametrize("engine", ["dense", "blocked"])
@pytest.mark.parametrize(
    ("answer", "came"),
    [
        (lambda matrix, mined: matrix.sum(), "shape ()"),
        (lambda matrix, mined: matrix, "shape (6, 6)"),
        (lambda matrix, mined: (matrix.sum(1), matrix), "shape (6,) and shape (6, 6)"),
        (lambda matrix, mined: (matrix.sum(1), 1, 2), "shape (6,) and int and int"),
        (lambda matrix, mined: (matrix.sum(1), None), "shape (6,) and NoneType"),
        (lambda matrix, mined: None, "NoneType"),
    ],
)
def test_what_rows_must_return(answer: Any, came: str, engine: str) -> None:
    loss: Any = Own(engine=engine)
    loss.answer = answer
    with pytest.raises(ValueError) as caught:
        loss(X, Y)
    assert str(caught.value) == (
        f"own: rows must return one value per row, of shape (6,), or two such tensors, numerators and counts, got {came}; "
        f"sum over the columns only, with .sum(1)."
    )


def test_a_loss_may_be_made_of_another() -> None:
    """With settings that the other does not know, checked when all are set."""

    class Wider(losses.Contrastive):
        name = "wider"
        limits = {"width": Limit(low=0)}

        def __init__(self, *, width: float = 1.0, **common: Any) -> None:
            super().__init__(**common)
            self.width = width

    assert Wider(width=2.0).width == 2.0
    with pytest.raises(ValueError, match="^wider: width must be a finite number at least 0, got -1; change width.$"):
        Wider(width=-1)
