"""The commands `nearkin data get` and `nearkin data info`: a frozen dataclass of flags each, and a function of it."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path

from nearkin import config
from nearkin.data import get as get_data_set
from nearkin.data import registry
from nearkin.data.download import PART
from nearkin.data.info import describe
from nearkin.data.info import info as look
from nearkin.data.show import shown_progress


@dataclass(frozen=True)
class Get:
    """Flags of ``nearkin data get``."""

    name: str = config.option("", "the data set: cub200, cars196, sop, inshop or mnist", positional=True)
    root: str = config.option("", "folder to put it in; data/NAME if not given")


@dataclass(frozen=True)
class Info:
    """Flags of ``nearkin data info``."""

    path: str = config.option("", "a folder of images, a CSV or Parquet table, or an archive", positional=True)


def get(settings: Get) -> None:
    """Download a benchmark, verify and unpack it, and check the published counts; run it again to resume."""
    registry.entry_of(settings.name)  # a misspelt name is an error before anything is made
    root = Path(settings.root or f"data/{settings.name}")
    try:
        with shown_progress() as progress:
            get_data_set(settings.name, root, progress, say=lambda sentence: print(sentence, flush=True))
    except KeyboardInterrupt:
        parts = sorted(root.glob(f"*{PART}"))
        kept = f" with {parts[0].stat().st_size:,} bytes kept in {parts[0]}" if parts else ""
        again = f"nearkin data get {settings.name} --root {shlex.quote(str(root))}"
        raise KeyboardInterrupt(f"interrupted{kept}; run {again} to go on.") from None
    print(f"Describe it with: nearkin data info {shlex.quote(str(root))}")


def info(settings: Info) -> int:
    """Describe what lies at a path: data set, layout, images, classes, formats, sizes, and what to do next.

    The exit code is 0 if it can be trained on as it lies, and 1 if it cannot be loaded or its images cannot be read.
    """
    found = look(settings.path)
    print(describe(found))
    return 0 if found.usable else 1
