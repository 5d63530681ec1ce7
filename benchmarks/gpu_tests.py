"""Run the tests marked ``gpu`` and record what passed where, and why what did not; the ordinary test run has no such device.

    python benchmarks/gpu_tests.py [options of pytest, such as -n 8]     writes benchmarks/results/gpu-tests.json
    python benchmarks/gpu_tests.py --go-on ...                           only what has not passed at this commit

What is stopped is recorded as far as it came, and says so.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from harness import ENDED, RESULTS, ROOT, at_hand, conditions, write

RESULT = "gpu-tests.json"
STOPPED = "was running when the tests were stopped"
NONE_LEFT = 5
"""What pytest ends with where there is no test to run."""
SAVING = 5.0
"""Seconds that pytest has to end by itself."""


def run(options: list[str], lines: Path, passed: list[str]) -> int | None:
    """Let pytest write its lines; how it ended, None where it was stopped."""
    leave = lines.with_name("passed.json")
    leave.write_text(json.dumps(passed))
    beside = str(Path(__file__).resolve().parent)
    path = os.pathsep.join(filter(None, (beside, os.environ.get("PYTHONPATH"))))
    command = [sys.executable, "-m", "pytest", "-q", "-m", "gpu", "-p", "no:cacheprovider"]
    command += ["-p", "no:benchmark"]  # it objects to several processes
    command += ["-p", "gpu_record", f"--lines={lines}", f"--passed={leave}", *options]
    # Only files that have some: reading all tests takes as long as running these.
    files = [str(path) for path in sorted((ROOT / "tests").rglob("test_*.py")) if "mark.gpu" in path.read_text()]
    process = subprocess.Popen([*command, *files], cwd=ROOT, env=os.environ | {"PYTHONPATH": path})
    try:
        return process.wait()
    except KeyboardInterrupt:  # pytest hears of it too where it comes from a terminal
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(SAVING)
        return None
    finally:
        process.kill()
        process.wait()


def name(test: str) -> str:
    """What a test is called in the record, its parameters left out.

    >>> name("tests/losses/test_engine.py::TestOne::test_two[a-b]")
    'tests.losses.test_engine.TestOne.test_two'
    """
    file, _, rest = test.partition("::")
    return ".".join([*Path(file).with_suffix("").parts, *rest.split("[")[0].split("::")]).rstrip(".")


def record(lines: Iterable[str], passed: list[str]) -> dict[str, Any]:
    """What came of the tests that lines tell of, and of those that passed before."""
    found = dict.fromkeys(passed, "passed")
    why: dict[str, str] = {}
    for line in map(json.loads, lines):
        test, what = line["test"], line["what"]
        if what == "begun":
            found[test], why[test] = "failed", STOPPED
        elif what == "ended":
            if why.get(test) == STOPPED:
                found[test] = "passed"
                del why[test]
        else:
            found[test], why[test] = what, line["why"]
    counts: dict[str, dict[str, int]] = {}
    for test, what in sorted(found.items()):
        counts.setdefault(name(test), {"passed": 0, "not": 0})["passed" if what == "passed" else "not"] += 1
    outcomes = [*found.values()]
    totals = {
        "tests": len(found),
        "failures": outcomes.count("failed"),
        "errors": 0,
        "skipped": outcomes.count("skipped"),
    }
    return {
        "totals": totals,
        "tests": counts,
        "why not": {test: text for test, text in why.items() if found[test] == "failed"},
        "passed": [test for test, what in found.items() if what == "passed"],
    }


def before() -> list[str]:
    """Tests that passed on this device at this commit, of a run that was stopped or in which others did not."""
    path = RESULTS / RESULT
    old = json.loads(path.read_text()) if path.exists() else {}
    return list(old["passed"]) if "passed" in old and at_hand(old["conditions"], conditions()) else []


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("--go-on", action="store_true", help="leave out tests that passed at this commit")
    own, options = parser.parse_known_args()
    passed = before() if own.go_on else []
    with tempfile.TemporaryDirectory() as folder:
        lines = Path(folder) / "lines.jsonl"
        lines.touch()
        code = run(options, lines, passed)
        found = record(lines.read_text().splitlines(), passed)
    if code == NONE_LEFT and passed:
        code = 0
    whole = code in (0, 1)  # by pytest's book: all passed, or some failed; Python without pytest ends with 1 too
    if whole and not found["why not"]:
        del found["passed"]  # nobody will go on from here
    if not found["tests"]:
        why = "stopped before the first test" if code is None else f"no test was run, pytest ended with {code}"
        sys.exit(f"{why}; nothing is recorded.")
    print("saved", write(RESULT, {"conditions": conditions(), "whole": whole, **found}))
    for test, text in found["why not"].items():
        print(f"not passed: {test}: {(text.strip().splitlines() or [''])[-1]}")
    sys.exit(ENDED if code == 1 else 130 if code is None else code)


if __name__ == "__main__":
    main()
