"""A loss and its gradient recorded once and replayed: of a small batch the host launches kernels more slowly than a GPU
runs them.

The first call for a kind of batch runs as it is, the second one records, later ones replay. What is recorded reads its own
copies of the batch and the parameters where they are. The gradient stays where it was written until a later call would write
over it, and is copied out then if it may still be asked for: so calls do not disturb each other. Those of other threads and
streams take turns; while one of them makes a recording, the others run as they are, and compile nothing.
"""

from __future__ import annotations

import threading
import warnings
import weakref
from collections.abc import Callable, Hashable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn

from nearkin.derivatives import once
from nearkin.engine import gate
from nearkin.engine.compiled import ours
from nearkin.engine.shadow import apart, reaches_beyond, shadow
from nearkin.engine.size import RECORDED
from nearkin.engine.waiting import never_waiting
from nearkin.vectors import narrow

MOST = 4
"""Recordings of one loss, each of which holds the memory that it works in; other batches run without."""
IDLE = 64
"""Calls of a loss after which a recording that none of them used gives way to another: settings that change by the epoch
leave recordings that nobody asks for any more, sizes of batches that take turns do not."""
SEEN = 256
"""Kinds of batches that are remembered as seen once."""
ROWS = 2**18
"""Images of a batch beyond which nothing is recorded: its blocks keep the device busy for longer than the host needs."""


@dataclass
class _Recording:
    """Memory that a recording reads and writes, the call that runs it, and the node of the last value it gave."""

    given: list[Tensor]
    value: Tensor
    slopes: list[Tensor | None]
    again: Callable[[], None]
    last: Callable[[], Any] = lambda: None
    used: int = 0

    def save(self) -> None:
        """Copy the gradient out for the last value, unless that is gone or was differentiated for good."""
        node = self.last()
        if node is None or node.slopes is not self.slopes:
            return
        try:
            # An error once backward has freed them; looked at, not unpacked: somebody's hooks may hang on them.
            node._raw_saved_tensors  # noqa: B018
        except RuntimeError:
            return
        node.slopes, node.copied = [None if slope is None else slope.clone() for slope in self.slopes], True


class _Known(dict[Hashable, _Recording | Literal[False] | None]):
    """Of one loss object, by kind of batch: its recording, None: seen once, False: cannot be recorded; and how many of its
    calls looked for one."""

    calls = 0

    def room(self) -> bool:
        """Whether there may be another recording, for which one that is idle goes."""
        held = {kind: entry for kind, entry in self.items() if isinstance(entry, _Recording)}
        if len(held) < MOST:
            return True
        kind, oldest = min(held.items(), key=lambda item: item[1].used)
        if self.calls - oldest.used <= IDLE:
            return False
        _take_turns(oldest.value)
        oldest.save()  # somebody may still go backward through its last value
        del self[kind]
        return True


# Held while recordings are looked up, launched and read from. Whoever holds it waits for no other thread: autograd has one
# thread for each device, which runs everybody's backward and may be waiting for this lock.
_LOCK = threading.RLock()
# Held while one is made, which asks that thread of autograd for gradients. So it is tried for, never waited for; and since
# what is made and what is replayed share a workspace, all calls that find it taken run as they are.
_MAKING = threading.Lock()
# Of each GPU: the stream on which everything is recorded, since matrix products keep a workspace for every stream they were
# ever run on; and the stream that used a recording last.
_STREAMS: dict[int, torch.cuda.Stream] = {}
_LAST: dict[int, torch.cuda.Stream] = {}
_RECORDINGS: weakref.WeakKeyDictionary[nn.Module, _Known] = weakref.WeakKeyDictionary()


def possible(engine: str, given: Sequence[Tensor | None]) -> bool:
    """Whether a call with these tensors is to be recorded: compiled, or dense and small, on a GPU, with a gradient, not in
    float16, and not as part of something that is itself being recorded or compiled."""
    return (
        (engine == RECORDED or engine.split(":")[0] == "compiled")
        and all(x is None or (x.is_cuda and len(x) <= ROWS) for x in given)
        # A factor as large as float16 needs must reach its gradients before they are rounded.
        and not any(x is not None and x.dtype == torch.float16 for x in given)
        and torch.is_grad_enabled()
        and any(x is not None and x.requires_grad for x in given)
        and not torch.compiler.is_compiling()
        and not torch.cuda.is_current_stream_capturing()
    )


