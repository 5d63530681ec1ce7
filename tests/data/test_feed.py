"""Batches: the right images, the same whatever way they took, and threads that end."""

from __future__ import annotations

import gc
import itertools
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import nearkin.data.feed as module
import nearkin.data.resample as resampling
from nearkin.data.archive import extract
from nearkin.data.feed import Feed, Resident, ahead
from nearkin.data.geometry import NAMES, Geometry, noise
from nearkin.data.pack import Pack, pack
from nearkin.data.resample import Colours, resample
from nearkin.data.table import ImageTable
from tests.patience import PATIENCE

COUNT = 40


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> Pack:
    """Images of many sizes, labelled by their row, in a file."""
    generator = np.random.default_rng(0)
    sizes = generator.integers(20, 70, (COUNT, 2))
    arrays = [generator.integers(0, 256, (height, width, 3), dtype=np.uint8) for height, width in sizes]
    table = ImageTable(arrays, np.arange(COUNT), tuple(map(str, range(COUNT))))
    return pack(table, tmp_path_factory.mktemp("feed") / "pack", side=32)


BATCHES = [[3, 1, 4, 1, 5], [9, 2, 6], [], [39], [0, 7, 8, 3, 3], [11, 12], [30, 31, 32]]
COLOURS: dict[str, Any] = {"mean": (0.5, 0.4, 0.3), "std": (0.2, 0.3, 0.4)}


def collected(batches: Any) -> list[tuple[torch.Tensor, list[int], list[int]]]:
    return [(pictures, labels.tolist(), rows.tolist()) for pictures, labels, rows in batches]


def same(one: list[Any], other: list[Any]) -> bool:
    return len(one) == len(other) and all(
        torch.equal(a[0], b[0]) and a[1:] == b[1:] for a, b in zip(one, other, strict=True)
    )


def feeding_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith("nearkin-feed")]


@pytest.mark.parametrize("name", NAMES)
def test_training_shows_the_boxes_of_seed_step_and_row(images: Pack, name: str) -> None:
    geometry = Geometry(name, size=28, resize=32)
    feed = Feed(images, geometry, **COLOURS, seed=5)
    for step, (found, labels, rows) in enumerate(feed.train(BATCHES, first_step=100), 100):
        own = np.array(BATCHES[step - 100], np.int64)
        assert rows.tolist() == own.tolist() == labels.tolist()
        assert rows.dtype == labels.dtype == torch.int64 and found.shape == (len(own), 3, 28, 28)
        numbers = noise(5, step, own, geometry.draws)
        expected = resample(
            torch.from_numpy(np.array(images.pixels)), images.offset[own], images.height[own], images.width[own],
            geometry.boxes(images.height[own], images.width[own], numbers), geometry.flips(numbers),
            size=28, colours=Colours.of(**COLOURS), around=geometry.around,
        )  # fmt: skip
        assert torch.equal(found, expected)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("workers", [1, 3])
def test_workers_change_nothing(images: Pack, name: str, workers: int) -> None:
    geometry = Geometry(name, size=28, resize=32)
    plain, threaded = (Feed(images, geometry, workers=count) for count in (0, workers))
    assert same(collected(plain.train(BATCHES)), collected(threaded.train(BATCHES)))
    assert same(collected(plain.test(batch=7)), collected(threaded.test(batch=7)))
    assert not feeding_threads()


def test_a_resumed_run_goes_on_with_the_same_crops(images: Pack) -> None:
    feed = Feed(images, Geometry("resized_crop", size=16, resize=32), seed=1)
    whole = collected(feed.train(BATCHES, first_step=10))
    assert same(collected(feed.train(BATCHES[4:], first_step=14)), whole[4:])
    assert not same(collected(feed.train(BATCHES[4:], first_step=15)), whole[4:])
    assert not same(collected(Feed(images, feed.geometry, seed=2).train(BATCHES, 10)), whole)


def test_steps_count_on_from_batches_that_were_taken(images: Pack) -> None:
    feed, other = (Feed(images, Geometry("resized_crop", size=16, resize=32), workers=workers) for workers in (0, 2))
    epochs = [collected(feed.train(BATCHES, first_step)) for first_step in (0, len(BATCHES))]
    assert not same(*epochs)
    assert all(same(collected(other.train(BATCHES)), epoch) for epoch in epochs)
    taken = other.train(BATCHES)
    next(taken)
    taken.close()  # type: ignore[attr-defined]
    assert other.step == 2 * len(BATCHES) + 1


