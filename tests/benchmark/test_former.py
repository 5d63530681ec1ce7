"""Ids hold what a loss comes to; runs under the ids of former versions, which held what was written, are not repeated."""

from __future__ import annotations

import hashlib
import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from nearkin import losses, results
from nearkin.benchmark import former
from nearkin.benchmark import grid as grids
from nearkin.benchmark.job import METRICS, Job
from nearkin.benchmark.schedule import Schedule
from nearkin.benchmark.state import rebuild, states
from nearkin.cli import main
from tests.benchmark.grids import grid

MEASURES = '{"validation": null, "test_feedback": null, "epoch": 1, "recall@1": 0.5}'


def job(loss: str, **settings: Any) -> Job:
    over = {"loss": [{"loss": loss, "loss_settings": settings}]}
    [made] = grids.parse('losses = ["margin"]\ndata = ["glyphs"]', over=over).jobs
    return made


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (job("multi_similarity"), job("raw")),
        (job("multi_similarity", epsilon=0.1), job("raw", alpha=2)),
        (job("margin", margin=1), job("margin", margin=1.0)),
        (job("margin", margin=0), job("margin", margin=-0.0)),
        (job("margin"), job("margin", margin=0.2, miner="distance_weighted")),
        (job("soft_triple"), job("soft_triple", centers=losses.create("soft_triple", classes=3, dim=3).centers)),
    ],
)
def test_what_comes_to_the_same_has_one_id(one: Job, other: Job) -> None:
    assert one.id == other.id and former.former(one) != former.former(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (job("margin"), job("margin", margin=0.3)),
        (job("margin"), job("margin", classes=4)),
        (job("margin"), job("triplet")),
        (job("margin", seed=0), job("margin")),  # one draws the same in every run
        (job("proxy_anchor"), job("proxy_anchor", classes=500)),
    ],
)
def test_what_differs_has_another_id(one: Job, other: Job) -> None:
    assert one.id != other.id


def test_a_name_of_a_recipe_is_nothing_but_what_it_fills() -> None:
    made = job("margin")
    assert replace(made, settings=replace(made.settings, recipe="deep_dive")).id == made.id


def test_another_default_is_another_id(monkeypatch: pytest.MonkeyPatch) -> None:
    class Other(losses.Margin):
        def __init__(self, *, margin: float = 0.25, **more: Any) -> None:
            super().__init__(margin=margin, **more)

    before = job("margin"), job("margin", margin=0.2)
    monkeypatch.setitem(losses.LOSSES, "margin", Other)
    after = job("margin"), job("margin", margin=0.2)
    assert before[0].id == before[1].id and after[0].id != after[1].id
    assert former.former(before[0]) == former.former(after[0])  # by which nobody could tell


def test_an_id_draws_nothing() -> None:
    before = torch.random.get_rng_state()
    assert job("proxy_anchor").id
    assert torch.equal(torch.random.get_rng_state(), before)


ONE_OF = "; leave one out."
SAME = "grid: each run must differ from the others, got {!r} and {!r}, which are the same run (loss {} with equal settings)"


