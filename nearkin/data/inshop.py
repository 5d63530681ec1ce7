"""In-Shop Clothes Retrieval, a part of DeepFashion: 52,712 photographs of 7,982 items (Liu et al. 2016)."""

from __future__ import annotations

import os
from pathlib import Path

from nearkin.data.counts import missing_files, settle
from nearkin.data.files import ListedFiles, natural, readable
from nearkin.data.layout import list_rows, not_found, places, root_folder
from nearkin.data.table import ImageTable, Splits

LIST = "list_eval_partition.txt"
HEADER = ["image_name", "item_id", "evaluation_status"]
STATUSES = ("train", "query", "gallery")
WANTED = f"Eval/{LIST} and Img/img/"


def inshop(root: str | os.PathLike[str], check_counts: bool = True) -> Splits:
    """Clothes: 3,997 items train (25,882 images); 3,985 test, 14,218 images as queries against a gallery of 12,612.

    ``root`` holds ``Eval/list_eval_partition.txt`` and ``Img/img/`` (or both one level up). In the test part
    ``query`` marks the images that ask; the others are the gallery.
    """
    folder = root_folder("inshop", root)
    path = _list(folder)
    if path is None:
        raise not_found("inshop", folder, WANTED)
    _check_header(path)
    files = ListedFiles(_images(folder, path))
    images: dict[str, list[Path]] = {"train": [], "test": []}
    items: dict[str, list[str]] = {"train": [], "test": []}
    query: list[bool] = []
    missing: list[str] = []
    for listed, item, status in list_rows(path, 3, skip=2):
        if status not in STATUSES:
            raise ValueError(
                f"inshop: evaluation_status in {path} must be one of {', '.join(STATUSES)}, got {status!r} for "
                f"{readable(listed)}; fetch the list again."
            )
        found = files.find(listed)
        if found is None:
            missing.append(readable(listed))
            continue
        part = "train" if status == "train" else "test"
        images[part].append(found)
        items[part].append(item)
        if part == "test":
            query.append(status == "query")
    problems = [missing_files(missing, LIST)] if missing else []
    train = ImageTable.of(images["train"], items["train"], sorted(set(items["train"]), key=natural))
    test = ImageTable.of(images["test"], items["test"], sorted(set(items["test"]), key=natural), query)
    return settle("inshop", folder, train, test, problems, check_counts)


def layout(root: Path) -> str | None:
    """How the copy in this folder is laid out, or None where it is none."""
    path = _list(root)
    if path is None:
        return None
    return "official archive" if _header(path) == HEADER else None


def _list(root: Path) -> Path | None:
    """The list, in the root or a folder in it, or in ``Eval`` of either."""
    for place in places(root):
        for name in (f"Eval/{LIST}", LIST):
            if (place / name).is_file():
                return place / name
    return None


def _images(root: Path, path: Path) -> Path:
    """The folder that the listed names, ``img/...``, start from."""
    base = path.parent.parent if path.parent.name == "Eval" else path.parent
    for place in (base / "Img", base, root / "Img", root):
        if (place / "img").is_dir():
            return place
    return base / "Img"


def _header(path: Path) -> list[str]:
    with open(path, encoding="utf-8", errors="replace") as lines:
        lines.readline()
        return lines.readline().split()


def _check_header(path: Path) -> None:
    found = _header(path)
    if found != HEADER:
        raise ValueError(
            f"inshop: {path} must have the columns {' '.join(HEADER)} in its second line, got {' '.join(found)!r}; "
            f"take the list of the In-Shop benchmark, since others of that name belong to other data."
        )
