"""A loss to look at: it can be made without knowing what it would be trained on, and nobody notices that it was."""

from __future__ import annotations

import pytest
import torch

from nearkin import losses


@pytest.mark.parametrize("name", losses.names())
def test_every_loss_can_be_looked_at_unnoticed(name: str) -> None:
    before = torch.random.get_rng_state()
    loss = losses.example(name, {}, classes=3, dim=4)
    assert torch.equal(torch.random.get_rng_state(), before)
    assert isinstance(loss, losses.LOSSES[name])
    if isinstance(loss, losses.ProxyLoss):
        assert (loss.classes, loss.dim) == (3, 4)
        given = losses.example(name, {"classes": 7})
        assert isinstance(given, losses.ProxyLoss) and (given.classes, given.dim) == (7, 2)


def test_what_cannot_be_made_is_told_as_of_any_loss() -> None:
    with pytest.raises(ValueError, match="^loss 'margn' is not known; did you mean 'margin'"):
        losses.example("margn", {})
    with pytest.raises(TypeError, match="^margin: setting 'scal' is not known"):
        losses.example("margin", {"scal": 1})
