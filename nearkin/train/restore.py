"""The trained model of a run."""

from __future__ import annotations

from pathlib import Path

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
