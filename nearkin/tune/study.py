"""The study: every trial of every loss, in one journal that several processes write to.

Each loss is one Optuna study. A process holds a lock of its own while it lives; a running trial whose process is gone is
abandoned, and its parameters wait for the next process. Who decides what to try next is alone while doing so.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from nearkin import __version__
from nearkin.locks import FileLock, held
from nearkin.tune.attempt import ABANDONED, COUNTED, FAILED, PRUNED, RUNNING, WAITING, Attempt
from nearkin.tune.needs import optuna
from nearkin.tune.plan import Plan
from nearkin.tune.propose import METHODS, Pause, distributions

FORMAT = 1
JOURNAL = "journal.jsonl"
FACTS = "nearkin"
# A trial that so many processes died over is failed and not run again.
DEATHS = 3
# Trials of a loss that run to their end before the pruner stops any.
PRUNE_AFTER = 5
DIED = "its process died"


class Study:
    """The trials of some losses in a folder, seen by one process."""

    def __init__(
        self,
        folder: Path,
        plans: list[Plan],
        *,
        trials: int,
        method: str = "tpe",
        pruner: str = "none",
        search_seed: int = 0,
        images: str = "",
        worker: str = "",
        plan_of: Callable[[str], Plan] | None = None,
    ) -> None:
        """``images``: the checksum of the training images, which must stay. ``worker``: the name of this process where
        another one began it, which then looks after trials that are lost. ``plan_of``: the plan of any loss with the
        settings of now, by which losses that are there already are looked at before one is added."""
        self.folder, self.plans = folder, {plan.loss: plan for plan in plans}
        self.trials, self.method, self.pruner, self.search_seed = trials, method, pruner, search_seed
        self.workers = folder / "workers"
        self.workers.mkdir(parents=True, exist_ok=True)
        self.sweeps = not worker
        self.worker = worker or f"{os.getpid()}-{secrets.token_hex(3)}"
        self.alive = FileLock(self.workers / f"{self.worker}.lock")
        self.images, self.plan_of = images, plan_of
        self.storage: Any = None
        self.there: dict[str, int] = {}
        self.studies: dict[str, Any] = {}
        with self.alone():
            self._open()

    @contextmanager
    def alone(self) -> Iterator[None]:
        """No other process decides meanwhile."""
        with held(self.folder / "study.lock"):
            yield

    def __enter__(self) -> Study:
        self.alive.acquire()
        return self

    def __exit__(self, *_: object) -> None:
        self.alive.release()
        (self.workers / f"{self.worker}.lock").unlink(missing_ok=True)

    # ------------------------------------------------------------------------------------------ opening

    def _open(self) -> None:
        library = optuna()
        journal = self.folder / JOURNAL
        check_journal(journal)
        try:
            backend = library.storages.journal.JournalFileBackend(
                str(journal), lock_obj=_JournalLock(self.folder / "journal.lock")
            )
            storage = library.storages.JournalStorage(backend)
            there = {name: storage.get_study_id_from_name(name) for name in self._names(storage)}
        except (ValueError, KeyError, TypeError, AssertionError, NotImplementedError) as error:
            raise ValueError(
                f"study must be one that this version reads, got {str(self.folder)!r}, whose journal it does not "
                f"({type(error).__name__}: {error}); use the version that wrote it, or another folder. "
                f"Nothing in it was changed."
            ) from None
        for loss, plan in self.plans.items():  # all are looked at before any is made
            if loss in there:
                facts = storage.get_study_user_attrs(there[loss]).get(FACTS)
                self._check(plan, facts, bool(storage.get_all_trials(there[loss], deepcopy=False)))
        self._check_former(storage)
        for loss, plan in self.plans.items():
            options = {
                "storage": storage,
                "study_name": loss,
                "sampler": library.samplers.RandomSampler(seed=0),  # every trial has its parameters beforehand
                "pruner": self._pruner(plan),
            }
            if loss not in there:
                library.create_study(direction="maximize", **options)
            study = library.load_study(**options)
            if FACTS not in study.user_attrs:
                study.set_user_attr(FACTS, self._facts(plan))
            self.studies[loss] = study
            self.there[loss] = storage.get_study_id_from_name(loss)
        self.storage = storage

    def _names(self, storage: Any) -> list[str]:
        return [study.study_name for study in storage.get_all_studies()]

    def losses(self) -> list[str]:
        """Every loss of the study, those too that are not searched now, in the order in which they came."""
        return list(_facts_of(self.storage))

    def _check_former(self, storage: Any) -> None:
        """Raise where a loss is added with settings with which those that are there could not go on."""
        former = _facts_of(storage)
        if self.plan_of is None or self.plans.keys() <= former.keys():
            return
        for loss in (loss for loss in former if loss not in self.plans):
            check_format(self.folder, former[loss])
            try:
                plan = self.plan_of(loss)
            except (ValueError, TypeError) as error:
                raise ValueError(
                    f"settings must suit every loss of the study {str(self.folder)!r}, got some that do not suit {loss} "
                    f"({str(error).rstrip('.')}); change them, or begin another study with --study."
                ) from None
            self._check(plan, former[loss], begun=True)

    def _facts(self, plan: Plan) -> dict[str, Any]:
        how = {"method": self.method, "pruner": self.pruner, "search_seed": self.search_seed}
        if self.method == "one_at_a_time":  # shares of the trials
            how["trials"] = self.trials
        return {"format": FORMAT, "version": __version__, "images": self.images, "how": how, "fixed": plan.fixed()}

    def _check(self, plan: Plan, facts: Any, begun: bool) -> None:
        """Raise unless the study there was begun by this format with these settings."""
        if facts is None and not begun:  # killed before it wrote them
            return
        check_format(self.folder, facts)
        mine = self._facts(plan)
        if facts["images"] != self.images:
            raise ValueError(
                f"the training images must be those the study {str(self.folder)!r} began with, got others; "
                f"restore them, or begin another study with --study."
            )
        for part in ("how", "fixed"):
            for name in sorted(set(mine[part]) | set(facts[part])):
                before, now = facts[part].get(name), mine[part].get(name)
                if before != now and not (name == "weights" and _same_file(before, now)):
                    raise ValueError(
                        f"{name} of {plan.loss} must stay {before!r} in the study {str(self.folder)!r}, got {now!r}; "
                        f"leave it out, or begin another study with --study."
                    )

    def _pruner(self, plan: Plan) -> Any:
        pruners = optuna().pruners
        if self.pruner == "none":
            return pruners.NopPruner()
        # In the first epochs high rates, which may win, look worse than low ones.
        first = max(plan.base.warm_up, plan.base.epochs // 3)
        return pruners.MedianPruner(n_startup_trials=PRUNE_AFTER, n_warmup_steps=first)

    # ------------------------------------------------------------------------------------------ looking

    def attempts(self, loss: str) -> list[Attempt]:
        """Every trial of a loss, those too that were abandoned and run again."""
        return [_attempt(loss, trial) for trial in self.studies[loss].get_trials(deepcopy=False)]

    def current(self, loss: str) -> list[Attempt]:
        """The trials of a loss that nothing repeats."""
        found = self.attempts(loss)
        repeated = {attempt.again for attempt in found}
        return [attempt for attempt in found if attempt.number not in repeated]

    def counted(self, loss: str) -> list[Attempt]:
        """The trials that are over: done, pruned or failed."""
        return [attempt for attempt in self.current(loss) if attempt.status in COUNTED]

    # ------------------------------------------------------------------------------------------ deciding

    def begin(self) -> tuple[Any, Attempt] | Pause:
        """The next trial, of the loss that has had fewest; or why there is none."""
        with self.alone():
            if self.sweeps:
                self.sweep()
            waits = False
            order = {loss: len(self.current(loss)) for loss in self.studies}
            for loss in sorted(order, key=lambda loss: order[loss]):
                found = self._begin(loss)
                if not isinstance(found, Pause):
                    return found
                waits = waits or found is Pause.WAIT
        return Pause.WAIT if waits else Pause.OVER

    def _begin(self, loss: str) -> tuple[Any, Attempt] | Pause:
        study, plan = self.studies[loss], self.plans[loss]
        tried = self.current(loss)
        if not any(attempt.status == WAITING for attempt in tried):
            if len(tried) >= self.trials:
                return Pause.OVER
            found = METHODS[self.method](plan, tried, self.trials, self.search_seed)
            if isinstance(found, Pause):
                return found
            self._queue(loss, found)
        trial = study.ask(distributions(plan))
        trial.set_user_attr("worker", self.worker)
        attempt = next(entry for entry in self.attempts(loss) if entry.number == trial.number)
        return trial, attempt

    def _queue(self, loss: str, parameters: dict[str, Any], **facts: Any) -> None:
        self.studies[loss].enqueue_trial(parameters, user_attrs={"parameters": parameters, **facts})

    def sweep(self, reasons: Callable[[str], str] = lambda worker: DIED) -> None:
        """Abandon trials whose process is gone, and let what was abandoned wait for a process. Call it alone.

        ``reasons``: of the name of a process, how it ended; "" leaves its trial for later.
        """
        for loss in self.studies:
            for attempt in self.attempts(loss):
                reason = reasons(attempt.worker)
                if attempt.status != RUNNING or not reason or self._lives(attempt.worker):
                    continue
                deaths = attempt.deaths + 1
                if deaths < DEATHS:
                    self.end(loss, attempt.number, ABANDONED, reason=reason, deaths=deaths)
                else:
                    reason = f"{DEATHS} processes died over it, the last one: {reason}"
                    self.end(loss, attempt.number, FAILED, reason=reason, deaths=deaths)
            for attempt in self.current(loss):
                if attempt.status == ABANDONED:
                    self._queue(loss, attempt.parameters, again=attempt.number, deaths=attempt.deaths)

    def retry_failed(self) -> None:
        """Let every failed trial wait for a process again; what came of it stays in the files."""
        with self.alone():
            for loss in self.studies:
                for attempt in self.current(loss):
                    if attempt.status == FAILED:
                        self._queue(loss, attempt.parameters, again=attempt.number)

    def _lives(self, worker: str) -> bool:
        """Whether the process of that name is still there. One without a name was lost while it was alone."""
        path = self.workers / f"{worker}.lock"
        if worker == self.worker:
            return True
        if not worker or not path.exists():
            return False
        lock = FileLock(path)
        if not lock.try_acquire():
            return True
        path.unlink(missing_ok=True)
        path.with_suffix(".log").unlink(missing_ok=True)
        lock.release()
        return False

    # ------------------------------------------------------------------------------------------ ending

    def end(self, loss: str, number: int, status: str, value: float | None = None, **facts: Any) -> None:
        """Write what came of a trial; the last line makes it so."""
        study, state = self.studies[loss], optuna().trial.TrialState
        key = self.storage.get_trial_id_from_study_id_trial_number(self.there[loss], number)
        for name, fact in {"status": status, "value": value, **facts}.items():
            if fact is not None:
                self.storage.set_trial_user_attr(key, name, fact)
        states = {PRUNED: state.PRUNED, FAILED: state.FAIL, ABANDONED: state.FAIL}
        if status in states:
            study.tell(number, state=states[status])
        else:
            study.tell(number, value)


def check_format(folder: Path, facts: Any) -> None:
    """Raise unless these facts were written in the format of this version."""
    found = facts.get("format") if isinstance(facts, dict) else None
    if found != FORMAT:
        wrote = facts.get("version", "unknown") if isinstance(facts, dict) else "unknown"
        raise ValueError(
            f"study must be of format {FORMAT}, got {found} in {str(folder)!r}, written by nearkin {wrote}; go on with "
            f"that version, or begin another study with --study. Nothing in it was changed."
        )


def check_journal(path: Path) -> None:
    """Raise unless every whole line of a journal can be read: Optuna meets a broken last one later and names no file."""
    for number, line in enumerate(path.read_bytes().split(b"\n")[:-1] if path.exists() else [], 1):
        try:
            json.loads(line)
        except ValueError as error:
            raise ValueError(
                f"{path} line {number} must be JSON, got a damaged line ({error}); restore the file, or begin another "
                f"study with --study. Nothing in it was changed."
            ) from None


def _facts_of(storage: Any) -> dict[str, Any]:
    """What is written about each loss of a study; a study of somebody else in the same journal is left out."""
    return {
        study.study_name: study.user_attrs[FACTS] for study in storage.get_all_studies() if FACTS in study.user_attrs
    }


def _same_file(before: str | None, now: str | None) -> bool:
    """Whether two paths mean one file: studies of former versions hold them as they were typed."""
    return bool(before and now) and Path(str(before)).resolve() == Path(str(now)).resolve()


def _attempt(loss: str, trial: Any) -> Attempt:
    facts = trial.user_attrs
    open_states = {"RUNNING": RUNNING, "WAITING": WAITING}
    return Attempt(
        loss=loss,
        number=trial.number,
        status=open_states.get(trial.state.name) or facts.get("status", FAILED),
        parameters=facts["parameters"],
        value=facts.get("value"),
        epoch=facts.get("epoch"),
        seconds=facts.get("seconds"),
        reason=facts.get("reason", ""),
        again=facts.get("again"),
        deaths=facts.get("deaths", 0),
        worker=facts.get("worker", ""),
        curve=dict(trial.intermediate_values),
    )


class _JournalLock(FileLock):
    """The lock of the journal. Whoever gets it first cuts a last line without its end, which a full disk or a loss of power
    has left: nobody relied on it, and the next line would be glued to it."""

    def acquire(self) -> bool:
        super().acquire()
        with (self.path.parent / JOURNAL).open("r+b") as file:
            size = at = file.seek(0, os.SEEK_END)
            while at and (file.seek(at - 1), file.read(1))[1] != b"\n":
                at -= 1
            if at < size:
                file.truncate(at)
        return True
