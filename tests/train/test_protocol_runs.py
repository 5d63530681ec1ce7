"""Runs under each protocol: what trains, what chooses, what is reported, and that the test set stays sealed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from nearkin import checkpoint, evaluation, results
from nearkin.data.pack import Pack
from nearkin.distributed import Ranks
from nearkin.train import prepare
from nearkin.train.evaluate import Evaluate, evaluate
from nearkin.train.folder import RunFolder
from nearkin.train.judge import Auditor
from nearkin.train.loop import _Run, train
from nearkin.train.measure import embed
from nearkin.train.restore import restore
from nearkin.train.screen import Silent
from nearkin.train.settings import Train
from tests.train.runs import left, tiny, train_in_parts


@pytest.fixture(scope="module")
def packs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("packs")


def settings(folder: Path, packs: Path, **changes: Any) -> Train:
    plain = {"data_settings": {"classes": 24, "images": 8}, "evaluate_every": 1, "epochs": 4, "ks": (1, 2)}
    return tiny(folder, packs, **(plain | changes))


def test_the_epoch_is_the_best_on_the_classes_kept_back(tmp_path: Path, packs: Path) -> None:
    wanted = settings(tmp_path / "run", packs, protocol="fixed_validation", ratio=0.6, audit=True, lr=0.01)
    found = train(wanted)
    folder = RunFolder(tmp_path / "run")
    judged = {record["epoch"]: record["recall@1"] for record in folder.records("validate")}
    assert set(judged) == {0, 1, 2, 3} and not folder.records("evaluate")
    best = max(judged, key=lambda epoch: (judged[epoch], -epoch))
    assert found["epoch"] == best == found["validation"]["epoch"]
    audited = [json.loads(line) for line in (tmp_path / "run" / "audit.jsonl").read_text().splitlines()]
    of_epoch = {record["epoch"]: record for record in audited}
    assert found["recall@1"] == of_epoch[best]["recall@1"]
    assert found["test_feedback"]["recall@1"] == max(record["recall@1"] for record in audited)
    assert found["protocol"] == "fixed_validation"


def test_the_chosen_weights_are_the_ones_restored(tmp_path: Path, packs: Path) -> None:
    wanted = settings(tmp_path / "run", packs, protocol="cross_validation", folds=3, fold=1, lr=0.02, epochs=5)
    found = train(wanted)
    again = evaluate(Evaluate(run=wanted.out, device="cpu", ks=(1, 2), metrics="recall,nmi"), Silent())
    assert again["recall@1"] == pytest.approx(found["recall@1"], abs=1e-6)
    saved = checkpoint.load(RunFolder(Path(wanted.out)).checkpoints)
    assert saved is not None
    last = found["epoch"] == 4
    same = all(torch.equal(value, saved.tensors["chosen"][name]) for name, value in saved.tensors["model"].items())
    assert same == last


def test_folds_train_on_what_the_others_validate(packs: Path, tmp_path: Path) -> None:
    whole = prepare.packs(settings(tmp_path, packs), Ranks(), Silent())[0]
    kept: list[str] = []
    for fold in range(3):
        wanted = settings(tmp_path, packs, protocol="cross_validation", folds=3, fold=fold)
        training, validating = prepare.parts(wanted, whole)
        assert validating is not None
        names = {validating.class_names[label] for label in np.unique(validating.labels)}
        assert not names & set(training.class_names) and len(training) + len(validating) == len(whole)
        assert np.unique(training.labels).tolist() == list(range(len(training.class_names)))
        by_name = {whole.names[row]: whole.class_names[whole.labels[row]] for row in range(len(whole))}
        assert all(
            by_name[name] == training.class_names[label]
            for name, label in zip(training.names, training.labels, strict=True)
        )
        kept += names
    assert sorted(kept) == sorted(whole.class_names)


def test_training_holds_no_labels_but_its_own(tmp_path: Path, packs: Path) -> None:
    """The loop has judges, functions of a model: none of its attributes leads to a pack of other images."""
    wanted = settings(tmp_path / "run", packs, protocol="fixed_validation", ratio=0.5)
    run = _Run(wanted, torch.device("cpu"), Ranks(), Silent(), False)
    held = [value for value in vars(run).values() if isinstance(value, Pack)]
    assert held == [run.pack] and run.feed.pack is run.pack
    assert run.validate is not None and not isinstance(run.validate, Pack)


def test_the_auditor_tells_training_nothing(tmp_path: Path, packs: Path) -> None:
    """With and without the audit the run is the same, bit for bit, but for what is said about the test set."""
    first, second = (
        settings(tmp_path / name, packs, protocol="fixed_validation", ratio=0.6, audit=name == "audited")
        for name in ("plain", "audited")
    )
    train(first)
    train(second)
    one, two = left(tmp_path / "plain"), left(tmp_path / "audited")
    assert one["tensors"] == two["tensors"] and one["log"] == two["log"]
    assert one["metrics"]["test_feedback"] is None and two["metrics"]["test_feedback"] is not None


def test_the_network_as_it_came_is_measured_and_training_told_nothing(tmp_path: Path, packs: Path) -> None:
    """With and without it the run is the same, bit for bit; what it says is what the network gives before any step."""
    common: dict[str, Any] = {"protocol": "fixed_validation", "ratio": 0.6, "lr": 0.01}
    train(settings(tmp_path / "plain", packs, **common))
    found = train(settings(tmp_path / "measured", packs, **common), untrained=True)
    one, two = left(tmp_path / "plain"), left(tmp_path / "measured")
    before = two["metrics"].pop("untrained")
    assert one == two and "untrained" not in one["metrics"] and found["untrained"] == before
    wanted = settings(tmp_path / "measured", packs, **common)
    _, images = prepare.packs(wanted, Ranks(), Silent())
    assert images is not None
    model = prepare.model(wanted)
    feed = prepare.test_feed(wanted, model, images, torch.device("cpu"))
    vectors = embed(model, feed, Ranks(), wanted, torch.device("cpu"))
    again = evaluation.evaluate(vectors, np.array(images.labels), ks=wanted.ks, metrics=("recall", "map@r"))
    assert before == pytest.approx(again, abs=1e-6)


@pytest.mark.parametrize("stops", [(0, 3), (3, 11)])
@pytest.mark.parametrize("chunk", [0, 5])
def test_a_stopped_run_keeps_what_the_network_gave_as_it_came(
    tmp_path: Path, packs: Path, stops: tuple[int, ...], chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    common: dict[str, Any] = {"protocol": "fixed_validation", "ratio": 0.6, "lr": 0.01, "chunk": chunk}
    common |= {"frozen_batch_norm": True}
    train(settings(tmp_path / "whole", packs, **common), untrained=True)
    train_in_parts(settings(tmp_path / "parts", packs, **common), stops, monkeypatch, untrained=True)
    whole, parts = left(tmp_path / "whole"), left(tmp_path / "parts")
    assert whole == parts and whole["metrics"]["untrained"]["recall@1"] >= 0


def test_a_run_that_went_on_from_an_earlier_version_says_nothing_of_the_network_as_it_came(
    tmp_path: Path, packs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = settings(tmp_path / "run", packs, lr=0.01)
    with monkeypatch.context() as patch, pytest.raises(MemoryError):
        patch.setattr(_Run, "_end_epoch", lambda *given: (_ for _ in ()).throw(MemoryError("stopped by the test")))
        train(wanted)
    assert "untrained" not in train(wanted, resume=True, untrained=True)


@pytest.mark.parametrize(("every", "audited"), [(0, [0, 1, 2, 3]), (3, [2, 3])])
def test_where_nothing_is_chosen_the_audit_is_opened_after_training(
    tmp_path: Path, packs: Path, every: int, audited: list[int]
) -> None:
    common: dict[str, Any] = {"protocol": "last_epoch", "evaluate_every": every, "lr": 0.01}
    found = train(settings(tmp_path / "audited", packs, audit=True, **common))
    records = [json.loads(line) for line in (tmp_path / "audited" / "audit.jsonl").read_text().splitlines()]
    assert [record["epoch"] for record in records] == audited
    assert not RunFolder(tmp_path / "audited").records("evaluate")
    assert found["epoch"] == 3 and found["recall@1"] == records[-1]["recall@1"]
    assert found["test_feedback"]["recall@1"] == max(record["recall@1"] for record in records)
    train(settings(tmp_path / "plain", packs, **(common | {"evaluate_every": 0})))
    one, two = left(tmp_path / "plain"), left(tmp_path / "audited")
    assert one["tensors"] == two["tensors"] and one["log"] == two["log"]


def test_what_chooses_on_the_test_set_has_no_second_look_at_it(tmp_path: Path, packs: Path) -> None:
    """A benchmark may ask for the audit of every protocol, this one among them; its log has the same openly."""
    train(settings(tmp_path / "run", packs, protocol="test_feedback", audit=True, evaluate_every=0))
    assert [record["epoch"] for record in RunFolder(tmp_path / "run").records("evaluate")] == [0, 1, 2, 3]
    assert not (tmp_path / "run" / "audit.jsonl").exists()


def test_an_audit_that_cannot_be_rewritten_stays_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is gone back over is dropped whole or not at all: a crash in the middle must not take earlier epochs with it."""
    path = tmp_path / "audit.jsonl"
    lines = [json.dumps({"kind": "audit", "epoch": epoch, "step": 4 * epoch + 4}) + "\n" for epoch in range(3)]
    path.write_text("".join(lines))
    auditor = Auditor(lambda *given, **named: {}, path, True)

    def full(*given: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(checkpoint.os, "fsync", full)
        with pytest.raises(OSError, match="audit.jsonl must be a file that can be written"):
            auditor.forget(8)
    assert path.read_text() == "".join(lines) and list(tmp_path.iterdir()) == [path]
    auditor.forget(8)
    assert path.read_text() == "".join(lines[:2])


def test_without_the_test_set_nothing_of_it_is_measured(tmp_path: Path, packs: Path) -> None:
    found = train(settings(tmp_path / "run", packs, protocol="fixed_validation", ratio=0.6, test=False))
    assert "recall@1" not in found and found["validation"]["recall@1"] >= 0
    assert not (tmp_path / "run" / results.QUERIES).exists()


def test_test_feedback_reports_the_best_on_the_test_set(tmp_path: Path, packs: Path) -> None:
    found = train(settings(tmp_path / "run", packs, protocol="test_feedback", lr=0.02))
    seen = {record["epoch"]: record["recall@1"] for record in RunFolder(tmp_path / "run").records("evaluate")}
    assert found["recall@1"] == max(seen.values()) and found["protocol"] == "test_feedback"
    assert found["validation"] is None


@pytest.mark.parametrize(
    ("protocol", "stops"), [("fixed_validation", (7,)), ("fixed_validation", (3, 11)), ("last_epoch", (3, 11))]
)
def test_a_stopped_run_chooses_the_same(
    tmp_path: Path, packs: Path, protocol: str, stops: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    common: dict[str, Any] = {"protocol": protocol, "ratio": 0.6, "audit": True, "lr": 0.01}
    train(settings(tmp_path / "whole", packs, **common))
    train_in_parts(settings(tmp_path / "parts", packs, **common), stops, monkeypatch)
    assert left(tmp_path / "whole") == left(tmp_path / "parts")
    one, two = ((tmp_path / name / "audit.jsonl").read_text() for name in ("whole", "parts"))
    assert one == two


def test_queries_are_kept_as_evaluation_has_them(tmp_path: Path, packs: Path) -> None:
    wanted = settings(tmp_path / "run", packs)
    found = train(wanted)
    kept = results.queries(tmp_path, results.Result("", "done", "", "", "", "", 8, "", 0, 0, folder="run"))
    assert float(np.nanmean(kept["recall@1"])) == pytest.approx(found["recall@1"], abs=1e-6)
    _, model = restore(tmp_path / "run", torch.device("cpu"))
    images = prepare.packs(wanted, Ranks(), Silent())[1]
    feed = prepare.test_feed(wanted, model, images, torch.device("cpu"))
    vectors = embed(model, feed, Ranks(), wanted, torch.device("cpu"))
    again = evaluation.per_query(vectors, images.labels, nearest=8)
    assert kept["nearest"].tolist() == again.nearest.tolist()
    assert tuple(kept["class_names"]) == images.class_names
    pairs = json.loads((tmp_path / "run" / results.SIMILARITIES).read_bytes())
    same = vectors @ vectors.T
    labels = torch.tensor(images.labels)
    upper = torch.triu(torch.ones_like(same, dtype=torch.bool), 1)
    positive = same[(labels[:, None] == labels) & upper]
    assert sum(pairs["positive"]) == len(positive)
    expected, _ = np.histogram(positive.clamp(-1, 1).numpy(), bins=np.linspace(-1, 1, 101))
    assert np.abs(np.array(pairs["positive"]) - expected).sum() <= 2  # a value on an edge


def test_a_larger_view_at_test(tmp_path: Path, packs: Path) -> None:
    wanted = settings(tmp_path / "run", packs, test_size=32)
    _, testing = prepare.packs(wanted, Ranks(), Silent())
    feed = prepare.test_feed(wanted, prepare.model(wanted), testing, torch.device("cpu"))
    images, _, _ = next(iter(feed.test()))
    assert images.shape[-2:] == (32, 32)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"protocol": "fixed"}, "protocol must be 'last_epoch' or"),
        ({"protocol": "cross_validation", "folds": 3, "fold": 3}, "fold must be below folds \\(3\\), got 3"),
        ({"protocol": "test_feedback", "test": False}, "test must be on under test_feedback"),
        (
            {"protocol": "fixed_validation", "audit": True, "test": False},
            "^train: audit must be off where test is off, since it measures the test set, got it on; "
            "leave out --audit or --no-test.$",
        ),
        ({"protocol": "fixed_validation", "ratio": 1.5}, "ratio must be a finite number"),
    ],
)
def test_impossible_settings(tmp_path: Path, packs: Path, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        settings(tmp_path, packs, **changes)


def test_one_class_cannot_validate(tmp_path: Path, packs: Path) -> None:
    message = (
        "kept back to validate must be at least two, one of them with two images, got 1 .*; lower folds to 6, or add"
    )
    with pytest.raises(ValueError, match=message):
        train(settings(tmp_path / "run", packs, protocol="cross_validation", folds=12))
