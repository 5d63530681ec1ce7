"""The parts of a run, made from its settings."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from nearkin import data, models, protocols, samplers, wording
from nearkin.data.feed import Feed, Resident
from nearkin.data.geometry import Geometry
from nearkin.data.pack import Pack, pack
from nearkin.distributed import Ranks
from nearkin.models import Embedder
from nearkin.samplers import Batches
from nearkin.train import kept_back
from nearkin.train.cache import seed_of
from nearkin.train.screen import Screen
from nearkin.train.settings import Train


def device(name: str) -> torch.device:
    """The device of that name; "auto" is CUDA where there is one."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        found = torch.device(name)
    except RuntimeError:
        raise ValueError(f"device must be auto, cpu, cuda or cuda:N, got {name!r}; choose one of these.") from None
    if found.type == "cuda" and not torch.cuda.is_available():
        raise ValueError(f"device {name!r} needs a CUDA device, got none; choose cpu.")
    return found


@contextlib.contextmanager
def machine(settings: Train, device: torch.device) -> Iterator[None]:
    """Threads, determinism and the current device as the settings say; as before afterwards, but for what a GPU draws next
    and the workspace of its matrix products, which a process chooses once."""
    threads, strict = torch.get_num_threads(), torch.are_deterministic_algorithms_enabled()
    state, tries = torch.get_rng_state(), torch.backends.cudnn.benchmark
    current = torch.cuda.current_device() if device.type == "cuda" else None
    if settings.threads:
        torch.set_num_threads(settings.threads)
    if device.type == "cuda":
        torch.cuda.set_device(device)
        torch.cuda.reset_peak_memory_stats(device)
        torch.backends.cudnn.benchmark = False
        if settings.deterministic:
            os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
            torch.use_deterministic_algorithms(True)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
        torch.use_deterministic_algorithms(strict)
        torch.set_rng_state(state)
        if current is not None:
            torch.backends.cudnn.benchmark = tries
            torch.cuda.set_device(current)


def autocast(settings: Train, device: torch.device, cache_enabled: bool = True) -> Any:
    """bf16 where the settings ask for it, or on CUDA by default."""
    wanted = settings.precision == "bf16" or (settings.precision == "auto" and device.type == "cuda")
    return torch.autocast(device.type, torch.bfloat16, enabled=wanted, cache_enabled=cache_enabled)


def memory(device: torch.device) -> dict[str, int]:
    """The most device memory used so far, in bytes; nothing on a CPU."""
    return {"peak_bytes": torch.cuda.max_memory_allocated(device)} if device.type == "cuda" else {}


def cache_folder(settings: Train) -> Path:
    """Where decoded images are kept."""
    if settings.packs:
        return Path(settings.packs)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "nearkin" / "packs"


def pack_folder(settings: Train, name: str, *source: object) -> Path:
    """The folder that keeps the decoded images of this source at this size."""
    return cache_folder(settings) / f"{name}-{seed_of(*source, settings.side):012x}"


def packs(settings: Train, ranks: Ranks, screen: Screen, splits: data.Splits | None = None) -> tuple[Pack, Pack | None]:
    """The training and the test images, decoded; the first process packs, the others open what it made.

    ``splits`` stands for the data set that the settings name, and is kept in memory only. Without images to test on the
    second is None.
    """
    found: tuple[Pack, Pack | None] | None = None
    for turn in (True, False):
        if ranks.first is turn:
            found = _packs(settings, screen, splits)
        ranks.wait()
    assert found is not None
    return found


def _packs(settings: Train, screen: Screen, splits: data.Splits | None) -> tuple[Pack, Pack | None]:
    options: dict[str, Any] = dict(settings.data_settings)
    base = None
    if splits is None:
        with screen.job("reading the data set"):
            splits = data.load(settings.data, settings.root or None, **options)
        where = str(Path(settings.root).resolve()) if settings.root else ""
        base = pack_folder(settings, settings.data, where, sorted(options.items()))
    for note in splits.notes:
        screen.note(note)
    parts: list[Pack | None] = []
    for name, table in (("train", splits.train), ("test", splits.test)):
        with screen.job(f"packing {name} images") as tell:
            place = base / name if base is not None else None
            parts.append(pack(table, place, side=settings.side or None, progress=tell) if len(table) else None)
    if parts[0] is None:
        raise ValueError("the data set must have images to train on, got none; check the path and the split.")
    return parts[0], parts[1]


def test_pack(settings: Train, screen: Screen) -> Pack:
    """The test images; raise where there are none."""
    found = packs(settings, Ranks(), screen)[1]
    if found is None:
        raise ValueError("the data set must have test images, got none; keep classes back for the test.")
    return found


test_pack.__test__ = False  # type: ignore[attr-defined]  # a name that begins with test is no test