@pytest.mark.parametrize(
    ("entries", "named"),
    [
        ('"multi_similarity", "triplet", "raw"', ("multi_similarity", "raw", "multi_similarity")),
        (
            '{label = "a", loss = "margin", loss_settings = {margin = 1}}, '
            '{label = "b", loss = "margin", loss_settings = {margin = 1.0}}',
            ("a", "b", "margin"),
        ),
        ('{label = "c", loss = "margin"}, {label = "d", loss = "margin", lr = 3e-5}', ("c", "d", "margin")),
    ],
)
def test_one_run_under_two_names_is_told_of_before_the_first(
    entries: str, named: tuple[str, str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = f'losses = [{entries}]\ndata = ["glyphs"]\n'
    with pytest.raises(ValueError) as caught:
        grids.parse(text)
    said = SAME.format(*named) + ONE_OF
    assert str(caught.value) == said
    (tmp_path / "grid.toml").write_text(text)
    assert main(["bench", str(tmp_path / "grid.toml"), "--out", str(tmp_path / "out")]) == 2
    assert said.removeprefix("grid") in capsys.readouterr().err and not (tmp_path / "out").exists()


def before(folder: Path, names: str) -> tuple[list[Job], Path]:
    """A grid in the folder of a benchmark that a former version began, which asked nothing of its losses."""
    out, path = folder / "out", grid(folder, names)
    read = grids._parse(path.read_text(), "grid.toml", folder, None)
    jobs = [replace(job, known=former.former(job)) for job in read.jobs]
    grids.copy(replace(read, jobs=tuple(jobs)), out)
    return jobs, out


def finish(made: Job, out: Path) -> None:
    made.save(out)
    (made.folder(out) / METRICS).write_text(MEASURES)
    results.append(out / results.FILE, made.result(out))


def test_runs_under_ids_of_before_are_not_repeated(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    jobs, out = before(tmp_path, '["margin", "triplet"]')
    plain = json.dumps(["glyphs", jobs[0].settings.identity()], sort_keys=True)
    assert jobs[0].id == hashlib.sha256(plain.encode()).hexdigest()[:12]  # as former versions wrote it
    for made in jobs:
        finish(made, out)
    kept = {path: path.read_bytes() for path in out.rglob("*") if path.is_file() and path.name != "grid.json"}
    assert main(["bench", str(tmp_path / "grid.toml"), "--out", str(out)]) == 0
    assert "2 of 2 runs done" in capsys.readouterr().out
    assert {path: path.read_bytes() for path in kept} == kept and len(list((out / "runs").iterdir())) == 2
    assert main(["bench", "status", str(out)]) == 0 and "2 done" in capsys.readouterr().out
    assert [found.id for found in rebuild(out)] == sorted(made.id for made in jobs)
    assert results.known(out / results.FILE) == {made.id: made.result(out) for made in jobs}


def test_runs_that_were_packed_without_their_settings_are_not_repeated(tmp_path: Path) -> None:
    """Archives keep lines of results and measures."""
    [made], out = before(tmp_path, '["margin"]')
    finish(made, out)
    (made.folder(out) / "job.json").unlink()
    assert [state.status for state in states(grids.of(out).jobs, out)] == ["done"]


def test_what_failed_or_was_begun_before_counts(tmp_path: Path) -> None:
    (failed, tried, begun, left), out = before(tmp_path, '["margin", "triplet", "contrastive", "n_pair"]')
    for made in (failed, tried, begun):
        made.save(out)
    for made in (failed, tried):
        made.note_failure(out, "no room")
    results.append(out / results.FILE, failed.result(out))
    (begun.folder(out) / "config.toml").touch()
    read = grids.of(out)
    assert [state.status for state in states(read.jobs, out)] == ["failed", "waiting", "interrupted", "waiting"]
    new = replace(left, known="").id
    assert [job.id for job in read.jobs] == [failed.id, tried.id, begun.id, new] and new != left.id
    orders = {order.job.id: order.failures for order in Schedule(read.jobs, out, 1).waiting}
    assert orders == {failed.id: 0, tried.id: 1, begun.id: 0, new: 0}


def test_a_run_that_went_on_under_its_new_id_is_that(tmp_path: Path) -> None:
    [made], out = before(tmp_path, '["margin"]')
    new = replace(made, known="")
    for each in (made, new):
        each.save(out)
    assert [job.id for job in grids.of(out).jobs] == [new.id]


def test_a_loss_that_has_changed_since_is_done_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    [made, other], out = before(tmp_path, '["raw", "margin"]')
    finish(made, out)
    finish(other, out)
    monkeypatch.setattr(former, "CHANGED", frozenset({"multi_similarity"}))
    assert [job.id for job in grids.of(out).jobs] == [replace(made, known="").id, other.id]


def test_a_benchmark_of_before_in_which_a_run_has_two_names_can_be_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    jobs, out = before(tmp_path, '["multi_similarity", "raw"]')
    for made in jobs:
        finish(made, out)
    assert [found.label for found in results.read(out)] == ["multi_similarity", "raw"]
    assert main(["bench", "status", str(out)]) == 0 and "2 done" in capsys.readouterr().out
    assert main(["tournament", str(out)]) == 0
    assert len(rebuild(out)) == 2
    assert main(["bench", str(tmp_path / "grid.toml"), "--out", str(out)]) == 2
    assert SAME.format("multi_similarity", "raw", "multi_similarity")[5:] in capsys.readouterr().err
    grid(tmp_path, '["raw"]')  # as it says
    assert main(["bench", str(tmp_path / "grid.toml"), "--out", str(out)]) == 0
    assert "1 of 1 runs done" in capsys.readouterr().out and len(list((out / "runs").iterdir())) == 2


def test_a_run_goes_on_however_its_loss_is_written(tmp_path: Path) -> None:
    """Begun under one name, finished under the other."""
    path, out = grid(tmp_path, '["raw"]', packs=str(tmp_path / "packs")), tmp_path / "out"
    assert main(["bench", str(path), "--out", str(out)]) == 0
    [made] = grids.of(out).jobs
    (made.folder(out) / METRICS).unlink()
    grid(tmp_path, '[{loss = "multi_similarity", loss_settings = {alpha = 2}}]', packs=str(tmp_path / "packs"))
    assert main(["bench", str(path), "--out", str(out)]) == 0
    assert [found.label for found in results.read(out)] == ["multi_similarity (loss_settings alpha 2)"]
    assert len(list((out / "runs").iterdir())) == 1


def test_a_run_is_known_by_the_name_of_its_folder(tmp_path: Path) -> None:
    """No later default gives it another id."""
    made = job("margin")
    made.save(tmp_path)
    shutil.move(made.folder(tmp_path), tmp_path / "runs" / "0123456789ab")
    assert Job.load(tmp_path / "runs" / "0123456789ab").id == "0123456789ab"


DEFAULTS = {
    "angular": "72276449",
    "arcface": "7235948f",
    "binomial_deviance": "fc4d8171",
    "circle": "f69ea791",
    "contrastive": "642f8e9a",
    "cosface": "e9880e7d",
    "histogram": "ef92d4f7",
    "lifted_structure": "5709ccb9",
    "margin": "71d154c3",
    "multi_similarity": "1764eb3b",
    "n_pair": "f80defb4",
    "nra": "272c8195",
    "nt_xent": "ebe8f1fe",
    "proxy_anchor": "fa701628",
    "proxy_nca": "768823b1",
    "proxy_repulsion": "06f6f51b",
    "quadruplet": "0fc55c0b",
    "ranked_list": "9c2b2364",
    "raw": "1764eb3b",
    "recall_at_k": "3eed0cec",
    "smooth_ap": "40bcd2f9",
    "soft_triple": "45fb2b7d",
    "softmax": "c0187b9e",
    "spectral_clust": "aad6cde9",
    "struct_clust": "9f10083b",
    "sub_center_arcface": "d042b110",
    "supcon": "650aaad6",
    "triplet": "8f7a9b6d",
}


def test_defaults_are_those_of_the_runs_that_lie_under_ids_of_before() -> None:
    """Where one has changed, its loss belongs into ``CHANGED``: runs under ids of before would count as of the new one.

    A setting that is new and changes nothing unless it is given is only to be added here.
    """
    found = {
        name: hashlib.sha256(json.dumps(losses.resolved(name, {}), sort_keys=True).encode()).hexdigest()[:8]
        for name in losses.names()
        if name not in former.CHANGED
    }
    assert found == {name: kept for name, kept in DEFAULTS.items() if name not in former.CHANGED}
