"""The file of results: what is read from it, and what no run can have written."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from nearkin import evaluation, results
from nearkin.data.archive import extract
from tests.tournament.made import asked, result

ROOT = Path(__file__).parents[1]


def written(folder: Path, **changes: Any) -> Path:
    """A file with a good line and one that is changed."""
    path = folder / "own.jsonl"
    results.append(path, result("margin"))
    path.write_bytes(path.read_bytes() + results.line(result("triplet", **changes)))
    return path


def test_a_path_may_be_text(tmp_path: Path) -> None:
    results.append(str(tmp_path / results.FILE), result("margin"))
    assert results.read(str(tmp_path)) == results.read(tmp_path) == [result("margin")]


@pytest.mark.parametrize(
    ("changes", "came"),
    [
        ({"seed": "0"}, "seed '0'"),
        ({"dim": 8.0}, "dim 8.0"),
        ({"network": None}, "network None"),
        ({"where": {"device": Path}}, "Object of type type is not JSON serializable"),
        ({"metrics": {"nmi": 79.5}}, "nmi 79.5, which is no share from 0 to 1 (percent divided by 100)"),
    ],
)
def test_what_could_not_be_read_is_not_written(tmp_path: Path, changes: dict[str, Any], came: str) -> None:
    path = tmp_path / results.FILE
    with pytest.raises(ValueError) as caught:
        results.append(path, result("margin", **changes))
    assert str(caught.value) == f"result must be one that can be read again, got {came}; nothing was written."
    assert not path.exists()


@pytest.mark.parametrize("status", ["ok", "finished", ""])
def test_another_status_is_no_failure(tmp_path: Path, status: str) -> None:
    path = written(tmp_path, status=status)
    with pytest.raises(ValueError) as caught:
        results.read(path)
    assert str(caught.value) == (
        f"{path} line 2 must be a result, got the status {status!r}, which is neither 'done' nor 'failed'; "
        f"mend or remove the line."
    )


@pytest.mark.parametrize("part", ["metrics", "validation", "test_feedback"])
@pytest.mark.parametrize(("name", "value"), [("recall@1", 79.5), ("recall@10", -0.1), ("map@r", 12), ("nmi", 1.1)])
def test_percent_are_no_shares(tmp_path: Path, part: str, name: str, value: float) -> None:
    path = written(tmp_path, **{part: {"recall@2": 0.5, name: value}})
    with pytest.raises(ValueError) as caught:
        results.read(path)
    assert str(caught.value) == (
        f"{path} line 2 must be a result, got {name} {value:g}, which is no share from 0 to 1 (percent divided by 100); "
        f"mend or remove the line."
    )


def test_what_is_no_share_may_be_any_number(tmp_path: Path) -> None:
    metrics = {"recall@1": 1 + 1e-12, "nmi": -1e-12, "map@r": math.nan, "separation": 7.5}
    path = written(tmp_path, metrics=metrics, validation={"epoch": 14, "queries": 577}, status="failed")
    assert results.read(path)[1].validation == {"epoch": 14, "queries": 577}


@pytest.mark.parametrize(
    "archive", sorted((ROOT / "benchmarks" / "results").glob("*.tar.xz")), ids=lambda path: path.stem
)
def test_the_results_of_the_repository_are_read(archive: Path, tmp_path: Path) -> None:
    extract(archive, tmp_path)
    assert all(found.done for found in results.read(tmp_path / results.FILE))


@pytest.mark.parametrize(("name", "value"), [("metrics", None), ("network", None), ("seed", "0"), ("where", 3)])
def test_what_is_of_another_kind_is_named(tmp_path: Path, name: str, value: Any) -> None:
    path = written(tmp_path, **{name: value})
    results.append(path, result("contrastive"))  # so that the line is no torn one at the end
    with pytest.raises(ValueError, match=rf"line 2 must be a result, got {name} {value!r}; mend or remove the line\."):
        results.read(path)


def test_a_file_that_is_gone_can_be_made_again(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"make one with nearkin bench GRID\.toml\."):
        results.read(tmp_path)
    (tmp_path / "runs" / "a").mkdir(parents=True)
    (tmp_path / "runs" / "a" / "job.json").touch()
    with pytest.raises(ValueError, match=r"make the file again with .* bench rebuild"):
        results.read(tmp_path)


def test_what_the_grid_asks_for_and_has_not_got_is_missing(tmp_path: Path) -> None:
    done, later = result("margin"), result("triplet", 3, dim=64, protocol="cross_validation", fold=2)
    results.append(tmp_path / results.FILE, done)
    asked(tmp_path, later, done)
    found = results.read(tmp_path)
    assert found == [done, replace(later, status=results.MISSING, metrics={}, folder="")]
    assert not found[1].done and results.read(tmp_path / results.FILE) == found
    results.append(tmp_path / results.FILE, later)
    assert results.read(tmp_path) == [done, later]


def test_models_from_elsewhere_are_no_part_of_the_grid_and_never_missing(tmp_path: Path) -> None:
    other = result("own", id=f"{results.ELSEWHERE}1")
    for run in (result("margin"), other):
        results.append(tmp_path / results.FILE, run)
    asked(tmp_path, result("margin"))
    assert results.read(tmp_path) == [result("margin"), other]


def test_of_a_list_of_ids_the_missing_ones_are_counted(tmp_path: Path) -> None:
    results.append(tmp_path / results.FILE, result("margin"))
    (tmp_path / results.CURRENT).write_text(json.dumps([result("margin").id, "one", "other"]))
    with pytest.warns(UserWarning) as caught:
        assert results.read(tmp_path) == [result("margin")]
    assert [str(warning.message) for warning in caught] == [
        f"{tmp_path / results.FILE}: 2 of 3 runs of the grid are missing; give nearkin bench its grid again to see which."
    ]


@pytest.mark.parametrize(
    ("content", "came"),
    [("{}", "a dict"), ("[3]", "a int"), ('[{"id": "a"}]', "no 'loss'"), ("[", "Expecting value")],
)
def test_a_damaged_list_of_the_grid_is_told_of(tmp_path: Path, content: str, came: str) -> None:
    results.append(tmp_path / results.FILE, result("margin"))
    (tmp_path / results.CURRENT).write_text(content)
    with pytest.raises(ValueError) as caught:
        results.read(tmp_path)
    told = str(caught.value)
    assert told.startswith(f"{tmp_path / results.CURRENT} must be a list of runs, got {came}")
    assert told.endswith("; give nearkin bench its grid again.")


def test_no_line_says_that_its_run_is_missing(tmp_path: Path) -> None:
    path = written(tmp_path, status=results.MISSING)
    with pytest.raises(ValueError, match="got the status 'missing', which is neither 'done' nor 'failed'"):
        results.read(path)


def test_every_measure_has_a_heading() -> None:
    assert {"recall", *results.MEASURES} == set(evaluation.METRICS)
    found = evaluation.evaluate(torch.eye(6), [0, 0, 1, 1, 2, 2], ks=(1, 10))
    measured = {name for name in found if results.is_share(name)}
    assert measured == found.keys() - {"queries", "left_out"}
    assert [results.heading(name) for name in found if name in measured] == [
        "R@1", "R@10", "R-prec", "MAP@R", "mAP", "NMI", "F1"
    ]  # fmt: skip
