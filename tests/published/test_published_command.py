"""``nearkin published``, as a person meets it."""

from __future__ import annotations

import argparse
import csv
import dataclasses
import json
from pathlib import Path

import pytest

from nearkin import config, published
from nearkin.published.command import Published, run


def shown(capsys: pytest.CaptureFixture[str], settings: Published) -> str:
    run(settings)
    return capsys.readouterr().out


def test_it_lists_the_tables(capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(capsys, Published())
    for source in published.sources():
        assert f"{source.name}: {source.title} ({source.published})" in text
    assert text.count("\n  ") == len(published.tables()) + 5
    assert text.endswith("Show one with: nearkin published SOURCE TABLE\n")
    only = shown(capsys, Published("nra"))
    assert "      2       45         1  cub200 cars196 sop  test_feedback  Recall@1 of NRA beside" in only
    assert "deep_dive" not in only


def test_it_shows_a_table_as_printed(capsys: pytest.CaptureFixture[str]) -> None:
    lines = shown(capsys, Published("deep_dive", "10")).splitlines()
    assert lines[0].startswith("deep_dive, Table 10 (page 56): ")
    assert "sop, bn_inception, test_feedback" in lines
    assert "ArcFace           128     73.14       64.56*       75.04*        84.51*" in lines
    assert "Contrastive        64     73.90       86.97        93.02         96.40" in lines
    assert lines.count("") == 5  # above the numbers, between the four sizes, before the remarks
    assert any(line.startswith("* ArcFace, 1024, sop, recall@1000, 34.27: Impossible") for line in lines)
    assert all(len(line) <= 110 for line in lines)


@pytest.mark.parametrize("table", published.tables(), ids=lambda table: f"{table.source}-{table.number}")
def test_every_number_of_every_table_is_shown(table: published.Table, capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(capsys, Published(table.source, str(table.number)))
    body = [line for line in text.splitlines() if not line.startswith("*")]
    for fact in table.facts:
        assert any(line.startswith(fact.method) and fact.printed in line for line in body), fact
    assert sum(line.count("*") for line in body) == len(table.flagged)
    for note in table.notes:
        assert note.split(".")[0][:60] in text


def test_wide_tables_have_a_part_for_each_data_set(capsys: pytest.CaptureFixture[str]) -> None:
    lines = shown(capsys, Published("unified_view", "2")).splitlines()
    assert "cub200, unknown protocol" in lines and "cars196, unknown protocol" in lines
    row = next(line for line in lines if line.startswith("Margin"))
    assert row.split() == ["Margin", "yes", "63.6", "74.4", "83.1", "90.0", "94.2", "-"]


def test_filters_show_the_tables_that_fit(capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(capsys, Published(loss="nra", data="cub200", dim=64, metric="recall@1"))
    assert [line.split(":")[0] for line in text.splitlines() if line.startswith("nra, ")] == [
        "nra, Table I (section IV-C)",
        "nra, Table II (section IV-D)",
    ]
    assert text.count("NRA (ours)") == 2 and text.count("57.6") == 2
    assert "power 4" not in text, "notes belong to whole tables"
    held_out = shown(capsys, Published(protocol="fixed_validation", data="cub200"))
    assert [line.split(" (")[0] for line in held_out.splitlines() if line.startswith("deep_dive, ")] == [
        "deep_dive, Table 14",
        "deep_dive, Table 16",
    ]
    flagged = shown(capsys, Published(flagged=True))
    assert sum(line.startswith("* ") for line in flagged.splitlines()) == 12


def test_it_writes_json_and_csv(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    both = Published("deep_dive", json=str(tmp_path / "a.json"), csv=str(tmp_path / "a.csv"), loss="proxy_anchor")
    text = shown(capsys, both)
    facts = published.facts("deep_dive", loss="proxy_anchor")
    assert text == f"{len(facts)} numbers written to {both.json} and {both.csv}.\n"
    found = json.loads(Path(both.json).read_text(encoding="utf-8"))
    assert [published.Fact(**entry) for entry in found] == facts
    with open(both.csv, encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["printed"] for row in rows] == [fact.printed for fact in facts]
    assert list(rows[0]) == [field.name for field in dataclasses.fields(published.Fact)]
    assert {row["deviation"] for row in rows} == {"", "0.44"}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.csv", "a.json"]
    assert shown(capsys, Published(csv=str(tmp_path / "all.csv"))).startswith("1,879 numbers written to ")


def test_places_where_nothing_can_be_written(tmp_path: Path) -> None:
    missing, folder = str(tmp_path / "no" / "a.json"), str(tmp_path)
    for settings, wanted in (
        (
            Published(json=missing),
            f"json must lie in a folder that exists, got {missing!r}; make {folder + '/no'!r} first.",
        ),
        (Published(csv=folder), f"csv must be a file, got {folder!r}, which is a folder; add a name to it."),
    ):
        with pytest.raises(ValueError) as caught:
            run(settings)
        assert str(caught.value) == wanted


def test_filters_that_fit_nothing() -> None:
    with pytest.raises(ValueError) as caught:
        run(Published("nra", data="inshop", flagged=True))
    assert str(caught.value) == (
        "published: there must be a number that fits, got none for data inshop, flagged True; leave a filter out."
    )
    with pytest.raises(ValueError, match="published: dim must be a whole number at least 0, got -1; change dim."):
        Published(dim=-1)
    with pytest.raises(ValueError, match="did you mean 'deep_dive'"):
        run(Published("deep-dive"))
    with pytest.raises(ValueError, match="table must be one of 6, 7, .* in deep_dive, got '15'"):
        run(Published("deep_dive", "15"))


def test_flags_have_help() -> None:
    config.add_flags(argparse.ArgumentParser(), Published)
    for field in dataclasses.fields(Published):
        assert field.metadata["help"]
        assert bool(field.metadata.get("positional")) == (field.name in ("source", "table"))
        assert bool(field.metadata.get("optional")) == (field.name in ("source", "table"))
    assert run.__doc__
