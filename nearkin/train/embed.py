"""``nearkin embed``: turn a folder of images into vectors."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from nearkin import checkpoint, config, wording
from nearkin.checks import Limit
from nearkin.config import option

WHOLE = Limit(low=0, whole=True)


@dataclass(frozen=True)
class Embed:
    """The flags of ``nearkin embed``."""

    run: str = option("", "folder of the run", positional=True)
    folder: str = option("", "folder of images, also in folders inside it", positional=True)
    out: str = option("embeddings.safetensors", "file to write: .safetensors or .npy, names beside it in .json")
    packs: str = option("", "folder that keeps decoded images; default: the user's cache")
    device: str = option("auto", "cpu, cuda or cuda:N; auto: cuda where there is one")
    workers: int = option(0, "threads that prepare batches ahead", WHOLE)
    threads: int = option(0, "CPU threads; 0: as torch chooses", WHOLE)

    def __post_init__(self) -> None:
        config.check("embed", self)
        if Path(self.out).suffix not in (".safetensors", ".npy"):
            raise ValueError(f"embed: out must end in .safetensors or .npy, got {self.out!r}; rename it.")


def run(command: Embed) -> None:
    """Turn a folder of images into unit vectors with a trained run.

    nearkin embed runs/x my/folder --out vectors.safetensors

    The file holds ``embeddings`` (n, dim); ``vectors.json`` beside it names the images, row by row, and those left out.
    """
    from nearkin.train.restore import unfinished, warn_unfinished
    from nearkin.train.screen import screen

    warn_unfinished("embed", unfinished(Path(command.run)))
    out = Path(command.out)
    _check_out(out)
    checkpoint.check_file("out", out)
    shown = screen()
    try:
        vectors, names, bad = embed_folder(command, shown)
    finally:
        shown.close()
    if out.suffix == ".npy":
        import io

        buffer = io.BytesIO()
        np.save(buffer, vectors, allow_pickle=False)
        checkpoint.replace(out, buffer.getvalue())
    else:
        from safetensors.numpy import save

        checkpoint.replace(out, save({"embeddings": vectors}))
    facts = {"run": command.run, "images": names, "left_out": [list(entry) for entry in bad]}
    checkpoint.replace(out.with_suffix(".json"), json.dumps(facts, indent=1).encode())
    made, names_file = wording.count(len(vectors), "vector"), out.with_suffix(".json")
    print(f"{made} of {vectors.shape[1]} dimensions in {out}, names in {names_file}")
    for name, reason in bad:
        print(f"left out {name}: {reason}")


def _check_out(out: Path) -> None:
    """Raise if the vectors or their names would replace a file that no embed wrote."""
    names = out.with_suffix(".json")
    for path in (names, out):
        if path.exists() and not _ours(names):
            raise ValueError(
                f"out must be a new file or an earlier one of nearkin embed, got {str(out)!r}, where {str(path)!r} is "
                f"something else; choose another name."
            )


def _ours(names: Path) -> bool:
    """Whether a file names the images of vectors, as this command writes it."""
    try:
        found = json.loads(names.read_bytes())
    except (OSError, ValueError):
        return False
    return isinstance(found, dict) and found.keys() >= {"run", "images", "left_out"}


def embed_folder(command: Embed, screen: Any) -> tuple[np.ndarray, list[str], list[tuple[str, str]]]:
    """Vectors (n, dim), names of the images, and what could not be read with the reason."""
    from nearkin.data.files import pictures
    from nearkin.data.pack import pack
    from nearkin.data.table import ImageTable
    from nearkin.distributed import Ranks
    from nearkin.train import measure, prepare
    from nearkin.train.restore import restore

    device = prepare.device(command.device)
    settings, model = restore(Path(command.run), device)
    settings = replace(settings, packs=command.packs, workers=command.workers, threads=command.threads)
    paths = pictures(Path(command.folder))
    table = ImageTable(paths, np.zeros(len(paths), np.int64), ("",))
    base = prepare.pack_folder(settings, "images", str(Path(command.folder).resolve()))
    with prepare.machine(settings, device):
        with screen.job("packing images") as tell:
            images = pack(table, base, side=settings.side or None, progress=tell)
        feed = prepare.test_feed(settings, model, images, device)
        with screen.job("embedding") as tell:
            vectors = measure.embed(model, feed, Ranks(), settings, device, tell)
    return vectors.cpu().numpy(), list(images.names), list(images.bad)
