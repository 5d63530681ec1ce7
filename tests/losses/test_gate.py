"""Threads that compile at the same time do not break each other, nor the compiler for the rest of the process."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

from nearkin import WeightedPairs, engine, losses
from nearkin.engine import compiled, gate
from nearkin.engine.step import Eager
from nearkin.tracing import by_engine
from tests.daemon import Daemon
from tests.losses.cases import batch, gradients
from tests.losses.test_engine import same
from tests.patience import PATIENCE, until

UNTOUCHED = torch.nn.Module.__call__, torch.nn.Module.__getattr__


@pytest.fixture(autouse=True, scope="module")
def _kind_of_mask() -> None:
    """Once is enough: what is compiled makes its masks from labels itself."""


@pytest.fixture(autouse=True)
def _nothing_left() -> Iterator[None]:
    """After each test torch is as it was, and anybody may compile."""
    torch._dynamo.reset()
    yield
    assert (torch.nn.Module.__call__, torch.nn.Module.__getattr__) == UNTOUCHED
    assert gate._alone is None and not gate._INSIDE
    ran = []

    def backend(graph: torch.fx.GraphModule, given: Any) -> Any:
        ran.append(given)
        return graph.forward

    unrelated = torch.nn.Linear(3, 2)
    x = torch.ones(4, 3)
    same([torch.compile(unrelated, backend=backend)(x)], [unrelated(x)])
    assert ran


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The threads that worked on a block without the compiler, once for each."""
    heard: list[int] = []

    class Heard(Eager):
        def __call__(self, *given: Any) -> Any:
            heard.append(threading.get_ident())
            return super().__call__(*given)

    monkeypatch.setattr(compiled, "Eager", Heard)
    return heard


def made(name: str, kind: str = "compiled:aot_eager", **settings: Any) -> Any:
    return losses.create(name, engine=kind, **settings).double()


def found(loss: Any, n: int, **options: Any) -> list[torch.Tensor]:
    embeddings, labels = batch(n, n)
    value = loss(embeddings, labels, **options)
    return [value.detach(), *gradients(value.sum(), embeddings)]


def compared(loss: Any, n: int, **options: Any) -> None:
    same(found(loss, n, **options), found(made(loss.name, "dense"), n, **options))


@pytest.mark.parametrize(
    "names", [["contrastive", "ranked_list"], ["multi_similarity", "contrastive", "nra", "contrastive"]]
)
def test_threads_compile_at_once(names: list[str]) -> None:
    """Other losses and the same one, each shape first by another thread; also in backward, which sees a step anew."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)  # every thread is interrupted in the middle of something
    start = threading.Barrier(len(names))
    made_once = {name: made(name) for name in names}

    def work(place: int) -> None:
        start.wait(PATIENCE)
        for n in (9 + (place + k) % 3 for k in range(6)):
            compared(made_once[names[place]], n)
            compared(made_once[names[place]], n, reduction="none")

    try:
        threads = [Daemon().ask(lambda place=place: work(place)) for place in range(len(names))]
        for thread in threads:
            thread.result(PATIENCE)
    finally:
        sys.setswitchinterval(before)


class Traced:
    """``_compile`` that first does something else, in the middle of a trace as far as others can tell."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, meanwhile: Callable[[], object]) -> None:
        self.times, self.meanwhile, self.real = 0, meanwhile, compiled._compile
        monkeypatch.setattr(compiled, "_compile", self)

    def __call__(self, *given: Any) -> Any:
        self.times += 1
        self.meanwhile()
        return self.real(*given)


def test_who_is_not_let_in_does_without_and_waits_for_nobody(monkeypatch: pytest.MonkeyPatch, eager: list[int]) -> None:
    known, other, loss = made("contrastive"), made("nra"), made("multi_similarity")
    compared(known, 9)
    thread = Daemon()

    def meanwhile() -> None:
        for one in (known, other, loss):
            thread.ask(lambda one=one: compared(one, 9)).result(PATIENCE)

    traced = Traced(monkeypatch, meanwhile)
    compared(loss, 9)
    assert traced.times == 1 and len(eager) == 3 and threading.get_ident() not in eager
    monkeypatch.undo()
    traced = Traced(monkeypatch, lambda: None)
    for one in (known, loss):  # compiled by whoever was first, for everybody
        thread.ask(lambda one=one: compared(one, 9)).result(PATIENCE)
    assert traced.times == 0
    thread.ask(lambda: compared(other, 9)).result(PATIENCE)
    assert traced.times == 1


