"""Recorded calls give what plain ones give, whatever happens between them."""

from __future__ import annotations

import gc
import threading
import warnings
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import pytest
import torch
import torch.utils.checkpoint
from torch import Tensor, nn

from nearkin import engine, losses
from nearkin.engine import compiled, gate, recording
from nearkin.engine.waiting import never_waiting
from nearkin.losses.batch import Batch
from tests.daemon import Daemon
from tests.losses.cases import ROWWISE, Case, batch, gradients
from tests.patience import PATIENCE


def asks(case: Case) -> bool:
    loss = case.make()
    return not case.proxy and bool(loss.asks(Batch(*batch(3, 11))))


Aside = Callable[[], AbstractContextManager[None]]
RECORDED = [case for case in ROWWISE if not asks(case)]


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Calls are recorded as on a GPU: what is recorded works in memory of its own and runs again without its caller. One
    entry for each time something ran again."""
    ran: list[int] = []

    def capture(compute: Callable[[], Any], aside: Aside, *, careful: bool) -> tuple[Any, Callable[[], None]]:
        with aside():
            value, slopes = compute()

        def again() -> None:
            ran.append(len(ran))
            with torch.enable_grad():
                new_value, new_slopes = compute()
            value.copy_(new_value)
            for slope, new in zip(slopes, new_slopes, strict=True):
                if slope is not None:
                    slope.copy_(new)

        return (value, slopes), again

    monkeypatch.setattr(recording, "_capture", capture)
    monkeypatch.setattr(engine, "possible", lambda kind, given: True)
    return ran


def compared(loss: Any, plain: Any, seed: int, n: int = 11, **options: Tensor) -> None:
    """One step of both losses on a batch of that seed: the same value, the same gradients."""
    found = []
    for one in (loss, plain):
        embeddings, labels = batch(seed, n)
        value = one(embeddings, labels, **options) * 3
        found.append([value.detach(), *gradients(value, embeddings, *one.parameters())])
    for first, second in zip(*found, strict=True):
        torch.testing.assert_close(first, second)


@pytest.mark.parametrize("case", RECORDED, ids=lambda case: case.id)
def test_every_batch_gets_its_own_value_and_gradient(case: Case, recorded: list[int]) -> None:
    loss, plain = case.make(engine="blocked"), case.make(engine="blocked")
    plain.forward = lambda *given: plain._value(Batch(*given)) if not case.proxy else plain._value(*given, None)
    for seed in range(3, 7):
        compared(loss, plain, seed)
        for one in (loss, plain):  # a parameter that learns is read where it is
            with torch.no_grad():
                for parameter in one.parameters():
                    parameter.mul_(1.1)
    assert len(recorded) == 3


class Stepping(losses.MultiSimilarity):
    """Counts its calls."""

    name = "stepping"

    def __init__(self, **common: Any) -> None:
        super().__init__(**common)
        self.register_buffer("steps", torch.zeros(()))

    def _value(self, *given: Any, **options: Any) -> Tensor:
        self.steps += 1
        return super()._value(*given, **options)


def test_draws_are_counted_once_for_each_batch(recorded: list[int]) -> None:
    loss = losses.create("margin", engine="blocked")
    assert loss.asks(Batch(*batch(0, 11)))  # a random miner goes positive by positive
    loss = Stepping(engine="blocked")
    for seed in range(5):
        loss(*batch(seed, 11))
    assert loss.steps == 5 and len(recorded) == 4


def test_calls_of_other_threads_are_counted_while_one_records(
    monkeypatch: pytest.MonkeyPatch, recorded: list[int]
) -> None:
    loss, capture = Stepping(engine="blocked"), recording._capture

    def meet(compute: Callable[[], Any], aside: Aside, *, careful: bool) -> Any:
        def meanwhile() -> Any:
            Daemon().ask(lambda: loss(*batch(5, 9))).result(20)
            return compute()

        with aside():
            meanwhile()
        return capture(compute, aside, careful=careful)

    loss(*batch(3, 11))
    monkeypatch.setattr(recording, "_capture", meet)
    loss(*batch(3, 11))
    assert loss.steps == 3


def test_calls_before_a_backward_do_not_disturb_each_other(recorded: list[int]) -> None:
    loss = losses.create("ranked_list", engine="blocked").double()
    loss(*batch(0, 11)), loss(*batch(0, 11))
    first, labels = batch(1, 11)
    second, more = batch(2, 11)
    values = loss(first, labels), loss(second, more)
    assert len(recorded) == 3
    twice = torch.autograd.grad(values[1], second, retain_graph=True)
    found = [*gradients(values[0], first), *twice, *gradients(values[1], second)]
    expected = losses.create("ranked_list", engine="dense").double()
    loss = expected
    for x, y, grad in ((first, labels, found[0]), (second, more, found[1]), (second, more, found[2])):
        torch.testing.assert_close(grad, gradients(replayed_never(loss, x, y), x)[0])


def test_a_gradient_is_copied_only_where_it_may_still_be_asked_for(recorded: list[int]) -> None:
    loss = losses.create("ranked_list", engine="blocked").double()
    loss(*batch(0, 11))
    done, kept, open_, last = values = [loss(*batch(seed, 11)) for seed in range(1, 5)]
    recordings: Any = [entry for entry in recording._RECORDINGS[loss].values() if entry is not None]
    assert [value.grad_fn.slopes is recordings[0].slopes for value in values] == [False, False, False, True]
    last.backward()
    first, labels = batch(5, 11)
    again = loss(first, labels)
    assert last.grad_fn.slopes is recordings[0].slopes  # nobody can ask for it any more
    with pytest.raises(RuntimeError, match="second time"):
        last.backward()
    again.backward(retain_graph=True)
    once = first.grad.clone()
    loss(*batch(6, 11))
    again.backward()
    torch.testing.assert_close(first.grad, 2 * once)
    for value in (done, kept, open_):
        value.backward()


def test_a_copied_gradient_outlives_whoever_reads_it_on_another_stream(
    monkeypatch: pytest.MonkeyPatch, recorded: list[int]
) -> None:
    lent: list[Any] = []
    monkeypatch.setattr(recording, "_lend", lent.append)
    loss = losses.create("ranked_list", engine="blocked").double()
    loss(*batch(0, 11))
    first, last = (loss(*batch(seed, 11)) for seed in (1, 2))
    last.backward()
    assert not lent  # it was read where the recording wrote it
    copies = first.grad_fn.slopes
    first.backward()
    assert len(lent) == 1 and lent[0] is copies
    monkeypatch.undo()

    class Somewhere:
        is_cuda, device = True, "cuda:1"

        def record_stream(self, stream: object) -> None:
            lent.append(stream)

    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: f"stream of {device}")
    recording._lend([None, Somewhere(), torch.ones(2)])  # type: ignore[list-item]
    assert lent[1:] == ["stream of cuda:1"]


def replayed_never(loss: Any, embeddings: Tensor, labels: Tensor) -> Tensor:
    found: Tensor = loss._value(Batch(embeddings, labels))
    return found


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_a_factor_keeps_its_digits(dtype: torch.dtype) -> None:
    slope = torch.randn(512, 64, generator=torch.Generator().manual_seed(0)).to(dtype)
    found = recording._times(slope, torch.tensor(1.3))
    assert found.dtype == dtype
    # Each entry is rounded, up or down; were the factor rounded, all would be off by the same share.
    assert abs(float(found.double().abs().sum() / slope.double().abs().sum()) - 1.3) < 1e-4


def test_what_changes_is_recorded_anew(recorded: list[int]) -> None:
    loss = losses.create("contrastive", engine="blocked").double()
    for _ in range(3):
        compared(loss, losses.create("contrastive", engine="dense").double(), 3)
    ran = len(recorded)
    loss.margin = 0.9  # other settings
    compared(loss, losses.create("contrastive", engine="dense", margin=0.9).double(), 3)
    assert len(recorded) == ran
    for seed in (4, 5):  # another number of images
        compared(loss, losses.create("contrastive", engine="dense", margin=0.9).double(), seed, n=9)
    weights = torch.linspace(0.5, 2, 11, dtype=torch.float64)
    for seed in (4, 5):
        compared(loss, losses.create("contrastive", engine="dense", margin=0.9).double(), seed, weights=weights)


@pytest.mark.parametrize(
    ("read", "write", "value"),
    [
        (torch.get_float32_matmul_precision, torch.set_float32_matmul_precision, "high"),
        (torch.are_deterministic_algorithms_enabled, torch.use_deterministic_algorithms, True),
        *(
            (
                lambda key=key: getattr(torch.backends.cuda.matmul, key),
                lambda value, key=key: setattr(torch.backends.cuda.matmul, key, value),
                value,
            )
            for key, value in (
                ("allow_tf32", True),
                ("fp32_precision", "tf32"),
                ("allow_bf16_reduced_precision_reduction", False),
            )
        ),
    ],
    ids=["precision", "deterministic", "tf32", "fp32", "bf16"],
)
def test_what_torch_is_told_of_products_counts(recorded: list[int], read: Any, write: Any, value: Any) -> None:
    loss, before = losses.create("contrastive").double(), read()
    assert before != value
    try:
        for _ in range(3):
            loss(*batch(3, 11))
        write(value)
        loss(*batch(3, 11))
        assert len(recorded) == 2  # not replayed
        loss(*batch(3, 11))
        assert len(recorded) == 3
    finally:
        write(before)


class Banded(losses.Contrastive):
    """Reads tensors that are neither parameters nor buffers."""

    name = "banded"

    def __init__(self, **common: Any) -> None:
        super().__init__(**common)
        self.table, self.tables = torch.ones(4000), {"one": [torch.ones(3)]}


def test_tensors_that_a_loss_holds_are_known_without_their_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    loss = Banded()
    kept = engine.facts(loss)
    assert hash(kept) is not None and engine.facts(loss) == kept
    other, loss.table = loss.table, torch.ones(4000)
    loss.table[2000] = 2  # where a printed tensor shows dots
    changed = engine.facts(loss)
    loss.table = other
    assert engine.facts(loss) == kept != changed
    loss.tables["one"][0].add_(1)
    assert engine.facts(loss) != kept
    monkeypatch.setattr(Tensor, "__repr__", lambda self: pytest.fail("the device was waited for"))
    engine.facts(loss)


class Asked(losses.ProxyAnchor):
    """Says when its value is asked for, and of which parameters."""

    name = "asked"

    def __init__(self, **common: Any) -> None:
        super().__init__(**common)
        self.heard: list[Callable[[Tensor], Any]] = []

    def _value(self, *given: Any, **options: Any) -> Tensor:
        for hear in self.heard:
            hear(self.proxies)
        return super()._value(*given, **options)


def step(loss: Any, n: int = 6, **options: Any) -> Tensor:
    """One call and its backward; the gradient of the batch."""
    embeddings = torch.randn(n, 4, generator=torch.Generator().manual_seed(n), requires_grad=True)
    loss(embeddings, torch.arange(n) % 5, **options).mean().backward()
    assert embeddings.grad is not None
    return embeddings.grad


def test_what_is_recorded_reads_parameters_as_leaves_of_its_own(recorded: list[int]) -> None:
    loss, seen = Asked(classes=5, dim=4, engine="blocked"), []
    proxies = loss.proxies
    loss.heard.append(seen.append)
    for _ in range(3):
        step(loss)
    assert seen[0] is proxies and all(x is not proxies for x in seen[1:])
    assert all(x.data_ptr() == proxies.data_ptr() and x.is_leaf for x in seen)
    assert loss.proxies is proxies and proxies.grad is not None


def test_a_thread_finds_the_parameters_while_another_records(recorded: list[int]) -> None:
    loss, alone = (Asked(classes=5, dim=4, engine="blocked") for _ in range(2))
    alone.load_state_dict(loss.state_dict())
    step(alone, 9, reduction="none")
    proxies, found = loss.proxies, []

    def meet(read: Tensor) -> None:
        if read is proxies or found:
            return
        found.append(None)
        Daemon().ask(lambda: step(loss, 9, reduction="none")).result(20)  # which is never recorded
        found[0] = None if proxies.grad is None else proxies.grad.clone()

    loss.heard.append(meet)
    step(loss)
    proxies.grad = None
    step(loss)
    torch.testing.assert_close(found[0], alone.proxies.grad)


def test_what_reads_its_parameters_around_itself_runs_without(recorded: list[int]) -> None:
    loss = losses.create("proxy_anchor", classes=5, dim=4, engine="blocked")
    loss._value = loss._value  # kept with the loss, so that it knows of no other
    step(loss)
    with pytest.warns(
        UserWarning, match="^ProxyAnchor runs without a recording: it learns something that is not among"
    ):
        step(loss)
    assert not recorded
    expected, loss.proxies.grad = loss.proxies.grad, None
    step(loss)
    torch.testing.assert_close(2 * loss.proxies.grad, expected)


class Hidden(losses.Contrastive):
    """Learns something that nobody is told of."""

    name = "hidden"

    def __init__(self, **common: Any) -> None:
        super().__init__(**common)
        self.parts = [nn.Linear(1, 1)]

    def _value(self, *given: Any, **options: Any) -> Tensor:
        value = super()._value(*given, **options)
        return value * self.parts[0](value[None]).sum()


def test_what_learns_besides_its_parameters_gets_its_gradient_each_time(recorded: list[int]) -> None:
    loss = Hidden(engine="blocked")
    weight = loss.parts[0].weight
    for number in range(4):
        weight.grad = None
        if number == 1:
            with pytest.warns(UserWarning, match="^Hidden runs without a recording: it learns something that is not"):
                step(loss)
        else:
            step(loss)
        assert weight.grad is not None
    assert not recorded


class Scaled(losses.Contrastive):
    """Reads a number on the CPU, which a graph of a GPU would have in it for good."""

    name = "scaled"

    def __init__(self, **common: Any) -> None:
        super().__init__(**common)
        self.scale = torch.tensor(1.0)

    def _value(self, *given: Any, **options: Any) -> Tensor:
        return super()._value(*given, **options) * self.scale


def test_another_number_on_the_cpu_is_another_kind_of_call() -> None:
    """Also where its tensor comes to lie where one of before has been, which no address tells."""
    loss, known = Scaled(), set()
    for number in range(100):
        loss.scale = torch.tensor(float(number))
        known.add(engine.facts(loss))
    assert len(known) == 100
    loss.scale.fill_(7)
    assert engine.facts(loss) in known  # the same number is the same call


def test_what_waits_for_the_device_is_found_before_it_is_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    modes = ["default"]
    monkeypatch.setattr(torch.cuda, "get_sync_debug_mode", lambda: modes[-1])
    monkeypatch.setattr(torch.cuda, "set_sync_debug_mode", modes.append)
    with never_waiting():
        pass
    with pytest.raises(RuntimeError, match=r"^it waits for the device, as \.item\(\), "), never_waiting():
        assert modes[-1] == "warn"
        warnings.warn("called a synchronizing CUDA operation (Triggered internally at ...)", stacklevel=1)
    with pytest.warns(UserWarning, match="^something else$"), never_waiting():
        warnings.warn("Synchronization debug mode is a prototype feature and ...", stacklevel=1)
        warnings.warn("something else", stacklevel=1)
    with pytest.raises(KeyError), never_waiting():
        raise KeyError
    assert modes == ["default"] + ["warn", "default"] * 4


class FakeStream:
    """A stream, and what is current, without a device."""

    current: Any = None

    def __init__(self, *given: Any) -> None:
        self.device_index, self.cuda_stream = 0, 0

    def wait_stream(self, other: FakeStream) -> None:
        pass


class OnStream:
    """``torch.cuda.stream`` of them."""

    def __init__(self, stream: FakeStream) -> None:
        self.stream = stream

    def __enter__(self) -> None:
        self.before, FakeStream.current = FakeStream.current, self.stream

    def __exit__(self, *error: object) -> None:
        FakeStream.current = self.before


class FakeGraph:
    """A graph; where its recording was broken, ending it is an error too."""

    broken = False

    def replay(self) -> None:
        pass

    def capture_begin(self, *given: Any, **options: Any) -> None:
        pass

    def capture_end(self) -> None:
        if self.broken:
            raise RuntimeError("operation failed due to a previous error during capture")


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Streams and graphs without a device, around torch's own manager of graphs; what the mode of waits was set to."""
    modes: list[Any] = []
    made = {
        "stream": OnStream, "Stream": FakeStream, "CUDAGraph": FakeGraph,
        "current_stream": lambda *given: FakeStream.current, "current_device": lambda: 0,
        "synchronize": lambda *given: None, "empty_cache": lambda: None,
        "get_sync_debug_mode": lambda: 0, "set_sync_debug_mode": modes.append,
    }  # fmt: skip
    for name, value in made.items():
        monkeypatch.setattr(torch.cuda, name, value)
    monkeypatch.setattr(torch._C, "_host_emptyCache", lambda: None, raising=False)
    empty = torch.empty
    monkeypatch.setattr(torch, "empty", lambda *given, **options: empty(0))
    monkeypatch.setattr(recording, "_STREAMS", {})
    FakeStream.current = FakeStream()
    FakeGraph.broken = False
    return modes


