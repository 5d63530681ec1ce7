"""Which run comes next, and how often one that fails is tried, without training anything."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from nearkin import results
from nearkin.benchmark import grid as grids
from nearkin.benchmark import schedule
from nearkin.benchmark.job import Job
from nearkin.benchmark.perform import perform
from nearkin.benchmark.schedule import Schedule
from tests.benchmark.grids import grid


def failing(made: Schedule, job: Job, out: Path) -> None:
    """An attempt that fails, as a worker would make it."""
    order = made.next()
    assert order is not None and order.job.id == job.id
    if len(job.failures(out)) <= order.failures:  # else it is not tried, as in perform
        job.note_failure(out, "no room")
    made.take(job, job.result(out))


def test_what_another_process_is_at_is_not_asked_for_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(schedule.time, "monotonic", lambda: now[0])
    first, second = grids.read(grid(tmp_path)).jobs
    made = Schedule([first, second], tmp_path, 1)
    order = made.next()
    assert order is not None and order.job is first
    made.take(first, None)
    order = made.next()
    assert order is not None and order.job is second
    assert made.next() is None and made.open
    now[0] += schedule.PAUSE
    order = made.next()
    assert order is not None and order.job is first


@pytest.mark.parametrize("retries", [0, 1, 3])
def test_tries_are_counted_over_benchmarks_that_share_a_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, retries: int
) -> None:
    """Each is told that another one is at the run, and asks again when that has failed."""
    now = [0.0]
    monkeypatch.setattr(schedule.time, "monotonic", lambda: now[0])
    job = grids.read(grid(tmp_path)).jobs[0]
    made = [Schedule([job], tmp_path, retries) for _ in range(3)]
    while any(each.open for each in made):
        now[0] += schedule.PAUSE
        orders = [(each, order) for each in made if (order := each.next())]
        for number, (each, order) in enumerate(orders):
            if number:  # the first has the claim
                each.take(job, None)
            elif len(job.failures(tmp_path)) <= order.failures:
                job.note_failure(tmp_path, "no room")
        orders[0][0].take(job, job.result(tmp_path))
    assert len(job.failures(tmp_path)) == 1 + retries
    assert not any(each.finished[job.id].done for each in made)
    assert len((tmp_path / results.FILE).read_text().splitlines()) == 1


@pytest.mark.parametrize(("failed", "known", "tried"), [(0, 0, True), (1, 0, False), (1, 1, True), (2, 1, False)])
def test_a_run_that_failed_more_often_than_was_known_is_not_tried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failed: int, known: int, tried: bool
) -> None:
    """Another process has: what comes next is for the schedule to say."""
    job, trained = grids.read(grid(tmp_path)).jobs[0], []
    job.save(tmp_path)
    for _ in range(failed):
        job.note_failure(tmp_path, "no room")
    module = sys.modules[perform.__module__]  # whose name in the package is that of the function
    monkeypatch.setattr(module, "_train", lambda *given: trained.append(given) or "no room again")
    result = perform(job, tmp_path, failures=known)
    assert bool(trained) == tried and result is not None and not result.done
    assert len(job.failures(tmp_path)) == failed + tried


@pytest.mark.parametrize("interrupted_after", [1, 2, 3])
def test_tries_are_counted_over_interruptions(tmp_path: Path, interrupted_after: int) -> None:
    job = grids.read(grid(tmp_path)).jobs[0]
    made = Schedule([job], tmp_path, 3)
    for number in range(4):
        if number == interrupted_after:
            made = Schedule([job], tmp_path, 3)
        assert made.open
        failing(made, job, tmp_path)
    assert not made.open and len(job.failures(tmp_path)) == 4
    assert not results.known(tmp_path / results.FILE)[job.id].done
    again = Schedule([job], tmp_path, 3)  # recorded: not tried unless asked for
    failing(again, job, tmp_path)
    assert not again.open and len(job.failures(tmp_path)) == 4
    asked = Schedule([job], tmp_path, 3, retry_failed=True)
    for _ in range(4):
        failing(asked, job, tmp_path)
    assert not asked.open and len(job.failures(tmp_path)) == 8
