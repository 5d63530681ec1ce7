"""The kinds of findings, in the order they are shown: how bad each is, and what nearkin does about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Severity = Literal["serious", "warning", "note"]

TINY_SIDE = 32
"""A shorter side below this many pixels is tiny: networks see less in it than a person does."""

HUGE_PIXELS = 50_000_000
HUGE_SIDE = 8_000
"""More pixels, or a longer side, than these are huge: reading the picture takes seconds and much memory."""

EXTREME_ASPECT = 4.0
"""A longer side more than this many times the shorter: a square crop shows only a part."""

BLANK_LEVELS = 8
"""Where every channel stays within this many of its 256 levels, the picture is of a single colour."""

FEW_IMAGES = 5
"""Classes with fewer images than this make poor batches and noisy measures."""


@dataclass(frozen=True)
class Kind:
    """What a finding is called, how bad it is, what nearkin does about it, and what it means."""

    title: str
    severity: Severity
    action: str
    meaning: str


KINDS: dict[str, Kind] = {
    "unreadable": Kind("unreadable", "serious", "left out", "The file is no picture, or its data is broken."),
    "truncated": Kind("truncated", "serious", "left out", "The file ends before the picture does."),
    "leak": Kind("train-test leak", "serious", "nothing", "A test image is a copy, or nearly, of a training image."),
    "conflict": Kind(
        "label conflict", "serious", "nothing", "The same picture, or nearly, stands under two class names."
    ),
    "mislabelled": Kind(
        "looks mislabelled", "warning", "nothing", "The picture resembles another class far more than its own."
    ),
    "duplicate": Kind("duplicate", "warning", "nothing", "The same file is in a class more than once."),
    "near-duplicate": Kind(
        "near duplicate", "warning", "nothing", "A class holds a picture again: resized, mirrored or stored anew."
    ),
    "one-image": Kind(
        "class with one image",
        "warning",
        "left out of retrieval measures",
        "No other image of the class is there to be found.",
    ),
    "alike-names": Kind(
        "class names alike", "warning", "kept apart", "Class names differ only in case, spaces or punctuation."
    ),
    "blank": Kind("single colour", "warning", "nothing", "There is nothing to see in the picture."),
    "tiny": Kind("tiny", "warning", "enlarged", f"The shorter side is below {TINY_SIDE} pixels."),
    "aspect": Kind(
        "extreme aspect", "warning", "cropped", f"One side is more than {EXTREME_ASPECT:g} times the other."
    ),
    "huge": Kind(
        "huge",
        "warning",
        "shrunk",
        f"More than {HUGE_PIXELS // 10**6} megapixels, or a side above {HUGE_SIDE:,} pixels: slow to read.",
    ),
    "few-images": Kind("few images", "note", "nothing", f"The class has fewer than {FEW_IMAGES} images."),
    "cmyk": Kind("CMYK", "note", "converted to RGB", "The colours are those of print."),
    "16-bit": Kind("16-bit", "note", "converted to 8 bits", "Each channel has more than 8 bits."),
    "rotated": Kind("EXIF-rotated", "note", "turned upright", "The camera was held another way up, and says so."),
    "animated": Kind("animated", "note", "first frame is used", "The file holds several frames or pages."),
    "alpha": Kind("transparent", "note", "laid on white", "The picture has an alpha channel."),
    "palette": Kind("palette", "note", "converted to RGB", "The picture stores colours by number."),
    "wrong-extension": Kind(
        "wrong extension", "note", "read by content", "The file's name ends as another format than it holds."
    ),
}
"""By key, worst first."""