@pytest.mark.parametrize("kind", [RuntimeError, AssertionError, KeyboardInterrupt])
@pytest.mark.parametrize("careful", [False, True])
def test_a_recording_that_fails_leaves_the_stream_and_says_why(
    device: list[Any], careful: bool, kind: type[BaseException]
) -> None:
    """Torch restores the stream only where ending the recording was no error."""
    own, ran = FakeStream.current, []
    FakeGraph.broken = True

    def compute() -> Any:
        ran.append(FakeStream.current)
        if len(ran) > 1 + careful:
            raise kind("operation not permitted when stream is capturing")

    with pytest.raises(kind, match="^operation not permitted when stream is capturing$"):
        recording._capture(compute, nullcontext, careful=careful)
    assert FakeStream.current is own and own not in ran and len(ran) == 2 + careful
    assert device == (["warn", 0] if careful else [])


def test_what_runs_before_a_recording_is_apart_and_on_its_stream(device: list[Any]) -> None:
    own, ran, inside = FakeStream.current, [], [False]

    @contextmanager
    def aside() -> Any:
        inside[0] = True
        yield
        inside[0] = False

    def compute() -> str:
        ran.append((FakeStream.current, inside[0]))
        return "results"

    found = [recording._capture(compute, aside, careful=careful) for careful in (False, True)]
    assert [results for results, _ in found] == ["results"] * 2 and FakeStream.current is own
    assert [apart for _, apart in ran] == [True, False, True, True, False]
    assert len({stream for stream, _ in ran}) == 1  # streams go round: another one might be somebody's


