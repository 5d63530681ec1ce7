"""A benchmark from start to end: each run once, whatever happens to the processes that do them."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path

import psutil
import pytest

from nearkin import calling, results
from nearkin.benchmark import grid as grids
from nearkin.benchmark import schedule
from nearkin.benchmark.command import failures
from nearkin.benchmark.job import Job
from nearkin.benchmark.perform import claim
from nearkin.benchmark.schedule import Schedule
from nearkin.benchmark.state import rebuild, states
from nearkin.cli import main
from nearkin.train.folder import RunFolder
from nearkin.train.stop import TWICE
from tests.benchmark.grids import grid
from tests.patience import PATIENCE, quickest, until
from tests.train.runs import left

ROOT = Path(__file__).parents[2]
SLOW = 4000  # epochs of a run that a test stops in the middle

Going = tuple[subprocess.Popen[str], int, Job]


def start(path: Path, out: Path, *words: str) -> subprocess.Popen[str]:
    """A benchmark in a process of its own that never loses patience; leave the result of this to ``ended``."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "tests.benchmark.patient", "bench", str(path), "--out", str(out), *words]
    # In a group of its own, as a shell starts it: a terminal sends Ctrl-C to all of the group.
    return subprocess.Popen(
        command, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True
    )


def ended(process: subprocess.Popen[str]) -> str:
    """What a process printed until it ended; one that does not end is ended."""
    try:
        return process.communicate(timeout=PATIENCE)[0]
    finally:
        process.kill()
        process.communicate()


def stopping(process: subprocess.Popen[str]) -> None:
    """Wait until a benchmark says that it has heard Ctrl-C."""
    assert process.stdout is not None
    assert any(schedule.STOPPING in line for line in iter(process.stdout.readline, ""))


def steps(folder: Path) -> int:
    path = folder / "log.jsonl"
    return path.read_bytes().count(b'"step", ') if path.exists() else 0


def worker_of(parent: int) -> int:
    """The process that does the runs."""
    found = subprocess.run(["pgrep", "-P", str(parent)], capture_output=True, text=True).stdout.split()
    return int(found[0])


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bench")
    path = grid(folder, seeds="[0, 1]", audit=True)
    assert main(["bench", str(path), "--out", str(folder / "out"), "--workers", "2"]) == 0
    return folder


def copied(finished: Path, folder: Path) -> Path:
    """A finished benchmark that a test may damage."""
    shutil.copytree(finished / "out", folder / "out", ignore=shutil.ignore_patterns("results.before*"))
    return folder / "out"


def test_every_run_has_its_line_and_its_folder(finished: Path) -> None:
    found = results.read(finished / "out")
    assert sorted((result.label, result.seed) for result in found) == [
        ("margin", 0), ("margin", 1), ("triplet", 0), ("triplet", 1),
    ]  # fmt: skip
    for result in found:
        folder = finished / "out" / result.folder
        measured = json.loads((folder / "metrics.json").read_bytes())
        assert result.done and result.metrics["recall@1"] == measured["recall@1"]
        assert result.validation == measured["validation"] and result.test_feedback == measured["test_feedback"]
        assert result.untrained == {name: measured["untrained"][name] for name in ("recall@1", "recall@2", "map@r")}
        assert result.cost["seconds"] > 0 and result.where["versions"]["torch"]
        assert result.where[results.SHARED] == 2  # both workers
        assert (result.data, result.network, result.dim, result.protocol) == ("glyphs", "small", 8, "fixed_validation")
        answers = results.queries(finished / "out", result)
        assert answers["recall@1"].mean() == pytest.approx(result.metrics["recall@1"], abs=1e-6)


