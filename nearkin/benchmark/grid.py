"""The grid of a benchmark: a TOML file with one list per axis, and settings that all runs share.

    losses = ["proxy_anchor", "multi_similarity", {label = "ranked_list L/M/H", loss = "ranked_list", levels = "lmh"}]
    data = [{data = "cub200", root = "CUB_200_2011"}]
    networks = [{network = "resnet50", weights = "resnet50.safetensors"}]
    dims = [64, 512]
    protocols = ["fixed_validation", {protocol = "cross_validation", folds = 10}]
    seeds = [0, 1, 2]

    [settings]
    epochs = 15

An entry is a plain value, or a table of settings of ``nearkin train``; only ``losses`` and ``data`` must be there. A table
may carry a ``label``, the name it has in tables. An entry of cross validation stands for all its folds.
"""

from __future__ import annotations

import itertools
import json
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from nearkin import checkpoint, checks, limits, results
from nearkin.benchmark import overridden
from nearkin.benchmark.board import name as called
from nearkin.benchmark.former import former, known
from nearkin.benchmark.job import Job
from nearkin.benchmark.origin import OWN, origin
from nearkin.train.settings import Train, check_names, resolve

AXES = {
    "losses": "loss",
    "data": "data",
    "networks": "network",
    "dims": "dim",
    "protocols": "protocol",
    "seeds": "seed",
}
Entries = dict[str, dict[str, Any]]
"""The entry of each axis that a run is made of."""
GRIDS = Path(__file__).parent / "grids"
KEYS = (*AXES, "settings", "retries", "keep_checkpoints")


_UNREADABLE: dict[type[Exception], str] = {
    FileNotFoundError: "which is not there",
    IsADirectoryError: "which is a folder",
}


@dataclass(frozen=True)
class Grid:
    """The runs of a benchmark, how often a failing one is tried again, and whether finished ones keep their weights."""

    jobs: tuple[Job, ...]
    retries: int = 1
    keep_checkpoints: bool = True
    text: str = field(default="", repr=False)
    over: dict[str, Any] = field(default_factory=dict, repr=False)
    folder: Path | None = field(default=None, repr=False)


def names() -> list[str]:
    """The grids that come with nearkin.

    >>> names()[:3]
    ['cross_validation', 'deep_dive', 'losses']
    """
    return sorted(path.stem for path in GRIDS.glob("*.toml"))


def read(path: str | Path, over: dict[str, Any] | None = None) -> Grid:
    """The grid in a file, or one that comes with nearkin by its name; ``over`` are settings on top of those it shares,
    and take the place of what it would vary.

    Anything it names that does not exist is an error before any work is done.
    """
    place = Path(path)
    if place.suffix != ".toml" and (not place.exists() or (place.is_dir() and str(path) in names())):
        if str(path) not in names():
            raise ValueError(checks.unknown("grid", str(path), names()))
        # Its paths are the user's: seen from where the command is given.
        return parse((GRIDS / f"{path}.toml").read_text(encoding="utf-8"), str(path), Path.cwd(), over)
    try:
        text = place.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = _UNREADABLE.get(type(error), str(error))
        raise ValueError(f"grid must be a TOML file, got {str(path)!r}, {reason}; check the path.") from None
    return parse(text, place.name, place.parent, over)


def parse(text: str, name: str = "grid", folder: Path | None = None, over: dict[str, Any] | None = None) -> Grid:
    """The grid of a TOML text; relative roots and weights are seen from ``folder``.

    >>> grid = parse('losses = ["margin", "triplet"]\\ndata = ["glyphs"]\\nseeds = [0, 1]')
    >>> [(job.label, job.settings.seed) for job in grid.jobs]
    [('margin', 0), ('triplet', 0), ('margin', 1), ('triplet', 1)]
    """
    grid = _parse(text, name, folder, over)
    _check_alike(name, grid.jobs)
    return grid


