"""The real CUB-200-2011 and MNIST, where the environment variable NEARKIN_TEST_DATA says where they are."""

from __future__ import annotations

import os
import tarfile
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from nearkin.data import cub200, describe, extract, info, mnist
from nearkin.data.class_sizes import CUB200


def real(name: str) -> Path:
    given = os.environ.get("NEARKIN_TEST_DATA")
    if not given or not (Path(given) / name).is_dir():
        pytest.skip(f"set NEARKIN_TEST_DATA to a folder that holds {name}/")
    return Path(given) / name


def test_real_birds(tmp_path: Path) -> None:
    archives = sorted(real("cub200").glob("*.tar"))
    assert len(archives) == 8
    for archive in archives:
        extract(archive, tmp_path)
    splits = cub200(tmp_path)
    assert (len(splits.train), len(splits.test)) == (5_864, 5_924)
    assert splits.train.class_names + splits.test.class_names == tuple(CUB200)
    assert splits.notes == ()
    # Independent truth: the names in the archives.
    packed: Counter[str] = Counter()
    for archive in archives:
        with tarfile.open(archive) as content:
            packed.update(name.split("/")[0] for name in content.getnames() if name.endswith(".webp"))
    assert dict(packed) == CUB200
    found = {
        part.class_names[label]: int(count)
        for part in (splits.train, splits.test)
        for label, count in enumerate(np.bincount(part.labels))
    }
    assert found == CUB200
    text = describe(info(tmp_path))
    assert "train       5,864 images of 100 classes, as published" in text
    assert "test        5,924 images of 100 classes, as published" in text
    assert "formats     webp 11,788" in text


def test_real_digits() -> None:
    splits = mnist(real("mnist"))
    assert (len(splits.train), len(splits.test)) == (60_000, 10_000)
    assert np.bincount(splits.train.labels).tolist() == [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]
    assert np.bincount(splits.test.labels).tolist() == [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]
    images = np.asarray(splits.train.images)
    assert abs(images.mean() / 255 - 0.1307) < 1e-4 and abs(images.std() / 255 - 0.3081) < 1e-4
