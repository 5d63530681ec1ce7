"""The record of tests on a GPU: whatever ends them, what came of each is known."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.benchmark.scripts import ROOT, script
from tests.patience import PATIENCE, until

TESTS = """
import pathlib, time
import pytest

pytestmark = pytest.mark.gpu
HERE = pathlib.Path(__file__).parent

@pytest.mark.parametrize("n", [1, 2])
def test_good(n):
    with (HERE / "good").open("a") as file:
        file.write("x")

def test_bad():
    assert (HERE / "mended").exists(), "not mended"

def test_skipped():
    pytest.skip("no room")

def test_hangs():
    if (HERE / "hang").exists():
        (HERE / "hanging").touch()
        time.sleep(600)
"""
DRIVER = """
import pathlib, sys
sys.path.insert(0, sys.argv.pop(1))
import harness
harness.ROOT = pathlib.Path(sys.argv.pop(1))
harness.RESULTS = harness.ROOT / "results"
import gpu_tests
gpu_tests.SAVING = 0.5
gpu_tests.main()
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_some.py").write_text(TESTS)
    (tmp_path / "tests" / "test_other.py").write_text("def test_of_a_cpu():\n    assert False\n")
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = gpu: on a card\n")
    return tmp_path


def start(folder: Path, *words: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", DRIVER, str(ROOT / "benchmarks"), str(folder), *words]
    environment = os.environ | {"COMMIT": "abc1234"}
    return subprocess.Popen(
        command, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True
    )


def ended(process: subprocess.Popen[str]) -> tuple[int, str]:
    try:
        said = process.communicate(timeout=PATIENCE)[0]
        return process.returncode, said
    finally:
        process.kill()


def content(folder: Path) -> dict[str, Any]:
    return dict(json.loads((folder / "results" / "gpu-tests.json").read_text()))


@pytest.mark.parametrize("words", [(), ("-n", "2")])
def test_a_failure_is_recorded_and_only_what_did_not_pass_is_run_again(folder: Path, words: tuple[str, ...]) -> None:
    code, said = ended(start(folder, *words))
    found = content(folder)
    assert code == script("harness").ENDED and "not passed: tests/test_some.py::test_bad: " in said, said
    assert found["whole"] and found["totals"] == {"tests": 5, "failures": 1, "errors": 0, "skipped": 1}
    assert found["tests"]["tests.test_some.test_good"] == {"passed": 2, "not": 0}
    assert found["tests"]["tests.test_some.test_skipped"] == {"passed": 0, "not": 1}
    assert "not mended" in found["why not"]["tests/test_some.py::test_bad"]
    (folder / "tests" / "mended").touch()
    code, said = ended(start(folder, "--go-on", *words))
    assert code == 0 and (folder / "tests" / "good").read_text() == "xx", said
    assert content(folder)["totals"] == {"tests": 5, "failures": 0, "errors": 0, "skipped": 1}
    assert "passed" not in content(folder)


def test_what_is_stopped_is_recorded_as_far_as_it_came(folder: Path) -> None:
    (folder / "tests" / "hang").touch()
    process = start(folder)
    until((folder / "tests" / "hanging").exists)
    os.killpg(process.pid, signal.SIGINT)
    code, said = ended(process)
    found = content(folder)
    assert code == 130 and not found["whole"], said
    assert found["tests"]["tests.test_some.test_good"] == {"passed": 2, "not": 0}
    assert "tests/test_some.py::test_hangs" in found["why not"]
    (folder / "tests" / "hang").unlink()
    (folder / "tests" / "mended").touch()
    code, said = ended(start(folder, "--go-on"))
    assert code == 0 and content(folder)["whole"] and (folder / "tests" / "good").read_text() == "xx", said


def test_what_a_crash_leaves_is_read() -> None:
    module = script("gpu_tests")
    lines = [
        {"test": "tests/a.py::test_one[x]", "what": "begun", "why": ""},
        {"test": "tests/a.py::test_one[x]", "what": "ended", "why": ""},
        {"test": "tests/a.py::test_one[y]", "what": "begun", "why": ""},
        {"test": "tests/b.py", "what": "failed", "why": "cannot be imported"},
    ]
    found = module.record(map(json.dumps, lines), ["tests/a.py::test_two"])
    assert found["tests"] == {
        "tests.a.test_one": {"passed": 1, "not": 1}, "tests.a.test_two": {"passed": 1, "not": 0},
        "tests.b": {"passed": 0, "not": 1},
    }  # fmt: skip
    assert found["why not"] == {"tests/a.py::test_one[y]": module.STOPPED, "tests/b.py": "cannot be imported"}
    assert found["totals"]["failures"] == 2


def test_help_is_our_own() -> None:
    command = [sys.executable, str(ROOT / "benchmarks" / "gpu_tests.py"), "--help"]
    found = subprocess.run(command, capture_output=True, text=True)
    assert found.returncode == 0 and "benchmarks/gpu_tests.py [options of pytest" in found.stdout


def test_marked_tests_are_found_without_importing_them(tmp_path: Path) -> None:
    place = tmp_path / "tests" / "part"
    place.mkdir(parents=True)
    (place / "test_all.py").write_text(
        "import nothing\npytestmark = [pytest.mark.slow, pytest.mark.gpu]\ndef test_a(): ...\ndef helper(): ...\n"
    )
    (place / "test_some.py").write_text(
        "@pytest.mark.gpu\n@pytest.mark.parametrize('n', [1])\ndef test_b(): ...\ndef test_c(): ...\n"
        "class TestD:\n    @pytest.mark.gpu\n    def test_e(self): ...\n    def test_f(self): ...\n"
    )
    assert script("marked").marked(tmp_path / "tests") == [
        "tests.part.test_all.test_a", "tests.part.test_some.test_b", "tests.part.test_some.TestD.test_e",
    ]  # fmt: skip


def test_the_page_says_what_was_not_run() -> None:
    page = script("gpu_page")
    found = json.loads((ROOT / "benchmarks" / "results" / "gpu-tests.json").read_text())
    ran = [name for name, count in found["tests"].items() if count["passed"]]
    (line,) = page.tests_page(found, ran)
    cases = int(found["totals"]["tests"]) - int(found["totals"]["skipped"])
    assert line.startswith(f"{len(ran)} tests in {cases} cases passed, none failed. Measured on ")
    lines = page.tests_page(found, [*ran, "tests.new.test_one"])
    assert lines[1:] == ["", f"Of {len(ran) + 1} such tests when this page was written, not among them: new.test_one."]
    assert page.tests_page({}, []) == ["Not run yet: `python benchmarks/gpu_tests.py`."]


def test_nothing_is_recorded_where_no_test_can_run(folder: Path) -> None:
    """Python without pytest ends as pytest does of which some tests failed; what was recorded before stays."""
    (folder / "results").mkdir()
    (folder / "results" / "gpu-tests.json").write_text("before")
    (folder / "conftest.py").write_text("raise SystemExit(1)\n")
    run = subprocess.run(
        [sys.executable, "-c", DRIVER, str(ROOT / "benchmarks"), str(folder)], capture_output=True, text=True
    )
    assert run.returncode not in (0, 3)
    assert "no test was run, pytest ended with" in run.stderr and "nothing is recorded" in run.stderr
    assert (folder / "results" / "gpu-tests.json").read_text() == "before"
