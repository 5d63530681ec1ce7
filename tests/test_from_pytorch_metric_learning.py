"""The migration guide holds: its examples run, its tables are evaluated, and it names every class of the other library."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor
from torch.utils.data import DataLoader

import nearkin
from nearkin import evaluation, losses, miners, samplers

REASON = "pytorch-metric-learning is not installed, and the guide compares with it"
pml_losses = pytest.importorskip("pytorch_metric_learning.losses", reason=REASON)
pml_miners = pytest.importorskip("pytorch_metric_learning.miners", reason=REASON)
pml_samplers = pytest.importorskip("pytorch_metric_learning.samplers", reason=REASON)
pml_accuracy = pytest.importorskip("pytorch_metric_learning.utils.accuracy_calculator", reason=REASON)
pml_others = [
    pytest.importorskip(f"pytorch_metric_learning.{name}", reason=REASON)
    for name in ("distances", "reducers", "regularizers")
]

pytestmark = pytest.mark.filterwarnings("ignore")  # the other library's own warnings

GUIDE = (Path(__file__).parents[1] / "docs" / "from-pytorch-metric-learning.md").read_text(encoding="utf-8")
SEEDS = (0, 1, 2)
N, C, D = 12, 6, 4
CODE = re.compile(r"`([^`]+)`")
NAME = re.compile(r"`([A-Z]\w+)")


# ---------------------------------------------------------------------------------------------- reading the guide


def section(title: str) -> str:
    """The text under a heading, up to the next one."""
    found = re.search(rf"^#+ {re.escape(title)}\n(.*?)(?=^#+ |\Z)", GUIDE, re.M | re.S)
    assert found, title
    return found[1]


def table(title: str) -> list[list[str]]:
    """The cells of the rows of the first table under a heading."""
    lines = [line for line in section(title).splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def blocks(text: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", text, re.S)


def own_names() -> dict[str, Any]:
    """What the nearkin cells of the tables may use."""
    found: dict[str, Any] = {"torch": torch}
    for block in blocks(section("Losses")):
        exec(block, found)
    return found | {"create": losses.create, "miners": miners, "samplers": samplers, "C": C, "D": D}


def their_names() -> dict[str, Any]:
    found: dict[str, Any] = {"C": C, "D": D}
    for module in (*pml_others, pml_samplers, pml_miners, pml_losses):
        found |= vars(module)
    return found


class Row(NamedTuple):
    theirs: str
    miner: str | None
    ours: str
    batch: str
    verdict: str


def loss_rows() -> list[Row]:
    rows = []
    for theirs, ours, batch, verdict, _ in table("Losses"):
        their_code, our_code = CODE.findall(theirs), CODE.findall(ours)
        rows.append(Row(their_code[0], their_code[1] if len(their_code) > 1 else None, our_code[0], batch, verdict))
    return rows


ROWS = loss_rows()
EQUAL = [row for row in ROWS if row.verdict.startswith("equal")]
DIFFERENT = [row for row in ROWS if row.verdict == "differs"]


def label(row: Row) -> str:
    return " ".join([row.theirs, *([row.miner] if row.miner else []), row.ours]).replace(" ", "")


# ---------------------------------------------------------------------------------------------- batches


def of_sizes(*sizes: int) -> Tensor:
    return torch.arange(len(sizes)).repeat_interleave(torch.tensor(sizes))


def batch_of(kind: str, seed: int) -> tuple[Tensor, Tensor]:
    """A random batch of the kind that the guide names."""
    generator = torch.Generator().manual_seed(seed)
    embeddings = torch.randn(N, D, dtype=torch.float64, generator=generator)
    order = torch.randperm(N, generator=generator)
    if kind in ("any batch", "unit embeddings"):  # the caller of a loss normalises
        return embeddings, of_sizes(1, 1, 2, 4, 4)[order]
    if kind == "every anchor has a positive":
        return embeddings, of_sizes(2, 3, 3, 4)[order]
    if kind == "classes of equal size":
        return embeddings, of_sizes(3, 3, 3, 3)
    if kind == "N classes x 2":
        return embeddings, of_sizes(2, 2, 2, 2, 2, 2)[order]
    raise AssertionError(f"the guide names an unknown kind of batch: {kind}")


def pair_of_losses(row: Row, seed: int) -> tuple[Any, Any, Any]:
    """Both losses of a row with the same proxies, and the other library's miner."""
    torch.manual_seed(seed)
    # The guide's own words, which stand in this repository.
    theirs, ours = eval(row.theirs, their_names()), eval(row.ours, own_names())
    if isinstance(ours, losses.ProxyLoss):
        state = dict(theirs.named_parameters())
        source = state["proxies"] if "proxies" in state else state["W" if "W" in state else "fc"].T
        ours.proxies.data = source.data.reshape(ours.proxies.shape).clone()
    return theirs, ours, eval(row.miner, their_names()) if row.miner else None


