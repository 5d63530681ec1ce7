"""Every loss against the independent float64 loops: value and gradient."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from tests.losses.cases import CLASSES, DIM, FIXED, Case, batch, gradients
from tests.reference import losses as reference
from tests.reference import miners as reference_miners
from tests.reference.samples import Samples


class RawSamples(Samples):
    """Samples whose miners compare raw distances, in the unit where s = 1 - D^2 / 2 is the cosine."""

    def cosine(self, i: int, j: int) -> Tensor:
        return 1 - self.raw_squared_distance(i, j) / 2


def reference_value(case: Case, loss: Any, samples: Samples, proxies: Tensor | None) -> Tensor:
    if case.mined is not None:
        name, options = case.mined
        samples = getattr(reference_miners, name)(samples, **options)
    known = dict(case.settings)
    known.pop("miner", None)
    name = "multi_similarity" if case.name == "raw" else case.name
    if name == "multi_similarity" and case.mined is not None:
        known["epsilon"] = None
    if name == "margin":
        known.pop("classes", None)
        known["beta"] = [loss.thresholds[y if len(loss.thresholds) > 1 else 0] for y in samples.labels]
    function = getattr(reference, name)
    result = function(samples, **known) if proxies is None else function(samples, proxies, **known)
    return torch.stack(result).mean() if isinstance(result, list) else result


@st.composite
def drawn(draw: st.DrawFn) -> dict[str, Any]:
    return {
        "seed": draw(st.integers(0, 10**6)),
        "rows": draw(st.integers(5, 9)),
        "classes": draw(st.integers(1, CLASSES)),
        "gallery": draw(st.sampled_from(["none", "none", "apart", "superset"])),
        "twins": draw(st.booleans()),
    }


@pytest.mark.parametrize("case", FIXED, ids=lambda case: case.id)
@settings(max_examples=12, deadline=None)
@given(what=drawn())
def test_value_and_gradient_equal_the_reference(case: Case, what: dict[str, Any]) -> None:
    compare(case, **what)


def compare(case: Case, seed: int, rows: int, classes: int, gallery: str, twins: bool) -> None:
    embeddings, labels = batch(seed, rows, DIM, classes, grad=False)
    if twins and not case.jumps and case.name not in ("nra", "struct_clust", "sub_center_arcface"):
        embeddings[1] = embeddings[0]
    embeddings.requires_grad_(True)
    loss = case.make()
    proxies = loss.proxies if case.proxy else None
    others: dict[str, Any] = {}
    if gallery != "none" and not case.proxy and case.name != "spectral_clust":
        more, more_labels = batch(seed + 1, rows + 2, DIM, classes, grad=False)
        if gallery == "apart":
            others = {
                "gallery": more.requires_grad_(True),
                "gallery_labels": more_labels,
                "self_index": torch.full((rows,), -1),
            }
        else:
            # Where unordered pairs count once, which copy of a sample gets the gradient is arbitrary: join them.
            copy = embeddings.detach() if case.rowwise else embeddings
            joined = torch.cat([more[:3].requires_grad_(True), copy])
            joined = joined.detach().requires_grad_(True) if case.rowwise else joined
            others = {
                "gallery": joined,
                "gallery_labels": torch.cat([more_labels[:3], labels]),
                "self_index": torch.arange(rows) + 3,
            }
    value = loss(embeddings, labels, **others)
    leaf = [others["gallery"]] if others and others["gallery"].is_leaf else []
    inputs = [embeddings, *leaf, *loss.parameters()]
    ours = gradients(value, *inputs)

    kind = RawSamples if case.settings.get("normalize") is False else Samples
    samples = kind(embeddings, labels.tolist())
    if others:
        samples = kind(
            embeddings,
            labels.tolist(),
            others["gallery"],
            others["gallery_labels"].tolist(),
            others["self_index"].tolist(),
        )
    expected = reference_value(case, loss, samples, proxies)
    theirs = gradients(expected, *inputs)
    assert value.item() == pytest.approx(expected.item(), rel=1e-9, abs=1e-9)
    for mine, right in zip(ours, theirs, strict=True):
        torch.testing.assert_close(mine, right, rtol=1e-6, atol=1e-7)
