"""``nearkin bench``, ``nearkin bench status`` and ``nearkin bench rebuild``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from nearkin import calling, config, results
from nearkin.benchmark import ahead, kinds, ray_cluster, smoke
from nearkin.benchmark import grid as grids
from nearkin.benchmark.board import Board, board, name
from nearkin.benchmark.former import known
from nearkin.benchmark.grid import Grid
from nearkin.benchmark.renamed import renamed
from nearkin.benchmark.schedule import Schedule
from nearkin.benchmark.state import DONE, FAILED, WAITING, rebuild, states
from nearkin.checks import Limit
from nearkin.config import option
from nearkin.results import Result
from nearkin.train.stop import terminable
from nearkin.wording import count as counted

WHOLE = Limit(low=0, whole=True)


@dataclass(frozen=True)
class Bench:
    """The flags of ``nearkin bench``."""

    grid: str = option("", "TOML file that says what to compare, or a name", positional=True, optional=True)
    settings: dict[str, Any] = option({}, "settings of all runs, such as root=FOLDER weights=FILE")
    out: str = option("", "folder of the runs and results; default: bench/NAME OF THE GRID")
    executor: str = option("local", "where to run: processes of this machine, or a Ray cluster", ("local", "ray"))
    address: str = option("", "address of a Ray cluster that is there already; empty: start one here")
    workers: int = option(0, "runs at a time; 0: one for each GPU, or one on a CPU", WHOLE)
    retry_failed: bool = option(False, "try again what failed in the past")
    smoke: bool = option(False, "run the whole path on a few characters, in under a minute")
    dry_run: bool = option(False, "list the runs and stop")

    def __post_init__(self) -> None:
        config.check("bench", self)
        if bool(self.grid) == self.smoke:
            came = "both" if self.smoke else "neither"
            raise ValueError(f"bench: give a grid or --smoke, got {came}; try nearkin bench --smoke.")
        if self.address and self.executor != "ray":
            raise ValueError(f"bench: address must go with executor ray, got {self.executor}; add --executor ray.")


def run(command: Bench) -> int:
    """Compare losses: every run of a grid, each once.

    nearkin bench grid.toml                          go on until all runs are done; stop and start at will
    nearkin bench grid.toml --workers 2              two at a time
    nearkin bench grid.toml --executor ray           on a Ray cluster started here, or --address HOST:PORT
    nearkin bench status bench/grid                  how far it is
    nearkin bench rebuild bench/grid                 make results.jsonl again from the folders of the runs
    nearkin bench --smoke                            the whole path in under a minute
    nearkin bench losses --settings root=CUB_200_2011 weights=resnet50.safetensors
    nearkin bench losses --settings data=folder root=my/images network=efficientnet_lite0 weights=package dim=128

    Grids that come with nearkin, by name: losses, deep_dive, cross_validation, splits, unified_view, nra_power,
    ranked_list_alpha, ranked_list_margin, ranked_list_temperature, ranked_list_batch, ranked_list_levels,
    ranked_list_levels_fast.

    A grid is a TOML file:

        losses = ["proxy_anchor", "margin", {label = "ranked_list L/M/H", loss = "ranked_list", levels = "lmh"}]
        data = [{data = "cub200", root = "CUB_200_2011"}]
        networks = [{network = "resnet50", weights = "resnet50.safetensors"}]
        protocols = ["fixed_validation"]
        seeds = [0, 1, 2]

        [settings]
        epochs = 15
    """
    out = Path(command.out or f"bench/{'smoke' if command.smoke else Path(command.grid).stem}")
    if out.exists() and not out.is_dir():
        raise ValueError(f"out must be a folder, got {str(out)!r}, which is a file; choose another.")
    grid = (
        grids.parse(smoke.GRID, "smoke", over=command.settings)
        if command.smoke
        else grids.read(command.grid, command.settings)
    )
    grid = replace(grid, jobs=known(grid.jobs, out))
    # A cluster that is there already may have the data and the devices where this machine has none.
    here = command.executor == "local" or not ray_cluster.address_of(command.address)
    if command.dry_run:
        for job in grid.jobs:
            print(f"{job.id}  {name(job)}")
        print(counted(len(grid.jobs), "run"))
        for note in ahead.check(grid.jobs, out.resolve(), command.retry_failed, here):
            print(f"note: {note}")
        return 0
    if command.smoke:
        smoke.check()
    grids.check_own(out, grid)
    odd = ahead.check(grid.jobs, out.resolve(), command.retry_failed, here)
    for note in (*odd, *(kinds.changed(grid.jobs, out, command.retry_failed) if here else ())):
        print(f"note: {note}")
    for note in renamed(grid.jobs, out):
        print(f"note: {note}")
    grids.copy(grid, out)
    shown = board(grid.jobs)
    try:
        with terminable():
            schedule = bench(grid, out, command, shown)
    except KeyboardInterrupt as stop:
        raise type(stop)(f"stopped; go on with the same command, or see nearkin bench status {out}.") from None
    finally:
        shown.close()
    if command.smoke:
        smoke.finish(out)
    failed = [result for result in schedule.finished.values() if not result.done]
    print(f"{len(schedule.finished) - len(failed)} of {len(grid.jobs)} runs done; see {out / results.FILE}")
    for line in (
        *failures(failed),
        *next_steps(schedule, out, command.smoke),
        *filter(None, [results.damage(out / results.FILE)]),
    ):
        print(line)
    return 1 if failed else 0


def next_steps(schedule: Schedule, out: Path, judged: bool) -> list[str]:
    """What a person does with results: who wins, where there are two losses, and the page; ``judged``: both are done."""
    losses = {result.label for result in schedule.finished.values() if result.done}
    if judged or not losses:
        return []
    steps = [calling.line("tournament", out)] if len(losses) > 1 else []
    return [f"next: {line}" for line in (*steps, calling.line("report", out))]


def failures(failed: Sequence[Result]) -> list[str]:
    """What failed and why, a line for each reason, and how to try again."""
    reasons: dict[str, list[Result]] = {}
    for result in failed:
        reasons.setdefault(result.error.rstrip(". "), []).append(result)
    lines = []
    for reason, found in reasons.items():
        one = found[0]
        which = f"{one.label}, seed {one.seed}" + (f", fold {one.fold}" if one.protocol == "cross_validation" else "")
        others = f" and {len(found) - 1} more" if len(found) > 1 else ""
        lines.append(f"failed: {which}{others}: {reason}")
    return [*lines, "try again with --retry-failed"] if lines else []


def bench(grid: Grid, out: Path, command: Bench, shown: Board) -> Schedule:
    """Do what is left of a grid."""
    from nearkin.benchmark import local

    schedule = Schedule(grid.jobs, out.resolve(), grid.retries, command.retry_failed)
    # What failed and is not tried again is no news either.
    shown.known({job.id: job.result(out) for job in grid.jobs if job.finished(out) or job.id in schedule.given_up})
    if command.executor == "ray":
        ray_cluster.run(
            schedule, shown, address=command.address, workers=command.workers, keep_checkpoints=grid.keep_checkpoints
        )
    else:
        local.run(schedule, shown, workers=command.workers, keep_checkpoints=grid.keep_checkpoints)
    return schedule


@dataclass(frozen=True)
class Status:
    """The flags of ``nearkin bench status``."""

    out: str = option("", "folder of a benchmark", positional=True)
    each: bool = option(False, "list every run")

    def __post_init__(self) -> None:
        config.check("bench status", self)


def status(command: Status) -> None:
    """How far a benchmark is: what is done, running, interrupted, failed and left.

    nearkin bench status bench/grid --each
    """
    out = Path(command.out)
    grid = grids.of(out)
    found = states(grid.jobs, out)
    counts = Counter(state.status for state in found)
    print(f"{out}: " + ", ".join(f"{count} {status}" for status, count in counts.items()))
    width = max(len(state.job.label) for state in found)
    for label in dict.fromkeys(state.job.label for state in found):
        own = Counter(state.status for state in found if state.job.label == label)
        print(f"  {label:{width}s}  " + ", ".join(f"{count} {status}" for status, count in own.items()))
    for state in found:
        if command.each or state.status == FAILED or (state.status == WAITING and state.note):
            print(f"{state.status:12s} {state.job.id}  {name(state.job)}" + (f": {state.note}" if state.note else ""))


@dataclass(frozen=True)
class Rebuild:
    """The flags of ``nearkin bench rebuild``."""

    out: str = option("", "folder of a benchmark", positional=True)

    def __post_init__(self) -> None:
        config.check("bench rebuild", self)


def rebuild_results(command: Rebuild) -> None:
    """Make results.jsonl again from the folders of the runs.

    An old file that differs is kept as results.before.jsonl, or results.before-2.jsonl and so on where that is there.
    """
    found = rebuild(Path(command.out))
    done = sum(result.status == DONE for result in found)
    print(f"{done} results and {len(found) - done} failures in {Path(command.out) / results.FILE}")
