"""Dense and blocked give the same value and the same gradients; for compiled see test_compiled.py."""

from __future__ import annotations

import dataclasses
import gc
import weakref
from typing import Any

import pytest
import torch

from nearkin import engine, losses, masks, vectors
from nearkin.engine.blocked import _Sweep, blocked
from nearkin.losses.batch import Batch
from tests.losses.cases import DENSE, DIM, PAIR, ROWWISE, Case, batch, gradients


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of few rows, so that a small batch has several, the last one shorter; vectors in pieces of two."""
    monkeypatch.setattr(engine.size, "block_rows", lambda rows, columns, device: min(rows, 4))
    monkeypatch.setattr(vectors, "CHUNK", 2 * DIM)


def run(
    case: Case, mode: str, reduction: str = "mean", gallery: str = "none", weights: bool = False, rows: int = 11
) -> list[torch.Tensor]:
    embeddings, labels = batch(3, rows)
    loss = case.make(engine=mode)
    options: dict[str, Any] = {"reduction": reduction}
    inputs = [embeddings, *loss.parameters()]
    if weights:
        options["weights"] = torch.linspace(0.1, 2.0, rows, dtype=torch.float64)
    if gallery != "none":
        extra, extra_labels = batch(4, 6)
        index = torch.arange(rows)
        index[::3] = -1
        options |= {
            "gallery": torch.cat([embeddings, extra]),
            "gallery_labels": torch.cat([labels, extra_labels]),
            "self_index": index,
        }
        inputs.append(extra)
    value = loss(embeddings, labels, **options)
    upstream = torch.linspace(-1, 2, value.numel(), dtype=torch.float64).reshape(value.shape)
    return [value.detach(), *gradients((value * upstream).sum(), *inputs)]


def same(first: list[torch.Tensor], second: list[torch.Tensor]) -> None:
    for one, other in zip(first, second, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("case", ROWWISE, ids=lambda case: case.id)
@pytest.mark.parametrize("reduction", ["mean", "none"])
def test_blocked_equals_dense(case: Case, reduction: str) -> None:
    same(run(case, "dense", reduction), run(case, "blocked", reduction))


@pytest.mark.parametrize("case", [case for case in PAIR if case.rowwise], ids=lambda case: case.id)
@pytest.mark.parametrize("reduction", ["mean", "none"])
def test_blocked_equals_dense_with_a_gallery_and_weights(case: Case, reduction: str) -> None:
    same(run(case, "dense", reduction, "live", True), run(case, "blocked", reduction, "live", True))


@pytest.mark.parametrize("case", [case for case in PAIR if case.rowwise], ids=lambda case: case.id)
def test_blocked_equals_dense_where_positives_are_found_block_by_block(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = run(case, "dense", gallery="live")
    monkeypatch.setattr(masks, "LITTLE", 0)
    same(expected, run(case, "blocked", gallery="live"))


@pytest.mark.parametrize("mode", ["dense", "blocked"])
@pytest.mark.parametrize("case", ROWWISE, ids=lambda case: case.id)
def test_a_second_backward_gives_the_same(case: Case, mode: str) -> None:
    embeddings, labels = batch(3, 11)
    loss = case.make(engine=mode)
    inputs = [embeddings, *loss.parameters()]
    value = loss(embeddings, labels)
    found = [torch.autograd.grad(value, inputs, retain_graph=again) for again in (True, True, False)]
    for later in found[1:]:
        for one, other in zip(found[0], later, strict=True):
            torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-14)
            assert one.data_ptr() != other.data_ptr()


def reads_the_batch_again(case: Case) -> bool:
    """Losses whose rows are proxies keep unit vectors of their own, which nobody else can write into."""
    return not (case.proxy and case.make().proxies_are_rows)


@pytest.mark.parametrize("case", [case for case in ROWWISE if reads_the_batch_again(case)], ids=lambda case: case.id)
def test_writing_into_the_batch_before_backward_is_an_error(case: Case) -> None:
    embeddings, labels = batch(3, 11)
    copy = embeddings * 1
    value = case.make(engine="blocked")(copy, labels)
    copy.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        value.backward()


@pytest.mark.parametrize("case", ROWWISE, ids=lambda case: case.id)
def test_the_mean_of_the_values_is_the_loss(case: Case) -> None:
    values, scalar = run(case, "dense", "none")[0], run(case, "dense")[0]
    torch.testing.assert_close(values.mean(), scalar)
    weighted, weighted_scalar = run(case, "dense", "none", weights=True)[0], run(case, "dense", weights=True)[0]
    torch.testing.assert_close(weighted.mean(), weighted_scalar)


@pytest.mark.parametrize("case", DENSE, ids=lambda case: case.id)
def test_a_loss_that_is_not_row_wise_says_why(case: Case) -> None:
    for mode in ("blocked", "compiled"):
        with pytest.raises(ValueError, match=f"^{case.name} runs dense only, got engine='{mode}': .+; use engine="):
            case.make(engine=mode)
    embeddings, labels = batch(0)
    with pytest.raises(ValueError, match=f"^{case.name} has no value per anchor, got reduction='none': .+; use"):
        case.make()(embeddings, labels, reduction="none")


def test_blocked_keeps_nothing_of_the_matrix() -> None:
    """Of all tensors alive between forward and backward, the largest is of the size of the embeddings or positives."""
    embeddings, labels = batch(0, 40)

    def largest(mode: str) -> int:
        gc.collect()
        before = {id(x) for x in gc.get_objects() if isinstance(x, torch.Tensor)}
        boxes: list[torch.Tensor] = []

        def pack(tensor: torch.Tensor) -> torch.Tensor:
            box = tensor.detach()
            boxes.append(box)
            return box

        with torch.autograd.graph.saved_tensors_hooks(pack, lambda box: box):
            value = losses.create("ranked_list", engine=mode)(embeddings, labels)
        saved = [weakref.ref(box) for box in boxes]
        boxes.clear()
        gc.collect()
        alive = [x for x in gc.get_objects() if isinstance(x, torch.Tensor) and id(x) not in before]
        alive += [box for ref in saved if (box := ref()) is not None]
        assert value.requires_grad
        return max(x.untyped_storage().nbytes() // x.element_size() for x in alive)

    assert largest("dense") >= 40 * 40
    assert largest("blocked") <= 40 * max(DIM, int(torch.bincount(labels).max()))


def test_a_random_miner_draws_anew_each_step_and_the_same_again_after_reload() -> None:
    embeddings, labels = batch(0, 40)
    loss = losses.create("margin", seed=3).double()
    first = [loss(embeddings, labels).item() for _ in range(4)]
    assert len(set(first)) > 1
    again = losses.create("margin", seed=3).double()
    assert [again(embeddings, labels).item() for _ in range(2)] == first[:2]
    resumed = losses.create("margin", seed=3).double()
    resumed.load_state_dict(again.state_dict())
    assert [resumed(embeddings, labels).item() for _ in range(2)] == first[2:]
    assert losses.create("margin", seed=4).double()(embeddings, labels).item() != first[0]


def test_a_random_miner_draws_the_same_for_shares_of_a_gathered_batch() -> None:
    embeddings, labels = batch(0, 12)
    loss = losses.create("nt_xent", miner="random").double()
    loss.eval()
    whole = loss(embeddings, labels, reduction="none")
    shares = [
        loss(embeddings[part], labels[part], embeddings, labels, self_index=part, reduction="none")
        for part in (torch.arange(5), torch.arange(5, 12))
    ]
    torch.testing.assert_close(torch.cat(shares), whole)


def test_auto_goes_from_dense_to_blocked_by_size() -> None:
    cpu = torch.device("cpu")
    assert engine.choose(180, 180, cpu) == "dense"
    assert engine.choose(16_384, 16_384, cpu) == "blocked"


def narrowed(plan: Any) -> engine.Plan:
    """The plan with products of 16 bits, as it would be for such a batch on a GPU."""
    found: engine.Plan = dataclasses.replace(plan, products=torch.bfloat16)
    return found


@pytest.mark.parametrize("case", [case for case in ROWWISE if case.make().space.unit], ids=lambda case: case.id)
def test_products_of_16_bits_are_as_exact_as_those_of_plain_torch(case: Case) -> None:
    """Against float64, the error is at most twice that of one product of 16-bit vectors under autograd."""
    truth, narrow = case.make(), case.make().float()
    narrow.load_state_dict(truth.state_dict())
    errors = torch.zeros(9, 2, 2)
    for seed in range(len(errors)):
        precise, labels = batch(seed, 11)
        vectors = precise.detach().float().requires_grad_(True)
        value = truth(precise, labels)
        (wanted,) = gradients(value, precise)
        plan = narrow.plan(vectors, labels)
        plain = engine.dense(plan, dot=product(plan))
        ours = blocked(narrowed(narrow.plan(vectors, labels)))
        for way, found in enumerate((plain, ours)):
            (grad,) = gradients(found, vectors)
            errors[seed, way, 0] = (found - value).detach().abs() / (value.detach().abs() + 1e-3)
            errors[seed, way, 1] = (grad - wanted).norm() / (wanted.norm() + 1e-3)
    middle = errors.median(0).values  # a pair at a kink may fall on either side of it
    assert (middle[1] <= 2 * middle[0] + 1e-3).all()
    assert (errors[:, 1] > 1e-5).any()  # the products were indeed rounded


def test_blocked_multiplies_in_the_type_of_the_vectors() -> None:
    embeddings, labels = batch(3, 11)
    loss = losses.create("multi_similarity")
    same([engine.run(narrowed(loss.plan(embeddings, labels)), "blocked")], [loss(embeddings, labels)])


@pytest.mark.gpu
@pytest.mark.parametrize("case", ROWWISE, ids=lambda case: case.id)
def test_the_device_equals_the_cpu(case: Case) -> None:
    embeddings, labels = batch(5, 11)
    loss = case.make(engine="dense")
    loss.eval()
    expected = loss(embeddings, labels)
    there = loss.cuda()
    for mode in ("dense", "blocked"):
        there.engine = mode
        value = there(embeddings.cuda(), labels.cuda())
        torch.testing.assert_close(value.cpu(), expected)


def product(plan: Any) -> torch.Tensor:
    """Inner products of 16-bit vectors."""
    columns = plan.columns if plan.column_gradient else plan.columns.detach()
    found: torch.Tensor = (plan.queries.bfloat16() @ columns.bfloat16().T).float()
    return found


def errors_on_a_device(case: Case, kind: str, dtype: torch.dtype, n: int) -> torch.Tensor:
    """Errors of value and gradient against float64, of plain torch and of an engine; medians over batches. Plain torch
    multiplies vectors of 16 bits where the engine does."""
    dim, classes = 16, n // 4
    truth, ours = (case.make(dim, classes).to("cuda", dtype) for dtype in (torch.float64, torch.float32))
    truth.load_state_dict(ours.state_dict())
    found = torch.zeros(5, 2, 2)
    for seed in range(len(found)):
        generator = torch.Generator("cuda").manual_seed(seed)
        labels = torch.arange(n, device="cuda") % classes
        vectors = torch.randn(n, dim, device="cuda", generator=generator).to(dtype)
        precise = vectors.double().requires_grad_(True)
        value = truth(precise, labels)
        (wanted,) = gradients(value, precise)
        for way in range(2):
            leaf = vectors.clone().requires_grad_(True)
            ours.engine = kind if way else "dense"
            if way or kind != "compiled":
                got = ours(leaf, labels)
            else:
                plan = ours.plan(leaf, labels)
                got = engine.dense(plan, dot=product(plan))
            (grad,) = gradients(got, leaf)
            found[seed, way, 0] = (got.double() - value).detach().abs() / (value.detach().abs() + 1e-3)
            found[seed, way, 1] = (grad.double() - wanted).norm() / (wanted.norm() + 1e-3)
    return found.median(0).values


# Which pairs a random miner draws hangs on the last digit.
MEASURED = [case for case in ROWWISE if case.make().space.unit and not case.random and "classes" not in case.settings]


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("case", MEASURED, ids=lambda case: case.id)
def test_blocks_on_a_device_are_as_exact_as_the_whole(case: Case, dtype: torch.dtype) -> None:
    plain, ours = errors_on_a_device(case, "blocked", dtype, 300)
    assert (ours <= 2 * plain + 1e-4 + 2 * torch.finfo(dtype).eps).all(), (plain, ours)


@pytest.mark.gpu
@pytest.mark.parametrize("case", {case.name: case for case in MEASURED}.values(), ids=lambda case: case.id)
def test_stages_on_a_device_are_as_exact_as_plain_torch(case: Case) -> None:
    """A block of which the compiled step is cut into stages."""
    plain, ours = errors_on_a_device(case, "compiled", torch.bfloat16, 2200)
    assert (ours <= 2 * plain + 1e-3).all(), (plain, ours)


def asks_the_device(case: Case) -> bool:
    """Losses and miners that go positive by positive must know the largest class of the batch."""
    loss = case.make()
    chosen = getattr(loss, "chosen", None)
    return bool(getattr(loss, "needs_depth", False) or (chosen is not None and chosen.needs_depth))


@pytest.mark.gpu
@pytest.mark.filterwarnings("ignore:Synchronization debug mode")
@pytest.mark.parametrize("case", [case for case in ROWWISE if not asks_the_device(case)], ids=lambda case: case.id)
def test_a_step_never_makes_the_device_wait(case: Case) -> None:
    embeddings, labels = batch(5, 11)
    loss = case.make().cuda()
    there, classes = embeddings.detach().cuda().requires_grad_(True), labels.cuda()
    for mode in ("dense", "blocked"):
        loss.engine = mode
        loss(there, classes).backward()  # loads what is loaded once
        torch.cuda.synchronize()
        torch.cuda.set_sync_debug_mode("error")
        try:
            loss(there, classes).backward()
        finally:
            torch.cuda.set_sync_debug_mode("default")


@pytest.mark.parametrize(
    ("device", "side", "expected"),
    [("cpu", 512, "dense"), ("cpu", 2048, "blocked"), ("cuda", 4096, "dense"), ("cuda", 5864, "blocked")],
)
def test_auto_is_dense_while_that_is_small(device: str, side: int, expected: str) -> None:
    shape = (side, side)
    assert engine.settled("auto", shape, torch.device(device)) == expected
    assert engine.settled("compiled:aot_eager", shape, torch.device(device)) == "compiled:aot_eager"


def test_auto_compiles_what_is_large_for_a_gpu_if_it_can(monkeypatch: pytest.MonkeyPatch) -> None:
    shape, device = (8192, 8192), torch.device("cuda")
    for usable, expected in ((True, "compiled"), (False, "blocked")):
        monkeypatch.setattr("nearkin.kernels.usable", lambda usable=usable: usable)
        assert engine.settled("auto", shape, device) == expected


def test_auto_compiles_nothing_that_somebody_else_wrote(monkeypatch: pytest.MonkeyPatch) -> None:
    """A compiler reads Python once, and cannot follow a miner that looks at values."""
    large = Batch(torch.empty(8192, 2, device="meta"), torch.empty(8192, device="meta"))
    monkeypatch.setitem(engine.settled.__globals__, "choose", lambda *given: "compiled")

    class Own(losses.LOSSES["contrastive"]):  # type: ignore[misc]
        pass

    Own.__module__ = "somewhere"
    assert losses.create("contrastive")._settled(large) == "compiled"
    assert losses.create("contrastive", miner="vthm")._settled(large) == "compiled"
    assert losses.create("contrastive", miner=lambda s, p, n: (p, n))._settled(large) == "blocked"
    assert Own()._settled(large) == "blocked"
    assert Own(engine="compiled")._settled(large) == "compiled"


@pytest.mark.parametrize("factor", [1e-7, 1e5])
@pytest.mark.parametrize("reduction", ["mean", "none"])
def test_slopes_in_float16_fit_whatever_multiplies_the_values(factor: float, reduction: str) -> None:
    embeddings, labels = batch(3, 11)
    loss = losses.create("contrastive").float()
    found = []
    for products in (torch.float16, None):
        vectors = embeddings.detach().float().requires_grad_(True)
        plan = dataclasses.replace(loss.plan(vectors, labels, weights=torch.full((11,), factor)), products=products)
        value = engine.run(plan, "compiled:aot_eager", reduction)
        (value.sum() * (1 if reduction == "mean" else factor)).backward()
        found.append(vectors.grad)
    torch.testing.assert_close(*found, rtol=2e-2, atol=2e-3 * float(found[1].abs().max()))


@pytest.mark.parametrize("quiet", [torch.no_grad, torch.inference_mode])
@pytest.mark.parametrize("mode", ["blocked", "compiled:aot_eager"])
@pytest.mark.parametrize("name", ["contrastive", "proxy_anchor"])
def test_no_slopes_are_formed_where_nobody_goes_backward(
    name: str, mode: str, quiet: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two products of three; proxies want a gradient also where a value is only looked at."""
    added: list[int] = []
    monkeypatch.setattr(_Sweep, "_add", lambda *_: added.append(1))
    proxies = {"classes": 4, "dim": 6} if name == "proxy_anchor" else {}
    loss = losses.create(name, engine=mode, **proxies)
    embeddings, labels = torch.randn(9, 6, requires_grad=True), torch.arange(9) // 3
    with quiet():
        value = loss(embeddings, labels)
    assert not added and not value.requires_grad
    loss(embeddings, labels)
    assert added
