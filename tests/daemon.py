"""A second thread for tests of what threads do to each other."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any


class Daemon:
    """One thread that does what it is asked, in turn, and that nobody has to wait for in the end."""

    def __init__(self) -> None:
        self.asked: queue.SimpleQueue[tuple[Future[Any], Callable[[], Any]]] = queue.SimpleQueue()
        threading.Thread(target=self._work, daemon=True).start()

    def ask(self, what: Callable[[], Any]) -> Future[Any]:
        answer: Future[Any] = Future()
        self.asked.put((answer, what))
        return answer

    def _work(self) -> None:
        while True:
            answer, what = self.asked.get()
            try:
                answer.set_result(what())
            except BaseException as error:
                answer.set_exception(error)
