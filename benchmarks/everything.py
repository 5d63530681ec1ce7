"""Everything that is measured on a GPU, as far as some minutes go; what is left goes on next time.

    python benchmarks/everything.py --root CUB_200_2011 --weights resnet50.safetensors --network-settings '{"stride": "1x1"}'
    python benchmarks/everything.py --minutes 9 --kept kept --commit abc1234 ...   on a device lent for ten minutes at a time
    python benchmarks/everything.py --steps tests engine                           some of it, in this order
    python benchmarks/everything.py --kept kept --take                             results of it into benchmarks/results

A step that came to its end at the commit at hand is not repeated, though some of it failed, which is told of at the end
(``--again`` repeats that); one that is stopped keeps the rows and runs it has. One that broke off by itself or took too
long comes after the others next time. Without ``--root`` there is no data to train on, and steps that train are left out.

``--kept`` is a folder that outlasts the machine, of at most a few files: one archive of results, logs and what is done, and
packed runs. Results in it take the place of those here before anything is measured.
"""

from __future__ import annotations

import argparse
import contextlib
import math
import os
import shutil
import signal
import subprocess
import time
from dataclasses import dataclass, field, replace
from pathlib import Path

import torch
from everything_kept import Kept, Record, runs
from everything_steps import Step, chosen, steps
from harness import RESULTS, ROOT, UNKNOWN, commit, exactly

from nearkin import wording

GRACE = 25.0
"""Seconds in which a step that is stopped may save."""
SAVED = 30.0
"""Seconds between two times that results of a step at work are saved."""
TOLD = 12
"""Lines of a log that are shown of a step that failed."""
TAKEN, LEFT = "taken", "not whole yet, so left where it is"


@dataclass
class Outcome:
    """Steps that are left, with the seconds they may take, and steps of which some failed."""

    left: dict[str, str] = field(default_factory=dict)
    seconds: float = 0
    failed: list[str] = field(default_factory=list)


def go(name: str, step: Step, kept: Kept, until: float) -> int | None:
    """Do a step for as long as there is time; its exit code, None where it was stopped."""
    with kept.log(name).open("ab") as log:
        process = subprocess.Popen(step.command, cwd=ROOT, stdout=log, stderr=subprocess.STDOUT, start_new_session=True)
        try:
            while True:
                try:
                    return process.wait(max(min(SAVED, until - time.monotonic()), 0))
                except subprocess.TimeoutExpired:
                    if time.monotonic() >= until:
                        stop(process)
                        return None
                    kept.bring(name, step)
        except KeyboardInterrupt:
            stop(process)
            raise
        finally:
            tell(process, signal.SIGKILL)
            process.wait()


def stop(process: subprocess.Popen[bytes]) -> None:
    """Let a step save, and all that it started."""
    tell(process, signal.SIGINT)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(GRACE)


def tell(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, number)


def attempt(name: str, step: Step, kept: Kept, now: str, until: float) -> Record:
    """Do a step as far as it goes, and keep what it has."""
    record, begun = kept.record(name, now), time.monotonic()
    limit = min(until, begun + step.most)
    kept.fetch(step)
    before = runs(step)[0] if step.grid else 0
    code = None
    try:
        code = go(name, step, kept, limit)
    finally:
        seconds = record.seconds + time.monotonic() - begun
        done, left = runs(step) if step.grid else (0, 0)
        ended = code == 0 or (code == step.failed and not left)
        broke = not ended and (code is not None or limit < until)
        record = replace(record, seconds=seconds, ended=ended, failed=ended and code != 0, broke=broke)
        record = replace(record, took=seconds if ended else record.took, runs=record.runs + done - before, left=left)
        kept.note(name, record)
        if done > before or (step.grid and not kept.has(step, record)):
            kept.pack(name, step)
        kept.bring(name, step)
    stopped = "not finished" if code is None else f"ended with {code}"
    how = "failed in part" if record.failed else "done" if ended else stopped
    print(f"{name}: {how}, {time.monotonic() - begun:.0f} s", flush=True)
    return record


def remaining(step: Step, record: Record) -> tuple[float, str]:
    """Seconds that a step may still take, by what is known of it, and in words."""
    if record.runs and record.left:
        seconds = record.left * record.seconds / record.runs
        return seconds, f"about {seconds:.0f} s for {record.left} runs"
    if record.took:
        seconds = max(step.least, record.took - record.seconds)
        return seconds, f"about {seconds:.0f} s"
    return step.least, f"at least {step.least:.0f} s"


