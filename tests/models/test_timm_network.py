"""Any network of timm: levels, its own pooling, settings, weights, errors."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import pytest
import torch
from safetensors.torch import save_file

from nearkin import models

# Tiny networks that timm keeps for tests, one of each kind.
MAPS, TOKENS, LAST, CLOSED = "timm:test_resnet", "timm:test_vit", "timm:test_convnext", "timm:test_nfnet"


def images_for(model: models.Embedder) -> torch.Tensor:
    return torch.rand(2, 3, model.size, model.size)


@pytest.mark.usefixtures("timm")
@pytest.mark.parametrize("name", [MAPS, TOKENS, LAST, CLOSED])
def test_one_level(name: str) -> None:
    model = models.create(name, dim=8, seed=0).eval()
    assert model.levels == ("final",) and model.size == 160
    assert model.embed(images_for(model)).shape == (2, 8)


@pytest.mark.usefixtures("timm")
def test_networks_of_tokens_take_one_size_of_image() -> None:
    assert models.of_one_size("timm:vit_tiny_patch16_224") and not models.of_one_size("timm:resnet18")
    assert not models.of_one_size("timm:resnet18.no_such_weights")


def test_what_the_classifier_would_read(timm: ModuleType) -> None:
    for name in (MAPS, TOKENS):
        network = models.create(name, pooling="gap" if name == MAPS else None, seed=0).eval()
        images = images_for(network)
        features = network.backbone(images)["final"]
        own = network.backbone.network  # type: ignore[union-attr]
        pooled = features.mean((2, 3)) if name == MAPS else features
        torch.testing.assert_close(pooled, own.forward_head(own.forward_features(images), pre_logits=True))  # type: ignore[operator]


@pytest.mark.usefixtures("timm")
@pytest.mark.parametrize(
    ("name", "triple"),
    [
        (MAPS, ("layer2", "layer3", "final")),
        (TOKENS, ("blocks_1", "blocks_3", "final")),
        (LAST, ("stages_1", "stages_2", "final")),
    ],
)
def test_three_levels(name: str, triple: tuple[str, ...]) -> None:
    model = models.create(name, dim=8, levels="lmh", seed=0).eval()
    assert model.backbone.triple == triple
    images = images_for(model)
    embeddings = model(images)
    assert list(embeddings) == ["L", "M", "H"]
    for level, part in model.backbone(images, triple).items():
        assert part.shape[1] == model.backbone.channels[level]
        alone = model.backbone(images, (level,))[level]
        torch.testing.assert_close(part, alone)
    sum(part.sum() for part in embeddings.values()).backward()  # type: ignore[union-attr]
    for parameter_name, parameter in model.named_parameters():
        assert (parameter.grad is not None) == parameter.requires_grad, parameter_name


def test_mean_std_size_and_settings(timm: ModuleType) -> None:
    model = models.create(TOKENS, dim=8, size=192, seed=0)
    described = timm.get_pretrained_cfg("test_vit").to_dict()
    assert (model.mean, model.std) == (tuple(described["mean"]), tuple(described["std"]))
    again = models.create(**model.settings)
    again.load_state_dict(model.state_dict())
    images = images_for(model)
    assert images.shape[-1] == 192
    assert torch.equal(again.eval().embed(images), model.eval().embed(images))
    assert models.create(MAPS, mean=(0, 0, 0)).mean == (0.0, 0.0, 0.0)


@pytest.mark.usefixtures("timm")
def test_frozen_batch_norm_and_one_graph() -> None:
    model = models.create(MAPS, dim=8, levels="lmh", frozen_batch_norm=True, seed=0).train()
    norms = [module for module in model.modules() if isinstance(module, torch.nn.BatchNorm2d)]
    assert norms and not any(norm.training for norm in norms)
    torch._dynamo.reset()
    images = images_for(model)
    for level, part in torch.compile(model, backend="eager", fullgraph=True)(images).items():
        torch.testing.assert_close(part, model(images)[level])
    torch._dynamo.reset()


def test_weights_from_a_file(timm: ModuleType, tmp_path: Path) -> None:
    torch.manual_seed(3)
    other = timm.create_model("test_resnet")
    save_file(other.state_dict(), tmp_path / "weights.safetensors")
    model = models.create(MAPS, weights=tmp_path / "weights.safetensors").eval()
    images = images_for(model)
    torch.testing.assert_close(model.backbone(images)["final"], other.eval().forward_features(images))
    broken = {name: value for name, value in other.state_dict().items() if name != "layer2.0.conv1.weight"}
    save_file(broken, tmp_path / "broken.safetensors")
    with pytest.raises(ValueError, match=r"the tensors of timm:test_resnet, got missing: layer2\.0\.conv1\.weight "):
        models.create(MAPS, weights=tmp_path / "broken.safetensors")


def test_weights_of_the_hub_go_through_timm(timm: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def create_model(name: str, *, pretrained: bool, num_classes: int) -> None:
        asked.append((name, pretrained, num_classes))
        raise OSError("no connection.\nmore")

    monkeypatch.setattr(timm, "create_model", create_model)
    with pytest.raises(ValueError) as raised:
        models.create(MAPS, weights="hub")
    assert asked == [("test_resnet", True, 0)]
    assert str(raised.value) == (
        "timm must be able to make 'test_resnet' with its weights, got 'no connection'; connect to the network, or pass a "
        "file of weights."
    )


@pytest.mark.usefixtures("timm")
@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("timm:convnext_tinny", {}, "timm network 'convnext_tinny' is not known; did you mean 'convnext_tiny'?"),
        ("timm:", {}, "timm network '' is not known; timm.list_models() lists those there are."),
        (MAPS, {"stride": "1x1"}, "timm:test_resnet: setting 'stride' is not known; did you mean 'std'?"),
        (MAPS, {"levels": "layer7"}, "timm:test_resnet: level 'layer7' is not known; did you mean 'layer4'?"),
        (
            TOKENS,
            {"pooling": "gap"},
            "timm:test_vit: pooling must be None, because the network pools final itself, got 'gap'; leave pooling out.",
        ),
        (
            CLOSED,
            {"levels": "lmh"},
            "timm:test_nfnet: levels 'lmh' need a network with at least three levels, got one with final; name the "
            "levels, or choose another network.",
        ),
        (
            "timm:resnet18.nonsense",
            {},
            "timm must be able to make 'resnet18.nonsense', got 'Invalid pretrained tag (nonsense) for resnet18'; change "
            "its name or size.",
        ),
    ],
)
def test_what_cannot_be_made(name: str, settings: dict[str, str], message: str) -> None:
    with pytest.raises((ValueError, TypeError)) as raised:
        models.create(name, **settings)  # type: ignore[arg-type]
    assert str(raised.value) == message


def test_timm_is_an_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "timm", None)
    with pytest.raises(ImportError) as raised:
        models.create("timm:convnext_tiny")
    assert str(raised.value) == (
        "timm must be installed for timm:convnext_tiny, got none; run pip install 'nearkin[timm]'."
    )
