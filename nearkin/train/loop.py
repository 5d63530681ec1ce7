"""The training loop, to be read from top to bottom.

All randomness is a function of (seed, step): which images make a batch, how they are cropped, what random layers and miners
draw. A checkpoint therefore holds weights, the optimiser's state and a step number, and a resumed run repeats the rest.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import torch
from torch import Tensor

from nearkin import calling, checkpoint, distributed, samplers
from nearkin.data.table import Splits
from nearkin.distributed import Ranks
from nearkin.train import before, cache, epochs, graph, optimizer, prepare
from nearkin.train.board import Board
from nearkin.train.epochs import Moment
from nearkin.train.folder import RunFolder
from nearkin.train.graph import Forward
from nearkin.train.judge import Auditor, Untrained, judge
from nearkin.train.measure import QUICK, embed
from nearkin.train.objective import Objective, spread
from nearkin.train.screen import Screen, Silent
from nearkin.train.settings import Train
from nearkin.train.stop import Stop
from nearkin.train.watch import Diverged, Watch


def train(
    settings: Train,
    *,
    resume: bool = False,
    screen: Screen | None = None,
    splits: Splits | None = None,
    untrained: bool = False,
) -> dict[str, Any]:
    """Train as the settings say, into the folder ``settings.out``; returns the measures of the test set.

    ``resume`` goes on with the run that is in the folder, to the same end as if it had never been stopped. ``splits``
    stands for the data set that the settings name. ``untrained``: also measure the test set before the first step.
    """
    device = distributed.local_device(prepare.device(settings.device))
    with distributed.start(device) as ranks, prepare.machine(settings, device):
        shown = (screen or Silent()) if ranks.first else Silent()
        return _Run(settings, device, ranks, shown, resume, splits, untrained).go()


class Clock:
    """Seconds spent on training alone: measuring and saving are left out, and so is recording the network's kernels, whose
    seconds are counted apart."""

    def __init__(self) -> None:
        self.seconds = self.recording = 0.0
        self.since: float | None = None

    def start(self) -> None:
        self.since = time.perf_counter()

    def stop(self) -> None:
        if self.since is not None:
            self.seconds += time.perf_counter() - self.since
        self.since = None


class _Run:
    """The parts of a run, made in the order in which they depend on each other."""

    def __init__(
        self,
        settings: Train,
        device: torch.device,
        ranks: Ranks,
        screen: Screen,
        resume: bool,
        splits: Splits | None = None,
        untrained: bool = False,
    ) -> None:
        self.settings, self.device, self.ranks, self.screen = settings, device, ranks, screen
        self.folder = RunFolder(Path(settings.out))
        if not resume:
            self.folder.check_new(settings.packs)
        known, testing = prepare.packs(settings, ranks, screen, splits)
        self.pack, validating = prepare.parts(settings, known)
        before.check_images(settings, self.pack, testing)
        for doubt in before.doubts(settings, testing, resume):
            screen.warn(doubt)
        self.sums = [known.checksum, testing.checksum if testing else ""]
        self.shared = len(prepare.present(known) & prepare.present(testing)) if testing else 0
        self.bad = (*known.bad, *(testing.bad if testing else ()))
        self.sizes = prepare.sizes(train=self.pack, validation=validating, test=testing)
        self.model = prepare.model(settings).to(device)
        self.objective = self._objective().to(device)
        if settings.precision == "float64":
            self.model, self.objective = self.model.double(), self.objective.double()
        elif device.type == "cuda":
            self.model = self.model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        ranks.share(self.model)
        self.sampler = prepare.sampler(settings, self.pack.labels, ranks)
        before.check_batch(self.sampler.size)
        self.objective.expect(self.sampler.most)
        self.per_epoch = self.sampler.batches
        self.steps = settings.iterations or settings.epochs * self.per_epoch
        self.counts = ranks.shares(self.sampler.size)
        self.feed = prepare.feed(settings, self.model, self.pack, device)
        before.check_test_size(settings, self.model, self.feed, device)
        # From here on the labels that choose and those that test are out of reach: what is left are functions of a model.
        seat = functools.partial(judge, settings, self.model, ranks=ranks, device=device)
        beside: dict[str, Any] = {"metrics": QUICK, "resident": self.feed.resident, "part": "validation"}
        self.validate = seat(validating, **beside) if validating else None
        self.test = seat(testing) if settings.test and testing else None
        sealed = self.folder.path / "audit.jsonl"
        self.auditor = Auditor(self.test, sealed, ranks.first) if self.test and settings.audits else None
        before_all = self.folder.path / "untrained.json"
        self.untrained = Untrained(self.test, before_all, ranks.first) if self.test and untrained else None
        self.best: dict[str, Any] = {}
        self.chosen: dict[str, Tensor] = {}
        self.optimizer = optimizer.make(settings, self.model, self.objective)
        self.learned = [value for group in self.optimizer.param_groups for value in group["params"]]
        self.watch = Watch(device, settings.collapse)
        self.plain: Forward = torch.compile(self.model) if settings.compile else self.model
        self.forward, self.recorded = self.plain, False
        self.step = 0
        self.clock = Clock()
        self.saved = time.perf_counter()
        self.epoch_losses: list[float] = []
        if resume:
            self._restore()
        elif ranks.first:
            self.folder.begin(settings)
            epochs.forget(self.folder.path, -1)  # of a run that was here before
        self.board = Board(self.folder.path, settings.tensorboard and ranks.first, self.step, settings.protocol)

    def _objective(self) -> Objective:
        settings = self.settings
        return Objective(
            settings.loss,
            settings.loss_settings,
            levels=self.model.levels,
            dim=settings.dim,
            classes=len(self.pack.class_names),
            memory=settings.memory,
            seed=settings.seed,
        )

    # ------------------------------------------------------------------------------------------ the loop

    def go(self) -> dict[str, Any]:
        """Train to the end, then measure."""
        self.screen.begin(self.settings, self.steps, self.step, self.model, self.sizes, self.bad)
        try:
            if self.untrained and not self.step:
                with self.screen.job("measuring the network as it came"):
                    self.untrained(self.model)
            with Stop() as stop:
                while self.step < self.steps:
                    epoch, first = divmod(self.step, self.per_epoch)
                    self._new_layers_only(epoch < self.settings.warm_up)
                    if first == 0:
                        self._mine(epoch)
                    self.sampler.set_epoch(epoch, first)
                    self.clock.start()
                    for images, labels, _ in self._batches(self.steps - self.step):
                        self._record(images, epoch < self.settings.warm_up)
                        self._one_step(images, labels, epoch)
                        self._note(self.watch.records())
                        if self.step % self.per_epoch and self.step < self.steps:  # else the epoch ends first
                            self._pause(stop)
                    self._end_epoch(epoch)
                    self._pause(stop)
            return self._finish()
        except Diverged as trouble:
            self._give_up(trouble)
        finally:
            self.board.close()

    def _batches(self, left: int) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        """What is left of this epoch, and of the run."""
        chosen = (batch for batch, _ in zip(self.sampler, range(left), strict=False))
        return self.feed.train(chosen, first_step=self.step)

    def _one_step(self, images: Tensor, labels: Tensor, epoch: int) -> None:
        settings, ranks = self.settings, self.ranks
        keys = (settings.seed, self.step, ranks.rank)
        rate = optimizer.factor(settings, self.step, self.per_epoch, self.steps)
        optimizer.set_rate(self.optimizer, rate)
        self.optimizer.zero_grad()
        if settings.chunk:
            value, embeddings = cache.cached_step(
                self._embeddings, images, settings.chunk, lambda found: self._loss(found, labels), *keys
            )
        else:
            torch.manual_seed(cache.seed_of(*keys, 0))
            embeddings = self._embeddings(images)
            value = self._loss(embeddings, labels)
            value.backward()
        ranks.add_gradients(self.learned)
        gradients = [value.grad for value in self.learned if value.grad is not None]
        norm = torch.nn.utils.get_total_norm(gradients)
        optimizer.clip(settings, self.learned)
        own = {level: ranks.constant(part, self.counts) for level, part in embeddings.items()}
        held = self.watch.see(ranks.total(value.detach()), norm, spread(own), step=self.step, epoch=epoch, rate=rate)
        if self.device.type == "cuda":
            self.optimizer.found_inf = held  # type: ignore[attr-defined]  # a fused update leaves everything as it is at 1
        elif held:
            self.watch.records(wait=True)
        self.optimizer.step()
        self.step += 1

    def _embeddings(self, images: Tensor) -> Mapping[str, Tensor]:
        if self.recorded:
            return self.forward(images)
        with prepare.autocast(self.settings, self.device):
            return self.forward(images)

    def _loss(self, embeddings: Any, labels: Tensor) -> Tensor:
        found: Tensor = self.objective(embeddings, labels, self.ranks, self.counts)
        return found

    # ------------------------------------------------------------------------------------------ between the steps

    def _new_layers_only(self, warm: bool) -> None:
        """In the first epochs the network itself is left as it came; heads and loss learn."""
        for group in self.optimizer.param_groups:
            if group["name"].startswith("backbone"):
                for parameter in group["params"]:
                    parameter.requires_grad_(not warm)
        self.model.train()
        self.objective.train()
        if self.settings.chunk:
            cache.check(self.model)

    def _record(self, images: Tensor, warm: bool) -> None:
        """From the first batch on in which the whole network learns, replay its kernels on CUDA."""
        settings = self.settings
        wanted = settings.graph and self.device.type == "cuda" and not (warm or settings.chunk or settings.compile)
        if wanted and not self.recorded:
            self.clock.stop()
            begun = time.perf_counter()
            self.forward = graph.record(
                self.model, self.model.levels, images, functools.partial(prepare.autocast, settings, self.device)
            )
            self.recorded = True
            self.clock.recording += time.perf_counter() - begun
            self.clock.start()

    def _mine(self, epoch: int) -> None:
        """Samplers that look for confusable classes need the embedding as it is now."""
        if isinstance(self.sampler, samplers.HardClass | samplers.Smart) and epoch:
            self.sampler.update(embed(self.model, self.feed, self.ranks, self.settings, self.device))
            self.model.train()

    def _note(self, records: list[dict[str, Any]]) -> None:
        for record in records:
            self.epoch_losses.append(record["loss"])
        if self.ranks.first and records:
            self._log(*({"kind": "step", **record} for record in records))
            self.screen.step(self.step, records[-1], self.sampler.size)

    def _log(self, *records: dict[str, Any]) -> None:
        self.folder.log(*records)
        self.board.write(list(records))

    def _end_epoch(self, epoch: int) -> None:
        self._note(self.watch.records(wait=True))
        self.clock.stop()
        record = {"kind": "epoch", "epoch": epoch, "step": self.step, "loss": float(np.mean(self.epoch_losses))}
        self.epoch_losses = []
        if self.ranks.first:
            self._log({**record, "seconds": round(self.clock.seconds, 3), **prepare.memory(self.device)})
        settings = self.settings
        looked = settings.chooses or settings.audits  # else the last epoch is measured at the end of the run alone
        every = settings.evaluate_every or int(looked)
        last = self.step == self.steps
        if every and ((epoch + 1) % every == 0 or last) and (looked or not last):
            self._measure(epoch)

    def _measure(self, epoch: int) -> None:
        """Measure between the epochs, and keep the weights if the protocol chooses this epoch over those before."""
        if self.auditor:
            self.auditor(self.model, epoch, self.step)
        looks = self.validate or (None if self.auditor else self.test)
        if looks is None:
            return
        # The test images are those whose way is kept, wherever they are measured.
        found = looks(self.model, moment=None if self.auditor else Moment(epoch, self.step))
        record = {"kind": "validate" if self.validate else "evaluate", "epoch": epoch, "step": self.step, **found}
        if self.ranks.first:
            self._log(record)
            self.screen.measured(record)
        first = f"recall@{self.settings.ks[0]}"
        if self.settings.chooses and (not self.best or found[first] > self.best[first]):
            self.best = {"epoch": epoch, **found}
            self.chosen = {name: value.detach().clone() for name, value in self.model.state_dict().items()}
        self.model.train()

    # ------------------------------------------------------------------------------------------ stopping, resuming

    def _pause(self, stop: Stop) -> None:
        """Save now and then, and at the end; stop where a person has asked for it."""
        asked = stop.asked and self.ranks.first and self.step < self.steps
        self._save(seldom=not asked and self.step < self.steps)
        if asked:
            again = calling.line("train", "--resume", self.settings.out)
            raise stop.kind(f"stopped after step {self.step} of {self.steps}; go on with {again}.")

    def _save(self, seldom: bool = False) -> None:
        """Write a checkpoint; with ``seldom`` only when the last one is old enough."""
        if not self.ranks.first or (seldom and time.perf_counter() - self.saved < self.settings.checkpoint_every):
            return
        self._note(self.watch.records(wait=True))
        self.clock.stop()
        moments, groups = checkpoint.pack_optimizer(self.optimizer)
        tensors = {"model": self.model.state_dict(), "loss": self.objective.state_dict(), "optimizer": moments}
        facts = {
            "network": self.model.settings,
            "groups": groups,
            "log_bytes": self.folder.log_bytes(),
            "epoch_losses": self.epoch_losses,
            "seconds": self.clock.seconds,
            "recording_seconds": self.clock.recording,
            "digest": self.settings.digest,
            "packs": self.sums,
            "steps": self.steps,
            "best": self.best,
        }
        if self.chosen:
            tensors["chosen"] = self.chosen
        if self.step % self.per_epoch and (mined := self.sampler.state()):  # else the next epoch mines anew
            tensors["sampler"] = {name: torch.from_numpy(value) for name, value in mined.items()}
        checkpoint.save(self.folder.checkpoints, self.step, tensors, facts)
        self.saved = time.perf_counter()
        self.clock.start()

    def _restore(self) -> None:
        saved = checkpoint.load(self.folder.checkpoints)
        if saved is None:
            if self.ranks.first:
                self.folder.cut_log(0)
                epochs.forget(self.folder.path, -1)
            if self.auditor:
                self.auditor.forget(0)
            return
        if saved.facts["packs"] != self.sums:
            raise ValueError(
                f"the images under {self.settings.root!r} must be those the run began with, got others; "
                f"restore them, or start a new run."
            )
        self.model.load_state_dict(saved.tensors["model"])
        self.objective.load_state_dict(saved.tensors["loss"])
        self._new_layers_only(saved.step // self.per_epoch < self.settings.warm_up)
        checkpoint.unpack_optimizer(self.optimizer, saved.tensors["optimizer"], saved.facts["groups"])
        self.sampler.restore({name: value.numpy() for name, value in saved.tensors.get("sampler", {}).items()})
        self.step, self.clock.seconds = saved.step, saved.facts["seconds"]
        self.clock.recording = saved.facts.get("recording_seconds", 0.0)
        self.epoch_losses, self.best = saved.facts["epoch_losses"], saved.facts["best"]
        self.chosen = {name: value.to(self.device) for name, value in saved.tensors.get("chosen", {}).items()}
        if self.auditor:
            self.auditor.forget(self.step)
        if self.ranks.first:
            self.folder.cut_log(saved.facts["log_bytes"])
            epochs.forget(self.folder.path, self.step)

    def _give_up(self, trouble: Diverged) -> NoReturn:
        """Nothing of the step that went wrong is saved; say what there is."""
        found = checkpoint.steps(self.folder.checkpoints)
        kept = f"; the weights of step {found[-1]} are kept in {self.folder.checkpoints}" if found else ""
        raise Diverged(
            trouble.step,
            f"{trouble} in step {trouble.step} of {self.steps}{kept}; "
            f"try a lower lr, clip_norm or another setting of the loss.",
        ) from None

    def _finish(self) -> dict[str, Any]:
        epoch = -(-self.steps // self.per_epoch) - 1
        if self.settings.chooses:
            epoch = self.best["epoch"]
            self.model.load_state_dict(self.chosen)
        last = None if self.settings.chooses else Moment(epoch, self.step)
        found = self.test(self.model, keep=self.folder.path, moment=last) if self.test else {}
        result = {
            **found,
            "protocol": self.settings.protocol,
            "epoch": epoch,
            "validation": {**self.best, "classes": self.sizes["validation"][1]} if self.validate else None,
            "step": self.step,
            "seconds": round(self.clock.seconds, 3),
            **({"recording_seconds": round(self.clock.recording, 3)} if self.clock.recording else {}),
            "images": self.steps * self.sampler.size,
            "images_per_second": round(self.steps * self.sampler.size / max(self.clock.seconds, 1e-9), 1),
            **prepare.memory(self.device),
            "digest": self.settings.digest,
            "shared_classes": self.shared,
            "left_out_images": [list(entry) for entry in self.bad],
        }
        if self.ranks.first:
            result["test_feedback"] = self._feedback(epoch, found)
            result |= self.untrained.open() if self.untrained else {}
            self._log({"kind": "test", **{name: result[name] for name in ("epoch", "step", "protocol")}, **found})
            self.folder.metrics(result)
            self.screen.end(result, self.folder.path)
        return result

    def _feedback(self, chosen: int, found: dict[str, Any]) -> dict[str, Any] | None:
        """What the best epoch on the test set gives, of those that were looked at; said apart, for comparison only."""
        if not self.test:
            return None
        looked = self.auditor.open(chosen) if self.auditor else self.folder.records("evaluate")
        known = [*looked, {"epoch": chosen, **found}]
        best = max(known, key=lambda record: record[f"recall@{self.settings.ks[0]}"])
        return {"best_epoch": best["epoch"], **{name: best[name] for name in found if name in best}} if looked else None
