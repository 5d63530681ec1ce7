"""The tables agree with each other and with the text around them, as far as the documents do."""

from __future__ import annotations

import statistics

import pytest

from nearkin import published


def value(source: str, table: int, method: str, metric: str = "recall@1", **filters: object) -> float:
    found = published.facts(source, table, metric=metric, **filters)  # type: ignore[arg-type]
    [only] = [fact.value for fact in found if fact.method == method]
    return only


@pytest.mark.parametrize(("poster", "paper"), [(1, 2), (2, 6), (3, 7), (4, 3), (5, 4), (6, 5)])
def test_the_poster_repeats_the_paper(poster: int, paper: int) -> None:
    ours = [(fact.method, fact.setting, fact.metric, fact.printed) for fact in published.facts("ranked_list", paper)]
    theirs = published.facts("ranked_list_poster", poster)
    assert [(fact.method, fact.setting, fact.metric, fact.printed) for fact in theirs] == ours


@pytest.mark.parametrize(("late", "early"), [(17, 7), (18, 9), (19, 10)])
def test_the_thesis_repeats_its_512_dimensions(late: int, early: int) -> None:
    again = [(f.method, f.metric, f.printed) for f in published.facts("deep_dive", late) if f.method != "OurLoss"]
    assert again == [(f.method, f.metric, f.printed) for f in published.facts("deep_dive", early, dim=512)]


def test_the_cross_validation_is_the_mean_of_its_folds() -> None:
    folds = [fact.value for fact in published.facts("deep_dive", 13, metric="recall@1")]
    [whole] = published.facts("deep_dive", 12, loss="multi_similarity")
    assert statistics.mean(folds) == pytest.approx(whole.value, abs=0.0051)
    assert statistics.stdev(folds) == pytest.approx(whole.deviation, abs=0.005)
    assert statistics.pstdev(folds) != pytest.approx(whole.deviation, abs=0.005)


def test_the_tournament_follows_from_its_experiments() -> None:
    ranks: dict[str, list[int]] = {}
    for table in (6, 7, 8):
        for dim in (64, 128, 512, 1024):
            results = published.facts("deep_dive", table, dim=dim, metric="recall@1")
            for place, fact in enumerate(sorted(results, key=lambda fact: -fact.value), 1):
                ranks.setdefault(fact.method, []).append(place)
    wrong = []
    for fact in published.facts("deep_dive", 11):
        places = ranks[fact.method]
        exact = {
            "rank_total": sum(places),
            "rank_mean": statistics.mean(places),
            "rank_deviation": statistics.stdev(places),
        }[fact.metric]
        if abs(exact - fact.value) > 0.005:
            wrong.append((fact.method, fact.metric))
            assert fact.flag
        else:
            assert not fact.flag
    assert len(wrong) == 3


def test_the_unified_view_repeats_its_best_row() -> None:
    for data, table in (("cub200", 2), ("cars196", 2), ("sop", 3), ("inshop", 3)):
        assert value("unified_view", 1, "RAW+VTHM (ours)", data=data) == value(
            "unified_view", table, "RAW+VTHM", data=data
        )


def test_documents_quote_the_same_numbers() -> None:
    names = {
        "Clustering": "Struct Clust",
        "ProxyNCA": "Proxy NCA",
        "Proxy-NCA": "Proxy NCA",
        "A-BIER": "ABIER",
        "Margin": "Margin",
        "HDC": "HDC",
        "HTL": "HTL",
        "Struct Clust": "Struct Clust",
        "Proxy NCA": "Proxy NCA",
        "ABIER": "ABIER",
    }
    seen: dict[tuple[str, str, str], set[float]] = {}
    for fact in published.facts():
        if fact.quoted and fact.method in names:
            seen.setdefault((names[fact.method], fact.data, fact.metric), set()).add(fact.value)
    assert [key for key, values in seen.items() if len(values) > 1] == [("Proxy NCA", "cars196", "recall@8")]
    assert len(seen) > 70


def test_nra_repeats_itself_but_for_one_cell() -> None:
    for dim in (64, 512):
        for data in ("cub200", "cars196", "sop"):
            first, second = (value("nra", table, "NRA (ours)", data=data, dim=dim) for table in (1, 2))
            assert (first == second) == ((dim, data) != (512, "cars196"))


def test_differences_that_the_texts_name() -> None:
    birds = {"data": "cub200"}
    assert value("ranked_list", 1, "RLL-H", **birds) - value(
        "ranked_list", 1, "Spectral Clust", **birds
    ) == pytest.approx(4.2)
    nmi = value("ranked_list", 1, "RLL-H", "nmi", **birds) - value("ranked_list", 1, "Proxy NCA", "nmi", **birds)
    assert nmi == pytest.approx(4.1)
    assert value("ranked_list", 2, "RLL-H") - value("ranked_list", 2, "Proxy NCA") == pytest.approx(2.4)
    sop = {"data": "sop"}
    mined = value("unified_view", 1, "Binomial+VTHM", **sop) - value("unified_view", 1, "Binomial", **sop)
    assert mined == pytest.approx(3.8, abs=0.05)
    cars = {"data": "cars196"}
    assert value("unified_view", 2, "RAW+VTHM", **cars) - value("unified_view", 2, "ABIER", **cars) == pytest.approx(
        1.69
    )
    assert value("deep_dive", 7, "ProxyAnchor", dim=512) - value("deep_dive", 16, "ProxyAnchor") == pytest.approx(1.55)


def test_differences_that_the_notes_name() -> None:
    """Where a text and its table disagree, the note has what the cells give."""

    def noted(source: str, table: int, difference: float) -> bool:
        return any(f"{difference:.2f}" in note for note in published.table_of(source, table).notes)

    for data, better, worse in (
        ("inshop", "Binomial+VTHM", "Binomial"),
        ("cub200", "RAW+VTHM (ours)", "RAW"),
        ("cars196", "Binomial+VTHM", "VTHM"),
    ):
        difference = value("unified_view", 1, better, data=data) - value("unified_view", 1, worse, data=data)
        assert noted("unified_view", 1, difference)
    assert noted("deep_dive", 6, value("deep_dive", 6, "Margin", dim=128) - value("deep_dive", 6, "NPair", dim=128))
    lead = value("deep_dive", 20, "MultiSimilarity", dim=1024) - value("deep_dive", 20, "ProxyAnchor", dim=1024)
    assert noted("deep_dive", 20, lead)
    means = [statistics.mean(f.value for f in published.facts("deep_dive", n, metric="recall@1")) for n in (6, 7, 8)]
    assert noted("deep_dive", 8, means[0] - means[2]) and noted("deep_dive", 8, means[1] - means[2])
    for dim, place in ((512, 3), (1024, 6)):
        ordered = sorted(published.facts("deep_dive", 21, dim=dim, metric="recall@1"), key=lambda fact: -fact.value)
        assert [fact.method for fact in ordered].index("ArcFace") + 1 == place
    doubtful = published.table_of("deep_dive", 16).flagged[0]
    assert doubtful.value < value("deep_dive", 7, "SoftTriple", dim=512)
