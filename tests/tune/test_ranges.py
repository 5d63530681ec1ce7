"""Ranges and choices: their values, the nearest one, and what bad ones get."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nearkin.tune.ranges import Choice, Range, read


def test_steps_are_clean_numbers() -> None:
    assert Range(0, 1, step=0.1).values() == [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0]
    assert Range(1e-5, 1e-4, step=1e-5).values()[-1] == 1e-4
    assert Range(1, 5, step=2, whole=True).values() == [1, 3, 5]
    assert Range(0, 1, step=0.3).values() == [0.0, 0.3, 0.6, 0.9]  # the last step may fall short of the end


def test_values_without_steps_are_even() -> None:
    assert np.allclose(Range(0, 1).values(3), [0, 0.5, 1])
    assert np.allclose(np.diff(np.log(Range(1e-3, 10, log=True).values(7))), math.log(1e4) / 6)


@given(st.floats(-5, 5), st.floats(0.01, 3), st.integers(1, 40), st.floats(-1e3, 1e3))
def test_the_nearest_value(low: float, step: float, count: int, value: float) -> None:
    parameter = Range(low, low + step * count, step=step)
    every = np.array(parameter.values())
    assert len(every) == parameter.count == count + 1
    found = parameter.snap(value)
    assert found in every and abs(found - value) <= np.abs(every - value).min() + 1e-9
    assert parameter.snap(found) == found


def test_a_choice() -> None:
    parameter = Choice(("hard", "semihard"))
    assert parameter.snap("semihard") == "semihard" and parameter.snap("none") == "hard" and parameter.count == 2


def test_a_table_goes_over_the_known_range() -> None:
    assert read("scale", {"high": 50}, Range(2, 100, step=2)) == Range(2, 50, step=2)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"low": 0}, "high of lr must be a finite number, got None"),
        ({"low": 2, "high": 1}, "low of lr must be below high, got 2 and 1"),
        ({"low": 0, "high": 1, "log": True}, "low of lr must be above 0 with log, got 0"),
        ({"low": 1, "high": 2, "log": True, "step": 1}, "step of lr must be above 0, and none with log, got 1"),
        ({"low": 0, "high": 1, "step": -1}, "step of lr must be above 0"),
        ({"low": 0, "high": 1, "stepp": 1}, "ranges: key of lr 'stepp' is not known; did you mean 'step'"),
        ({"low": 0, "high": "1"}, "high of lr must be a finite number, got '1'"),
        ({"low": 0.5, "high": 3, "whole": True}, "lr is whole, so low, high and step must be"),
        ({"low": 0, "high": 1, "log": 3}, "log of lr must be true or false, got 3"),
        ([1], "the choices of lr must be two or more different texts or numbers"),
        ([1, 1], "the choices of lr must be two or more different texts or numbers"),
        (3, "lr must be a table such as"),
    ],
)
def test_what_is_no_range(wrong: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read("lr", wrong)
