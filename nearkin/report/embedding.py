"""The map of an embedding: test images embedded again with the kept weights and laid out in two dimensions."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearkin import checkpoint
from nearkin.report.bench import Bench
from nearkin.report.pictures import test_images
from nearkin.report.subject import Subject


def layout(bench: Bench, subject: Subject) -> tuple[NDArray[np.int64], NDArray[np.float64], str] | None:
    """Rows, their places (n, 2) and the method; None where no weights or no images are there.

    The outcome is kept under ``bench.cache`` and used again for the same run and number of points.
    """
    rows = chosen(subject, bench.points)
    facts = {"run": subject.run.id, "steps": _steps(bench, subject), "rows": rows.tolist(), "method": _method()}
    path = bench.cache / f"map-{subject.run.id}.json" if bench.cache is not None else None
    if len(rows) < 3 or not facts["steps"]:
        return None
    if path is not None:
        try:
            kept = json.loads(path.read_bytes())
            if all(kept[key] == value for key, value in facts.items()):
                return rows, np.array(kept["places"], np.float64), str(kept["method"])
        except (OSError, ValueError, KeyError, TypeError):
            pass  # made anew
    vectors = _embed(bench, subject, rows)
    if vectors is None:
        return None
    places = flat(vectors)
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        checkpoint.replace(path, json.dumps(facts | {"places": places.round(4).tolist()}).encode())
    return rows, places.round(4), _method()


def chosen(subject: Subject, most: int) -> NDArray[np.int64]:
    """Queries of whole classes at even steps through all of them, as many classes as the points allow."""
    rows, labels = subject.answers["rows"], subject.answers["labels"]
    present, counts = np.unique(labels, return_counts=True)
    if len(rows) <= most:
        return np.asarray(rows, np.int64)
    wanted = max(2, int(most / counts.mean()))
    kept = present[(np.arange(wanted) * len(present) / wanted).astype(np.int64)]
    return np.asarray(rows[np.isin(labels, kept)][:most], np.int64)


def flat(vectors: NDArray[np.float32]) -> NDArray[np.float64]:
    """Places (n, 2) of vectors: neighbours stay neighbours by t-SNE; by principal components without scikit-learn."""
    points = vectors.astype(np.float64)
    centred = points - points.mean(0)
    left, values, _ = np.linalg.svd(centred, full_matrices=False)
    left, values = left[:, :2], values[:2]
    # The sign of a component is free: its largest entry is made positive, so that every machine draws the same.
    left = left * np.sign(left[np.abs(left).argmax(0), np.arange(left.shape[1])])
    plane = left * values
    if plane.shape[1] < 2:
        plane = np.concatenate([plane, np.zeros((len(plane), 2 - plane.shape[1]))], 1)
    if _method() != "t-SNE" or len(points) < 8:
        return np.asarray(plane, np.float64)
    from sklearn.manifold import TSNE

    start = plane / max(float(plane[:, 0].std()), 1e-12) * 1e-4
    near = min(30.0, (len(points) - 1) / 3)
    return np.asarray(TSNE(2, init=start, perplexity=near, random_state=0).fit_transform(points), np.float64)


def _method() -> str:
    import importlib.util

    return "t-SNE" if importlib.util.find_spec("sklearn") is not None else "principal components"


def _steps(bench: Bench, subject: Subject) -> list[int]:
    return checkpoint.steps(bench.path(subject.run) / "checkpoint")


def _embed(bench: Bench, subject: Subject, rows: NDArray[np.int64]) -> Any:
    from nearkin.distributed import Ranks
    from nearkin.train import measure, prepare
    from nearkin.train.restore import restore

    images = subject.pictures if subject.drawn else test_images(bench, subject.run)
    if images.pack is None:
        return None
    device = prepare.device("auto")
    try:
        settings, model = restore(bench.path(subject.run), device)
    except (ValueError, TypeError, OSError, ImportError):
        return None
    with prepare.machine(settings, device):
        feed = prepare.test_feed(settings, model, images.pack.select(rows), device)
        return measure.embed(model, feed, Ranks(), settings, device).float().cpu().numpy()