def test_ranks_together_show_what_one_process_shows(images: Pack) -> None:
    feed = Feed(images, Geometry("crop", size=24, resize=32))
    batches = [list(range(12)), list(range(20, 32))]
    whole = [pictures for pictures, _, _ in feed.train(batches, 0)]
    shares = [[pictures for pictures, _, _ in feed.train([b[i : i + 4] for b in batches], 0)] for i in (0, 4, 8)]
    for step in range(2):
        assert torch.equal(torch.cat([share[step] for share in shares]), whole[step])


def test_a_selected_image_is_shown_as_in_the_whole_pack(images: Pack) -> None:
    geometry = Geometry("resized_crop", size=16, resize=32)
    part = images.select([30, 2, 17])
    (found, labels, rows), = Feed(part, geometry).train([[2, 0]], first_step=4)  # fmt: skip
    ((expected, _, _),) = Feed(images, geometry).train([[17, 30]], first_step=4)
    assert torch.equal(found, expected) and labels.tolist() == [17, 30] and rows.tolist() == [2, 0]


def test_every_step_shows_something_else(images: Pack) -> None:
    feed = Feed(images, Geometry("resized_crop", size=16, resize=32))
    shown = [pictures for pictures, _, _ in feed.train([[5]] * 6)]
    assert not any(torch.equal(one, other) for one, other in itertools.combinations(shown, 2))


def test_the_test_shows_centre_crops_in_order(images: Pack) -> None:
    geometry = Geometry("crop", size=28, resize=32)
    feed = Feed(images, geometry, **COLOURS)
    found = collected(feed.test(batch=16))
    assert [len(rows) for _, _, rows in found] == [16, 16, 8]
    assert [row for _, _, rows in found for row in rows] == list(range(COUNT))
    every = np.arange(COUNT)
    boxes = geometry.center(images.height, images.width)
    pixels = torch.from_numpy(np.array(images.pixels))
    expected = resample(
        pixels, images.offset[every], images.height, images.width, boxes, size=28, colours=Colours.of(**COLOURS)
    )
    assert torch.equal(torch.cat([pictures for pictures, _, _ in found]), expected)
    ((some, _, rows),) = feed.test([7, 3])
    assert rows.tolist() == [7, 3] and torch.equal(some, expected[[7, 3]])
    assert not list(feed.test([]))


def test_images_of_one_size_shown_whole_are_the_images() -> None:
    arrays = np.random.default_rng(0).integers(0, 256, (50, 32, 32), dtype=np.uint8)
    made = pack(ImageTable(arrays, np.arange(50) % 5, tuple("abcde")), None)
    feed = Feed(made, Geometry("crop", size=32, resize=32, mirror=0.0))
    ((found, labels, _),) = feed.train([[4, 49, 7]])
    assert torch.equal(
        (found * 255).round(), torch.from_numpy(arrays[[4, 49, 7]])[:, None].expand(3, 3, 32, 32).float()
    )
    assert labels.tolist() == [4, 4, 2]


def test_types_and_memory(images: Pack) -> None:
    geometry = Geometry("squash", size=16, resize=32)
    ((exact, _, _),) = Feed(images, geometry).test([1, 2])
    for dtype in (torch.bfloat16, torch.float16, torch.float64):
        ((found, _, _),) = Feed(images, geometry, dtype=dtype, channels_last=True).test([1, 2])
        assert found.dtype == dtype and found.is_contiguous(memory_format=torch.channels_last)
        assert (found.float() - exact).abs().max() < 0.01


def test_rows_come_as_lists_arrays_or_tensors(images: Pack) -> None:
    feed = Feed(images, Geometry("crop", size=16, resize=32))
    rows = [4, 2]
    found = collected(feed.train([rows, np.array(rows), torch.tensor(rows), np.array(rows, np.int32), tuple(rows)]))
    assert [own for _, _, own in found] == [rows] * 5


def test_resident_pixels_are_shared_and_checked(images: Pack) -> None:
    geometry = Geometry("resized_crop", size=16, resize=32)
    plain = Feed(images, geometry)
    assert plain.resident is None  # a CPU reads the file
    kept = Feed(images, geometry, resident=True)
    assert kept.resident is not None and kept.resident.holds(images)
    other = Feed(images.select([5, 6, 7]), geometry, resident=kept.resident, workers=1)
    assert other.resident is kept.resident
    assert same(collected(kept.train(BATCHES)), collected(plain.train(BATCHES)))
    assert torch.equal(next(iter(other.test()))[0], next(iter(plain.test([5, 6, 7])))[0])
    small = pack(ImageTable(np.zeros((2, 4, 4), np.uint8), np.array([0, 0]), ("a",)), None)
    with pytest.raises(
        ValueError, match="resident must hold the pixels of this pack on cpu, got those of another pack on cpu"
    ):
        Feed(small, geometry, resident=kept.resident)


