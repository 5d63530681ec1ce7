"""What goes wrong is caught in the step it happens."""

from __future__ import annotations

import math

import pytest
import torch

from nearkin.train.objective import spread
from nearkin.train.watch import Diverged, Watch


def see(watch: Watch, step: int, value: float = 1.0, norm: float = 1.0, spread: float = 0.5) -> torch.Tensor:
    return watch.see(torch.tensor(value), torch.tensor(norm), torch.tensor(spread), step=step)


def test_good_steps_are_recorded_in_order() -> None:
    watch = Watch(torch.device("cpu"), 1e-6)
    for step in range(3):
        assert not see(watch, step, value=step / 2)
    assert [(record["step"], record["loss"]) for record in watch.records()] == [(0, 0.0), (1, 0.5), (2, 1.0)]
    assert watch.records(wait=True) == []


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"value": math.nan}, "the loss became nan"),
        ({"value": math.inf}, "the loss became inf"),
        ({"norm": math.nan}, "the gradient became nan while the loss was 1"),
        ({"spread": 1e-9}, "the embeddings collapsed to one point (spread 1e-09, loss 1)"),
    ],
)
def test_a_bad_step_holds_back_every_later_update(wrong: dict[str, float], message: str) -> None:
    watch = Watch(torch.device("cpu"), 1e-6)
    assert not see(watch, 0)
    assert see(watch, 1, **wrong) == 1
    assert see(watch, 2) == 1
    with pytest.raises(Diverged) as error:
        watch.records()
    assert (str(error.value), error.value.step) == (message, 1)


def test_spread_is_zero_for_a_collapsed_batch_of_any_level() -> None:
    torch.manual_seed(0)
    fine, same = torch.randn(50, 8), torch.ones(50, 8) * 3
    assert spread({"only": fine}) > 0.8
    assert spread({"L": fine, "H": same}).abs() < 1e-6
