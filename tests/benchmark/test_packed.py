"""What is packed of a benchmark gives the report that the benchmark gave, in little room."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from safetensors.numpy import save

from nearkin import results
from nearkin.report import read, write
from nearkin.report.sections import confused
from nearkin.report.subject import subjects
from nearkin.train.answers import NEAREST
from tests.benchmark.scripts import script
from tests.report.made import Page, add, benchmark, result


@pytest.fixture(scope="module")
def packed() -> ModuleType:
    return script("packed")


def test_what_was_packed_gives_the_same_report(packed: ModuleType, tmp_path: Path) -> None:
    folder, archive = tmp_path / "bench", tmp_path / "bench.tar.xz"
    benchmark(folder)
    [before] = subjects(read(folder, pictures=False))
    packed.keep(folder, archive)
    with packed.unpacked(archive) as place:
        bench = read(place, pictures=False)
        [after] = subjects(bench)
        write(bench, tmp_path / "report", formats=())
        assert bench.log(after.run, "epoch") == read(folder).log(before.run, "epoch") != []
    page = Page((tmp_path / "report" / "index.html").read_text())
    pairs = [(entry.one, entry.other, entry.mistakes) for entry in confused.confusions(before)]
    assert pairs == [(entry.one, entry.other, entry.mistakes) for entry in confused.confusions(after)]
    one, other, mistakes = pairs[0]
    assert f"bird {one} and bird {other}" in page.sections["confused"]
    assert f"{mistakes} of " in page.sections["confused"]
    assert "Values of the training loss are comparable" in page.sections["curves"]
    assert "kept no neighbours" not in page.sections["confused"]


def test_runs_that_kept_no_neighbours_say_so(tmp_path: Path) -> None:
    for run in benchmark(tmp_path):
        found = results.queries(tmp_path, run)
        facts = {"class_names": json.dumps(found.pop("class_names"))}
        arrays = {name: values for name, values in found.items() if name not in ("nearest", "similarity")}
        (tmp_path / run.folder / results.QUERIES).write_bytes(save(arrays, facts))
        log = tmp_path / run.folder / "log.jsonl"
        log.write_text("".join(line for line in log.read_text().splitlines(True) if '"epoch", ' not in line))
    write(read(tmp_path, pictures=False), tmp_path / "report", formats=())
    page = Page((tmp_path / "report" / "index.html").read_text())
    assert "The runs on cub200 kept no neighbours, so that its most confused" in page.sections["confused"]
    assert "chosen" in page.sections["curves"] and "No run kept its training loss." in page.sections["curves"]


@pytest.mark.parametrize(("rows", "kind"), [(100, np.int8), (5924, np.int16), (60502, np.int32)])
def test_rows_are_held_in_the_least_integers(packed: ModuleType, rows: int, kind: type) -> None:
    nearest = np.array([[-1, 0], [rows - 1, 1]], np.int32)
    found = packed.small("nearest", nearest)
    assert found.dtype == kind and (found == nearest).all()
    assert packed.small("similarity", np.ones(3, np.float32)).dtype == np.float16
    assert packed.small("recall@1", np.ones(3, np.float32)).dtype == np.float32


def test_forty_eight_runs_on_birds_fit_into_sixteen_mebibytes(packed: ModuleType, tmp_path: Path) -> None:
    """Rows drawn at random, which no archive makes smaller than their bits: what networks find repeats itself more."""
    folder, queries, rng = tmp_path / "bench", 5924, np.random.default_rng(0)
    sizes = []
    for number in range(2):
        run = result("margin", number)
        place = folder / run.folder
        place.mkdir(parents=True)
        arrays = {
            "rows": np.arange(queries),
            "labels": np.arange(queries) // 60,
            "nearest": rng.integers(0, queries, (queries, NEAREST)).astype(np.int32),
            "similarity": np.sort(rng.uniform(0.4, 1, (queries, NEAREST)).astype(np.float32))[:, ::-1].copy(),
        }
        for name in packed.MEASURES:
            shares = rng.random(queries) < 0.7 if name.startswith("recall") else rng.random(queries)
            arrays[name] = shares.astype(np.float32)
        (place / results.QUERIES).write_bytes(save(arrays, {"class_names": "[]"}))
        (place / "log.jsonl").write_text("")
        add(folder, run)
        archive = tmp_path / f"{number}.tar.xz"
        packed.keep(folder, archive)
        sizes.append(archive.stat().st_size)
    assert 48 * (sizes[1] - sizes[0]) < 16 * 2**20
