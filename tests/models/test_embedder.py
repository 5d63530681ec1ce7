"""Heads and levels, what is trained at which rate, frozen batch norms, and that it compiles whole."""

from __future__ import annotations

import copy
import json
import shutil
from typing import Any

import pytest
import torch

from nearkin import models
from nearkin.models import Embedder

# One of each kind.
NETWORKS = ["small", "efficientnet_lite0", "resnet18", "resnet50", "googlenet", "bn_inception"]


def images_for(model: Embedder, count: int = 2) -> torch.Tensor:
    side = model.size if model.backbone.fixed else 64
    return torch.rand(count, 3, side, side, generator=torch.Generator().manual_seed(5))


@pytest.mark.parametrize("name", NETWORKS)
def test_three_levels_under_their_letters(name: str) -> None:
    model = models.create(name, dim=6, levels="lmh", seed=0)
    assert model.levels == ("L", "M", "H") and (model.dim, model.total) == (6, 18)
    images = images_for(model)
    embeddings = model(images)
    assert {level: tuple(part.shape) for level, part in embeddings.items()} == dict.fromkeys("LMH", (2, 6))
    features = model.backbone(images, model.backbone.triple)
    low = model.heads["L"](features[model.backbone.triple[0]])
    torch.testing.assert_close(embeddings["L"], low, rtol=1e-4, atol=1e-4)


def test_the_embedding_is_unit_vectors_side_by_side_at_unit_length() -> None:
    model = models.create("resnet18", dim=5, levels="lmh", seed=0).eval()
    images = images_for(model, 3)
    rows = []
    parts = {level: part.detach().double().tolist() for level, part in model(images).items()}
    for row in range(3):
        units = []
        for level in "LMH":
            length = sum(value * value for value in parts[level][row]) ** 0.5
            units += [value / length for value in parts[level][row]]
        length = sum(value * value for value in units) ** 0.5
        rows.append([value / length for value in units])
    embedded = model.embed(images)
    torch.testing.assert_close(embedded.double(), torch.tensor(rows, dtype=torch.float64), rtol=1e-5, atol=1e-6)
    single = models.create("resnet18", dim=5, seed=0).eval()
    torch.testing.assert_close(single.embed(images).norm(dim=1), torch.ones(3))


@pytest.mark.parametrize(
    ("levels", "keys", "read"),
    [
        (None, ("layer4",), ("layer4",)),
        ("layer2", ("layer2",), ("layer2",)),
        ("lmh", ("L", "M", "H"), ("layer2", "layer3", "layer4")),
        ("MH", ("M", "H"), ("layer3", "layer4")),
        ("l", ("L",), ("layer2",)),
        (("H", "layer1"), ("H", "layer1"), ("layer4", "layer1")),
        (["layer3", "layer1"], ("layer3", "layer1"), ("layer3", "layer1")),
    ],
)
def test_ways_to_name_levels(levels: Any, keys: tuple[str, ...], read: tuple[str, ...]) -> None:
    model = models.create("resnet18", dim=3, levels=levels)
    assert model.levels == keys and tuple(model(images_for(model))) == keys
    assert tuple(model.heads[key].linear.in_features for key in keys) == tuple(  # type: ignore[union-attr]
        model.backbone.channels[level] for level in read
    )


@pytest.mark.parametrize(("pooling", "dim"), [("gap", 1), ("gmp", 64), ("gap+gmp", 128), ("gem", 512), (None, 1024)])
def test_pooling_and_dimensions(pooling: str | None, dim: int) -> None:
    model = models.create("resnet18", dim=dim, pooling=pooling).eval()
    images = images_for(model)
    head = model.heads["layer4"]
    pooled = models.POOLINGS[pooling or "gap+gmp"]()(model.backbone(images)["layer4"])
    expected = pooled @ head.linear.weight.T + head.linear.bias  # type: ignore[union-attr,operator]
    torch.testing.assert_close(model(images)["layer4"], expected, rtol=1e-4, atol=1e-4)
    assert model(images)["layer4"].shape == (2, dim)


