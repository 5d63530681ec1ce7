"""A pack holds what the files hold, is built once, and never looks finished when it is not."""

from __future__ import annotations

import builtins
import errno
import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import nearkin.data.pack as module
from nearkin.data import pack_folder
from nearkin.data.archive import extract
from nearkin.data.pack import Pack, fingerprint, pack
from nearkin.data.table import ImageTable
from tests.patience import PATIENCE


def picture(seed: int, height: int, width: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)


SIZES = [(40, 30), (20, 55), (64, 64), (9, 7), (33, 100), (16, 16)]


def table_in(folder: Path, sizes: list[tuple[int, int]] = SIZES) -> ImageTable:
    folder.mkdir(exist_ok=True)
    paths = []
    for i, size in enumerate(sizes):
        paths.append(folder / f"{i}.png")
        Image.fromarray(picture(i, *size)).save(paths[-1])
    return ImageTable(tuple(paths), np.arange(len(sizes)) % 3, ("ant", "bee", "cow"))


def no_decoding(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: Any, **options: Any) -> Any:
        raise AssertionError("an image was decoded")

    monkeypatch.setattr(module, "read_images", refuse)


def data_files(folder: Path) -> list[str]:
    return sorted(path.name.split("-")[0] for path in folder.iterdir())


@pytest.mark.parametrize("workers", [0, 2])
def test_pixels_are_those_of_the_files(tmp_path: Path, workers: int) -> None:
    table = table_in(tmp_path / "images")
    made = pack(table, tmp_path / "pack", side=32, workers=workers)
    assert len(made) == 6 and made.rows.tolist() == list(range(6)) and not made.bad
    for i, (height, width) in enumerate(SIZES):
        whole = Image.fromarray(picture(i, height, width))
        scale = max(1, min(height, width) / 32)
        size = (int(width / scale), int(height / scale))
        expected = np.asarray(whole if scale == 1 else whole.resize(size, Image.Resampling.BILINEAR))
        assert np.array_equal(made.image(i), expected)
        assert (made.height[i], made.width[i]) == expected.shape[:2]
    assert made.offset.tolist() == [0, *np.cumsum(made.height.astype(int) * made.width * 3)[:-1].tolist()]
    assert isinstance(made.pixels, np.memmap) and made.nbytes == sum(made.image(i).size for i in range(6))
    assert made.names == tuple(str(path) for path in table.images)
    assert made.labels.tolist() == [0, 1, 2, 0, 1, 2] and made.class_names == ("ant", "bee", "cow")
    made.verify()
    assert repr(made) == f"Pack(6 images, 3 classes, {made.nbytes / 1e6:.1f} MB)"


def test_without_a_side_every_size_stays(tmp_path: Path) -> None:
    made = pack(table_in(tmp_path / "images"), tmp_path / "pack", side=None)
    assert list(zip(made.height.tolist(), made.width.tolist(), strict=True)) == SIZES


def test_unchanged_sources_are_not_decoded_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = table_in(tmp_path / "images")
    first = pack(table, tmp_path / "pack", side=32)
    no_decoding(monkeypatch)
    told: list[tuple[int, int]] = []
    again = pack(table, tmp_path / "pack", side=32, progress=lambda done, total: told.append((done, total)))
    assert told == [(6, 6)]
    opened = Pack.open(tmp_path / "pack")
    for other in (again, opened):
        assert np.array_equal(other.pixels, first.pixels) and other.digest == first.digest
        for name in ("offset", "height", "width", "labels", "rows"):
            assert np.array_equal(getattr(other, name), getattr(first, name))
            assert getattr(other, name).dtype == getattr(first, name).dtype
        assert (other.names, other.class_names, other.bad) == (first.names, first.class_names, first.bad)
        assert other.query is None
        other.verify()


def test_changed_sources_are(tmp_path: Path) -> None:
    table = table_in(tmp_path / "images")
    first = pack(table, tmp_path / "pack", side=32)
    Image.fromarray(picture(77, 16, 16)).save(table.images[5])
    os.utime(table.images[5], ns=(1, 1))
    second = pack(table, tmp_path / "pack", side=32)
    assert second.digest != first.digest and np.array_equal(second.image(5), picture(77, 16, 16))
    # A pack in use stays readable when it is replaced.
    assert np.array_equal(first.image(5), picture(5, 16, 16))
    assert data_files(tmp_path / "pack") == [".lock", "arrays", "index.json", "pixels"]
    os.utime(table.images[5], ns=(2, 2))
    assert pack(table, tmp_path / "pack", side=32).digest not in (first.digest, second.digest)
    assert pack(table, tmp_path / "pack", side=20).height.max() <= 60
    part = pack(table.select([3, 1]), tmp_path / "pack", side=32)
    assert len(part) == 2 and np.array_equal(part.image(0), picture(3, 9, 7))


