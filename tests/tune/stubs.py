"""Plans and studies for tests, and a stand-in for training whose best parameters are known."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nearkin.train.screen import Screen
from nearkin.train.settings import Train, resolve
from nearkin.train.watch import Diverged
from nearkin.tune import trial
from nearkin.tune.attempt import DONE, Attempt
from nearkin.tune.plan import Plan, space
from nearkin.tune.study import Study

Value = Callable[[Train], float]


def plan(loss: str = "proxy_anchor", search: str = "own", ranges: dict[str, Any] | None = None, **base: Any) -> Plan:
    """A plan on the embedded data set."""
    given = {"data": "glyphs", "loss": loss, "protocol": "fixed_validation", "test": False, "epochs": 3, **base}
    return Plan(loss, resolve(given), space(loss, search, ranges or {}))


def peak(settings: Train) -> float:
    """Highest, 0.9, at margin 0.7 and scale 20."""
    table = settings.loss_settings
    return float(0.9 - (table["margin"] - 0.7) ** 2 - ((table["scale"] - 20) / 100) ** 2)


def stub(value: Value) -> Callable[..., dict[str, Any]]:
    """Training that takes no time: the value is reached in the second of three epochs. NaN is a loss that became NaN."""

    def train(settings: Train, *, resume: bool = False, screen: Screen) -> dict[str, Any]:
        found = value(settings)
        curve = [found / 2, found, found * 0.9]
        for epoch, figure in enumerate(curve):
            if found != found:
                raise Diverged(7, "the loss became nan in step 7 of 30; the weights of step 3 are kept in x; try y.")
            screen.measured({"kind": "validate", "epoch": epoch, "step": epoch, "recall@1": figure})
        return {"validation": {"epoch": 1, "recall@1": found}}

    return train


def install(monkeypatch: pytest.MonkeyPatch, value: Value) -> None:
    monkeypatch.setattr(trial, "train", stub(value))


def study(folder: Path, *plans: Plan, trials: int = 4, pruner: str = "none", **settings: Any) -> Study:
    return Study(folder, list(plans or [plan()]), trials=trials, pruner=pruner, **settings)


def attempt(number: int, parameters: dict[str, Any], value: float | None = None, status: str = DONE) -> Attempt:
    return Attempt("proxy_anchor", number, status, parameters, value, None if value is None else 0)
