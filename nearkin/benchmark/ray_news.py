"""How far runs on a Ray cluster are: they tell an actor, the benchmark reads it; neither waits for the other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nearkin.benchmark.board import ODD

Message = dict[str, Any]


class Board:
    """What runs told since they were read last: the newest of each, and all that is odd; lives on the cluster."""

    def __init__(self) -> None:
        self.newest: dict[str, Message] = {}
        self.odd: list[tuple[str, Message]] = []

    def pin(self, run: str, message: Message) -> None:
        if message["kind"] == ODD:
            self.odd.append((run, message))
        else:
            self.newest[run] = message

    def take(self) -> list[tuple[str, Message]]:
        found = [*self.odd, *self.newest.items()]
        self.odd, self.newest = [], {}
        return found


class News:
    """What runs of a cluster tell, as far as it has arrived."""

    def __init__(self, ray: Any) -> None:
        self.ray = ray
        # Where its machine is lost, it begins again on another.
        self.board = ray.remote(num_cpus=0, max_restarts=-1)(Board).remote()
        self.asked: Any = None

    def read(self, patience: float = 0.0) -> list[tuple[str, Message]]:
        """Messages with the ids of runs; none while the cluster has not answered, for which so many seconds are waited."""
        try:
            if self.asked is None:
                self.asked = self.board.take.remote()
            if not self.ray.wait([self.asked], timeout=patience)[0]:
                return []
            answer, self.asked = self.asked, None
            return list(self.ray.get(answer))
        except self.ray.exceptions.RayError:  # progress is no reason to stop for
            return []


def teller(board: Any, run: str) -> Callable[[Message], None]:
    """What a run calls with a message; nobody answers, and a board that is gone is no error."""

    def tell(message: Message) -> None:
        board.pin.remote(run, message)

    return tell
