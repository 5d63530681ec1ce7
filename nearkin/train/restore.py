"""The trained model of a run."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import torch

from nearkin import checkpoint, models
from nearkin.models import Embedder
from nearkin.train.folder import RunFolder
from nearkin.train.settings import Train


def restore(path: Path, device: torch.device) -> tuple[Train, Embedder]:
    """Settings and network of the run in a folder, as its newest checkpoint has it, ready to embed.

    Where a protocol has chosen an epoch, the network is that of the chosen one.
    """
    folder = RunFolder(path)
    settings = folder.settings()
    saved = checkpoint.load(folder.checkpoints)
    if saved is None:
        raise ValueError(f"run must hold a checkpoint, got none in {str(path)!r}; let nearkin train write one.")
    # The weights come from the checkpoint; those the run began with need not be there any more.
    model = models.create(**saved.facts["network"])
    model.load_state_dict(saved.tensors.get("chosen") or saved.tensors["model"])
    if settings.precision == "float64":
        model = model.double()
    return settings, model.to(device).eval()


def facts(path: Path) -> dict[str, Any]:
    """The plain facts of a run's newest checkpoint; none where it cannot be read."""
    folder = RunFolder(path).checkpoints
    try:
        found: dict[str, Any] = json.loads((folder / f"{checkpoint.steps(folder)[-1]:08d}" / "state.json").read_bytes())
    except (OSError, ValueError, IndexError):
        return {}
    return found


def unfinished(path: Path) -> str:
    """How far a run is that has not come to its end, such as "step 40 of 100"; empty for one that has."""
    folder = RunFolder(path)
    steps = checkpoint.steps(folder.checkpoints)
    if folder.metrics() or not steps:
        return ""
    total = facts(path).get("steps") or folder.settings().iterations
    return f"step {steps[-1]:,}" + (f" of {total:,}" if total else "")


def warn_unfinished(command: str, how_far: str) -> None:
    """Say in one line that a run is unfinished, where it is."""
    if how_far:
        print(f"nearkin {command}: the run is unfinished ({how_far}); this is its embedding so far.", file=sys.stderr)
