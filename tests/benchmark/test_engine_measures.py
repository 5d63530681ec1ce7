"""What is measured on a GPU, with clocks and calls that are none: a call that hangs costs itself alone."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

from nearkin import losses
from tests.benchmark.scripts import script

NOW = {"commit": "abc", "device": "a card", "date": "today"}


class Clock:
    """Calls that take a time of their own, as far as anybody can see."""

    def __init__(self, *seconds: float) -> None:
        self.seconds, self.now, self.calls = seconds, 0.0, 0

    def __call__(self) -> None:
        self.now += self.seconds[min(self.calls, len(self.seconds) - 1)]
        self.calls += 1

    loss: Any = None
    leaves: tuple[torch.Tensor, ...] = ()

    def clear(self) -> None:
        pass


@pytest.fixture
def measures(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    found = script("engine_measures")
    for name in ("synchronize", "empty_cache", "reset_peak_memory_stats"):
        monkeypatch.setattr(torch.cuda, name, lambda: None)
    for name in ("memory_allocated", "max_memory_allocated"):
        monkeypatch.setattr(torch.cuda, name, lambda: 0)
    monkeypatch.setattr(found, "kept", lambda: 0)
    return found


@pytest.mark.parametrize(
    ("seconds", "compiles", "calls", "median"),
    [
        ((50,), False, 1, 50),  # not once more than it must
        ((50,), True, 3, 50),  # its first call says nothing; then time, then memory
        ((50, 1), True, 11, 1),
        ((3,), False, 5, 3),
    ],
)
def test_a_long_call_is_not_repeated(
    measures: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    seconds: tuple[float, ...],
    compiles: bool,
    calls: int,
    median: float,
) -> None:
    clock = Clock(*seconds)
    monkeypatch.setattr(measures.time, "perf_counter", lambda: clock.now)
    found = measures.measured(clock, compiles)
    assert found["median"] == 1e3 * median and found["first"] == seconds[0] and clock.calls == calls


def test_all_calls_together_are_limited(measures: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measures, "PATIENCE", 1)

    class Slow(Clock):
        def __call__(self) -> None:
            self.calls += 1
            while self.calls > 1:  # all but the first never return
                pass

    assert measures.measured(Slow(0.0)) == {"unfinished": "not in 60 s"}


ANSWER = """
import sys, time
from multiprocessing.connection import Connection
line = Connection(int(sys.argv[1]))
line.send("ready")
while True:
    entry, n = line.recv()
    if entry == "hangs":
        time.sleep(600)
    if entry == "dies":
        sys.exit(1)
    line.send({"median": n})
"""


def test_what_hangs_is_killed_and_the_next_one_is_measured() -> None:
    with script("engine_theirs").Theirs(sys.executable, "-c", ANSWER, patience=5) as other:
        assert other.measured("one", 3) == {"median": 3}
        first = other.process
        assert other.measured("two", 4) == {"median": 4} and other.process is first  # one process for all
        assert other.measured("hangs", 5) == {"unfinished": "not in 60 s"} and first.poll() is not None
        assert other.measured("three", 6) == {"median": 6}
        assert other.measured("dies", 7) == {"unfinished": "its process ended"}
        assert other.measured("four", 8) == {"median": 8}
        last = other.process
    assert last.poll() is not None


def test_a_process_that_does_not_start_is_not_started_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = f"open({str(tmp_path / 'starts')!r}, 'a').write('x'); raise SystemExit(1)"
    other = script("engine_theirs").Theirs(sys.executable, "-c", command)
    assert other.measured("one", 1) is None and other.measured("two", 2) is None
    assert (tmp_path / "starts").read_text() == "x" and capsys.readouterr().out.count("did not start") == 1


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The script, with rows of which each says how often ours was measured."""
    found, asked = script("engine"), []

    def ours(entry: str, n: int, engines: tuple[str, ...]) -> dict[str, Any]:
        asked.append((entry, n))
        return {"loss": entry, "n": n, "compiled": {"median": len(asked)}}

    found.asked = asked
    monkeypatch.setattr(found, "ours", ours)
    monkeypatch.setattr(found, "conditions", lambda: NOW)
    monkeypatch.setattr(found.torch.cuda, "synchronize", lambda: None)
    return found


