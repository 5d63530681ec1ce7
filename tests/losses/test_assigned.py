"""A setting that is assigned to a loss does what it would have done when the loss was made, or is refused."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from nearkin import checks, losses, miners
from tests.losses.cases import gradients

ENGINES = ("dense", "blocked", "compiled:aot_eager")


def make(name: str, **settings: Any) -> Any:
    torch.manual_seed(0)
    common = {"classes": 5, "dim": 4} if issubclass(losses.LOSSES[name], losses.ProxyLoss) else {}
    return losses.create(name, **{**common, **settings}).double()


def compared(loss: Any, fresh: Any) -> None:
    found = []
    for one in (loss, fresh):
        embeddings = torch.randn(12, 4, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
        embeddings.requires_grad_(True)
        value = one(embeddings, torch.arange(12) // (2 if one.name == "n_pair" else 3))
        found.append([value.detach(), *gradients(value, embeddings)])
    for first, second in zip(*found, strict=True):
        assert torch.equal(first, second)


def others(value: Any, limit: Any) -> list[Any]:
    """Other values of a setting."""
    if isinstance(limit, tuple):
        return [other for other in limit if other != value]
    if isinstance(value, tuple) or value is None:
        return []
    return [value + 1 if isinstance(limit, checks.Limit) and limit.whole else value * 0.75 + 0.01]


CASES = [(name, key) for name, kind in sorted(losses.LOSSES.items()) for key in kind.limits]


@pytest.mark.parametrize(("name", "key"), CASES)
def test_every_setting_counts_or_is_refused(name: str, key: str) -> None:
    loss = make(name)
    for value in others(getattr(loss, key), loss.limits[key]):
        loss, before = make(name), make(name)
        compared(loss, before)
        try:
            fresh = make(name, **{**loss.settings, key: value})
        except ValueError:  # not without another one
            continue
        try:
            setattr(loss, key, value)
        except ValueError as error:
            assert str(error).startswith(
                f"{name}: {key} must stay {getattr(before, key)!r} once the loss is made, got "
            )
            assert loss.settings == before.settings
            continue
        assert loss.settings == fresh.settings
        if "draws" in dict(loss.named_buffers()):  # as many batches seen
            loss.draws.zero_()
        compared(loss, fresh)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("name", "key", "value"),
    [
        ("multi_similarity", "epsilon", 1.5),
        ("multi_similarity", "epsilon", None),
        ("multi_similarity", "miner", "hard"),
        ("contrastive", "miner", "semihard"),
        ("contrastive", "miner", "random"),
        ("margin", "miner", None),
        ("ranked_list", "gallery_gradient", True),
        ("ranked_list", "alpha", 1.0),
    ],
)
def test_every_engine_follows(engine: str, name: str, key: str, value: Any) -> None:
    loss, fresh = make(name, engine=engine), make(name, engine=engine, **{key: value})
    with pytest.raises(AssertionError):
        compared(loss, fresh)
    setattr(loss, key, value)
    assert loss.settings == fresh.settings and loss.state_dict().keys() == fresh.state_dict().keys()
    for one in (loss, fresh):
        if "draws" in one.state_dict():
            one.draws.zero_()
    compared(loss, fresh)


@pytest.mark.parametrize("engine", ENGINES)
def test_another_miner_put_in_its_place_is_asked(engine: str) -> None:
    loss = make("multi_similarity", engine=engine)
    compared(loss, make("multi_similarity", engine=engine))
    loss.chosen = miners.create("vthm", margin=1.5)
    compared(loss, make("multi_similarity", engine=engine, epsilon=1.5))


@pytest.mark.parametrize(
    ("name", "key", "value", "text"),
    [
        (
            "margin",
            "beta",
            0.3,
            "margin: beta must stay 1.2 once the loss is made, got 0.3: loss.beta is where loss.thresholds began; create "
            "the loss anew with beta=0.3.",
        ),
        (
            "margin",
            "learn_beta",
            False,
            "margin: learn_beta must stay True once the loss is made, got False: loss.thresholds were made to be learned or "
            "not; create the loss anew with learn_beta=False.",
        ),
        (
            "soft_triple",
            "centers",
            3,
            "soft_triple: centers must stay 10 once the loss is made, got 3: loss.proxies were made for it; create the loss "
            "anew with centers=3.",
        ),
    ],
)
def test_what_was_made_of_a_setting_is_not_made_again(name: str, key: str, value: Any, text: str) -> None:
    loss = make(name)
    setattr(loss, key, getattr(loss, key))
    with pytest.raises(ValueError) as error:
        setattr(loss, key, value)
    assert str(error.value) == text


def test_a_refused_assignment_changes_nothing() -> None:
    loss = make("multi_similarity")
    for key, value in (("epsilon", -1.0), ("miner", "hardest"), ("miner", 3), ("alpha", 0.0)):
        with pytest.raises((ValueError, TypeError)):
            setattr(loss, key, value)
    assert loss.settings == make("multi_similarity").settings
    compared(loss, make("multi_similarity"))


class Nearest(torch.nn.Module):
    """A miner with something to learn would be one like this."""

    def forward(self, similarity: Any, positive: Any, negative: Any) -> tuple[Any, Any]:
        return positive, negative * (similarity > 0)


def test_a_module_is_a_miner_when_made_and_when_assigned() -> None:
    fresh = make("contrastive", miner=Nearest())
    loss = make("contrastive")
    loss.miner = Nearest()
    compared(loss, fresh)
    assert [*loss.children()] == [loss.miner]
    loss.miner = "hard"
    compared(loss, make("contrastive", miner="hard"))
    assert not [*loss.children()] and loss.settings["miner"] == "hard"
