"""Every kind of file becomes the right pixels, and a bad one says why."""

from __future__ import annotations

import io
import os
import struct
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, JpegImagePlugin

from nearkin.data.decode import BadImage, read_image, shrink

RAMP = np.arange(6 * 5 * 3, dtype=np.uint8).reshape(6, 5, 3) * 2


def encoded(image: Image.Image, kind: str, **options: Any) -> bytes:
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def smooth(height: int, width: int) -> np.ndarray:
    """A picture without edges, which JPEG keeps well."""
    y, x = np.mgrid[:height, :width] / (height + width)
    return np.rint(np.stack([255 * x, 255 * y, 127 + 120 * np.sin(9 * x + 7 * y)], 2)).astype(np.uint8)


# What the stored rows and columns become upright, from the words of the EXIF standard: orientation 6 says "row 0 is the
# right-hand side, column 0 the top".
UPRIGHT = {
    1: lambda a: a,
    2: lambda a: a[:, ::-1],
    3: lambda a: a[::-1, ::-1],
    4: lambda a: a[::-1],
    5: lambda a: a.swapaxes(0, 1),
    6: lambda a: np.rot90(a, -1),
    7: lambda a: a[::-1, ::-1].swapaxes(0, 1),
    8: lambda a: np.rot90(a, 1),
}


@pytest.mark.parametrize("orientation", UPRIGHT)
@pytest.mark.parametrize("kind", ["PNG", "WEBP", "TIFF"])
def test_the_camera_orientation_is_applied_once(kind: str, orientation: int) -> None:
    exif = Image.Exif()
    exif[0x0112] = orientation
    options = {"lossless": True} if kind == "WEBP" else {}
    source = encoded(Image.fromarray(RAMP), kind, exif=exif, **options)
    assert np.array_equal(read_image(source), UPRIGHT[orientation](RAMP))


def test_the_orientation_of_a_jpeg_is_applied_to_a_shrunk_image_too() -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    picture = smooth(300, 200)
    found = read_image(encoded(Image.fromarray(picture), "JPEG", quality=98, exif=exif), side=50)
    assert found.shape == (50, 75, 3)
    expected = np.asarray(Image.fromarray(np.rot90(picture, -1)).resize((75, 50), Image.Resampling.BILINEAR))
    assert np.abs(found.astype(int) - expected).max() <= 4


@pytest.mark.parametrize("orientation", [0, 9, 65535])
def test_an_impossible_orientation_is_passed_over(orientation: int) -> None:
    exif = Image.Exif()
    exif[0x0112] = orientation
    assert np.array_equal(read_image(encoded(Image.fromarray(RAMP), "PNG", exif=exif)), RAMP)


def test_a_damaged_exif_block_does_not_cost_the_image() -> None:
    source = encoded(Image.fromarray(smooth(20, 20)), "JPEG", exif=b"Exif\0\0II*\0\xff\xff\xff\x7f\xff\xff")
    assert read_image(source).shape == (20, 20, 3)


@pytest.mark.parametrize("kind", ["PNG", "TIFF"])
def test_16_bits_are_scaled_not_clipped(kind: str) -> None:
    values = np.array([[0, 1, 128, 129, 257], [1000, 32768, 40000, 65407, 65535]], np.uint16)
    found = read_image(encoded(Image.fromarray(values), kind))
    expected = np.rint(values / 257).astype(np.uint8)
    assert np.array_equal(found, np.repeat(expected[:, :, None], 3, 2))


def tiff(rows: bytes, width: int, height: int, bits: int, photometric: int) -> bytes:
    """An uncompressed TIFF file of one strip, by the book."""
    tags = {256: width, 257: height, 258: bits, 259: 1, 262: photometric, 273: 200, 277: 1, 278: height, 279: len(rows)}
    entries = b"".join(struct.pack("<HHII", tag, 4 if tag == 273 else 3, 1, value) for tag, value in tags.items())
    return (b"II*\0" + struct.pack("<IH", 8, len(tags)) + entries + b"\0\0\0\0").ljust(200, b"\0") + rows


def test_12_bits_are_scaled_from_their_own_range() -> None:
    # Two values of 12 bits in three bytes: 0x000 and 0xFFF, 0x800 and 0x00F.
    found = read_image(tiff(bytes([0x00, 0x0F, 0xFF, 0x80, 0x00, 0x0F]), 2, 2, 12, 1))
    assert found[:, :, 0].tolist() == [[0, 255], [128, 1]]


