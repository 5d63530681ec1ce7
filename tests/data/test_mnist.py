"""MNIST from its idx files."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from nearkin.data import mnist
from tests.data.layouts import idx
from tests.data.layouts import mnist as make


@pytest.mark.parametrize("inside", ["", "MNIST/raw", "anything"])
@pytest.mark.parametrize("ending", [".gz", ""])
def test_packed_and_plain_files(tmp_path: Path, inside: str, ending: str) -> None:
    make(tmp_path / inside, ending=ending)
    splits = mnist(tmp_path, check_counts=False)
    wanted = np.random.default_rng(0).integers(0, 256, (20, 28, 28))
    assert np.array_equal(splits.train.images, wanted)
    assert isinstance(splits.train.images, np.ndarray) and splits.train.images.dtype == np.uint8
    assert splits.train.images.flags.writeable
    assert splits.test.labels.tolist() == list(range(10)) and splits.test.labels.dtype == np.int64
    assert splits.train.class_names == splits.test.class_names == tuple("0123456789")
    assert not splits.disjoint


def test_dotted_names(tmp_path: Path) -> None:
    make(tmp_path, ending="")
    for path in list(tmp_path.iterdir()):
        path.rename(tmp_path / path.name.replace("-idx", ".idx"))
    assert len(mnist(tmp_path, check_counts=False).train) == 20


def test_counts_are_checked(tmp_path: Path) -> None:
    message = (
        r"must hold the published 70,000 images, got 30 in .*: train has 20 of 60,000 images and 10 of 10 classes; "
        r"test has 10 of 10,000"
    )
    with pytest.raises(ValueError, match=message):
        mnist(make(tmp_path))


def test_a_broken_file_is_named(tmp_path: Path) -> None:
    make(tmp_path)
    images, labels = tmp_path / "train-images-idx3-ubyte.gz", tmp_path / "t10k-labels-idx1-ubyte.gz"
    good = images.read_bytes()
    images.write_bytes(good[:-500])
    with pytest.raises(
        ValueError, match=r"train-images-idx3-ubyte\.gz must be a whole gzip file, got .*; fetch it again\."
    ):
        mnist(tmp_path)
    images.write_bytes(b"<html>not found</html>")
    with pytest.raises(ValueError, match=r"must be a whole gzip file, got Not a gzipped file"):
        mnist(tmp_path)
    images.write_bytes(gzip.compress(gzip.decompress(good)[:-28]))
    with pytest.raises(ValueError, match=r"must hold 15,680 values as its head says, got 15,652; fetch it again\."):
        mnist(tmp_path)
    images.write_bytes((tmp_path / "train-labels-idx1-ubyte.gz").read_bytes())
    with pytest.raises(ValueError, match=r"must begin as an idx file of 3 dimensions, got 00000801; fetch it again\."):
        mnist(tmp_path)
    idx(images, np.zeros((20, 14, 14)))
    with pytest.raises(ValueError, match=r"must hold images of 28 x 28, got \(14, 14\); fetch it again\."):
        mnist(tmp_path)
    images.write_bytes(good)
    idx(labels, np.arange(9))
    with pytest.raises(
        ValueError, match=r"must have one label per image, got 10 images and 9 labels in .*; fetch both"
    ):
        mnist(tmp_path)
    idx(labels, np.arange(10) + 5)
    with pytest.raises(ValueError, match=r"t10k-labels-idx1-ubyte\.gz must hold digits, got 14; fetch it again\."):
        mnist(tmp_path)
    labels.unlink()
    with pytest.raises(
        ValueError, match=r"root must hold four files, got no t10k-labels-idx1-ubyte\.gz in .*; fetch that"
    ):
        mnist(tmp_path)


def test_roots_without_the_data(tmp_path: Path) -> None:
    with pytest.raises(
        ValueError, match=r"mnist: root must hold train-images-idx3-ubyte\.gz and its three companions, got an"
    ):
        mnist(tmp_path)
