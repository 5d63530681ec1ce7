"""The network of the digits: two convolutions and one layer, by hand; what it reads; errors."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional

from nearkin import models


def test_two_convolutions_and_one_fully_connected_layer() -> None:
    model = models.create("digits", dim=2, seed=0)
    shapes = [tuple(value.shape) for value in model.parameters()]
    assert shapes == [(16, 1, 5, 5), (16,), (32, 16, 5, 5), (32,), (2, 32 * 7 * 7), (2,)]
    first, first_bias, second, second_bias, full, bias = model.parameters()
    images = torch.rand(4, 1, 28, 28)
    value = functional.relu(functional.conv2d(images, first, first_bias, stride=2, padding=2))
    assert value.shape == (4, 16, 14, 14)
    value = functional.relu(functional.conv2d(value, second, second_bias, stride=2, padding=2))
    expected = value.flatten(1) @ full.T + bias
    torch.testing.assert_close(model(images)["stage2"], expected)


def test_it_looks_at_the_mean_of_the_colours() -> None:
    model, images = models.create("digits", dim=2, seed=0), torch.rand(3, 3, 28, 28)
    expected = model(images.mean(1, keepdim=True))["stage2"]
    torch.testing.assert_close(model(images)["stage2"], expected)
    torch.testing.assert_close(model(images.flip(1))["stage2"], expected)


def test_the_embedding_is_raw() -> None:
    model, images = models.create("digits", dim=2, seed=0), torch.rand(8, 1, 28, 28)
    lengths = model(images)["stage2"].norm(dim=1)
    assert not torch.allclose(lengths, torch.ones(8), atol=0.01)
    torch.testing.assert_close(model.embed(images).norm(dim=1), torch.ones(8))


@pytest.mark.parametrize(("size", "sides"), [(28, (14, 7)), (8, (4, 2)), (33, (17, 9))])
def test_maps_of_other_sizes(size: int, sides: tuple[int, int]) -> None:
    model = models.create("digits", dim=3, size=size, width=4)
    maps = model.backbone(torch.rand(2, 3, size, size), ("stage1", "stage2"))
    assert [tuple(part.shape) for part in maps.values()] == [(2, 4, sides[0], sides[0]), (2, 8, sides[1], sides[1])]
    assert model.backbone.sides == {"stage1": sides[0], "stage2": sides[1]}
    assert model(torch.rand(2, 3, size, size))["stage2"].shape == (2, 3)


def test_it_is_made_again_from_its_settings() -> None:
    model = models.create("digits", dim=2, width=8, seed=3)
    again = models.create(**model.settings)
    again.load_state_dict(model.state_dict())
    images = torch.rand(2, 1, 28, 28)
    assert torch.equal(again(images)["stage2"], model(images)["stage2"])


@pytest.mark.parametrize("shape", [(2, 3, 28, 27), (2, 1, 32, 32), (2, 2, 28, 28), (3, 28, 28)])
def test_images_of_another_shape_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError) as raised:
        models.create("digits")(torch.rand(shape))
    assert str(raised.value) == (
        f"images must have shape (n, 3, 28, 28) for digits, got {shape}; resize them, or create digits with their size."
    )


@pytest.mark.parametrize(
    ("setting", "value", "message"),
    [
        ("size", 7, "digits: size must be a whole number at least 8, got 7; change size."),
        ("width", 0, "digits: width must be a whole number at least 1, got 0; change width."),
        (
            "levels",
            "lmh",
            "digits: levels 'lmh' need a network with at least three levels, got one with stage1, stage2; ",
        ),
    ],
)
def test_impossible_settings_are_refused(setting: str, value: object, message: str) -> None:
    with pytest.raises(ValueError) as raised:
        models.create("digits", **{setting: value})  # type: ignore[arg-type]
    assert str(raised.value).startswith(message)
