"""How the embedding moved: the vectors of the measured images at every measured epoch, as small files of the run.

``epochs/0007.safetensors`` holds ``vectors`` (n, d) in float16 and, as facts, the epoch, the step and which images they
are: "test" or "validation". Labels are not in it. The judge writes these files; the loop never reads them.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from nearkin import checkpoint

FOLDER = "epochs"
FACTS = "facts"


@dataclass(frozen=True)
class Moment:
    """When something is measured: the epoch, from 0, and the step."""

    epoch: int
    step: int


@dataclass(frozen=True)
class Kept:
    """The file of an epoch; ``images``: "test" or "validation"."""

    path: Path
    moment: Moment
    images: str

    def vectors(self) -> NDArray[np.float32]:
        """Unit vectors (n, d) of the images, in their order."""
        from safetensors.numpy import load

        found: NDArray[np.float32] = load(self.path.read_bytes())["vectors"].astype(np.float32)
        return found


def write(run: Path, moment: Moment, images: str, vectors: Tensor) -> None:
    """Keep the vectors of an epoch in the folder of a run."""
    from safetensors.numpy import save

    folder = run / FOLDER
    arrays: dict[str, Any] = {"vectors": np.ascontiguousarray(vectors.half().cpu().numpy())}
    facts = {"epoch": moment.epoch, "step": moment.step, "images": images}
    # One entry: the library writes several in any order, and equal runs should leave equal bytes.
    content = save(arrays, {FACTS: json.dumps(facts)})
    path = folder / f"{moment.epoch:04d}.safetensors"
    try:
        folder.mkdir(exist_ok=True)
        checkpoint.replace(path, content)
    except OSError as error:
        raise OSError(
            f"the vectors of epoch {moment.epoch} could not be written to {path}: {error.strerror or error}; "
            f"free some space, or go on with --resume and --no-keep-embeddings."
        ) from error


def kept(run: Path) -> list[Kept]:
    """What a run has kept, first epoch first; a file that is not whole is left out."""
    from safetensors import SafetensorError, safe_open

    found = []
    for path in (run / FOLDER).glob("[0-9]*.safetensors"):
        try:
            with safe_open(path, "numpy") as file:
                facts = json.loads(file.metadata()[FACTS])
                found.append(Kept(path, Moment(facts["epoch"], facts["step"]), facts["images"]))
        except (OSError, SafetensorError, KeyError, TypeError, ValueError):
            continue
    return sorted(found, key=lambda one: one.moment.epoch)


def forget(run: Path, step: int) -> None:
    """Drop what was kept after a step that is gone back to, and what is not whole."""
    before = {one.path for one in kept(run) if one.moment.step <= step}
    for path in (run / FOLDER).glob("[0-9]*.safetensors"):
        if path not in before:
            path.unlink()
