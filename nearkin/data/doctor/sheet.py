"""The contact sheet: one picture that shows what was found, kind by kind, with the images themselves."""

from __future__ import annotations

import io
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from nearkin.checkpoint import replace
from nearkin.data.decode import BadImage, read_image
from nearkin.data.doctor.findings import Finding, Findings, Place
from nearkin.data.doctor.kinds import KINDS
from nearkin.data.doctor.lettering import Fonts, folded, shortened
from nearkin.data.doctor.show import summary
from nearkin.data.table import ImageTable

THUMB = 168
PADDING = 8
GAP = 12
LINE = 17
MARGIN = 36
GUTTER = 24
COLUMNS = 4
COLUMN = 2 * (THUMB + 2 * PADDING) + GAP
"""Sections are one to four columns wide; a column holds two images or a pair."""

ROOM = COLUMNS * COLUMN + (COLUMNS - 1) * GUTTER
WIDTH = ROOM + 2 * MARGIN

PAPER, INK, FAINT, BOX, FRAME = "#ffffff", "#1c1c1e", "#6b6b70", "#ececee", "#d4d4d8"
COLOURS = {"serious": "#c62828", "warning": "#b26a00", "note": "#5f6b7a"}


def save_sheet(found: Findings, tables: Mapping[str, ImageTable], path: str | os.PathLike[str], each: int = 14) -> None:
    """Draw the findings into an image file; its ending says the format. ``each``: images of a kind at most.

    ``tables`` are the examined tables by part: ``{"": table}``, or ``{"train": ..., "test": ...}``.
    """
    kind = format_of(Path(path))
    content = io.BytesIO()
    draw_sheet(found, tables, each).save(content, kind)
    replace(Path(path), content.getvalue())


def format_of(path: Path) -> str:
    """The format that the ending of the sheet's name means."""
    from PIL import Image

    kind = Image.registered_extensions().get(path.suffix.lower())
    if kind is None or kind not in Image.SAVE:
        raise ValueError(f"sheet must end in .png, .jpg or another format of Pillow, got {path.name!r}; rename it.")
    return kind


def draw_sheet(found: Findings, tables: Mapping[str, ImageTable], each: int = 14) -> Any:
    """The sheet as a Pillow image; it is as high as there are things to show."""
    from PIL import Image, ImageDraw

    pictures = _Pictures(found, tables)
    fonts = Fonts()
    heading = _Heading(found, fonts)
    sections = []
    for kind, group in found.by_kind().items():
        tiles = [_tile(finding, pictures, fonts) for finding in group[: max(1, each)]]
        sections.append(_Section(kind, len(group), tiles, fonts))
    rows = _side_by_side(sections)
    heights = [max(section.height() for section in row) for row in rows]
    sheet = Image.new("RGB", (WIDTH, heading.height() + sum(heights) + 2 * MARGIN), PAPER)
    pen = ImageDraw.Draw(sheet)
    heading.draw(pen, MARGIN)
    top = MARGIN + heading.height()
    for row, height in zip(rows, heights, strict=True):
        left = MARGIN
        for section in row:
            section.draw(sheet, pen, left, top)
            left += section.width + GUTTER
        top += height
    return sheet


def _side_by_side(sections: Sequence[_Section]) -> list[list[_Section]]:
    """Sections in rows: as many beside each other, in order, as there is room for."""
    rows: list[list[_Section]] = []
    for section in sections:
        used = sum(each.width + GUTTER for each in rows[-1]) if rows else ROOM
        if used + section.width > ROOM:
            rows.append([])
        rows[-1].append(section)
    return rows


