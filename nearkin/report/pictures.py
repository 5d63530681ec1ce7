"""The images of a run's test set, small, inside the page."""

from __future__ import annotations

import base64
import io
from dataclasses import dataclass
from typing import Any

import numpy as np

from nearkin.data.pack import Pack
from nearkin.report.bench import Bench
from nearkin.report.markup import words
from nearkin.results import ELSEWHERE, Result

SIDE = 128
QUALITY = 82


@dataclass(frozen=True)
class Pictures:
    """The test images of a run; ``pack`` is None where they cannot be had, and ``why`` says so."""

    pack: Pack | None
    why: str = ""

    def image(self, row: int, words_of: str) -> str:
        """An image of the test set as HTML, with what it shows in words."""
        assert self.pack is not None
        content, kind, small = thumbnail(self.pack.image(row))
        coded = base64.b64encode(content).decode()
        extra = ' class="pixels"' if small else ""
        return f'<img{extra} alt="{words(words_of)}" src="data:image/{kind};base64,{coded}">'


def thumbnail(pixels: Any) -> tuple[bytes, str, bool]:
    """An image made to fit a square of 128 pixels, its format, and whether it is so small that it was left as it is."""
    from PIL import Image

    found = Image.fromarray(np.ascontiguousarray(pixels))
    buffer = io.BytesIO()
    if max(found.size) <= SIDE // 2:
        grey = found.convert("L")
        same = np.array_equal(np.asarray(grey.convert("RGB")), np.asarray(found))
        (grey if same else found).save(buffer, "PNG", optimize=True)
        return buffer.getvalue(), "png", True
    found.thumbnail((SIDE, SIDE), Image.Resampling.LANCZOS)
    found.save(buffer, "JPEG", quality=QUALITY, optimize=True)
    return buffer.getvalue(), "jpeg", False


def test_images(bench: Bench, run: Result) -> Pictures:
    """The test images of a run, if its data set can be read and is the one that was measured."""
    from nearkin.train import prepare
    from nearkin.train.folder import RunFolder
    from nearkin.train.screen import Silent

    if run.id.startswith(ELSEWHERE):
        return Pictures(None, f"{run.label} was trained elsewhere, from images that nearkin has not seen")
    try:
        settings = RunFolder(bench.path(run)).settings()
        found = prepare.test_pack(settings, Silent())
    except (ValueError, TypeError, OSError, ImportError) as error:
        return Pictures(None, str(error).strip().rstrip("."))
    answers = bench.answers(run)
    if answers and not _fits(found, answers):
        return Pictures(None, f"the test images of {run.data} are not those that were measured")
    return Pictures(found)


test_images.__test__ = False  # type: ignore[attr-defined]  # a name that begins with test is no test


def _fits(pack: Pack, answers: dict[str, Any]) -> bool:
    rows = answers["rows"]
    inside = len(rows) and rows.max() < len(pack) and answers["nearest"].max(initial=-1) < len(pack)
    return bool(inside) and np.array_equal(np.asarray(pack.labels)[rows], answers["labels"])