def test_the_head_begins_as_documented() -> None:
    state = models.create("resnet18", dim=512, seed=0).heads["layer4"].state_dict()
    assert abs(float(state["linear.weight"].std()) / (2 / 512) ** 0.5 - 1) < 0.02
    assert torch.equal(state["linear.bias"], torch.zeros(512))


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("levels", [None, "l", "lmh"])
def test_every_parameter_learns_or_is_left_out(name: str, levels: str | None) -> None:
    model = models.create(name, dim=4, levels=levels, seed=0)
    sum(part.square().sum() for part in model(images_for(model, 3)).values()).backward()  # type: ignore[union-attr]
    for parameter_name, parameter in model.named_parameters():
        assert (parameter.grad is not None) == parameter.requires_grad, parameter_name
    left_out = [name for name, parameter in model.named_parameters() if not parameter.requires_grad]
    assert bool(left_out) == (levels == "l")


@pytest.mark.parametrize("decay_norms", [True, False])
@pytest.mark.parametrize("levels", [None, "l"])
def test_groups_hold_every_learned_parameter_once(levels: str | None, decay_norms: bool) -> None:
    model = models.create("resnet18", dim=4, levels=levels, pooling="gem")
    groups = model.parameter_groups(1e-3, head_multiplier=10, weight_decay=1e-4, decay_norms=decay_norms)
    grouped = [id(parameter) for group in groups for parameter in group["params"]]
    learned = {id(parameter) for parameter in model.parameters() if parameter.requires_grad}
    assert len(grouped) == len(set(grouped)) and set(grouped) == learned
    by_name = {group["name"]: group for group in groups}
    expected = ["backbone", "heads"] if decay_norms else ["backbone", "backbone norms", "heads", "heads norms"]
    assert list(by_name) == expected
    heads = {id(parameter) for parameter in model.heads.parameters()}
    for name, group in by_name.items():
        assert group["lr"] == pytest.approx(1e-2 if name.startswith("heads") else 1e-3)
        assert group["weight_decay"] == (0.0 if name.endswith("norms") else 1e-4)
        for parameter in group["params"]:
            assert (id(parameter) in heads) == name.startswith("heads")
            assert decay_norms or (parameter.dim() > 1) == (not name.endswith("norms"))
    torch.optim.AdamW(groups)
    assert all("weight_decay" not in group for group in model.parameter_groups(1e-3))


def test_wrong_rates_are_refused() -> None:
    model = models.create("small")
    with pytest.raises(
        ValueError, match="^parameter_groups: lr must be a finite number at least 0, got -1; change lr.$"
    ):
        model.parameter_groups(-1)
    with pytest.raises(
        ValueError, match="^parameter_groups: head_multiplier must be a finite number at least 0, got nan"
    ):
        model.parameter_groups(1, head_multiplier=float("nan"))
    with pytest.raises(ValueError, match="^parameter_groups: weight_decay must be a finite number at least 0, got 'x'"):
        model.parameter_groups(1, weight_decay="x")  # type: ignore[arg-type]


def norms(model: Embedder) -> list[torch.nn.BatchNorm2d]:
    return [module for module in model.modules() if isinstance(module, torch.nn.BatchNorm2d)]