class _Pictures:
    """Thumbnails of places. What cannot be read is known from the findings and not tried again: a decoder may crash."""

    def __init__(self, found: Findings, tables: Mapping[str, ImageTable]) -> None:
        self._tables = tables
        self._broken = {
            (finding.place.part, finding.place.row): finding.detail
            for finding in found.findings
            if finding.kind in ("unreadable", "truncated")
        }

    def of(self, place: Place) -> Any:
        """A Pillow image that fits the box of a thumbnail, or the reason why there is none."""
        from PIL import Image

        row = place.row if place.row is not None else self._first(place)
        if row is None:
            return "no image"
        if (place.part, row) in self._broken:
            return self._broken[place.part, row]
        source = self._tables[place.part].images[row]
        try:
            # Twice the box is enough for a sharp reduction, and quicker to read from a large photograph.
            pixels = read_image(source, side=2 * THUMB) if isinstance(source, Path) else np.asarray(source)
        except BadImage as bad:
            return bad.reason
        image: Any = Image.fromarray(np.ascontiguousarray(pixels)).convert("RGB")
        scale = THUMB / max(image.size)
        size = tuple(max(1, round(edge * scale)) for edge in image.size)
        if scale > 1:  # small pictures are shown as they are: whole pixels, enlarged by a whole number
            times = int(scale)
            return image.resize((image.width * times, image.height * times), Image.Resampling.NEAREST)
        return image.resize(size, Image.Resampling.LANCZOS)

    def is_file(self, place: Place) -> bool:
        return place.row is not None and isinstance(self._tables[place.part].images[place.row], Path)

    def _first(self, place: Place) -> int | None:
        """The first image of a class that can be read, or the first of all."""
        table = self._tables[place.part]
        if place.class_name not in table.class_names:
            return None
        rows = np.flatnonzero(table.labels == table.class_names.index(place.class_name)).tolist()
        return next((row for row in rows if (place.part, row) not in self._broken), rows[0] if rows else None)


@dataclass(frozen=True)
class _Shown:
    """A thumbnail, or why there is none, and the lines below it: (text, strong, cut in the middle)."""

    picture: Any
    lines: tuple[tuple[str, bool, bool], ...]


