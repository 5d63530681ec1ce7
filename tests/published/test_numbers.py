"""The numbers are possible, but for those with a flag; some of them typed again from the documents."""

from __future__ import annotations

import itertools
from decimal import ROUND_DOWN, ROUND_HALF_DOWN, ROUND_HALF_UP, Decimal

import pytest
import torch

import nearkin
from nearkin import config, losses, models, published
from nearkin.losses.proxy_base import ProxyLoss
from nearkin.published import Fact, attainable
from nearkin.train.settings import Train

# Method, dim, data, metric and value of one cell, typed from the documents.
SPOTS = [
    ("ranked_list", 1, "RLL-(L,M,H)", 1536, "cars196", "recall@8", 96.7),
    ("ranked_list", 1, "Spectral Clust", None, "cub200", "nmi", 59.2),
    ("ranked_list", 2, "Proxy NCA", None, "sop", "nmi", 90.6),
    ("ranked_list", 3, "alpha = 1.0", 1536, "sop", "recall@10", 90.5),
    ("ranked_list", 4, "m = 0", 1536, "sop", "recall@1", 76.1),
    ("ranked_list", 5, "T = 20", 1536, "sop", "recall@100", 95.7),
    ("ranked_list", 6, "M", 512, "sop", "recall@1", 76.9),
    ("ranked_list", 7, "150 = 50 x 3", 1536, "sop", "recall@10", 91.1),
    ("ranked_list_poster", 3, "120 = 40 x 3", 1536, "sop", "recall@1", 79.2),
    ("deep_dive", 6, "Margin", 128, "cub200", "recall@8", 90.41),
    ("deep_dive", 6, "ProxyAnchor", 1024, "cub200", "recall@1", 69.82),
    ("deep_dive", 7, "ProxyNCA", 64, "cub200", "recall@1", 56.98),
    ("deep_dive", 7, "SoftTriple", 512, "cub200", "recall@1", 66.76),
    ("deep_dive", 8, "ArcFace", 1024, "cub200", "recall@2", 73.57),
    ("deep_dive", 9, "Margin", 512, "cars196", "recall@1", 81.98),
    ("deep_dive", 10, "NPair", 1024, "sop", "recall@1000", 90.11),
    ("deep_dive", 11, "ArcFace", None, "cub200", "rank_deviation", 2.31),
    ("deep_dive", 12, "SoftTriple", 512, "cub200", "recall@1", 64.09),
    ("deep_dive", 16, "MultiSimilarity", 512, "cub200", "recall@1", 65.61),
    ("deep_dive", 17, "OurLoss", 512, "cub200", "recall@4", 84.99),
    ("deep_dive", 18, "OurLoss", 512, "cars196", "recall@8", 96.97),
    ("deep_dive", 19, "OurLoss", 512, "sop", "recall@1000", 98.99),
    ("deep_dive", 20, "MultiSimilarity", 512, "cars196", "recall@1", 89.21),
    ("deep_dive", 21, "LiftedStructure", 128, "cars196", "recall@4", 90.67),
    ("unified_view", 1, "RAW+DW", 512, "inshop", "recall@1", 88.79),
    ("unified_view", 2, "Margin", None, "cub200", "recall@16", 94.2),
    ("unified_view", 2, "RAW+VTHM", 512, "cars196", "recall@32", 99.36),
    ("unified_view", 3, "HTL", None, "inshop", "recall@30", 97.2),
    ("nra", 1, "Lifted", 512, "cub200", "recall@1", 55.7),
    ("nra", 1, "N-Pair", 64, "sop", "recall@100", 92.6),
    ("nra", 2, "PDDM+Quad.", 128, "cub200", "recall@1", 58.3),
    ("nra", 2, "N-pair", 512, "sop", "recall@1", 67.7),
]