def test_only_what_somebody_else_wrote_is_watched(monkeypatch: pytest.MonkeyPatch, recorded: list[int]) -> None:
    capture, watched = recording._capture, []

    def watch(compute: Callable[[], Any], aside: Aside, *, careful: bool) -> Any:
        watched.append(careful)
        return capture(compute, aside, careful=careful)

    monkeypatch.setattr(recording, "_capture", watch)
    for loss in (losses.create("contrastive", engine="blocked"), Banded(engine="blocked")):
        for _ in range(2):
            loss(*batch(3, 11))
    assert watched == [False, True]


def test_what_cannot_be_recorded_runs_without(monkeypatch: pytest.MonkeyPatch, recorded: list[int]) -> None:
    def full(compute: Callable[[], Any], aside: Aside, *, careful: bool) -> Any:
        compute()
        raise torch.OutOfMemoryError("no room\nfor more words")

    monkeypatch.setattr(recording, "_capture", full)
    loss = losses.create("proxy_anchor", classes=5, dim=4, engine="blocked")
    proxies = loss.proxies

    step(loss)
    with pytest.warns(UserWarning, match="^ProxyAnchor runs without a recording: no room$"):
        step(loss)
    step(loss)  # asks no more
    assert not recorded and loss.proxies is proxies and proxies.grad is not None


