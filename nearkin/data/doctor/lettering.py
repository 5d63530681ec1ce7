"""Text on a picture: faces, and words cut or folded to the room there is."""

from __future__ import annotations

from pathlib import Path
from typing import Any


class Fonts:
    """Faces by size: those that ship with matplotlib, which know many scripts, else Pillow's own."""

    def __init__(self) -> None:
        from PIL import ImageFont

        made: list[Any]
        try:
            import matplotlib

            folder = Path(matplotlib.get_data_path()) / "fonts" / "ttf"
            names = [str(folder / "DejaVuSans.ttf"), str(folder / "DejaVuSans-Bold.ttf")]
            made = [
                ImageFont.truetype(names[bold], size) for size, bold in ((13, 0), (13, 1), (15, 0), (20, 1), (26, 1))
            ]
        except (ImportError, OSError):
            made = [ImageFont.load_default(size) for size in (13, 13, 15, 20, 26)]
        self.small: Any
        self.strong: Any
        self.text: Any
        self.title: Any
        self.top: Any
        self.small, self.strong, self.text, self.title, self.top = made


def shortened(text: str, font: Any, width: float, middle: bool = False) -> str:
    """The text, cut so that it is at most ``width`` pixels wide; in the middle for names, whose ends both matter."""
    text = " ".join(text.split())
    if font.getlength(text) <= width:
        return text
    low, high = 0, len(text)
    while low < high:  # the longest that fits
        kept = (low + high + 1) // 2
        low, high = (kept, high) if font.getlength(_cut(text, kept, middle)) <= width else (low, kept - 1)
    return _cut(text, low, middle)


def _cut(text: str, kept: int, middle: bool) -> str:
    if not middle:
        return text[:kept] + "…"
    tail = kept // 2
    return text[: kept - tail] + "…" + text[len(text) - tail :]


def folded(text: str, font: Any, width: float, lines: int) -> list[str]:
    """The text in at most ``lines`` lines of ``width`` pixels, the last one cut if need be."""
    words, done = text.split(), list[str]()
    while words and len(done) < lines - 1:
        line = words.pop(0)
        while words and font.getlength(f"{line} {words[0]}") <= width:
            line += " " + words.pop(0)
        done.append(shortened(line, font, width))
    if words:
        done.append(shortened(" ".join(words), font, width))
    return done
