"""The numbers as files."""

from __future__ import annotations

import csv
import io
import re
import statistics
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from nearkin import results, tournament
from nearkin.report import read, tables, write
from nearkin.tournament.show import shown
from tests.report.made import add, benchmark, result
from tests.tournament.made import asked


def test_csv_holds_every_loss_of_every_experiment(birds: Path) -> None:
    lines = list(csv.DictReader(io.StringIO(tables.results_csv(read(birds)))))
    verdict = tournament.settle(results.read(birds), birds)
    assert [line["loss"] for line in lines] == [entry.label for entry in verdict.standings]
    for line, entry in zip(lines, verdict.standings, strict=True):
        assert line["protocol"] == "fixed_validation" and line["runs"] == "2"
        assert float(line["recall@1"]) == pytest.approx(entry.score, abs=1e-6)
        assert (float(line["low"]), float(line["high"])) == pytest.approx((entry.low, entry.high), abs=1e-6)
        assert line["group"] == entry.letters and line["hole"] == ""


def test_tables_have_the_length_of_vectors_where_they_differ(tmp_path: Path) -> None:
    first, *_ = benchmark(tmp_path, seeds=1)
    assert "length" not in tables.markdown(read(tmp_path)) + tables.latex(read(tmp_path))
    add(tmp_path, replace(first, settings={"levels": "lmh"}))
    bench = read(tmp_path)
    lines = {line["loss"]: line["numbers"] for line in csv.DictReader(io.StringIO(tables.results_csv(bench)))}
    assert {label: float(number) for label, number in lines.items()} == {
        label: 1536 if label == first.label else 512 for label in lines
    }
    for text in (tables.markdown(bench), tables.latex(bench)):
        assert "length" in text and text.count("1,536") == 1 and text.count("512") >= 2


def test_damaged_histograms_are_told_of(tmp_path: Path) -> None:
    first, *_ = benchmark(tmp_path, seeds=1)
    path = tmp_path / first.folder / results.SIMILARITIES
    content = path.read_bytes()
    for damaged in (content[:100], b"[]", content.replace(b'"edges": [', b'"edges": [-2, ')):
        path.write_bytes(damaged)
        with pytest.raises(
            ValueError, match=r"similarities\.json must hold the histograms of pairs .* or remove it to do"
        ):
            read(tmp_path).similarities(first)
    path.unlink()
    assert read(tmp_path).similarities(first) is None


def test_negative_numbers_stay_numbers(tmp_path: Path) -> None:
    benchmark(tmp_path, {"triplet": 0.5, "margin": 0.5}, seeds=1)
    lines = list(csv.DictReader(io.StringIO(tables.results_csv(read(tmp_path)))))
    assert float(lines[1]["behind_low"]) < 0 < float(lines[1]["behind_high"])


def test_csv_of_runs_has_every_run(birds: Path) -> None:
    found = results.read(birds)
    lines = list(csv.DictReader(io.StringIO(tables.runs_csv(read(birds)))))
    assert [line["id"] for line in lines] == [run.id for run in found]
    assert [float(line["recall@1"]) for line in lines] == [run.metrics["recall@1"] for run in found]
    assert [float(line["test_feedback_recall@1"]) for line in lines] == [
        (run.test_feedback or {})["recall@1"] for run in found
    ]
    # Counted from 1, as on the page: the first epoch of a log is 0.
    assert [int(line["chosen_epoch"]) for line in lines] == [(run.validation or {})["epoch"] + 1 for run in found]


def test_csv_of_runs_has_the_epoch_that_the_test_set_chose(tmp_path: Path) -> None:
    made = [
        *benchmark(tmp_path, seeds=1, protocol="test_feedback"),
        *benchmark(tmp_path, {"margin": 0.3}, seeds=1, protocol="last_epoch"),
    ]
    add(tmp_path, *(replace(run, validation=None) for run in made))
    lines = list(csv.DictReader(io.StringIO(tables.runs_csv(read(tmp_path)))))
    assert [(line["protocol"], line["chosen_epoch"]) for line in lines] == [
        *[("test_feedback", "3")] * 3, ("last_epoch", ""),
    ]  # fmt: skip


def test_a_hole_is_empty_and_says_why(tmp_path: Path) -> None:
    benchmark(tmp_path, seeds=1)
    add(tmp_path, result("n_pair", status="failed", metrics={}, error="no memory"))
    bench = read(tmp_path)
    line = list(csv.DictReader(io.StringIO(tables.results_csv(bench))))[-1]
    assert (line["loss"], line["recall@1"], line["hole"]) == ("n_pair", "", "failed: no memory")
    assert line["lacking"] == "1"
    assert "| - | n\\_pair | hole |" in tables.markdown(bench)
    assert r"- & n\_pair & hole &" in tables.latex(bench)
    assert "n\\_pair: seed 0 failed: no memory" in tables.markdown(bench)
    assert r"Holes: n\_pair: seed 0 failed: no memory, so it is left out here." in tables.latex(bench)


