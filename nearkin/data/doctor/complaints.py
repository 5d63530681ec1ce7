"""Findings about single images, from the facts of their files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from nearkin.data.doctor.facts import UPRIGHT
from nearkin.data.doctor.findings import Finding
from nearkin.data.doctor.kinds import EXTREME_ASPECT, HUGE_PIXELS, HUGE_SIDE, TINY_SIDE
from nearkin.data.doctor.picture import Facts
from nearkin.data.doctor.rows import Rows


def file_findings(rows: Rows, facts: Sequence[Facts]) -> Iterator[Finding]:
    """What is wrong with each image by itself."""
    for place, fact in zip(rows.places, facts, strict=True):
        for kind, detail in complaints(fact):
            yield Finding(kind, place, detail)


def complaints(fact: Facts) -> Iterator[tuple[str, str]]:
    """Kinds and details of what is wrong with one image."""
    if fact.failure is not None:
        yield fact.failure
    header = fact.header
    width, height = fact.width, fact.height
    if header is not None and fact.failure is not None:
        width, height = header.width, header.height
    size = f"{width:,} x {height:,} pixels"
    shorter, longer = sorted((width, height))
    if fact.failure is None:
        if fact.blank:
            yield "blank", size
        if shorter < TINY_SIDE:
            yield "tiny", size
        if longer > EXTREME_ASPECT * shorter:
            yield "aspect", size
    if longer > HUGE_SIDE or width * height > HUGE_PIXELS:
        yield "huge", f"{size}, {width * height / 1e6:,.1f} megapixels"
    if header is None or fact.failure is not None:
        return
    if header.mode == "CMYK":
        yield "cmyk", header.format
    if header.bits > 8:
        yield "16-bit", f"{header.bits} bits a channel, {header.format}"
    if header.orientation in UPRIGHT:
        yield "rotated", UPRIGHT[header.orientation]
    if header.frames > 1:
        yield "animated", f"{header.frames} {'pages' if header.format == 'TIFF' else 'frames'}, {header.format}"
    if header.alpha:
        yield "alpha", f"{header.mode}, {header.format}"
    elif header.palette and header.format != "GIF":  # a GIF has always one
        yield "palette", header.format
    if header.extension:
        yield "wrong-extension", f"holds {header.format}, the name says {header.extension}"
