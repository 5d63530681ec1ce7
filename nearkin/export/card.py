"""The card of a model: what it is, what it was trained on, how good it is and how sure that is, how to load it."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nearkin import results
from nearkin.intervals import intervals
from nearkin.train.folder import RunFolder
from nearkin.trained import Trained
from nearkin.wording import feedback

FIRST = "library_name: nearkin"
"""The line by which a card is known."""


def card(trained: Trained, run: Path | None = None, name: str = "") -> str:
    """The card as Markdown with the front matter that model hubs read.

    ``run``: the folder the model comes from; its answers to queries give the measures their intervals.
    """
    facts = trained.facts
    measures = dict(facts.get("measures", {}))
    bounds = spans(run, measures) if run is not None else {}
    title = name or f"{facts.get('loss', 'an embedding')} on {facts.get('data', 'images')}"
    lines = [
        "---",
        FIRST,
        "pipeline_tag: image-feature-extraction",
        "tags: [metric-learning, image-retrieval, embedding]",
        "---",
        "",
        f"# {title}",
        "",
        f"An embedding of images in {trained.dim} dimensions, trained with nearkin so that images of one kind lie near each",
        "other. Vectors have length 1; compare them by their inner product.",
        "",
        "## How it was made",
        "",
        f"- data: {facts.get('data', 'unknown')}{_licence(str(facts.get('data', '')))}",
        f"- network: {facts.get('network', trained.model.backbone.name)}",
        f"- loss: {facts.get('loss', 'unknown')}{_settings(facts.get('loss_settings'))}",
        f"- recipe: {facts.get('recipe', 'unknown')}, seed {facts.get('seed', 'unknown')}",
        f"- the epoch was chosen by: {_protocol(str(facts.get('protocol', 'unknown')), facts.get('unfinished', ''))}",
        f"- images: {_view(trained)}",
        "",
    ]
    if measures:
        said = _tested(facts.get("shared_classes")) + feedback(str(facts.get("protocol")))
        lines += ["## How good it is", "", f"{said}, in percent.", ""]
        lines += ["| measure | value | 95 % interval |", "|---|---:|---|"]
        for key, value in measures.items():
            if not results.is_share(key):
                continue
            span = bounds.get(key)
            lines.append(f"| {results.heading(key)} | {100 * value:.1f} | {_span(span)} |")
        lines += [
            "",
            "Intervals draw the test classes anew; they say nothing about other data sets or other seeds.",
            "",
        ]
    lines += [
        "## How to use it",
        "",
        "```python",
        "import nearkin",
        "",
        'model = nearkin.load("this/folder")',
        'vectors = model.embed(["a.jpg", "b.jpg"])  # unit vectors; their inner products are cosines',
        "```",
        "",
        "## Licence",
        "",
        "The weights are the work of whoever trained them; the terms of the data set and of the pretrained network hold on.",
        "",
    ]
    return "\n".join(lines)


def spans(run: Path, measures: Mapping[str, Any]) -> dict[str, tuple[float, float]]:
    """Bounds of each measure from the run's answers; none where the run kept no answers or they do not give the measures."""
    if not (run / results.QUERIES).exists():
        return {}
    found, why = intervals(RunFolder(run).result(run.name, measures))
    if why:
        warnings.warn(f"the card goes without intervals. {why}", stacklevel=3)
    return found


def _span(span: tuple[float, float] | None) -> str:
    return f"{100 * span[0]:.1f} to {100 * span[1]:.1f}" if span else ""


def _settings(found: Any) -> str:
    return " (" + ", ".join(f"{key} {value}" for key, value in found.items()) + ")" if found else ""


def _tested(shared: int | None) -> str:
    """What the measures were taken on; runs of earlier versions do not say how many classes both parts share."""
    if shared is None:
        return "On the test images"
    if not shared:
        return "On test classes that training never saw"
    return (
        f"On test images, {shared:,} of whose classes training saw as well, so that this says little about new classes"
    )


def _protocol(name: str, unfinished: str = "") -> str:
    """What chose the epoch, and whether the choice is the last one."""
    if unfinished:
        chosen = "nothing" if name == "last_epoch" else f"{name}, so far"
        return f"{chosen}; the run is unfinished and got as far as {unfinished}"
    words = {
        "last_epoch": "nothing; it is the last one",
        "fixed_validation": "training classes that were kept back (fixed_validation)",
        "cross_validation": "training classes that were kept back (cross_validation)",
        "test_feedback": "the test classes themselves (test_feedback), which flatters the measures below",
    }
    return words.get(name, name)


def _licence(data: str) -> str:
    from nearkin.data import DATASETS

    entry = DATASETS.get(data)
    return f" ({entry.description}; {entry.licence})" if entry and entry.licence else ""


def _view(trained: Trained) -> str:
    view = trained.view
    words = {
        "squash": f"squashed to {view.resize} x {view.resize}",
        "longer_side": f"longer side {view.resize}, padded to a square",
    }
    return f"{words.get(view.geometry, f'shorter side {view.resize}')}, centre crop of {view.size} pixels"