def test_the_fingerprint_depends_on_paths_sizes_times_and_side(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = table_in(tmp_path / "images")
    own = fingerprint(table, 256)
    assert fingerprint(table, 256) == own and len(own) == 64
    assert fingerprint(table, 255) != own and fingerprint(table, None) != own
    assert fingerprint(table.select([1, 0, 2, 3, 4, 5]), 256) != own
    monkeypatch.chdir(tmp_path)
    relative = ImageTable([Path(f"images/{i}.png") for i in range(6)], table.labels, table.class_names)
    assert fingerprint(relative, 256) == own
    table.images[0].unlink()
    assert fingerprint(table, 256) != own


def test_new_labels_need_no_decoding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = table_in(tmp_path / "images")
    pack(table, tmp_path / "pack", side=32)
    no_decoding(monkeypatch)
    query = np.arange(6) < 2
    other = ImageTable(table.images, np.array([1, 1, 0, 0, 0, 1]), ("wild", "tame"), query, ("animal", "animal"))
    for made in (pack(other, tmp_path / "pack", side=32), Pack.open(tmp_path / "pack")):
        assert made.labels.tolist() == [1, 1, 0, 0, 0, 1] and made.class_names == ("wild", "tame")
        assert made.query is not None and made.query.tolist() == query.tolist() and made.query.dtype == bool
        assert made.super_classes == ("animal", "animal")
        made.verify()
    assert data_files(tmp_path / "pack") == [".lock", "arrays", "index.json", "pixels"]


def test_bad_images_are_named_counted_and_left_out(tmp_path: Path) -> None:
    table = table_in(tmp_path / "images")
    paths = list(table.images)
    paths[1].write_bytes(paths[1].read_bytes()[:80])
    paths[4].unlink()
    told: list[int] = []
    made = pack(table, tmp_path / "pack", side=32, progress=lambda done, total: told.append(done))
    assert told == [1, 2, 3, 4, 5, 6]
    assert [name for name, _ in made.bad] == [str(paths[1]), str(paths[4])]
    assert made.bad[1][1] == "there is no such file"
    assert made.rows.tolist() == [0, 2, 3, 5] and made.labels.tolist() == [0, 2, 0, 2]
    assert made.class_names == ("ant", "bee", "cow")  # though no bee is left
    assert np.array_equal(made.image(3), picture(5, 16, 16))
    assert Pack.open(tmp_path / "pack").bad == made.bad
    assert repr(made).endswith("2 left out)")


def test_if_all_images_are_bad_it_is_an_error_and_nothing_is_left(tmp_path: Path) -> None:
    table = ImageTable((tmp_path / "a.png", tmp_path / "b.png"), np.array([0, 0]), ("ant",))
    with pytest.raises(
        ValueError, match=r"got 2 that cannot, such as .*a\.png: there is no such file; check the files\."
    ):
        pack(table, tmp_path / "pack")
    assert os.listdir(tmp_path / "pack") == [".lock"]


def test_arrays_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    grey = np.arange(5 * 8 * 6, dtype=np.uint8).reshape(5, 8, 6)
    table = ImageTable(grey, np.arange(5), tuple("abcde"))
    for folder in (None, tmp_path / "pack"):
        made = pack(table, folder)
        assert all(np.array_equal(made.image(i), np.repeat(grey[i][:, :, None], 3, 2)) for i in range(5))
        assert made.names[2] == "c, image 2"
    monkeypatch.setattr(module, "_arrays", None)
    assert len(pack(table, tmp_path / "pack")) == 5  # reused
    monkeypatch.undo()
    grey[3, 0, 0] += 1
    assert pack(table, tmp_path / "pack").image(3)[0, 0, 0] == grey[3, 0, 0]


def test_arrays_of_many_sizes_and_bad_ones() -> None:
    arrays: list[Any] = [
        picture(0, 50, 40), picture(1, 8, 9)[:, :, 0], np.zeros((3, 3)), np.zeros((3, 3, 4), np.uint8),
        np.zeros((0, 3), np.uint8), picture(2, 8, 20)[:, ::2],
    ]  # fmt: skip
    made = pack(ImageTable(arrays, np.zeros(6, int), ("ant",)), None, side=20)
    assert made.rows.tolist() == [0, 1, 5] and made.image(0).shape == (25, 20, 3)
    assert np.array_equal(made.image(2), picture(2, 8, 20)[:, ::2])
    assert made.bad == (
        ("ant, image 2", "it is an array of float64, 3 x 3, not of uint8, height x width x 3"),
        ("ant, image 3", "it is an array of uint8, 3 x 3 x 4, not of uint8, height x width x 3"),
        ("ant, image 4", "it has no pixels"),
    )


def test_a_selection_shares_the_pixels(tmp_path: Path) -> None:
    table = table_in(tmp_path / "images")
    made = pack(ImageTable(table.images, table.labels, table.class_names, np.arange(6) < 3), tmp_path / "pack")
    part = made.select([4, 0, 4])
    assert part.pixels is made.pixels and part.digest == made.digest and part.class_names == made.class_names
    assert np.array_equal(part.image(0), made.image(4)) and np.array_equal(part.image(-2), made.image(0))
    assert part.rows.tolist() == [4, 0, 4] and part.labels.tolist() == [1, 0, 1] and part.names[1] == made.names[0]
    assert part.query is not None and part.query.tolist() == [False, True, False]
    assert part.select([2]).rows.tolist() == [4]
    assert made.select(made.labels == 1).rows.tolist() == [1, 4]
    assert len(made.select([])) == 0
    with pytest.raises(ValueError, match="rows must lie between 0 and 5, .* got values from 2 to 6"):
        made.select([2, 6])


def test_names_that_are_no_text(tmp_path: Path) -> None:
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff\xe9.png"))
    Image.fromarray(picture(0, 5, 5)).save(path)
    missing = path.with_name(os.fsdecode(b"\xfe.png"))
    table = ImageTable((path, missing), np.array([0, 0]), ("ant",))
    for workers in (0, 1):
        made = pack(table, tmp_path / f"pack{workers}", workers=workers)
        opened = Pack.open(tmp_path / f"pack{workers}")
        assert opened.names == (str(path),) and made.bad[0][0] == str(missing) and opened.bad == made.bad


class StoppedError(Exception):
    pass


def test_an_interrupted_build_leaves_nothing_that_looks_finished(tmp_path: Path) -> None:
    table = table_in(tmp_path / "images")

    def stop(done: int, total: int) -> None:
        if done == 4:
            raise StoppedError

    with pytest.raises(StoppedError):
        pack(table, tmp_path / "pack", progress=stop, workers=2)
    assert os.listdir(tmp_path / "pack") == [".lock"]
    first = pack(table, tmp_path / "pack", side=32)
    with pytest.raises(StoppedError):
        pack(table, tmp_path / "pack", side=16, progress=stop)
    assert np.array_equal(Pack.open(tmp_path / "pack").pixels, first.pixels)  # the earlier one is still there
    assert data_files(tmp_path / "pack") == [".lock", "arrays", "index.json", "pixels"]


def test_what_a_killed_build_left_is_cleared_away_and_other_files_are_not(tmp_path: Path) -> None:
    table, folder = table_in(tmp_path / "images"), tmp_path / "pack"
    folder.mkdir()
    for name in (".building-0011aabb", "pixels-0011aabb.bin", "arrays-0011aabb.safetensors", "mine.txt"):
        (folder / name).write_bytes(b"x")
    with pytest.raises(ValueError, match="must hold a pack, got none"):
        Pack.open(folder)
    pack(table, folder)
    assert data_files(folder) == [".lock", "arrays", "index.json", "mine.txt", "pixels"]


def damage_pixels(folder: Path) -> None:
    (path,) = folder.glob("pixels-*")
    path.write_bytes(path.read_bytes()[:-1])


def damage_arrays(folder: Path) -> None:
    (path,) = folder.glob("arrays-*")
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


def damage_index(folder: Path) -> None:
    (folder / "index.json").write_text('{"format": "nearkin pack", "version":')


def lose_pixels(folder: Path) -> None:
    next(folder.glob("pixels-*")).unlink()


def another_version(folder: Path) -> None:
    index = json.loads((folder / "index.json").read_text())
    (folder / "index.json").write_text(json.dumps({**index, "version": 0}))


@pytest.mark.parametrize("damage", [damage_pixels, damage_arrays, damage_index, lose_pixels, another_version])
def test_a_damaged_pack_is_refused_and_built_again(tmp_path: Path, damage: Any) -> None:
    table = table_in(tmp_path / "images")
    pack(table, tmp_path / "pack")
    damage(tmp_path / "pack")
    with pytest.raises(ValueError, match=r"the pack in .* must be whole, got .*; pack the images again\."):
        Pack.open(tmp_path / "pack")
    made = pack(table, tmp_path / "pack")
    made.verify()
    assert np.array_equal(made.image(2), picture(2, 64, 64))


def test_verify_reads_every_byte(tmp_path: Path) -> None:
    pack(table_in(tmp_path / "images"), tmp_path / "pack")
    (path,) = (tmp_path / "pack").glob("pixels-*")
    content = bytearray(path.read_bytes())
    content[5000] ^= 4
    path.write_bytes(content)
    with pytest.raises(ValueError, match="must be those that were written, got others; pack the images again"):
        Pack.open(tmp_path / "pack").verify()


@pytest.mark.parametrize("at", ["pixels", "index"])
def test_a_full_disk_is_one_sentence_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: str
) -> None:
    table = table_in(tmp_path / "images")
    plain = builtins.open
    calls = []

    class Full(io.BytesIO):
        def write(self, content: Any) -> int:
            raise OSError(errno.ENOSPC, "No space left on device")

    def full(path: Any, mode: str = "r", **options: Any) -> Any:
        calls.append(path)
        file = plain(path, mode, **options)
        if "xb" in mode and len([c for c in calls if ".building" in str(c)]) == (1 if at == "pixels" else 3):
            file.close()
            return Full()
        return file

    for opens in (module, pack_folder):
        monkeypatch.setattr(opens, "open", full, raising=False)
    with pytest.raises(OSError, match="must have room for the decoded images, but the disk is full; free some space"):
        pack(table, tmp_path / "pack")
    monkeypatch.undo()
    assert not list((tmp_path / "pack").glob("pixels*")) and not (tmp_path / "pack" / "index.json").exists()
    assert len(pack(table, tmp_path / "pack")) == 6


