"""What a signal does: the first asks, a later one interrupts, and one that comes twice is one."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator

import pytest

from nearkin.train import stop
from nearkin.train.stop import Stop, Terminated, ask, hearing, terminable
from tests.patience import PATIENCE

BOTH = [(signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, Terminated)]


@pytest.fixture(autouse=True)
def deaf() -> Iterator[None]:
    """What is not heard here must not end the tests."""
    before = {number: signal.signal(number, lambda *_: None) for number, _ in BOTH}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize(("number", "kind"), BOTH)
def test_the_first_signal_asks_and_a_later_one_interrupts(
    number: signal.Signals, kind: type[KeyboardInterrupt], monkeypatch: pytest.MonkeyPatch
) -> None:
    with Stop() as found:
        signal.raise_signal(number)
        assert found.asked and found.kind is kind
        monkeypatch.setattr(stop, "TWICE", -1.0)
        with pytest.raises(kind, match="stopped at once; the last checkpoint stays"):
            signal.raise_signal(number)


@pytest.mark.parametrize("second", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_that_is_passed_on_as_well_is_one(second: signal.Signals, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stop, "TWICE", 1e9)
    with Stop() as found:
        signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(second)
        assert found.asked and found.kind is Terminated


def test_asking_is_no_signal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stop, "TWICE", -1.0)
    with Stop() as found:
        assert hearing() is found
        for _ in range(2):
            thread = threading.Thread(target=ask)
            thread.start()
            thread.join()
        assert found.asked
        signal.raise_signal(signal.SIGTERM)
        ask()
    assert hearing() is None


def test_asking_where_nobody_hears_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with pytest.raises(KeyboardInterrupt):
        threading.Thread(target=ask).start()
        time.sleep(PATIENCE)


def test_sigterm_interrupts_while_it_may() -> None:
    with terminable(), pytest.raises(Terminated):
        signal.raise_signal(signal.SIGTERM)
    signal.raise_signal(signal.SIGTERM)  # as before
