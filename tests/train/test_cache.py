"""Gradient caching equals plain autograd."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from nearkin import losses
from nearkin.train.cache import cached_step, check, seed_of


class Net(nn.Module):
    """Two levels, dropout, batch norm."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(5, 8), nn.BatchNorm1d(8), nn.Tanh(), nn.Dropout(0.3))
        self.low, self.high = nn.Linear(8, 4), nn.Linear(8, 4)

    def forward(self, images: Tensor) -> dict[str, Tensor]:
        found = self.body(images)
        return {"L": self.low(found), "H": self.high(found)}


def made() -> Net:
    torch.manual_seed(0)
    net = Net().double().train()
    net.body[1].eval()
    return net


@pytest.mark.parametrize("chunk", [3, 4, 12, 100])
def test_gradients_equal_those_of_the_whole_batch(chunk: int) -> None:
    images, labels = torch.randn(12, 5, dtype=torch.float64), torch.arange(4).repeat(3)
    loss = losses.create("multi_similarity")

    def value_of(found: dict[str, Tensor]) -> Tensor:
        return loss(found["L"], labels) + 2 * loss(found["H"], labels)

    net = made()
    parts = []
    for number, part in enumerate(images.split(chunk)):  # random layers draw chunk by chunk
        torch.manual_seed(seed_of(7, 3, number))
        parts.append(net(part))
    whole = {level: torch.cat([part[level] for part in parts]) for level in ("L", "H")}
    expected = value_of(whole)
    expected.backward()
    again = made()
    value, embeddings = cached_step(again, images, chunk, value_of, 7, 3)  # type: ignore[arg-type]
    torch.testing.assert_close(value, expected.detach(), rtol=1e-12, atol=0)
    torch.testing.assert_close(embeddings["H"], whole["H"].detach(), rtol=1e-12, atol=1e-15)
    for one, other in zip(again.parameters(), net.parameters(), strict=True):
        torch.testing.assert_close(one.grad, other.grad, rtol=1e-10, atol=1e-14)


def test_batch_norm_in_training_mode_is_refused() -> None:
    net = made().train()
    with pytest.raises(ValueError, match=r"chunk needs frozen batch norm, got body.1 in training mode"):
        check(net)
    net.body[1].eval()
    check(net)