def test_frozen_batch_norm_keeps_its_statistics_and_still_learns() -> None:
    model = models.create("resnet18", dim=4, frozen_batch_norm=True, seed=0)
    # In training mode from the start, and after train() and eval().
    for _ in range(2):
        assert model.training and not any(norm.training for norm in norms(model))
        model.eval()
        assert not model.training
        model.train()
    before = copy.deepcopy(model.state_dict())
    optimizer = torch.optim.SGD(model.parameter_groups(0.1))
    model(images_for(model))["layer4"].square().sum().backward()
    optimizer.step()
    for name, value in model.state_dict().items():
        kept = name.endswith(("running_mean", "running_var", "num_batches_tracked"))
        assert torch.equal(value, before[name]) == kept, name
    model.freeze_batch_norm(False)
    assert all(norm.training for norm in norms(model))
    assert model.freeze_batch_norm().settings["frozen_batch_norm"] and not any(norm.training for norm in norms(model))
    model.eval().freeze_batch_norm(False)
    assert not any(norm.training for norm in norms(model))


def test_free_batch_norm_follows_the_batch() -> None:
    model = models.create("resnet18", dim=4)
    before = norms(model)[0].running_mean.clone()  # type: ignore[union-attr]
    model(images_for(model))
    assert not torch.equal(before, norms(model)[0].running_mean)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", NETWORKS)
def test_settings_make_the_model_again(name: str) -> None:
    model = models.create(
        name, dim=7, levels="mh", pooling="gem", frozen_batch_norm=True, mean=(0.1, 0.2, 0.3), size=40, seed=3
    )
    settings = json.loads(json.dumps(model.settings))
    again = models.create(**settings)
    assert again.settings == model.settings
    again.load_state_dict(model.state_dict())
    images = images_for(model)
    assert torch.equal(again.eval().embed(images), model.eval().embed(images))


def test_settings_keep_the_stride() -> None:
    settings = models.create("resnet50", stride="1x1").settings
    assert settings["stride"] == "1x1" and settings["name"] == "resnet50"
    assert models.create(**settings).backbone.layer2[0].conv1.stride == (2, 2)  # type: ignore[union-attr,index]


def test_a_seed_decides_the_draw_and_touches_no_other() -> None:
    state = torch.get_rng_state()
    one, same, other = (models.create("small", seed=seed).state_dict() for seed in (1, 1, 2))
    assert torch.equal(torch.get_rng_state(), state)
    assert all(torch.equal(one[name], same[name]) for name in one)
    assert not torch.equal(one["backbone.edges.weight"], other["backbone.edges.weight"])
    assert not torch.equal(one["heads.stage3.linear.weight"], other["heads.stage3.linear.weight"])
    torch.manual_seed(1)
    first = models.create("small").state_dict()
    torch.manual_seed(1)
    assert all(torch.equal(value, first[name]) for name, value in models.create("small").state_dict().items())


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"dim": 0}, "resnet18: dim must be a whole number at least 1, got 0; change dim."),
        ({"dim": 12.5}, "resnet18: dim must be a whole number at least 1, got 12.5; change dim."),
        ({"pooling": "gpm"}, "resnet18: pooling 'gpm' is not known; did you mean 'gmp'?"),
        ({"pooling": ""}, "resnet18: pooling '' is not known; choose one of gap, gap+gmp, gem, gmp, none."),
        (
            {"pooling": "none"},
            "resnet18: pooling must not be 'none', because the map of layer4 changes with the size of the images; choose "
            "gap, gmp, gap+gmp or gem.",
        ),
        ({"levels": "layer_4"}, "resnet18: level 'layer_4' is not known; did you mean 'layer4'?"),
        ({"levels": ("L", "layr3")}, "resnet18: level 'layr3' is not known; did you mean 'layer3'?"),
        (
            {"levels": "llh"},
            "resnet18: levels must be 'lmh' or different names of levels, at least one, got 'llh'; choose of layer1, "
            "layer2, layer3, layer4.",
        ),
        (
            {"levels": ()},
            "resnet18: levels must be 'lmh' or different names of levels, at least one, got (); choose of layer1, layer2, "
            "layer3, layer4.",
        ),
        (
            {"levels": 3},
            "resnet18: levels must be 'lmh' or different names of levels, at least one, got 3; choose of layer1, layer2, "
            "layer3, layer4.",
        ),
        (
            {"frozen_batch_norm": "yes"},
            "resnet18: frozen_batch_norm must be True or False, got 'yes'; choose one of these.",
        ),
    ],
)
def test_wrong_settings_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError) as raised:
        models.create("resnet18", **settings)
    assert str(raised.value) == message


