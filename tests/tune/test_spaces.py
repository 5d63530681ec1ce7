"""Every loss brings a space; its ends are settings the loss accepts; Table 15 is exact."""

from __future__ import annotations

import itertools
import re
from typing import Any

import numpy as np
import pytest
import torch

from nearkin import losses
from nearkin.train.settings import resolve
from nearkin.tune.attempt import Attempt
from nearkin.tune.plan import Plan, own, space
from nearkin.tune.propose import grid
from nearkin.tune.ranges import Choice, Range
from nearkin.tune.spaces import COMMON, SPACES
from tests.tune.stubs import attempt, plan

UNIT = [place / 10 for place in range(11)]
HUNDRED = [float(value) for value in range(2, 101, 2)]
# "Metric Learning: A Deep Dive", Table 15: ranges [low, high] or (low, high] and steps, in the names of this package.
TABLE_15: dict[str, dict[str, list[float]]] = {
    "multi_similarity": {"gamma": UNIT, "alpha": HUNDRED, "beta": HUNDRED, "epsilon": UNIT},
    "soft_triple": {
        "margin": UNIT,
        "tau": UNIT,
        "scale": HUNDRED,
        "loss_lr": [place / 1e5 for place in range(1, 11)],
        "gamma_inverse": [float(value) for value in range(10, 101, 10)],
    },
    "proxy_anchor": {"margin": UNIT, "scale": HUNDRED},
}


def test_every_loss_has_a_space_and_nothing_else_has() -> None:
    assert set(SPACES) == set(losses.LOSSES)
    assert all(SPACES.values())


@pytest.mark.parametrize("loss", sorted(SPACES))
def test_no_loss_runs_out_of_points_before_the_others(loss: str) -> None:
    """Room for the default number of trials and more, whatever the method."""
    made = plan(loss)
    assert made.size is None or made.size >= 39  # the bins of a histogram
    tried: list[Attempt] = []
    for number in range(25):
        found = grid(made, tried, 25, 0)
        assert isinstance(found, dict)
        tried.append(attempt(number, found, 0.5))
    assert len({entry.key for entry in tried}) == 25


@pytest.mark.parametrize("loss", TABLE_15)
def test_table_15(loss: str) -> None:
    assert set(SPACES[loss]) == set(TABLE_15[loss])
    for name, expected in TABLE_15[loss].items():
        found = SPACES[loss][name].values()
        assert len(found) == len(expected) and np.allclose(found, expected, rtol=1e-12, atol=0)


@pytest.mark.parametrize("loss", sorted(SPACES))
def test_every_corner_can_be_trained_with(loss: str) -> None:
    """The ends of all ranges, in every combination: a run takes them, and value and gradient are finite."""
    made = plan(loss)
    torch.manual_seed(0)
    batch, labels = torch.randn(12, 8), torch.arange(12) // 3
    ends = [parameter.values()[:: max(1, len(parameter.values()) - 1)] for parameter in made.space.values()]
    for corner in itertools.product(*ends):
        settings = made.settings(dict(zip(made.space, corner, strict=True)))
        kind = losses.LOSSES[loss]
        needed = {"classes": 4, "dim": 8} if issubclass(kind, losses.ProxyLoss) else {}
        vectors = batch.clone().requires_grad_()
        value = losses.create(loss, **settings.loss_settings, **needed)(vectors, labels)
        value.backward()
        assert value.isfinite() and vectors.grad is not None and vectors.grad.isfinite().all(), corner


@pytest.mark.parametrize("loss", sorted(SPACES))
def test_the_start_lies_in_the_space_and_is_what_the_recipe_says(loss: str) -> None:
    made = plan(loss)
    before = losses.example(loss, made.base.loss_settings)
    for name, parameter in made.space.items():
        value = made.start[name]
        assert parameter.snap(value) == value
        if name in own(loss) and isinstance(parameter, Range) and parameter.count is None:
            now = min(max(getattr(before, name), parameter.low), parameter.high)
            assert value == pytest.approx(now)


def test_parameters_reach_the_settings() -> None:
    made = plan("soft_triple", "own,lr,weight_decay")
    found = made.settings(
        {"margin": 0.1, "tau": 0.4, "scale": 78, "loss_lr": 6e-5, "gamma_inverse": 50, "lr": 3e-4, "weight_decay": 0.1}
    )
    assert found.loss_settings == {"margin": 0.1, "tau": 0.4, "scale": 78, "gamma": 0.02}
    assert found.lr == 3e-4 and found.weight_decay == 0.1
    assert found.lr * found.loss_multiplier == pytest.approx(6e-5)
    assert plan("soft_triple").start["gamma_inverse"] == 10  # the default is gamma 0.1


