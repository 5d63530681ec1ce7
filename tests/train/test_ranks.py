"""Several processes compute what one computes: every loss, two and three processes, to float64 rounding."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from nearkin.distributed import Ranks, start
from nearkin.train.objective import Objective
from tests.losses.cases import ALL
from tests.patience import PATIENCE
from tests.train.runs import starter

ROWS, WIDE, DIM, CLASSES, STEPS = 22, 6, 4, 5, 2
CASES = [(case.name, dict(case.settings)) for case in ALL] + [("n_pair", {"form": "mc"})]
MEMORY = 9


class Net(nn.Module):
    """A layer for each of two levels."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.low, self.high = nn.Linear(WIDE, DIM), nn.Linear(WIDE, DIM)

    def forward(self, images: Tensor) -> dict[str, Tensor]:
        return {"L": self.low(images), "H": self.high(images)}


def batch(step: int, settings: dict[str, Any]) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(step)
    labels = torch.arange(ROWS) // 2  # form "mc" of n_pair wants every class exactly twice
    if settings.get("form") != "mc":
        labels = labels % CLASSES
    return torch.randn(ROWS, WIDE, generator=generator, dtype=torch.float64), labels


def results(ranks: Ranks, number: int, memory: int) -> dict[str, Tensor]:
    """Loss and gradients of one case after each step."""
    name, settings = CASES[number]
    net = Net().double()
    objective = Objective(name, settings, levels=("L", "H"), dim=DIM, classes=CLASSES, memory=memory, seed=3).double()
    counts = ranks.shares(ROWS)
    first = sum(counts[: ranks.rank])
    own = slice(first, first + counts[ranks.rank])
    found = {}
    for step in range(STEPS):
        images, labels = batch(step, settings)
        learned = [*net.parameters(), *objective.parameters()]
        for parameter in learned:
            parameter.grad = None
        value = objective(net(images[own]), labels[own], ranks, counts)
        value.backward()
        ranks.add_gradients(learned)
        found[f"{number}.{step}.loss"] = ranks.total(value.detach())
        for place, parameter in enumerate(learned):
            grad = parameter.grad
            found[f"{number}.{step}.{place}"] = torch.zeros_like(parameter) if grad is None else grad.clone()
    return found


def cases_with_memory() -> list[tuple[int, int]]:
    from nearkin import losses

    plain = [(number, 0) for number in range(len(CASES))]
    return plain + [(n, MEMORY) for n, _ in plain if not issubclass(losses.LOSSES[CASES[n][0]], losses.ProxyLoss)
                    and CASES[n][1].get("form") != "mc"]  # fmt: skip


