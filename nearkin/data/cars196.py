"""Cars196: 16,185 photographs of 196 models of cars (Krause et al. 2013)."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from nearkin.data.class_sizes import CARS196
from nearkin.data.counts import PUBLISHED, by_class, counted, differences, missing_files, settle
from nearkin.data.files import ListedFiles, naming, readable
from nearkin.data.layout import locate, not_found, root_folder
from nearkin.data.numbered import Picture, find_numbered, halves_by_number, numbered_folders, read_numbered
from nearkin.data.table import Splits

CLASSES = 196
INSIDE = ("images", "car_ims", "cars196")
INSTALL = "scipy must be installed to read the .mat lists of Cars196, got none; run pip install 'nearkin[data]'."
WANTED = (
    "cars_annos.mat beside car_ims/, or cars_train/, cars_test/ and devkit/, or class folders such as "
    "001.AM General Hummer SUV 2000"
)


def cars196(root: str | os.PathLike[str], check_counts: bool = True) -> Splits:
    """Cars: classes 1 to 98 train (8,054 images), 99 to 196 test (8,131).

    ``root`` holds ``car_ims/`` and ``cars_annos.mat``; or ``cars_train/``, ``cars_test/``, ``devkit/`` and
    ``cars_test_annos_withlabels.mat`` (in the root or in ``devkit/``); or class folders ``NNN.Name`` with images of any
    format. The lists are read with scipy. The archive's own division into training and test images is not used:
    retrieval is tested on classes that training never saw.
    """
    folder = root_folder("cars196", root)
    notes: list[str] = []
    problems: list[str] = []
    base = _with_one_list(folder)
    if base is not None:
        pictures, names, problems = _read_one_list(base)
    elif (base := _with_devkit(folder)) is not None:
        pictures, names, problems = _read_devkit(base)
    else:
        plain = find_numbered(folder, INSIDE)
        if plain is None:
            raise not_found("cars196", folder, WANTED)
        pictures, names, notes = read_numbered("cars196", plain, CLASSES)
    train, test = halves_by_number(pictures, names, CLASSES)
    if differences(PUBLISHED["cars196"], counted(train, test)):
        sizes = Counter(picture.number for picture in pictures)
        called = {number: names.get(number, f"{number:03d}") for number in range(1, CLASSES + 1)}
        problems += by_class(
            {called[number]: sizes[number] for number in sorted(sizes)},
            {called[number]: size for number, size in enumerate(CARS196, start=1)},
        )
    return settle("cars196", folder, train, test, problems, check_counts, notes)


def layout(root: Path) -> str | None:
    """How the copy in this folder is laid out, or None where it is none."""
    if _with_one_list(root) is not None:
        return "official archive, one list"
    if _with_devkit(root) is not None:
        return "official archive, development kit"
    plain = find_numbered(root, INSIDE)
    if plain is None:
        return None
    # Every official name ends with the year of the model, which other numbered folders hardly do.
    found = [name for names in numbered_folders(plain).values() for name in names]
    years = sum(re.search(r"[^0-9](19|20)[0-9]{2}$", name) is not None for name in found)
    return "class folders" if years * 2 > len(found) else None


def _with_one_list(root: Path) -> Path | None:
    return locate(root, lambda place: (place / "cars_annos.mat").is_file())


def _with_devkit(root: Path) -> Path | None:
    return locate(root, lambda place: (place / "devkit" / "cars_train_annos.mat").is_file())


def _read_one_list(base: Path) -> tuple[list[Picture], dict[int, str], list[str]]:
    content = _load(base / "cars_annos.mat")
    rows = [(row["relative_im_path"], row["class"]) for row in _records(base / "cars_annos.mat", content)]
    return _resolve(ListedFiles(base), rows, _names(content), "cars_annos.mat")


def _read_devkit(base: Path) -> tuple[list[Picture], dict[int, str], list[str]]:
    kit = base / "devkit"
    names = _names(_load(_one_of("cars_meta.mat", kit, base)))
    train = kit / "cars_train_annos.mat"
    test = _one_of("cars_test_annos_withlabels.mat", base, kit)
    rows = []
    for part, path in (("cars_train", train), ("cars_test", test)):
        # Some copies hold the folder once more inside itself.
        inner = f"{part}/{part}" if (base / part / part).is_dir() else part
        for row in _records(path, _load(path)):
            if "class" not in row:
                raise ValueError(f"cars196: {path} must have the class of each image; use the list with labels.")
            rows.append((f"{inner}/{row['fname']}", row["class"]))
    return _resolve(ListedFiles(base), rows, names, f"{train.name} and {test.name}")


def _one_of(name: str, *folders: Path) -> Path:
    for folder in folders:
        if (folder / name).is_file():
            return folder / name
    raise ValueError(
        f"cars196: root must hold {name} for the newer layout, got none in {naming([str(one) for one in folders])}; "
        f"put that file there."
    )


def _resolve(
    files: ListedFiles, rows: list[tuple[Any, Any]], names: dict[int, str], source: str
) -> tuple[list[Picture], dict[int, str], list[str]]:
    pictures: list[Picture] = []
    missing: list[str] = []
    for listed, number in sorted((str(listed), int(number)) for listed, number in rows):
        if not 1 <= number <= CLASSES:
            raise ValueError(f"cars196: classes in {source} must lie between 1 and {CLASSES}, got {number}.")
        names.setdefault(number, f"{number:03d}")
        path = files.find(listed)
        if path is None:
            missing.append(readable(listed))
        else:
            pictures.append(Picture(path, number))
    pictures.sort(key=lambda picture: picture.number)  # stable: by name within a class
    problems = [missing_files(missing, source)] if missing else []
    return pictures, names, problems


def _load(path: Path) -> dict[str, Any]:
    try:
        from scipy.io import loadmat
    except ImportError as error:
        raise ImportError(INSTALL) from error
    try:
        return dict(loadmat(path, simplify_cells=True))
    except Exception as error:  # scipy raises many kinds for a damaged file
        raise ValueError(f"cars196: {path} must be a MATLAB file, got {error}; fetch it again.") from error


def _records(path: Path, content: dict[str, Any]) -> Iterator[dict[str, Any]]:
    if "annotations" not in content:
        raise ValueError(f"cars196: {path} must hold 'annotations', got none; fetch it again.")
    rows = content["annotations"]
    yield from [rows] if isinstance(rows, dict) else rows


def _names(content: dict[str, Any]) -> dict[int, str]:
    found = np.atleast_1d(content.get("class_names", []))
    return {number: str(name) for number, name in enumerate(found.tolist(), start=1)}
