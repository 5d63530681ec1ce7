"""Grids small enough for tests: a run takes about a second, or as long as a test needs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

SHARED: dict[str, Any] = {
    "side": 0,
    "ratio": 0.5,
    "geometry": "crop",
    "size": 28,
    "resize": 32,
    "sampler": "pk",
    "batch": 12,
    "images": 3,
    "epochs": 2,
    "lr": 1e-3,
    "warm_up": 0,
    "frozen_batch_norm": False,
    "device": "cpu",
    "threads": 1,
    "tensorboard": False,
    "checkpoint_every": 0.0,
    "ks": [1, 2],
}


def grid(
    folder: Path, losses: str = '["margin", "triplet"]', seeds: str = "[0]", head: str = "", **changes: Any
) -> Path:
    """Write a grid into a folder; its packs lie beside it."""
    settings = SHARED | {"packs": str(folder / "packs")} | changes
    lines = [f"{key} = {_toml(value)}" for key, value in settings.items()]
    path = folder / "grid.toml"
    path.write_text(
        f"losses = {losses}\n"
        'data = [{data = "glyphs", data_settings = {classes = 20, images = 6}}]\n'
        'networks = [{network = "small", network_settings = {width = 4}}]\n'
        f'dims = [8]\nprotocols = ["fixed_validation"]\nseeds = {seeds}\n{head}\n[settings]\n' + "\n".join(lines) + "\n"
    )
    return path


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f'"{value}"' if isinstance(value, str) else str(value)
