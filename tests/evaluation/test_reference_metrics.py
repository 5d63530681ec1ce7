"""Measures against the independent plain loops."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from nearkin import evaluation
from tests.losses.cases import batch
from tests.reference import metrics


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6), rows=st.integers(4, 14), classes=st.integers(1, 5))
def test_retrieval_measures_equal_the_loops(seed: int, rows: int, classes: int) -> None:
    embeddings, labels = batch(seed, rows, dim=3, classes=classes, grad=False)
    if int(torch.unique(labels, return_counts=True)[1].max()) < 2:
        return
    found = evaluation.evaluate(embeddings, labels, ks=(1, 2, 4), metrics=("recall", "r_precision", "map@r", "map"))
    names = labels.tolist()
    for k in (1, 2, 4):
        assert found[f"recall@{k}"] == pytest.approx(float(metrics.recall_at_k(embeddings, names, k)), abs=1e-12)
    assert found["r_precision"] == pytest.approx(float(metrics.r_precision(embeddings, names)), abs=1e-12)
    assert found["map@r"] == pytest.approx(float(metrics.map_at_r(embeddings, names)), abs=1e-12)
    assert found["map"] == pytest.approx(float(metrics.mean_average_precision(embeddings, names)), abs=1e-12)


@settings(max_examples=25, deadline=None)
@given(a=st.lists(st.integers(0, 3), min_size=2, max_size=12), shift=st.integers(0, 3))
def test_clustering_measures_equal_the_loops(a: list[int], shift: int) -> None:
    b = [(value * 2 + place * shift) % 4 for place, value in enumerate(a)]
    assert evaluation.nmi(a, b) == pytest.approx(float(metrics.nmi(a, b)), abs=1e-12)
    assert evaluation.pair_f1(a, b) == pytest.approx(float(metrics.pair_f1(a, b)), abs=1e-12)
