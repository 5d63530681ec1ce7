"""The documentation runs and is up to date."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

import nearkin
from nearkin import losses

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]


def test_the_readme_runs() -> None:
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.S)
    blocks = [block for block in blocks if "losses" in block]
    assert len(blocks) == 2
    names: dict[str, Any] = {
        "embeddings": torch.randn(8, 4, requires_grad=True),
        "labels": torch.arange(8) // 2,
        "gallery": torch.randn(6, 4),
        "gallery_labels": torch.arange(6) // 2,
        "mask": torch.eye(4).repeat_interleave(2, 0).repeat_interleave(2, 1),
        "weights": torch.ones(8),
    }
    start = {key: value.clone() for key, value in names.items()}
    exec(compile(blocks[0], "README.md", "exec"), names)
    trained = names["loss"].proxies
    assert trained.grad is not None
    assert trained.grad.abs().sum() > 0
    exec(compile(blocks[1], "README.md", "exec"), names | start)


def test_what_is_shown_about_trained_models_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a folder with a run, two pictures and an index, as the pages have it."""
    from PIL import Image

    from nearkin.cli import main
    from nearkin.train.loop import train
    from tests.train.runs import tiny

    monkeypatch.chdir(tmp_path)
    train(tiny(Path("runs/birds"), Path("packs"), epochs=1))
    for number, name in enumerate(("a.jpg", "b.jpg")):
        Image.new("RGB", (40, 32), (90 * number, 30, 60)).save(name)
    assert main(["index", "build", "runs/birds", ".", "--out", "my.index", "--workers", "1"]) == 0
    blocks = [
        block
        for page in ("README.md", "docs/index.md")
        for block in re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.S)
        if "nearkin.load" in block
    ]
    assert len(blocks) == 2
    for block in blocks:
        names: dict[str, Any] = {}
        exec(compile(block, "page", "exec"), names)
        assert names["vectors"].shape == (2, 8)


def test_the_loop_of_ones_own_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import numpy as np
    from PIL import Image

    monkeypatch.chdir(tmp_path)
    (block,) = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "training.md").read_text(), re.S)
    draws = np.random.default_rng(0)
    for number in range(34 * 4):
        path = tmp_path / "photos" / f"kind{number // 4}" / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(draws.integers(0, 256, (40, 40, 3), np.uint8)).save(path)
    names: dict[str, Any] = {}
    exec(compile(block, "training.md", "exec"), names)
    assert 0 <= names["measures"]["recall@1"] <= 1 and names["feed"].step == 3 * len(names["batches"])


def test_the_estimator_on_the_page_runs() -> None:
    generator = torch.Generator().manual_seed(0)
    names: dict[str, Any] = {
        "features": torch.randn(60, 8, generator=generator).numpy(),
        "labels": [number % 6 for number in range(60)],
        "other_features": torch.randn(20, 8, generator=generator).numpy(),
        "other_labels": [number % 4 for number in range(20)],
    }
    [block] = [
        block
        for block in re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "index.md").read_text(), re.S)
        if "Embedder" in block
    ]
    exec(compile(block, "index.md", "exec"), names)
    assert names["vectors"].shape == (60, 64)


def test_the_loss_of_ones_own_on_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In every engine, with masks of both kinds, with a miner, and in a run of the same process."""
    from nearkin.train.loop import train
    from tests.train.runs import tiny

    monkeypatch.setattr(losses, "LOSSES", dict(losses.LOSSES))
    [block] = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "losses.md").read_text(), re.S)
    names: dict[str, Any] = {}
    exec(compile(block, "losses.md", "exec"), names)
    assert isinstance(names["loss"], losses.PairLoss)
    for n in (12, 600):
        embeddings = torch.randn(n, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
        labels = torch.arange(n) // 3
        unit = embeddings / embeddings.norm(dim=1, keepdim=True)
        same = labels[:, None] == labels
        terms = torch.nn.functional.softplus(torch.where(same, -10, 10) * (unit @ unit.T)).fill_diagonal_(0)
        for mode in ("dense", "blocked"):
            value = losses.create("soft_pairs", engine=mode)(embeddings, labels)
            torch.testing.assert_close(value, terms.sum(1).mean())
    with pytest.raises(
        ValueError, match="^soft_pairs: scale must be a finite number at least 0, got -1; change scale.$"
    ):
        losses.create("soft_pairs", scale=-1)
    found = train(tiny(tmp_path / "run", tmp_path / "packs", epochs=1, loss="soft_pairs", loss_settings={"scale": 5.0}))
    assert found is not None


def test_the_page_of_losses_is_up_to_date() -> None:
    done = subprocess.run([sys.executable, str(ROOT / "docs" / "generate.py"), "--check"])
    assert done.returncode == 0, "run python docs/generate.py"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
        if not target.startswith("http"):
            assert (page.parent / target).exists(), target


def test_generated_parts_are_filled() -> None:
    performance = [
        ("docs/performance.md", mark) for mark in ("losses-cpu", "engine-cuda", "training-cuda", "evaluation-cuda")
    ]
    for page, mark in [*(("README.md", mark) for mark in ("demo", "speed", "speed-gpu")), *performance]:
        text = (ROOT / page).read_text()
        begin, end = text.index(f"<!-- {mark} -->"), text.index(f"<!-- /{mark} -->")
        assert len(text[begin:end]) > len(mark) + 20, (page, mark)


def test_the_version_is_in_the_changelog() -> None:
    assert f"## {nearkin.__version__}" in (ROOT / "CHANGELOG.md").read_text()
    count = len({cls.name for cls in losses.LOSSES.values()})
    assert f"{count} losses" in (ROOT / "CHANGELOG.md").read_text()
