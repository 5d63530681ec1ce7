"""Filters, and what misspelt names get."""

from __future__ import annotations

from typing import Any

import pytest

from nearkin import published


def test_filters_narrow() -> None:
    every = published.facts()
    assert len(every) == 1879
    for name in ("source", "data", "loss", "network", "dim", "metric"):
        sizes = 0
        for choice in {getattr(fact, name) for fact in every} - {None, ""}:
            found = published.facts(**{name: choice})
            assert found == [fact for fact in every if getattr(fact, name) == choice]
            sizes += len(found)
        assert 0 < sizes <= len(every)
    together = published.facts("deep_dive", 9, data="cars196", loss="margin", network="bn_inception", dim=512)
    assert [fact.value for fact in together] == [81.98, 87.75, 91.75, 94.85]


def test_raw_is_multi_similarity() -> None:
    assert published.facts("unified_view", loss="raw") == published.facts("unified_view", loss="multi_similarity")
    assert published.facts("unified_view", 1, loss="raw", data="sop")[-1].value == 78.18


def test_names_that_fit_nothing_give_nothing() -> None:
    assert published.facts(loss="circle") == []
    assert published.facts(dim=77) == []
    assert published.facts("nra", data="inshop") == []


def test_tables_by_number_or_as_printed() -> None:
    assert published.table_of("nra", "ii").label == "Table II"
    assert published.table_of("deep_dive", " 6 ") is published.table_of("deep_dive", 6)
    assert published.facts("nra", "I") == published.facts("nra", 1)


@pytest.mark.parametrize(
    ("filters", "sentence"),
    [
        ({"source": "deepdive"}, "source 'deepdive' is not known; did you mean 'deep_dive'?"),
        ({"data": "cub"}, "data 'cub' is not known; did you mean 'cub200'?"),
        ({"loss": "rankedlist"}, "loss 'rankedlist' is not known; did you mean 'ranked_list'?"),
        ({"network": "resnet-50"}, "network 'resnet-50' is not known; did you mean 'resnet50'?"),
        ({"metric": "recal@1"}, "metric 'recal@1' is not known; did you mean 'recall@1'?"),
        ({"protocol": "test-feedback"}, "protocol 'test-feedback' is not known; did you mean 'test_feedback'?"),
        ({"table": 6}, "table must come with the source it is in, got table 6 alone; name the source too."),
        (
            {"source": "unified_view", "table": 4},
            "table must be one of 1, 2, 3 in unified_view, got '4'; choose one of these.",
        ),
        ({"source": "nra", "table": "x"}, "table must be one of 1, 2 in nra, got 'x'; choose one of these."),
        ({"source": "nra", "table": "³"}, "table must be one of 1, 2 in nra, got '³'; choose one of these."),
        ({"dim": 0}, "dim must be a whole number of at least 1, got 0; change dim."),
        ({"dim": "512"}, "dim must be a whole number of at least 1, got '512'; change dim."),
        ({"dim": True}, "dim must be a whole number of at least 1, got True; change dim."),
    ],
)
def test_errors_are_one_sentence(filters: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError) as caught:
        published.facts(**filters)
    assert str(caught.value) == sentence


def test_a_flag_for_no_cell_is_noticed() -> None:
    from nearkin.published.read import _table

    entry = {
        "number": 1,
        "label": "Table 1",
        "caption": "x",
        "place": "y",
        "data": "sop",
        "protocol": "unknown",
        "flags": [{"method": "A", "metric": "recall@2", "why": "Odd."}],
    }
    with pytest.raises(ValueError, match="x.toml: a flag must name a cell of table 1, got .*'recall@2'.*; mend it."):
        _table("x", entry, {"A": ""}, "method,recall@1\nA,50.0\n")