def test_the_summary_says_levels_and_total() -> None:
    model = models.create("resnet50", dim=512, levels="lmh")
    assert model.summary() == (
        "resnet50, levels L (layer2), M (layer3), H (layer4), 3 x 512 = 1536 dimensions, 25.3 M parameters"
    )
    assert models.create("resnet18").summary() == "resnet18, level layer4, 512 dimensions, 11.4 M parameters"


@pytest.mark.parametrize("name", ["small", "resnet18", "bn_inception"])
def test_double_precision(name: str) -> None:
    model = models.create(name, dim=4, pooling="gem", levels="lmh").double().eval()
    assert model.embed(images_for(model).double()).dtype == torch.float64


@pytest.mark.parametrize("pooling", ["gap+gmp", "gem"])
@pytest.mark.parametrize("name", ["small", "resnet18"])
def test_bfloat16_by_autocast_and_throughout(name: str, pooling: str) -> None:
    model = models.create(name, dim=8, pooling=pooling, seed=0).eval()
    images = images_for(model)
    expected = model.embed(images)
    with torch.autocast("cpu", torch.bfloat16):
        cast = model.embed(images.bfloat16())
    whole = model.bfloat16().embed(images.bfloat16())
    for found in (cast, whole):
        assert found.dtype == torch.float32
        assert torch.nn.functional.cosine_similarity(found, expected).min() > 0.99


def test_memory_format_changes_nothing() -> None:
    model = models.create("resnet18", dim=8, levels="lmh", seed=0).eval()
    images = images_for(model)
    expected = model.embed(images)
    model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    found = model.embed(images.to(memory_format=torch.channels_last))
    torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("name", ["small", "resnet18", "bn_inception", "efficientnet_lite0"])
def test_forward_is_one_graph(name: str) -> None:
    torch._dynamo.reset()
    model = models.create(name, dim=4, levels="lmh", pooling="gem", frozen_batch_norm=True, seed=0).train()
    images = images_for(model)
    compiled = torch.compile(model, backend="eager", fullgraph=True)
    for level, part in compiled(images).items():
        torch.testing.assert_close(part, model(images)[level])
    torch._dynamo.reset()


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++ to compile")
def test_compiled_equals_plain_in_values_and_gradients() -> None:
    torch._dynamo.reset()
    model = models.create("resnet18", dim=16, levels="layer2", frozen_batch_norm=True, seed=0)
    other = copy.deepcopy(model)
    images = images_for(model)
    found, expected = torch.compile(model, fullgraph=True)(images)["layer2"], other(images)["layer2"]
    torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-3)
    found.square().sum().backward()
    expected.square().sum().backward()
    for (name, one), two in zip(model.named_parameters(), other.parameters(), strict=True):
        if not one.requires_grad:
            continue
        assert one.grad is not None and two.grad is not None
        difference = (one.grad - two.grad).norm() / two.grad.norm()
        assert difference < 1e-3, name
    torch._dynamo.reset()


def test_a_network_that_is_none_of_ours_hears_what_to_do() -> None:
    with pytest.raises(TypeError) as raised:
        models.Embedder(torch.nn.Conv2d(3, 3, 3))  # type: ignore[arg-type]
    assert str(raised.value) == (
        "backbone must be a models.Backbone, got Conv2d; derive a class from it, as docs/models.md shows, or use "
        "models.create for a network that comes with nearkin."
    )
    with pytest.raises(TypeError) as raised:
        models.create(torch.nn.Conv2d(3, 3, 3))  # type: ignore[arg-type]
    assert str(raised.value) == "network must be a name, got Conv2d; use models.Embedder for a network of your own."
