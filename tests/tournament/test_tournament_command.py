"""The command: Deep Dive's Table 11 from its Tables 6 to 8, tables on the screen, files, and wrong input."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from nearkin import published, results
from nearkin.cli import main
from nearkin.tournament import Ranking, printed
from nearkin.tournament.command import Tournament, run
from nearkin.tournament.settle import judge
from tests.tournament.made import benchmark, result

LEVELS = {"ranked_list": 1.4, "proxy_anchor": 0.7, "contrastive": 0.65, "triplet": -0.3}

# Table 11, with the misprints that formulas.md lists put right.
TABLE_11 = {
    "proxy_anchor": (12, 1.00, 0.00),
    "soft_triple": (38, 3.17, 1.19),
    "multi_similarity": (51, 4.25, 2.05),
    "contrastive": (52, 4.33, 1.72),
    "lifted_structure": (54, 4.50, 1.88),
    "margin": (70, 5.83, 1.27),
    "arcface": (79, 6.58, 2.31),
    "proxy_nca": (81, 6.75, 1.66),
    "triplet": (103, 8.58, 0.51),
    "n_pair": (120, 10.00, 0.00),
}


def test_deep_dives_tournament_is_rebuilt_exactly() -> None:
    verdict = judge(printed("deep_dive"), "recall@1")
    found = {entry.label: (entry.total, round(entry.mean, 2), round(entry.deviation, 2)) for entry in verdict.standings}
    assert list(found.items()) == list(TABLE_11.items())
    assert verdict.holes == ()
    assert verdict.standings[0].best == 12


def test_what_is_printed_in_table_11_differs_in_its_misprints_only() -> None:
    verdict = judge(printed("deep_dive"), "recall@1")
    off = set()
    for entry in verdict.standings:
        for metric, value in (
            ("rank_total", entry.total),
            ("rank_mean", entry.mean),
            ("rank_deviation", entry.deviation),
        ):
            [fact] = published.facts("deep_dive", 11, loss=entry.label, metric=metric)
            if abs(fact.value - value) > 0.0051:
                off.add((entry.label, metric))
            assert bool(fact.flag) == (round(value, 2) != fact.value), (entry.label, metric)
    assert off == {("triplet", "rank_mean"), ("lifted_structure", "rank_deviation"), ("soft_triple", "rank_mean")}


def test_the_friedman_test_of_deep_dive_by_another_library() -> None:
    stats = pytest.importorskip("scipy.stats")
    tables = printed("deep_dive")
    labels = tables[0].labels
    scores = np.array([[table.scores[table.labels.index(label)] for label in labels] for table in tables])
    verdict = judge(tables, "recall@1")
    assert verdict.friedman is not None
    assert verdict.friedman.statistic == pytest.approx(stats.friedmanchisquare(*scores.T).statistic)
    assert verdict.friedman.difference == pytest.approx(3.164 * np.sqrt(110 / 72), abs=2e-3)
    assert Ranking.of(labels, scores).total.sum() == 12 * 55


def test_every_data_set_of_deep_dive() -> None:
    verdict = judge(printed("deep_dive", (6, 7, 8, 9, 10, 20, 21)), "recall@1")
    assert verdict.friedman is not None
    assert verdict.friedman.experiments == 28
    assert verdict.notes[1] == (
        "28 experiments on 3 data sets: those on one data set share their test images, so they count for less than 28 and "
        "p is too small."
    )
    assert " on cub200, cars196 and sop (test_feedback), " in verdict.sentence


def test_the_thesis_own_loss_takes_part_with_its_settings() -> None:
    """It is the only row of its loss in Tables 17 to 19, so that its settings make it no row of an ablation."""
    for number in (17, 18, 19):
        verdict = judge(printed("deep_dive", (number,)), "recall@1")
        assert len(verdict.standings) == 11 and verdict.standings[2].label == "proxy_repulsion"
    [table] = printed("deep_dive", (17,))
    assert table.scores[table.labels.index("proxy_repulsion")] == pytest.approx(0.6542)


def test_rows_of_an_ablation_are_no_losses() -> None:
    for number in (3, 4, 5, 7):
        with pytest.raises(ValueError, match=rf"not in an ablation, got none in ranked_list {number};"):
            printed("ranked_list", (number,))
    [table] = [table for table in printed("ranked_list") if (table.data, table.dim) == ("sop", 1536)]
    [fact] = published.facts("ranked_list", 2, loss="ranked_list", dim=1536, metric="recall@1")
    assert table.scores.tolist() == pytest.approx([fact.value / 100])


def test_impossible_cells_do_not_take_part() -> None:
    verdict = judge(printed("deep_dive", (10,), "recall@10"), "recall@10")
    assert verdict.friedman is not None
    assert verdict.friedman.experiments == 3
    assert verdict.holes[0] == (
        "sop, bn_inception, 128 dimensions, test_feedback: arcface is left out here. Impossible: R@1 is 73.14 and "
        "recall cannot fall with K."
    )
    assert "it lacks arcface." in verdict.holes[1]


def test_the_screen_shows_ranks_totals_and_the_word_test_feedback(capsys: pytest.CaptureFixture[str]) -> None:
    run(Tournament(published="deep_dive"))
    text = capsys.readouterr().out
    for label, (total, mean, deviation) in TABLE_11.items():
        assert any(
            line.split()[:4] == [label, str(total), f"{mean:.2f}", f"{deviation:.2f}"] for line in text.splitlines()
        ), label
    assert "Critical difference (Nemenyi, 0.05): 3.91." in text
    assert " 12  cub200, googlenet, 1024 dimensions, test_feedback: proxy_anchor 64.47 %" in text
    assert "test_feedback: epoch or settings were chosen on the test set" in text
    assert max(map(len, text.splitlines())) <= 100
    assert "\x1b" not in text


def test_every_experiment_has_a_table_where_asked(capsys: pytest.CaptureFixture[str]) -> None:
    run(Tournament(published="deep_dive", each=True))
    text = capsys.readouterr().out
    assert text.count("test_feedback (in percent)") == 12
    assert "   9  triplet              57.56" in text


def test_a_benchmark_on_the_screen(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    benchmark(tmp_path, LEVELS)
    run(Tournament(results=str(tmp_path), svg=str(tmp_path / "figure.svg")))
    text = capsys.readouterr().out
    lines = text.splitlines()
    assert lines[0] == "cub200, resnet50, 512 dimensions, fixed_validation (in percent, 3 runs of each loss)"
    assert lines[1].split("  ")[0] == "rank"
    assert lines[3].split()[:2] == ["1", "ranked_list"]
    assert "ranked_list wins with" in " ".join(lines)
    assert (tmp_path / "figure.svg").read_text().startswith("<svg")
    assert lines[-1] == f"Figure: {tmp_path / 'figure.svg'}"


def test_the_file_may_be_given_instead_of_its_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    benchmark(tmp_path, LEVELS)
    shown = []
    for path in (tmp_path, tmp_path / results.FILE):
        run(Tournament(results=str(path)))
        shown.append(capsys.readouterr().out)
    assert shown[0] == shown[1]


def test_json_is_the_record_and_nothing_else(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    benchmark(tmp_path, LEVELS)
    run(Tournament(results=str(tmp_path), json=True, svg=str(tmp_path / "figure.svg")))
    record = json.loads(capsys.readouterr().out)
    assert record["winner"] == "ranked_list"
    assert record["certain"] is True
    assert (tmp_path / "figure.svg").exists()


def test_a_torn_last_line_is_said_and_passed_over(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    benchmark(tmp_path, LEVELS, seeds=2)
    with (tmp_path / results.FILE).open("ab") as file:
        file.write(b'{"id": "3f2a9c01b2d4", "status": "do')
    run(Tournament(results=str(tmp_path)))
    shown = capsys.readouterr()
    assert "the last line was cut short and is left out" in shown.err
    assert shown.err.startswith("nearkin tournament: ")
    assert "ranked_list" in shown.out


@pytest.mark.parametrize("command", ["tournament", "report"])
def test_damaged_answers_are_one_sentence(command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = benchmark(tmp_path, LEVELS, seeds=2)
    path = tmp_path / made[0].folder / results.QUERIES
    content = path.read_bytes()
    for damage in (b"torn", content[:-50], content.replace(b"[", b"{", 1)):
        path.write_bytes(damage)
        assert main([command, str(tmp_path)]) == 2
        shown = capsys.readouterr().err
        assert f"{path} must hold the answers to the queries of a run, got a file that cannot be read (" in shown
        assert shown.count("\n") == 1
    path.unlink()
    assert main([command, str(tmp_path)]) == 0


def test_wrong_input_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"either the folder of a benchmark or --published, got neither; try nearkin"):
        Tournament()
    with pytest.raises(ValueError, match=r"got results 'a' and published 'deep_dive'; try"):
        Tournament(results="a", published="deep_dive")
    with pytest.raises(ValueError, match=r"results must be a folder with results.jsonl, or such a file, got"):
        run(Tournament(results=str(tmp_path)))
    with pytest.raises(ValueError, match=r"source 'deep-dive' is not known; did you mean 'deep_dive'\?"):
        run(Tournament(published="deep-dive"))
    with pytest.raises(ValueError, match=r"metric 'recal@1' is not known; did you mean 'recall@1'\?"):
        run(Tournament(published="deep_dive", metric="recal@1"))
    with pytest.raises(
        ValueError, match=r"one of recall@1, recall@2, .* got 'recall@3'; choose one of these\. Tables deep"
    ):
        run(Tournament(published="deep_dive", metric="recall@3"))
    with pytest.raises(ValueError, match=r"table must be one of .* in deep_dive, got '5'; choose one of these"):
        run(Tournament(published="deep_dive", tables=(5,)))
    with pytest.raises(
        ValueError, match=r"tables must come with --published, got tables 6 with results 'x'; leave --t"
    ):
        Tournament(results="x", tables=(6,))
    with pytest.raises(ValueError, match=r"protocol must come with the folder of a benchmark, got 'last_epoch' with p"):
        Tournament(published="deep_dive", protocol="last_epoch")
    with pytest.raises(
        ValueError,
        match=r"^metric 'nmi' is not known; choose one of recall@1, .* Tables deep_dive 6, 7, 8 print no other\.",
    ):
        run(Tournament(published="deep_dive", metric="nmi"))
    with pytest.raises(
        ValueError, match=r"tables must share one protocol, got cross_validation and test_feedback in deep_d"
    ):
        run(Tournament(published="deep_dive", tables=(7, 12)))
    results.append(tmp_path / results.FILE, result("margin"))
    with pytest.raises(ValueError, match=r"at least 2 losses with finished runs, got only margin; run nearkin bench"):
        run(Tournament(results=str(tmp_path)))
    results.append(tmp_path / results.FILE, result("triplet"))
    with pytest.raises(ValueError, match=r"svg must lie in a folder that exists, got .* first\."):
        run(Tournament(results=str(tmp_path), svg=str(tmp_path / "none" / "figure.svg")))


def test_quoted_numbers_do_not_take_part() -> None:
    """The tables of the other papers set their own runs beside numbers from elsewhere, under other networks."""
    with pytest.raises(
        ValueError, match=r"measured by the authors themselves and not in an ablation, got none in unified_view 1"
    ):
        printed("unified_view", (1,))
    assert {label for table in printed("nra", (2,)) for label in table.labels} == {"nra"}
    with pytest.raises(ValueError, match=r"at least 2 losses with finished runs, got only nra"):
        judge(printed("nra", (2,)), "recall@1")


def test_without_tables_another_source_takes_all_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    assert [table.name for table in printed("nra")] == [table.name for table in printed("nra", (1, 2))]
    assert [table.name for table in printed()] == [table.name for table in printed("deep_dive", (6, 7, 8))]
    assert main(["tournament", "--published", "nra"]) == 0
    assert "nra" in capsys.readouterr().out


def test_another_paper_with_a_number_it_contradicts_itself_about() -> None:
    verdict = judge(printed("nra", (1,)), "recall@1")
    assert verdict.friedman is not None
    assert (verdict.winner, verdict.friedman.experiments) == ("nra", 5)
    assert verdict.holes[0].startswith("cars196, googlenet, 512 dimensions, test_feedback: nra is left out here. ")
