"""Somebody's own images must stay as they are while a benchmark goes on: runs on others are not to be compared."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nearkin import checkpoint
from nearkin.data import Splits

FILE = "images.json"


def check(found: Mapping[str, tuple[str, Splits]], done: set[str], out: Path) -> None:
    """Raise where the images of a source, with the folder or table they lie in, are not those its runs were done on.

    ``done``: sources that have finished runs. Images are known by name, size and class, which is quick to look at and
    changes with all but a picture painted over.
    """
    path = out / FILE
    kept = _kept(path)
    now = {source: _look(*given) for source, given in found.items()}
    for source, facts in now.items():
        then = kept.get(source, facts)
        if source in done and facts != then:
            what = f"{facts['images']:,}" if facts["images"] != then["images"] else "as many, but not the same"
            raise ValueError(
                f"{found[source][0]} must hold the {then['images']:,} images that finished runs in {out} were done on, "
                f"got {what}; put them back as they were, or give another folder with --out."
            )
    if any(kept.get(source) != facts for source, facts in now.items()):
        checkpoint.make_folder("out", out)
        checkpoint.replace(path, json.dumps(kept | now, indent=1).encode())


def _kept(path: Path) -> dict[str, dict[str, Any]]:
    try:
        found = json.loads(path.read_bytes())
        if isinstance(found, dict):
            return found
        came = f"a {type(found).__name__}"
    except FileNotFoundError:
        return {}
    except ValueError as error:
        came = str(error)
    raise ValueError(
        f"{path} must be what nearkin bench wrote, got a damaged file ({came}); remove it if the images are still those of "
        f"the finished runs, or give another folder with --out."
    )


def _look(root: str, splits: Splits) -> dict[str, Any]:
    seen = hashlib.sha256()
    for part in (splits.train, splits.test):
        for image, label in zip(part.images, part.labels, strict=True):
            name, size = os.path.relpath(str(image), root), _size(Path(str(image)))
            seen.update(f"{name}\t{size}\t{part.class_names[label]}\n".encode())
        seen.update(b"\n")
    return {"images": len(splits.train.images) + len(splits.test.images), "sum": seen.hexdigest()[:16]}


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:  # the run tells of it
        return -1