@dataclass(frozen=True)
class _Tile:
    """One or two images side by side with a line about both."""

    shown: tuple[_Shown, ...]
    detail: str
    fonts: Fonts

    @property
    def width(self) -> int:
        return len(self.shown) * (THUMB + PADDING) + PADDING

    def _detail(self) -> list[str]:
        return folded(self.detail, self.fonts.small, self.width - 2 * PADDING, 2)

    @property
    def height(self) -> int:
        lines = max(len(shown.lines) for shown in self.shown) + len(self._detail())
        return THUMB + 3 * PADDING + lines * LINE

    def draw(self, sheet: Any, pen: Any, left: int, top: int, height: int, colour: str) -> None:
        pen.rectangle((left, top, left + self.width, top + height), outline=FRAME)
        for number, shown in enumerate(self.shown):
            x, y = left + PADDING + number * (THUMB + PADDING), top + PADDING
            self._picture(sheet, pen, shown.picture, x, y)
            y += THUMB + PADDING
            for text, strong, middle in shown.lines:
                font = self.fonts.strong if strong else self.fonts.small
                pen.text((x, y), shortened(text, font, THUMB, middle), fill=INK, font=font)
                y += LINE
        y = top + 2 * PADDING + THUMB + LINE * max(len(shown.lines) for shown in self.shown)
        for line in self._detail():
            pen.text((left + PADDING, y), line, fill=colour, font=self.fonts.small)
            y += LINE

    def _picture(self, sheet: Any, pen: Any, picture: Any, x: int, y: int) -> None:
        pen.rectangle((x, y, x + THUMB - 1, y + THUMB - 1), fill=BOX)
        if not isinstance(picture, str):
            sheet.paste(picture, (x + (THUMB - picture.width) // 2, y + (THUMB - picture.height) // 2))
            return
        pen.line((x, y, x + THUMB - 1, y + THUMB - 1), fill=FRAME, width=2)
        pen.line((x, y + THUMB - 1, x + THUMB - 1, y), fill=FRAME, width=2)
        lines = folded(picture, self.fonts.small, THUMB - 4 * PADDING, 4)
        first = y + (THUMB - LINE * len(lines)) // 2
        widest = max((self.fonts.small.getlength(line) for line in lines), default=0)
        middle = x + THUMB // 2
        pen.rectangle(
            (middle - widest // 2 - 6, first - 5, middle + widest // 2 + 6, first + LINE * len(lines) + 3), fill=BOX
        )
        for number, line in enumerate(lines):
            pen.text((middle, first + number * LINE), line, fill=FAINT, font=self.fonts.small, anchor="ma")


def _tile(finding: Finding, pictures: _Pictures, fonts: Fonts) -> _Tile:
    place, other = finding.place, finding.other
    detail = finding.detail
    if finding.confidence is not None:
        detail = f"{100 * finding.confidence:.0f}%: {detail}"
    if finding.kind in ("unreadable", "truncated"):
        detail = ""  # the reason stands in the box
    shown = [_shown(place, pictures)]
    if other is not None:
        shown.append(_shown(other, pictures))
    return _Tile(tuple(shown), detail, fonts)


def _shown(place: Place, pictures: _Pictures) -> _Shown:
    lines = [(place.class_name, True, True)]
    part = f"{place.part}: " if place.part else ""
    if place.row is not None:
        # The folder is usually the class, which stands above.
        name = os.path.basename(place.name) if pictures.is_file(place) else f"image {place.row}"
        lines.append((part + name, False, True))
    elif place.part:
        lines.append((place.part, False, False))
    return _Shown(pictures.of(place), tuple(lines))


class _Heading:
    """What was examined, and the summary."""

    def __init__(self, found: Findings, fonts: Fonts) -> None:
        self._found, self._fonts = found, fonts
        self._lines = [
            line
            for sentence in (summary(found), found.features, *found.notes)
            for line in folded(sentence, fonts.text, ROOM, 3)
        ]

    def height(self) -> int:
        return 44 + 22 * len(self._lines) + 12

    def draw(self, pen: Any, top: int) -> None:
        name = self._found.root or "Images in memory"
        pen.text((MARGIN, top), shortened(name, self._fonts.top, ROOM, True), fill=INK, font=self._fonts.top)
        for number, line in enumerate(self._lines):
            pen.text((MARGIN, top + 44 + 22 * number), line, fill=FAINT, font=self._fonts.text)


class _Section:
    """A kind: its title, what it means, and its tiles in rows."""

    TITLE = 44

    def __init__(self, kind: str, count: int, tiles: Sequence[_Tile], fonts: Fonts) -> None:
        self._about, self._count, self._fonts = KINDS[kind], count, fonts
        needed = sum(tile.width + GAP for tile in tiles) - GAP
        columns = next((n for n in range(1, COLUMNS) if n * COLUMN + (n - 1) * GUTTER >= needed), COLUMNS)
        self.width = columns * COLUMN + (columns - 1) * GUTTER
        self._rows: list[list[_Tile]] = [[]]
        for tile in tiles:
            if self._rows[-1] and sum(each.width + GAP for each in self._rows[-1]) + tile.width > self.width:
                self._rows.append([])
            self._rows[-1].append(tile)
        said = [self._about.meaning, f"{self._about.severity.capitalize()}; nearkin does: {self._about.action}."]
        if count > len(tiles):
            said.append(f"{len(tiles):,} are shown here, {count - len(tiles):,} more are not.")
        self._lines = [line for sentence in said for line in folded(sentence, fonts.small, self.width - 4, 2)]

    def _head(self) -> int:
        return self.TITLE + LINE * len(self._lines) + PADDING

    def height(self) -> int:
        return self._head() + sum(max(tile.height for tile in row) + GAP for row in self._rows) + 20

    def draw(self, sheet: Any, pen: Any, left: int, top: int) -> None:
        colour = COLOURS[self._about.severity]
        pen.rectangle((left, top, left + self.width, top + 3), fill=colour)
        title = f"{self._about.title[:1].upper()}{self._about.title[1:]}"
        pen.text((left, top + 12), title, fill=INK, font=self._fonts.title)
        after = left + self._fonts.title.getlength(title) + 12
        pen.text((after, top + 12), f"{self._count:,}", fill=colour, font=self._fonts.title)
        for number, line in enumerate(self._lines):
            pen.text((left, top + self.TITLE + LINE * number), line, fill=FAINT, font=self._fonts.small)
        y = top + self._head()
        for row in self._rows:
            height = max(tile.height for tile in row)
            x = left
            for tile in row:
                tile.draw(sheet, pen, x, y, height, colour)
                x += tile.width + GAP
            y += height + GAP
