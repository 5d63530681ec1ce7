"""One trial: a run in a folder of its own, told about epoch by epoch, and what came of it."""

from __future__ import annotations

import gc
import shutil
import time
import traceback
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from nearkin import checkpoint, config
from nearkin.train.folder import RunFolder
from nearkin.train.loop import train
from nearkin.train.screen import Bad, Screen, Sizes
from nearkin.train.stop import hearing
from nearkin.train.watch import Diverged
from nearkin.tune.attempt import ABANDONED, DONE, FAILED, PRUNED, Attempt
from nearkin.tune.needs import optuna
from nearkin.tune.show import Show
from nearkin.tune.study import Study

if TYPE_CHECKING:
    from nearkin.models import Embedder
    from nearkin.train.settings import Train

STOPPED = "stopped on request"


class Follow(Screen):
    """Hands each validation figure to the study, which may say that the trial is not worth its end."""

    def __init__(self, trial: Any, attempt: Attempt, measure: str, show: Show, stopped: Callable[[], bool]) -> None:
        self.trial, self.attempt, self.measure, self.show, self.stopped = trial, attempt, measure, show, stopped
        self.best: tuple[float, int] | None = None
        self.last = 0
        self.asked: type[KeyboardInterrupt] | None = None

    def begin(self, settings: Train, steps: int, step: int, model: Embedder, sizes: Sizes, bad: Bad) -> None:
        """A run that goes on tells first what was measured before."""
        if self.stopped():  # while everything was made ready; from here on the loop hears it itself
            raise KeyboardInterrupt
        self.show.steps(self.attempt, steps, step)
        for record in RunFolder(Path(settings.out)).records("validate") if step else []:
            self._tell(record)

    def step(self, step: int, record: dict[str, Any], size: int) -> None:
        self.show.step(self.attempt, step)

    def measured(self, record: dict[str, Any]) -> None:
        if record["kind"] == "validate":
            stop = hearing()
            self.asked = stop.kind if stop and stop.asked else None
            self._tell(record)
            if self.trial.should_prune():
                raise optuna().TrialPruned()

    def _tell(self, record: dict[str, Any]) -> None:
        value, epoch = record[self.measure], record["epoch"]
        self.trial.report(value, epoch)
        self.last = epoch
        if self.best is None or value > self.best[0]:
            self.best = value, epoch


def run(study: Study, trial: Any, attempt: Attempt, show: Show, stopped: Callable[[], bool] = lambda: False) -> None:
    """Train and write what came of it. An error that more trials would meet too is raised, the trial abandoned."""
    plan = study.plans[attempt.loss]
    folder = study.folder / "trials" / attempt.name
    resume = _taken_over(study, attempt, folder)
    follow = Follow(trial, attempt, f"recall@{plan.base.ks[0]}", show, stopped)
    begun = time.perf_counter()

    def end(status: str, reason: str = "") -> None:
        value, epoch = follow.best or (None, None)
        seconds = round(time.perf_counter() - begun, 3)
        study.end(attempt.loss, attempt.number, status, value, epoch=epoch, seconds=seconds, reason=reason)
        if status != ABANDONED:
            shutil.rmtree(folder / "checkpoint", ignore_errors=True)

    try:
        settings = plan.accepted(attempt.parameters, str(folder))
    except (ValueError, TypeError, ArithmeticError) as error:  # it says nothing about others: the start was accepted
        end(FAILED, _sentence(error))
        return
    try:
        chosen = train(settings, resume=resume, screen=follow)["validation"]
        follow.best = chosen[follow.measure], chosen["epoch"]
        end(DONE)
        if follow.asked:  # in the last epoch, when the run itself goes on to its end
            raise follow.asked
    except optuna().TrialPruned:
        end(PRUNED, f"below the median of the other trials in epoch {follow.last + 1}")
    except Diverged as trouble:
        end(FAILED, str(trouble).split(";")[0])
    except KeyboardInterrupt:
        if not study.attempts(attempt.loss)[attempt.number].finished:
            end(ABANDONED, STOPPED)
        raise
    except (OSError, ImportError, MemoryError) as error:  # a full disk is no fault of the parameters
        end(ABANDONED, _sentence(error))
        raise
    except Exception as error:
        first = not study.counted(attempt.loss)
        if isinstance(error, ValueError | TypeError) and first:  # the others would end like this one
            end(ABANDONED, _sentence(error))
            raise
        if folder.is_dir():
            checkpoint.replace(folder / "error.txt", traceback.format_exc().encode())
        end(FAILED, _sentence(error))
    finally:
        if torch.cuda.is_available():
            gc.collect()  # what the run held on the device


def _taken_over(study: Study, attempt: Attempt, folder: Path) -> bool:
    """Take over the folder of the abandoned trial that this one repeats; whether there is a run in it to go on with."""
    if attempt.again is not None and study.attempts(attempt.loss)[attempt.again].status == ABANDONED:
        before = folder.with_name(f"{attempt.loss}-{attempt.again}")
        if (before / "config.toml").exists() and not folder.exists():
            before.rename(folder)
    if (folder / "config.toml").exists():
        settings = RunFolder(folder).settings()
        if settings.out != str(folder):
            text = config.dump(replace(settings, out=str(folder)))
            checkpoint.replace(folder / "config.toml", text.encode())
        return True
    return False


def _sentence(error: BaseException) -> str:
    """An error in one line."""
    text = " ".join(str(error).split())
    named = isinstance(error, ValueError | OSError) and text
    return (text if named else f"{type(error).__name__}: {text}".rstrip(": "))[:500]
