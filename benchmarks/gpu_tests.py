"""Run the tests marked ``gpu`` and record what passed where, and why what did not; the ordinary test run has no such device.

python benchmarks/gpu_tests.py [options of pytest, such as -n 8]     writes benchmarks/results/gpu-tests.json
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from pathlib import Path

from harness import ROOT, conditions, write


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        done = subprocess.run(
            [
                sys.executable,
                "-m",
                "pytest",
                "-q",
                "-m",
                "gpu",
                "-p",
                "no:cacheprovider",
                "-p",
                "no:benchmark",  # it objects to several processes
                *sys.argv[1:],
                f"--junitxml={report}",
                "tests",
            ],
            cwd=ROOT,
        )
        suite = next(ElementTree.parse(report).getroot().iter("testsuite"))
    counts: dict[str, dict[str, int]] = {}
    why: dict[str, str] = {}
    for case in suite.iter("testcase"):
        place = counts.setdefault(
            case.attrib["classname"] + "." + case.attrib["name"].split("[")[0], {"passed": 0, "not": 0}
        )
        place["passed" if not list(case) else "not"] += 1
        for problem in (*case.iter("failure"), *case.iter("error")):
            why[f"{case.attrib['classname']}.{case.attrib['name']}"] = (problem.text or "")[-2000:]
    result = {"conditions": conditions(), "totals": {k: suite.attrib[k] for k in ("tests", "failures", "errors", "skipped")},
              "tests": counts, "why not": why}  # fmt: skip
    print("saved", write("gpu-tests.json", result))
    sys.exit(done.returncode)


if __name__ == "__main__":
    main()