@pytest.mark.parametrize("spot", SPOTS, ids=lambda spot: f"{spot[0]}-{spot[1]}-{spot[2]}")
def test_cells_typed_again(spot: tuple[str, int, str, int | None, str, str, float]) -> None:
    source, table, method, dim, data, metric, value = spot
    found = published.facts(source, table, data=data, metric=metric)
    assert [fact.value for fact in found if (fact.method, fact.dim) == (method, dim)] == [value]


def test_folds_splits_and_deviations() -> None:
    folds = published.facts("deep_dive", 13, metric="recall@1")
    assert [fact.fold for fact in folds] == list(range(1, 11))
    assert folds[6].value == 63.35
    splits = published.facts("deep_dive", 14, metric="validation_recall@1")
    assert {fact.split: fact.value for fact in splits} == {
        "70/30": 86.13,
        "80/20": 92.53,
        "90/10": 91.49,
        "95/5": 93.31,
    }
    assert {fact.split for fact in published.facts("deep_dive", 16)} == {"90/10"}
    means = published.facts("deep_dive", 12)
    assert [(fact.method, fact.value, fact.deviation) for fact in means] == [
        ("MultiSimilarity", 63.61, 0.59),
        ("SoftTriple", 64.09, 0.48),
        ("ProxyAnchor", 66.32, 0.44),
    ]
    assert all(fact.deviation is None for fact in published.facts() if (fact.source, fact.table) != ("deep_dive", 12))


def rows() -> list[list[Fact]]:
    """The recalls of each row, by K."""

    def row(fact: Fact) -> tuple[object, ...]:
        return (fact.source, fact.table, fact.method, fact.data, fact.dim, fact.fold, fact.split, fact.setting)

    recalls = [fact for fact in published.facts() if fact.metric.startswith("recall@")]
    groups = itertools.groupby(sorted(recalls, key=lambda fact: tuple(map(str, row(fact)))), row)
    return [sorted(group, key=lambda fact: int(fact.metric.removeprefix("recall@"))) for _, group in groups]


def test_recall_grows_with_k_in_every_cell_without_a_flag() -> None:
    grows = True
    for row in rows():
        sound = [fact.value for fact in row if not fact.flag]
        assert sound == sorted(set(sound)), row
        every = [fact.value for fact in row]
        grows = grows and every == sorted(every)
    assert not grows, "the impossible cells should break the rule"


def test_values_lie_where_they_can() -> None:
    for fact in published.facts():
        if not fact.metric.startswith("rank_"):
            assert 20 < fact.value < 100, fact


def test_the_flagged_cells() -> None:
    flagged = [fact for fact in published.facts() if fact.flag]
    assert [(f.source, f.table, f.method, f.dim, f.data, f.metric, f.printed) for f in flagged] == [
        ("ranked_list", 1, "Proxy NCA", None, "cars196", "recall@8", "88.7"),
        ("deep_dive", 10, "ArcFace", 128, "sop", "recall@10", "64.56"),
        ("deep_dive", 10, "ArcFace", 128, "sop", "recall@100", "75.04"),
        ("deep_dive", 10, "ArcFace", 128, "sop", "recall@1000", "84.51"),
        ("deep_dive", 10, "ArcFace", 1024, "sop", "recall@1000", "34.27"),
        ("deep_dive", 11, "SoftTriple", None, "cub200", "rank_mean", "3.16"),
        ("deep_dive", 11, "LiftedStructure", None, "cub200", "rank_deviation", "1.89"),
        ("deep_dive", 11, "Triplet", None, "cub200", "rank_mean", "8.85"),
        ("deep_dive", 16, "SoftTriple", 512, "cub200", "recall@1", "66.12"),
        ("unified_view", 2, "ProxyNCA", None, "cars196", "recall@8", "87.8"),
        ("nra", 1, "NRA (ours)", 512, "cars196", "recall@1", "81.9"),
        ("nra", 2, "NRA (ours)", 512, "cars196", "recall@1", "82.1"),
    ]
    assert flagged[1].flag == "Impossible: R@1 is 73.14 and recall cannot fall with K."


