"""What is tried next, by each method."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from nearkin.tune.attempt import DONE, FAILED, RUNNING, Attempt
from nearkin.tune.plan import Plan
from nearkin.tune.propose import METHODS, Pause, grid, one_at_a_time, spread, tpe
from nearkin.tune.ranges import Choice, Range
from tests.tune.stubs import attempt, peak, plan

SMALL = {"margin": {"low": 0, "high": 1, "step": 0.25}, "scale": [10, 20, 30]}


def searched(method: str, made: Plan, trials: int, seed: int = 0) -> list[Attempt]:
    """One trial after the other, on the peak."""
    tried: list[Attempt] = []
    while len(tried) < trials:
        found = METHODS[method](made, tried, trials, seed)
        if isinstance(found, Pause):
            assert found is Pause.OVER
            break
        tried.append(attempt(len(tried), found, peak(made.settings(found))))
    return tried


@pytest.mark.parametrize("seed", range(3))
def test_tpe_comes_near_the_peak_and_nearer_than_chance(seed: int) -> None:
    made = plan()
    tried = searched("tpe", made, 40, seed)
    best = max(tried, key=lambda entry: entry.value or 0)
    assert abs(best.parameters["margin"] - 0.7) <= 0.1 and abs(best.parameters["scale"] - 20) <= 14
    rng = np.random.default_rng(seed)
    axes = [parameter.values() for parameter in made.space.values()]
    points = [dict(zip(made.space, (axis[rng.integers(len(axis))] for axis in axes), strict=True)) for _ in range(4000)]
    by_chance = np.mean([peak(made.settings(point)) for point in points])
    assert np.mean([entry.value for entry in tried[-15:]]) > by_chance + 0.1  # type: ignore[misc]


def test_tpe_begins_with_the_settings_as_they_are() -> None:
    assert tpe(plan(), [], 10, 0) == {"margin": 0.1, "scale": 32.0}


def test_tpe_goes_on_as_if_never_stopped() -> None:
    whole = searched("tpe", plan(), 14)
    assert tpe(plan(), whole[:11], 14, 0) == whole[11].parameters
    assert [entry.parameters for entry in searched("tpe", plan(), 14, 1)] != [entry.parameters for entry in whole]


def test_tpe_learns_from_failures() -> None:
    """Everything above margin 0.5 fails: it is tried less often than by one who does not know."""
    made = plan()

    def above(told: bool) -> int:
        tried: list[Attempt] = []
        while len(tried) < 40:
            found = tpe(made, tried if told else [entry for entry in tried if entry.status == DONE], 40, len(tried))
            assert isinstance(found, dict)
            bad = found["margin"] > 0.5
            tried.append(attempt(len(tried), found, None if bad else 0.5, FAILED if bad else DONE))
        return sum(entry.status == FAILED for entry in tried[10:])

    assert above(told=True) < above(told=False)


@pytest.mark.parametrize("method", ["tpe", "grid"])
def test_a_small_space_is_tried_whole_and_nothing_twice(method: str) -> None:
    made = plan(ranges=SMALL)
    tried = searched(method, made, 100)
    expected = set(itertools.product([0.0, 0.25, 0.5, 0.75, 1.0], [10, 20, 30]))
    assert len(tried) == 15
    assert {(entry.parameters["margin"], entry.parameters["scale"]) for entry in tried} == expected


def test_the_order_of_a_grid_is_the_seeds() -> None:
    orders = [[entry.key for entry in searched("grid", plan(), 6, seed)] for seed in (0, 0, 1)]
    assert orders[0] == orders[1] != orders[2]


def test_a_grid_has_an_end() -> None:
    made = plan("soft_triple", "own,lr,weight_decay")
    with pytest.raises(ValueError, match="the grid of soft_triple must have at most 5,000,000 points, got 15,125,000"):
        grid(made, [], 5, 0)


def test_one_at_a_time_follows_the_best() -> None:
    """Against a plain loop: each parameter in turn over its whole range, the best kept."""
    made = plan(ranges=SMALL)
    tried = searched("one_at_a_time", made, 100)
    now = dict(made.start)
    expected = [dict(now)]
    for name, values in (("margin", [0.0, 0.25, 0.5, 0.75, 1.0]), ("scale", [10, 20, 30])):
        expected += [{**now, name: value} for value in values if value != now[name]]
        now[name] = max(values, key=lambda value, name=name: peak(made.settings({**now, name: value})))  # type: ignore[misc]
    assert [entry.parameters for entry in tried] == expected and now == {"margin": 0.75, "scale": 20}


def test_one_at_a_time_shares_the_trials() -> None:
    tried = searched("one_at_a_time", plan(), 11)
    assert len(tried) == 11
    margins = {entry.parameters["margin"] for entry in tried}
    scales = {entry.parameters["scale"] for entry in tried}
    assert len(margins) == 6 and len(scales) == 6 and {0.0, 1.0} <= margins and {2.0, 100.0} <= scales


def test_one_at_a_time_waits_for_the_parameter_before() -> None:
    made = plan(ranges=SMALL)
    tried = searched("one_at_a_time", made, 100)
    running = [replace(entry, status=RUNNING, value=None) if entry.number == 2 else entry for entry in tried[:5]]
    assert one_at_a_time(made, running, 100, 0) is Pause.WAIT
    assert isinstance(one_at_a_time(made, running[:4], 100, 0), dict)  # the same parameter goes on


def test_values_spread_over_a_range() -> None:
    assert spread(Range(0, 1, step=0.1), 0.3, 3) == [0.0, 0.5, 1.0]
    assert spread(Range(0, 1, step=0.5), 0.0, 9) == [0.5, 1.0]
    assert spread(Choice(("a", "b", "c")), "b", 5) == ["a", "c"]
    assert np.allclose(spread(Range(1, 100, log=True), 50.0, 3), [1, 10, 100])
    assert np.allclose(spread(Range(1, 1000, log=True), 10.0, 4), [1, 10**0.75 * 10**0.75, 10**2.25, 1000])
    assert spread(Range(0, 1), 0.5, 0) == []
