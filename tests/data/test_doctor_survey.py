"""Looking at images in other processes: facts of files, crashes, interruptions."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from nearkin.data.doctor import survey as survey_module
from nearkin.data.doctor import worker
from nearkin.data.doctor.complaints import complaints
from nearkin.data.doctor.descriptor import LENGTH, describe
from nearkin.data.doctor.facts import cut_short, read_header
from nearkin.data.doctor.picture import Facts, Wanted, look
from nearkin.data.doctor.survey import survey
from tests.data.test_doctor import encoded, scene
from tests.patience import PATIENCE, until


def files(folder: Path, count: int) -> list[Path]:
    paths = [folder / f"{number}.png" for number in range(count)]
    for number, path in enumerate(paths):
        scene(number).save(path)
    return paths


# ------------------------------------------------------------------------------------------ processes


def test_processes_see_what_this_one_sees(tmp_path: Path) -> None:
    sources = [*files(tmp_path, 5), np.asarray(scene(9)), np.asarray(scene(8).convert("L")), tmp_path / "missing.png"]
    wanted = Wanted(crop=48, describe=True)
    for source, (facts, prints) in zip(sources, survey(sources, wanted, 2), strict=True):
        own_facts, own_prints = look(str(source) if isinstance(source, Path) else source, wanted)
        assert facts == own_facts
        if own_prints is None:
            assert prints is None and facts.failure == ("unreadable", "there is no such file")
            continue
        assert prints is not None and (prints.hash, prints.mirror) == (own_prints.hash, own_prints.mirror)
        for name in ("grey", "colour", "crop", "features"):
            assert np.array_equal(getattr(prints, name), getattr(own_prints, name))
        assert prints.crop.shape == (48, 48, 3) and prints.features.shape == (LENGTH,)


def test_workers_start_without_torch() -> None:
    code = (
        "import runpy, sys, json; sys.argv = ['worker', json.dumps({'path': sys.path, 'wanted': {}})]; "
        f"runpy.run_path({worker.__file__!r}, run_name='__main__'); sys.stderr.write(str('torch' in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-P", "-c", code], input=b"", capture_output=True, check=True)
    assert done.stderr == b"False"


def test_a_file_name_that_is_no_text(tmp_path: Path) -> None:
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9.png"))
    try:
        scene(1).save(path)
    except OSError:
        pytest.skip("this file system takes names that are text only")
    ((facts, prints),) = survey([path], Wanted(), 1)
    assert facts.failure is None and prints is not None


CRASHING = f"""
import os, runpy
program = runpy.run_path({worker.__file__!r})
program["_skip_package_files"](os.path.dirname({worker.__file__!r}))
from nearkin.data.doctor import picture
plain = picture.look
def look(source, wanted):
    if os.path.basename(source).startswith("crash"):
        os.kill(os.getpid(), 9)
    return plain(source, wanted)
picture.look = look
program["_main"].__globals__["__file__"] = {worker.__file__!r}
program["_main"]()
"""


def test_a_crash_is_one_finding_and_the_others_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "crashing.py"
    script.write_text(CRASHING)
    paths = files(tmp_path, 9)
    for number in (3, 6):
        paths[number] = paths[number].rename(tmp_path / f"crash{number}.png")
    monkeypatch.setattr(worker, "__file__", str(script))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    for workers in (1, 2):
        found = [facts.failure for facts, _ in survey(paths, Wanted(), workers)]
        assert [row for row, failure in enumerate(found) if failure] == [3, 6]
        assert found[3] == ("unreadable", "the decoder crashes on it")


def test_a_worker_that_cannot_start_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "broken.py"
    script.write_text("raise SystemExit(7)")
    monkeypatch.setattr(worker, "__file__", str(script))
    with pytest.raises(
        RuntimeError, match="^worker processes of the doctor must start, got exit status 7 from .*broken.py;"
    ):
        list(survey(files(tmp_path, 3), Wanted(), 2))


def test_stopping_early_ends_the_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[int] = []
    plain = survey_module.subprocess.Popen

    def counting(*arguments: object, **options: object) -> object:
        process = plain(*arguments, **options)  # type: ignore[call-overload]
        started.append(process.pid)
        return process

    monkeypatch.setattr(survey_module.subprocess, "Popen", counting)
    images = survey(files(tmp_path, 200), Wanted(), 3)
    next(images)
    images.close()
    assert len(started) == 3
    for process in started:
        with pytest.raises(ProcessLookupError):
            os.kill(process, 0)


INTERRUPTED = """
import sys
import numpy as np
from nearkin.data import ImageTable
from nearkin.data.doctor import examine
pictures = np.random.default_rng(0).integers(0, 256, (3, 64, 64, 3), dtype=np.uint8)
def progress(done, total):
    if done == 20:
        print("going", flush=True)
table = ImageTable([pictures[row % 3] for row in range(200_000)], np.zeros(200_000, np.int64), ("a",))
try:
    examine(table, workers=2, embed="none", progress=progress)
except KeyboardInterrupt:
    print("stopped", flush=True)
