"""Checkpoints: safetensors and JSON, written so that a reader finds a whole one or none, with checksums.

A checkpoint is a folder ``checkpoint/00001200`` named after its step. It is written under another name, flushed to the disk
and renamed; a process killed at any moment leaves the previous one untouched. There is no pickle in it.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

FORMAT = 1
KEEP = 2


@dataclass(frozen=True)
class Checkpoint:
    """What was saved: groups of tensors by name ("model", "loss", "optimizer"), and plain facts."""

    step: int
    tensors: dict[str, dict[str, Tensor]]
    facts: dict[str, Any]


def save(folder: Path, step: int, tensors: Mapping[str, Mapping[str, Tensor]], facts: Mapping[str, Any]) -> Path:
    """Write a checkpoint of this step under ``folder`` and remove all but the newest two."""
    from safetensors.torch import save as serialize

    folder.mkdir(parents=True, exist_ok=True)
    target, working = folder / f"{step:08d}", folder / f".writing-{step:08d}-{os.getpid()}"
    shutil.rmtree(working, ignore_errors=True)
    working.mkdir()
    try:
        sums = {}
        for name, group in tensors.items():
            # Views into one storage would be refused; each tensor is saved whole, in the plain memory order.
            plain = {key: value.detach().to("cpu", copy=True).contiguous() for key, value in group.items()}
            sums[f"{name}.safetensors"] = write(working / f"{name}.safetensors", serialize(plain))
        state = {"format": FORMAT, "step": step, "sha256": sums, **facts}
        write(working / "state.json", json.dumps(state, indent=1).encode())
        flush(working)
        if target.exists():
            shutil.rmtree(target)
        os.replace(working, target)
        flush(folder)
    except OSError as error:
        shutil.rmtree(working, ignore_errors=True)
        raise OSError(
            f"checkpoint {target} could not be written: {error.strerror or error}; free some space."
        ) from error
    for old in steps(folder)[:-KEEP]:
        shutil.rmtree(folder / f"{old:08d}", ignore_errors=True)
    for left in folder.glob(".writing-*"):  # of a process that was killed
        shutil.rmtree(left, ignore_errors=True)
    return target


def steps(folder: Path) -> list[int]:
    """The steps of which checkpoints are there, oldest first."""
    return sorted(int(path.name) for path in folder.glob("[0-9]*") if path.name.isdigit())


def load(folder: Path, step: int | None = None) -> Checkpoint | None:
    """The newest checkpoint that is whole (or that of ``step``), None if there is none; a damaged one is passed over."""
    found = [step] if step is not None else steps(folder)[::-1]
    damage = []
    for number in found:
        try:
            return _read(folder / f"{number:08d}")
        except (OSError, ValueError, KeyError) as error:
            damage.append(f"{number:08d} ({error})")
    if damage:
        raise ValueError(
            f"{folder} must hold a whole checkpoint, got only damaged ones: {', '.join(damage)}; start the run anew."
        )
    return None


def _read(path: Path) -> Checkpoint:
    from safetensors.torch import load as parse

    state = json.loads((path / "state.json").read_bytes())
    if state["format"] != FORMAT:
        raise ValueError(f"format {state['format']}, this version reads {FORMAT}")
    tensors = {}
    for name, expected in state["sha256"].items():
        content = (path / name).read_bytes()
        if hashlib.sha256(content).hexdigest() != expected:
            raise ValueError(f"{name} does not match its checksum")
        tensors[name.removesuffix(".safetensors")] = parse(content)
    facts = {key: value for key, value in state.items() if key not in ("format", "step", "sha256")}
    return Checkpoint(state["step"], tensors, facts)


def write(path: Path, content: bytes) -> str:
    """Write a file through to the disk; returns its checksum."""
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    return hashlib.sha256(content).hexdigest()


class Unwritable(OSError):  # noqa: N818 - it says what the file is
    """A file that cannot be written: the name that was asked for, why, and what to do."""

    def __str__(self) -> str:
        remedy = "free some space" if self.errno in (errno.ENOSPC, errno.EDQUOT) else "choose another place"
        return f"{self.filename} must be a file that can be written, got a refusal ({self.strerror}); {remedy}."


def replace(path: Path, content: bytes) -> None:
    """Write a file so that a reader sees the old content or the new, never a part."""
    working = _working(path)
    try:
        write(working, content)
        os.replace(working, path)
    except OSError as error:
        _drop(working)
        raise Unwritable(error.errno, error.strerror, str(path)) from error
    flush(path.parent)


def check_file(name: str, path: Path, ending: str = "") -> None:
    """Raise unless a file can be written there and has that ending: better before the work than after it."""
    if ending and path.suffix.lower() != ending:
        raise ValueError(f"{name} must end in {ending}, got {str(path)!r}; rename it.")
    if path.is_dir():
        raise ValueError(f"{name} must be a file, got {str(path)!r}, which is a folder; add a name to it.")
    if not path.parent.is_dir():
        raise ValueError(
            f"{name} must lie in a folder that exists, got {str(path)!r}; make {str(path.parent)!r} first."
        )
    working = _working(path)
    try:
        working.touch()
    except OSError as error:
        raise Unwritable(error.errno, error.strerror, str(path)) from error
    finally:
        _drop(working)


def make_folder(name: str, path: Path) -> None:
    """Make a folder, and raise unless files can be written into it."""
    try:
        path.mkdir(parents=True, exist_ok=True)
        check_file(name, path / "file")
    except OSError as error:
        raise ValueError(
            f"{name} must be a folder that can be written, got {str(path)!r} ({error.strerror}); choose another."
        ) from error


def _working(path: Path) -> Path:
    """The name under which a file is written before it takes its own."""
    return path.with_name(f".{path.name}-{os.getpid()}")


def _drop(working: Path) -> None:
    with contextlib.suppress(OSError):
        working.unlink(missing_ok=True)


def flush(folder: Path) -> None:
    """Make names in a folder last through a loss of power, where the system allows it."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:  # Windows does not open folders
        return
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