def work(found: dict[str, Step], kept: Kept, seconds: float) -> Outcome:
    """Do what is left, as far as the time goes."""
    kept.place()
    now, end, outcome = commit(), time.monotonic() + seconds, Outcome()
    for name in ordered(found, kept, now):
        step = found[name]
        done = kept.done(name, step, now)
        if done:
            print(f"{name}: done before", flush=True)
        else:
            until = end - GRACE - step.packing
            if until - time.monotonic() >= step.least:
                ended = attempt(name, step, kept, now, until).ended
                # Of code that has no name nothing is known next time, but now it is done.
                done = ended and (not exactly(now) or kept.done(name, step, now))
            else:
                print(f"{name}: no time left", flush=True)
        record = kept.record(name, now)
        if not done:
            takes, words = remaining(step, record)
            outcome.left[name] = words
            outcome.seconds += takes
        elif record.failed:
            outcome.failed.append(name)
    return outcome


def ordered(found: dict[str, Step], kept: Kept, now: str) -> list[str]:
    """Names of steps as they come, but those that broke off after the others, before runs, which take all the time."""
    broke = [name for name in found if kept.record(name, now).broke]
    others = [name for name in found if name not in broke]
    first = next((place for place, name in enumerate(others) if found[name].grid), len(others))
    again = [name for name in broke if not found[name].grid]
    return [*others[:first], *again, *others[first:], *(name for name in broke if found[name].grid)]


def take(found: dict[str, Step], kept: Kept) -> None:
    """Put what is kept into benchmarks/results: results as far as they are, packed runs where all are done."""
    for name, put in kept.place(parts=False).items():
        print(f"{name}: {TAKEN if put else LEFT}")
    for name, step in found.items():
        if step.grid and (kept.folder / step.result).exists():
            record = kept.records.get(name, Record())
            whole = record.ended and kept.has(step, record)
            if whole:
                shutil.copyfile(kept.folder / step.result, RESULTS / step.result)
            print(f"{step.result}: {TAKEN if whole else LEFT}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=1e6, help="how long the device is there (default: for good)")
    parser.add_argument("--kept", default="kept", help="folder for results, logs and packed runs")
    parser.add_argument(
        "--commit", default="", help="what is measured, where there is no git (default: COMMIT, or git's)"
    )
    parser.add_argument("--steps", nargs="*", help="names of steps, in order")
    parser.add_argument("--again", nargs="*", default=[], help="steps to do again, as far as they failed")
    parser.add_argument("--take", action="store_true", help="put what is kept into benchmarks/results, and stop")
    parser.add_argument("--root", default="", help="folder of CUB_200_2011")
    parser.add_argument("--weights", default="", help="file of ImageNet weights")
    parser.add_argument("--network-settings", default="{}", help="what these weights want, as JSON")
    parser.add_argument("--workers", type=int, default=3, help="runs at a time")
    options = parser.parse_args()
    if options.commit:
        os.environ["COMMIT"] = options.commit
    now = commit()
    if now == UNKNOWN and not options.take:
        parser.error(
            "the commit must be known, or nobody can say what was measured, got a folder without git; give "
            "--commit with what git rev-parse --short HEAD says where these files come from."
        )
    root, weights = (str(Path(place).resolve()) if place else "" for place in (options.root, options.weights))
    found = steps(root or ("nowhere" if options.take else ""), weights, options.network_settings, options.workers)
    try:
        wanted = chosen(found, options.steps or list(found))
        again = chosen(found, options.again)
    except ValueError as unknown:
        more = "" if root else "; --root adds those that train"
        parser.error(f"{unknown} is no step here; there are {', '.join(found)}{more}")
    kept = Kept(Path(options.kept).resolve())
    if options.take:
        return take(found, kept)
    if not torch.cuda.is_available():
        raise SystemExit("a GPU must be there, got none; on a CPU there is make bench.")
    if not exactly(now):
        print(f"files differ from commit {now[:-1]}, so all of it is measured anew each time; commit them first.")
    for name, lacking in {name: step.lacks() for name, step in wanted.items()}.items():
        if lacking:
            parser.error(
                f"{name} needs {', '.join(lacking)}, which this Python lacks; bring it, or leave {name} out of --steps"
            )
    for name in again:
        kept.note(name, Record(took=kept.record(name, now).took))
    for number in (signal.SIGTERM, signal.SIGINT):  # a shell lets what it runs in the background ignore the latter
        signal.signal(number, signal.default_int_handler)
    try:
        outcome = work(wanted, kept, options.minutes * 60)
    except KeyboardInterrupt:
        raise SystemExit("stopped; go on with the same command") from None
    for name in outcome.failed:
        print(f"\n{name}, of which some failed, ends with:")
        print("\n".join(kept.log(name).read_text(errors="replace").splitlines()[-TOLD:]))
    said = [f"failed in part: {', '.join(outcome.failed)}"] if outcome.failed else []
    if outcome.left:
        what = ", ".join(f"{name} ({words})" for name, words in outcome.left.items())
        minutes = wording.count(math.ceil(outcome.seconds / 60), "minute")
        said.append(f"left: {what}; {minutes} or more in all; go on with the same command")
    if said:
        raise SystemExit("\n".join(said))


if __name__ == "__main__":
    main()
