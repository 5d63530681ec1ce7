"""The learning rate as a function of the step."""

from __future__ import annotations

import pytest
import torch

from nearkin import losses, models
from nearkin.train.optimizer import factor, make, set_rate
from nearkin.train.settings import Train, check_names


def test_steps_equal_torch_step_lr() -> None:
    settings = Train(schedule="step", step_epochs=2.0, gamma=0.3)
    parameter = torch.nn.Parameter(torch.zeros(1))
    reference = torch.optim.SGD([parameter], lr=1.0)
    schedule = torch.optim.lr_scheduler.StepLR(reference, step_size=2, gamma=0.3)
    for epoch in range(7):
        for step in range(5):
            assert factor(settings, 5 * epoch + step, 5, 35) == pytest.approx(reference.param_groups[0]["lr"])
        reference.step()
        schedule.step()


def test_cosine_falls_from_one_to_nothing_and_a_ramp_rises() -> None:
    settings = Train(schedule="cosine", ramp=0.1)
    values = [factor(settings, step, 10, 100) for step in range(100)]
    assert values[0] == pytest.approx(0.1) and values[-1] < 1e-3
    assert max(values) == values[9] and values[50] == pytest.approx(0.5)
    assert factor(Train(schedule="constant"), 99, 10, 100) == 1


@pytest.mark.parametrize("name", ["adamw", "adam", "sgd"])
def test_every_parameter_learns_at_its_rate(name: str) -> None:
    settings = Train(optimizer=name, lr=0.1, head_multiplier=3.0, loss_multiplier=20.0)
    model = models.create("small", dim=4, seed=0)
    loss = losses.create("proxy_anchor", classes=5, dim=4)
    optimizer = make(settings, model, loss)
    rates = {id(value): group["lr"] for group in optimizer.param_groups for value in group["params"]}
    assert rates.keys() == {id(value) for value in [*model.parameters(), *loss.parameters()]}
    assert rates[id(loss.proxies)] == pytest.approx(2.0)
    assert rates[id(next(model.heads.parameters()))] == pytest.approx(0.3)
    assert rates[id(next(model.backbone.parameters()))] == pytest.approx(0.1)
    set_rate(optimizer, 0.5)
    assert [group["lr"] for group in optimizer.param_groups] == pytest.approx([0.05, 0.15, 1.0])


def test_the_rate_of_what_the_loss_learns_is_said_in_one_place() -> None:
    """A factor among the settings of the loss did nothing."""
    settings = Train(loss="proxy_anchor", loss_settings={"lr_multiplier": 1000})
    model, loss = models.create("small", dim=4, seed=0), losses.create("proxy_anchor", classes=5, dim=4)
    for refused in (lambda: check_names(settings), lambda: make(settings, model, loss)):
        with pytest.raises(ValueError) as caught:
            refused()
        assert str(caught.value) == (
            "loss_settings must not hold lr_multiplier where nearkin trains, got 1000; pass it as loss_multiplier "
            "(--loss-multiplier 1000)."
        )