"""


def test_an_interruption_ends_at_once_and_leaves_no_process() -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=True, env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline() == "going\n"
    os.killpg(process.pid, signal.SIGINT)  # a terminal sends it to the workers too
    out, error = process.communicate(timeout=PATIENCE)
    assert (out, error) == ("stopped\n", "")

    def gone() -> bool:
        try:
            os.killpg(process.pid, 0)
        except ProcessLookupError:
            return True
        return False

    until(gone)  # no worker outlives the doctor


# ------------------------------------------------------------------------------------------ facts


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "GIF", "BMP"])
def test_every_cut_is_seen_as_such(kind: str) -> None:
    content = encoded(scene(1), kind)
    assert not cut_short(content)
    for share in (0.05, 0.3, 0.6, 0.9, 0.99):
        assert cut_short(content[: max(30, int(len(content) * share))])


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "GIF", "BMP", "TIFF"])
@pytest.mark.parametrize("share", [0.2, 0.5, 0.9])
def test_a_cut_file_is_never_taken_for_whole(kind: str, share: float, tmp_path: Path) -> None:
    content = encoded(scene(1, 300, 200), kind)
    path = tmp_path / f"cut.{kind.lower()}"
    path.write_bytes(content[: int(len(content) * share)])
    facts, prints = look(str(path), Wanted())
    assert prints is None and facts.failure is not None
    assert facts.failure[0] == "truncated" or kind == "TIFF"


def test_broken_inside_is_unreadable_not_cut(tmp_path: Path) -> None:
    content = bytearray(encoded(scene(1), "PNG"))
    content[60:90] = bytes(30)
    (tmp_path / "broken.png").write_bytes(content)
    facts, _ = look(str(tmp_path / "broken.png"), Wanted())
    assert facts.failure is not None and facts.failure[0] == "unreadable"
    assert facts.failure[1].startswith("it is damaged")


@pytest.mark.parametrize(
    ("mode", "kind", "bits"),
    [("1", "PNG", 1), ("L", "PNG", 8), ("I;16", "PNG", 16), ("I;16", "TIFF", 16), ("F", "TIFF", 32), ("I", "TIFF", 32),
     ("RGB", "WEBP", 8), ("I", "PPM", 16)],
)  # fmt: skip
def test_depth(mode: str, kind: str, bits: int) -> None:
    image = Image.new(mode, (40, 40), 1)
    assert read_header(encoded(image, kind), f"a.{kind.lower()}").bits == bits


@pytest.mark.parametrize("orientation", range(1, 9))
def test_orientation_and_upright_size(orientation: int, tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[274] = orientation
    scene(1, 120, 90).save(tmp_path / "a.jpg", exif=exif)
    facts, _ = look(str(tmp_path / "a.jpg"), Wanted())
    assert facts.header is not None and facts.header.orientation == orientation
    assert (facts.width, facts.height) == ((90, 120) if orientation >= 5 else (120, 90))


@pytest.mark.parametrize(
    ("name", "kind", "promised"),
    [("a.jpg", "JPEG", ""), ("a.JPEG", "JPEG", ""), ("a.jpg", "PNG", "JPEG"),
     ("a.webp", "JPEG", "WEBP"), ("a.tif", "TIFF", ""), ("a", "PNG", "no ending"),
     ("a.txt", "PNG", ".txt"), ("a.ppm", "PPM", ""), ("a.apng", "PNG", "")],
)  # fmt: skip
def test_endings(name: str, kind: str, promised: str) -> None:
    assert read_header(encoded(scene(1), kind), name).extension == promised


def test_two_pictures_of_one_camera_are_no_animation() -> None:
    content = encoded(scene(1), "MPO", save_all=True, append_images=[scene(2)])
    header = read_header(content, "a.jpg")
    assert (header.format, header.frames, header.extension) == ("MPO", 1, "")


def test_a_huge_file_is_reported_without_being_decoded(tmp_path: Path) -> None:
    """A picture of 200 megapixels is refused by the decoder; its size is known all the same."""
    Image.new("1", (20_000, 10_000)).save(tmp_path / "bomb.png")
    facts, prints = look(str(tmp_path / "bomb.png"), Wanted())
    assert prints is None and facts.header is not None and facts.header.width == 20_000
    assert facts.failure == ("unreadable", "it has too many pixels")
    assert dict(complaints(facts))["huge"] == "20,000 x 10,000 pixels, 200.0 megapixels"


@pytest.mark.parametrize(("size", "huge"), [((7_600, 6_600), True), ((8_001, 2_100), True), ((7_000, 7_000), False)])
def test_many_pixels_or_a_long_side_are_huge(size: tuple[int, int], huge: bool) -> None:
    assert ("huge" in dict(complaints(Facts(width=size[0], height=size[1])))) == huge


def test_a_folder_and_a_pipe_are_no_files(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.png")
    for name, reason in (("pipe.png", "it is not a file"), ("", "it is a folder")):
        facts, _ = look(str(tmp_path / name), Wanted())
        assert facts.failure == ("unreadable", reason)


def test_the_crop_is_the_middle(tmp_path: Path) -> None:
    """The shorter side is scaled and the longer one cut, also where the picture is reduced first."""
    pixels = np.zeros((600, 1800, 3), np.uint8)
    pixels[:, 600:1200] = 255
    prints = look(pixels, Wanted(crop=50))[1]
    assert prints is not None and prints.crop.min() > 250
    tall = look(np.rot90(pixels).copy(), Wanted(crop=50))[1]
    assert tall is not None and tall.crop.min() > 250
    whole = look(pixels[:, 300:900], Wanted(crop=50))[1]
    assert whole is not None and whole.crop[:, :24].max() < 5 and whole.crop[:, 26:].min() > 250


def test_a_speck_is_not_blank() -> None:
    pixels = np.full((500, 500, 3), 200, np.uint8)
    assert look(pixels, Wanted())[0].blank
    pixels[301:303, 77:79] = 90
    assert not look(pixels, Wanted())[0].blank


def test_descriptions_have_three_blocks_of_unit_length() -> None:
    found = describe(np.asarray(scene(1, 64, 64)))
    assert found.shape == (LENGTH,)
    assert [float(np.linalg.norm(block)) for block in np.split(found, [128, 192])] == pytest.approx([1, 1, 1], abs=1e-5)
    assert np.isfinite(describe(np.zeros((64, 64, 3), np.uint8))).all()