@pytest.mark.parametrize(
    ("error", "told"),
    [(AssertionError(), "AssertionError"), (KeyError("buf0"), "KeyError: 'buf0'"), (RuntimeError(), "RuntimeError")],
    ids=lambda x: type(x).__name__,
)
def test_whatever_a_compiler_raises_a_loss_runs_without(
    monkeypatch: pytest.MonkeyPatch, recorded: list[int], error: Exception, told: str
) -> None:
    def fail(compute: Callable[[], Any], aside: Aside, *, careful: bool) -> Any:
        raise error

    monkeypatch.setattr(recording, "_capture", fail)
    loss, plain = (losses.create("multi_similarity", engine="blocked").double() for _ in range(2))
    plain.forward = lambda *given: plain._value(Batch(*given))
    compared(loss, plain, 3)
    with pytest.warns(UserWarning, match=f"^MultiSimilarity runs without a recording: {told}$"):
        compared(loss, plain, 4)
    compared(loss, plain, 5)  # asks no more
    assert not recorded


def test_a_recording_that_is_interrupted_is_made_later(monkeypatch: pytest.MonkeyPatch, recorded: list[int]) -> None:
    def interrupt(compute: Callable[[], Any], aside: Aside, *, careful: bool) -> Any:
        raise KeyboardInterrupt

    loss, capture = losses.create("multi_similarity", engine="blocked"), recording._capture
    loss(*batch(3, 11))
    monkeypatch.setattr(recording, "_capture", interrupt)
    with pytest.raises(KeyboardInterrupt):
        loss(*batch(4, 11))
    monkeypatch.setattr(recording, "_capture", capture)
    loss(*batch(5, 11))
    assert len(recorded) == 1


