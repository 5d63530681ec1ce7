"""TensorBoard files beside the log, where TensorBoard is installed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from nearkin.wording import feedback


class Board:
    """Writes the numbers of records; does nothing where TensorBoard is not installed or not wanted.

    The word goes with numbers of the test set where that chooses the epoch.
    """

    def __init__(self, folder: Path, wanted: bool, step: int, protocol: str) -> None:
        self.writer: Any = None
        self.words = dict.fromkeys(("evaluate", "test"), feedback(protocol))
        if wanted:
            try:
                from torch.utils.tensorboard import SummaryWriter
            except ImportError:
                return
            # What a killed run wrote after the checkpoint that is gone back to is hidden.
            self.writer = SummaryWriter(str(folder / "tensorboard"), purge_step=step or None)

    def write(self, records: list[dict[str, Any]]) -> None:
        if self.writer is None:
            return
        for record in records:
            kind, step = record["kind"], record["step"]
            for key, value in record.items():
                if isinstance(value, float) and key != "seconds":
                    self.writer.add_scalar(f"{kind}{self.words.get(kind, '')}/{key}", value, step)

    def close(self) -> None:
        if self.writer is not None:
            self.writer.close()