def replay(owner: nn.Module, call: Callable[..., Tensor], given: Sequence[Tensor | None], facts: Hashable) -> Tensor:
    """``call(owner, *given)``, a scalar that depends on these tensors, on parameters and buffers of the owner and on
    ``facts``, and that asks the device nothing. What is recorded is the call of something that stands for the owner."""
    present = [x for x in given if x is not None]
    learned, buffers = list(owner.parameters()), list(owner.buffers())  # looked for once: it takes a while
    elsewhere = any(buffer.device != present[0].device for buffer in buffers)
    # What is copied from elsewhere would be frozen in a recording, and what hooks do would be missing from it.
    if elsewhere or _hooked():
        return call(owner, *given)
    with torch.cuda.device_of(present[0]):
        kind = (facts, _products(), *map(_kind, given), *map(_placed, learned), *map(_placed, buffers))
        value = _replayed(owner, kind, present, learned)
        if value is None and _claimed(owner, kind):
            _make(owner, call, given, kind)
            value = _replayed(owner, kind, present, learned)
    return call(owner, *given) if value is None else value


def _hooked() -> bool:
    """Whether what is saved for backward goes through somebody's hands, as with checkpointing."""
    top = getattr(torch._C._autograd, "_top_saved_tensors_default_hooks", None)
    return top is not None and top(False) is not None


def _replayed(owner: nn.Module, kind: Hashable, present: Sequence[Tensor], learned: Sequence[Tensor]) -> Tensor | None:
    """What the recording for batches of a kind gives; None: there is none, or its workspace is taken."""
    with _LOCK:
        known = _RECORDINGS.get(owner)
        if not known:
            return None
        known.calls += 1
        found = known.get(kind)
        if not found or _MAKING.locked():
            return None
        found.used = known.calls
        value: Tensor = _Replay.apply(found, present, *(x for x in (*present, *learned) if x.requires_grad))
        return value


def _claimed(owner: nn.Module, kind: Hashable) -> bool:
    """Whether a recording for batches of a kind is to be made now, by this thread: if one was seen before."""
    with _LOCK:
        known = _RECORDINGS.setdefault(owner, _Known())
        if kind not in known:
            if len(known) >= SEEN:
                for seen in [seen for seen, entry in known.items() if not entry]:
                    del known[seen]
            known[kind] = None
            return False
        return known[kind] is None and not _MAKING.locked() and known.room() and _MAKING.acquire(blocking=False)


def _make(owner: nn.Module, call: Callable[..., Tensor], given: Sequence[Tensor | None], kind: Hashable) -> None:
    """Make the recording that was claimed; where that cannot be, remember it. Not while another thread compiles: later."""
    found: _Recording | Literal[False] | None = None
    try:
        # A first call of somebody else's step tries programs and waits for the device, which breaks a recording.
        with gate.alone() as free:
            if free:
                found = _record(owner, call, given)
    # Out of memory, what a graph cannot hold, or whatever a compiler raises. If the call itself is at fault, it says
    # so again: it runs as it is now.
    except Exception as error:
        found = False
        if getattr(owner, "engine", "auto") != "auto":  # else nobody has asked for a recording
            warnings.warn(f"{type(owner).__name__} runs without a recording: {_reason(error)}", stacklevel=4)
    finally:
        with _LOCK:
            known = _RECORDINGS.setdefault(owner, _Known())
            known[kind] = found
            if found:
                found.used = known.calls
            _MAKING.release()


def _reason(error: Exception) -> str:
    """The first line of an error, with its type where that is needed to understand it."""
    text = "".join(str(error).strip().splitlines()[:1])
    if isinstance(error, RuntimeError) and text:
        return text
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def forget(owner: nn.Module) -> None:
    """Give back the memory of a loss's recordings."""
    _RECORDINGS.pop(owner, None)


class _Replay(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, recording: _Recording, own: Sequence[Tensor], *leaves: Tensor) -> Tensor:
        _take_turns(recording.value)
        recording.save()
        for memory, x in zip(recording.given, own, strict=True):
            memory.copy_(x)
        recording.again()
        value = recording.value.clone()
        ctx.save_for_backward(value)
        ctx.slopes, ctx.copied, recording.last = recording.slopes, False, weakref.ref(ctx)
        return value

    @staticmethod
    @once
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        ctx.saved_tensors  # noqa: B018  a second time is an error, as with any other function
        with _LOCK:
            _take_turns(grad)
            if ctx.copied:
                _lend(ctx.slopes)
            return None, None, *(None if slope is None else _times(slope, grad) for slope in ctx.slopes)