def test_folders_that_cannot_be(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    table = table_in(tmp_path / "images")
    for folder in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(ValueError, match=r"folder must be one that can be made, got .*; choose another\."):
            pack(table, folder)
    with pytest.raises(
        ValueError, match=r"folder .* must hold a pack, got none; make one with pack\(table, folder\)\."
    ):
        Pack.open(tmp_path / "nothing")


def test_a_pack_that_may_not_be_written_to_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table, folder = table_in(tmp_path / "images"), tmp_path / "pack"
    pack(table, folder)
    plain = builtins.open

    def refuse(path: Any, mode: str = "r", **options: Any) -> Any:
        if set(mode) & set("wax+"):
            raise PermissionError(errno.EACCES, "Permission denied")
        return plain(path, mode, **options)

    for opens in (module, pack_folder):
        monkeypatch.setattr(opens, "open", refuse, raising=False)
    assert len(pack(table, folder)) == 6
    turned = ImageTable(table.images, table.labels[::-1].copy(), table.class_names)
    assert pack(turned, folder).labels.tolist() == [2, 1, 0, 2, 1, 0]  # the table's, though they cannot be stored


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"side": 0}, "pack: side must be a whole number at least 1 or None, got 0; change side."),
        ({"side": 25.6}, "pack: side must be a whole number at least 1 or None, got 25.6; change side."),
        ({"workers": -1}, "pack: workers must be a whole number at least 0 or None, got -1; change workers."),
    ],
)
def test_bad_arguments(options: dict[str, Any], message: str) -> None:
    table = ImageTable(np.zeros((1, 4, 4), np.uint8), np.array([0]), ("ant",))
    with pytest.raises(ValueError) as caught:
        pack(table, None, **options)
    assert str(caught.value) == message