def process(rank: int, count: int, port: int, target: str) -> None:
    os.environ |= {"RANK": str(rank), "WORLD_SIZE": str(count), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    torch.set_num_threads(1)
    with start(torch.device("cpu")) as ranks:
        found: dict[str, Tensor] = {}
        for number, memory in cases_with_memory():
            found |= {f"{memory}.{key}": value for key, value in results(ranks, number, memory).items()}
        if ranks.first:
            save_file(found, target)


def measured_as_it_came(rank: int, count: int, port: int, folder: str) -> None:
    from nearkin.train.loop import train
    from tests.train.runs import tiny

    if count > 1:
        facts = {"RANK": rank, "WORLD_SIZE": count, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
        os.environ |= {name: str(value) for name, value in facts.items()}
    same: dict[str, Any] = {"precision": "float64", "frozen_batch_norm": True, "sampler": "random", "epochs": 1}
    train(tiny(Path(folder) / f"of {count}", Path(folder) / "packs", **same), untrained=True)


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


@pytest.fixture(scope="module")
def alone() -> dict[tuple[int, int], dict[str, Tensor]]:
    """What one process computes in each case."""
    return {(number, memory): results(Ranks(), number, memory) for number, memory in cases_with_memory()}


@pytest.mark.parametrize("count", [2, 3])
def test_processes_add_up_to_one(count: int, tmp_path: Path, alone: dict[tuple[int, int], dict[str, Tensor]]) -> None:
    target, port, context = str(tmp_path / "found.safetensors"), free_port(), starter()
    shares = [context.Process(target=process, args=(rank, count, port, target)) for rank in range(count)]
    for share in shares:
        share.start()
    try:
        for share in shares:
            share.join(PATIENCE)
    finally:
        for share in shares:  # where one has failed, the others wait for it
            share.kill()
            share.join()
    assert [share.exitcode for share in shares] == [0] * count
    together = load_file(target)
    wrong: list[str] = []
    for (number, memory), own in alone.items():
        for key, expected in own.items():
            got: Any = together[f"{memory}.{key}"]
            scale = max(1.0, float(expected.abs().max()))
            if not torch.allclose(got, expected, rtol=0, atol=1e-12 * scale):
                wrong.append(f"{CASES[number]} memory {memory} {key}: {float((got - expected).abs().max()):.2g}")
    assert not wrong, "\n".join(wrong[:20])


def test_shares_and_packages_cover_everything() -> None:
    for count in (1, 2, 3, 5):
        shares = Ranks(0, count).shares(17)
        assert sum(shares) == 17 and max(shares) - min(shares) <= 1


def test_a_run_of_two_processes_ends_where_one_does(tmp_path: Path) -> None:
    """The whole way through torchrun: packs, shares of the batch, sharded evaluation, one writer, vectors of each epoch."""
    from nearkin import checkpoint
    from nearkin.train import epochs
    from nearkin.train.folder import RunFolder
    from nearkin.train.loop import train
    from tests.train.runs import flags, tiny

    same: dict[str, Any] = {"precision": "float64", "frozen_batch_norm": True, "loss": "proxy_anchor", "batch": 13}
    same |= {"protocol": "fixed_validation", "ratio": 0.5, "audit": True, "keep_embeddings": True}
    train(tiny(tmp_path / "one", tmp_path / "packs", sampler="random", **same))
    words = [*flags(tiny(tmp_path / "two", tmp_path / "packs", sampler="random", **same)), "--keep-embeddings"]
    # It finds a port itself: one that is looked for here may be somebody else's when it starts.
    launch = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--standalone"]
    command = [*launch, "-m", "nearkin", "train", *words]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    assert ended.returncode == 0, ended.stderr
    one, two = (checkpoint.load(tmp_path / name / "checkpoint") for name in ("one", "two"))
    assert one is not None and two is not None and one.step == two.step
    for group in ("model", "loss"):
        for name, value in one.tensors[group].items():
            torch.testing.assert_close(two.tensors[group][name], value, rtol=1e-9, atol=1e-10)
    logs = [RunFolder(tmp_path / name).records("step") for name in ("one", "two")]
    assert [record["loss"] for record in logs[1]] == pytest.approx([record["loss"] for record in logs[0]], rel=1e-9)
    measures = [RunFolder(tmp_path / name).metrics() for name in ("one", "two")]
    for name in ("recall@1", "map@r", "r_precision", "nmi"):
        assert measures[1][name] == pytest.approx(measures[0][name], abs=1e-12)
    assert measures[1]["epoch"] == measures[0]["epoch"] and measures[1]["validation"] == measures[0]["validation"]
    assert measures[1]["test_feedback"] == pytest.approx(measures[0]["test_feedback"])
    first, second = (epochs.kept(tmp_path / name) for name in ("one", "two"))
    assert [found.moment for found in first] == [found.moment for found in second] and len(first) >= 2
    for alone, shared in zip(first, second, strict=True):
        np.testing.assert_allclose(alone.vectors(), shared.vectors(), atol=1e-3)


def test_the_network_as_it_came_is_measured_by_all_processes_together(tmp_path: Path) -> None:
    measured_as_it_came(0, 1, 0, str(tmp_path))
    port, context = free_port(), starter()
    shares = [context.Process(target=measured_as_it_came, args=(rank, 2, port, str(tmp_path))) for rank in range(2)]
    for share in shares:
        share.start()
    try:
        for share in shares:
            share.join(PATIENCE)
    finally:
        for share in shares:
            share.kill()
            share.join()
    assert [share.exitcode for share in shares] == [0, 0]
    one, two = (json.loads((tmp_path / f"of {count}" / "metrics.json").read_bytes())["untrained"] for count in (1, 2))
    assert two == pytest.approx(one, abs=1e-12) and one["queries"] > 0