def values(row: Row, kind: str, seed: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Value and gradient of the other library's loss and of ours."""
    theirs, ours, miner = pair_of_losses(row, seed)
    embeddings, labels = batch_of(kind, seed)
    unit = kind == "unit embeddings"
    results: list[Tensor] = []
    for loss in (theirs, ours):
        leaf = embeddings.clone().requires_grad_(True)
        mined = (miner(leaf.detach(), labels),) if loss is theirs and miner is not None else ()
        value = loss(torch.nn.functional.normalize(leaf, dim=1) if unit else leaf, labels, *mined)
        results += [value.detach(), torch.autograd.grad(value, leaf)[0]]
    return results[0], results[1], results[2], results[3]


def apart(a: Tensor, b: Tensor) -> bool:
    """The values differ by more than a thousandth."""
    return bool((a - b).abs() > 1e-3 * torch.maximum(a.abs(), b.abs()))


# ---------------------------------------------------------------------------------------------- losses


@pytest.fixture
def double() -> Iterator[None]:
    """The other library rounds some constants to the default dtype."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(before)


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("row", EQUAL, ids=label)
def test_equal_rows_are_equal(row: Row, seed: int) -> None:
    value, gradient, our_value, our_gradient = values(row, row.batch, seed)
    assert row.verdict in ("equal", "equal × n")
    factor = N if row.verdict == "equal × n" else 1
    assert float(value) != 0
    torch.testing.assert_close(value, factor * our_value, rtol=1e-6, atol=0)
    torch.testing.assert_close(gradient, factor * our_gradient, rtol=1e-5, atol=1e-6 * float(gradient.abs().max()))


@pytest.mark.parametrize("row", [row for row in EQUAL if row.batch != "any batch"], ids=label)
def test_equal_rows_differ_on_other_batches(row: Row) -> None:
    if row.batch == "N classes x 2":
        with pytest.raises(ValueError, match="exactly twice"):
            values(row, "any batch", 0)
        return
    for seed in SEEDS:
        value, _, our_value, _ = values(row, "any batch", seed)
        assert apart(value, our_value)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("row", DIFFERENT, ids=label)
def test_different_rows_differ(row: Row, seed: int) -> None:
    value, _, our_value, _ = values(row, row.batch, seed)
    assert apart(value, our_value)


def test_every_row_has_a_verdict() -> None:
    assert len(ROWS) == len(EQUAL) + len(DIFFERENT) > 30


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", ["circle", "supcon"])
def test_weights_bring_the_scale_of_the_other_library_back(name: str, seed: int) -> None:
    embeddings, labels = batch_of("any batch", seed)
    theirs = {"circle": pml_losses.CircleLoss, "supcon": pml_losses.SupConLoss}[name]()
    has_positive = (labels[:, None] == labels).sum(1) > 1
    ours = losses.create(name)(embeddings, labels, weights=has_positive.double())
    torch.testing.assert_close(theirs(embeddings, labels), ours, rtol=1e-6, atol=0)


@pytest.mark.parametrize("seed", SEEDS)
def test_proxy_nca_is_the_softplus_of_ours(seed: int) -> None:
    row = next(row for row in DIFFERENT if row.theirs.startswith("ProxyNCALoss"))
    theirs, ours, _ = pair_of_losses(row, seed)
    embeddings, labels = batch_of("any batch", seed)
    each = ours(embeddings, labels, reduction="none")
    torch.testing.assert_close(theirs(embeddings, labels), torch.log1p(each.exp()).mean(), rtol=1e-6, atol=0)


@pytest.mark.parametrize("seed", SEEDS)
def test_ranked_list_remark(seed: int) -> None:
    """Half the value, a share that depends on the batch size, and a gradient of its own."""
    row = next(row for row in DIFFERENT if row.theirs.startswith("RankedListLoss"))
    value, gradient, our_value, _ = values(row, "classes of equal size", seed)
    torch.testing.assert_close(2 * value, our_value, rtol=1e-2, atol=0)
    assert float((2 * value / our_value - 1).abs()) > 1e-6
    for gallery_gradient in (False, True):
        loss = losses.create("ranked_list", margin=0.4, temperature=3, alpha=1.2, gallery_gradient=gallery_gradient)
        leaf = batch_of("classes of equal size", seed)[0].requires_grad_(True)
        (ours,) = torch.autograd.grad(loss(leaf, of_sizes(3, 3, 3, 3)), leaf)
        assert float((2 * gradient - ours).norm() / ours.norm()) > 1e-2


@pytest.mark.parametrize("seed", SEEDS)
def test_smooth_ap_remark(seed: int) -> None:
    """With the query as its own positive ours is theirs, if there are as many classes as samples of a class; if not,
    theirs is the value of a batch grouped the other way round."""
    generator = torch.Generator().manual_seed(seed)
    theirs, ours = pml_losses.SmoothAPLoss(), losses.create("smooth_ap")
    for classes, images, grouped in ((3, 3, (3, 3, 3)), (4, 3, (4, 4, 4)), (2, 6, (2, 2, 2, 2, 2, 2))):
        embeddings = torch.randn(classes * images, D, dtype=torch.float64, generator=generator)
        value = theirs(embeddings, of_sizes(*[images] * classes)).double()
        labels = of_sizes(*grouped)
        torch.testing.assert_close(value, ours(embeddings, labels, embeddings, labels), rtol=1e-6, atol=1e-7)
        assert apart(value, ours(embeddings, of_sizes(*[images] * classes)))


def test_histogram_remark() -> None:
    embeddings, labels = torch.eye(4).repeat(2, 1), torch.arange(4).repeat(2)
    with pytest.raises(RuntimeError):
        pml_losses.HistogramLoss()(embeddings, labels)
    assert torch.isfinite(losses.create("histogram")(embeddings, labels))


@pytest.mark.parametrize("seed", SEEDS)
def test_class_weights(seed: int) -> None:
    embeddings, labels = batch_of("every anchor has a positive", seed)
    by_class = torch.rand(C, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    reducer, weights = their_names()["ClassWeightedReducer"](by_class), by_class[labels]
    theirs = pml_losses.SupConLoss(reducer=reducer)(embeddings, labels)
    ours = losses.create("supcon")(embeddings, labels, weights=weights)
    torch.testing.assert_close(theirs, ours * weights.sum() / N, rtol=1e-6, atol=0)
    for name, settings in (("MultiSimilarityLoss", {"epsilon": None}), ("CircleLoss", {})):
        theirs = getattr(pml_losses, name)(reducer=reducer)(embeddings, labels)
        ours = losses.create({"CircleLoss": "circle"}.get(name, "multi_similarity"), **settings)(embeddings, labels)
        torch.testing.assert_close(theirs, ours * weights.mean(), rtol=1e-6, atol=0)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("symmetric", [True, False])
def test_self_supervised(symmetric: bool, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    a, b = torch.randn(2, 6, D, dtype=torch.float64, generator=generator)
    theirs = pml_losses.SelfSupervisedLoss(pml_losses.NTXentLoss(temperature=0.1), symmetric=symmetric)(a, b)
    loss, t = losses.create("nt_xent", temperature=0.1), torch.arange(6)
    ours = loss(torch.cat([a, b]), t.repeat(2)) if symmetric else loss(a, t, b, t)
    torch.testing.assert_close(theirs, ours, rtol=1e-6, atol=0)


@pytest.mark.parametrize("row", table("Defaults that differ"), ids=lambda row: row[0].strip("`"))
def test_defaults(row: list[str]) -> None:
    theirs, their_default, ours, our_default = (CODE.findall(cell)[0] for cell in row)
    name, setting = theirs.split(".")
    assert inspect.signature(getattr(pml_losses, name)).parameters[setting].default == eval(their_default)
    name, setting = ours.split(".")
    assert losses.create(name).settings[setting] == eval(our_default)
    assert eval(their_default) != eval(our_default)


def test_defaults_in_words() -> None:
    assert losses.create("triplet").settings["miner"] == "semihard"
    assert losses.create("margin").settings["miner"] == "distance_weighted"
    assert losses.create("multi_similarity").settings["epsilon"] == 0.1
    assert losses.create("proxy_nca", classes=C, dim=D).settings["scale"] == 3
    assert pml_losses.ProxyNCALoss(C, D).softmax_scale == 1
    assert losses.create("soft_triple", classes=C, dim=D).settings["tau"] == 0.2
    assert losses.create("softmax", classes=C, dim=D).settings["normalized"] is False
    assert losses.create("n_pair").settings["l2"] == 0.02


# ---------------------------------------------------------------------------------------------- miners, samplers, memory


def their_pairs(indices: tuple[Tensor, ...]) -> tuple[Tensor, Tensor]:
    """How often each pair counts in the indices of the other library's miner."""
    a1, p, a2, n = indices if len(indices) == 4 else (indices[0], indices[1], indices[0], indices[2])
    positive, negative = torch.zeros(2, N, N)
    positive.index_put_((a1, p), torch.ones(len(a1)), accumulate=True)
    negative.index_put_((a2, n), torch.ones(len(a2)), accumulate=True)
    return positive, negative


def our_pairs(miner: Any, embeddings: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """How often each pair counts after our miner."""
    seen: list[Tensor] = []

    def rule(similarity: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        seen.extend([positive.float(), negative.float()])
        return torch.zeros_like(similarity)

    nearkin.WeightedPairs(rule=rule, miner=miner, engine="dense")(embeddings, labels)
    return seen[0], seen[1]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("row", table("Miners"), ids=lambda row: row[0].strip("`").replace(" ", ""))
def test_miners(row: list[str], seed: int) -> None:
    embeddings, labels = batch_of("any batch", seed)
    theirs, ours = eval(CODE.findall(row[0])[0], their_names()), eval(CODE.findall(row[1])[0], own_names())
    their_positive, their_negative = their_pairs(theirs(embeddings, labels))
    positive, negative = our_pairs(ours, embeddings, labels)
    if ours.name == "hard":  # the one side that an anchor has
        negative = negative * (positive.sum(1, keepdim=True) > 0)
    same = torch.equal(positive, their_positive) and torch.equal(negative, their_negative)
    assert row[2] in ("same", "differs")
    assert same == (row[2] == "same")


def test_distance_weighted_remark() -> None:
    embeddings, labels = batch_of("classes of equal size", 0)
    their_positive, _ = their_pairs(pml_miners.DistanceWeightedMiner(nonzero_loss_cutoff=2.0)(embeddings, labels))
    positive, _ = our_pairs(miners.create("distance_weighted", limit=2.0), embeddings, labels)
    assert their_positive.sum(1).tolist() == [3] * N
    assert positive.sum(1).tolist() == [2] * N and positive.max() == 1


def test_distance_weighted_chances_are_the_same() -> None:
    embeddings, labels = batch_of("classes of equal size", 1)
    torch.manual_seed(0)
    theirs = pml_miners.DistanceWeightedMiner()
    ours = nearkin.WeightedPairs(
        rule=lambda s, positive, negative: count.add_(negative) * 0, miner="distance_weighted", engine="dense"
    )
    their_count, count = torch.zeros(N, N), torch.zeros(N, N, dtype=torch.float64)
    for _ in range(400):
        their_count += their_pairs(theirs(embeddings, labels))[1]
        ours(embeddings, labels)
    share, our_share = their_count / their_count.sum(1, keepdim=True), count / count.sum(1, keepdim=True)
    assert float((share - our_share).abs().max()) < 0.1


def test_sampler() -> None:
    labels = torch.arange(20).repeat_interleave(10)
    (theirs, ours) = (CODE.findall(cell)[0] for cell in table("Samplers")[0])
    stream = eval(theirs, their_names() | {"labels": labels})
    sampler = eval(ours, own_names() | {"labels": labels})
    loader = DataLoader(labels, batch_sampler=sampler)  # type: ignore[arg-type]
    assert len(loader) == len(sampler) == len(stream) // 32 == 100
    for batch in (next(iter(DataLoader(labels, sampler=stream, batch_size=32))), next(iter(loader))):
        assert torch.unique(batch, return_counts=True)[1].tolist() == [4] * 8


def test_their_miners_are_not_taken_for_functions() -> None:
    with pytest.raises(TypeError) as caught:
        losses.create("contrastive", miner=pml_miners.MultiSimilarityMiner())
    assert str(caught.value) == (
        "contrastive: miner must be a function of (similarity, positive, negative), got MultiSimilarityMiner of "
        "pytorch-metric-learning; docs/from-pytorch-metric-learning.md has the same miner by its name here."
    )


def memories(size: int) -> tuple[Any, nearkin.CrossBatchMemory]:
    theirs = pml_losses.CrossBatchMemory(pml_losses.MultiSimilarityLoss(), embedding_size=D, memory_size=size + N)
    return theirs, nearkin.CrossBatchMemory(losses.create("multi_similarity", epsilon=None), dim=D, size=size).double()


@pytest.mark.parametrize("seed", SEEDS)
def test_memory(seed: int) -> None:
    theirs, ours = memories(2 * N)
    for step in range(5):
        embeddings, labels = batch_of("any batch", 10 * seed + step)
        embeddings.requires_grad_(True)
        value, our_value = theirs(embeddings, labels), ours(embeddings, labels)
        torch.testing.assert_close(value, our_value, rtol=1e-6, atol=0)
        gradient, our_gradient = (torch.autograd.grad(v, embeddings)[0] for v in (value, our_value))
        assert float((gradient - our_gradient).norm() / our_gradient.norm()) > 1e-3


def test_rows_that_only_go_into_the_memory() -> None:
    """A step of MoCo: queries are compared with the keys of this batch and of earlier ones, and with nothing else."""
    [cell] = [row[2] for row in table("CrossBatchMemory") if row[0] == "`enqueue_mask=`"]
    put, compare, *others = CODE.findall(cell)
    assert not others
    theirs = pml_losses.CrossBatchMemory(pml_losses.NTXentLoss(temperature=0.1), embedding_size=D, memory_size=3 * N)
    loss = losses.create("nt_xent", temperature=0.1)
    memory = nearkin.CrossBatchMemory(loss, dim=D, size=3 * N).double()  # type: ignore[arg-type]
    for step in range(5):
        generator = torch.Generator().manual_seed(step)
        queries, keys = (torch.randn(N, D, generator=generator, dtype=torch.float64) for _ in range(2))
        queries.requires_grad_(True)
        labels = torch.arange(N) + N * step
        names = {"memory": memory, "loss": loss, "queries": queries, "keys": keys, "labels": labels}
        only = torch.arange(2 * N) >= N
        value = theirs(torch.cat([queries, keys]), torch.cat([labels, labels]), enqueue_mask=only)
        eval(put, names)
        ours = eval(compare, names)
        torch.testing.assert_close(value, ours, rtol=1e-6, atol=0)
        torch.testing.assert_close(*(torch.autograd.grad(found, queries)[0] for found in (value, ours)))


def test_memory_remarks() -> None:
    theirs, ours = memories(2 * N)
    theirs.eval(), ours.eval()
    embeddings, labels = batch_of("any batch", 0)
    theirs(embeddings, labels), ours(embeddings, labels)
    assert theirs.queue_idx == N and int(ours.filled.sum()) == 0
    assert set(theirs.state_dict()) == {"embedding_memory", "label_memory"}
    assert set(ours.state_dict()) >= {"embeddings", "labels", "filled", "position"}
    assert len(theirs.supported_losses()) == 14


# ---------------------------------------------------------------------------------------------- evaluation


def calculator(**settings: Any) -> Any:
    return pml_accuracy.AccuracyCalculator(device=torch.device("cpu"), **settings)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("length", ["unit", "raw"])
def test_measures(length: str, seed: int) -> None:
    """On vectors of length 1 the table holds; on others the two compare by another rule."""
    generator = torch.Generator().manual_seed(seed)
    vectors, labels = torch.randn(60, D, generator=generator), torch.randint(9, (60,), generator=generator)
    labels[0] = 99  # alone in its class: left out by both
    if length == "unit":
        vectors = torch.nn.functional.normalize(vectors)
    rows = [(CODE.findall(row[0])[0], CODE.findall(row[1])[0], row[2]) for row in table("AccuracyCalculator")]
    equal = [(theirs, ours) for theirs, ours, verdict in rows if verdict == "equal"]
    assert [row for row in rows if row[2] != "equal"] == [("NMI", "nmi", "differs")]
    theirs = calculator(include=tuple(name for name, _ in equal)).get_accuracy(vectors, labels)
    found = evaluation.evaluate(vectors, labels, metrics=evaluation.RETRIEVAL)
    for their_name, name in equal:
        assert (theirs[their_name] == pytest.approx(found[name], abs=1e-6)) == (length == "unit")


def test_measures_that_are_not_offered() -> None:
    named = {CODE.findall(row[0])[0] for row in table("AccuracyCalculator")}
    assert set(calculator().get_curr_metrics()) - named == {"AMI", "mean_reciprocal_rank"}


# ---------------------------------------------------------------------------------------------- the guide as a whole


def test_examples_run() -> None:
    names: dict[str, Any] = {}
    for block in blocks(GUIDE):
        exec(block, names)
        if "value" in names:
            assert torch.isfinite(names.pop("value"))
    assert {"ours", "theirs", "optimizer", "all_triplets"} <= set(names)
    for theirs, ours in (("precision_at_1", "recall@1"), ("mean_average_precision_at_r", "map@r")):
        assert names["accuracy"][theirs] == pytest.approx(names["found"][ours], abs=1e-6)
    torch.testing.assert_close(names["each"].mean(), losses.create("supcon")(names["embeddings"], names["labels"]))


def exported(module: ModuleType) -> set[str]:
    return {name for name, value in vars(module).items() if inspect.isclass(value) and not name.startswith("_")}


def named(title: str) -> set[str]:
    """Classes in the first column of a table."""
    return {name for row in table(title) for name in NAME.findall(row[0])}


@pytest.mark.parametrize(
    ("module", "titles"),
    [(pml_losses, ("Losses", "Wrappers and base classes")), (pml_miners, ("Miners",)), (pml_samplers, ("Samplers",))],
    ids=["losses", "miners", "samplers"],
)
def test_every_class_is_mapped_or_listed_as_absent(module: ModuleType, titles: tuple[str, ...]) -> None:
    mapped = set().union(*map(named, titles))
    lines = section("What PML has and nearkin has not").split("\n- ")
    kind = titles[0]
    absent = set().union(*(NAME.findall(line) for line in lines if line.lstrip("\n- ").startswith(kind)))
    assert exported(module) <= mapped | absent, "the guide does not name them"
    assert mapped & absent <= {"BatchEasyHardMiner"}, "mapped and absent"


def test_every_loss_of_ours_is_named() -> None:
    names = set(losses.names()) - {"raw"}
    assert {name for name in names if f'create("{name}"' not in GUIDE and f"`{name}`" not in GUIDE} == set()


def test_proxies_carry_over_as_the_guide_says() -> None:
    for cell in (row[1] for row in table("Trained proxies")):
        code = CODE.findall(cell)[0]
        miner: Any = None
        if ".W.data.T.reshape" in code:
            theirs: Any = pml_losses.SubCenterArcFaceLoss(num_classes=C, embedding_size=D, sub_centers=3)
            loss: Any = losses.create("sub_center_arcface", classes=C, dim=D, centers=3)
        elif ".W." in code:
            theirs, loss = pml_losses.CosFaceLoss(C, D), losses.create("cosface", classes=C, dim=D)
        elif "proxies.data.clone" in code:
            theirs, loss = pml_losses.ProxyAnchorLoss(C, D), losses.create("proxy_anchor", classes=C, dim=D)
        else:
            theirs = pml_losses.MarginLoss(num_classes=C, beta=0.7, learn_beta=True)
            loss, miner = losses.create("margin", classes=C, miner="hard"), pml_miners.BatchHardMiner()
        embeddings, labels = batch_of("every anchor has a positive", 0)
        exec(code, {"loss": loss, "theirs": theirs, "C": C, "K": 3, "D": D})
        mined = None if miner is None else miner(embeddings, labels)
        torch.testing.assert_close(theirs(embeddings, labels, mined), loss(embeddings, labels), rtol=1e-6, atol=0)