def test_an_empty_table() -> None:
    with pytest.raises(ValueError, match="table must hold at least one image, got none"):
        pack(ImageTable((), np.zeros(0, int), ()), None)


PACKING = """
import sys, time
from pathlib import Path
import numpy as np
from nearkin.data.pack import pack
from nearkin.data.table import ImageTable
images, folder, pause, workers = Path(sys.argv[1]), sys.argv[2], float(sys.argv[3]), int(sys.argv[4])
paths = sorted(images.glob("*.png"), key=lambda path: int(path.stem))
def tell(done, total):
    print(done, flush=True)
    time.sleep(pause)
made = pack(ImageTable(paths, np.zeros(len(paths), int), ("ant",)), folder, workers=workers, progress=tell)
made.verify()
print(made.digest)
"""


def packing(images: Path, folder: Path, pause: float, workers: int) -> subprocess.Popen[str]:
    arguments = [str(images), str(folder), str(pause), str(workers)]
    return subprocess.Popen(
        [sys.executable, "-c", PACKING, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def test_two_processes_at_once_build_one_pack(tmp_path: Path) -> None:
    table_in(tmp_path / "images")
    runs = [packing(tmp_path / "images", tmp_path / "pack", 0.1, 0) for _ in range(2)]
    said = [run.communicate(timeout=PATIENCE) for run in runs]
    assert all(run.returncode == 0 for run in runs), said
    told = sorted(out.split()[:-1] for out, _ in said)
    assert told == [["1", "2", "3", "4", "5", "6"], ["6"]]  # one built it, the other waited and opened it
    assert len({out.split()[-1] for out, _ in said}) == 1
    assert data_files(tmp_path / "pack") == [".lock", "arrays", "index.json", "pixels"]


def test_without_locks_both_build_and_neither_harms_the_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the system has no locks a second build, of other images even, may end in the middle of the first."""
    import fcntl

    def refuse(*arguments: Any) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    table, others = table_in(tmp_path / "images"), table_in(tmp_path / "others", [(5, 5), (6, 6)])
    inner: list[Pack] = []

    def meanwhile(done: int, total: int) -> None:
        if done == 3:
            inner.append(pack(others, tmp_path / "pack"))

    made = pack(table, tmp_path / "pack", progress=meanwhile)
    for one in (made, inner[0], Pack.open(tmp_path / "pack")):
        one.verify()
    assert len(made) == 6 and len(inner[0]) == 2 and Pack.open(tmp_path / "pack").digest == made.digest


@pytest.mark.skipif(not Path("/proc").exists(), reason="needs /proc to see which processes are left")
def test_ctrl_c_ends_everything_at_once(tmp_path: Path) -> None:
    table_in(tmp_path / "images", [(20, 20)] * 40)
    run = packing(tmp_path / "images", tmp_path / "pack", PATIENCE, 2)  # so long after each image
    assert run.stdout is not None and run.stdout.readline() == "1\n"
    children = [
        int(entry.name)
        for entry in Path("/proc").iterdir()
        if entry.name.isdigit() and (entry / "stat").exists() and _parent(entry) == run.pid
    ]
    assert len(children) == 2
    os.killpg(run.pid, signal.SIGINT)  # as a terminal does: to every process of the group
    _, errors = run.communicate(timeout=PATIENCE)
    assert errors.rstrip().endswith("KeyboardInterrupt") and errors.count("Traceback") == 1
    assert not [child for child in children if Path(f"/proc/{child}").exists()]
    assert os.listdir(tmp_path / "pack") == [".lock"]


def _parent(process: Path) -> int:
    try:
        return int((process / "stat").read_text().rpartition(")")[2].split()[1])
    except (OSError, IndexError):
        return 0


@pytest.mark.skipif(not os.environ.get("NEARKIN_TEST_DATA"), reason="NEARKIN_TEST_DATA names no folder of real data")
def test_real_birds(tmp_path: Path) -> None:
    extract(Path(os.environ["NEARKIN_TEST_DATA"]) / "cub200" / "cub200-0.tar", tmp_path / "images")
    paths = sorted((tmp_path / "images").rglob("*.webp"))
    classes = [path.parent.name for path in paths]
    table = ImageTable.of(paths, classes, sorted(set(classes)))
    begin = time.perf_counter()
    made = pack(table, tmp_path / "pack", workers=2)
    seconds = time.perf_counter() - begin
    print(f"packed {len(made)} images with 2 workers: {len(made) / seconds:.0f} images/s")
    assert len(made) == len(paths) == 1402 and not made.bad and len(made.class_names) == 25
    shorter = np.minimum(made.height, made.width)
    assert shorter.max() == 256 and np.median(shorter) == 256
    for row in (0, 700, 1401):
        assert np.array_equal(made.image(row), np.asarray(Image.open(paths[row]).convert("RGB")))
