"""Samplers by name, and what a misspelt name or setting gets; the import stays light."""

from __future__ import annotations

import subprocess
import sys

import pytest

from nearkin import samplers


def test_create_gives_the_class_of_the_name() -> None:
    labels = [0, 0, 0, 1, 1, 1]
    sampler = samplers.create("pk", labels, classes=2, images=2)
    assert type(sampler) is samplers.PK
    assert list(sampler) == list(samplers.PK(labels, 2, 2))


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("pkk", "pk"),
        ("npair", "n_pair"),
        ("hardclass", "hard_class"),
        ("Smart", "smart"),
        ("randon", "random"),
    ],
)
def test_misspelt_name(name: str, nearest: str) -> None:
    with pytest.raises(ValueError) as caught:
        samplers.create(name, [0, 1])
    assert str(caught.value) == f"sampler {name!r} is not known; did you mean {nearest!r}?"


@pytest.mark.parametrize(
    ("name", "setting", "nearest"),
    [("pk", "clases", "classes"), ("hard_class", "pol", "pool"), ("smart", "negative", "negatives")],
)
def test_misspelt_setting(name: str, setting: str, nearest: str) -> None:
    with pytest.raises(TypeError) as caught:
        samplers.create(name, [0, 1], **{setting: 2})
    assert str(caught.value) == f"{name}: setting {setting!r} is not known; did you mean {nearest!r}?"


@pytest.mark.parametrize(
    ("name", "setting", "sentence"),
    [
        ("random", "batch_size", "random: setting 'batch_size' is not known; did you mean 'batch'?"),
        ("smart", "batch_size", "smart: setting 'batch_size' is not known; did you mean 'batch'?"),
        ("pk", "batch_size", "pk: setting 'batch_size' is not known: a batch is classes x images; pass both instead."),
        (
            "hard_class",
            "batch",
            "hard_class: setting 'batch' is not known: a batch is classes x images; pass both instead.",
        ),
        (
            "n_pair",
            "batch_size",
            "n_pair: setting 'batch_size' is not known: a batch is two images of each of its classes; "
            "pass classes instead.",
        ),
    ],
)
def test_the_size_of_a_batch_by_another_word(name: str, setting: str, sentence: str) -> None:
    with pytest.raises(TypeError) as caught:
        samplers.create(name, [0, 1], **{setting: 8})
    assert str(caught.value) == sentence


def test_labels_are_not_a_setting() -> None:
    with pytest.raises(TypeError):
        samplers.create("pk", [0, 1], **{"labels": [0, 1]})


def test_import_loads_torch_and_numpy_only() -> None:
    code = (
        "import sys, nearkin.samplers, nearkin.evaluation;"
        "heavy = {'sklearn', 'scipy', 'matplotlib', 'pandas', 'PIL', 'torchvision', 'faiss'};"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