def _parse(
    text: str,
    name: str,
    folder: Path | None,
    over: dict[str, Any] | None,
    sums: Mapping[str, str] | None = None,
) -> Grid:
    """The grid of a TOML text, also one of a former version in which a run has two names; ``sums``: those of weights."""
    try:
        found = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"{name} must be a TOML file, got {error}; fix the line.") from None
    for key in found:
        if key not in KEYS:
            raise ValueError(checks.unknown(f"{name}: key", key, KEYS))
    retries, keep = found.get("retries", 1), found.get("keep_checkpoints", True)
    checks.setting(name, "retries", retries, checks.Limit(low=0, whole=True))
    checks.setting(name, "keep_checkpoints", keep, (True, False))
    for key in ("losses", "data"):
        if key not in found:
            raise ValueError(f"{name}: {key} must be a list of what to compare, got none; add {key} = [...].")
    shared = _placed(_layer(name, "settings", found.get("settings", {})), folder, sums)
    more = _placed(_layer(name, "settings", over or {}), Path.cwd(), sums)
    entries = {key: found[key] for key in AXES if key in found}
    for key, word in AXES.items():  # one value, or several, instead of those of the file
        if word in more:
            given = more[word] if isinstance(more[word], list) else [more[word]]
            entries[key] = [_placed(each, Path.cwd(), sums) if isinstance(each, dict) else each for each in given]
    typed = {word: value for word, value in more.items() if word not in AXES.values()}
    common = {**shared, **typed}
    # What a former version took and passed over is no error where its folder is only looked at.
    entries = {key: overridden.by(name, key, AXES[key], found, typed, sums is None) for key, found in entries.items()}
    axes = {key: _axis(name, key, found, common) for key, found in entries.items()}
    jobs = _product(name, axes, common, folder, sums)
    return Grid(tuple(jobs), retries, keep, text, more, folder)


def _axis(name: str, key: str, entries: Any, shared: dict[str, Any]) -> list[dict[str, Any]]:
    if not isinstance(entries, list) or not entries:
        raise ValueError(f"{name}: {key} must be a list with at least one entry, got {entries!r}; write {key} = [...].")
    layers = []
    for entry in entries:
        layer = _layer(name, key, entry) if isinstance(entry, dict) else {AXES[key]: entry}
        if AXES[key] not in layer:
            raise ValueError(f"{name}: each table of {key} must have {AXES[key]!r}, got {entry!r}; add it.")
        layers += _folds(name, {**shared, **layer}, layer) if key == "protocols" else [layer]
    return layers


def _layer(name: str, key: str, entry: Any) -> dict[str, Any]:
    known = [each.name for each in fields(Train) if each.name != "out"]
    if not isinstance(entry, dict):
        raise ValueError(f"{name}: {key} must be a table of settings, got {entry!r}; write [{key}].")
    allowed = [*known, "label"] if key in ("losses", "data") else known
    own = _settings_of(entry.get("loss")) if key == "losses" else []
    for word in entry:
        if word not in allowed:
            if word in own:
                raise ValueError(
                    f"{name}: losses: {word} is a setting of {entry['loss']} itself; write "
                    f"loss_settings = {{{word} = ...}}."
                )
            if (near := limits.nearest(word, [*allowed, *own])) in own:
                raise ValueError(
                    f"{name}: losses: setting {word!r} is not known; did you mean loss_settings = {{{near} = ...}}?"
                )
            raise ValueError(checks.unknown(f"{name}: {key}: setting", word, allowed))
    if "label" in entry and not (isinstance(entry["label"], str) and entry["label"].strip()):
        raise ValueError(
            f"{name}: {key}: label must be a text that says something, got {entry['label']!r}; write label = "
            f'"NAME IN TABLES", or leave label out.'
        )
    return dict(entry)


def _settings_of(loss: Any) -> list[str]:
    from nearkin import losses

    return losses.settings_of(loss) if isinstance(loss, str) and loss in losses.LOSSES else []


