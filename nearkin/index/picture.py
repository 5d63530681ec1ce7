"""A strip: the query, then what was found, with class and similarity."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from nearkin import checkpoint
from nearkin.index.hits import Hit

SIDE, GAP, LINES = 192, 12, 40
COLUMNS = 6
# Told apart without red and green, and by a sign as well.
HIT, MISS, PLAIN = "#0072b2", "#d55e00", "#777777"


def strip(query: Any, hits: Sequence[Hit], thumbnails: Sequence[bytes], truth: str | None = None) -> bytes:
    """A PNG of a query (a Pillow image) and its hits; with ``truth``, its class, hits and misses are marked."""
    from PIL import Image, ImageDraw, ImageOps

    cells = [("query", truth or "", query, "#000000")]
    for hit, picture in zip(hits, thumbnails, strict=True):
        mark = "" if truth is None else ("✓ " if hit.label == truth else "✗ ")
        colour = PLAIN if truth is None else (HIT if hit.label == truth else MISS)
        cells.append((f"{mark}{hit.similarity:.3f}", hit.label, Image.open(io.BytesIO(picture)), colour))
    columns = min(COLUMNS, len(cells))
    rows = -(-len(cells) // columns)
    sheet = Image.new("RGB", (GAP + columns * (SIDE + GAP), GAP + rows * (SIDE + LINES + GAP)), "#ffffff")
    draw = ImageDraw.Draw(sheet)
    face = _face(13)
    for number, (first, second, picture, colour) in enumerate(cells):
        left = GAP + number % columns * (SIDE + GAP)
        top = GAP + number // columns * (SIDE + LINES + GAP)
        shown = ImageOps.contain(picture.convert("RGB"), (SIDE, SIDE))
        sheet.paste(shown, (left + (SIDE - shown.width) // 2, top + (SIDE - shown.height) // 2))
        draw.rectangle([left - 3, top - 3, left + SIDE + 2, top + SIDE + 2], outline=colour, width=3)
        draw.text((left, top + SIDE + 4), first, "#111111", font=face)
        draw.text((left, top + SIDE + 20), _cut(draw, second, face), "#444444", font=face)
    buffer = io.BytesIO()
    sheet.save(buffer, "PNG")
    return buffer.getvalue()


def save(path: str | Path, content: bytes) -> None:
    """Write a picture to a file."""
    checkpoint.check_file("picture", Path(path), ".png")
    checkpoint.replace(Path(path), content)


def _face(size: int) -> Any:
    """The letters of matplotlib, which know every sign, or Pillow's own."""
    from PIL import ImageFont

    try:
        from matplotlib import get_data_path

        return ImageFont.truetype(str(Path(get_data_path()) / "fonts" / "ttf" / "DejaVuSans.ttf"), size)
    except ImportError:
        return ImageFont.load_default(size)


def _cut(draw: Any, text: str, face: Any) -> str:
    """The text, or as much of it as fits under a picture."""
    shown = text
    while shown and draw.textlength(shown, font=face) > SIDE:
        shown = shown[:-2].rstrip(".") + "…" if len(shown) > 2 else ""
    return shown
