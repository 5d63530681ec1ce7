"""Everything that is measured on a GPU, as far as some minutes go; what is left goes on next time.

    python benchmarks/everything.py --root CUB_200_2011 --weights resnet50.safetensors --network-settings '{"stride": "1x1"}'
    python benchmarks/everything.py --minutes 9 --kept kept ...     on a device that is lent for ten minutes at a time
    python benchmarks/everything.py --steps tests engine            some of it, in this order

A step that was finished at the commit at hand is not repeated; one that is stopped keeps the rows and runs it has. Without
``--root`` there is no data to train on, and steps that train are left out. ``--kept`` is a folder that outlasts the machine:
results in it take the place of those here and packed runs are added to those here before a step; afterwards both are written
to it, with what the step prints as its log.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import lzma
import shutil
import signal
import subprocess
import sys
import tarfile
import time
from dataclasses import dataclass
from pathlib import Path

import torch
from harness import RESULTS, ROOT, commit
from packed import keep, unpacked

from nearkin import results

DONE = "done.json"
GRACE = 25.0
"""Seconds in which a step that is stopped may save."""
GRIDS = {
    "birds": "benchmarks/birds.toml",
    "ablations": "benchmarks/ablations.toml",
    "cross_validation": "cross_validation",
}


@dataclass(frozen=True)
class Step:
    """A command and where its results go; it is not begun with less than ``least`` seconds left. ``grid``: of runs."""

    command: list[str]
    result: str
    least: float
    grid: str = ""


def steps(root: str, weights: str, network: str, workers: int) -> dict[str, Step]:
    """What there is to measure, the shortest and most telling first."""

    def script(name: str, *words: str) -> list[str]:
        return [sys.executable, str(ROOT / "benchmarks" / f"{name}.py"), *words]

    engine = "engine-cuda.json"
    found = {
        "tests": Step(script("gpu_tests", "-n", "8"), "gpu-tests.json", 120),
        "engine": Step(script("engine", "--ahead", "--parts", "small", "large"), engine, 120),
        "exact": Step(script("engine", "--parts", "exact", "exact_large"), engine, 60),
        "huge": Step(script("engine", "--parts", "huge"), engine, 40),
        "million": Step(script("million"), "evaluation-cuda.json", 60),
        "sizes": Step(script("engine", "--ahead", "--parts", "sizes"), engine, 60),
        "profile": Step(script("engine", "--parts", "profile"), engine, 30),
    }
    if root:
        data = ["--root", root, "--weights", weights, "--network-settings", network]
        found["training"] = Step(script("training", *data), "training-cuda.json", 120)
        place = [f"root={root}", f"weights={weights}", f"network_settings={_toml(network)}"]
        for name, grid in GRIDS.items():
            words = ["bench", grid, "--out", f"bench/{name}", "--workers", str(workers), "--settings", *place]
            found[name] = Step([sys.executable, "-m", "nearkin", *words], f"{name}.tar.xz", 60, f"bench/{name}")
    return found


def _toml(network: str) -> str:
    return "{" + ", ".join(f"{key} = {json.dumps(value)}" for key, value in json.loads(network).items()) + "}"


def fetch(step: Step, kept: Path) -> None:
    """Put what was measured before where the step goes on from; what cannot be read is put aside."""
    before = kept / step.result
    if not before.exists():
        return
    try:
        if step.grid:
            with unpacked(before) as folder:
                _join(folder, ROOT / step.grid)
        else:
            json.loads(before.read_text())
            shutil.copyfile(before, RESULTS / step.result)
    except (OSError, EOFError, ValueError, tarfile.TarError, lzma.LZMAError) as error:
        aside = before.replace(before.with_name(f"{before.name}.damaged"))
        print(f"{before} cannot be read and is {aside.name} now: {error}", flush=True)


def _join(packed: Path, folder: Path) -> None:
    """Add the runs of a folder that another one lacks to it, with their lines in the results."""
    for run in (packed / "runs").glob("*"):
        if not (folder / "runs" / run.name / "metrics.json").exists():
            shutil.copytree(run, folder / "runs" / run.name, dirs_exist_ok=True)
    have = results.known(folder / results.FILE)
    for name, result in results.known(packed / results.FILE).items():
        if name not in have:
            results.append(folder / results.FILE, result)


def bring(step: Step, kept: Path) -> None:
    """Put what was measured where it outlasts the machine."""
    if not step.grid:
        if (RESULTS / step.result).exists():
            shutil.copyfile(RESULTS / step.result, kept / step.result)
    elif any(run.done for run in results.known(ROOT / step.grid / results.FILE).values()):
        keep(ROOT / step.grid, kept / step.result)


def before(kept: Path) -> dict[str, str]:
    """Which steps were finished, at which commits."""
    try:
        return dict(json.loads((kept / DONE).read_text()))
    except (OSError, ValueError):
        return {}


def go(name: str, step: Step, kept: Path, until: float) -> bool:
    """Do a step for as long as there is time; whether it came to its end without an error."""
    with (kept / f"{name}.log").open("ab") as log:
        process = subprocess.Popen(step.command, cwd=ROOT, stdout=log, stderr=subprocess.STDOUT, start_new_session=True)
        try:
            return process.wait(max(until - time.monotonic(), 0)) == 0
        except (subprocess.TimeoutExpired, KeyboardInterrupt) as stop:
            process.send_signal(signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(GRACE)
            if isinstance(stop, KeyboardInterrupt):
                raise
            return False
        finally:
            process.kill()
            process.wait()


def work(found: dict[str, Step], kept: Path, seconds: float) -> list[str]:
    """Do what is left; the names of steps that are left after that."""
    kept.mkdir(parents=True, exist_ok=True)
    RESULTS.mkdir(parents=True, exist_ok=True)
    done, now = before(kept), commit()
    named = now != "unknown" and not now.endswith("*")  # else nobody knows whether it is the same code
    end, left = time.monotonic() + seconds, []
    for name, step in found.items():
        room = end - GRACE - time.monotonic()
        fetch(step, kept)
        if named and done.get(name) == now:
            print(f"{name}: done before", flush=True)
            continue
        if room < step.least:
            left.append(name)
            print(f"{name}: no time left", flush=True)
            continue
        begun = time.monotonic()
        try:
            whole = go(name, step, kept, end - GRACE)
        finally:
            bring(step, kept)
        if whole:
            done[name] = now
            (kept / DONE).write_text(json.dumps(done, indent=1))
        else:
            left.append(name)
        print(f"{name}: {'done' if whole else 'not finished'}, {time.monotonic() - begun:.0f} s", flush=True)
    return left


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=1e6, help="how long the device is there (default: for good)")
    parser.add_argument("--kept", default="kept", help="folder for results, logs and packed runs")
    parser.add_argument("--steps", nargs="*", help="names of steps, in order")
    parser.add_argument("--root", default="", help="folder of CUB_200_2011")
    parser.add_argument("--weights", default="", help="file of ImageNet weights")
    parser.add_argument("--network-settings", default="{}", help="what these weights want, as JSON")
    parser.add_argument("--workers", type=int, default=3, help="runs at a time")
    options = parser.parse_args()
    root, weights = (str(Path(place).resolve()) if place else "" for place in (options.root, options.weights))
    found = steps(root, weights, options.network_settings, options.workers)
    unknown = [name for name in options.steps or [] if name not in found]
    if unknown:
        more = "" if options.root else "; --root adds those that train"
        parser.error(f"{unknown[0]} is no step here; there are {', '.join(found)}{more}")
    if not torch.cuda.is_available():
        raise SystemExit("a GPU must be there, got none; on a CPU there is make bench.")
    chosen = {name: found[name] for name in options.steps or found}
    left = work(chosen, Path(options.kept).resolve(), options.minutes * 60)
    if left:
        raise SystemExit(f"left: {', '.join(left)}; go on with the same command")


if __name__ == "__main__":
    main()
