"""The small network: shapes, what it is blind to by design, gradients, errors."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from nearkin import models
from nearkin.models.small import small


def embeddings_of(model: models.Embedder, images: Tensor) -> Tensor:
    return model(images)[model.levels[0]]


@pytest.mark.parametrize(
    ("size", "grey", "dim"), [(32, True, 64), (12, True, 8), (33, False, 16), (64, True, 32), (8, True, 3)]
)
def test_forward_gives_one_raw_embedding_per_image(size: int, grey: bool, dim: int) -> None:
    model = models.create("small", dim=dim, size=size, grey=grey)
    embeddings = embeddings_of(model, torch.rand(5, 3, size, size))
    assert embeddings.shape == (5, dim)
    assert embeddings.isfinite().all()
    assert not torch.allclose(embeddings.norm(dim=1), torch.ones(5))


@pytest.mark.parametrize(
    ("size", "maps"),
    [
        (32, {"stage1": (64, 8), "stage2": (64, 8), "stage3": (128, 4)}),
        (63, {"stage1": (64, 8), "stage2": (64, 8), "stage3": (128, 4)}),
        (64, {"stage1": (64, 8), "stage2": (64, 8), "stage3": (128, 4)}),
        (96, {"stage1": (64, 12), "stage2": (64, 12), "stage3": (128, 6)}),
        (128, {"stage1": (64, 16), "stage2": (64, 8), "stage3": (128, 4)}),
        (224, {"stage1": (64, 28), "stage2": (64, 14), "stage3": (128, 7)}),
        (256, {"stage1": (64, 32), "stage2": (64, 16), "stage3": (128, 8), "stage4": (128, 4)}),
    ],
)
def test_larger_images_are_halved_more_often(size: int, maps: dict[str, tuple[int, int]]) -> None:
    network = small(size=size, grey=False)
    found = network(torch.rand(1, 3, size, size), list(network.channels))
    assert {level: tuple(part.shape[1:]) for level, part in found.items()} == {
        level: (channels, side, side) for level, (channels, side) in maps.items()
    }
    assert network.channels == {level: channels for level, (channels, _) in maps.items()}
    assert network.sides == {level: side for level, (_, side) in maps.items()}
    assert network.triple == tuple(maps)[-3:]


def test_gradient_reaches_every_parameter() -> None:
    model = models.create("small", dim=16)
    embeddings_of(model, torch.rand(8, 3, 32, 32)).square().sum().backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None and parameter.grad.abs().sum() > 0, name


def test_brightness_contrast_and_polarity_change_nothing() -> None:
    model = models.create("small").eval()
    images = torch.rand(4, 1, 32, 32).expand(-1, 3, -1, -1)
    embeddings = embeddings_of(model, images)
    for changed in (1 - images, 0.5 * images + 0.3):
        assert torch.allclose(
            embeddings_of(model, changed), embeddings, atol=2e-3 * float(embeddings.detach().abs().max())
        )


def test_grey_looks_at_the_mean_of_the_colours_only() -> None:
    images = torch.rand(4, 3, 32, 32)
    grey, colour = models.create("small", seed=0).eval(), models.create("small", grey=False, seed=0).eval()
    for other in (images.flip(1), images.mean(1, keepdim=True), images.mean(1, keepdim=True).expand(-1, 3, -1, -1)):
        assert torch.allclose(embeddings_of(grey, images), embeddings_of(grey, other), atol=1e-4)
    assert not torch.allclose(embeddings_of(colour, images), embeddings_of(colour, images.flip(1)), atol=1e-2)


def test_a_blank_image_has_a_finite_embedding_and_gradient() -> None:
    model = models.create("small")
    embeddings_of(model, torch.zeros(4, 3, 32, 32)).sum().backward()
    for parameter in model.parameters():
        assert parameter.grad is not None and parameter.grad.isfinite().all()


def test_a_few_steps_fit_a_few_images() -> None:
    model, images, targets = models.create("small", dim=4, seed=0), torch.rand(16, 3, 32, 32), torch.arange(16) % 4
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    losses = []
    for _ in range(15):
        loss = torch.nn.functional.cross_entropy(embeddings_of(model, images), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.3 * losses[0]


@pytest.mark.parametrize("shape", [(2, 3, 32, 31), (2, 3, 16, 16), (2, 2, 32, 32), (3, 32, 32), (2, 1, 32, 32)])
def test_images_of_another_shape_are_refused(shape: tuple[int, ...]) -> None:
    came = ", ".join(map(str, shape))
    message = rf"^images must have shape \(n, 3, 32, 32\) for small, got \({came}\); resize them, or create small with "
    with pytest.raises(ValueError, match=message):
        models.create("small", grey=False)(torch.rand(shape))


@pytest.mark.parametrize(
    ("argument", "value", "range"),
    [
        ("dim", 0, "a whole number at least 1"),
        ("dim", 2.5, "a whole number at least 1"),
        ("size", 7, "a whole number at least 8"),
        ("width", -3, "a whole number at least 1"),
        ("grey", 1, "True or False"),
    ],
)
def test_impossible_settings_are_refused(argument: str, value: object, range: str) -> None:
    with pytest.raises(ValueError, match=f"^small: {argument} must be {range}, got {value}; "):
        models.create("small", **{argument: value})
