"""A plugin of pytest that writes down each test when it begins and when it ended, so that what is stopped is not lost.

It also leaves out tests that a file names: those that passed before.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

WHY = 2000
"""Characters of a failure that are kept."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--lines", required=True, help="file to write to")
    parser.addoption("--passed", default="", help="file with names of tests to leave out")


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):  # of several processes the one that hears of all tests
        config.pluginmanager.register(Recorder(Path(config.getoption("--lines"))))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    file = config.getoption("--passed")
    passed = set(json.loads(Path(file).read_text())) if file else set()
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid in passed])
    items[:] = [item for item in items if item.nodeid not in passed]


class Recorder:
    def __init__(self, path: Path) -> None:
        self.file = path.open("a", buffering=1)

    def say(self, name: str, what: str, why: str = "") -> None:
        self.file.write(json.dumps({"test": name, "what": what, "why": why[-WHY:]}) + "\n")

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.say(nodeid, "begun")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if not report.passed:
            self.say(report.nodeid, report.outcome, report.longreprtext)
        elif report.when == "teardown":
            self.say(report.nodeid, "ended")

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.say(report.nodeid, "failed", report.longreprtext)
