"""Batches of images for training and testing: cropped, mirrored and normalised, on the device that wants them.

Where the pixels come from depends on the device and decides who does what:

- *CPU*: the memory-mapped file itself; ``workers`` threads prepare batches ahead.
- *resident*: all pixels lie on the device once (`Resident`), shared by every feed that is given them. A batch then costs the
  host a few numbers per image.
- *otherwise*: ``workers`` threads copy the images of a batch into pinned memory; they cross to the device and are resampled
  there on a stream of their own, one batch ahead of the one in use.

Which pixels an image shows depends on (seed, step, row of its table) only, never on the way it took.
"""

from __future__ import annotations

import warnings
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nearkin import checks
from nearkin.data.geometry import Geometry, noise
from nearkin.data.pack import Pack
from nearkin.data.resample import STEP, Colours, resample, to_device

Batch = tuple[Tensor, Tensor, Tensor]
Batches = Generator[Batch, None, None]
Rows = Sequence[int] | NDArray[Any] | Tensor
In = TypeVar("In")
Out = TypeVar("Out")

FLOATS = (torch.float32, torch.bfloat16, torch.float16, torch.float64)
SHARE = 0.5
"""A pack stays on a device if it takes at most this share of the memory that is free there."""


class Resident:
    """The pixels of a pack on a device. Give it to every feed that shows images of this pack, whole or selected.

    >>> from nearkin.data.pack import pack
    >>> from nearkin.data.table import ImageTable
    >>> images = pack(ImageTable(np.zeros((2, 8, 8), np.uint8), np.array([0, 1]), ("cat", "dog")), None)
    >>> Resident(images, "cpu").holds(images.select([1]))
    True
    """

    def __init__(self, pack: Pack, device: torch.device | str, part: int = 2**26) -> None:
        self.device = _device(device)
        self.digest = pack.digest
        self.bytes = pack.nbytes
        # Rows of the last image may be read at the width of a padded box.
        spare = (int(pack.width.max()) + STEP) * 3
        self.pixels = torch.empty(self.bytes + spare, dtype=torch.uint8, device=self.device)
        self.pixels[self.bytes :].zero_()
        for begin in range(0, self.bytes, part):
            self.pixels[begin : min(begin + part, self.bytes)].copy_(
                torch.from_numpy(np.array(pack.pixels[begin : begin + part]))
            )

    def holds(self, pack: Pack) -> bool:
        """Whether these are the pixels of that pack."""
        return self.digest == pack.digest and self.bytes == pack.nbytes

    @staticmethod
    def fits(pack: Pack, device: torch.device | str) -> bool:
        """Whether a CUDA device has room for the pixels and as much again; other devices read from the host."""
        wanted = _device(device)
        if wanted.type != "cuda":
            return False
        free, _ = torch.cuda.mem_get_info(wanted)
        return pack.nbytes <= SHARE * free


@dataclass(frozen=True)
class _Job:
    """A batch to be made: rows of the pack and the step that draws its crops, None for a test."""

    rows: NDArray[np.int64]
    step: int | None


@dataclass(frozen=True)
class _Plan:
    """What a batch shows, and of which pixels."""

    job: _Job
    pixels: Tensor
    offset: NDArray[np.int64]
    boxes: NDArray[np.float64]
    flips: NDArray[np.bool_] | None