def test_others_go_on_in_the_middle_of_a_trace(eager: list[int]) -> None:
    """Where torch has put methods of its own into all modules, and calling anything compiled would be an error."""
    known, asked = made("contrastive"), []
    compared(known, 9)

    def rule(s: torch.Tensor, p: torch.Tensor, n: torch.Tensor) -> torch.Tensor:
        if by_engine():
            asked.append(torch.nn.Module.__call__ is not UNTOUCHED[0])
            Daemon().ask(lambda: compared(known, 9)).result(PATIENCE)
        return torch.sigmoid(s)

    found(WeightedPairs(rule=rule, engine="compiled:aot_eager").double(), 9)
    assert asked and all(asked) and len(eager) == len(asked)


def test_who_compiles_waits_until_the_others_have_left() -> None:
    leave, order = threading.Event(), []

    def step(*given: Any) -> str:
        order.append("inside")
        assert leave.wait(PATIENCE)
        order.append("left")
        return "found"

    def compile_something() -> None:
        with gate.alone() as free:
            order.append("alone" if free else "never")

    one, other = Daemon(), Daemon()
    inside = one.ask(lambda: gate.enter(step, []))
    until(lambda: order)
    compiling = other.ask(compile_something)
    until(lambda: gate._alone is not None)
    assert gate.enter(step, []) is None  # nobody gets in any more, so that the wait ends
    with gate.alone() as free:
        assert not free  # nor does a second one queue up
    leave.set()
    assert inside.result(PATIENCE) == "found"
    compiling.result(PATIENCE)
    assert order == ["inside", "left", "alone"]


def test_a_thread_never_waits_for_itself() -> None:
    def step(*given: Any) -> str:
        with gate.alone() as free, gate.alone() as again:
            return str(gate.enter(lambda: (free, again), []))

    assert gate.enter(step, []) == "(True, True)"


def test_a_loss_inside_the_rule_of_another_is_traced_with_it() -> None:
    def value(kind: str) -> list[torch.Tensor]:
        inner = made("contrastive", kind)

        def rule(s: torch.Tensor, p: torch.Tensor, n: torch.Tensor) -> torch.Tensor:
            return s * inner(s, torch.arange(len(s)) % 3).detach()

        return found(WeightedPairs(rule=rule, engine=kind).double(), 9)

    same(value("compiled:aot_eager"), value("dense"))


@pytest.mark.parametrize("kind", [RuntimeError, KeyboardInterrupt])
def test_an_error_while_tracing_lets_others_compile(monkeypatch: pytest.MonkeyPatch, kind: type[BaseException]) -> None:
    def fail() -> None:
        raise kind("in the middle")

    loss = made("contrastive")
    traced = Traced(monkeypatch, fail)
    with pytest.raises(kind, match="^in the middle$"):
        compared(loss, 9)
    traced.meanwhile = lambda: None
    Daemon().ask(lambda: compared(made("nra"), 9)).result(PATIENCE)
    compared(loss, 9)
    assert traced.times == 3


def test_a_step_that_fails_when_it_is_first_called_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Torch compiles in the first call: a step that was never called through would be compiled among other threads."""

    def broken(*given: Any) -> Any:
        raise RuntimeError("no compiler")

    loss, real = made("contrastive"), compiled._compile
    monkeypatch.setattr(compiled, "_compile", lambda *given: broken)
    with pytest.raises(RuntimeError, match="^no compiler$"):
        compared(loss, 9)
    monkeypatch.setattr(compiled, "_compile", real)
    Daemon().ask(lambda: compared(loss, 9)).result(PATIENCE)


def test_an_error_inside_a_step_lets_others_compile() -> None:
    def broken() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        gate.enter(broken, [])

    def compile_something() -> bool:
        with gate.alone() as free:
            return free

    assert Daemon().ask(compile_something).result(PATIENCE)


def test_a_known_step_is_never_compiled_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would be while others are inside of theirs; whatever makes torch compile is therefore a step of its own."""
    torch._dynamo.utils.counters.clear()
    traced, loss = Traced(monkeypatch, lambda: None), made("contrastive")
    embeddings, labels = batch(3, 11)
    columns = torch.stack([labels, labels], 1)
    for _ in range(2):
        loss(embeddings, labels)
        loss(embeddings, columns[:, 0])
        for mode in (torch.no_grad(), torch.autocast("cpu"), torch.inference_mode()):
            with mode:
                loss(embeddings, labels)
                loss(embeddings.clone(), labels.clone())
    assert torch._dynamo.utils.counters["frames"]["total"] == traced.times == len(compiled._STEPS[loss])


def test_blocks_of_one_thread_are_all_compiled(eager: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """So that two runs have the same bits."""
    monkeypatch.setattr(engine.size, "block_rows", lambda rows, columns, device: 4)
    loss = made("contrastive")
    for n in (11, 11, 12):
        compared(loss, n)
        compared(loss, n, reduction="none")
    assert not eager
