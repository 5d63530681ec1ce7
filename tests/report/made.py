"""Benchmarks for the tests: made-up results with answers to queries, and a trained one."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save

from nearkin import config, results
from nearkin.results import Result
from nearkin.train.loop import train
from nearkin.train.settings import Train
from tests.train.runs import tiny

CLASSES, EACH = 10, 6
SKILL = {"ranked_list": 0.8, "triplet": 0.6, "margin": 0.3}


def result(label: str, seed: int = 0, **changes: Any) -> Result:
    """A finished run whose id follows from what it is."""
    plain = Result("", "done", label, label, "cub200", "resnet50", 512, "fixed_validation", 0, seed, {"recall@1": 0.5})
    made = replace(plain, **changes)
    what = json.dumps([made.label, *made.experiment, made.fold, made.seed])
    name = hashlib.sha256(what.encode()).hexdigest()[:12]
    return replace(made, id=made.id or name, folder=made.folder or f"runs/{name}")


def keep(folder: Path, run: Result, skill: float, rng: np.random.Generator, names: list[str] | None = None) -> Result:
    """Write what a run leaves; the result with the measures that belong to it."""
    labels = np.repeat(np.arange(CLASSES), EACH)
    rows = np.arange(len(labels))
    hit = (rng.random(len(labels)) < skill).astype(np.float32)
    same = rows // EACH * EACH + (rows + 1) % EACH
    other = (rows + EACH * rng.integers(1, 3, len(rows))) % len(rows)
    nearest = np.stack([np.where(hit > 0, same, other), other, same], 1).astype(np.int32)
    similarity = np.sort(rng.random((len(rows), 3)).astype(np.float32), 1)[:, ::-1].copy()
    target = folder / run.folder
    target.mkdir(parents=True, exist_ok=True)
    arrays = {"rows": rows, "labels": labels, "recall@1": hit, "nearest": nearest, "similarity": similarity}
    facts = {"class_names": json.dumps(names or [f"bird {number}" for number in range(CLASSES)])}
    (target / results.QUERIES).write_bytes(save(arrays, facts))
    edges = np.linspace(-1, 1, 101).round(4).tolist()
    counts = {"positive": rng.integers(0, 9, 100).tolist(), "negative": rng.integers(0, 99, 100).tolist()}
    (target / results.SIMILARITIES).write_text(json.dumps({"edges": edges, **counts}))
    kind = "evaluate" if run.protocol == "test_feedback" else "validate"
    with (target / "log.jsonl").open("w") as file:
        for epoch in range(4):
            file.write(json.dumps({"kind": "epoch", "epoch": epoch, "loss": 2.0 - epoch / 4}) + "\n")
            file.write(json.dumps({"kind": kind, "epoch": epoch, "recall@1": skill * (epoch + 1) / 4}) + "\n")
    return replace(
        run,
        metrics={"recall@1": float(hit.mean()), "recall@2": min(1.0, float(hit.mean()) + 0.1), "nmi": 0.4},
        validation=None if run.protocol == "test_feedback" else {"recall@1": skill, "epoch": 2},
        test_feedback=None
        if run.protocol == "test_feedback"
        else {"best_epoch": 1, "recall@1": float(hit.mean()) + 0.01},
        cost={"seconds": 10.0 + 5 * skill, "images_per_second": 900.0, "epochs": 4, "epoch": 2},
        where={"commit": "0123456", "device": "a processor", "versions": {"torch": "2.13.0"}},
        settings={"loss_settings": {}, "lr": 0.01, "batch": 12},
    )


def benchmark(
    folder: Path, skills: dict[str, float] | None = None, seeds: int = 2, names: list[str] | None = None, **changes: Any
) -> list[Result]:
    """Runs of one experiment, and their file of results."""
    rng = np.random.default_rng(len(changes))
    folder.mkdir(parents=True, exist_ok=True)
    made = []
    for seed in range(seeds):
        for label, skill in (skills or SKILL).items():
            made.append(keep(folder, result(label, seed, **changes), skill, rng, names))
    add(folder, *made)
    return made


def add(folder: Path, *made: Result) -> None:
    for entry in made:
        results.append(folder / results.FILE, entry)


def trained(folder: Path) -> list[Result]:
    """Two losses trained for a moment on twelve characters, with images and weights."""
    made = []
    for loss in ("margin", "contrastive"):
        settings: Train = tiny(
            folder / "runs" / loss, folder / "packs", loss=loss, epochs=3, protocol="fixed_validation", ratio=0.6,
            audit=True, evaluate_every=0, warm_up=0,
        )  # fmt: skip
        found = train(settings)
        run = result(loss, data="glyphs", network="small", dim=8, id=settings.digest, folder=f"runs/{loss}")
        metrics = {name: value for name, value in found.items() if name.startswith("recall@") or name == "nmi"}
        facts = {"validation": found["validation"], "test_feedback": found["test_feedback"]}
        cost = {"seconds": found["seconds"], "images_per_second": found["images_per_second"], "epochs": 3}
        made.append(replace(run, metrics=metrics, cost=cost, settings=settings.identity(), **facts))
    add(folder, *made)
    assert (folder / "runs" / "margin" / "config.toml").read_text() == config.dump(tiny_settings(folder))
    return made


def tiny_settings(folder: Path) -> Train:
    from nearkin.train.folder import RunFolder

    return RunFolder(folder / "runs" / "margin").settings()


VOID = {"meta", "img", "br", "wbr", "hr", "input", "link"}


class Page(HTMLParser):
    """A page, taken apart: elements, ids, links, sources, the text of each section; every tag must be closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.sources: list[str] = []
        self.sections: dict[str, str] = {}
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.current: list[str] = []
        self.feed(text)
        self.close()
        assert not self.open, f"left open: {self.open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.elements.append((tag, found))
        if found.get("id"):
            self.ids.append(str(found["id"]))
        if tag == "section":
            self.current.append(str(found["id"]))
            self.sections[self.current[-1]] = ""
        if tag == "a":
            self.links.append(str(found["href"]))
        if "src" in found:
            self.sources.append(str(found["src"]))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open and self.open[-1] == tag, f"</{tag}> closes {self.open[-3:]}"
        self.open.pop()
        if tag == "section":
            self.current.pop()

    def handle_data(self, data: str) -> None:
        for name in self.current:
            self.sections[name] += data