@pytest.mark.parametrize("name", NAMES)
def test_pixels_gathered_for_a_batch_are_those_of_the_pack(images: Pack, name: str) -> None:
    """What crosses to a device that does not keep the pack; here the device is the CPU."""
    feed = Feed(images, Geometry(name, size=28, resize=32))
    for step, rows in enumerate(BATCHES):
        plan = feed._plan(module._Job(np.array(rows, np.int64), step))
        gathered = feed._gathered(plan)
        assert gathered.pixels.data_ptr() != plan.pixels.data_ptr()
        sizes = images.height[rows].astype(int) * images.width[rows] * 3 if rows else np.zeros(0, int)
        assert 0 < len(gathered.pixels) - sizes.sum() < 1000  # nothing but these images and a little room
        assert torch.equal(feed._finish(gathered)[0], feed._finish(plan)[0])


def test_there_is_room_behind_the_pixels_so_that_they_need_not_be_copied(
    images: Pack, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A device reads rows at the width of a padded box, of the last image too."""
    last = images.select([COUNT - 1, int(images.width.argmax())])
    boxes = np.stack([0 * last.width, 0 * last.width, last.width, last.height], 1).astype(float)
    feed = Feed(last, Geometry("squash", size=16, resize=16))
    gathered = feed._gathered(feed._plan(module._Job(np.array([1, 0]), None)))

    def refuse(*arguments: Any) -> None:
        raise AssertionError("all pixels were copied")

    monkeypatch.setattr(resampling.functional, "pad", refuse)
    options: dict[str, Any] = {"size": 16, "colours": Colours.of(), "way": "matrix"}
    kept = Resident(images, "cpu").pixels
    resample(kept, last.offset, last.height, last.width, boxes, **options)
    resample(gathered.pixels, gathered.offset, last.height[::-1], last.width[::-1], boxes[::-1], **options)
    with pytest.raises(AssertionError, match="all pixels were copied"):
        resample(kept[: images.nbytes], last.offset, last.height, last.width, boxes, **options)


@pytest.mark.parametrize("workers", [0, 1])
def test_autocast_and_other_defaults_of_the_caller_change_nothing(images: Pack, workers: int) -> None:
    feed = Feed(images, Geometry("squash", size=16, resize=32), workers=workers)
    expected = collected(feed.train(BATCHES, first_step=0))
    with torch.autocast("cpu", torch.bfloat16):
        assert same(collected(feed.train(BATCHES, first_step=0)), expected)
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        assert same(collected(feed.train(BATCHES, first_step=0)), expected)
        with torch.device("meta"):
            assert same(collected(feed.train(BATCHES, first_step=0)), expected)
    finally:
        torch.set_default_dtype(before)


def test_a_large_pack_crosses_in_parts(images: Pack) -> None:
    assert torch.equal(Resident(images, "cpu", part=1000).pixels, Resident(images, "cpu").pixels)
    kept = Resident(images, "cpu").pixels
    assert np.array_equal(kept[: images.nbytes].numpy(), images.pixels) and not kept[images.nbytes :].any()


def test_pixels_stay_on_a_device_where_they_fit(images: Pack, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    for free, fits in ((2 * images.nbytes, True), (2 * images.nbytes - 2, False)):
        monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device, free=free: (free, 10 * free))
        assert Resident.fits(images, "cuda") is fits
    assert not Resident.fits(images, "cpu")


@pytest.mark.parametrize("workers", [0, 2])
def test_an_error_comes_at_the_place_of_its_batch(images: Pack, workers: int) -> None:
    feed = Feed(images, Geometry("crop", size=16, resize=32), workers=workers)

    def batches() -> Iterator[list[int]]:
        yield [1]
        yield [2]
        raise RuntimeError("the sampler is broken")

    found = feed.train(batches())
    assert next(found)[2].tolist() == [1] and next(found)[2].tolist() == [2]
    with pytest.raises(RuntimeError, match="the sampler is broken"):
        next(found)
    found = feed.train([[1], [COUNT], [2]])
    next(found)
    with pytest.raises(
        ValueError, match="rows must lie between 0 and 39, .* got values from 40 to 40; make the batches from"
    ):
        next(found)
    assert not feeding_threads()


@pytest.mark.parametrize("workers", [1, 3])
def test_an_error_inside_a_thread_is_raised_in_order(workers: int) -> None:
    def work(number: int) -> int:
        if number == 3:
            raise ValueError("three")
        return number

    found = ahead(work, range(10), workers)
    assert [next(found) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(ValueError, match="three"):
        next(found)
    assert not feeding_threads()


@pytest.mark.parametrize(("workers", "most"), [(0, 1), (1, 3), (4, 9)])
def test_batches_are_read_a_few_ahead_only(images: Pack, workers: int, most: int) -> None:
    feed = Feed(images, Geometry("crop", size=16, resize=32), workers=workers)
    counter = itertools.count()
    found = feed.train([next(counter) % COUNT] for _ in itertools.repeat(None))  # without end
    next(found)
    assert next(counter) <= most
    found.close()


def test_closing_or_dropping_the_iterator_ends_the_threads(images: Pack) -> None:
    feed = Feed(images, Geometry("crop", size=16, resize=32), workers=3)
    for end in ("close", "drop"):
        found = feed.train([1] for _ in itertools.count())
        next(found)
        assert feeding_threads()
        if end == "close":
            found.close()
        del found
        gc.collect()
        assert not feeding_threads()


def test_threads_work_at_the_same_time() -> None:
    meeting = threading.Barrier(3, timeout=PATIENCE)
    assert list(ahead(lambda number: (meeting.wait(), number)[1], range(6), 3)) == list(range(6))


def test_the_caller_s_number_of_threads_stays(images: Pack) -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        feed = Feed(images, Geometry("squash", size=16, resize=32), workers=2)
        list(feed.train(BATCHES))
        assert torch.get_num_threads() == 2
        later: list[int] = []
        thread = threading.Thread(target=lambda: later.append(torch.get_num_threads()))
        thread.start()
        thread.join()
        assert later == [2]
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        ({"workers": -1}, ValueError, "feed: workers must be a whole number at least 0, got -1; change workers."),
        (
            {"seed": -1},
            ValueError,
            "feed: seed must be a whole number at least 0 and at most 9223372036854775807, got -1; change seed.",
        ),
        (
            {"dtype": torch.uint8},
            TypeError,
            "dtype must be a floating type, got torch.uint8; use torch.float32 or torch.bfloat16.",
        ),
        ({"mean": (1, 2)}, ValueError, "mean must be three finite numbers, red green blue, got (1, 2); pass three."),
    ],
)
def test_bad_settings(images: Pack, options: dict[str, Any], kind: type[Exception], message: str) -> None:
    with pytest.raises(kind) as caught:
        Feed(images, Geometry(), **options)
    assert str(caught.value) == message


def test_bad_calls_are_refused_at_once(images: Pack) -> None:
    feed = Feed(images, Geometry())
    for call, message in (
        (lambda: feed.train([[0]], first_step=-1), "feed: first_step must be a whole number at least 0, got -1"),
        (lambda: feed.test(batch=0), "feed: batch must be a whole number at least 1, got 0"),
        (lambda: feed.test([-1]), "rows must lie between 0 and 39, the images of the pack, got values from -1 to -1"),
    ):
        with pytest.raises(ValueError, match=message):
            call()
    with pytest.raises(
        TypeError, match=r"rows must be a list of row numbers, got float64 of shape \(1,\); pass integers\."
    ):
        feed.test([0.5])  # type: ignore[list-item]
    with pytest.raises(TypeError, match="rows must be a list of row numbers, got int64 of shape"):
        next(feed.train([3]))  # type: ignore[list-item]
    with pytest.raises(TypeError, match="got bool of shape"):
        feed.test(np.zeros(COUNT, bool))


ENDLESS = """
import itertools, time
import numpy as np
from nearkin.data.feed import Feed
from nearkin.data.geometry import Geometry
from nearkin.data.pack import pack
from nearkin.data.table import ImageTable
made = pack(ImageTable(np.zeros((9, 40, 40), np.uint8), np.zeros(9, int), ("a",)), None)
feed = Feed(made, Geometry("squash", size=32, resize=36), workers=2)
for step, _ in enumerate(feed.train([1, 2] for _ in itertools.count())):
    if step == 3: print("going", flush=True)
"""


def test_ctrl_c_ends_a_run_with_workers() -> None:
    run = subprocess.Popen([sys.executable, "-c", ENDLESS], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert run.stdout is not None and run.stdout.readline() == "going\n"
        begin = time.monotonic()
        run.send_signal(signal.SIGINT)
        _, errors = run.communicate(timeout=PATIENCE)
    finally:
        run.kill()
    assert time.monotonic() - begin < 10 and errors.rstrip().endswith("KeyboardInterrupt")


def test_a_file_mapped_for_reading_is_used_without_a_warning_or_a_copy(images: Pack) -> None:
    """Warnings are errors here; the memory is the file's own."""
    assert isinstance(images.pixels, np.memmap) and not images.pixels.flags.writeable
    assert Feed(images, Geometry())._pixels.data_ptr() == images.pixels.ctypes.data


@pytest.mark.skipif(not os.environ.get("NEARKIN_TEST_DATA"), reason="NEARKIN_TEST_DATA names no folder of real data")
def test_real_birds(tmp_path: Path) -> None:
    extract(Path(os.environ["NEARKIN_TEST_DATA"]) / "cub200" / "cub200-0.tar", tmp_path / "images")
    paths = sorted(path for path in (tmp_path / "images").rglob("*.webp") if path.parent.name[:4] in ("001.", "002."))
    classes = [path.parent.name for path in paths]
    made = pack(ImageTable.of(paths, classes, sorted(set(classes))), tmp_path / "pack", workers=2)
    for name in NAMES:
        feed = Feed(made, Geometry(name), mean=(0.485, 0.456, 0.406), std=(0.229, 0.224, 0.225))
        begin = time.perf_counter()
        (pictures, labels, _), = feed.train([range(len(made))])  # type: ignore[list-item]  # fmt: skip
        print(f"{name}: {len(made) / (time.perf_counter() - begin):.0f} crops of 224 a second")
        assert pictures.shape == (len(made), 3, 224, 224) and labels.unique().tolist() == [0, 1]
        assert 0.5 < pictures.std() < 1.6 and abs(pictures.mean()) < 0.8


def gpu_feeds(images: Pack, geometry: Geometry, **options: Any) -> dict[str, Feed]:
    return {
        "resident": Feed(images, geometry, device="cuda", resident=True, **options),
        "fetched": Feed(images, geometry, device="cuda", resident=False, **options),
        "fetched by threads": Feed(images, geometry, device="cuda", resident=False, workers=2, **options),
    }


@pytest.mark.gpu
@pytest.mark.parametrize("name", NAMES)
def test_the_gpu_shows_what_the_cpu_shows(images: Pack, name: str) -> None:
    geometry = Geometry(name, size=28, resize=32)
    expected = collected(Feed(images, geometry).train(BATCHES)), collected(Feed(images, geometry).test(batch=7))
    first: list[Any] = []
    for feed in gpu_feeds(images, geometry).values():
        for batches, wanted in zip((feed.train(BATCHES), feed.test(batch=7)), expected, strict=True):
            found = list(batches)
            assert all(tensor.device == feed.device for batch in found for tensor in batch)
            for (pictures, labels, rows), (own, own_labels, own_rows) in zip(found, wanted, strict=True):
                assert labels.tolist() == own_labels and rows.tolist() == own_rows
                assert not own_rows or (pictures.cpu() - own).abs().max() < 0.4 / 255
        whole = collected(feed.train(BATCHES))
        first = first or whole
        assert same(whole, first)  # bit for bit, whichever way the pixels came


@pytest.mark.gpu
def test_the_host_never_waits_for_the_gpu(images: Pack) -> None:
    for feed in gpu_feeds(
        images, Geometry("resized_crop", size=28, resize=32), dtype=torch.bfloat16, channels_last=True
    ).values():
        list(feed.train(BATCHES))
        torch.cuda.synchronize()
        torch.cuda.set_sync_debug_mode("error")
        try:
            for pictures, labels, rows in feed.train(BATCHES):
                assert pictures.is_cuda and labels.is_cuda and rows.is_cuda
        finally:
            torch.cuda.set_sync_debug_mode("default")


@pytest.mark.gpu
def test_batches_of_a_side_stream_are_whole_when_they_are_used(images: Pack) -> None:
    """The current stream is kept busy so that a missing wait would show."""
    feed = Feed(images, Geometry("resized_crop", size=28, resize=32), device="cuda", resident=False, workers=2)
    batches = [np.random.default_rng(i).integers(0, COUNT, 32).tolist() for i in range(20)]
    expected = [pictures.cpu() for pictures, _, _ in feed.train(batches, 0)]
    busy = torch.rand(3000, 3000, device="cuda")
    sums = []
    for pictures, _, _ in feed.train(batches, 0):
        busy = (busy @ busy).clamp(0, 1)
        sums.append(pictures.clone())
        del pictures
    for found, wanted in zip(sums, expected, strict=True):
        assert torch.equal(found.cpu(), wanted)


@pytest.mark.gpu
def test_resident_by_itself_where_it_fits(images: Pack, monkeypatch: pytest.MonkeyPatch) -> None:
    assert Feed(images, Geometry(), device="cuda").resident is not None
    monkeypatch.setattr(module, "SHARE", 0)
    assert Feed(images, Geometry(), device="cuda").resident is None