def test_16_bits_whose_zero_is_white() -> None:
    rows = np.array([[0, 65535], [257, 65278]], "<u2").tobytes()
    assert read_image(tiff(rows, 2, 2, 16, 1))[:, :, 0].tolist() == [[0, 255], [1, 254]]
    assert read_image(tiff(rows, 2, 2, 16, 0))[:, :, 0].tolist() == [[255, 0], [254, 1]]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([0, 257, 65535], [0, 1, 255]),  # 16 bits in 32
        ([0, 50_000, 100_000], [0, 128, 255]),  # stretched
        ([-100, 0, 100], [0, 128, 255]),
        ([7, 7, 7], [0, 0, 0]),
        ([2**31 - 1, 0, -(2**31)], [255, 128, 0]),
    ],
)
def test_whole_numbers_of_32_bits(values: list[int], expected: list[int]) -> None:
    found = read_image(encoded(Image.fromarray(np.array([values], np.int32)), "TIFF"))
    assert found[0, :, 1].tolist() == expected


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([0.0, 0.5, 1.0], [0, 128, 255]),
        ([0.0, 0.25, 0.25], [0, 64, 64]),  # fractions of white, not stretched
        ([0.0, 100.4, 255.0], [0, 100, 255]),
        ([-1.0, 0.0, 1.0], [0, 128, 255]),
        ([0.0, 500.0, 1000.0], [0, 128, 255]),
        ([1e9, 1e9, 1e9], [0, 0, 0]),
    ],
)
def test_floating_point(values: list[float], expected: list[int]) -> None:
    found = read_image(encoded(Image.fromarray(np.array([values], np.float32)), "TIFF"))
    assert found[0, :, 2].tolist() == expected


def test_floating_point_that_is_not_finite_is_refused() -> None:
    source = encoded(Image.fromarray(np.array([[0, np.nan]], np.float32)), "TIFF")
    with pytest.raises(BadImage, match="^scan.tif: it holds values that are not finite$"):
        read_image(source, name="scan.tif")


def test_transparent_pixels_show_white() -> None:
    colours = np.array([[[200, 100, 0, 255], [200, 100, 0, 0], [200, 100, 0, 51]]], np.uint8)
    expected = [[200, 100, 0], [255, 255, 255], [244, 224, 204]]  # 0.2 of the colour, 0.8 of white
    for kind, options in (("PNG", {}), ("WEBP", {"lossless": True, "exact": True}), ("TIFF", {})):
        assert read_image(encoded(Image.fromarray(colours), kind, **options))[0].tolist() == expected
    grey = Image.fromarray(np.array([[[90, 255], [90, 0]]], np.uint8), "LA")
    assert read_image(encoded(grey, "PNG"))[0].tolist() == [[90] * 3, [255] * 3]


@pytest.mark.parametrize("transparency", [1, b"\xff\x00\xff"])
def test_palettes(transparency: int | bytes) -> None:
    image = Image.new("P", (3, 1))
    image.putpalette([10, 20, 30, 40, 50, 60, 70, 80, 90])
    image.putdata([0, 1, 2])
    assert read_image(encoded(image, "PNG"))[0].tolist() == [[10, 20, 30], [40, 50, 60], [70, 80, 90]]
    assert read_image(encoded(image, "PNG", transparency=transparency))[0].tolist() == [
        [10, 20, 30], [255, 255, 255], [70, 80, 90],
    ]  # fmt: skip


def test_one_transparent_colour() -> None:
    colours = Image.fromarray(np.array([[[9, 9, 9], [1, 2, 3]]], np.uint8))
    assert read_image(encoded(colours, "PNG", transparency=(1, 2, 3)))[0].tolist() == [[9] * 3, [255] * 3]
    grey = Image.fromarray(np.array([[9, 7]], np.uint8))
    assert read_image(encoded(grey, "PNG", transparency=7))[0].tolist() == [[9] * 3, [255] * 3]