def test_other_parameters_put_in_its_place_are_read(recorded: list[int]) -> None:
    """As an average of weights or an inner step does it: a call with tensors in the place of the parameters."""
    loss = losses.create("proxy_anchor", classes=5, dim=4, engine="blocked")
    embeddings, labels = torch.randn(6, 4, generator=torch.Generator().manual_seed(0)), torch.arange(6) % 5
    for factor in (1.0, 1.0, 2.0, -1.0):
        other = {"proxies": (loss.proxies.detach() * factor).requires_grad_(True)}
        found = torch.func.functional_call(loss, other, (embeddings.requires_grad_(True), labels))
        plain = losses.create("proxy_anchor", classes=5, dim=4, engine="dense")
        plain.load_state_dict({"proxies": other["proxies"].detach()})
        torch.testing.assert_close(found.detach(), plain._value(embeddings, labels, None).detach())


def test_a_parameter_with_two_names_gets_its_whole_gradient(recorded: list[int]) -> None:
    class Twice(losses.ProxyAnchor):
        name = "twice"

        def _value(self, *given: Any, **options: Any) -> Tensor:
            return super()._value(*given, **options) + self.again.square().sum()

    loss = Twice(classes=5, dim=4, engine="blocked")
    loss.again = loss.proxies
    norms = []
    for _ in range(3):
        loss.proxies.grad = None
        step(loss)
        norms.append(float(loss.proxies.grad.norm()))
    assert len(recorded) == 2 and norms == pytest.approx([norms[0]] * 3)


def test_checkpointing_goes_without_a_recording(recorded: list[int]) -> None:
    loss = losses.create("ranked_list", engine="blocked").double()
    for seed in range(3):
        loss(*batch(seed, 11))
    assert len(recorded) == 2
    for seed in range(3):
        embeddings, labels = batch(seed, 11)
        value = torch.utils.checkpoint.checkpoint(lambda x, y=labels: loss(x * 2, y), embeddings, use_reentrant=False)
        value.backward()
        plain = losses.create("ranked_list", engine="dense").double()
        other, _ = batch(seed, 11)
        torch.testing.assert_close(embeddings.grad, gradients(plain(other * 2, labels), other)[0])
    assert len(recorded) == 2


def test_nothing_is_recorded_in_float16() -> None:
    """Its gradients must meet the factor that keeps them from vanishing before they are rounded."""

    class Somewhere:
        is_cuda, dtype, requires_grad = True, torch.float16, True

        def __len__(self) -> int:
            return 4

    given: Any = Somewhere()
    assert not engine.possible("compiled", (given,))


def test_few_recordings_are_kept(recorded: list[int]) -> None:
    loss = losses.create("contrastive", engine="blocked").double()
    for n in range(6, 6 + recording.MOST + 3):
        for seed in (1, 2):
            loss(*batch(seed, n))
    assert len(recorded) == recording.MOST
    recording.forget(loss)
    loss(*batch(1, 6))
    assert len(recorded) == recording.MOST


def test_a_recording_that_nobody_asks_for_gives_way(monkeypatch: pytest.MonkeyPatch, recorded: list[int]) -> None:
    """As of a margin that grows by the epoch; one whose last value somebody still goes backward through is whole."""
    monkeypatch.setattr(recording, "MOST", 2)
    monkeypatch.setattr(recording, "IDLE", 3)
    loss: Any = losses.create("contrastive", engine="blocked").double()
    waiting = None
    for epoch in range(4):
        loss.margin = 0.1 * epoch
        for step in range(6):
            embeddings, labels = batch(step, 9)
            value = loss(embeddings, labels)
            if epoch == 0 and step == 5:
                waiting = value, embeddings
        assert sum(isinstance(x, recording._Recording) for x in recording._RECORDINGS[loss].values()) <= 2
    assert len(recorded) == 4 * 5  # of each margin all calls but the first
    assert waiting is not None
    embeddings, labels = batch(5, 9)
    expected = gradients(
        losses.create("contrastive", engine="dense", margin=0.0).double()(embeddings, labels), embeddings
    )
    torch.testing.assert_close(gradients(*waiting), expected)


def test_batches_that_take_turns_drive_no_recording_out(monkeypatch: pytest.MonkeyPatch, recorded: list[int]) -> None:
    monkeypatch.setattr(recording, "MOST", 2)
    made: list[int] = []
    record = recording._record
    monkeypatch.setattr(recording, "_record", lambda *given: made.append(1) or record(*given))  # type: ignore[func-returns-value]
    loss = losses.create("contrastive", engine="blocked").double()
    for seed in range(30):
        for n in (6, 7, 8):
            loss(*batch(seed, n))
    assert len(made) == 2


