"""The doctor on real birds, where the environment variable NEARKIN_TEST_DATA says where they are."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

import numpy as np
import pytest

from nearkin.data import ImageTable, folder
from nearkin.data.archive import extract
from nearkin.data.doctor import examine
from nearkin.data.doctor.embedders import PACKAGE

pytestmark = pytest.mark.skipif(
    not os.environ.get("NEARKIN_TEST_DATA"), reason="NEARKIN_TEST_DATA names no folder of real data"
)


@pytest.fixture(scope="module")
def birds(tmp_path_factory: pytest.TempPathFactory) -> ImageTable:
    root = tmp_path_factory.mktemp("birds")
    extract(Path(os.environ["NEARKIN_TEST_DATA"]) / "cub200" / "cub200-0.tar", root)
    return folder(root, split="all").train


def test_the_first_25_classes(birds: ImageTable) -> None:
    """One photograph is there twice, in two brightnesses; nothing else is wrong."""
    found = examine(birds, embed="none", workers=2)
    assert found.images == 1402 and len(found.classes) == 25
    assert found.counts() == {"near-duplicate": 1}
    (pair,) = found.findings
    assert pair.other is not None
    assert {Path(pair.place.name).stem, Path(pair.other.name).stem} == {
        "Laysan_Albatross_0065_809",
        "Laysan_Albatross_0096_673",
    }


@pytest.mark.skipif(importlib.util.find_spec(PACKAGE) is None, reason=f"{PACKAGE} is not installed")
def test_wrong_labels_among_birds(birds: ImageTable) -> None:
    """Eight classes, 3 of 100 labels wrong: what the network names is wrong, and it names most."""
    rows = np.flatnonzero(birds.labels < 8)
    true = birds.labels[rows]
    random = np.random.default_rng(0)
    wrong = random.random(len(rows)) < 0.03
    given = true.copy()
    given[wrong] = (given[wrong] + random.integers(1, 8, int(wrong.sum()))) % 8
    table = ImageTable([birds.images[row] for row in rows], given, birds.class_names[:8])
    found = examine(table, embed="network", workers=2)
    named = {finding.place.row for finding in found.by_kind()["mislabelled"]}
    mistakes = set(np.flatnonzero(wrong).tolist())
    assert len(named & mistakes) >= 0.85 * len(named)
    assert len(named & mistakes) >= 0.5 * len(mistakes)
    right = ImageTable(table.images, true, table.class_names)
    assert len(examine(right, embed="network", workers=2).by_kind().get("mislabelled", ())) <= 1