class Other:
    """The other library, which hangs at one loss until somebody ends everything."""

    def __init__(self, hangs: str = "") -> None:
        self.hangs, self.asked = hangs, []

    def measured(self, entry: str, n: int) -> dict[str, Any]:
        if entry == self.hangs:
            raise KeyboardInterrupt
        self.asked.append(entry)
        return {"unfinished": "out of memory"}


def test_our_row_is_saved_before_the_other_library_is_asked_and_nothing_is_measured_twice(
    engine: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved: dict[str, Any] = {}
    monkeypatch.setattr(engine, "write", lambda name, content: saved.update(content))
    entries = ["supcon", "binomial_deviance", "proxy_anchor", "margin, distance_weighted"]
    work = engine.Work(entries, ("compiled",), Other("margin, distance_weighted"))
    with pytest.raises(KeyboardInterrupt):
        list(engine.measure(["large"], work, {"large": {}}, {}))
    assert [row["loss"] for row in saved["large"]["rows"]] == entries
    assert "theirs" not in saved["large"]["rows"][-1] and len(engine.asked) == 4

    known = {"large": engine.rows_at_hand(saved["large"], NOW, engine.KEYS)}
    other = Other()
    work = engine.Work([*entries, "contrastive"], ("compiled",), other)
    assert list(engine.measure(["large"], work, known, dict(saved))) == [("large", True)]
    assert other.asked == ["margin, distance_weighted", "contrastive"] and engine.asked[4:] == [("contrastive", 32768)]
    assert [row["compiled"]["median"] for row in saved["large"]["rows"]] == [1, 2, 3, 4, 5]
    assert not any("conditions" in row for row in saved["large"]["rows"])


def test_only_what_is_left_is_compiled_ahead(engine: ModuleType) -> None:
    parts = ["small", "exact", "exact_float32", "profile"]
    assert engine.batches("supcon", parts, {}) == [
        "180 bfloat16", "32768 bfloat16", "4096 bfloat16", "4096 float32", "8192 bfloat16",
    ]  # fmt: skip
    known = {"exact": {("supcon", 4096, None)}, "exact_float32": {("supcon", 4096, "highest")}}
    assert engine.batches("supcon", ["exact", "exact_float32"], known) == ["4096 float32", "8192 bfloat16"]
    known["exact_float32"].add(("supcon", 4096, "high"))
    assert engine.batches("supcon", ["exact_float32"], known) == []


def test_what_may_hang_comes_last() -> None:
    assert [*script("engine_compared").LARGE][-1] == "margin, distance_weighted"


@pytest.mark.parametrize("precision", [None, "highest", "high"])
@pytest.mark.parametrize("entry", [*script("engine_compared").LARGE])
def test_errors_of_every_loss_can_be_told(entry: str, precision: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of blocks on a CPU, which hold to the same bar; a random miner draws the same for all of them."""
    module, table = script("engine_exact"), script("engine_compared")

    def make(entry: str, n: int, kind: str) -> Any:
        name, settings, *_ = table.LARGE[entry]
        proxy = {"classes": n // 4, "dim": 512} if issubclass(losses.LOSSES[name], losses.ProxyLoss) else {}
        return losses.create(name, engine={"compiled": "blocked"}.get(kind, kind), **settings, **proxy)

    def batch(n: int, seed: int, dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
        embeddings, labels = table.clustered(n, 4, seed=seed)
        return embeddings.to(dtype), labels

    monkeypatch.setattr(module, "make", make)
    monkeypatch.setattr(module, "batch", batch)
    before = torch.get_float32_matmul_precision()
    found = module.exact(entry, 64, 2, precision)
    assert torch.get_float32_matmul_precision() == before
    assert found.get("precision") == precision and found["same bits"] and found["batch"]
    for kind in ("value", "gradient"):
        assert found["compiled"][kind] <= 2 * found["plain"][kind] + 1e-6
        assert math.isfinite(found["plain"][kind]) and found["plain"][kind] < (1e-4 if precision else 0.2)
    assert found["batches"] == (module.DRAWN if "distance" in entry else 2)