class Feed:
    """Batches of a pack's images.

    - ``geometry``: how images are cut, and to which size;
    - ``mean``, ``std``: of red, green and blue on the scale from 0 to 1; images come as (value / 255 - mean) / std;
    - ``dtype``, ``channels_last``: of the images;
    - ``resident``: True keeps all pixels on the device, a ``Resident`` shares those of another feed, False never does,
      None does where they fit (``Resident.fits``);
    - ``workers``: threads that prepare batches ahead; 0 prepares each when it is asked for;
    - ``seed``: of the crops.

    Attributes: ``pack``, ``geometry``, ``device``, ``resident`` (a ``Resident`` or None), ``step`` (of the next batch for
    training where none is named).

    >>> from nearkin.data.pack import pack
    >>> from nearkin.data.table import ImageTable
    >>> images = pack(ImageTable(np.zeros((3, 8, 8), np.uint8), np.array([0, 1, 1]), ("cat", "dog")), None)
    >>> feed = Feed(images, Geometry("crop", size=6, resize=8), mean=(0.5, 0.5, 0.5), std=(0.5, 0.5, 0.5))
    >>> for pictures, labels, rows in feed.train([[2, 0], [1]]):
    ...     print(tuple(pictures.shape), labels.tolist(), rows.tolist())
    (2, 3, 6, 6) [1, 0] [2, 0]
    (1, 3, 6, 6) [1] [1]
    """

    def __init__(
        self,
        pack: Pack,
        geometry: Geometry,
        *,
        mean: Sequence[float] = (0.0, 0.0, 0.0),
        std: Sequence[float] = (1.0, 1.0, 1.0),
        device: torch.device | str = "cpu",
        dtype: torch.dtype = torch.float32,
        channels_last: bool = False,
        resident: bool | Resident | None = None,
        workers: int = 0,
        seed: int = 0,
    ) -> None:
        checks.setting("feed", "workers", workers, checks.Limit(low=0, whole=True))
        checks.setting("feed", "seed", seed, checks.SEED)
        if dtype not in FLOATS:
            raise TypeError(f"dtype must be a floating type, got {dtype}; use torch.float32 or torch.bfloat16.")
        self.pack = pack
        self.geometry = geometry
        self.device = _device(device)
        self.dtype = dtype
        self.channels_last = channels_last
        self.workers = workers
        self.seed = seed
        self.step = 0
        self.resident = self._resident(resident)
        self._colours = Colours.of(mean, std, device=self.device)
        self._labels = torch.from_numpy(np.array(pack.labels)).to(self.device)
        self._pixels = self.resident.pixels if self.resident is not None else _shared(pack.pixels)

    def _resident(self, wanted: bool | Resident | None) -> Resident | None:
        if isinstance(wanted, Resident):
            if wanted.device != self.device or not wanted.holds(self.pack):
                raise ValueError(
                    f"resident must hold the pixels of this pack on {self.device}, got those of "
                    f"{'this pack' if wanted.holds(self.pack) else 'another pack'} on {wanted.device}; pass None."
                )
            return wanted
        keep = Resident.fits(self.pack, self.device) if wanted is None else wanted
        return Resident(self.pack, self.device) if keep else None

    def train(self, batches: Iterable[Rows], first_step: int | None = None) -> Batches:
        """Random crops: (images, labels, rows) of each batch of rows; batch k is step ``first_step`` + k.

        Crops are drawn by seed and step. Without ``first_step`` steps count on from the batches that were taken before.
        ``batches`` is read a few batches ahead where there are workers, never more. Closing the iterator, or dropping it,
        ends the threads.
        """
        if first_step is None:
            return self._counted(batches)
        checks.setting("feed", "first_step", first_step, checks.Limit(low=0, whole=True))
        return self._run(_Job(self._rows(rows), step) for step, rows in enumerate(batches, first_step))

    def _counted(self, batches: Iterable[Rows]) -> Batches:
        for batch in self.train(batches, self.step):
            self.step += 1
            yield batch

    def test(self, rows: Rows | None = None, batch: int = 256) -> Batches:
        """Centre crops: (images, labels, rows) of these rows in order, all of them by default, ``batch`` at a time."""
        checks.setting("feed", "batch", batch, checks.COUNT)
        every = np.arange(len(self.pack)) if rows is None else self._rows(rows)
        return self._run(_Job(every[begin : begin + batch], None) for begin in range(0, len(every), batch))

    def _rows(self, rows: Rows) -> NDArray[np.int64]:
        index = np.asarray(rows)
        if index.ndim != 1 or (len(index) and index.dtype.kind not in "iu"):
            raise TypeError(
                f"rows must be a list of row numbers, got {index.dtype} of shape {index.shape}; pass integers."
            )
        index = index.astype(np.int64)
        if len(index) and not 0 <= index.min() <= index.max() < len(self.pack):
            raise ValueError(
                f"rows must lie between 0 and {len(self.pack) - 1}, the images of the pack, got values from "
                f"{index.min()} to {index.max()}; make the batches from the labels of this pack."
            )
        return index

    def _run(self, jobs: Iterator[_Job]) -> Batches:
        if self.device.type == "cpu":
            return ahead(lambda job: self._finish(self._plan(job)), jobs, self.workers)
        if self.resident is not None:
            # The host has next to nothing to do: threads would only cost.
            return (self._finish(self._plan(job)) for job in jobs)
        plans = ahead(lambda job: self._gathered(self._plan(job)), jobs, self.workers)
        return self._beside(plans) if self.device.type == "cuda" else self._in_turn(plans)

    def _plan(self, job: _Job) -> _Plan:
        rows, geometry = job.rows, self.geometry
        height, width, offset = self.pack.height[rows], self.pack.width[rows], self.pack.offset[rows]
        if job.step is None:
            return _Plan(job, self._pixels, offset, geometry.center(height, width), None)
        drawn = noise(self.seed, job.step, self.pack.rows[rows], geometry.draws)
        return _Plan(job, self._pixels, offset, geometry.boxes(height, width, drawn), geometry.flips(drawn))

    def _gathered(self, plan: _Plan) -> _Plan:
        """The same plan on the pixels of this batch alone, copied to memory from which the device can fetch them."""
        rows = plan.job.rows
        height, width = self.pack.height[rows].astype(np.int64), self.pack.width[rows].astype(np.int64)
        lengths = height * width * 3
        ends = np.cumsum(lengths)
        spare = (int(width.max(initial=0)) + STEP) * 3
        total = int(ends[-1]) if len(rows) else 0
        pixels = torch.empty(total + spare, dtype=torch.uint8, device="cpu", pin_memory=self.device.type == "cuda")
        into = pixels.numpy()
        for start, end, length in zip(plan.offset.tolist(), ends.tolist(), lengths.tolist(), strict=True):
            into[end - length : end] = self.pack.pixels[start : start + length]
        into[total:] = 0
        return _Plan(plan.job, pixels, ends - lengths, plan.boxes, plan.flips)

    def _finish(self, plan: _Plan) -> Batch:
        rows = plan.job.rows
        images = resample(
            plan.pixels.to(self.device, non_blocking=True),
            plan.offset,
            self.pack.height[rows],
            self.pack.width[rows],
            plan.boxes,
            plan.flips,
            size=self.geometry.size,
            colours=self._colours,
            around=self.geometry.around,
            dtype=self.dtype,
            channels_last=self.channels_last,
        )
        index = to_device(rows, self.device)
        return images, self._labels[index], index

    def _in_turn(self, plans: Generator[_Plan, None, None]) -> Batches:
        with closing(plans):
            for plan in plans:
                yield self._finish(plan)

    def _beside(self, plans: Generator[_Plan, None, None]) -> Batches:
        """Copy and resample on a stream beside the current one, one batch ahead."""
        stream = torch.cuda.Stream(self.device)
        waiting: tuple[Batch, torch.cuda.Event] | None = None
        with closing(plans):
            for plan in plans:
                with torch.cuda.stream(stream):
                    batch = self._finish(plan)
                    done = stream.record_event()
                if waiting is not None:
                    yield self._handed_over(*waiting)
                waiting = (batch, done)
            if waiting is not None:
                yield self._handed_over(*waiting)

    def _handed_over(self, batch: Batch, done: torch.cuda.Event) -> Batch:
        """The batch for use on the current stream: it waits there, the host does not."""
        current = torch.cuda.current_stream(self.device)
        current.wait_event(done)
        for tensor in batch:
            tensor.record_stream(current)
        return batch