def _folds(name: str, whole: dict[str, Any], layer: dict[str, Any]) -> list[dict[str, Any]]:
    """Cross validation is as many runs as it has folds, unless one is named; ``whole``: the layer over what is shared."""
    if layer["protocol"] != "cross_validation" or "fold" in whole:
        return [layer]
    folds = whole.get("folds", next(each.default for each in fields(Train) if each.name == "folds"))
    checks.setting(name, "folds", folds, checks.Limit(low=2, whole=True))
    return [{**layer, "fold": fold} for fold in range(folds)]


def _product(
    name: str,
    axes: dict[str, list[dict[str, Any]]],
    shared: dict[str, Any],
    folder: Path | None,
    sums: Mapping[str, str] | None,
) -> Sequence[Job]:
    """All combinations; seeds vary slowest, losses fastest, so that a stopped benchmark can compare all losses."""
    order = [key for key in ("seeds", "protocols", "dims", "networks", "data", "losses") if key in axes]
    jobs: dict[tuple[str, str], tuple[Job, Entries]] = {}
    for layers in itertools.product(*(axes[key] for key in order)):
        chosen = dict(zip(order, layers, strict=True))
        parts = [{key: value for key, value in layer.items() if key != "label"} for layer in (shared, *layers)]
        try:
            settings = resolve(*(_placed(part, folder, sums) for part in parts))
            check_names(settings)
            _check_loss(settings)
        except (ValueError, TypeError) as error:
            raise ValueError(f"{name}: {error}") from None
        data = _data_label(chosen["data"], settings.root)
        job = Job(_label(chosen["losses"]), data, settings, origin(settings, sums))
        if (job.label, former(job)) in jobs:
            raise ValueError(
                f"{name}: each run must differ from the others, got {called(job)!r} twice; "
                f"drop the repeated entry, or give data sets of one kind a label."
            )
        jobs[job.label, former(job)] = job, chosen
    _check_labels(name, jobs.values())
    return [job for job, _ in jobs.values()]


def _placed(layer: dict[str, Any], folder: Path | None, sums: Mapping[str, str] | None) -> dict[str, Any]:
    """Paths of the file are seen from where it lies, so that the grid can be run from anywhere."""
    found = dict(layer)
    if folder is not None:
        for key in ("root", "packs"):
            if found.get(key):
                found[key] = str((folder / str(found[key])).resolve())  # a folder may be called 2024
        if found.get("weights"):
            place = (folder / str(found["weights"])).resolve()
            if place.is_file() or str(place) in (sums or {}):
                found["weights"] = str(place)
    return found


def _check_loss(settings: Train) -> None:
    """A misspelt setting of a loss is found now, not in the middle of the night."""
    from nearkin import losses

    losses.resolved(settings.loss, settings.loss_settings)


def _label(layer: dict[str, Any]) -> str:
    own = ", ".join(f"{key} {_short(value)}" for key, value in layer.items() if key not in ("loss", "label"))
    plain: str = f"{layer['loss']} ({own})" if own else layer["loss"]
    return layer.get("label", plain)


def _short(value: Any) -> str:
    return " ".join(f"{key} {entry}" for key, entry in value.items()) if isinstance(value, dict) else str(value)


def _data_label(layer: dict[str, Any], root: str) -> str:
    plain: str = Path(root).name if layer["data"] in OWN and root else layer["data"]
    return layer.get("label", plain)


def _check_labels(name: str, jobs: Iterable[tuple[Job, Entries]]) -> None:
    """One label for two settings would average over different things."""
    seen: dict[tuple[Any, ...], tuple[Job, Entries]] = {}
    for job, two in jobs:
        settings = job.settings
        place = (job.label, job.data, settings.network, settings.dim, settings.protocol, settings.fold, settings.seed)
        other, one = seen.setdefault(place, (job, two))
        if other is not job:
            pairs = zip(other.settings.identity().items(), settings.identity().values(), strict=True)
            differ = ", ".join(key for (key, this), that in pairs if this != that)
            if not differ:
                raise ValueError(
                    f"{name}: each data set must have a name of its own, got {job.data!r} for {other.settings.root!r} and "
                    f"{settings.root!r}; give each entry of data a label."
                )
            for axis in ("protocols", "networks", "dims"):
                if axis in one and one[axis] != two[axis] and one["losses"] == two["losses"]:
                    raise ValueError(_known_by(name, axis, getattr(settings, AXES[axis]), differ))
            if one["data"] != two["data"]:
                raise ValueError(
                    f"{name}: each data set must have a name of its own, got {job.data!r} for two settings that differ in "
                    f"{differ}; give each entry of data a label."
                )
            raise ValueError(
                f"{name}: each loss must have a label of its own, got {job.label!r} for two settings that differ in "
                f"{differ}; give these in entries of losses, each with a label."
            )


