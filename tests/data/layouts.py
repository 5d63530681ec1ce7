"""Small copies of the benchmarks in their official layouts, made at test time."""

from __future__ import annotations

import gzip
import struct
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np

BIRDS = {
    1: "001.Black_footed_Albatross",
    2: "002.Laysan_Albatross",
    101: "101.White_Pelican",
    200: "200.Common_Yellowthroat",
}


def picture(path: Path, size: tuple[int, int] = (8, 6), shade: int = 90) -> Path:
    """A real image file in the format of its ending."""
    from PIL import Image

    path.parent.mkdir(parents=True, exist_ok=True)
    image = Image.new("RGB", size, (shade, 40, 200))
    endings = Image.registered_extensions()
    image.save(path, endings[path.suffix.lower()])
    return path


def empty(path: Path) -> Path:
    """A file without content, where nothing may open it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    return path


def cub200(
    root: Path, classes: Mapping[int, str] = BIRDS, images: int = 3, ending: str = ".jpg", make: object = picture
) -> Path:
    """``CUB_200_2011/`` with its lists; image numbers run against the order of names, as in the original."""
    base = root / "CUB_200_2011"
    listed, labels = [], []
    for number, name in classes.items():
        for count in reversed(range(images)):
            stem = f"{name}/{name[4:]}_{count:04d}_{count}"
            make(base / "images" / (stem + ending))  # type: ignore[operator]
            listed.append(f"{len(listed) + 1} {stem}.jpg")
            labels.append(f"{len(labels) + 1} {number}")
    lines(base / "images.txt", listed)
    lines(base / "image_class_labels.txt", labels)
    lines(base / "classes.txt", [f"{number} {name}" for number, name in classes.items()])
    lines(base / "train_test_split.txt", [f"{number + 1} {number % 2}" for number in range(len(listed))])
    return base


def class_folders(root: Path, classes: Iterable[str], images: int = 3, ending: str = ".webp") -> Path:
    for name in classes:
        for count in range(images):
            picture(root / name / f"{name[4:]}_{count:04d}_{count}{ending}")
    return root


def cars_annotations(path: Path, rows: Iterable[Mapping[str, object]], names: Iterable[str] | None = None) -> Path:
    """A MATLAB file such as the official ones: a struct array, and class names as cells."""
    from scipy.io import savemat

    chosen = list(rows)
    fields = list(chosen[0])
    annotations = np.empty((1, len(chosen)), dtype=[(field, "O") for field in fields])
    for place, row in enumerate(chosen):
        for field in fields:
            value = row[field]
            annotations[0, place][field] = value if isinstance(value, str) else np.array([[value]], np.uint8)
    content: dict[str, object] = {"annotations": annotations}
    if names is not None:
        content["class_names"] = cells(names)
    path.parent.mkdir(parents=True, exist_ok=True)
    savemat(path, content)
    return path


def cells(names: Iterable[str]) -> np.ndarray:
    chosen = list(names)
    found = np.empty((1, len(chosen)), object)
    for place, name in enumerate(chosen):
        found[0, place] = name
    return found


def sop(root: Path, rows: Mapping[str, list[tuple[int, int, str]]], make: object = empty) -> Path:
    """``Stanford_Online_Products/`` with both lists, from (class, super class, path) of each part."""
    base = root / "Stanford_Online_Products"
    number = 0
    for part, chosen in rows.items():
        listed = ["image_id class_id super_class_id path"]
        for label, kind, path in chosen:
            number += 1
            listed.append(f"{number} {label} {kind} {path}")
            make(base / path)  # type: ignore[operator]
        lines(base / f"Ebay_{part}.txt", listed)
    return base


def inshop(root: Path, rows: Iterable[tuple[str, str, str]], make: object = empty) -> Path:
    """``Eval/list_eval_partition.txt`` and ``Img/img``, from (path, item, status)."""
    chosen = list(rows)
    listed = [str(len(chosen)), "image_name item_id evaluation_status"]
    for path, item, status in chosen:
        listed.append(f"{path:<70s} {item} {status}")
        make(root / "Img" / path)  # type: ignore[operator]
    lines(root / "Eval" / "list_eval_partition.txt", listed)
    return root


def idx(path: Path, values: np.ndarray) -> Path:
    """An idx file of bytes, packed if its name says so; written from the format's description."""
    content = struct.pack(">BBBB", 0, 0, 8, values.ndim) + struct.pack(f">{values.ndim}I", *values.shape)
    content += values.astype(np.uint8).tobytes()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


def mnist(root: Path, train: int = 20, test: int = 10, ending: str = ".gz") -> Path:
    generator = np.random.default_rng(0)
    for part, count in (("train", train), ("t10k", test)):
        idx(root / f"{part}-images-idx3-ubyte{ending}", generator.integers(0, 256, (count, 28, 28)))
        idx(root / f"{part}-labels-idx1-ubyte{ending}", np.arange(count) % 10)
    return root


def lines(path: Path, content: Iterable[str]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in content), encoding="utf-8")
    return path