def split(
    settings: Train, labels: NDArray[np.int64], way: str = "lower {name} to {value}", otherwise: str = ""
) -> protocols.Fold:
    """Which rows of the training images train and which validate; raise where those are too few to choose an epoch by.

    ``way``: how a person is told of the setting that works; ``otherwise``: what else may be done, in such words.
    """
    fold = kept_back.folds(settings, labels)[settings.fold if settings.protocol == "cross_validation" else 0]
    if len(fold.validation) and not kept_back.enough(fold, labels):
        counts = np.unique(labels[fold.validation], return_counts=True)[1]
        better = kept_back.remedy(settings, labels, way) or otherwise or "use last_epoch"
        raise ValueError(
            f"the classes kept back to validate must be at least two, one of them with two images, got "
            f"{len(counts)} with at most {counts.max()}; {better}, or add classes or images."
        )
    return fold


def parts(settings: Train, images: Pack) -> tuple[Pack, Pack | None]:
    """The training images as the protocol parts them: what trains, numbered anew, and what validates."""
    fold = split(settings, images.labels)
    if not len(fold.validation):
        return images, None
    return compact(images.select(fold.train)), images.select(fold.validation)


def sizes(**parts: Pack | None) -> dict[str, tuple[int, int]]:
    """How many images and classes each part has."""
    return {name: (len(part), len(np.unique(part.labels))) for name, part in parts.items() if part is not None}


def present(images: Pack) -> set[str]:
    """The names of the classes that have images."""
    return {images.class_names[label] for label in np.unique(images.labels)}


def compact(images: Pack) -> Pack:
    """The same images with labels that count from 0 without gaps: a loss has no proxies for classes that are absent."""
    present, labels = np.unique(images.labels, return_inverse=True)
    kinds = tuple(images.super_classes[label] for label in present) if images.super_classes else ()
    names = tuple(images.class_names[label] for label in present)
    return replace(images, labels=labels.astype(np.int64), class_names=names, super_classes=kinds)


def model(settings: Train) -> Embedder:
    """The network; new layers are drawn from the seed."""
    options: dict[str, Any] = dict(settings.network_settings)
    if settings.network in ("small", "digits"):
        options.setdefault("size", settings.size)
    made = models.create(
        settings.network,
        dim=settings.dim,
        levels=settings.names,
        pooling=settings.pooling or None,
        weights=settings.weights or None,
        frozen_batch_norm=settings.frozen_batch_norm,
        seed=settings.seed,
        **options,
    )
    with torch.no_grad():
        for name, value in made.heads.named_parameters():
            if ".linear." in name:
                value.mul_(settings.head_scale)
    return made


def sampler(settings: Train, labels: NDArray[np.int64], ranks: Ranks) -> Batches:
    """Which images make a batch; raise where a balanced one would hold a single class: nothing in it is a negative."""
    common: dict[str, Any] = {
        "batches": settings.batches or None,
        "seed": settings.seed,
        "rank": ranks.rank,
        "ranks": ranks.ranks,
    }
    per_class = 2 if settings.sampler == "n_pair" else settings.images
    classes = len(np.unique(labels))
    if settings.sampler in ("random", "smart"):
        return samplers.create(settings.sampler, labels, batch=min(settings.batch, len(labels)), **common)
    if settings.batch < 2 * per_class:
        lower = "" if settings.sampler == "n_pair" or settings.images == 1 else " or lower images"
        raise ValueError(
            f"batch must hold at least two classes of {wording.count(per_class, 'image')}, got {settings.batch}; raise "
            f"batch to {2 * per_class}{lower}."
        )
    fit = {"classes": min(settings.batch // per_class, classes)}
    if settings.sampler != "n_pair":
        fit["images"] = settings.images
    return samplers.create(settings.sampler, labels, **fit, **common)


def feed(settings: Train, model: Embedder, images: Pack, device: torch.device) -> Feed:
    """What hands out random crops to train on."""
    return _feed(settings, model, images, settings.size, settings.resize, device)


def test_feed(
    settings: Train, model: Embedder, images: Pack, device: torch.device, resident: Resident | None = None
) -> Feed:
    """What hands out centre crops to measure on."""
    size = settings.test_size or settings.size
    return _feed(settings, model, images, size, max(settings.test_resize or settings.resize, size), device, resident)


test_feed.__test__ = False  # type: ignore[attr-defined]  # a name that begins with test is no test


def _feed(
    settings: Train,
    model: Embedder,
    images: Pack,
    size: int,
    resize: int,
    device: torch.device,
    resident: Resident | None = None,
) -> Feed:
    kind = {"float64": torch.float64, "float32": torch.float32, "bf16": torch.bfloat16}.get(settings.precision)
    if kind is None:
        kind = torch.bfloat16 if device.type == "cuda" else torch.float32
    cropping = Geometry(
        settings.geometry,
        size=size,
        resize=resize,
        scale=(settings.crop_scale[0], settings.crop_scale[1]),
        mirror=0.5 if settings.mirror else 0.0,
    )
    return Feed(
        images,
        cropping,
        mean=model.mean,
        std=model.std,
        device=device,
        dtype=kind,
        channels_last=device.type == "cuda",
        resident=resident,
        workers=settings.workers,
        seed=settings.seed,
    )
