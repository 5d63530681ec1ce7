"""Processes that decode: the same pixels in the same order, and no file takes the run down."""

from __future__ import annotations

import contextlib
import itertools
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from nearkin.data import decoders
from nearkin.data.decode import BadImage, read_image
from nearkin.data.decoders import Decoders, read_images


def files(folder: Path, count: int) -> list[Path]:
    generator = np.random.default_rng(0)
    paths = []
    for i in range(count):
        paths.append(folder / f"{i}.png")
        Image.fromarray(generator.integers(0, 256, (20 + i, 30, 3), dtype=np.uint8)).save(paths[-1])
    return paths


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[subprocess.Popen[bytes]]:
    """Every process that is started during a test."""
    made: list[subprocess.Popen[bytes]] = []
    plain = subprocess.Popen

    def spy(*arguments: Any, **options: Any) -> subprocess.Popen[bytes]:
        made.append(plain(*arguments, **options))
        return made[-1]

    monkeypatch.setattr(decoders.subprocess, "Popen", spy)
    return made


@pytest.mark.parametrize("workers", [0, 1, 3])
def test_images_come_in_order_with_the_bad_ones_among_them(tmp_path: Path, workers: int) -> None:
    paths = files(tmp_path, 30)
    paths[7].write_bytes(b"no image")
    paths[8].unlink()
    found = list(read_images(paths, side=25, workers=workers))
    assert len(found) == 30
    for i, (path, image) in enumerate(zip(paths, found, strict=True)):
        if i in (7, 8):
            assert isinstance(image, BadImage) and image.name == str(path)
            assert image.reason == ["it is not an image of a kind that is known", "there is no such file"][i - 7]
        else:
            assert np.array_equal(image, read_image(path, side=25))


def test_few_files_start_no_process(tmp_path: Path, started: list[subprocess.Popen[bytes]]) -> None:
    paths = files(tmp_path, 3)
    assert len(list(read_images(paths, side=None))) == 3 and not started
    list(read_images(paths, side=None, workers=8))
    assert len(started) == 3  # never more processes than files
    assert not list(read_images([], side=None, workers=8))


def test_processes_end_with_the_last_image_and_when_the_iterator_is_closed(
    tmp_path: Path, started: list[subprocess.Popen[bytes]]
) -> None:
    paths = files(tmp_path, 12)
    list(read_images(paths, side=None, workers=2))
    early = read_images(paths, side=None, workers=2)
    next(early)
    assert sum(process.poll() is None for process in started) == 2
    early.close()
    assert len(started) == 4 and all(process.poll() is not None for process in started)
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("nearkin-decoder")]


def test_not_all_files_are_decoded_ahead(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    plain = Decoders.read
    monkeypatch.setattr(Decoders, "read", lambda self, path: (asked.append(path), plain(self, path))[1])
    images = read_images(files(tmp_path, 40), side=8, workers=2)
    next(images)
    images.close()
    assert len(asked) <= 17


def crashing(folder: Path, monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    """From now on a decoder that opens a file with "crash" in its name dies."""
    place = folder / "site"
    place.mkdir()
    (place / "sitecustomize.py").write_text(
        "import os, signal, PIL.Image\n"
        "plain = PIL.Image.open\n"
        "def open(file, *rest):\n"
        f"    if os.path.basename(str(getattr(file, 'name', ''))) == 'crash.png': {how}\n"
        "    return plain(file, *rest)\n"
        "PIL.Image.open = open\n"
    )
    monkeypatch.syspath_prepend(str(place))


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ("os.kill(os.getpid(), signal.SIGSEGV)", "it crashes the decoder (signal 11)"),
        ("os._exit(3)", "it crashes the decoder (exit code 3)"),
    ],
)
def test_a_file_that_crashes_the_decoder_is_named_and_the_rest_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str, reason: str
) -> None:
    crashing(tmp_path, monkeypatch, how)
    paths = files(tmp_path, 10)
    bad = tmp_path / "crash.png"
    bad.write_bytes(paths[0].read_bytes())
    found = list(read_images([*paths[:5], bad, *paths[5:]], side=None, workers=2))
    assert isinstance(found[5], BadImage) and found[5].reason == reason and found[5].name == str(bad)
    assert [np.shape(image)[0] for image in found[:5] + found[6:]] == list(range(20, 30))


def test_a_decoder_that_dies_once_costs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The system may kill a process for its own reasons; the file is tried again."""
    once = tmp_path / "once"
    crashing(tmp_path, monkeypatch, f"(os.path.exists({str(once)!r}) or (open_(), os._exit(9)))")
    site = tmp_path / "site" / "sitecustomize.py"
    site.write_text(site.read_text().replace("plain =", f"open_ = lambda: os.mknod({str(once)!r})\nplain =", 1))
    path = tmp_path / "crash.png"
    path.write_bytes(files(tmp_path, 1)[0].read_bytes())
    (found,) = read_images([path], side=None, workers=1)
    assert once.exists() and np.array_equal(found, read_image(path))


def test_what_a_library_prints_is_not_taken_for_pixels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    crashing(tmp_path, monkeypatch, "os.write(1, b'a message of the library'); print('another')")
    path = tmp_path / "crash.png"
    path.write_bytes(files(tmp_path, 1)[0].read_bytes())
    (found,) = read_images([path], side=None, workers=1)
    assert np.array_equal(found, read_image(path))


@pytest.mark.parametrize("executable", ["/nowhere/python", "/bin/false"])
def test_an_interpreter_that_does_not_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, executable: str) -> None:
    paths = files(tmp_path, 2)
    monkeypatch.setattr(sys, "executable", executable)
    with pytest.raises(RuntimeError, match=f"workers must be able to start {executable} .* use workers=0 to decode"):
        list(read_images(paths, side=None, workers=2))


def test_decoders_load_neither_torch_nor_the_program_that_calls(tmp_path: Path) -> None:
    """A script needs no guard around its main part, and a decoder starts fast."""
    files(tmp_path, 4)
    script = tmp_path / "script.py"
    script.write_text(
        "import sys\nfrom pathlib import Path\nfrom nearkin.data.decoders import Decoders, read_images\n"
        f"paths = sorted(Path({str(tmp_path)!r}).glob('*.png'))\n"
        "print(len(list(read_images(paths, side=None, workers=2))))\n"
        "decoders = Decoders(1, None)\n"
        "maps = Path(f'/proc/{decoders._all[0]._process.pid}/maps')\n"
        "print('torch' in maps.read_text() if maps.exists() else False)\n"
        "decoders.close()\n"
    )
    ran = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == ["4", "False"] and not ran.stderr


def test_the_answers_do_not_depend_on_the_caller_s_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of the caller's folder must not stand in for a module."""
    paths = files(tmp_path, 2)
    (tmp_path / "struct.py").write_text("raise SystemExit(1)")
    monkeypatch.chdir(tmp_path)
    relative = [Path(os.path.relpath(path)) for path in paths]
    found = list(read_images(relative, side=None, workers=1))
    assert all(isinstance(image, np.ndarray) for image in found)


def test_threads_share_the_decoders(tmp_path: Path) -> None:
    paths = files(tmp_path, 12)
    seen: dict[Path, Any] = {}
    with contextlib.closing(Decoders(2, None)) as shared:

        def work(own: list[Path]) -> None:
            for path in own:
                seen[path] = shared.read(path)

        threads = [threading.Thread(target=work, args=(paths[i::2],)) for i in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    for path, _ in itertools.zip_longest(paths, range(12)):
        assert np.array_equal(seen[path], read_image(path))
