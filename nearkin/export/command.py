"""``nearkin export``: take a trained model away."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from nearkin import checkpoint, config
from nearkin.config import option
from nearkin.export.card import FIRST

README = "README.md"


@dataclass(frozen=True)
class Export:
    """The flags of ``nearkin export``."""

    run: str = option("", "folder of the run", positional=True)
    to: str = option("onnx", "form: one ONNX file, or a folder with safetensors and a card", ("onnx", "safetensors"))
    out: str = option("", "file or folder to write; default: RUN.onnx, RUN-model")
    name: str = option("", "title of the card")

    def __post_init__(self) -> None:
        config.check("export", self)


def run(command: Export) -> None:
    """Take a trained model away.

    nearkin export runs/birds --to onnx --out birds.onnx          pixels in, unit vectors out, nothing else needed
    nearkin export runs/birds --to safetensors --out birds        weights, facts and a card, for nearkin.load and hubs
    """
    from nearkin.export.card import card
    from nearkin.train.restore import warn_unfinished
    from nearkin.trained import load

    source = Path(command.run)
    trained = load(source, "cpu")
    warn_unfinished("export", trained.facts.get("unfinished", ""))
    if command.to == "onnx":
        from nearkin.export.onnx import to_onnx

        target = Path(command.out or f"{source.name}.onnx")
        checkpoint.check_file("out", target)
        _check_onnx(target)
        to_onnx(trained, target)
        print(f"{target}: images (n, height, width, 3) of uint8 to {trained.dim}-dimensional unit vectors")
        return
    target = Path(command.out or f"{source.name}-model")
    _check_folder(target)
    checkpoint.make_folder("out", target)
    trained.save(target)
    checkpoint.replace(target / README, card(trained, source, command.name).encode())
    print(f"{target}: model.safetensors, nearkin.json and README.md; load it with nearkin.load({str(target)!r})")


def _check_onnx(target: Path) -> None:
    """Raise if a file is there that no export wrote."""
    if target.exists() and b"nearkin" not in target.read_bytes():
        raise ValueError(
            f"out must be a new file or an earlier export, got {str(target)!r}, which is something else; choose another."
        )


def _check_folder(target: Path) -> None:
    """Raise unless a folder is new, empty, or that of an earlier export with its own card."""
    from nearkin.trained import FACTS

    if target.exists() and not target.is_dir():
        raise ValueError(f"out must be a folder, got {str(target)!r}, which is a file; choose another.")
    there = target.exists() and any(target.iterdir())
    if there and not (target / FACTS).exists():
        raise ValueError(
            f"out must be a new or empty folder or that of an earlier export, got {str(target)!r}, which holds "
            f"something else; choose another."
        )
    if (target / README).exists() and FIRST not in (target / README).read_text(encoding="utf-8", errors="replace"):
        raise ValueError(
            f"out must be a folder whose {README} is the card of a model, got {str(target)!r}, where it is something "
            f"else; choose another."
        )
