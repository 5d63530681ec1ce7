"""The contact sheet: everything is on it, sharp and in place, and nothing can keep it from being drawn."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageFont

from nearkin.data import ImageTable
from nearkin.data.doctor import KINDS, ClassCount, Finding, Findings, Place
from nearkin.data.doctor import sheet as sheet_module
from nearkin.data.doctor.lettering import Fonts, folded, shortened
from nearkin.data.doctor.sheet import THUMB, WIDTH, draw_sheet, save_sheet

COLOURS = ((255, 0, 0), (0, 255, 0), (0, 0, 255), (255, 0, 255))


def table(size: tuple[int, int] = (40, 60)) -> ImageTable:
    pixels = [np.full((*size, 3), colour, np.uint8) for colour in COLOURS]
    return ImageTable(pixels, np.array([0, 0, 1, 1]), ("cat", "dog"))


def place(row: int) -> Place:
    return Place(f"image {row}", ("cat", "cat", "dog", "dog")[row], row)


def findings(*found: Finding) -> Findings:
    return Findings.of(found, [ClassCount("cat", 2, 2), ClassCount("dog", 2, 2)], 4)


def count(image: Image.Image, colour: tuple[int, int, int]) -> int:
    return int((np.asarray(image) == colour).all(2).sum())


def test_thumbnails_are_on_it() -> None:
    image = draw_sheet(findings(Finding("tiny", place(0)), Finding("tiny", place(2))), {"": table()})
    assert image.width == WIDTH
    # 60 x 40 pixels are shown twice as large, by whole pixels.
    assert count(image, COLOURS[0]) == count(image, COLOURS[2]) == 120 * 80
    assert count(image, COLOURS[1]) == 0


def test_pairs_stand_side_by_side() -> None:
    image = draw_sheet(findings(Finding("conflict", place(0), "", place(2))), {"": table()})
    (top, left), (other_top, other_left) = (
        np.argwhere((np.asarray(image) == COLOURS[row]).all(2)).min(0) for row in (0, 2)
    )
    assert top == other_top and 0 < other_left - left < THUMB + 20


def test_large_pictures_are_reduced_to_the_box() -> None:
    image = draw_sheet(findings(Finding("huge", place(1))), {"": table((500, 1000))})
    assert count(image, COLOURS[1]) == THUMB * THUMB // 2


def test_the_rest_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    plain = sheet_module.folded

    def listening(text: str, *rest: object) -> list[str]:
        said.append(text)
        return plain(text, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(sheet_module, "folded", listening)
    many = [Finding("tiny", place(row % 4)) for row in range(1200)]
    image = draw_sheet(findings(*many), {"": table()}, each=3)
    assert "3 are shown here, 1,197 more are not." in said
    assert count(image, COLOURS[0]) == 120 * 80


def test_every_kind_can_be_drawn() -> None:
    found = [
        Finding(kind, place(0), "some detail", place(3) if kind in ("leak", "conflict") else None, 0.8)
        for kind in KINDS
    ]
    found.append(Finding("one-image", Place("cat", "cat"), "1 image"))
    found.append(Finding("alike-names", Place("dog", "dog"), "", Place("cat", "cat")))
    image = draw_sheet(findings(*found), {"": table()})
    assert image.height > 1000


def test_what_cannot_be_decoded_is_a_crossed_box(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(b"no picture")
    Image.new("RGB", (50, 50), COLOURS[1]).save(tmp_path / "b.png")
    files = ImageTable([tmp_path / "a.png", tmp_path / "b.png", tmp_path / "gone.png"], np.array([0, 0, 0]), ("cat",))
    found = findings(
        Finding("unreadable", Place(str(tmp_path / "a.png"), "cat", 0), "it is not an image of a kind that is known"),
        Finding("few-images", Place("cat", "cat"), "1 image"),
        Finding("tiny", Place(str(tmp_path / "gone.png"), "cat", 2), "1 x 1 pixels"),
    )
    image = draw_sheet(found, {"": files})
    assert count(image, COLOURS[1]) > 0  # the class shows its first image that can be read
    grey = Image.new("RGB", (1, 1), sheet_module.BOX).getpixel((0, 0))
    assert count(image, grey) > 2 * THUMB * THUMB * 0.8


def test_a_broken_file_is_not_decoded_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The decoder may have crashed on it."""

    def never(*arguments: object, **options: object) -> None:
        raise AssertionError("decoded")

    monkeypatch.setattr(sheet_module, "read_image", never)
    files = ImageTable([tmp_path / "a.png"], np.array([0]), ("cat",))
    broken = Place(str(tmp_path / "a.png"), "cat", 0)
    draw_sheet(findings(Finding("unreadable", broken, "crash"), Finding("one-image", Place("cat", "cat"))), {"": files})


def test_without_findings_there_is_still_a_sheet() -> None:
    image = draw_sheet(findings(), {"": table()})
    assert 100 < image.height < 300


def test_without_matplotlib_another_font_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert isinstance(Fonts().title, ImageFont.FreeTypeFont)
    assert draw_sheet(findings(Finding("tiny", place(0), "ä ⇒ 漢")), {"": table()}).width == WIDTH


def test_names_of_any_length_fit() -> None:
    font = Fonts().small
    for text in ("", "a", "a/b.png", "x" * 500, "word " * 200, "ä" * 90, "a\nb\tc"):
        for middle in (False, True):
            cut = shortened(text, font, THUMB, middle)
            assert font.getlength(cut) <= THUMB and "\n" not in cut
        for line in folded(text, font, THUMB, 3):
            assert font.getlength(line) <= THUMB
        assert len(folded(text, font, THUMB, 3)) <= 3
    assert shortened("albatross_0001_796.webp", font, 120, middle=True).endswith(".webp")
    assert " ".join(folded("one two three four five six seven", font, 90, 9)) == "one two three four five six seven"


@pytest.mark.parametrize("name", ["a.png", "a.jpg", "a.webp", "a.PNG"])
def test_it_is_saved_in_the_format_of_its_ending(name: str, tmp_path: Path) -> None:
    save_sheet(findings(Finding("tiny", place(0))), {"": table()}, tmp_path / name)
    with Image.open(tmp_path / name) as image:
        image.load()
        assert image.width == WIDTH
        assert image.format == {"jpg": "JPEG", "webp": "WEBP"}.get(name[2:], "PNG")
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("name", ["sheet", "sheet.txt", "sheet.pngg"])
def test_other_endings_are_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=f"^sheet must end in .png, .jpg or another format of Pillow, got '{name}';"):
        save_sheet(findings(), {"": table()}, tmp_path / name)
