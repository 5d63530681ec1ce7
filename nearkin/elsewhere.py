"""Models that were trained elsewhere, for tournament and report: what is compared is what they embedded."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from pathlib import Path

import torch

from nearkin import checks, evaluation, results
from nearkin.evaluation.inputs import Labels, Vectors, label_tensor, several, vector_tensor, whole
from nearkin.evaluation.queries import metric_names
from nearkin.protocols import PROTOCOLS
from nearkin.train import answers

METRICS = ("recall", "r_precision", "map@r", "nmi")


def add(
    folder: str | Path,
    label: str,
    embeddings: Vectors,
    labels: Labels,
    *,
    query: Sequence[bool] | torch.Tensor | None = None,
    data: str = "mine",
    network: str = "",
    dim: int = 0,
    protocol: str = "last_epoch",
    seed: int = 0,
    ks: int | Iterable[int] = (1, 2, 4, 8),
    metrics: Iterable[str] = METRICS,
    class_names: Sequence[str] = (),
) -> results.Result:
    """Measure what a model embedded and add it to the results in a folder, which may be that of a benchmark.

    - ``label``: what to call the model, its loss for example; models of one label are repetitions that ``seed`` tells apart;
    - ``embeddings`` (n, dim), ``labels`` (n,): of the test images, in the same order for all models; the cosine counts;
    - ``query`` (n,): which rows ask, where the others are the gallery;
    - ``data``, ``network``, ``dim`` (0: that of the embeddings) and ``protocol`` say what is comparable: only models that
      agree in all four are ranked against each other;
    - ``class_names``: by label, for the report.

    The same label, seed and the rest a second time stands instead of the first. Models are compared query by query, so that
    images in another order are an error wherever it shows in the labels.

    >>> import tempfile
    >>> from nearkin import results, tournament
    >>> folder, labels = tempfile.mkdtemp(), torch.arange(40) // 4
    >>> middles = torch.eye(10).repeat_interleave(4, 0)
    >>> for label, noise in (("good", 0.1), ("bad", 9.0)):
    ...     for seed in range(2):
    ...         noisy = middles + noise * torch.randn(40, 10, generator=torch.Generator().manual_seed(seed))
    ...         added = add(folder, label, noisy, labels, seed=seed)
    >>> tournament.settle(results.read(folder), folder).winner
    'good'
    """
    for name, text in (("label", label), ("data", data), ("network", network)):
        _check_text(name, text, least=int(name == "label"))
    if protocol not in PROTOCOLS:
        raise ValueError(checks.unknown("protocol", protocol, tuple(PROTOCOLS)))
    seed, dim = whole("add", "seed", seed, 0, checks.SEED.high), whole("add", "dim", dim, 0)
    depths, measures = several("add", "ks", ks), metric_names(metrics, evaluation.METRICS)
    place = Path(folder)
    vectors = vector_tensor("embeddings", embeddings, least=2)
    classes = label_tensor("labels", labels, len(vectors), "embeddings").cpu().numpy()
    names = _names(class_names) or tuple(str(number) for number in range(int(classes.max()) + 1))
    if classes.min() < 0 or classes.max() >= len(names):
        raise ValueError(
            f"labels must lie between 0 and {len(names) - 1}, one class name for each, got values from {classes.min()} to "
            f"{classes.max()}; renumber the labels or name all classes."
        )
    asks = None if query is None else torch.as_tensor(query)
    found = evaluation.evaluate(vectors, classes, ks=depths, query=asks, metrics=measures)
    dim = dim or vectors.shape[1]
    known = json.dumps([label, data, network, dim, protocol, seed])
    number = results.ELSEWHERE + hashlib.sha256(known.encode()).hexdigest()[:12]
    run = place / "runs" / number
    run.mkdir(parents=True, exist_ok=True)
    answers.write(run, vectors, classes, names, asks, depths)
    measured = {name: float(value) for name, value in found.items() if name not in ("queries", "left_out")}
    result = results.Result(
        id=number,
        status=results.DONE,
        loss="elsewhere",
        label=label,
        data=data,
        network=network,
        dim=dim,
        protocol=protocol,
        fold=0,
        seed=seed,
        metrics=measured,
        folder=f"runs/{number}",
    )
    results.append(place / results.FILE, result)
    return result


def _check_text(name: str, value: object, least: int) -> None:
    """Raise unless a value is text: what is no text would be written and could not be read again."""
    if not isinstance(value, str) or len(value) < least:
        what = "a name that is not empty" if least else "text"
        raise ValueError(f"add: {name} must be {what}, got {value!r}; change {name}.")


def _names(class_names: Sequence[str]) -> tuple[str, ...]:
    """The names of the classes; one text would be taken for a name of each letter."""
    names = () if isinstance(class_names, str) else tuple(class_names)
    if isinstance(class_names, str) or not all(isinstance(name, str) for name in names):
        raise TypeError(f"add: class_names must be a list of names, got {class_names!r}; pass one name for each class.")
    return names
