"""Every table is there, whole, and with the numbers of the print."""

from __future__ import annotations

import zlib
from decimal import Decimal

import pytest

from nearkin import published
from nearkin.data.registry import DATASETS
from nearkin.losses import LOSSES
from nearkin.models import MODELS

# Source and table: rows, columns of numbers, numbers, and their sum, which was taken from the documents' text apart
# from the files, so that a digit mistyped anywhere shows. Last a checksum of the cells with their rows and columns,
# taken when each line of the files had been compared with the text: a cell in the wrong place shows too.
PRINTED = {
    ("ranked_list", 1): (8, 10, 80, "5611.4", "7572bf19"),
    ("ranked_list", 2): (8, 4, 30, "2526.2", "e836ef7a"),
    ("ranked_list", 3): (3, 3, 9, "793.7", "d07b451a"),
    ("ranked_list", 4): (5, 3, 15, "1326.7", "52cbdf7a"),
    ("ranked_list", 5): (5, 3, 15, "1330.3", "33c34296"),
    ("ranked_list", 6): (4, 3, 12, "1049.8", "de83af27"),
    ("ranked_list", 7): (5, 3, 15, "1335.1", "db2c4225"),
    ("ranked_list_poster", 1): (8, 4, 30, "2526.2", "e836ef7a"),
    ("ranked_list_poster", 2): (4, 3, 12, "1049.8", "de83af27"),
    ("ranked_list_poster", 3): (5, 3, 15, "1335.1", "db2c4225"),
    ("ranked_list_poster", 4): (3, 3, 9, "793.7", "d07b451a"),
    ("ranked_list_poster", 5): (5, 3, 15, "1326.7", "52cbdf7a"),
    ("ranked_list_poster", 6): (5, 3, 15, "1330.3", "33c34296"),
    ("deep_dive", 6): (40, 4, 160, "12420.83", "0459e0d3"),
    ("deep_dive", 7): (40, 4, 160, "12179.78", "d211011a"),
    ("deep_dive", 8): (40, 4, 160, "11716.13", "aad12fa6"),
    ("deep_dive", 9): (40, 4, 160, "13928.78", "9c5f7c1e"),
    ("deep_dive", 10): (40, 4, 160, "13957.54", "21742a71"),
    ("deep_dive", 11): (10, 3, 30, "727.85", "f8113661"),
    ("deep_dive", 12): (3, 1, 3, "195.53", "418a58da"),  # deviations included
    ("deep_dive", 13): (10, 2, 20, "1613.91", "4529f908"),
    ("deep_dive", 14): (4, 2, 8, "614.78", "b0af1a3e"),
    ("deep_dive", 16): (3, 1, 3, "198.29", "d4077441"),
    ("deep_dive", 17): (11, 4, 44, "3437.54", "85e50c0b"),
    ("deep_dive", 18): (11, 4, 44, "3913.65", "aff76fde"),
    ("deep_dive", 19): (11, 4, 44, "3897.77", "8c9ec690"),
    ("deep_dive", 20): (40, 4, 160, "14139.04", "f10c21db"),
    ("deep_dive", 21): (40, 4, 160, "13738.59", "e836038a"),
    ("unified_view", 1): (7, 4, 28, "2173.87", "e3ec9cd5"),
    ("unified_view", 2): (8, 12, 82, "6732.00", "c3ee95e4"),
    ("unified_view", 3): (7, 10, 48, "4312.76", "f20013d8"),
    ("nra", 1): (8, 11, 88, "6613.8", "b82ce1f6"),
    ("nra", 2): (17, 3, 45, "2784.7", "5c314ced"),
}


def test_no_table_is_missing_and_none_too_many() -> None:
    assert [(table.source, table.number) for table in published.tables()] == list(PRINTED)


@pytest.mark.parametrize("key", PRINTED, ids=lambda key: f"{key[0]}-{key[1]}")
def test_rows_columns_numbers_and_their_sum(key: tuple[str, int]) -> None:
    table = published.table_of(*key)
    total = sum(Decimal(number) for fact in table.facts for number in fact.printed.split(" ± "))
    assert (table.rows, len(table.columns), len(table.facts), str(total)) == PRINTED[key][:4]


@pytest.mark.parametrize("key", PRINTED, ids=lambda key: f"{key[0]}-{key[1]}")
def test_cells_lie_where_they_were_compared(key: tuple[str, int]) -> None:
    lines = [
        f"{fact.method}|{fact.network}|{fact.dim}|{fact.data}|{fact.metric}|{fact.fold}|{fact.split}|{fact.setting}"
        f"|{fact.printed}"
        for fact in published.table_of(*key).facts
    ]
    assert f"{zlib.crc32(chr(10).join(lines).encode()):08x}" == PRINTED[key][4]


def test_each_fact_says_what_it_is_about() -> None:
    seen = set()
    for table in published.tables():
        for fact in table.facts:
            assert (fact.source, fact.table) == (table.source, table.number)
            assert fact.loss == "" or LOSSES[fact.loss].name == fact.loss
            assert fact.data in DATASETS
            assert fact.network in {*MODELS, "resnet50_v2", ""}
            assert fact.protocol in published.PROTOCOLS
            assert fact.protocol == "unknown" or not fact.quoted
            assert fact.value == float(fact.printed.split(" ± ")[0])
            row = (fact.source, fact.table, fact.method, fact.network, fact.dim, fact.fold, fact.split, fact.setting)
            key = (row, fact.data, fact.metric)
            assert key not in seen, "a cell is there twice"
            seen.add(key)


def test_only_quoted_rows_and_the_tournament_leave_network_or_size_open() -> None:
    for fact in published.facts():
        if not (fact.network and fact.dim) and (fact.source, fact.table) != ("deep_dive", 11):
            assert fact.quoted


def test_methods_without_a_loss_of_nearkin() -> None:
    without = {fact.method for fact in published.facts() if not fact.loss}
    assert without == {"VTHM", "HDC", "Smart Mining", "HTL", "ABIER", "PDDM+Quad.", "A-BIER", "ABE-8"}


def test_protocols() -> None:
    own = {(table.source, table.number): table.protocols for table in published.tables()}
    assert {key for key, found in own.items() if found == ("cross_validation",)} == {
        ("deep_dive", 12),
        ("deep_dive", 13),
    }
    assert {key for key, found in own.items() if found == ("fixed_validation",)} == {
        ("deep_dive", 14),
        ("deep_dive", 16),
    }
    assert {source for (source, _), found in own.items() if found == ("unknown",)} == {"unified_view"}
    assert all(found == ("test_feedback",) for (source, _), found in own.items() if source in ("ranked_list", "nra"))


def test_tables_describe_themselves() -> None:
    for table in published.tables():
        assert table.label and table.caption and table.place
        assert not table.caption.endswith(".")
        assert all(note.endswith(".") for note in table.notes)
        assert all(fact.flag.endswith(".") for fact in table.flagged)
    table = published.table_of("deep_dive", 10)
    assert (table.data, table.networks, table.dims) == (("sop",), ("bn_inception",), (64, 128, 512, 1024))
    assert table.metrics == ("recall@1", "recall@10", "recall@100", "recall@1000")
    for source in published.sources():
        assert source.title and source.authors and source.published