def test_what_was_seen_once_is_forgotten_before_a_recording(
    monkeypatch: pytest.MonkeyPatch, recorded: list[int]
) -> None:
    monkeypatch.setattr(recording, "SEEN", 3)
    loss = losses.create("contrastive", engine="blocked").double()
    loss(*batch(1, 6)), loss(*batch(2, 6))
    for n in range(7, 15):
        loss(*batch(1, n))
    assert len(recording._RECORDINGS[loss]) <= 3
    loss(*batch(3, 6))
    assert len(recorded) == 2


def test_a_loss_takes_its_recordings_along(monkeypatch: pytest.MonkeyPatch, recorded: list[int]) -> None:
    monkeypatch.setattr(recording, "_capture", lambda compute, aside, careful: (compute(), int))  # no graph holds it
    loss = losses.create("contrastive", engine="blocked").double()
    for seed in range(3):
        loss(*batch(seed, 11))
    gone = weakref.ref(loss)
    gc.collect()
    kept = len(recording._RECORDINGS)
    del loss
    gc.collect()
    assert gone() is None
    assert len(recording._RECORDINGS) == kept - 1


def test_nothing_is_recorded_on_a_cpu_or_without_a_gradient() -> None:
    embeddings, labels = batch(3, 11)
    for kind in ("compiled", "blocked", "dense:recorded"):
        assert not engine.possible(kind, (embeddings, labels, None))


def test_small_batches_are_recorded_on_a_gpu_unless_somebody_else_wrote_a_part(monkeypatch: pytest.MonkeyPatch) -> None:
    class Somewhere:
        is_cuda, dtype, requires_grad = True, torch.float32, True

        def __len__(self) -> int:
            return 180

    class Mine(losses.Contrastive):
        name = "mine"

    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: False)
    gpu, given = torch.device("cuda"), (Somewhere(),)
    ours = losses.create("contrastive")

    def kind(n: int, owner: Any = ours, named: str = "auto", **facts: bool) -> tuple[str, bool]:
        found = engine.settled(named, (n, n), gpu, owner, **facts)
        return found, engine.possible(found, given)  # type: ignore[arg-type]

    assert kind(180) == kind(1024) == ("dense:recorded", True)
    assert kind(1025) == kind(180, Mine()) == kind(180, foreign=True) == kind(180, named="dense") == ("dense", False)
    assert kind(180, named="dense:recorded") == ("dense:recorded", True)
    with torch.no_grad():
        assert kind(180) == ("dense:recorded", False)
    embeddings, labels = batch(3, 11)
    named = losses.create("contrastive", engine="dense:recorded")
    torch.testing.assert_close(named(embeddings, labels), losses.create("contrastive")(embeddings, labels))


def test_nobody_is_told_of_a_recording_that_nobody_asked_for(
    monkeypatch: pytest.MonkeyPatch, recorded: list[int]
) -> None:
    def full(compute: Callable[[], Any], aside: Aside, *, careful: bool) -> Any:
        raise torch.OutOfMemoryError("no room")

    monkeypatch.setattr(recording, "_capture", full)
    loss = losses.create("contrastive")
    for seed in range(3):  # warnings are errors
        loss(*batch(seed, 11))
    assert not recorded


def test_threads_take_turns(recorded: list[int]) -> None:
    """Each gets the values and gradients of its own batches, whoever comes between forward and backward."""
    loss, plain = (losses.create("multi_similarity", engine="blocked") for _ in range(2))
    plain.forward = lambda *given: plain._value(Batch(*given))
    compared(loss, plain, 3)
    compared(loss, plain, 3)  # now there is a recording

    def work(first: int) -> None:
        for seed in range(first, first + 40):
            compared(loss, plain, seed)

    with ThreadPoolExecutor(4) as threads:
        for done in [threads.submit(work, 100 * number) for number in range(4)]:
            done.result()
    assert len(recorded) > 160


def test_a_backward_may_come_while_another_thread_records(monkeypatch: pytest.MonkeyPatch, recorded: list[int]) -> None:
    """On a GPU one thread runs all backwards: what waits for it must not hold what a backward waits for."""
    worker, started, capture = Daemon(), threading.Event(), recording._capture
    grad, threads = torch.autograd.grad, []

    def by_worker(*given: Any, **options: Any) -> Any:
        return worker.ask(lambda: grad(*given, **options)).result(20)

    def meet(compute: Callable[[], Any], aside: Aside, *, careful: bool) -> Any:
        backward = worker.ask(lambda: (started.set(), kept.backward()))
        threads.append(backward)
        assert started.wait(20)
        monkeypatch.setattr(torch.autograd, "grad", by_worker)
        return capture(compute, aside, careful=careful)

    loss, other = losses.create("contrastive").double(), losses.create("multi_similarity").double()
    first, labels = batch(3, 11)
    other(*batch(1, 11)), other(*batch(2, 11))
    kept = other(first, labels)
    monkeypatch.setattr(recording, "_capture", meet)
    loss(*batch(1, 11)), loss(*batch(2, 11))
    threads[0].result(20)
    monkeypatch.setattr(torch.autograd, "grad", grad)
    torch.testing.assert_close(first.grad, gradients(replayed_never(other, *(x := batch(3, 11))), x[0])[0])