def _device(name: torch.device | str) -> torch.device:
    """The device with its number, so that "cuda" and "cuda:0" are equal."""
    found = torch.device(name)
    if found.type == "cuda" and found.index is None:
        return torch.device("cuda", torch.cuda.current_device())
    return found


def _shared(pixels: NDArray[np.uint8]) -> Tensor:
    """A tensor over the same memory. The file is mapped for reading only, which torch warns of; nothing here writes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.from_numpy(pixels)


def ahead(function: Callable[[In], Out], items: Iterable[In], workers: int) -> Generator[Out, None, None]:
    """``function`` of each item in order, by threads that are at most two items per worker ahead of the caller.

    An error, of the function or of ``items``, is raised at the place of its item. Closing the iterator ends the threads.

    >>> list(ahead(lambda number: number**2, range(5), workers=2))
    [0, 1, 4, 9, 16]
    """
    return _threaded(function, iter(items), workers) if workers else (function(item) for item in items)


def _threaded(function: Callable[[In], Out], items: Iterator[In], workers: int) -> Generator[Out, None, None]:
    # One core each: their own threads would only fight the network's for the same cores.
    threads = ThreadPoolExecutor(workers, "nearkin-feed", initializer=torch.set_num_threads, initargs=(1,))
    waiting: deque[Future[Out]] = deque()
    failure: Exception | None = None
    more = True
    try:
        while more or waiting:
            while more and len(waiting) < 2 * workers:
                try:
                    item = next(items)
                except StopIteration:
                    more = False
                except Exception as error:
                    more, failure = False, error
                else:
                    waiting.append(threads.submit(function, item))
            if waiting:
                yield waiting.popleft().result()
        if failure is not None:
            raise failure
    finally:
        threads.shutdown(wait=True, cancel_futures=True)
        # The number holds for the thread that sets it, but torch gives the last one set to threads that start later.
        torch.set_num_threads(torch.get_num_threads())