def _take_turns(like: Tensor) -> None:
    """Let the current stream wait for what another one still does with recordings: they share a workspace."""
    if not like.is_cuda:
        return
    current = torch.cuda.current_stream(like.device)
    last = _LAST.get(current.device_index)
    if last is not None and last != current:
        current.wait_stream(last)
    _LAST[current.device_index] = current


def _lend(copies: Sequence[Tensor | None]) -> None:
    """Keep memory that was taken on another stream until the current one has read it, though nobody names it any more."""
    for copy in copies:
        if copy is not None and copy.is_cuda:
            copy.record_stream(torch.cuda.current_stream(copy.device))


def _times(slope: Tensor, factor: Tensor) -> Tensor:
    """A gradient times a number that may have more digits than it."""
    if slope.dtype == torch.float16 != factor.dtype:
        return narrow(slope.to(factor.dtype).mul_(factor), slope.dtype)
    if not slope.dim():
        return slope * factor
    # As a tensor of one dimension the number keeps its digits until the products are rounded.
    return torch.mul(slope, factor[None], out=torch.empty_like(slope))


def _record(owner: nn.Module, call: Callable[..., Tensor], given: Sequence[Tensor | None]) -> _Recording:
    # What belongs to the batch is read from memory of the recording's own; None stays None.
    own = [None if x is None else x.detach().clone().requires_grad_(x.requires_grad) for x in given]
    # Parameters are read where they are, but as leaves of no other graph: one of those may belong to another stream.
    alone = {id(x): x.detach().requires_grad_(x.requires_grad) for x in owner.parameters()}
    # The owner itself keeps its parameters: another thread may be using it.
    double = shadow(owner, alone)
    present = [x for x in own if x is not None]
    leaves = [x for x in (*present, *alone.values()) if x.requires_grad]

    def compute() -> tuple[Tensor, list[Tensor | None]]:
        value = call(double, *own)
        if reaches_beyond(value, leaves):
            raise RuntimeError("it learns something that is not among its parameters, or reads them around itself")
        return value.detach(), list(torch.autograd.grad(value, leaves, allow_unused=True))

    with torch.no_grad():
        memory = [x.detach() for x in present]
    (value, slopes), again = _capture(compute, lambda: apart(double), careful=not ours(owner))
    return _Recording(memory, value, slopes, again)


def _capture(
    compute: Callable[[], Any], aside: Callable[[], AbstractContextManager[None]], *, careful: bool
) -> tuple[Any, Callable[[], None]]:
    """What a call writes its results into, and how to run it again, on the current GPU.

    It is run before it is recorded, inside ``aside``, so that it is not counted; ``careful``: once more, to see whether it
    waits for the device.
    """
    here = torch.empty(0, device="cuda")
    number = torch.cuda.current_device()
    with _LOCK:
        _take_turns(here)
        # Taken once: streams come from a pool and go round, so that another might be one that somebody works on.
        if number not in _STREAMS:
            _STREAMS[number] = torch.cuda.Stream()
    stream, current = _STREAMS[number], torch.cuda.current_stream()
    stream.wait_stream(current)
    try:
        with torch.cuda.stream(stream), aside():
            compute()  # libraries take their workspaces, compilers compile
            if careful:
                with never_waiting():
                    compute()
    finally:
        current.wait_stream(stream)
        with _LOCK:  # a backward of another thread may have been the last meanwhile
            _take_turns(here)
    graph = torch.cuda.CUDAGraph()
    failed: BaseException | None = None
    try:
        # Where a recording fails, torch leaves its stream current, and its own error hides the one that says why.
        with torch.cuda.stream(current), torch.cuda.graph(graph, stream=stream, capture_error_mode="thread_local"):
            try:
                results = compute()
            except BaseException as error:
                failed = error
                raise
    except Exception:
        if failed is not None:
            raise failed from None
        raise
    return results, graph.replay


def _kind(x: Tensor | None) -> Hashable:
    """All of a tensor but its numbers."""
    return None if x is None else (x.shape, x.dtype, x.device, x.requires_grad)


def _products() -> Hashable:
    """What somebody may tell torch between two calls of how products and sums are made, all of which a recording keeps."""
    # Asked where the answers are: the public functions raise an error where a setting was made in the other of two ways.
    return (
        torch._C._get_fp32_precision_getter("cuda", "matmul"),
        torch._C._get_cublas_allow_bf16_reduced_precision_reduction(),
        torch._C._get_deterministic_algorithms(),
    )


def _placed(x: Tensor) -> Hashable:
    """Of a parameter or a buffer also where it is."""
    return _kind(x), x.data_ptr()
