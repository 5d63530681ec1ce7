"""A result says on what it was made."""

from __future__ import annotations

import platform
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from nearkin.benchmark import where as place
from nearkin.benchmark.where import where
from nearkin.tournament.unlike import unlike
from tests.tournament.made import result

LISTED = (
    "processor\t: 0\nmodel name\t: Some Processor 9000 @ 3.2GHz\nprocessor\t: 1\nmodel name\t: Some Processor 9000\n"
)


@pytest.fixture
def listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    file = tmp_path / "cpuinfo"
    monkeypatch.setattr(place, "CPUS", file)
    return file


def test_a_processor_is_named_with_the_threads_of_the_run(listed: Path) -> None:
    listed.write_text(LISTED)
    assert where("cpu", threads=3)["device"] == "Some Processor 9000 @ 3.2GHz, 3 threads"
    assert where("cpu", threads=1)["device"].endswith(", 1 thread")
    assert where("cpu")["device"].endswith(f", {torch.get_num_threads()} thread{'s'[: torch.get_num_threads() > 1]}")


@pytest.mark.parametrize("content", [None, "processor\t: 0\nBogoMIPS\t: 50.00\n"])
def test_where_nothing_names_it_the_kind_of_processor_is_said(listed: Path, content: str | None) -> None:
    if content is not None:
        listed.write_text(content)
    assert where("cpu", threads=2)["device"] == f"{platform.processor() or platform.machine()}, 2 threads"


def test_results_that_have_only_the_kind_of_processor_are_of_no_other_kind_of_device() -> None:
    runs = [replace(result("margin"), where={"device": "x86_64"}), replace(result("triplet"), where=where("cpu"))]
    assert [run.device for run in runs] == ["CPU", "CPU"] and unlike(runs) == []
