"""The estimator: features in seconds, images too, with the habits of scikit-learn."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import nearkin
from nearkin import Embedder, losses
from nearkin.train import objective


def features(seed: int = 0, classes: int = 12, images: int = 12, dim: int = 32) -> tuple[np.ndarray, np.ndarray]:
    """Classes differ in a few directions and vary more in others, which a plain distance cannot know."""
    random = np.random.default_rng(seed)
    labels = np.arange(classes * images) % classes
    directions = np.random.default_rng(99).normal(size=(6, dim))
    noise = np.random.default_rng(98).normal(size=(10, dim)) * 3
    values = random.normal(size=(classes, 6))[labels] @ directions + random.normal(size=(len(labels), 10)) @ noise
    return values.astype(np.float32), labels


def plain_score(values: np.ndarray, labels: np.ndarray) -> float:
    distance = ((values[:, None] - values) ** 2).sum(-1)
    np.fill_diagonal(distance, np.inf)
    return float((labels[distance.argmin(1)] == labels).mean())


def fitted() -> Embedder:
    return Embedder(dim=2, epochs=1).fit(np.eye(4), [0, 0, 1, 1])


@pytest.mark.parametrize("loss", ["ranked_list", "proxy_anchor", "multi_similarity", "margin", "arcface"])
def test_it_learns_what_carries_over_to_new_classes(loss: str) -> None:
    values, labels = features(0)
    unseen, names = features(1)
    model = Embedder(loss=loss, dim=16).fit(values, labels)
    before, after = plain_score(unseen, names), model.score(unseen, names)
    assert after > before + 0.1, (before, after)
    assert model.losses_[-1] < model.losses_[0]


@pytest.mark.parametrize("loss", sorted(set(losses.names()) - {"spectral_clust"}))
def test_any_loss_will_do(loss: str) -> None:
    values, labels = features(classes=5, images=6)
    more = {"degrees": 40.0} if loss == "angular" else None
    vectors = Embedder(loss=loss, dim=6, epochs=2, loss_settings=more).fit_transform(values, labels)
    assert vectors.shape == (30, 6) and np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)


def test_names_tensors_and_lists_serve_too() -> None:
    values, labels = features(classes=4)
    names = np.array(["elm", "fir", "oak", "yew"])[labels]
    same = [
        Embedder(dim=4, epochs=2).fit(data, known).transform(values)
        for data, known in (
            (values, labels),
            (torch.from_numpy(values), torch.from_numpy(labels)),
            (values.tolist(), names),
        )
    ]
    np.testing.assert_allclose(same[0], same[1], atol=1e-6)
    np.testing.assert_allclose(same[0], same[2], atol=1e-6)


class Away(torch.Tensor):
    """As labels on another device are: NumPy gets nothing of them."""

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise TypeError("can't convert device type tensor to numpy")

    def cpu(self, *_: Any, **__: Any) -> torch.Tensor:
        return self.as_subclass(torch.Tensor)


def test_labels_may_be_on_another_device() -> None:
    values, labels = features(classes=4)
    away = torch.from_numpy(labels).as_subclass(Away)
    model = Embedder(dim=4, epochs=1).fit(values, away)
    assert model.score(values, away) == model.score(values, labels)


def test_numbers_of_numpy_are_numbers() -> None:
    values, labels = features(classes=4)
    plain = {"dim": 4, "epochs": 2, "batch": 16, "images": 2, "lr": 0.01, "seed": 3}
    kinds = {name: np.float64(value) if name == "lr" else np.int64(value) for name, value in plain.items()}
    same = [Embedder("margin", **given).fit_transform(values, labels) for given in (plain, kinds)]
    np.testing.assert_array_equal(*same)


def test_the_seed_reaches_a_loss_that_draws() -> None:
    values, labels = features(classes=4)

    def learned(seed: int, settings: dict[str, Any]) -> int:
        seen = []
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(losses, "create", lambda name, **more: seen.append(more) or create(name, **more))
            Embedder("margin", dim=4, epochs=1, seed=seed, loss_settings=settings).fit(values, labels)
        return seen[0]["seed"]

    create = losses.create
    assert learned(5, {}) == 5 and learned(5, {"seed": 7}) == 7


def test_the_same_seed_gives_the_same_vectors() -> None:
    values, labels = features(classes=4)
    one, two, three = (Embedder(dim=4, epochs=3, seed=seed).fit_transform(values, labels) for seed in (0, 0, 1))
    assert np.array_equal(one, two) and not np.array_equal(one, three)


def test_it_goes_into_pipelines_and_searches() -> None:
    base = pytest.importorskip("sklearn.base")
    from sklearn.model_selection import GridSearchCV
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    values, labels = features(classes=5)
    again = base.clone(Embedder(loss="margin", dim=4, epochs=2))
    assert again.get_params() == Embedder(loss="margin", dim=4, epochs=2).get_params()
    chain = make_pipeline(StandardScaler(), Embedder(dim=8, epochs=100), KNeighborsClassifier(1))
    assert chain.fit(values, labels).score(values, labels) > 0.8
    search = GridSearchCV(chain, {"embedder__dim": [2, 8]}, cv=2).fit(values, labels)
    assert search.best_params_["embedder__dim"] in (2, 8)


def images(folder: Path | None, classes: int = 4, each: int = 6) -> tuple[list[Any], list[str]]:
    from PIL import Image

    random = np.random.default_rng(0)
    found: list[Any] = []
    names = []
    for number in range(classes * each):
        label = number % classes
        pixels = random.integers(0, 60, (40, 48, 3)).astype(np.uint8)
        pixels[:, label * 12 : label * 12 + 12] += 150
        found.append(pixels)
        names.append(f"bar{label}")
        if folder is not None:
            Image.fromarray(pixels).save(folder / f"{number}.png")
    return ([folder / f"{n}.png" for n in range(len(names))] if folder is not None else found), names


@pytest.mark.parametrize("kind", ["arrays", "paths", "pillow"])
def test_images_are_learned_from(kind: str, tmp_path: Path) -> None:
    from PIL import Image

    pictures, names = images(tmp_path if kind == "paths" else None)
    if kind == "pillow":
        pictures = [Image.fromarray(pixels) for pixels in pictures]
    model = Embedder(
        loss="contrastive", network="small", dim=8, epochs=3, batch=12, images=3, device="cpu",
        settings={"network_settings": {"grey": False, "width": 4}, "size": 32, "resize": 36, "threads": 1},
    )  # fmt: skip
    vectors = model.fit(pictures, names).transform(pictures)
    assert vectors.shape == (24, 8) and model.classes_.tolist() == ["bar0", "bar1", "bar2", "bar3"]
    assert model.score(pictures, names) > 0.5 and len(model.losses_) == 3
    assert isinstance(model.embedder_, nearkin.Trained)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Embedder(loss="ranked_lst").fit(np.zeros((4, 2)), [0, 0, 1, 1]), "did you mean 'ranked_list'"),
        (lambda: Embedder().fit(np.zeros((4, 2)), [0, 1]), "y must be one label for each of the 4 rows of X"),
        *(
            (
                lambda y=y: Embedder().fit(np.zeros((4, 2)), y),
                r"^y must be a label for each row, got none \(NaN\) in row 2; drop such rows\.$",
            )
            for y in ([0, 0, np.nan, 1], np.array(["elm", "elm", None, "oak"], object))
        ),
        (lambda: Embedder().fit(np.zeros((4, 2)), [0] * 4), "y must hold at least two classes, got 1"),
        (
            lambda: Embedder(seed=2**63).fit(np.eye(4), [0, 0, 1, 1]),
            "^Embedder: seed must be a whole number at least 0 and at most 9223372036854775807, got 9223372036854775808",
        ),
        *(
            (
                lambda name=name, value=value: Embedder(**{name: value}).fit(np.eye(4), [0, 0, 1, 1]),
                f"^Embedder: {name} must be a {what}, got {value}; change {name}.$",
            )
            for name, value, what in (
                ("dim", 0, "whole number at least 1"),
                ("epochs", -1, "whole number at least 1 or None"),
                ("epochs", 0, "whole number at least 1 or None"),
                ("batch", 0, "whole number at least 1 or None"),
                ("images", 0, "whole number at least 1"),
                ("lr", -1, "finite number above 0 or None"),
                ("lr", 0.0, "finite number above 0 or None"),
            )
        ),
        (lambda: fitted().score(np.eye(4), [0, 0, 1]), "y must be one label for each of the 4 rows of X"),
        (lambda: Embedder().fit(np.full((4, 2), np.nan), [0, 0, 1, 1]), "X must hold finite numbers"),
        (lambda: Embedder().transform(np.zeros((4, 2))), "must be fitted before transform"),
        (lambda: Embedder().set_params(losss="margin"), "did you mean 'loss'"),
        (lambda: Embedder().fit(np.zeros((4, 8, 8, 3)), [0, 0, 1, 1]), "got float64 of shape"),
        (lambda: Embedder(loss="margin", loss_settings={"margn": 1}).fit(np.eye(4), [0, 0, 1, 1]), "margin"),
    ],
)
def test_what_bad_input_gets(call: Any, message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        call()


def test_other_features_than_learned_from() -> None:
    values, labels = features(classes=4)
    model = Embedder(dim=4, epochs=1).fit(values, labels)
    with pytest.raises(ValueError, match="X must have 32 columns, as in fit, got 5"):
        model.transform(np.zeros((3, 5)))
    with pytest.raises(ValueError, match="X must be features, as in fit"):
        model.transform([np.zeros((8, 8, 3), np.uint8)])
    assert repr(model) == "Embedder(dim=4, epochs=1)"


def test_pillow_images_are_turned_as_the_camera_says(tmp_path: Path) -> None:
    from PIL import Image

    from nearkin.data.decode import read_image
    from nearkin.estimator import _pictures

    exif = Image.Exif()
    exif[0x0112] = 6
    pixels = np.random.default_rng(0).integers(0, 256, (5, 9, 3), np.uint8)
    Image.fromarray(pixels).save(tmp_path / "photo.png", exif=exif)
    with Image.open(tmp_path / "photo.png") as image:
        np.testing.assert_array_equal(_pictures([image])[0], read_image(tmp_path / "photo.png"))


def test_proxies_are_those_of_the_classes_that_are_there() -> None:
    values, labels = np.random.default_rng(0).normal(size=(12, 6)), np.arange(12) // 4
    model = Embedder("proxy_anchor", dim=4, epochs=1, loss_settings={"classes": 9, "dim": 99}).fit(values, labels)
    assert model.transform(values).shape == (12, 4)
    assert objective.learner("proxy_anchor", {"classes": 9, "dim": 99}, 4, 3, 0).proxies.shape == (3, 4)