def test_a_second_run_repeats_nothing(finished: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = finished / "out"
    before = (out / results.FILE).read_bytes()
    times = {path: path.stat().st_mtime_ns for path in out.glob("runs/*/metrics.json")}
    assert main(["bench", str(finished / "grid.toml"), "--out", str(out)]) == 0
    assert (out / results.FILE).read_bytes() == before
    assert {path: path.stat().st_mtime_ns for path in out.glob("runs/*/metrics.json")} == times
    shown = capsys.readouterr().out
    assert "4 of 4 runs done" in shown and "[1/4]" not in shown  # nor is it said again
    assert f"next: {calling.line('tournament', out)}\nnext: {calling.line('report', out)}\n" in shown


def test_labels_may_be_changed_and_nothing_is_repeated(finished: Path, tmp_path: Path) -> None:
    """What is called otherwise in the grid is called so in the results, also where two names were exchanged."""
    out = copied(finished, tmp_path)
    scores = {result.loss: result.metrics for result in results.read(out) if not result.seed}
    losses = '[{label = "triplet", loss = "margin"}, {label = "margin", loss = "triplet"}]'
    path = grid(tmp_path, losses=losses, seeds="[0, 1]", audit=True, packs=str(finished / "packs"))
    assert main(["bench", str(path), "--out", str(out)]) == 0
    found = results.read(out)
    assert {(result.label, result.loss) for result in found} == {("triplet", "margin"), ("margin", "triplet")}
    assert {result.loss: result.metrics for result in found if not result.seed} == scores
    assert len((out / results.FILE).read_bytes().splitlines()) == 8  # one line more for each, none taken away


def test_status_needs_no_right_to_write(finished: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = copied(finished, tmp_path)
    job = grids.read(finished / "grid.toml").jobs[0]
    (job.folder(out) / "metrics.json").unlink()
    before = {path: path.stat().st_mtime_ns for path in out.rglob("*")}
    (out / "claims" / job.id).chmod(0o444)
    with claim(job, out):
        assert states([job], out)[0].status == "running"
    assert states([job], out)[0].status == "interrupted"
    assert main(["bench", "status", str(out)]) == 0
    assert {path: path.stat().st_mtime_ns for path in out.rglob("*")} == before


def test_status_says_how_far_it_is(finished: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "status", str(finished / "out"), "--each"]) == 0
    shown = capsys.readouterr().out
    assert "4 done" in shown and shown.count("recall@1") == 4


def test_results_are_made_again_from_the_runs(finished: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = finished / "out" / results.FILE
    before = {result.id: result for result in results.read(path)}
    path.write_bytes(path.read_bytes()[:-20])  # torn
    assert main(["bench", "rebuild", str(finished / "out")]) == 0
    after = {result.id: result for result in results.read(path)}
    assert after == before  # where each was done too, which its folder knows
    assert "4 results and 0 failures" in capsys.readouterr().out


def test_results_are_not_lost_to_a_damaged_file_of_a_run(
    finished: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = copied(finished, tmp_path)
    whole = (out / results.FILE).read_bytes()
    measures, job = next(out.glob("runs/*/metrics.json")), next(out.glob("runs/*/job.json"))
    for path, damage in ((measures, b"{x"), (measures, b"[]"), (measures, b"{}"), (job, b"{x"), (job, b"{}")):
        good = path.read_bytes()
        path.write_bytes(damage)
        assert main(["bench", "rebuild", str(out)]) == 2
        shown = capsys.readouterr().err
        assert f"{path} must be as it was written, got a damaged file" in shown and shown.count("\n") == 1
        assert (out / results.FILE).read_bytes() == whole and not list(out.glob("*before*"))
        path.write_bytes(good)
    facts = json.loads(job.read_bytes())
    job.write_text(json.dumps(facts | {"settings": "epochs = many"}))
    assert main(["bench", "rebuild", str(out)]) == 2
    assert f"{job} must be as it was written, got a damaged file" in capsys.readouterr().err


def test_damaged_measures_are_told_of_and_the_run_is_done_again(
    finished: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = copied(finished, tmp_path)
    path = next(out.glob("runs/*/metrics.json"))
    good = json.loads(path.read_bytes())
    path.write_bytes(b"{x")
    for words in (["bench", "status", str(out)], ["bench", str(finished / "grid.toml"), "--out", str(out)]):
        assert main(words) == 2
        shown = capsys.readouterr().err
        assert "metrics.json must be as it was written, got a damaged file (Expecting property name" in shown
        assert "; remove it, and the next nearkin bench does the run again." in shown and shown.count("\n") == 1
    path.unlink()
    assert main(["bench", str(finished / "grid.toml"), "--out", str(out)]) == 0
    assert json.loads(path.read_bytes())["recall@1"] == good["recall@1"]


def test_a_run_that_waits_for_its_retry_is_not_given_up_by_a_rebuild(tmp_path: Path) -> None:
    losses = '["margin", "triplet", "contrastive", "n_pair"]'
    read, out = grids.read(grid(tmp_path, losses, head="retries = 2")), tmp_path / "out"
    grids.copy(read, out)
    waits, recorded, often, begun = read.jobs
    for job, tries in ((waits, 2), (recorded, 1), (often, 3), (begun, 0)):
        job.save(out)
        for _ in range(tries):
            job.note_failure(out, "no room")
    results.append(out / results.FILE, recorded.result(out))  # by a grid with fewer retries
    assert [found.id for found in rebuild(out)] == sorted([recorded.id, often.id])
    assert [state.status for state in states(read.jobs, out)] == ["waiting", "failed", "failed", "waiting"]
    orders = {order.job.id: order.failures for order in Schedule(read.jobs, out, read.retries).waiting}
    assert orders == {waits.id: 2, recorded.id: 0, often.id: 0, begun.id: 0}
    (out / "grid.toml").unlink()  # then nothing says how often
    assert len(rebuild(out)) == 3


def test_every_file_of_results_that_was_replaced_is_kept(finished: Path, tmp_path: Path) -> None:
    out = copied(finished, tmp_path)
    whole = (out / results.FILE).read_bytes()
    contents = [whole[:-50], whole[:-60], whole[:-70]]
    for content in contents:
        (out / results.FILE).write_bytes(content)
        assert main(["bench", "rebuild", str(out)]) == 0
    assert main(["bench", "rebuild", str(out)]) == 0  # nothing is new
    names = ("results.before.jsonl", "results.before-2.jsonl", "results.before-3.jsonl")
    assert [(out / name).read_bytes() for name in names] == contents and len(list(out.glob("*before*"))) == 3


def test_a_benchmark_that_was_stopped_is_not_judged_as_if_it_were_whole(
    finished: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = copied(finished, tmp_path)
    losses = '["margin", "triplet", "contrastive"]'
    asked = grids.read(grid(tmp_path, losses, seeds="[0, 1]", audit=True))
    assert {job.id for job in grids.read(finished / "grid.toml").jobs} < {job.id for job in asked.jobs}
    grids.copy(asked, out)  # and then it was stopped
    assert main(["tournament", str(out)]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "2 of 6 runs of the grid are missing, among them all of contrastive." in shown
    assert "contrastive: seed 0 not run yet; seed 1 not run yet, so it is left out here." in shown
    assert results.read(out)[4:] == [
        results.Result(**job.place, status=results.MISSING) for job in asked.jobs if job.label == "contrastive"
    ]


def test_only_runs_of_the_last_grid_are_judged(
    finished: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = copied(finished, tmp_path)
    before = results.read(out)
    words = ["bench", str(finished / "grid.toml"), "--out", str(out)]
    assert main([*words, "--settings", "epochs=3"]) == 0
    said = f"{out / results.FILE}: 4 of 8 results belong to runs that the grid no longer has; they are left out."
    for command in ("tournament", "report"):
        capsys.readouterr()
        assert main([command, str(out)]) == 0
        assert f"nearkin {command}: {said}\n" == capsys.readouterr().err
    with pytest.warns(UserWarning, match="they are left out"):
        found = results.read(out)
    assert [result.settings["epochs"] for result in found] == [3] * 4
    assert main(words) == 0
    with pytest.warns(UserWarning, match="they are left out"):
        assert results.read(out / results.FILE) == before
    (out / results.CURRENT).unlink()
    assert len(results.read(out)) == 8
    (out / results.CURRENT).write_text('["another"]')
    with pytest.raises(
        ValueError, match=r"at least one result of the grid .* got 8 results of runs that the grid no longer has; run"
    ):
        results.read(out)
    (out / results.CURRENT).write_text("[")
    with pytest.raises(
        ValueError, match=r"current.json must be a list of runs, got .*; give nearkin bench its grid again"
    ):
        results.read(out)


def test_a_torn_last_line_is_told_of_and_gone_when_the_next_is_added(finished: Path, tmp_path: Path) -> None:
    torn = tmp_path / results.FILE
    whole = (finished / "out" / results.FILE).read_bytes()
    torn.write_bytes(whole + whole.splitlines()[0][:50])
    with pytest.warns(UserWarning, match="the last line was cut short and is left out"):
        assert len(results.read(torn)) == 4
    results.append(torn, results.read(finished / "out")[0])
    assert torn.read_bytes() == whole + whole.splitlines(keepends=True)[0]
    assert len(results.read(torn)) == 4


def test_a_torn_last_line_of_a_benchmark_says_how_to_have_it_back(finished: Path, tmp_path: Path) -> None:
    out = copied(finished, tmp_path)
    whole = (out / results.FILE).read_bytes()
    (out / results.FILE).write_bytes(whole[:-50])
    said = f"that run is not lost: make the file again with {calling.line('bench', 'rebuild', out)}."
    with pytest.warns(UserWarning, match=re.escape(said)):
        results.read(out)
    rebuild(out)
    assert all(result.done for result in results.read(out))


def test_a_line_that_lacks_only_its_end_is_kept(finished: Path, tmp_path: Path) -> None:
    path = tmp_path / results.FILE
    whole = (finished / "out" / results.FILE).read_bytes()
    path.write_bytes(whole[:-1])
    results.append(path, results.read(finished / "out")[0])
    assert path.read_bytes() == whole + whole.splitlines(keepends=True)[0]


def test_a_benchmark_goes_on_after_a_torn_line(finished: Path, tmp_path: Path) -> None:
    out = copied(finished, tmp_path)
    whole = (out / results.FILE).read_bytes()
    (out / results.FILE).write_bytes(whole[:-200])
    assert main(["bench", str(finished / "grid.toml"), "--out", str(out)]) == 0
    assert (out / results.FILE).read_bytes() == whole
    assert main(["tournament", str(out)]) == 0


def test_a_damaged_line_in_the_middle_names_the_way_out(
    finished: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = copied(finished, tmp_path)
    lines = (out / results.FILE).read_bytes().splitlines(keepends=True)
    (out / results.FILE).write_bytes(lines[0] + lines[1][:50] + b"\n" + lines[2] + lines[3])
    damaged = (out / results.FILE).read_bytes()
    assert main(["tournament", str(out)]) == 2
    shown = capsys.readouterr().err
    assert f"{results.FILE} line 2 must be a result, got" in shown and f"bench rebuild {out}." in shown
    assert main(["bench", str(finished / "grid.toml"), "--out", str(out)]) == 0
    assert (out / results.FILE).read_bytes() == damaged + lines[1]  # what can be read is not added again
    assert f"{results.FILE} line 2 must be a result, got" in capsys.readouterr().out.splitlines()[-1]
    assert main(["bench", "rebuild", str(out)]) == 0
    assert main(["tournament", str(out)]) == 0
    (tmp_path / "alone.jsonl").write_bytes(damaged)
    with pytest.raises(ValueError, match=r"alone.jsonl line 2 must be a result, got .*; mend or remove the line\."):
        results.read(tmp_path / "alone.jsonl")


def waiting(path: Path, result: results.Result) -> threading.Thread:
    """Somebody who adds a result, and has to wait with it."""
    other = threading.Thread(target=results.append, args=(path, result))
    other.start()
    other.join(0.3)
    assert other.is_alive()
    return other


def test_a_line_that_is_being_written_is_not_taken_for_a_torn_one(finished: Path, tmp_path: Path) -> None:
    path, [one, two, *_] = tmp_path / results.FILE, results.read(finished / "out")
    line = json.dumps(asdict(one)).encode() + b"\n"
    with results.alone(path) as file:
        file.write(line[:50])
        file.flush()
        other = waiting(path, two)
        file.write(line[50:])
    other.join()
    assert results.read(path) == [one, two]


def test_what_is_added_while_the_file_is_replaced_is_in_the_new_one(finished: Path, tmp_path: Path) -> None:
    path, [one, two, three, *_] = tmp_path / results.FILE, results.read(finished / "out")
    results.append(path, one)
    results.append(tmp_path / "new", two)
    with results.alone(path):
        other = waiting(path, three)
        (tmp_path / "new").replace(path)
    other.join()
    assert results.read(path) == [two, three]


def test_a_killed_worker_is_replaced_and_its_run_goes_on(tmp_path: Path) -> None:
    """The run ends with the weights it has when nothing happens to it."""
    path = grid(tmp_path, losses='["margin"]', epochs=30)
    calm = start(path, tmp_path / "calm")
    [job] = grids.read(path).jobs
    process = start(path, tmp_path / "out")
    folder = job.folder(tmp_path / "out")
    until(lambda: steps(folder) > 20)
    os.kill(worker_of(process.pid), signal.SIGKILL)
    shown = ended(process)
    assert process.returncode == 0, shown
    assert "tried again: the worker process ended with signal SIGKILL" in shown
    ended(calm)
    one, two = left(job.folder(tmp_path / "calm")), left(folder)
    assert one == two
    [result] = results.read(tmp_path / "out")
    assert result.done


def test_one_reason_is_said_once(finished: Path) -> None:
    run = replace(results.read(finished / "out")[0], seed=0, status="failed", error="ValueError: no room; make some.")
    folds = [replace(run, protocol="cross_validation", fold=fold) for fold in (3, 4, 5)]
    assert failures([*folds, replace(run, error="MemoryError")]) == [
        f"failed: {run.label}, seed 0, fold 3 and 2 more: ValueError: no room; make some",
        f"failed: {run.label}, seed 0: MemoryError",
        "try again with --retry-failed",
    ]
    assert failures([]) == []


def test_two_benchmarks_at_once_share_the_runs(tmp_path: Path) -> None:
    path = grid(tmp_path, seeds="[0, 1, 2]", epochs=8)
    both = [start(path, tmp_path / "out") for _ in range(2)]
    for process in both:
        shown = ended(process)
        assert process.returncode == 0, shown
        assert "6 of 6 runs done" in shown
    lines = (tmp_path / "out" / results.FILE).read_text().splitlines()
    assert len({json.loads(line)["id"] for line in lines}) == 6
    for job in grids.read(path).jobs:  # a run done twice would have been resumed or begun again
        log = RunFolder(job.folder(tmp_path / "out"))
        numbers = [record["step"] for record in log.records("step")]
        assert numbers == sorted(set(numbers)) and len(log.records("test")) == 1


@pytest.fixture
def going(tmp_path: Path) -> Iterator[Going]:
    """A benchmark in the middle of its only run, which has not saved yet: its process, that of the run, and the run."""
    path = grid(tmp_path, losses='["margin"]', epochs=SLOW, checkpoint_every=1e9)
    [job] = grids.read(path).jobs
    process = start(path, tmp_path / "out")
    try:
        until(lambda: steps(job.folder(tmp_path / "out")) > 20)
        worker = worker_of(process.pid)
        yield process, worker, job
    finally:
        process.kill()
        process.communicate()
    until(lambda: not psutil.pid_exists(worker))  # it does not outlive the benchmark


def saved(job: Job, out: Path) -> bool:
    """Whether an interrupted run can go on, and nothing is held against it."""
    kept = job.folder(out) / "checkpoint"
    return kept.exists() and any(kept.iterdir()) and job.failures(out) == [] and not (out / results.FILE).exists()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_ctrl_c_and_sigterm_save_and_the_same_command_goes_on(
    number: signal.Signals, code: int, tmp_path: Path, going: Going
) -> None:
    process, worker, job = going
    assert os.getpgid(worker) != process.pid  # else it would be sent twice to the worker, which then stops at once
    os.killpg(process.pid, number)
    shown = ended(process)
    assert process.returncode == code and "go on with the same command" in shown, shown
    assert saved(job, tmp_path / "out")


def test_a_signal_to_all_processes_saves(tmp_path: Path, going: Going) -> None:
    """As batch systems send it, that know all processes of a job."""
    process, worker, job = going
    os.kill(worker, signal.SIGTERM)
    process.terminate()
    shown = ended(process)
    assert process.returncode == 143 and saved(job, tmp_path / "out"), shown


def test_a_run_that_finishes_while_all_are_asked_to_stop_has_its_line(
    tmp_path: Path, going: Going, finished: Path
) -> None:
    process, _, job = going
    (old,) = [result for result in results.read(finished / "out") if result.label == "margin" and result.seed == 0]
    shutil.copy(
        finished / "out" / old.folder / "metrics.json", job.folder(tmp_path / "out")
    )  # as if it had just been written
    process.send_signal(signal.SIGINT)
    shown = ended(process)
    assert process.returncode == 0 and "1 of 1 runs done" in shown, shown
    [result] = results.read(tmp_path / "out")
    assert result.done and result.metrics == old.metrics


def test_a_second_ctrl_c_stops_at_once(going: Going) -> None:
    process, worker, _ = going
    os.kill(worker, signal.SIGSTOP)  # it would never end by itself
    process.send_signal(signal.SIGINT)
    stopping(process)
    time.sleep(TWICE)
    process.send_signal(signal.SIGINT)
    shown = ended(process)
    assert process.returncode == 130, shown


def test_a_run_whose_benchmark_was_killed_saves_and_has_not_failed(tmp_path: Path, going: Going) -> None:
    process, worker, job = going
    process.kill()
    until(lambda: not psutil.pid_exists(worker))
    assert saved(job, tmp_path / "out")


def test_what_fails_is_tried_again_then_shown_as_a_hole(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    losses = '["margin", {label = "wild", loss = "triplet", lr = 1e30}]'
    path, out = grid(tmp_path, losses=losses, head="retries = 2"), tmp_path / "out"
    assert main(["bench", str(path), "--out", str(out)]) == 1
    shown = capsys.readouterr().out
    assert shown.count("failed and is tried again") == 2 and "failed: wild, seed 0: Diverged" in shown
    by_label = {result.label: result for result in results.read(out)}
    assert by_label["margin"].done and not by_label["wild"].done
    assert by_label["wild"].metrics == {} and "in step" in by_label["wild"].error
    wild = next(job for job in grids.read(path).jobs if job.label == "wild")
    assert len(wild.failures(out)) == 3
    assert shown.startswith("2 runs: 0 done, 2 to do\nstarted: margin on glyphs, ") and shown.count("started: ") == 2
    assert f"next: {calling.line('report', out)}\n" in shown and "next: nearkin tournament" not in shown
    assert main(["bench", str(path), "--out", str(out)]) == 1  # not tried again unless asked for
    assert len(wild.failures(out)) == 3
    shown = capsys.readouterr().out
    assert shown.startswith("2 runs: 1 done, 1 failed, 0 to do\n1 of 2 runs done; see ")
    assert "failed: wild, seed 0: Diverged" in shown
    assert main(["bench", str(path), "--out", str(out), "--retry-failed"]) == 1
    assert len(wild.failures(out)) == 6
    assert main(["bench", "status", str(out)]) == 0
    assert "1 done, 1 failed" in capsys.readouterr().out


def test_what_waits_to_be_tried_again_has_not_failed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, out = grid(tmp_path), tmp_path / "out"
    read = grids.read(path)
    grids.copy(read, out)
    margin, triplet = read.jobs
    for job in read.jobs:
        job.save(out)
        job.note_failure(out, "no room")
    results.append(out / results.FILE, triplet.result(out))
    assert main(["bench", "status", str(out)]) == 0
    shown = capsys.readouterr().out
    assert "1 waiting, 1 failed" in shown
    assert f"waiting      {margin.id}" in shown and "tried again after 1 failure: no room" in shown
    margin.note_failure(out, "no power")
    assert states([margin], out)[0].note == "tried again after 2 failures: no power"


def test_a_claim_is_one_process_s_alone(tmp_path: Path) -> None:
    job = grids.read(grid(tmp_path)).jobs[0]
    with claim(job, tmp_path) as first, claim(job, tmp_path) as second:
        assert first and not second
    with claim(job, tmp_path) as again:
        assert again


def test_checkpoints_go_where_they_are_not_wanted(tmp_path: Path) -> None:
    path = grid(tmp_path, losses='["margin"]', head="keep_checkpoints = false")
    assert main(["bench", str(path), "--out", str(tmp_path / "out")]) == 0
    [result] = results.read(tmp_path / "out")
    assert not (tmp_path / "out" / result.folder / "checkpoint").exists()
    assert (tmp_path / "out" / result.folder / results.QUERIES).exists()


def test_the_whole_path_within_a_minute(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def once() -> None:
        monkeypatch.chdir(tempfile.mkdtemp(dir=tmp_path))
        assert main(["bench", "--smoke"]) == 0

    assert quickest(once, enough=60, tries=3) < 60
    assert "told apart" in capsys.readouterr().out