def test_black_and_white_and_grey() -> None:
    values = np.array([[0, 255, 255, 0]], np.uint8)
    for image in (Image.fromarray(values).convert("1"), Image.fromarray(values)):
        for kind in ("PNG", "TIFF", "GIF"):
            assert np.array_equal(read_image(encoded(image, kind)), np.repeat(values[:, :, None], 3, 2))


def test_cmyk_jpeg() -> None:
    inks = np.zeros((16, 16, 4), np.uint8)
    inks[:8] = 0, 128, 255, 0
    inks[8:] = 0, 0, 0, 100
    found = read_image(encoded(Image.fromarray(inks, "CMYK"), "JPEG", quality=100, subsampling=0)).astype(int)
    paper = 255 - inks.astype(int)
    expected = paper[:, :, :3] * paper[:, :, 3:] / 255
    assert np.abs(found - expected).max() <= 4
    assert found[0, 0, 0] > 250 and found[0, 0, 2] < 5  # ink is not light: an inverted file would show it


def test_lab() -> None:
    lab = np.array([[[0, 0, 0], [255, 0, 0], [128, 0, 0], [138, 80, 67]]], np.uint8)  # a and b are signed in the file
    found = read_image(encoded(Image.frombytes("LAB", (4, 1), lab.tobytes()), "TIFF"))
    assert found[0, 0].max() <= 2 and found[0, 1].min() >= 253
    assert found[0, 2].tolist() == pytest.approx([119, 119, 119], abs=2)  # L* = 50
    assert found[0, 3].tolist() == pytest.approx([255, 0, 0], abs=25)  # sRGB red is L* 54, a* 81, b* 70


def test_ycbcr() -> None:
    found = read_image(encoded(Image.fromarray(smooth(16, 16)).convert("YCbCr"), "TIFF"))
    assert np.abs(found.astype(int) - smooth(16, 16)).max() <= 4


@pytest.mark.parametrize("kind", ["GIF", "WEBP", "PNG", "TIFF"])
def test_of_an_animation_the_first_frame_is_taken(kind: str) -> None:
    frames = [Image.new("RGB", (4, 4), colour) for colour in ("red", "lime", "blue")]
    options = {"lossless": True} if kind == "WEBP" else {}
    source = encoded(frames[0], kind, save_all=True, append_images=frames[1:], **options)
    assert (read_image(source) == [255, 0, 0]).all()


def test_shrinking_keeps_the_aspect_and_rounds_the_longer_side_down() -> None:
    picture = Image.fromarray(smooth(70, 101))
    found = read_image(encoded(picture, "PNG"), side=30)
    assert found.shape == (30, 43, 3)  # 43.28
    assert np.array_equal(found, np.asarray(picture.resize((43, 30), Image.Resampling.BILINEAR)))
    assert read_image(encoded(picture.transpose(Image.Transpose.ROTATE_90), "PNG"), side=30).shape == (43, 30, 3)


def test_small_images_are_not_enlarged() -> None:
    assert np.array_equal(read_image(encoded(Image.fromarray(RAMP), "PNG"), side=256), RAMP)
    assert read_image(encoded(Image.new("RGB", (900, 3)), "PNG"), side=3).shape == (3, 900, 3)


def test_a_large_jpeg_is_decoded_small_and_looks_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    picture = smooth(900, 1200)
    source = encoded(Image.fromarray(picture), "JPEG", quality=95)
    drafted = []
    plain = JpegImagePlugin.JpegImageFile.draft

    def spy(self: Any, *arguments: Any) -> Any:
        found = plain(self, *arguments)
        drafted.append(self.size)
        return found

    monkeypatch.setattr(JpegImagePlugin.JpegImageFile, "draft", spy)
    found = read_image(source, side=100)
    assert drafted == [(300, 225)]  # a quarter: an eighth would be below twice the side
    expected = np.asarray(Image.open(io.BytesIO(source)).resize((133, 100), Image.Resampling.BILINEAR))
    assert found.shape == expected.shape
    assert np.abs(found.astype(int) - expected).max() <= 3


def test_arrays_are_shrunk_by_the_same_rule() -> None:
    picture = smooth(70, 101)
    assert np.array_equal(shrink(picture, 30), read_image(encoded(Image.fromarray(picture), "PNG"), side=30))
    assert shrink(picture[:, :, 0], 35).shape == (35, 50)
    assert shrink(picture, None) is picture and shrink(picture, 70) is picture