def test_gamma_is_the_losss_own_where_it_has_one() -> None:
    assert plan("struct_clust", "gamma").settings({"gamma": 3.0}).loss_settings == {"gamma": 3.0}
    found = plan("proxy_anchor", "gamma", {"gamma": {"low": 0.1, "high": 1}}).settings({"gamma": 0.3})
    assert found.gamma == 0.3 and found.loss_settings == {}


def test_names_and_ranges_of_ones_own() -> None:
    found = space("triplet", "own,miner,lr", {"miner": ["hard", "semihard"], "lr": {"high": 1e-3}})
    assert found["miner"] == Choice(("hard", "semihard"))
    assert found["lr"] == Range(1e-6, 1e-3, log=True) and list(found) == ["margin", "miner", "lr"]
    assert space("proxy_anchor", "batch", {"batch": {"low": 30, "high": 60, "step": 30}})["batch"].values() == [30, 60]
    assert isinstance(space("soft_triple", "centers", {"centers": {"low": 2, "high": 5}})["centers"].values()[0], int)


@pytest.mark.parametrize(
    ("loss", "search", "ranges", "message"),
    [
        ("proxy_anchor", "margn", {}, "search: parameter of proxy_anchor 'margn' is not known; did you mean 'margin'"),
        (
            "margin",
            "lr_multiplier",
            {},
            "search: parameter of margin 'lr_multiplier' is not known; did you mean 'loss_multiplier'",
        ),
        ("proxy_anchor", "root", {}, "search: parameter of proxy_anchor 'root' is not known"),
        ("proxy_anchor", "test", {}, "search: parameter of proxy_anchor 'test' is not known"),
        ("proxy_anchor", "epochs", {}, "epochs of proxy_anchor has no range of its own"),
        ("proxy_anchor", " , ", {}, "search must name at least one parameter"),
        ("soft_triple", "own,loss_multiplier", {}, "search must not hold both loss_lr and loss_multiplier"),
        ("proxy_anchor", "margin", {"margin": {"low": 1, "high": 0}}, "low of margin must be below high"),
    ],
)
def test_what_cannot_be_searched(loss: str, search: str, ranges: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        space(loss, search, ranges)


@pytest.mark.parametrize(
    ("loss", "search", "ranges", "message"),
    [
        (
            "triplet",
            "own",
            {"margin": {"low": -1, "high": 0}},
            "ranges of triplet: margin must be a finite number at least 0, got -1.0; change margin.",
        ),
        (
            "angular",
            "own",
            {"degrees": {"low": 30, "high": 90, "step": 30}},
            "ranges of angular: degrees must be a finite number above 0 and below 90, got 90.0; change degrees.",
        ),
        (
            "triplet",
            "distance",
            {"distance": ["cosine", "euclidian"]},
            "ranges of triplet: distance must be 'cosine' or 'euclidean', got 'euclidian'; choose one of these.",
        ),
        (
            "triplet",
            "own,miner",
            {"miner": ["hard", "semihrad"]},
            "ranges of triplet: miner 'semihrad' is not known; did you mean 'semihard'?",
        ),
        (
            "soft_triple",
            "own",
            {"gamma_inverse": {"low": 0, "high": 100, "step": 10}},
            "ranges of soft_triple: 1 / gamma_inverse must be a finite number above 0, got inf; "
            "change 1 / gamma_inverse.",
        ),
        (
            "soft_triple",
            "gamma_inverse",
            {"gamma_inverse": [10, "much"]},
            "ranges of soft_triple: 1 / gamma_inverse must be a finite number above 0, got 'much'; "
            "change 1 / gamma_inverse.",
        ),
    ],
)
def test_what_the_loss_refuses_is_found_before_any_trial(
    loss: str, search: str, ranges: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        plan(loss, search, ranges).check()


def test_a_step_that_falls_short_of_what_the_loss_refuses() -> None:
    plan("angular", "own", {"degrees": {"low": 30, "high": 90, "step": 35}}).check()


def test_a_misspelt_setting_of_the_loss_is_found_before_any_trial() -> None:
    made = Plan("proxy_anchor", resolve({"loss": "proxy_anchor", "loss_settings": {"margn": 1}}), {"lr": COMMON["lr"]})
    with pytest.raises(TypeError, match="did you mean 'margin'"):
        made.check()
