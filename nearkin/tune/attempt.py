"""A trial as everything but the storage sees it."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

RUNNING, WAITING = "running", "waiting"
# What may come of a trial. The first three count; an abandoned one is run again.
DONE, PRUNED, FAILED, ABANDONED = "done", "pruned", "failed", "abandoned"
COUNTED = (DONE, PRUNED, FAILED)


@dataclass(frozen=True)
class Attempt:
    """One trial: its parameters and what came of it. ``value`` is the best validation figure it reached."""

    loss: str
    number: int
    status: str
    parameters: dict[str, Any]
    value: float | None = None
    epoch: int | None = None
    seconds: float | None = None
    reason: str = ""
    again: int | None = None  # the abandoned trial that this one repeats
    deaths: int = 0  # processes that died over it before
    worker: str = ""
    curve: dict[int, float] = field(default_factory=dict)  # validation figure of each epoch

    @property
    def key(self) -> tuple[Any, ...]:
        """Equal for trials of equal parameters."""
        return key(self.parameters)

    @property
    def name(self) -> str:
        return f"{self.loss}-{self.number}"

    @property
    def finished(self) -> bool:
        return self.status not in (RUNNING, WAITING)

    def record(self) -> dict[str, Any]:
        """A line of trials.jsonl."""
        kept = ("loss", "number", "status", "value", "epoch", "seconds", "parameters", "reason", "again", "worker")
        facts = asdict(self)
        return {name: facts[name] for name in kept}


def key(parameters: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(sorted(parameters.items()))


def best(attempts: list[Attempt]) -> Attempt | None:
    """The trial with the highest value of those that ran to their end, the earliest among equals."""
    done = [attempt for attempt in attempts if attempt.status == DONE and attempt.value is not None]
    return min(done, key=lambda attempt: (-(attempt.value or 0.0), attempt.number), default=None)
