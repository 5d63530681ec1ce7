"""The doctor as a person meets it: a folder that holds every kind of problem, and a clean one."""

from __future__ import annotations

import io
import json
import shutil
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from nearkin.data import ImageTable, Splits, folder, glyphs
from nearkin.data.doctor import KINDS, Findings, examine, examine_splits, read_json
from nearkin.data.doctor.command import Check, check
from nearkin.data.doctor.show import Watching, report, summary


def scene(seed: int, width: int = 120, height: int = 90) -> Image.Image:
    """A picture like no other: soft blotches and a few sharp boxes."""
    random = np.random.default_rng(seed)
    soft = Image.fromarray(random.integers(0, 256, (6, 8, 3), dtype=np.uint8)).resize(
        (width, height), Image.Resampling.BICUBIC
    )
    pixels = np.asarray(soft).copy()
    for _ in range(4):
        top, left = int(random.integers(height - 20)), int(random.integers(width - 20))
        pixels[top : top + 20, left : left + 20] = random.integers(0, 256, 3)
    return Image.fromarray(pixels)


def encoded(image: Image.Image, kind: str, **options: object) -> bytes:
    content = io.BytesIO()
    image.save(content, kind, **options)
    return content.getvalue()


def png_of_16_bit_colour(width: int = 60, height: int = 50) -> bytes:
    """Pillow cannot write these, so it is put together by hand."""
    pixels = np.random.default_rng(5).integers(0, 2**16, (height, width, 3), dtype=np.uint16).astype(">u2")
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)

    def chunk(name: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))

    head = struct.pack(">IIBBBBB", width, height, 16, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


EXPECTED = {
    "unreadable": {"cat/empty.jpg", "cat/text.png"},
    "truncated": {"cat/cut.jpg", "cat/cut.png", "cat/cut.webp", "cat/cut.gif", "cat/cut.bmp"},
    "conflict": {"dog/same file.png", "dog/nearly.jpg"},
    "duplicate": {"cat/twice.png"},
    "near-duplicate": {"dog/smaller.jpg", "dog/mirrored.png"},
    "one-image": {"lonely"},
    "alike-names": {"Two_Words"},
    "blank": {"odd/blank.png", "odd/wide.png"},
    "tiny": {"odd/tiny.png"},
    "aspect": {"odd/wide.png", "odd/strip.png"},
    "huge": {"odd/wide.png"},
    "few-images": {"few"},
    "cmyk": {"odd/print.jpg"},
    "16-bit": {"odd/deep grey.png", "odd/deep colour.png", "odd/deep.tif"},
    "rotated": {"odd/turned.jpg", "odd/turned.png"},
    "animated": {"odd/moving.gif", "odd/moving.webp", "odd/pages.tif"},
    "alpha": {"odd/clear.png", "odd/one clear colour.png"},
    "palette": {"odd/palette.png"},
    "wrong-extension": {"odd/really a jpeg.png"},
}
"""What `make_mess` puts where."""


def make_mess(root: Path) -> None:
    for place, name in enumerate(("cat", "dog", "odd", "two words", "Two_Words")):
        (root / name).mkdir(parents=True)
        for number in range(6):
            scene(100 * place + number).save(root / name / f"{number}.png")
    (root / "lonely").mkdir()
    scene(900).save(root / "lonely" / "one.png")
    (root / "few").mkdir()
    for number in range(3):
        scene(910 + number).save(root / "few" / f"{number}.png")
    cat, dog, odd = root / "cat", root / "dog", root / "odd"
    (cat / "empty.jpg").write_bytes(b"")
    (cat / "text.png").write_text("this is no picture")
    for seed, kind in enumerate(("jpg", "png", "webp", "gif", "bmp"), start=50):
        content = encoded(scene(seed), {"jpg": "JPEG"}.get(kind, kind.upper()))
        (cat / f"cut.{kind}").write_bytes(content[: len(content) // 2])
    shutil.copy(cat / "3.png", cat / "twice.png")
    shutil.copy(cat / "4.png", dog / "same file.png")
    scene(5).save(dog / "nearly.jpg", quality=60)
    scene(102).resize((80, 60), Image.Resampling.LANCZOS).save(dog / "smaller.jpg")
    scene(103).transpose(Image.Transpose.FLIP_LEFT_RIGHT).save(dog / "mirrored.png")
    Image.new("RGB", (200, 100), (30, 60, 90)).save(odd / "blank.png")
    scene(60, 40, 31).save(odd / "tiny.png")
    scene(61, 360, 80).save(odd / "strip.png")
    Image.new("RGB", (8_001, 200), (200, 20, 20)).save(odd / "wide.png")
    scene(62).convert("CMYK").save(odd / "print.jpg")
    grey = np.asarray(scene(63).convert("L")).astype(np.uint16) * 257
    Image.fromarray(grey).save(odd / "deep grey.png")
    Image.fromarray(np.rot90(grey).copy()).save(odd / "deep.tif")
    (odd / "deep colour.png").write_bytes(png_of_16_bit_colour())
    exif = Image.Exif()
    exif[274] = 6
    scene(64).save(odd / "turned.jpg", exif=exif)
    scene(65).save(odd / "turned.png", exif=exif)
    others = [scene(67), scene(68)]
    scene(66).save(odd / "moving.gif", save_all=True, append_images=others)
    scene(69).save(odd / "moving.webp", save_all=True, append_images=others)
    scene(70).save(odd / "pages.tif", save_all=True, append_images=others)
    clear = scene(71).convert("RGBA")
    clear.putalpha(99)
    clear.save(odd / "clear.png")
    scene(72).quantize(16).save(odd / "one clear colour.png", transparency=3)
    scene(73).quantize(16).save(odd / "palette.png")
    (odd / "really a jpeg.png").write_bytes(encoded(scene(74), "JPEG"))
    (root / "nothing in it").mkdir()
    (root / "readme.txt").write_text("about these images")


@pytest.fixture(scope="module")
def mess(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("doctor") / "mess"
    make_mess(root)
    return root


@pytest.fixture(scope="module")
def found(mess: Path) -> Findings:
    return examine(folder(mess, split="all").train, workers=2, embed="none")


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("leak", "mislabelled")])
def test_every_planted_problem_is_found_and_nothing_else(found: Findings, kind: str) -> None:
    assert {found.short_name(finding.place) for finding in found.by_kind().get(kind, ())} == EXPECTED[kind]


def test_no_other_kind_is_reported(found: Findings) -> None:
    assert set(found.counts()) == set(EXPECTED)


def test_details_say_what_is_wrong(found: Findings) -> None:
    said = {(finding.kind, found.short_name(finding.place)): finding.detail for finding in found.findings}
    assert said["unreadable", "cat/empty.jpg"] == "the file is empty"
    assert said["unreadable", "cat/text.png"] == "it is not an image of a kind that is known"
    assert {said["truncated", name] for name in EXPECTED["truncated"]} == {"it is cut short"}
    assert said["tiny", "odd/tiny.png"] == "40 x 31 pixels"
    assert said["huge", "odd/wide.png"] == "8,001 x 200 pixels, 1.6 megapixels"
    assert said["16-bit", "odd/deep colour.png"] == "16 bits a channel, PNG"
    assert said["rotated", "odd/turned.png"] == "turned by 90 degrees"
    assert said["animated", "odd/pages.tif"] == "3 pages, TIFF"
    assert said["animated", "odd/moving.webp"] == "3 frames, WEBP"
    assert said["wrong-extension", "odd/really a jpeg.png"] == "holds JPEG, the name says PNG"
    assert said["duplicate", "cat/twice.png"] == "the same file"
    assert said["near-duplicate", "dog/mirrored.png"].startswith("mirror image, alike to 1.00")
    assert said["alike-names", "Two_Words"] == "'Two_Words' beside 'two words'"
    assert said["few-images", "few"] == "3 images"


def test_pairs_name_both_images(found: Findings) -> None:
    pairs = {
        (found.short_name(finding.place), found.short_name(finding.other))
        for finding in found.findings
        if finding.other is not None and finding.other.row is not None
    }
    assert pairs == {
        ("cat/twice.png", "cat/3.png"),
        ("dog/same file.png", "cat/4.png"),
        ("dog/nearly.jpg", "cat/5.png"),
        ("dog/smaller.jpg", "dog/2.png"),
        ("dog/mirrored.png", "dog/3.png"),
    }


def test_classes_are_counted_with_what_can_be_read(found: Findings) -> None:
    counts = {each.name: (each.images, each.readable) for each in found.classes}
    assert counts["cat"] == (14, 7)
    assert counts["lonely"] == (1, 1)
    assert found.images == sum(images for images, _ in counts.values())


def test_json_and_back(found: Findings, tmp_path: Path) -> None:
    found.save(tmp_path / "findings.json")
    text = (tmp_path / "findings.json").read_text(encoding="utf-8")
    assert read_json(text) == found
    assert json.loads(text)["counts"] == {kind: len(names) for kind, names in EXPECTED.items() if names}
    assert list(tmp_path.iterdir()) == [tmp_path / "findings.json"]


def test_text_that_is_no_findings_is_refused() -> None:
    for text in ("", "[]", '{"format": 99}', '{"format": 1}'):
        with pytest.raises(ValueError, match="^text must be findings of format 1 .* write the file again.$"):
            read_json(text)


def test_workers_do_not_change_what_is_found(mess: Path, found: Findings) -> None:
    assert examine(folder(mess, split="all").train, workers=1, embed="none") == found


def test_progress_is_told(mess: Path) -> None:
    told: list[tuple[int, int]] = []
    table = folder(mess, split="all").train.select([0, 1, 2])
    examine(table, workers=1, embed="none", progress=lambda done, total: told.append((done, total)))
    assert told == [(1, 3), (2, 3), (3, 3)]


# ------------------------------------------------------------------------------------------ clean data


def test_a_clean_folder_has_no_findings(tmp_path: Path) -> None:
    for place, name in enumerate(("one", "two", "three")):
        (tmp_path / name).mkdir()
        for number in range(8):
            scene(100 * place + number).save(tmp_path / name / f"{number}.jpg", quality=90)
    clean = examine(folder(tmp_path, split="all").train, embed="plain", workers=2)
    assert clean.findings == ()
    assert summary(clean) == "24 images of 3 classes: nothing found."


def test_characters_in_memory_have_no_copies() -> None:
    """White on black shapes on noise: pictures that all look a little alike."""
    splits = glyphs(classes=60, images=16)
    found = examine_splits(splits, embed="none", workers=2)
    assert found.counts() == {}
    assert found.root == ""


def test_blank_pages_are_no_copies_of_each_other(tmp_path: Path) -> None:
    pages = [np.full((64, 64), level, np.uint8) for level in (250, 251, 252, 253, 254, 255)]
    pages += [np.tile(np.linspace(0, top, 64).astype(np.uint8), (64, 1)) for top in (200, 220, 240)]
    found = examine(ImageTable(pages, np.zeros(9, np.int64), ("page",)), embed="none", workers=1)
    assert found.counts() == {"blank": 6}


# ------------------------------------------------------------------------------------------ copies and parts


def pictures(*seeds: int) -> list[np.ndarray]:
    return [np.asarray(scene(seed)) for seed in seeds]


def test_a_copy_in_both_parts_is_a_leak() -> None:
    train = ImageTable(pictures(1, 2, 3, 4), np.array([0, 0, 1, 1]), ("a", "b"))
    shrunk = np.asarray(scene(2).resize((100, 75)))
    test = ImageTable([*pictures(5, 1), shrunk, *pictures(6)], np.array([0, 0, 1, 1]), ("c", "d"))
    found = examine_splits(Splits(train, test), embed="none", workers=1)
    leaks = found.by_kind()["leak"]
    assert [(leak.place.part, leak.place.row, leak.other.part, leak.other.row) for leak in leaks if leak.other] == [
        ("test", 1, "train", 0),
        ("test", 2, "train", 1),
    ]
    assert leaks[0].detail == "the same pixels"
    assert {each.part for each in found.classes} == {"train", "test"}
    assert "Take the copies out of the training part" in summary(found)


def test_the_worst_relation_is_told() -> None:
    """The last image is a copy of three: same class, other class, other part."""
    train = ImageTable(pictures(1, 1, 9), np.array([0, 1, 0]), ("a", "b"))
    test = ImageTable(pictures(7, 1, 1), np.array([0, 0, 0]), ("a",))
    found = examine_splits(Splits(train, test, disjoint=False), embed="none", workers=1)
    assert [(each.kind, each.place.part, each.place.row) for each in found.findings if each.other] == [
        ("leak", "test", 1),
        ("leak", "test", 2),
        ("conflict", "train", 1),
    ]


def test_many_copies_of_one_file_are_one_finding_each() -> None:
    table = ImageTable(pictures(*[3] * 50), np.zeros(50, np.int64), ("a",))
    found = examine(table, embed="none", workers=2)
    assert found.counts() == {"duplicate": 49}
    assert {finding.other.row for finding in found.findings if finding.other} == {0}


# ------------------------------------------------------------------------------------------ labels


def painted(label: int, random: np.random.Generator) -> np.ndarray:
    """A picture of a class that plain descriptions can tell: a hue, with stripes of a direction."""
    hues = ((200, 60, 60), (60, 200, 60), (60, 60, 200), (190, 190, 50))
    down, across = np.mgrid[:64, :64]
    stripes = (down if label % 2 else across) // 4 % 2 * 60
    noise = random.integers(-40, 41, (64, 64, 3)) + random.integers(-25, 26, 3)
    return np.clip(np.array(hues[label]) + stripes[..., None] + noise - 30, 0, 255).astype(np.uint8)


def test_swapped_labels_are_named_and_others_are_not() -> None:
    random = np.random.default_rng(0)
    true = np.repeat(np.arange(4), 30)
    given = true.copy()
    given[[5, 40, 77, 110]] = [1, 2, 3, 0]
    table = ImageTable([painted(label, random) for label in true], given, ("red", "green", "blue", "yellow"))
    found = examine(table, embed="plain", workers=2)
    named = {finding.place.row: finding for finding in found.by_kind()["mislabelled"]}
    assert set(named) == {5, 40, 77, 110}
    assert named[5].detail.startswith("looks like red, ") and named[5].severity == "warning"
    assert named[5].other is not None and named[5].other.class_name == "red"
    assert found.features.startswith("Labels were judged by plain descriptions of edges and colours; by it the nearest")
    right = ImageTable(table.images, true, table.class_names)
    assert "mislabelled" not in examine(right, embed="plain", workers=2).counts()


def test_features_that_cannot_tell_are_said_to_be_so() -> None:
    random = np.random.default_rng(0)
    images = [random.integers(0, 256, (64, 64, 3), dtype=np.uint8) for _ in range(60)]
    found = examine(ImageTable(images, np.arange(60) % 6, tuple("abcdef")), embed="plain", workers=1)
    assert found.findings == ()
    assert found.features.startswith("Labels were not judged: by plain descriptions of edges and colours the nearest")
    assert found.features.endswith("too seldom to tell; the network of pip install 'nearkin[lite]' would tell more.")


def test_a_caller_may_bring_an_embedding() -> None:
    seen: list[tuple[int, ...]] = []

    def embed(images: np.ndarray) -> np.ndarray:
        seen.append(images.shape)
        return images.reshape(len(images), -1, 3).mean(1)

    embed.side = 24  # type: ignore[attr-defined]
    random = np.random.default_rng(1)
    true = np.repeat(np.arange(4), 30)
    given = true.copy()
    given[[7, 100]] = [3, 1]
    table = ImageTable([painted(label, random) for label in true], given, ("a", "b", "c", "d"))
    found = examine(table, embed=embed, workers=1)
    assert sorted(finding.place.row or 0 for finding in found.by_kind()["mislabelled"]) == [7, 100]
    assert found.features.startswith("Labels were judged by embed; ")
    assert {shape[1:] for shape in seen} == {(24, 24, 3)} and sum(shape[0] for shape in seen) == 120


@pytest.mark.parametrize(
    ("embed", "message"),
    [
        (lambda images: images, "embed must return one vector per image, (8, d), got shape (8, 192, 192, 3);"),
        (
            lambda images: np.full((len(images), 2), np.nan),
            "embed must return finite numbers, got others from <lambda>;",
        ),
        ("plian", "features 'plian' is not known; did you mean 'plain'?"),
    ],
)
def test_bad_embeddings_are_refused(embed: object, message: str) -> None:
    table = ImageTable(pictures(*range(9)), np.zeros(9, np.int64), ("a",))
    with pytest.raises(ValueError) as caught:
        examine(table, embed=embed, workers=1)  # type: ignore[arg-type]
    assert str(caught.value).startswith(message)


def test_an_empty_table_and_bad_settings_are_refused() -> None:
    empty = ImageTable([], np.zeros(0, np.int64), ())
    with pytest.raises(ValueError, match="^table must hold at least one image, got none; check where"):
        examine(empty)
    table = ImageTable(pictures(1), np.zeros(1, np.int64), ("a",))
    with pytest.raises(ValueError, match="^examine: workers must be a whole number at least 1 or None, got 0;"):
        examine(table, workers=0)
    with pytest.raises(
        ValueError, match="^examine: seed must be a whole number at least 0 and at most 9223372036854775807, got -1;"
    ):
        examine(table, seed=-1)


# ------------------------------------------------------------------------------------------ text


def test_the_report_shows_every_kind(found: Findings) -> None:
    text = report(found, examples=1, width=140)
    for kind in EXPECTED:
        assert KINDS[kind].title in text
    assert "left out of retrieval measures" in text
    assert max(len(line) for line in text.splitlines()) <= 140
    told = " ".join(text.split())
    assert "63 images of 7 classes: 9 serious, 11 warnings and 14 notes." in told
    assert told.endswith("Replace or delete the files that cannot be read; keep each picture in one class only.")


def test_the_table_lists_examples_below_each_kind(found: Findings) -> None:
    lines = report(found, examples=1, width=80).splitlines()
    assert lines[0].split()[:3] == ["finding", "count", "severity"]
    place = lines.index("tiny                         1  warning   enlarged")
    assert lines[place + 1] == "    odd/tiny.png: 40 x 31 pixels"
    assert max(map(len, lines)) <= 80
    coloured = report(found, examples=0, width=80, colour=True)
    assert "\033[33mtiny  " in coloured and "\033" not in "".join(lines)


def test_progress_is_a_line_now_and_then_where_nobody_watches(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([0.0, 1.0, 5.5, 5.5, 6.0])
    monkeypatch.setattr("nearkin.data.doctor.show.time.monotonic", lambda: next(clock))
    stream = io.StringIO()
    with Watching(stream) as progress:
        for done in (1, 1500, 2000):
            progress(done, 2000)
    assert stream.getvalue() == "1,500 of 2,000 images\n"


def test_counts_in_words() -> None:
    one = Findings.of([], [], 1)
    assert summary(one) == "1 image of 0 classes: nothing found."


def test_the_documentation_lists_every_kind() -> None:
    page = (Path(__file__).parents[2] / "docs" / "doctor.md").read_text(encoding="utf-8")
    rows = [f"| {kind.title} | {kind.severity} | {kind.meaning} | {kind.action} |" for kind in KINDS.values()]
    assert "\n".join(rows) in page


# ------------------------------------------------------------------------------------------ the command


def test_the_command_writes_what_was_asked_for(mess: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sheet, findings = tmp_path / "sheet.png", tmp_path / "findings.json"
    settings = Check(path=str(mess), sheet=str(sheet), json=str(findings), features="none", examples=1)
    assert check(settings) == 1
    out = capsys.readouterr().out
    assert "1 file lies in" in out and "holds no image and is no class: nothing in it." in out
    assert "in both parts" not in out
    assert f"Contact sheet: {sheet}" in out and f"Findings: {findings}" in out
    with Image.open(sheet) as image:
        assert image.width > 1000 and image.height > 1000
    assert read_json(findings.read_text(encoding="utf-8")).notes[0].startswith("1 file lies in")


def test_the_command_is_content_with_clean_data(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for part, start in (("train", 0), ("test", 50)):
        for place, name in enumerate("ab"):
            (tmp_path / part / name).mkdir(parents=True)
            for number in range(5):
                scene(start + 10 * place + number).save(tmp_path / part / name / f"{number}.png")
    assert check(Check(path=str(tmp_path), features="none")) == 0
    assert "20 images of 2 classes: nothing found." in capsys.readouterr().out
    shutil.copy(tmp_path / "train" / "a" / "0.png", tmp_path / "test" / "a" / "copy.png")
    assert check(Check(path=str(tmp_path), features="none")) == 1
    assert "train-test leak" in capsys.readouterr().out


def test_the_command_reads_known_data_sets(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As the data set "folder" the first classes train and the last test, so a copy between them is a leak."""
    for place, name in enumerate("abcd"):
        (tmp_path / name).mkdir()
        for number in range(5):
            scene(10 * place + number).save(tmp_path / name / f"{number}.png")
    shutil.copy(tmp_path / "a" / "0.png", tmp_path / "d" / "copy.png")
    assert check(Check(path=str(tmp_path), data="folder", features="none", workers=1)) == 1
    assert "test: d/copy.png = train: a/0.png" in capsys.readouterr().out
    assert check(Check(path=str(tmp_path), features="none", workers=1)) == 1
    assert "label conflict" in capsys.readouterr().out


def test_the_command_recognises_a_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = ["path,label,split"]
    for number in range(20):
        scene(number % 19).save(tmp_path / f"{number}.png")  # the last is the first again
        lines.append(f"{number}.png,{'abcd'[number // 5]},{'train' if number < 10 else 'test'}")
    (tmp_path / "list.csv").write_text("\n".join(lines))
    assert check(Check(path=str(tmp_path / "list.csv"), features="none", workers=1)) == 1
    out = capsys.readouterr().out
    assert "Read as table, CSV table." in out and "test: 19.png = train: 0.png: the same file" in out


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"path": "not/there"}, "folder: root must be a folder, got not/there, which does not exist; check the path."),
        ({"path": ".", "data": "cub20"}, "data set 'cub20' is not known; did you mean 'cub200'?"),
        ({"path": ".", "sheet": "no/such/folder.png"}, "sheet must lie in a folder that exists, got 'no/such/folder.png';"),
        ({"path": ".", "sheet": "sheet.doc"}, "sheet must end in .png, .jpg or another format of Pillow, got 'sheet.doc';"),
        ({"path": ".", "json": "."}, "json must be a file, got '.', which is a folder; add a name to it."),
        ({"path": ".", "features": "resnet"}, "check: features must be 'auto' or 'network' or 'plain' or 'none',"),
        ({"path": ".", "each": 0}, "check: each must be a whole number at least 1, got 0;"),
    ],
)  # fmt: skip
def test_wrong_use_is_told_before_any_work(settings: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError) as caught:
        check(Check(**settings))  # type: ignore[arg-type]
    assert str(caught.value).startswith(message)


def test_files_that_cannot_be_read_are_one_finding_each(tmp_path: Path) -> None:
    for name in ("cat/1.png", "cat/2.png", "dog/1.png", "dog/2.png"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("no picture")
    found = examine(folder(tmp_path, split="all").train, workers=1, embed="none")
    assert found.counts() == {"unreadable": 4}