def test_paths_and_names(tmp_path: Path) -> None:
    path = tmp_path / "a b.png"
    Image.fromarray(RAMP).save(path)
    assert np.array_equal(read_image(path), RAMP) and np.array_equal(read_image(str(path)), RAMP)
    with pytest.raises(BadImage) as caught:
        read_image(tmp_path / "none.png")
    assert caught.value.name == str(tmp_path / "none.png") and caught.value.reason == "there is no such file"
    assert str(caught.value) == f"{tmp_path}/none.png: there is no such file"
    assert isinstance(caught.value, ValueError)


def test_what_is_no_file_of_an_image(tmp_path: Path) -> None:
    (tmp_path / "empty.png").touch()
    (tmp_path / "note.png").write_text("a note")
    os.mkfifo(tmp_path / "pipe.png")
    (tmp_path / "loop.png").symlink_to("loop.png")
    for name, reason in {
        "": "it is a folder",
        "empty.png": "the file is empty",
        "note.png": "it is not an image of a kind that is known",
        "pipe.png": "it is not a file",
    }.items():
        with pytest.raises(BadImage) as caught:
            read_image(tmp_path / name)
        assert caught.value.reason == reason
    with pytest.raises(BadImage):
        read_image(tmp_path / "loop.png")
    with pytest.raises(BadImage, match="^an image in memory: it is empty$"):
        read_image(b"")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="the administrator may read everything")
def test_a_file_that_may_not_be_read(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(encoded(Image.fromarray(RAMP), "PNG"))
    (tmp_path / "a.png").chmod(0)
    with pytest.raises(BadImage, match="it may not be read"):
        read_image(tmp_path / "a.png")


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "GIF", "TIFF", "BMP", "PPM"])
def test_a_file_cut_short(kind: str) -> None:
    noise = np.random.default_rng(0).integers(0, 256, (64, 64, 3), dtype=np.uint8)
    source = encoded(Image.fromarray(noise), kind)
    read_image(source, name="whole")
    with pytest.raises(BadImage, match="^half: it is (cut short|damaged|not an image)"):
        read_image(source[: len(source) // 2], name="half")


def test_an_image_cut_short_is_called_so() -> None:
    source = encoded(Image.fromarray(smooth(64, 64)), "JPEG")
    with pytest.raises(BadImage, match="^half.jpg: it is cut short$"):
        read_image(source[: len(source) // 2], name="half.jpg")


def test_too_many_pixels() -> None:
    source = encoded(Image.fromarray(RAMP), "PNG")
    with pytest.raises(BadImage, match="^a.png: it has 5 x 6 pixels, more than 29$"):
        read_image(source, name="a.png", most_pixels=29)
    assert read_image(source, most_pixels=30).shape == (6, 5, 3)
    # A few bytes that claim to be 3.6 thousand million pixels.
    bomb = source.replace(struct.pack(">II", 5, 6), struct.pack(">II", 60_000, 60_000))
    with pytest.raises(BadImage, match="^bomb: it (has too many pixels|is not an image|is damaged)"):
        read_image(bomb, name="bomb")


def test_no_warning_leaks_and_the_filters_stay() -> None:
    large = encoded(Image.new("1", (10_000, 9_000)), "PNG")  # above the number at which Pillow warns
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        before = list(warnings.filters)
        assert read_image(large, side=8).shape == (8, 8, 3)
        assert warnings.filters == before
    assert not seen


SAMPLES = [
    encoded(Image.fromarray(smooth(24, 20)), kind, **options)
    for kind, options in (("JPEG", {}), ("PNG", {}), ("WEBP", {}), ("GIF", {}), ("TIFF", {"compression": "tiff_lzw"}))
]


@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from(SAMPLES), st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 255)), min_size=1, max_size=8)
)
def test_damage_gives_pixels_or_a_reason_never_another_error(source: bytes, changes: list[tuple[int, int]]) -> None:
    content = bytearray(source)
    for place, value in changes:
        content[place % len(content)] = value
    try:
        found = read_image(bytes(content), side=16)
    except BadImage as bad:
        assert bad.reason and "\n" not in bad.reason
    else:
        assert found.dtype == np.uint8 and found.ndim == 3 and found.shape[2] == 3 and found.size
