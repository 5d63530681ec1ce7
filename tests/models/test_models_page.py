"""The page about networks is true to the code."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import torch

from nearkin import models
from nearkin.train.loop import train
from tests.train.runs import tiny

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "models.md").read_text()


@pytest.mark.parametrize("name", models.MODELS)
def test_the_table(name: str) -> None:
    row = next(line for line in PAGE.splitlines() if line.startswith(f"| `{name}` |"))
    with torch.device("meta"):
        network = models.MODELS[name].build()
    parameters, size = (cell.strip() for cell in row.split("|")[2:4])
    assert parameters == f"{sum(parameter.numel() for parameter in network.parameters()):,}"
    assert size.split(",")[0] == str(network.size)
    single = row.split("|")[5].strip().strip("`")
    assert single == network.level
    if "the same" not in row:
        written = [part.strip().strip("`") for part in row.split("|")[6].split(",")]
        full = [part if not part.startswith("_") else f"inception{part}" for part in written]
        assert tuple(full) == network.triple
        assert f"`{next(iter(network.channels))}` .. " in row


def test_a_network_of_your_own_runs_and_trains(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(models, "MODELS", dict(models.MODELS))
    block = re.findall(r"```python\n(.*?)```", PAGE, re.S)[-1]
    names: dict[str, Any] = {}
    exec(compile(block, "models.md", "exec"), names)
    embeddings = names["model"](torch.rand(2, 3, 64, 64))
    assert {level: tuple(part.shape) for level, part in embeddings.items()} == dict.fromkeys("LMH", (2, 64))
    assert names["again"].settings == names["model"].settings
    settings = tiny(tmp_path / "run", tmp_path / "packs", network="mine", network_settings={}, size=32, epochs=1)
    assert train(settings)["step"] == 4
