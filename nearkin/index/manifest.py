"""Which segments make an index, and which of their rows are gone: one small file, replaced in one step."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from nearkin import checkpoint, locks

FORMAT = 1
FILE = "index.json"
PATIENCE = 10.0


@dataclass(frozen=True)
class Part:
    """A segment: the name of its folder, its size, the checksums of its files, and the places of rows that are gone."""

    name: str
    size: int
    sums: dict[str, str] = field(default_factory=dict)
    gone: tuple[int, ...] = ()


@dataclass(frozen=True)
class Manifest:
    """The state of an index. ``model`` is the digest of the network its vectors come from."""

    dim: int
    model: str
    next_id: int = 0
    next_part: int = 0
    parts: tuple[Part, ...] = ()

    def write(self, folder: Path) -> None:
        facts = {
            "format": FORMAT,
            "dim": self.dim,
            "model": self.model,
            "next_id": self.next_id,
            "next_part": self.next_part,
            "parts": [
                {"name": part.name, "size": part.size, "sha256": part.sums, "gone": list(part.gone)}
                for part in self.parts
            ],
        }
        checkpoint.replace(folder / FILE, json.dumps(facts, indent=1).encode())

    def with_part(self, part: Part, next_id: int) -> Manifest:
        return replace(self, parts=(*self.parts, part), next_id=next_id, next_part=self.next_part + 1)


def read(folder: Path) -> Manifest:
    """The manifest of an index."""
    path = folder / FILE
    if not path.exists():
        raise ValueError(
            f"index must be a folder with {FILE}, got {str(folder)!r}; make one with nearkin index build RUN FOLDER."
        )
    try:
        facts = json.loads(path.read_bytes())
        if facts["format"] != FORMAT:
            raise ValueError(f"format {facts['format']}, this version reads {FORMAT}")
        parts = tuple(Part(part["name"], part["size"], part["sha256"], tuple(part["gone"])) for part in facts["parts"])
        return Manifest(facts["dim"], facts["model"], facts["next_id"], facts["next_part"], parts)
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{path} must be the manifest of an index, got {error}; build the index again.") from None


@contextlib.contextmanager
def writing(folder: Path, patience: float = PATIENCE) -> Iterator[None]:
    """Be the only writer; the system lets go of the lock when the process ends, however it ends."""
    with (folder / "lock").open("a") as file:
        last = time.monotonic() + patience
        while not locks.take(file, wait=False):
            if time.monotonic() > last:
                raise ValueError(
                    f"index {str(folder)!r} must have one writer at a time, got a second while another is at work; "
                    f"try again when it is done."
                )
            time.sleep(0.05)
        yield
