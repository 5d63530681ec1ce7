"""The embedded data set: the same bits every time, classes apart, nothing blank, errors that help."""

from __future__ import annotations

import hashlib
import sys
import unicodedata
from importlib.metadata import version

import numpy as np
import pytest

from nearkin.data import ImageTable, Splits, glyphs
from nearkin.data.glyphs import ALIKE, CHARACTERS, _Fonts, distinct_characters, likeness


def by_character(splits: Splits, images: int) -> dict[str, np.ndarray]:
    """Every class's images under its character, from both halves."""
    found = {}
    for part in (splits.train, splits.test):
        for label, name in enumerate(part.class_names):
            found[name] = part.images[part.labels == label]
            assert len(found[name]) == images
    return found


@pytest.fixture(scope="module")
def small() -> Splits:
    return glyphs(classes=60, images=6, seed=3)


def test_shapes_types_and_labels(small: Splits) -> None:
    for part in (small.train, small.test):
        assert isinstance(part, ImageTable)
        assert part.images.shape == (180, 32, 32) and part.images.dtype == np.uint8
        assert part.labels.dtype == np.int64 and len(part) == 180
        assert part.labels.tolist() == [label for label in range(30) for _ in range(6)]
        assert len(part.class_names) == 30


def test_same_seed_gives_the_same_bits(small: Splits) -> None:
    again = glyphs(classes=60, images=6, seed=3)
    for part, same in ((small.train, again.train), (small.test, again.test)):
        assert np.array_equal(part.images, same.images)
        assert np.array_equal(part.labels, same.labels)
        assert part.class_names == same.class_names


def test_the_bits_are_those_of_every_machine() -> None:
    """Checked against a recorded sum where the libraries are those it was recorded with."""
    recorded = {"numpy": "2.4.6", "pillow": "13.0.0", "matplotlib": "3.11.2"}
    if any(version(name) != wanted for name, wanted in recorded.items()):
        pytest.skip(f"recorded with {recorded}")
    splits = glyphs(classes=40, images=4)
    drawn = hashlib.sha256(splits.train.images.tobytes() + splits.test.images.tobytes())
    assert drawn.hexdigest() == "802215203023d039f3cdd4dfcfd0bd0ab9f04ce6cad918badf4c2e1bb2f85031"


def test_another_seed_gives_other_classes_and_other_images(small: Splits) -> None:
    other = glyphs(classes=60, images=6, seed=4)
    assert other.train.class_names != small.train.class_names
    here, there = by_character(small, 6), by_character(other, 6)
    common = here.keys() & there.keys()
    assert common
    assert not any(np.array_equal(here[name][0], there[name][0]) for name in common)


def test_an_image_depends_on_seed_character_and_number_only(small: Splits) -> None:
    few = by_character(glyphs(classes=8, images=3, seed=3), 3)
    many = by_character(small, 6)
    for name, images in few.items():
        assert np.array_equal(images, many[name][:3])


def test_no_class_is_in_both_halves(small: Splits) -> None:
    names = small.train.class_names + small.test.class_names
    assert len(set(names)) == len(names)


def test_both_halves_mix_scripts() -> None:
    splits = glyphs(classes=80, images=2)
    for part in (splits.train, splits.test):
        scripts = {unicodedata.name(name).split()[0] for name in part.class_names}
        assert {"LATIN", "CYRILLIC"} <= scripts and len(scripts) > 5


@pytest.mark.parametrize("size", [12, 17, 32, 48])
def test_no_image_is_blank(size: int) -> None:
    """Every picture varies by more than rounding, at every size."""
    splits = glyphs(classes=20, images=8, size=size)
    pixels = splits.train.images.astype(np.float64)
    assert pixels.shape[1:] == (size, size)
    assert pixels.std((1, 2)).min() > 4


def test_every_class_has_ink_in_every_face() -> None:
    """A face that lacks the character would draw the missing-glyph box or nothing."""
    fonts = _Fonts()
    for character in CHARACTERS:
        faces = fonts.faces(character)
        assert len(faces) >= 2
        for face in faces:
            assert np.asarray(fonts.outline(character, face)).max() > 200


def test_missing_characters_are_not_claimed() -> None:
    assert _Fonts().faces("中") == ()
    assert not any(face.startswith("cm") for face in _Fonts().faces("¡"))


def test_no_two_classes_look_the_same() -> None:
    alike = likeness(CHARACTERS)
    np.fill_diagonal(alike, -1)
    assert len(CHARACTERS) >= 400
    assert alike.max() < ALIKE
    # And the measure does see what the eye sees.
    pairs = likeness("AΑАoО0vV∨AB")
    assert pairs[0, 1] > 0.99 and pairs[0, 2] > 0.99 and pairs[3, 4] > ALIKE and pairs[3, 5] > ALIKE
    assert pairs[6, 7] > ALIKE and pairs[6, 8] > ALIKE and pairs[9, 10] < 0.6


def test_the_list_of_characters_is_what_the_rule_chooses() -> None:
    assert distinct_characters() == CHARACTERS


def test_progress_is_told_after_each_class() -> None:
    told: list[tuple[int, int]] = []
    glyphs(classes=4, images=2, progress=lambda done, total: told.append((done, total)))
    assert told == [(1, 4), (2, 4), (3, 4), (4, 4)]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"classes": 2}, r"classes must be an even number from 4 to \d+, .* but is 2: pass 4\."),
        ({"classes": 7}, r"classes must be an even number .* but is 7: pass 8\."),
        ({"classes": 9_999}, r"classes must be an even number from 4 to (\d+), .* but is 9999: pass \1\."),
        ({"images": 1}, r"images must be at least 2 per class, .* but is 1: pass 32\."),
        ({"size": 11}, r"size must be at least 12 pixels .* but is 11: pass 32\."),
        ({"seed": -1}, r"seed must be a whole number from 0 up, but is -1: pass 1\."),
    ],
)
def test_bad_arguments_are_refused_in_one_sentence(arguments: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}$"):
        glyphs(**arguments)


def test_a_missing_library_names_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"matplotlib, which is not installed: run pip install 'nearkin\[demo\]'"):
        glyphs(classes=4, images=2)