def test_one_failed_run_among_others_is_told(tmp_path: Path) -> None:
    benchmark(tmp_path, seeds=2)
    failed = result("triplet", 2, status="failed", metrics={}, error="no memory: 80% & more")
    add(tmp_path, result("ranked_list", 2), failed)
    bench = read(tmp_path)
    lines = list(csv.DictReader(io.StringIO(tables.results_csv(bench))))
    assert {line["loss"]: (line["runs"], line["lacking"], line["hole"]) for line in lines} == {
        "ranked_list": ("2", "0", ""), "triplet": ("2", "1", ""), "margin": ("2", "1", ""),
    }  # fmt: skip
    assert all(line["recall@1"] for line in lines)
    assert (
        "\\end{tabular}\n\\par\\smallskip\\footnotesize Holes: triplet: seed 2 failed: no memory: 80\\% \\& more. "
        "margin: seed 2 is missing. seed 2 left out for every loss, since not all of them have it.\n\\end{table}"
    ) in tables.latex(bench)


def test_without_holes_there_is_no_note(birds: Path) -> None:
    bench = read(birds)
    assert "Holes" not in tables.latex(bench) and "Holes" not in tables.markdown(bench)
    assert {line["lacking"] for line in csv.DictReader(io.StringIO(tables.results_csv(bench)))} == {"0"}


def test_a_table_of_test_feedback_has_the_word_and_no_other_has(tmp_path: Path) -> None:
    benchmark(tmp_path, seeds=1)
    benchmark(tmp_path, seeds=1, protocol="test_feedback")
    bench = read(tmp_path)
    headings = [line for line in tables.markdown(bench).splitlines() if line.startswith("###")]
    captions = [line for line in tables.latex(bench).splitlines() if line.startswith(r"\caption")]
    for found in (headings, captions):
        assert [r"test\_feedback" in line for line in found] == [False, True]
    lines = csv.DictReader(io.StringIO(tables.results_csv(bench)))
    assert [line["protocol"] for line in lines] == ["fixed_validation"] * 3 + ["test_feedback"] * 3


def test_markdown_and_latex_say_the_same(birds: Path) -> None:
    bench = read(birds)
    found = results.read(birds)
    markdown, latex = tables.markdown(bench), tables.latex(bench)
    for label in ("ranked_list", "triplet", "margin"):
        mean = f"{100 * np.mean([run.metrics['recall@1'] for run in found if run.label == label]):.2f}"
        assert mean in markdown and mean in latex
    assert "### cub200, resnet50, 512 dimensions, fixed\\_validation" in markdown
    assert r"\caption{recall@1 in percent on cub200, resnet50, 512 dimensions, fixed\_validation.}" in latex
    assert latex.count(r"\textbf{") == 1
    widths = {line.count("&") for line in latex.splitlines() if line.endswith(r"\\")}
    assert len(widths) == 1
    assert bench.verdict is not None and markdown.replace("\\", "").startswith(bench.verdict.sentence)


def test_the_ranking_over_experiments_is_in_every_file(tmp_path: Path) -> None:
    for dim in (64, 128, 512):
        benchmark(tmp_path / "results", seeds=1, dim=dim)
    bench = read(tmp_path / "results")
    assert bench.verdict is not None
    first = bench.verdict.standings[0]
    lines = list(csv.DictReader(io.StringIO(tables.ranks_csv(bench.verdict))))
    names = [table.name for table in bench.tables]
    for line, standing in zip(lines, bench.verdict.standings, strict=True):
        own = [float(line[name]) for name in names]
        assert (line["loss"], sum(own)) == (standing.label, float(line["total"]))
        assert statistics.mean(own) == pytest.approx(float(line["mean_rank"]), rel=1e-5)
        assert statistics.stdev(own) == pytest.approx(float(line["deviation"]), abs=1e-5)
    text, latex = tables.markdown(bench), tables.latex(bench)
    assert text.index("### Ranks by recall@1 over 3 experiments") < text.index("### cub200")
    assert f"| {first.label.replace('_', chr(92) + '_')} | {first.mean:.2f} | " in text
    assert latex.count("\\begin{tabular}") == 4 and f"\\textbf{{{first.mean:.2f}}} & " in latex
    write(bench, tmp_path / "report", formats=())
    assert (tmp_path / "report" / "ranks.csv").exists()
    benchmark(tmp_path / "one", seeds=1)
    write(read(tmp_path / "one"), tmp_path / "report", formats=())
    assert not (tmp_path / "report" / "ranks.csv").exists()


def test_texts_from_outside_cannot_break_a_table(tmp_path: Path) -> None:
    benchmark(tmp_path, {"=cmd()|{x}%$_&#^~\\": 0.8, "triplet": 0.2}, seeds=1)
    bench = read(tmp_path)
    line = next(csv.DictReader(io.StringIO(tables.results_csv(bench))))
    assert line["loss"].startswith("'=")  # a spreadsheet would take it for a formula
    assert "\\|{x}" in tables.markdown(bench)
    assert r"\{x\}\%\$\_\&\#\textasciicircum{}\textasciitilde{}\textbackslash{}" in tables.latex(bench)


