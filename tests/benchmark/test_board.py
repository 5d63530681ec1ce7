"""What a person sees of a benchmark while it goes on."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from nearkin.benchmark import board as shown
from nearkin.benchmark import grid as grids
from nearkin.benchmark.board import HOLE, Board, Live, outcome
from nearkin.benchmark.schedule import Order, Schedule
from nearkin.results import DONE, FAILED, Result
from tests.benchmark.grids import grid


def boards(folder: Path, protocol: str, kind: type[Board] = Board) -> Board:
    """A benchmark whose runs of the first loss are done."""
    jobs = [
        replace(job, settings=replace(job.settings, protocol=protocol))
        for job in grids.read(grid(folder, seeds="[0, 1]")).jobs
    ]
    board = kind(jobs)
    for job, score in zip([job for job in jobs if job.label == "margin"], (0.25, 0.75), strict=True):
        found = replace(job.result(folder), status=DONE, metrics={"recall@1": score}, cost={"seconds": 2.0})
        board.known({job.id: found})
    return board


def test_a_mean_that_was_chosen_on_the_test_set_says_so(tmp_path: Path) -> None:
    shown = boards(tmp_path, "test_feedback").rows()
    assert [(label, mean) for label, _, mean in shown] == [("margin", "50.0 (test_feedback)"), ("triplet", "")]
    shown = boards(tmp_path, "fixed_validation").rows()
    assert [(label, mean) for label, _, mean in shown] == [("margin", "50.0"), ("triplet", "")]


def test_the_live_table_has_the_word(tmp_path: Path) -> None:
    board = boards(tmp_path, "test_feedback", Live)
    assert isinstance(board, Live)
    try:
        with board.console.capture() as shown:
            board.console.print(board.picture())
    finally:
        board.close()
    assert "50.0 (test_feedback)" in shown.get()


def test_brackets_in_names_are_shown(tmp_path: Path) -> None:
    """They mean something to what draws the table."""
    board = Live([replace(job, label="[/x] [red]") for job in grids.read(grid(tmp_path)).jobs])
    try:
        with board.console.capture() as shown:
            board.console.print(board.picture())
            board.say("[/x] [red]")
    finally:
        board.close()
    assert shown.get().count("[/x] [red]") == 2


@pytest.mark.parametrize("kind", [Board, Live])
def test_the_score_is_the_first_that_is_measured(tmp_path: Path, kind: type[Board]) -> None:
    jobs = [replace(job, settings=replace(job.settings, ks=(2, 4))) for job in grids.read(grid(tmp_path)).jobs]
    board = kind(jobs)
    board.close()
    metrics = {"recall@2": 0.25, "recall@4": 0.5}
    board.known({job.id: replace(job.result(tmp_path), status=DONE, metrics=metrics) for job in jobs})
    assert {mean for _, _, mean in board.rows()} == {"25.0"}
    if isinstance(board, Live):
        with board.console.capture() as shown:
            board.console.print(board.picture())
        assert "R@2" in shown.get()


def test_means_of_different_experiments_are_not_put_together(tmp_path: Path) -> None:
    board = boards(tmp_path, "fixed_validation")
    first = next(iter(board.results.values()))
    board.known({first.id: replace(first, protocol="test_feedback")})
    assert [mean for _, _, mean in board.rows()] == ["", ""]


def test_what_came_of_a_run() -> None:
    done = Result("a", DONE, "margin", "margin", "birds", "small", 8, "test_feedback", 0, 0, {"recall@1": 0.5})
    assert outcome(done) == "R@1 50.0 (test_feedback) in 0 s"
    assert outcome(replace(done, protocol="last_epoch")) == "R@1 50.0 in 0 s"


def test_a_failure_is_told_of_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Also while another benchmark is at the run that waits for its retry, so that it is asked for again and again."""
    jobs = grids.read(grid(tmp_path)).jobs
    job, made, board = jobs[0], Schedule(jobs, tmp_path, 3), Board(jobs)
    for tries in (1, 1, 1, 2):
        while len(job.failures(tmp_path)) < tries:
            job.save(tmp_path)
            job.note_failure(tmp_path, "no room")
        made.waiting = [Order(job, tries)]
        board.ended(job, made)
    assert capsys.readouterr().out.count("failed and is tried again: no room") == 2


def test_a_sentence_that_ends_in_a_point_gets_no_second_mark() -> None:
    lost = Result("a", FAILED, "margin", "margin", "birds", "small", 8, "last_epoch", 0, 0, error="no room; free some.")
    assert outcome(lost) == "failed: no room; free some"


def test_plain_lines_say_what_there_is_to_do_what_starts_and_now_and_then_how_far_it_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = boards(tmp_path, "fixed_validation")
    plain.begin()
    assert capsys.readouterr().out == "4 runs: 2 done, 2 to do\n"
    one, two = (job for job in plain.jobs if job.label == "triplet")
    for job in (one, two, one):  # another process is at the second; the first is tried again
        plain.started(job)
    plain.heard(one, {"kind": "note", "text": "reading the data set"})
    plain.heard(one, {"kind": "step", "step": 5, "steps": 20, "rate": 1234.0})
    plain.show()
    said = capsys.readouterr().out
    assert said == "started: triplet on glyphs, small 8, fixed_validation, seed 0\n"
    monkeypatch.setattr(shown, "QUIET", 0.0)
    plain.show()
    said = capsys.readouterr().out
    assert said == "2 of 4 runs; triplet on glyphs, small 8, fixed_validation, seed 0: 25 %, 1,234 images/s\n"
    monkeypatch.setattr(shown, "QUIET", 60.0)
    plain.show()
    assert capsys.readouterr().out == ""


def test_the_live_table_needs_no_such_lines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    live = boards(tmp_path, "fixed_validation", Live)
    assert isinstance(live, Live)
    try:
        with live.console.capture() as said:
            live.begin()
            live.started(live.jobs[1])
            live.heard(live.jobs[1], {"kind": "note", "text": "reading the data set"})
    finally:
        live.close()
    assert "to do" not in said.get() and "started" not in said.get()


def test_a_failed_run_is_a_hole_in_the_mean(tmp_path: Path) -> None:
    """Beside losses of which every run is done, a mean of the others would look like one of all."""
    board = boards(tmp_path, "fixed_validation")
    first = next(iter(board.results.values()))
    board.known({first.id: replace(first, status=FAILED, metrics={}, error="it broke")})
    assert [(label, mean) for label, _, mean in board.rows()] == [("margin", HOLE), ("triplet", "")]
