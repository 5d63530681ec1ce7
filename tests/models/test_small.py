"""The small network: shapes, what it is blind to by design, gradients, errors."""

from __future__ import annotations

import pytest
import torch

from nearkin.models import SmallNet


@pytest.mark.parametrize(("size", "channels", "dim"), [(32, 1, 64), (12, 1, 8), (33, 3, 16), (64, 1, 32)])
def test_forward_gives_one_raw_embedding_per_image(size: int, channels: int, dim: int) -> None:
    net = SmallNet(dim=dim, size=size, channels=channels)
    embeddings = net(torch.rand(5, channels, size, size))
    assert embeddings.shape == (5, dim)
    assert embeddings.isfinite().all()
    assert not torch.allclose(embeddings.norm(dim=1), torch.ones(5))


def test_gradient_reaches_every_parameter() -> None:
    net = SmallNet()
    net(torch.rand(8, 1, 32, 32)).square().sum().backward()
    for name, parameter in net.named_parameters():
        assert parameter.grad is not None and parameter.grad.abs().sum() > 0, name


def test_brightness_contrast_and_polarity_change_nothing() -> None:
    net = SmallNet().eval()
    images = torch.rand(4, 1, 32, 32)
    embeddings = net(images)
    for changed in (1 - images, 0.5 * images + 0.3):
        assert torch.allclose(net(changed), embeddings, atol=2e-3 * float(embeddings.detach().abs().max()))


def test_a_blank_image_has_a_finite_embedding_and_gradient() -> None:
    net = SmallNet()
    net(torch.zeros(4, 1, 32, 32)).sum().backward()
    for parameter in net.parameters():
        assert parameter.grad is not None and parameter.grad.isfinite().all()


def test_a_few_steps_fit_a_few_images() -> None:
    torch.manual_seed(0)
    net, images, targets = SmallNet(dim=4), torch.rand(16, 1, 32, 32), torch.arange(16) % 4
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
    losses = []
    for _ in range(15):
        loss = torch.nn.functional.cross_entropy(net(images), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.3 * losses[0]


def test_images_of_another_shape_are_refused() -> None:
    expected = r"^images must have shape \(n, 1, 32, 32\), but have \(2, 3, 32, 32\): resize them, or build "
    with pytest.raises(ValueError, match=expected):
        SmallNet()(torch.rand(2, 3, 32, 32))


@pytest.mark.parametrize(
    ("argument", "value", "least"), [("dim", 0, 1), ("size", 7, 8), ("channels", 0, 1), ("width", -3, 1)]
)
def test_impossible_settings_are_refused(argument: str, value: int, least: int) -> None:
    message = f"^{argument} must be at least {least}, but is {value}: pass {least} or more\\.$"
    with pytest.raises(ValueError, match=message):
        SmallNet(**{argument: value})