def test_two_threads_record_one_after_the_other(monkeypatch: pytest.MonkeyPatch, recorded: list[int]) -> None:
    """Who finds another one recording runs as it is, with what is recorded already too: the workspace is taken."""
    loss, plain = (losses.create("multi_similarity", engine="blocked").double() for _ in range(2))
    plain.forward = lambda *given: plain._value(Batch(*given))
    capture, met = recording._capture, []

    def meet(compute: Callable[[], Any], aside: Aside, *, careful: bool) -> Any:
        if not met:
            met.append(len(recorded))
            for n in (9, 9, 9, 11, 8):
                Daemon().ask(lambda n=n: compared(loss, plain, 5, n)).result(20)
            met.append(len(recorded))
        return capture(compute, aside, careful=careful)

    compared(loss, plain, 3, 9), compared(loss, plain, 3, 9)
    monkeypatch.setattr(recording, "_capture", meet)
    compared(loss, plain, 3), compared(loss, plain, 3)
    assert met[0] == met[1] == 1 and len(recorded) == 2
    for n in (9, 11, 8, 8):
        compared(loss, plain, 4, n)
    assert len(recorded) == 6


def test_who_records_is_alone_and_compiles(monkeypatch: pytest.MonkeyPatch, recorded: list[int]) -> None:
    """Another thread that compiled would wait for the device, and break the recording; what is recorded is compiled."""
    loss, plain = (
        losses.create("multi_similarity", engine=kind).double() for kind in ("compiled:aot_eager", "blocked")
    )
    plain.forward = lambda *given: plain._value(Batch(*given))
    capture, alone = recording._capture, []

    def ask() -> None:
        with gate.alone() as free:
            alone.append(free)

    def meet(compute: Callable[[], Any], aside: Aside, *, careful: bool) -> Any:
        Daemon().ask(ask).result(PATIENCE)
        return capture(compute, aside, careful=careful)

    compared(loss, plain, 3)
    monkeypatch.setattr(recording, "_capture", meet)
    monkeypatch.setattr(compiled, "Eager", lambda plan: pytest.fail("it was recorded without the compiler"))
    loss(*batch(4, 11))
    Daemon().ask(ask).result(PATIENCE)
    assert alone == [False, True] and len(recorded) == 1


def test_nothing_is_recorded_while_another_thread_compiles(recorded: list[int]) -> None:
    loss, plain = (losses.create("multi_similarity", engine="blocked").double() for _ in range(2))
    plain.forward = lambda *given: plain._value(Batch(*given))
    compared(loss, plain, 3)
    with gate.alone():
        for seed in (4, 5):
            Daemon().ask(lambda seed=seed: compared(loss, plain, seed)).result(PATIENCE)
    assert not recorded
    compared(loss, plain, 6)
    assert len(recorded) == 1


def test_threads_compile_and_record_at_once(recorded: list[int]) -> None:
    loss, plain = (
        losses.create("multi_similarity", engine=kind).double() for kind in ("compiled:aot_eager", "blocked")
    )
    plain.forward = lambda *given: plain._value(Batch(*given))

    def work(first: int) -> None:
        for seed in range(first, first + 12):
            compared(loss, plain, seed, 9 + seed % 3)

    threads = [Daemon().ask(lambda number=number: work(100 * number)) for number in range(3)]
    for thread in threads:
        thread.result(PATIENCE)
    for seed in (3, 4, 5, 6, 7, 8):  # of each kind the call that records, if none has yet
        compared(loss, plain, seed, 9 + seed % 3)
    assert recorded and sum(map(bool, recording._RECORDINGS[loss].values())) == 3


def test_a_stream_waits_for_the_one_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """Recordings share a workspace, so only what follows on the same stream may come at once."""

    class Stream:
        device_index = 0

        def __init__(self) -> None:
            self.waited: list[Stream] = []

        def wait_stream(self, other: Stream) -> None:
            self.waited.append(other)

    class Somewhere:
        is_cuda, device = True, "cuda:0"

    one, other, there = Stream(), Stream(), Somewhere()
    monkeypatch.setattr(recording, "_LAST", {})
    for stream in (one, one, other, one):
        monkeypatch.setattr(torch.cuda, "current_stream", lambda device, stream=stream: stream)
        recording._take_turns(there)  # type: ignore[arg-type]
    assert (one.waited, other.waited) == ([other], [one])


@pytest.mark.gpu
def test_streams_take_turns() -> None:
    """Two losses on two streams, forward and backward, nobody waiting in between."""
    names, count = ("multi_similarity", "contrastive"), 20
    streams = {name: torch.cuda.Stream() for name in names}
    made = {name: losses.create(name, engine="compiled").cuda() for name in names}
    labels = torch.arange(4096, device="cuda") // 4
    given = [
        torch.randn(4096, 128, device="cuda", generator=torch.Generator("cuda").manual_seed(n)) for n in range(count)
    ]

    def run(name: str, x: torch.Tensor) -> list[torch.Tensor]:
        leaf = x.clone().requires_grad_(True)
        value = made[name](leaf, labels)
        return [value.detach(), *gradients(value, leaf)]

    alone = {name: [run(name, x) for x in given] for name in names}  # on one stream, recorded from the third on
    torch.cuda.synchronize()
    found: dict[str, list[list[torch.Tensor]]] = {name: [] for name in names}
    for x in given:
        for name in names:
            with torch.cuda.stream(streams[name]):
                found[name].append(run(name, x))
    torch.cuda.synchronize()
    for name in names:
        assert any(recording._RECORDINGS[made[name]].values())
        for first, second in zip(alone[name], found[name], strict=True):
            for expected, got in zip(first, second, strict=True):
                torch.testing.assert_close(got, expected)