def test_labels_in_the_sentence_are_no_markup(tmp_path: Path) -> None:
    label = "<img src=x onerror=alert(1)> [here](http://x)"
    benchmark(tmp_path, {label: 0.8, "triplet": 0.2}, seeds=1)
    assert not re.search(r"(?<!\\)[<\[]", tables.markdown(read(tmp_path)).split("\n\n", 1)[0])
    benchmark(tmp_path / "alone", {label: 0.8}, seeds=1)
    assert tables.markdown(read(tmp_path / "alone")).startswith("Only \\<img src=x onerror=alert(1)> \\[here]")


def test_what_was_not_run_yet_is_a_hole_in_every_file(tmp_path: Path) -> None:
    asked(tmp_path, *benchmark(tmp_path, seeds=2), result("n_pair"), result("n_pair", 1), result("margin", 2))
    bench = read(tmp_path)
    lines = {line["loss"]: line for line in csv.DictReader(io.StringIO(tables.results_csv(bench)))}
    assert (lines["n_pair"]["hole"], lines["n_pair"]["lacking"]) == ("not run yet", "3")
    assert (lines["margin"]["hole"], lines["margin"]["lacking"]) == ("", "1")
    runs = list(csv.DictReader(io.StringIO(tables.runs_csv(bench))))
    assert [(run["label"], run["seed"]) for run in runs if run["status"] == "missing"] == [
        ("n_pair", "0"), ("n_pair", "1"), ("margin", "2"),
    ]  # fmt: skip
    text = tables.markdown(bench)
    assert "This is not final: 3 of 9 runs of the grid are missing, among them all of n\\_pair.\n" in text
    assert "n\\_pair: seed 0 not run yet; seed 1 not run yet" in text and "| - | n\\_pair | hole |" in text
    assert r"margin: seed 2 not run yet." in tables.latex(bench)


def test_some_runs_that_are_missing_are_told_from_all(tmp_path: Path) -> None:
    asked(tmp_path, *benchmark(tmp_path, seeds=3), *(result("n_pair", seed) for seed in range(3)))
    add(tmp_path, result("n_pair", metrics={"recall@1": 0.5}))
    line = list(csv.DictReader(io.StringIO(tables.results_csv(read(tmp_path)))))[-1]
    assert (line["loss"], line["hole"], line["lacking"]) == ("n_pair", "2 of 3 runs not run yet", "2")


def test_decimals_of_ranks_stand_below_each_other(tmp_path: Path) -> None:
    """Of 43 and 44.50 in one column nobody sees at once which is the larger."""
    for dim, values in ((64, (0.6, 0.5, 0.5, 0.4)), (512, (0.6, 0.5, 0.4, 0.3))):
        made = zip(("a", "b", "c", "d"), values, strict=True)
        add(tmp_path, *(result(label, dim=dim, metrics={"recall@1": value}) for label, value in made))
    bench = read(tmp_path)
    assert bench.verdict is not None
    text = tables.markdown(bench)
    ranked, shared, plain = (re.findall(r"^\| (?!loss|rank|---)(.*) \|$", part, re.M) for part in text.split("###")[1:])
    assert [line.split(" | ")[3] for line in ranked] == ["2.00", "4.50", "5.50", "8.00"]
    assert [line.split(" | ")[0] for line in shared] == ["1.00", "2.50", "2.50", "4.00"]
    assert [line.split(" | ")[0] for line in plain] == ["1", "2", "3", "4"]
    told = shown(bench.verdict, each=True)
    assert re.findall(r"^ *([\d.]+)  ([abcd])  ", told, re.M)[:4] == [
        ("1.00", "a"), ("2.50", "b"), ("2.50", "c"), ("4.00", "d"),
    ]  # fmt: skip
    assert re.findall(r"^([abcd]) +([\d.]+) +([\d.]+)$", told, re.M) == [
        ("a", "1.00", "1"), ("b", "2.50", "2"), ("c", "2.50", "3"), ("d", "4.00", "4"),
    ]  # fmt: skip
    assert re.findall(r"^[abcd] +(2\.00|4\.50|5\.50|8\.00)  ", told, re.M) == ["2.00", "4.50", "5.50", "8.00"]
    write(bench, tmp_path / "report", formats=())
    page = (tmp_path / "report" / "index.html").read_text()
    ranks = page.split('id="ranks"')[1].split("</section>")[0]
    assert all(f">{said}</td>" in ranks for said in ("2.00", "4.50", "5.50", "8.00"))
    first = page.split('id="table"')[1].split("</table>")[0]
    assert re.findall(r'data-sort="[\d.]+">([\d.]+)</td><td class="number" data-sort="[\d.]+"><b>', first)[:4] == [
        "1.00", "2.50", "2.50", "4.00",
    ]  # fmt: skip
