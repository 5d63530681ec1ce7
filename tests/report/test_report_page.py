"""The page: whole, alone, true to the results, honest about holes and protocols."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load, save

from nearkin import results, tournament
from nearkin.report import Bench, published, read, summary, write
from nearkin.report.command import Report
from nearkin.report.command import run as report
from nearkin.report.figures.bars import Bar
from nearkin.report.palette import style
from nearkin.report.sections import confused, scores, similarities, strips
from nearkin.report.subject import about_pictures, subjects
from nearkin.tournament.permutation import least_classes
from nearkin.tournament.words import between, percent
from tests.report.made import CLASSES, EACH, Page, add, benchmark, result
from tests.tournament.made import asked

HOSTILE = "</section><script>alert(1)</script><img src=x onerror=alert(2)> & \"q\" 'p'"


def written(folder: Path, out: Path, **wishes: object) -> tuple[Bench, Page, str]:
    bench = read(folder, **wishes)  # type: ignore[arg-type]
    write(bench, out, formats=())
    text = (out / "index.html").read_text()
    return bench, Page(text), text


def test_every_section_is_there(birds_page: Page) -> None:
    expected = [
        "verdict", "bars", "table", "published", "curves", "feedback", "ranks", "similarities", "classes", "confused",
        "weights", "runs", "made",
    ]  # fmt: skip
    assert list(birds_page.sections) == expected
    assert birds_page.links[: len(expected)] == [f"#{name}" for name in expected]
    assert len(birds_page.ids) == len(set(birds_page.ids))
    assert all(text.strip() for text in birds_page.sections.values())


def test_overlap_is_that_of_each_run_on_the_mean(tmp_path: Path) -> None:
    """Each run has its own threshold: pairs of two runs, each apart without any overlap, may lie on one another."""
    edges = np.linspace(-1, 1, 101).round(4).tolist()
    benchmark(tmp_path, seeds=2)
    for run in read(tmp_path).results:
        positive, negative = np.zeros(100), np.zeros(100)
        positive[40 + 20 * run.seed :][:20] = 3
        negative[20 + 20 * run.seed :][:20] = 3
        if run.label == "triplet" and run.seed == 1:
            negative[60:65] = 3  # 5 of 25 steps
        kept = {"edges": edges, "positive": positive.tolist(), "negative": negative.tolist(), "more": []}
        (tmp_path / run.folder / results.SIMILARITIES).write_text(json.dumps(kept))
    found = similarities.section(read(tmp_path))
    assert found is not None
    said = re.findall(r">overlap ([^<]*)</text>", found.body)
    assert said == ["0.0 % (0.0 to 0.0)", "0.0 % (0.0 to 0.0)", "10.0 % (0.0 to 20.0)"]


def test_sizes_networks_costs_and_ranks_of_several_experiments(tmp_path: Path) -> None:
    for dim, network in ((64, "resnet50"), (512, "resnet50"), (512, "googlenet")):
        benchmark(tmp_path, seeds=1, dim=dim, network=network)
    bench, page, _ = written(tmp_path, tmp_path / "report")
    assert {"sizes", "networks", "cost", "published"} <= page.sections.keys()
    assert bench.verdict is not None and bench.verdict.friedman is not None
    assert "critical difference" in page.sections["ranks"]
    assert page.sections["sizes"].count("cub200, resnet50") >= 1
    assert all(name in page.sections["networks"] for name in ("resnet50", "googlenet", "512 dimensions"))


def test_the_page_needs_nothing_else(birds_page: Page, characters_out: Path) -> None:
    for page, text in (
        (birds_page, ""),
        (Page((characters_out / "index.html").read_text()), (characters_out / "index.html").read_text()),
    ):
        allowed = {"results.csv", "runs.csv", "results.md", "results.tex"}
        outside = [link for link in page.links if not link.startswith("#")]
        assert set(outside) == allowed
        assert all(source.startswith("data:image/") for source in page.sources)
        assert {link[1:] for link in page.links if link.startswith("#")} <= set(page.ids)
        assert not [tag for tag, _ in page.elements if tag in ("link", "iframe", "object", "embed")]
        assert not re.search(r"https?://|@import|url\(", text)
    assert len((characters_out / "index.html").read_bytes()) < 2_000_000


def test_numbers_are_those_of_the_results(birds: Path, birds_page: Page) -> None:
    found = results.read(birds)
    verdict = tournament.settle(found, birds)
    assert verdict.sentence in birds_page.sections["verdict"]
    for entry in verdict.standings:
        own = [run.metrics["recall@1"] for run in found if run.label == entry.label]
        shown = f"{100 * np.mean(own):.2f}"
        assert shown in birds_page.sections["table"] and shown in birds_page.sections["bars"]
        assert between(entry.low, entry.high) in birds_page.sections["table"]
        for value in own:
            assert f"{100 * value:.2f}" in birds_page.sections["runs"]
    assert (
        f"{100 * (verdict.standings[0].score - verdict.standings[1].score):+.2f} points"
        in birds_page.sections["verdict"]
    )


def test_cost_is_told_first(birds_page: Page) -> None:
    assert "14.0 s" in birds_page.sections["verdict"]  # ranked_list: 10 + 5 x 0.8
    assert "to train once" in birds_page.sections["verdict"]
    assert "The quickest, margin, takes 11.5 s." in birds_page.sections["verdict"]


def test_seconds_of_a_shared_device_are_called_so(tmp_path: Path) -> None:
    made = benchmark(tmp_path, seeds=2)
    _, page, _ = written(tmp_path, tmp_path / "unknown")  # results of earlier versions do not say it
    assert all(
        "hether other runs shared the device was not recorded" in page.sections[name] for name in ("verdict", "bars")
    )
    add(tmp_path, *(replace(run, where=run.where | {results.SHARED: 3}) for run in made))
    _, page, _ = written(tmp_path, tmp_path / "shared")
    assert "to train once, while 3 runs shared the device." in page.sections["verdict"]
    assert "3 runs shared the device at a time" in page.sections["bars"]
    assert "3 runs on the device at a time (6 runs)" in page.sections["made"]
    add(tmp_path, replace(made[0], where=made[0].where | {results.SHARED: 1}))
    _, page, _ = written(tmp_path, tmp_path / "some")
    assert "while 1 to 3 runs shared the device" in page.sections["verdict"]
    add(tmp_path, *(replace(run, where=run.where | {results.SHARED: 1}) for run in made))
    _, page, _ = written(tmp_path, tmp_path / "alone")
    assert not any("the device" in page.sections[name] for name in ("verdict", "bars", "made"))


def test_an_equal_that_is_quicker_is_named(tmp_path: Path) -> None:
    made = benchmark(tmp_path, {"ranked_list": 0.7, "triplet": 0.7}, seeds=1)
    best = max(made, key=lambda run: run.metrics["recall@1"])
    for run in made:
        add(tmp_path, replace(run, cost={"seconds": 20.0 if run is best else 5.0, "peak_bytes": 2e9}))
    _, page, _ = written(tmp_path, tmp_path / "report")
    other = next(run.label for run in made if run is not best)
    assert "not sure" in page.sections["verdict"]
    assert f"{other} may be as good, in 5.0 s." in page.sections["verdict"]
    assert "quickest" not in page.sections["verdict"]  # that would say the same again
    assert "2.0 GB of device memory." in page.sections["verdict"]


def test_longer_vectors_are_a_cost(tmp_path: Path) -> None:
    made = benchmark(tmp_path, seeds=1)
    _, page, _ = written(tmp_path, tmp_path / "alike")
    assert "as long as the shortest" not in page.sections["verdict"] and "numbers" not in page.sections["table"]
    first, *others = sorted(made, key=lambda run: -run.metrics["recall@1"])
    add(tmp_path, replace(first, settings={"levels": "lmh"}))
    _, page, _ = written(tmp_path, tmp_path / "longer")
    assert "Vectors 3 times as long as the shortest." in page.sections["verdict"]
    assert f"{first.label} makes vectors of 1,536 numbers, 512 is the least." in page.sections["table"]
    assert f"Vectors differ in length ({first.label} 3 times" in page.sections["made"]
    add(tmp_path, replace(first, settings={}), replace(others[0], settings={"levels": "lmh"}))
    _, page, _ = written(tmp_path, tmp_path / "another")  # of one that does not lead the table says enough
    assert "as long as" not in page.sections["verdict"] and "1,536" in page.sections["table"]


def test_curves_say_what_chose_the_epoch(tmp_path: Path, birds_page: Page) -> None:
    made = benchmark(tmp_path, seeds=1, protocol="last_epoch")
    for run in made:
        log = tmp_path / run.folder / "log.jsonl"
        log.write_text(log.read_text().replace('"validate"', '"evaluate"'))
    _, page, _ = written(tmp_path, tmp_path / "report")
    assert "last_epoch: nothing is chosen" in page.sections["curves"]
    assert "fixed_validation: these choose the epoch" in birds_page.sections["curves"]


def test_the_measure_of_the_last_epoch_ends_its_curve(tmp_path: Path) -> None:
    run = benchmark(tmp_path, seeds=1, protocol="last_epoch")[0]
    log = tmp_path / run.folder / "log.jsonl"
    log.write_text(
        log.read_text().replace('"validate"', '"evaluate"') + '{"kind": "test", "epoch": 5, "recall@1": 0.5}\n'
    )
    assert [record["epoch"] for record in read(tmp_path).log(run, "evaluate")] == [0, 1, 2, 3, 5]


def test_the_epoch_on_the_test_set_is_called_so(birds_page: Page) -> None:
    assert "test_feedback" in birds_page.sections["feedback"]
    assert "fixed_validation" in birds_page.sections["feedback"]


def test_test_feedback_is_named_wherever_its_numbers_are(tmp_path: Path) -> None:
    benchmark(tmp_path, seeds=1, protocol="test_feedback")
    bench = read(tmp_path)
    write(bench, tmp_path / "report", formats=("svg",))
    page = Page((tmp_path / "report" / "index.html").read_text())
    for anchor in ("verdict", "bars", "table", "curves", "ranks", "similarities", "classes", "confused", "runs"):
        assert "test_feedback" in page.sections[anchor], anchor
    assert "too good" in page.sections["verdict"] and "feedback" not in page.sections
    for name in ("results.csv", "runs.csv", "results.md", "results.tex"):
        assert "test_feedback" in (tmp_path / "report" / name).read_text().replace("\\_", "_"), name
    scored = [path for path in (tmp_path / "report" / "figures").iterdir() if path.stem != "weights"]
    assert len(scored) >= 6
    for path in scored:
        assert "test_feedback" in path.read_text(), path.name


def test_protocols_are_shown_apart(tmp_path: Path) -> None:
    benchmark(tmp_path, seeds=1)
    benchmark(tmp_path, seeds=1, protocol="test_feedback")
    bench, page, _ = written(tmp_path, tmp_path / "report")
    assert [table.protocol for table in bench.tables] == ["fixed_validation", "test_feedback"]
    assert bench.verdict is not None and bench.verdict.protocol == "fixed_validation"
    assert page.sections["bars"].count("test_feedback") >= 1
    assert {table.protocol for table in bench.shown()} == {"fixed_validation"}
    assert "the epoch that validation or, under test_feedback, the test set chose" in page.sections["runs"]
    asked = tmp_path / "asked"
    report(Report(str(tmp_path), protocol="test_feedback", out=str(asked), figures=""))
    assert "epoch was chosen on the test set, so every number here is too good" in (asked / "index.html").read_text()
    again = read(tmp_path, protocol="test_feedback")
    assert again.verdict is not None and again.verdict.protocol == "test_feedback"
    assert {table.protocol for table in again.shown()} == {"test_feedback"}


def head(text: str) -> str:
    """The largest words of a page."""
    return re.sub(r"<[^>]+>", "", re.findall(r"<h2>(.*?)</h2>", text)[0]).strip()


def test_where_nothing_can_be_told_apart_nobody_is_called_the_winner(tmp_path: Path) -> None:
    """A lead of a hundredth of a point stood in the largest letters of the page."""
    benchmark(tmp_path, {f"loss {number}": 0.5 for number in range(6)}, seeds=3)
    bench, page, text = written(tmp_path, tmp_path / "report")
    assert bench.verdict is not None
    [first, second, third, *others] = [entry.label for entry in bench.verdict.standings]
    said = f"{first} cannot be told apart from {second}, {third} and {len(others)} others"
    assert head(text) == f"No clear winner: {said} fixed_validation"
    assert f'content="No clear winner: {said}"' in text
    told = page.sections["verdict"]
    assert f"Highest recall@1{percent(bench.verdict.standings[0].score)} %{first}" in told
    assert f"cannot be told apart from 5 others (p = 1 for {second})" in told
    assert (
        f"{CLASSES} test classes, {CLASSES * EACH} queries, 3 runs each; more seeds or test classes may tell." in told
    )


def test_what_the_network_had_before_training_stands_beside_the_best(tmp_path: Path) -> None:
    made = benchmark(tmp_path / "known", untrained={"recall@1": 0.25})
    assert made[0].untrained == {"recall@1": 0.25}
    assert "The network as it came has 25.00 %" in written(tmp_path / "known", tmp_path / "one")[1].sections["verdict"]
    benchmark(tmp_path / "older")
    assert "as it came" not in written(tmp_path / "older", tmp_path / "two")[1].sections["verdict"]


def test_what_the_network_had_before_is_that_of_the_runs_that_count(tmp_path: Path) -> None:
    """As the note of the verdict has it: a seed that one loss lacks is left out of both."""
    made = benchmark(tmp_path, {"margin": 0.5, "triplet": 0.5}, seeds=2, untrained={"recall@1": 0.25})
    more = replace(result("margin", 2), untrained={"recall@1": 0.75})
    shutil.copytree(tmp_path / made[0].folder, tmp_path / more.folder)
    add(tmp_path, replace(made[0], id=more.id, folder=more.folder, seed=2, untrained=more.untrained))
    assert "The network as it came has 25.00 %" in written(tmp_path, tmp_path / "report")[1].sections["verdict"]


def test_where_seeds_cannot_help_more_test_classes_are_asked_for(tmp_path: Path) -> None:
    benchmark(tmp_path, {f"loss {number}": 0.5 for number in range(CLASSES)}, seeds=3)
    told = written(tmp_path, tmp_path / "report")[1].sections["verdict"]
    least = least_classes(CLASSES)
    assert ("; more test classes may tell." in told) == (least > CLASSES)
    assert ("more seeds or test classes" in told) == (least <= CLASSES)


def test_of_two_equal_losses_the_other_is_named_once(tmp_path: Path) -> None:
    benchmark(tmp_path, {"margin": 0.5, "triplet": 0.5}, seeds=2)
    bench, page, text = written(tmp_path, tmp_path / "report")
    assert bench.verdict is not None
    first, second = (entry.label for entry in bench.verdict.standings)
    assert head(text).startswith(f"No clear winner: {first} cannot be told apart from {second}")
    assert re.search(
        rf"Certainty~ not surecannot be told apart from {second} \(p = [\d.]+\)\. ", page.sections["verdict"]
    )


def test_experiments_that_tell_nothing_apart_have_no_winner_either(tmp_path: Path) -> None:
    for dim in (64, 512):
        benchmark(tmp_path, seeds=1, dim=dim)
    bench, page, text = written(tmp_path, tmp_path / "report")
    assert bench.verdict is not None and bench.verdict.friedman is not None
    first, *others = (entry.label for entry in bench.verdict.standings)
    assert head(text).startswith(f"No clear winner: {first} cannot be told apart from {' and '.join(others)}")
    assert "Best mean rank by recall@1" in page.sections["verdict"]
    assert "2 experiments on 1 data set; more data sets may tell." in page.sections["verdict"]


def test_a_verdict_that_rests_on_ranks_is_followed_by_them(tmp_path: Path, birds_page: Page) -> None:
    for data in ("cub200", "cars196"):
        for dim in (64, 128, 256, 512):
            benchmark(tmp_path, seeds=1, data=data, dim=dim)
    _, page, text = written(tmp_path, tmp_path / "report")
    assert list(page.sections)[:3] == ["verdict", "ranks", "bars"]
    assert list(birds_page.sections)[:3] == ["verdict", "bars", "table"]
    bars = text.split('id="bars"')[1].split("</section>")[0]
    assert bars.count("<details open>") == bars.count("<details") == 2  # neither data set is folded away


def test_a_sure_verdict_names_its_base(birds_page: Page) -> None:
    assert "✓ sure" in birds_page.sections["verdict"] and "leads" not in birds_page.sections["verdict"]
    assert f"{CLASSES} test classes, {CLASSES * EACH} queries, 2 runs each." in birds_page.sections["verdict"]
    assert "may tell" not in birds_page.sections["verdict"]


def test_losses_are_looked_at_in_the_order_of_their_ranks(tmp_path: Path) -> None:
    benchmark(tmp_path, {"margin": 0.2, "triplet": 0.5, "ranked_list": 0.9})
    bench, _, text = written(tmp_path, tmp_path / "report")
    assert bench.verdict is not None
    shown = re.findall(r'class="panel">.*?font-weight="600">([^<]+)<', text.split('id="weights"')[1])
    assert shown[:3] == [entry.label for entry in bench.verdict.standings] == ["ranked_list", "triplet", "margin"]


def test_small_distances_are_not_drawn_large(birds: Path, birds_page: Page, tmp_path: Path) -> None:
    """The interval of the best score is marked, and the axis holds all of it."""
    assert "The band is the 95 % interval of the best score." in birds_page.sections["bars"]
    assert "The band is the 95 % interval of the best score." in birds_page.sections["feedback"]
    _, _, text = written(birds, tmp_path / "report")
    for name in ("bars", "feedback"):
        assert 'class="band"' in text.split(f'id="{name}"')[1].split("</section>")[0], name
    made = [result(label, seed) for label in ("margin", "triplet") for seed in (0, 1)]
    (tmp_path / "bare").mkdir()
    add(tmp_path / "bare", *(replace(run, cost={"seconds": 1.0 + run.seed}) for run in made))
    _, page, text = written(tmp_path / "bare", tmp_path / "bare report")
    assert 'class="band"' not in text and "The band" not in page.sections["bars"]


def test_a_long_name_does_not_make_the_head_of_a_table_tall(tmp_path: Path) -> None:
    long = "a very long label of a loss that somebody wrote"
    benchmark(tmp_path, {long: 0.9} | {f"loss {number}": 0.5 for number in range(9)}, seeds=1)
    _, page, text = written(tmp_path, tmp_path / "report")
    assert f'<abbr title="{long}">a very long label of a lo…</abbr>' in text.split('id="classes"')[1]
    assert "loss 1" in page.sections["classes"]


def test_one_run_of_each_is_not_called_sure(tmp_path: Path) -> None:
    benchmark(tmp_path, {"ranked_list": 0.9, "triplet": 0.5, "margin": 0.4}, seeds=1)
    _, page, _ = written(tmp_path, tmp_path / "report")
    told = page.sections["verdict"]
    assert "ranked_list leads, with one run of each" in told and "~ one run" in told and "luck in training" in told
    assert "✓ sure" not in told and "wins" not in told
    assert "intervals over test classes, not over runs" in page.sections["bars"]
    assert "for the best 5 losses and the last" not in page.sections["classes"]


def test_folds_of_one_seed_are_not_called_sure(tmp_path: Path) -> None:
    for fold in range(5):
        skills = {"ranked_list": 0.95, "triplet": 0.2}
        benchmark(tmp_path, skills, seeds=1, protocol="cross_validation", fold=fold)
    _, page, _ = written(tmp_path, tmp_path / "report")
    told = page.sections["verdict"]
    assert "ranked_list leads, with one seed of each" in told and "~ one seed" in told and "luck in training" in told
    assert "✓ sure" not in told and "wins" not in told


def test_one_network_under_several_seeds_is_not_called_sure(tmp_path: Path) -> None:
    made = benchmark(tmp_path, {"ranked_list": 0.95, "triplet": 0.2}, seeds=3)
    firsts = {run.label: run for run in made[:2]}
    for run in made[2:]:
        shutil.copytree(tmp_path / firsts[run.label].folder, tmp_path / run.folder, dirs_exist_ok=True)
        add(tmp_path, replace(run, metrics=firsts[run.label].metrics))
    _, page, _ = written(tmp_path, tmp_path / "report")
    told = page.sections["verdict"]
    assert "ranked_list leads, with one run of each" in told and "~ one run" in told
    assert "but all runs of each loss gave the same answers" in told
    assert "queries, 1 run each; more seeds may tell." in told
    assert "✓ sure" not in told and "wins" not in told


def test_experiments_that_share_images_are_not_called_sure(tmp_path: Path) -> None:
    for dim in range(6):
        benchmark(tmp_path, {"ranked_list": 0.9, "triplet": 0.2}, seeds=1, dim=64 + dim)
    _, page, _ = written(tmp_path, tmp_path / "report")
    told = page.sections["verdict"]
    assert "ranked_list leads, but experiments share their test images" in told and "~ shared images" in told
    assert "told apart by ranks from every other loss (p = 0.031), but experiments share their test images" in told
    assert "6 experiments on 1 data set; more data sets may tell." in told
    assert "✓ sure" not in told and "wins" not in told


def test_losses_without_a_common_seed_have_no_verdict_and_a_page(tmp_path: Path) -> None:
    made = benchmark(tmp_path, {"ranked_list": 0.9, "triplet": 0.2}, seeds=4)
    add(
        tmp_path,
        *(replace(run, status="failed", metrics={}) for run in made if (run.seed < 2) == (run.label == "triplet")),
    )
    bench, page, _ = written(tmp_path, tmp_path / "report")
    assert bench.verdict is None and "No verdict" in page.sections["verdict"]
    assert "got none in common for ranked_list and triplet" in page.sections["verdict"]


def test_results_that_are_wrong_have_no_page(tmp_path: Path) -> None:
    """Only too few losses are a reason to show the rest."""
    made = benchmark(tmp_path, {"ranked_list": 0.9, "triplet": 0.2}, seeds=1)
    add(tmp_path, replace(made[0], metrics={"recall@1": 0.001}))
    with pytest.raises(ValueError, match="the file belongs to another epoch"):
        read(tmp_path)


def test_holes_are_shown_and_not_averaged_over(tmp_path: Path) -> None:
    made = benchmark(tmp_path, {"ranked_list": 0.8, "triplet": 0.6, "margin": 0.3}, seeds=3)
    broken = replace(made[4], status="failed", metrics={}, error="the loss became infinite in step 7\nmore")
    gone = result("n_pair", 0, status="failed", metrics={}, error="out of memory")
    add(tmp_path, broken, gone)
    bench, page, _ = written(tmp_path, tmp_path / "report")
    [table] = bench.tables
    assert table.parts == ((0, 0), (0, 2))  # seed 1 of triplet failed
    kept = [made[at].metrics["recall@1"] for at in (0, 6)]
    assert f"{100 * np.mean(kept):.2f}" in page.sections["table"]
    assert (
        "hole: failed: out of memory" in page.sections["table"]
        and "hole: failed: out of memory" in page.sections["bars"]
    )
    # The lead explains both signs once.
    assert page.sections["runs"].count("✗ failed") == 1 + 2
    assert page.sections["runs"].count("○ missing") == 1 + 2  # n_pair has one seed only
    assert f"({percent(made[3].metrics['recall@1'])})" in page.sections["runs"]
    assert "The small number is the epoch that validation chose." in page.sections["runs"]
    assert made[0].validation is not None
    first = f"{percent(made[0].metrics['recall@1'])} {made[0].validation['epoch'] + 1}"
    assert first in page.sections["runs"]
    assert "the loss became infinite in step 7" in page.sections["runs"]


def test_a_grid_that_is_not_finished_says_so_first(tmp_path: Path) -> None:
    made = benchmark(tmp_path, {"ranked_list": 0.95, "triplet": 0.6, "margin": 0.3}, seeds=3)
    _, whole, text = written(tmp_path, tmp_path / "whole")
    asked(tmp_path, *made, *(result("n_pair", seed) for seed in range(3)), result("margin", 3))
    bench, page, unfinished = written(tmp_path, tmp_path / "report")
    assert bench.verdict is not None and bench.verdict.certain
    said = "4 of 13 runs of the grid are missing, among them all of n_pair"
    assert "✓ sure" in whole.sections["verdict"] and "not finished" not in text
    assert "ranked_list wins so far: the grid is not finished" in page.sections["verdict"]
    assert "✓ sure" not in page.sections["verdict"]
    assert f"; {said}" in page.sections["verdict"] and f"This is not final: {said}." in page.sections["verdict"]
    assert "told apart at 95 % from every other loss that was compared" in page.sections["verdict"]
    assert 'content="ranked_list wins so far: the grid is not finished"' in unfinished
    assert "13 runs, 4 missing" in unfinished
    assert "hole: not run yet" in page.sections["table"] and "hole: not run yet" in page.sections["bars"]
    # The list of holes has a sentence for n_pair and one for margin, with a part for each seed.
    assert page.sections["runs"].count("○ not run yet") == 4 and page.sections["runs"].count("not run yet") == 4 + 4
    # What is not known yet is no difference between settings, and no place.
    assert page.sections["made"].count("not set") == 0
    assert page.sections["made"].split("Where")[1] == whole.sections["made"].split("Where")[1]


def test_no_verdict_on_a_grid_that_is_not_finished_says_so_too(tmp_path: Path) -> None:
    asked(tmp_path, *benchmark(tmp_path, {"triplet": 0.6}, seeds=1), result("margin"))
    bench, page, _ = written(tmp_path, tmp_path / "report")
    assert bench.why == (
        "Only triplet has finished runs, so there is nothing to compare it with. This is not final: 1 of 2 runs of the grid "
        "is missing, among them all of margin."
    )
    assert bench.why in page.sections["verdict"]


def test_a_star_behind_a_commit_is_explained(tmp_path: Path) -> None:
    made = benchmark(tmp_path, {"ranked_list": 0.8, "triplet": 0.6}, seeds=1)
    words = "* behind a commit: the working tree had changes that were not committed"
    _, page, _ = written(tmp_path, tmp_path / "clean")
    assert words not in page.sections["made"]
    add(tmp_path, replace(made[0], where=made[0].where | {"commit": "0123456*"}))
    _, page, _ = written(tmp_path, tmp_path / "changed")
    assert words in page.sections["made"]


def test_hostile_names_do_no_harm(tmp_path: Path) -> None:
    names = [HOSTILE] * CLASSES
    benchmark(tmp_path, {HOSTILE: 0.9, "triplet": 0.3}, seeds=1, names=names, data=HOSTILE, network=HOSTILE)
    add(tmp_path, result("margin", status="failed", metrics={}, error=HOSTILE, data=HOSTILE, network=HOSTILE))
    bench = read(tmp_path)
    write(bench, tmp_path / "report", title=HOSTILE, formats=("svg",))
    text = (tmp_path / "report" / "index.html").read_text()
    page = Page(text)
    assert [tag for tag, _ in page.elements].count("script") == 1
    assert not [found for tag, found in page.elements if "onerror" in found]
    assert HOSTILE in page.sections["classes"] and HOSTILE in page.sections["confused"]
    assert "alert" not in "".join(re.findall(r"<script>(.*?)</script>", text, re.S))


def test_one_loss_makes_a_page_without_verdict(tmp_path: Path) -> None:
    benchmark(tmp_path, {"triplet": 0.6}, seeds=1)
    _, page, _ = written(tmp_path, tmp_path / "report")
    assert "Only triplet has finished runs" in page.sections["verdict"]
    assert "ranks" not in page.sections and "table" in page.sections


def test_nothing_finished_makes_a_page_of_holes(tmp_path: Path) -> None:
    add(tmp_path, *(result(label, status="failed", metrics={}, error="no memory") for label in ("triplet", "margin")))
    _, page, _ = written(tmp_path, tmp_path / "report")
    assert "None of 2 runs has finished" in page.sections["verdict"]
    assert page.sections["runs"].count("✗ failed") == 1 + 2
    assert page.sections["bars"].count("hole: failed: no memory") == 2


def test_results_alone_make_a_page(tmp_path: Path) -> None:
    add(tmp_path, *(result(label, seed) for label in ("triplet", "margin") for seed in (0, 1)))
    _, page, _ = written(tmp_path, tmp_path / "report")
    assert set(page.sections) == {"verdict", "bars", "table", "published", "weights", "runs", "made"}
    assert "? unknown" in page.sections["verdict"]
    higher = {"recall@1": 0.6, "recall@2": 0.7}
    add(tmp_path, *(result("margin", seed, metrics=higher) for seed in (0, 1)))
    _, page, text = written(tmp_path, tmp_path / "again")
    assert head(text).startswith("margin has the highest mean: whether by more than chance is not known")


def test_published_numbers_stand_beside_ours_with_source_and_protocol(birds_page: Page, tmp_path: Path) -> None:
    assert "published" not in birds_page.sections or "Deep Dive" in birds_page.sections["published"]
    benchmark(tmp_path, {"triplet": 0.6, "margin": 0.5}, seeds=1, network="bn_inception", dim=512)
    _, page, _ = written(tmp_path, tmp_path / "report")
    text = page.sections["published"]
    assert "63.48" in text and "A Deep Dive" in text and "Table" in text and "test_feedback" in text


def test_published_numbers_of_other_settings_are_told_apart_and_not_drawn(tmp_path: Path) -> None:
    """The thesis has this loss with four shares of validation classes, the unified view with four miners."""
    runs = [result("multi_similarity", network="bn_inception", settings={"ratio": 0.9, "gamma": 0.8})]
    runs.append(result("mined", loss="raw", network="bn_inception", settings={"loss_settings": {"miner": "semihard"}}))
    runs.append(result("ranked_list", network="bn_inception", settings={"batch": 165, "images": 3}))
    add(tmp_path, *runs)
    bench, page, _ = written(tmp_path, tmp_path / "report")
    text = page.sections["published"]
    for share in ("70/30", "80/20", "90/10", "95/5"):
        assert text.count(f"{share} of the classes train / choose the epoch") >= 2
    [table] = bench.tables

    def alike(label: str) -> set[tuple[str, int, float]]:
        return {(fact.source, fact.table, fact.value) for fact in published.beside(bench, table, label, alike=True)}

    assert ("deep_dive", 14, 64.38) in alike("multi_similarity") and ("deep_dive", 14, 61.28) not in alike("mined")
    assert ("unified_view", 1, 66.85) in alike("multi_similarity")
    assert ("unified_view", 1, 64.97) in alike("mined") and ("unified_view", 1, 66.85) not in alike("mined")
    assert {value for _, table, value in alike("multi_similarity") if table == 16} == set()  # searched settings
    assert {(source, table) for source, table, _ in alike("ranked_list")} == {("ranked_list", 1)}  # level H
    assert page.sections["bars"].count("published: ") == 3
    assert len(alike("multi_similarity")) < len(published.beside(bench, table, "multi_similarity"))


def test_most_confused_classes_are_counted(birds: Path) -> None:
    [subject] = subjects(read(birds, pictures=False))
    answers = subject.answers
    counts: dict[tuple[int, int], int] = {}
    for label, near in zip(answers["labels"].tolist(), answers["nearest"][:, 0].tolist(), strict=True):
        if near // EACH != label:
            low, high = sorted((label, near // EACH))
            counts[low, high] = counts.get((low, high), 0) + 1
    found = confused.confusions(subject, 99)
    assert {(entry.one, entry.other): entry.mistakes for entry in found} == counts
    assert [entry.mistakes for entry in found] == sorted(counts.values(), reverse=True)
    assert all(entry.queries == 2 * EACH for entry in found)


def test_queries_are_not_chosen_for_what_they_found(birds: Path) -> None:
    [subject] = subjects(read(birds, pictures=False))
    assert strips.evenly(subject, 4) == [7, 22, 37, 52]
    wrong = strips.surest_mistakes(subject, 3)
    alike = subject.answers["similarity"][wrong, 0].tolist()
    assert alike == sorted(alike, reverse=True)
    assert all(subject.answers["recall@1"][place] == 0 for place in wrong)
    assert len({int(subject.answers["labels"][place]) for place in wrong}) == len(wrong)


def test_pictures_strips_and_map_of_a_trained_run(characters_out: Path) -> None:
    page = Page((characters_out / "index.html").read_text())
    assert {"strips", "confused", "map"} <= page.sections.keys()
    kinds = [found.get("class") for tag, found in page.elements if tag == "figure"]
    assert kinds.count("query") >= 3 and kinds.count("hit") + kinds.count("miss") >= 3 * 8
    assert page.sections["strips"].count("✓") - 1 == kinds.count("hit")  # the lead explains the sign once
    assert page.sections["strips"].count("✗") - 1 == kinds.count("miss")
    text = (characters_out / "index.html").read_text()
    wrong = re.findall(r'<figure class="miss" title="([^"]+)">.*?<span>([^<]+)</span></figcaption>', text)
    assert len(wrong) == kinds.count("miss") and all(title == seen for title, seen in wrong)
    assert "The pictures of glyphs are drawn by nearkin and may be passed on." in page.sections["made"]
    assert (characters_out / "figures" / "map-1.svg").exists()


def test_the_last_loss_may_have_kept_no_neighbours(characters: Path, tmp_path: Path) -> None:
    copied = tmp_path / "characters"
    shutil.copytree(characters, copied)
    table = read(copied, points=0).tables[0]
    [last] = [run for run in results.read(copied) if run.label == table.labels[table.order[-1]]]
    path = copied / last.folder / results.QUERIES
    kept = {key: value for key, value in load(path.read_bytes()).items() if key not in ("nearest", "similarity")}
    facts = json.loads(path.read_bytes()[8 : 8 + int.from_bytes(path.read_bytes()[:8], "little")])["__metadata__"]
    path.write_bytes(save(kept, facts))
    _, page, _ = written(copied, tmp_path / "report", points=0)
    assert "✗" in page.sections["strips"] and "The same queries under" not in page.sections["strips"]


def test_pictures_can_be_left_out(characters: Path, tmp_path: Path) -> None:
    _, page, _ = written(characters, tmp_path / "report", pictures=False, points=0)
    assert not page.sources and "strips" not in page.sections and "map" not in page.sections
    assert "All pictures were left out of this report (--pictures none)." in page.sections["made"]


def test_pictures_of_others_come_with_a_warning(characters: Path) -> None:
    [own] = subjects(read(characters, points=0))
    theirs = replace(own, table=replace(own.table, data="cub200"))
    [said] = about_pictures([theirs])
    assert "belong to their owners" in said and "may not be passed on" in said
    [free] = about_pictures([own])
    assert "may be passed on" in free


def test_pictures_of_another_benchmark_take_the_place_of_its_own(birds: Path, characters: Path, tmp_path: Path) -> None:
    report(Report(results=str(birds), out=str(tmp_path), pictures=str(characters), queries=3, points=40, figures=""))
    page = Page((tmp_path / "index.html").read_text())
    said = "Images of cub200 are not passed on; these are of glyphs, another benchmark."
    for anchor in ("strips", "map"):
        assert said in page.sections[anchor] and "glyphs" in page.sections[anchor], anchor
    assert "the pictures below are of glyphs" in page.sections["confused"]
    lent = read(characters)
    [subject] = subjects(lent)
    assert subject.pictures.pack is not None
    packed = {subject.pictures.image(row, "").split('src="')[1][:-2] for row in range(len(subject.pictures.pack))}
    assert page.sources and set(page.sources) <= packed  # no picture but those of the lender
    # What is judged is still the benchmark itself.
    verdict = read(birds).verdict
    assert verdict is not None and verdict.sentence in page.sections["verdict"]
    assert "bird 1" in page.sections["confused"] and "bird 1" in page.sections["classes"]


def test_sixteen_losses_are_all_named_and_the_best_stand_out(tmp_path: Path) -> None:
    skills = {f"loss_number_{number:02d}": 0.95 - 0.05 * number for number in range(16)}
    made = benchmark(tmp_path, skills, seeds=1)
    for place, entry in enumerate(made):
        paths = {"weights": f"/secret/place/weights-{place // 15}.pt", "lr": 0.1 if place else 0.2}
        add(tmp_path, replace(entry, settings=paths))
    bench, page, text = written(tmp_path, tmp_path / "report")
    bars = text.split('id="bars"')[1].split("</section>")[0]
    [table] = bench.tables
    found = summary.rows(bench, table)
    close = sum(bool({*row.letters} & {*found[0].letters}) for row in found)
    assert close >= 1
    assert bars.count('class="f-hit"') == close and bars.count('<rect class="grey"') == 16 - close
    for label in skills:
        assert bars.count(f">{label}<") == 2, label  # beside its bar, and beside its mark
    curves = text.split('id="curves"')[1].split("</section>")[0]
    assert all(f">{label}<" in curves for label in skills)  # no name is cut
    assert "the best 5 and the last are in colour" in page.sections["curves"]
    assert 'class="heats tall"' in text
    assert "/secret" not in text and "weights-0.pt: all others" in page.sections["made"]
    assert f"0.2: {made[0].label}" in page.sections["made"]


def test_of_many_losses_those_that_may_be_best_have_one_colour() -> None:
    few = [Bar(f"loss {number}", style(number), letters="abc"[number // 3]) for number in range(8)]
    assert scores.painted(few) == few
    many = [Bar(f"loss {number}", style(number), letters=("a", "ab", "b")[number // 4]) for number in range(12)]
    assert [bar.paint for bar in scores.painted(many)] == ["f-hit"] * 8 + ["grey"] * 4
    bare = [replace(bar, letters="") for bar in many]
    assert [bar.paint for bar in scores.painted(bare)] == ["f-hit"] + ["grey"] * 11


def test_holes_of_one_experiment_do_not_repeat_its_name(tmp_path: Path) -> None:
    made = benchmark(tmp_path / "all", seeds=2)
    (tmp_path / "all").rename(tmp_path / "some")
    lines = (tmp_path / "some" / "results.jsonl").read_text().splitlines()
    (tmp_path / "some" / "results.jsonl").write_text("\n".join(lines[:-1]) + "\n")
    _, page, _ = written(tmp_path / "some", tmp_path / "report")
    assert f"{made[-1].label}: seed 1 is missing." in page.sections["runs"]
    assert f"fixed_validation: {made[-1].label}" not in page.sections["runs"]


def test_pictures_that_cannot_be_read_are_explained(birds_page: Page) -> None:
    assert "Pictures of cub200 are not shown: run must be a folder with a config.toml" in birds_page.sections["made"]


def test_the_page_is_the_same_every_time(birds: Path, tmp_path: Path) -> None:
    for name in ("one", "two"):
        write(read(birds), tmp_path / name, formats=("svg",))
    files = sorted(path.relative_to(tmp_path / "one") for path in (tmp_path / "one").rglob("*") if path.is_file())
    assert len(files) > 8
    for name in files:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes(), name