@pytest.mark.gpu
@pytest.mark.parametrize("kind", ["compiled", "auto"])
@pytest.mark.parametrize("case", RECORDED, ids=lambda case: case.id)
def test_a_device_replays(case: Case, kind: str) -> None:
    loss, plain = case.make(engine=kind).cuda(), case.make(engine="dense").cuda()
    for seed in range(3, 7):
        found = []
        for one in (loss, plain):
            embeddings, labels = batch(seed, 11)
            there = embeddings.detach().cuda().requires_grad_(True)
            value = one(there, labels.cuda())
            found.append([value.detach(), *gradients(value, there, *one.parameters())])
        for first, second in zip(*found, strict=True):
            torch.testing.assert_close(first, second)
    assert any(recording._RECORDINGS[loss].values())


@pytest.mark.gpu
def test_a_value_that_is_kept_does_not_disturb_a_recording() -> None:
    """As in most training loops: the last value is alive when the next batch comes, and the proxies belong to it."""
    loss = losses.create("proxy_anchor", classes=5, dim=3, engine="compiled").cuda()
    kept = []
    for seed in range(4):
        embeddings, labels = batch(seed, 11)
        there = embeddings.detach().float().cuda().requires_grad_(True)
        kept.append(loss(there, labels.cuda()))
        kept[-1].backward()
    assert any(recording._RECORDINGS[loss].values())


@pytest.mark.gpu
@pytest.mark.parametrize("kind", ["compiled", "auto"])
@pytest.mark.filterwarnings("ignore:Synchronization debug mode")
def test_a_replay_never_makes_the_device_wait(kind: str) -> None:
    loss = losses.create("ranked_list", engine=kind)
    embeddings, labels = batch(5, 11)
    there, classes = embeddings.detach().cuda().requires_grad_(True), labels.cuda()
    for _ in range(3):
        loss(there, classes).backward()
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("error")
    try:
        loss(there, classes).backward()
    finally:
        torch.cuda.set_sync_debug_mode("default")


class Waiting(losses.Contrastive):
    """Asks the device for a number, which no recording can."""

    name = "waiting"

    def extra(self, queries: Tensor, labels: Tensor | None) -> tuple[Tensor, ...]:
        return (queries.new_full((len(queries),), float(queries.detach().sum().item() * 0)),)


@pytest.mark.gpu
def test_a_loss_that_waits_runs_as_it_is_and_harms_nobody() -> None:
    loss, plain = Waiting(engine="compiled").cuda(), Waiting(engine="dense").cuda()
    before = torch.cuda.current_stream()
    for seed in range(3, 6):
        found = []
        for one in (loss, plain):
            embeddings, labels = batch(seed, 11)
            there = embeddings.detach().cuda().requires_grad_(True)
            with warnings.catch_warnings(record=True) as heard:
                warnings.simplefilter("always")
                value = one(there, labels.cuda())
            told = [str(warning.message) for warning in heard if "without a recording" in str(warning.message)]
            expected = ["Waiting runs without a recording: it waits for the device"]
            assert [text.split(", as")[0] for text in told] == (expected if one is loss and seed == 4 else [])
            found.append([value.detach(), *gradients(value, there)])
        for first, second in zip(*found, strict=True):
            torch.testing.assert_close(first, second)
    assert torch.cuda.current_stream() == before and torch.cuda.get_sync_debug_mode() == 0
    torch.randn(1, device="cuda")  # an error where torch believes that it is recorded still
    other = losses.create("multi_similarity", engine="compiled").cuda()
    for seed in range(3):
        embeddings, labels = batch(seed, 11)
        other(embeddings.detach().cuda().requires_grad_(True), labels.cuda()).backward()
    assert any(recording._RECORDINGS[other].values())


@pytest.mark.gpu
def test_threads_record_and_go_backward_on_a_device() -> None:
    loss, plain = (losses.create("multi_similarity", engine=kind).cuda() for kind in ("compiled", "dense"))

    def work(first: int) -> None:
        for seed in range(first, first + 20):
            found = []
            for one in (loss, plain):
                embeddings, labels = batch(seed, 9 + seed % 3)
                there = embeddings.detach().cuda().requires_grad_(True)
                value = one(there, labels.cuda())
                found.append([value.detach(), *gradients(value, there)])
            for first_one, second in zip(*found, strict=True):
                torch.testing.assert_close(first_one, second)

    with ThreadPoolExecutor(3) as threads:
        for done in [threads.submit(work, 100 * number) for number in range(3)]:
            done.result()
    assert any(recording._RECORDINGS[loss].values())


@pytest.mark.gpu
def test_a_random_miner_that_is_assigned_counts_where_the_batch_is() -> None:
    loss = losses.create("contrastive", engine="auto").cuda()
    loss.miner, loss.members = "random", 4
    for seed in range(4):
        embeddings, labels = batch(seed, 11)
        loss(embeddings.detach().cuda().requires_grad_(True), labels.cuda()).backward()
    assert loss.draws.is_cuda and int(loss.draws) == 4
    assert any(recording._RECORDINGS[loss].values())
