"""Pictures on the disk and a small network."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from nearkin import models
from nearkin.trained import Trained, View


def draw(path: Path, seed: int) -> Path:
    """A picture that no other seed gives."""
    path.parent.mkdir(parents=True, exist_ok=True)
    pixels = np.random.default_rng(seed).integers(0, 256, (5, 6, 3), np.uint8)
    Image.fromarray(pixels).resize((48, 40), Image.Resampling.NEAREST).save(path)
    return path


@pytest.fixture
def trained() -> Trained:
    model = models.create("small", dim=8, size=32, grey=False, width=4, seed=0)
    return Trained(model, View("crop", 32, 36, 64), {"loss": "margin", "data": "squares"}, torch.device("cpu"))


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """Three classes of four pictures."""
    for label in range(3):
        for number in range(4):
            draw(tmp_path / "photos" / f"kind{label}" / f"{number}.png", 10 * label + number)
    return tmp_path / "photos"