# ------------------------------------------------------------------------------------------------- optimiser


def pack_optimizer(optimizer: torch.optim.Optimizer) -> tuple[dict[str, Tensor], list[dict[str, Any]]]:
    """The state of an optimiser as named tensors, and its groups as plain facts."""
    state = optimizer.state_dict()
    tensors = {
        f"{number}.{key}": value
        for number, entries in state["state"].items()
        for key, value in entries.items()
        if isinstance(value, Tensor)
    }
    return tensors, [{k: v for k, v in group.items() if k != "params"} for group in state["param_groups"]]


def unpack_optimizer(
    optimizer: torch.optim.Optimizer, tensors: Mapping[str, Tensor], groups: list[dict[str, Any]]
) -> None:
    """Give an optimiser of the same parameters the state that ``pack_optimizer`` took."""
    entries: dict[int, dict[str, Tensor]] = {}
    for name, value in tensors.items():
        number, key = name.split(".", 1)
        entries.setdefault(int(number), {})[key] = value
    state = optimizer.state_dict()
    if len(groups) != len(state["param_groups"]):
        raise ValueError(
            f"the checkpoint's optimiser must have {len(state['param_groups'])} groups, got {len(groups)}; "
            f"resume with the settings the run began with."
        )
    kept = [{**saved, "params": group["params"]} for saved, group in zip(groups, state["param_groups"], strict=True)]
    for group in kept:
        for key, value in group.items():
            if key == "betas":
                group[key] = tuple(value)
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    for place, values in entries.items():
        for key, value in values.items():  # a fused update wants moments that lie in memory as their parameter does
            if value.shape == parameters[place].shape:
                values[key] = torch.empty_like(parameters[place], dtype=value.dtype, requires_grad=False).copy_(value)
    optimizer.load_state_dict({"state": entries, "param_groups": kept})
