"""Images from strangers: what is no image is refused in words, and nothing takes the server down."""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from nearkin.data.decode import BadImage, read_image
from nearkin.serve.upload import MOST_BYTES, Uploads
from tests.serve.conftest import png


@pytest.fixture(scope="module")
def uploads() -> Iterator[Uploads]:
    found = Uploads()
    yield found
    found.close()


def chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


def bomb(width: int, height: int) -> bytes:
    """A small PNG of very many pixels."""
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    packed = zlib.compress(bytes(10_000_000), 9)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", packed) + chunk(b"IEND", b"")


def eps() -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", (8, 8)).save(buffer, "EPS")
    return buffer.getvalue()


WHOLE = png(np.random.default_rng(0).integers(0, 256, (60, 90, 3), np.uint8))
HOSTILE = {
    "text": (b"hello", "not an image of a kind that is known"),
    "svg": (b'<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>', "not an image of a kind"),
    "html": (b"<!doctype html><script>alert(1)</script>", "not an image of a kind"),
    "truncated": (WHOLE[: len(WHOLE) // 2], "it is cut short"),
    "bomb": (bomb(60_000, 60_000), "too many pixels"),
    "just too many": (bomb(8_001, 5_000), "8001 x 5000 pixels, more than 40,000,000"),
    "postscript": (eps(), "not an image of a kind"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_what_is_no_image_is_refused_in_words(client: Any, name: str) -> None:
    content, reason = HOSTILE[name]
    answer = client.post("/api/query", content=content)
    assert answer.status_code == 422
    said = answer.json()["error"]
    assert said.startswith("This file cannot be searched for: ") and reason in said and said.endswith(".")
    assert client.post("/api/query", content=WHOLE).status_code == 200  # and the next one is served


def test_too_many_bytes(client: Any) -> None:
    answer = client.post("/api/query", content=bytes(21_000_000))
    assert answer.status_code == 413
    assert answer.json()["error"] == "The image must have at most 20 MB; send a smaller one."


def test_too_many_bytes_without_a_length(client: Any) -> None:
    answer = client.post("/api/query", content=(bytes(1_000_000) for _ in range(21)))
    assert answer.status_code == 413


def test_nothing_sent(client: Any) -> None:
    answer = client.post("/api/query", content=b"")
    assert answer.status_code == 422 and "got nothing" in answer.json()["error"]


def test_pixels_are_those_of_the_reader(uploads: Uploads) -> None:
    assert (uploads.read(WHOLE, 0) == read_image(WHOLE)).all()
    assert (uploads.read(WHOLE, 30) == read_image(WHOLE, side=30)).all()


def test_bytes_are_counted_before_decoding(uploads: Uploads) -> None:
    with pytest.raises(BadImage, match="more than 20,000,000"):
        uploads.read(bytes(MOST_BYTES + 1), 0)


def test_a_process_that_dies_or_hangs_is_replaced() -> None:
    found = Uploads()
    try:
        found.read(WHOLE, 30)
        assert found._process is not None
        found._process.kill()
        found._process.wait()
        assert found.read(WHOLE, 30).shape == (30, 45, 3)
        found.patience = 0.01
        slow = png(np.zeros((6000, 6000), np.uint8))
        with pytest.raises(BadImage, match="too much time or memory"):
            found.read(slow, 0)
        found.patience = 15
        assert found.read(WHOLE, 30).shape == (30, 45, 3)
    finally:
        found.close()


def test_the_process_is_confined(uploads: Uploads) -> None:
    uploads.read(WHOLE, 30)
    assert uploads._process is not None
    limits = Path(f"/proc/{uploads._process.pid}/limits")
    if not limits.exists():
        pytest.skip("needs /proc")
    lines = {line[:25].strip(): line[25:].split()[0] for line in limits.read_text().splitlines()}
    assert lines["Max address space"] == str(1536 << 20)
    assert lines["Max file size"] == "0"
    assert int(lines["Max cpu time"]) < 60