def _check_alike(name: str, jobs: Iterable[Job]) -> None:
    """One run under two names would be done twice, and compared with itself as if it were two losses."""
    seen: dict[str, Job] = {}
    for job in jobs:
        other = seen.setdefault(job.id, job)
        if other is not job:
            raise ValueError(
                f"{name}: each run must differ from the others, got {other.label!r} and {job.label!r}, which are the same "
                f"run (loss {job.resolved()['loss']} with equal settings); leave one out."
            )


def _known_by(name: str, axis: str, value: Any, differ: str) -> str:
    """The sentence for two entries of an axis that no table could tell apart."""
    word, named = AXES[axis], "" if axis == "dims" else "'s name"
    remedy = f"give {differ} in entries of losses, each with a label"
    if axis == "protocols":
        # How many runs an entry stands for hangs on folds, which a loss therefore cannot say.
        splits = f'{remedy}, as in the grid "splits" that comes with nearkin'
        remedy = "write a grid for each number of folds" if "folds" in differ.split(", ") else splits
    return (
        f"{name}: each {word} must be in one entry of {axis}, got {value!r} in two that differ in {differ}; an experiment "
        f"is known by its {word}{named} alone: {remedy}."
    )


def copy(grid: Grid, out: Path) -> None:
    """Keep the grid beside its results: what its runs are known by when other files have moved or gone, and which runs are
    its own, so that others there are not judged with them."""
    checkpoint.make_folder("out", out)
    kept = {
        "over": grid.over,
        "folder": None if grid.folder is None else str(grid.folder.resolve()),
        "weights": {job.settings.weights: job.origin["weights"] for job in grid.jobs if "weights" in job.origin},
    }
    # This one first: by it a grid.toml is known as a benchmark's own.
    checkpoint.replace(out / "grid.json", json.dumps(kept, indent=1).encode())
    checkpoint.replace(out / "grid.toml", grid.text.encode())
    checkpoint.replace(out / results.CURRENT, json.dumps([job.place for job in grid.jobs], indent=1).encode())


def check_own(out: Path, grid: Grid) -> None:
    """Raise where the folder for a benchmark holds somebody else's file that the copy of its grid would replace."""
    there = out / "grid.toml"
    if there.exists() and not (out / "grid.json").exists() and there.read_bytes() != grid.text.encode():
        raise ValueError(
            f"out must be a new folder or that of a benchmark, got {str(out)!r}, which holds a grid.toml that nearkin bench "
            f"did not write; choose another folder."
        )


def of(out: Path) -> Grid:
    """The grid of a benchmark's folder."""
    kept_in = out / "grid.json"
    try:
        text, content = (out / "grid.toml").read_text(encoding="utf-8"), kept_in.read_bytes()
    except FileNotFoundError as error:
        missing = Path(str(error.filename)).name
        raise ValueError(
            f"out must be the folder of a benchmark, got {str(out)!r}, which has no {missing}; check it."
        ) from None
    try:
        kept = json.loads(content)
        folder, over, sums = kept["folder"] and Path(kept["folder"]), kept["over"], kept["weights"]
    except (ValueError, TypeError, KeyError) as error:
        raise ValueError(
            f"{kept_in} must be what nearkin bench wrote, got {error}; give nearkin bench its grid again."
        ) from None
    grid = _parse(text, "grid.toml", folder, over, sums)
    return replace(grid, jobs=known(grid.jobs, out))