def test_settings_of_losses_are_taken_by_these_losses() -> None:
    train = {"levels", "batch", "images"}
    tried = 0
    for fact in published.facts():
        settings = config.table("setting", fact.setting.split())
        if fact.loss and settings and not train & settings.keys():
            proxies = {"classes": 3, "dim": 4} if issubclass(losses.LOSSES[fact.loss], ProxyLoss) else {}
            losses.create(fact.loss, **settings, **proxies)
            tried += 1
    assert tried > 50


def test_vthm_alone_is_contrastive_with_every_hinge_open() -> None:
    """As the note on the unified view's first table says, and its grid runs it."""
    torch.manual_seed(0)
    vectors, labels = torch.randn(24, 8, dtype=torch.float64), torch.arange(24) // 4
    loss = losses.create("contrastive", miner="vthm", margin=-1)
    found = nearkin.pair_weights(loss, vectors, labels)
    weights = found.weights[found.weights != 0]
    assert len({round(value, 12) for value in weights.tolist()}) == 1 and len(weights) > 24
    note = next(note for note in published.table_of("unified_view", 1).notes if "VTHM alone" in note)
    assert "contrastive with miner vthm and margin -1" in note


def test_levels_are_those_of_the_network() -> None:
    """As ``nearkin train`` reads them: "h" alone was taken for a stage of that name."""
    printed = {fact.setting for fact in published.facts("ranked_list") if fact.setting.startswith("levels=")}
    assert printed == {"levels=L", "levels=M", "levels=H", "levels=lmh"}
    for setting in printed:
        levels = Train(levels=setting.removeprefix("levels=")).names
        assert levels and models.create("bn_inception", dim=4, levels=levels).levels == tuple("".join(levels).upper())


def test_searched_settings_are_those_of_table_15() -> None:
    """The thesis' gamma multiplies, nearkin's divides."""
    triple = config.table("setting", published.facts("deep_dive", 16, loss="soft_triple")[0].setting.split())
    assert triple == {"margin": 0.4, "scale": 78, "gamma": pytest.approx(1 / 58, abs=5e-6), "tau": 0.4}


@pytest.mark.parametrize(("data", "queries", "impossible"), [("cub200", 5924, 1116), ("cars196", 8131, 0)])
def test_shares_of_the_test_images(data: str, queries: int, impossible: int) -> None:
    """Against a list of every number of hits, rounded and cut."""
    possible = {
        (Decimal(100 * hits) / queries).quantize(Decimal("0.01"), rounding)
        for hits in range(queries + 1)
        for rounding in (ROUND_HALF_UP, ROUND_HALF_DOWN, ROUND_DOWN)
    }
    wrong = 0
    for hundredths in range(10001):
        printed = f"{hundredths // 100}.{hundredths % 100:02}"
        fact = Fact("x", 1, "", "", data, "", None, "unknown", "recall@1", float(printed), printed=printed)
        assert attainable(fact) == (Decimal(printed) in possible)
        wrong += not attainable(fact)
    assert wrong == impossible


def test_what_is_no_share_of_the_test_images() -> None:
    assert attainable(published.facts("ranked_list", 1, metric="nmi")[0]) is None
    assert attainable(published.facts("deep_dive", 12)[0]) is None
    assert attainable(published.facts("deep_dive", 13, metric="validation_recall@1")[0]) is None


@pytest.mark.parametrize(("table", "count"), [(6, 2), (7, 8), (8, 5), (14, 1), (17, 3), (9, 0), (20, 0), (21, 0)])
def test_notes_count_the_cells_that_are_no_share(table: int, count: int) -> None:
    found = published.table_of("deep_dive", table)
    assert sum(attainable(fact) is False for fact in found.facts) == count
    notes = [note for note in found.notes if note.startswith("No whole number")]
    assert len(notes) == (count > 0)
    assert all(f"gives {count} of the" in note for note in notes)
