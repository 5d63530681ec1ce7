"""From results to a verdict: who leads, how sure that is, what is missing."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest

from nearkin import results
from nearkin.results import Result
from nearkin.tournament import Experiment, TooFewError, Verdict, judge, settle
from nearkin.tournament.experiment import compare
from nearkin.tournament.permutation import holm_pairs
from tests.tournament.made import benchmark, keep, result, scores_of

LEVELS = {"ranked_list": 1.4, "proxy_anchor": 0.7, "contrastive": 0.65, "triplet": -0.3}


def bare(labels: str, score: float = 0.5, **changes: object) -> list[Result]:
    """Results without answers to queries, the first label best."""
    return [
        result(label, metrics={"recall@1": score - place / 100}, **changes)
        for place, label in enumerate(labels.split())
    ]


def tried(folder: Path, runs: list[Result], **changes: object) -> Verdict:
    return settle(runs, folder, **changes)  # type: ignore[arg-type]


# ------------------------------------------------------------------------------------------------- one experiment


def test_a_clear_winner_is_called_one(tmp_path: Path) -> None:
    verdict = tried(tmp_path, benchmark(tmp_path, LEVELS, seeds=4, classes=60))
    assert (verdict.winner, verdict.certain, verdict.judged) == ("ranked_list", True, True)
    assert verdict.sentence.startswith(
        "By recall@1 on cub200, resnet50, 512 dimensions, fixed_validation, ranked_list wins with "
    )
    assert verdict.sentence.endswith("; it is told apart from all 3 others (largest p = 0.0003).")
    assert verdict.groups == (("proxy_anchor", "contrastive"),) or verdict.groups == (("contrastive", "proxy_anchor"),)
    assert [entry.letters for entry in verdict.standings] == ["a", "b", "b", "c"]
    assert verdict.friedman is None
    assert verdict.notes[0] == "One data set (cub200): this says nothing about data sets in general."


def test_two_losses_are_told_apart(tmp_path: Path) -> None:
    verdict = tried(tmp_path, benchmark(tmp_path, {"ranked_list": 1.4, "triplet": -0.3}))
    assert verdict.certain
    assert " ahead of triplet; the two are told apart (p" in verdict.sentence


def test_scores_intervals_and_p_are_those_of_the_parts(tmp_path: Path) -> None:
    """The same numbers from the arrays the files were made of."""
    verdict = tried(tmp_path, benchmark(tmp_path, LEVELS, rng=3))
    scores, labels = scores_of(np.random.default_rng(3), list(LEVELS.values()), 3, 40, training=0.05)
    sums = scores.reshape(4, 3, 40, 20).sum(3)
    assert (labels.reshape(40, 20) == np.arange(40)[:, None]).all()
    expected = compare(sums, np.full(40, 20.0))
    found = verdict.ranked[0].comparison
    assert found is not None
    assert (found.classes, found.queries) == (40, 800)
    assert found.p == pytest.approx(expected.p)
    assert found.intervals.low == pytest.approx(expected.intervals.low)
    places = {label: place for place, label in enumerate(LEVELS)}
    for entry in verdict.standings:
        assert entry.score == pytest.approx(scores[places[entry.label]].mean())
        assert entry.low < entry.score < entry.high
    table = verdict.ranked[0]
    assert table.spread == pytest.approx(scores.mean(2).std(1, ddof=1))


@pytest.mark.parametrize(("losses", "classes", "least"), [(2, 5, 6), (2, 6, 6), (4, 7, 8), (4, 8, 8), (16, 12, 13)])
def test_too_few_classes_for_so_many_losses_are_called_that(
    losses: int, classes: int, least: int, tmp_path: Path
) -> None:
    """With one class fewer than the least even losses that share no right answer are not told apart."""
    levels = {f"loss {number}": 8.0 * (-1) ** number for number in range(losses)}
    verdict = tried(tmp_path, benchmark(tmp_path, levels, seeds=1, classes=classes))
    found = verdict.ranked[0].comparison
    assert found is not None and found.apart.any() == (classes >= least)
    said = f"{classes} test classes are too few to tell any of {losses} losses apart; {least} are the least."
    assert (said in verdict.notes) == (classes < least)
    assert any("too few to tell" in note for note in verdict.notes) == (classes < least)


def test_a_lead_by_chance_is_not_a_victory(tmp_path: Path) -> None:
    verdict = tried(tmp_path, benchmark(tmp_path, {"margin": 0.5, "contrastive": 0.5, "triplet": 0.5}))
    assert not verdict.certain
    assert " has the highest mean, " in verdict.sentence
    assert ", but cannot be told apart from " in verdict.sentence
    assert len(verdict.groups) == 1 and len(verdict.groups[0]) == 3


def test_one_run_says_nothing_about_other_seeds(tmp_path: Path) -> None:
    verdict = tried(tmp_path, benchmark(tmp_path, LEVELS, seeds=1))
    assert "One run of each loss: another seed may give another order." in verdict.notes
    assert verdict.notes[1] == (
        "Intervals (95 %) draw 40 test classes (800 queries) anew. p is that of a paired permutation test on the same "
        "queries, class by class, corrected by Holm for 6 pairs; below 0.05 two losses are told apart. The interval of a "
        "difference is that of the pair alone, not corrected, so that the two may disagree."
    )
    found = verdict.ranked[0].comparison
    assert found is not None
    assert found.runs_p is None
    assert found.p == pytest.approx(holm_pairs(found.queries_p))


@pytest.mark.parametrize("losses", [2, 3])
def test_one_run_is_never_certain(tmp_path: Path, losses: int) -> None:
    """The networks differ beyond doubt; whether the losses do, a single run cannot say."""
    levels = dict(list({"ranked_list": 1.8, "triplet": -0.3, "margin": -0.4}.items())[:losses])
    verdict = tried(tmp_path, benchmark(tmp_path, levels, seeds=1, classes=60))
    assert verdict.one_run and not verdict.certain
    assert not any("ranked_list" in group for group in verdict.groups)
    assert "ranked_list leads with" in verdict.sentence and " as networks" in verdict.sentence
    assert verdict.sentence.endswith("but with one run of each loss nobody knows how much of that is luck in training.")
    assert verdict.record()["certain"] is False
    again = tried(tmp_path / "again", benchmark(tmp_path / "again", levels, seeds=3, classes=60))
    assert again.certain and not again.one_run and "wins with" in again.sentence
    assert ("of this pair alone" in again.sentence) == (losses > 2)


def copied(folder: Path, frozen: str, seeds: int = 3, **changes: object) -> list[Result]:
    """Three losses far apart, of which those named have the answers of their first seed under every other."""
    scores, labels = scores_of(np.random.default_rng(0), (1.8, 0.0, -1.5), seeds, 60)
    return [
        keep(folder, result(label, seed, **changes), row[0 if label in frozen.split() else seed], labels)
        for label, row in zip(("margin", "triplet", "n_pair"), scores, strict=True)
        for seed in range(seeds)
    ]


def test_one_network_under_several_seeds_is_one_run(tmp_path: Path) -> None:
    verdict = tried(tmp_path, copied(tmp_path, "margin triplet n_pair"))
    assert verdict.ranked[0].copied and verdict.ranked[0].repeats == 1
    assert not verdict.certain and verdict.one_run and verdict.once == "run"
    assert verdict.sentence.endswith(
        "it is told apart as networks from both others (largest p = 0.00015), but all runs of each loss gave the same "
        "answers, so that nobody knows how much of that is luck in training."
    )
    assert (
        "Every run of each loss gave the same answer to each query, as one network does that was entered under several "
        "seeds: they count as one run. Add models that were trained with these seeds." in verdict.notes
    )
    assert not any(note.startswith("One run of each loss") for note in verdict.notes)
    assert verdict.record()["experiments"][0]["copies"] == ["margin", "triplet", "n_pair"]


def test_a_frozen_baseline_is_named_and_the_others_are_judged(tmp_path: Path) -> None:
    verdict = tried(tmp_path, copied(tmp_path, "n_pair"))
    assert verdict.certain and verdict.ranked[0].copies == ("n_pair",) and verdict.ranked[0].repeats == 3
    assert (
        "Every run of n_pair gave the same answer to each query, as one network does that was entered under several seeds: "
        "where it was trained, nothing is known of its luck." in verdict.notes
    )
    trained = tried(tmp_path / "trained", copied(tmp_path / "trained", ""))
    assert not any("the same answer" in note for note in trained.notes)


def test_answers_that_are_all_right_or_all_wrong_are_nobody_s_copies(tmp_path: Path) -> None:
    """Any network has them where a test set is easy enough, or hard enough."""
    labels = np.repeat(np.arange(60), 20)
    rng = np.random.default_rng(0)
    runs = [
        keep(tmp_path, result(label, seed), answers, labels)
        for seed in range(3)
        for label, answers in (
            ("margin", np.ones(len(labels))),
            ("triplet", np.zeros(len(labels))),
            ("n_pair", rng.integers(0, 2, len(labels)).astype(np.float64)),
        )
    ]
    verdict = tried(tmp_path, runs)
    assert verdict.ranked[0].copies == () and verdict.certain
    assert not any("the same answer" in note for note in verdict.notes)


def test_of_several_experiments_those_with_copies_are_named(tmp_path: Path) -> None:
    runs = copied(tmp_path, "margin triplet n_pair") + copied(tmp_path, "n_pair", data="cars196")
    notes, place = tried(tmp_path, runs).notes, "resnet50, 512 dimensions, fixed_validation"
    assert any(note.startswith(f"Every run of each loss (cub200, {place}) gave the same") for note in notes)
    assert any(note.startswith(f"Every run of n_pair (cars196, {place}) gave the same") for note in notes)


@pytest.mark.parametrize(("losses", "runs"), [(3, 2), (2, 3), (5, 3)])
def test_luck_in_training_is_not_mistaken_for_a_better_loss(losses: int, runs: int) -> None:
    """Equal losses, unequal runs: the queries alone would often call one better, all tests together rarely do."""
    rng = np.random.default_rng(0)
    wrong = sure = 0
    for _ in range(60):
        scores, _ = scores_of(rng, [0.5] * losses, runs, 40, 30, training=0.2)
        found = compare(scores.reshape(losses, runs, 40, 30).sum(3), np.full(40, 30.0))
        sure += (holm_pairs(found.queries_p) < 0.05).any()
        wrong += found.apart.any()
    assert sure > 20
    assert wrong <= 7  # 3 are promised


def test_with_many_losses_p_can_still_be_small() -> None:
    """Fifty losses are 1225 pairs: the least p of 20,000 flips, times that, would be above 0.05."""
    scores = np.random.default_rng(0).normal(0.5, 0.05, (50, 1, 20))
    scores[0] += 1
    assert compare(scores, np.ones(20)).apart[0, 1:].all()


def test_a_real_difference_is_found_in_spite_of_luck() -> None:
    rng = np.random.default_rng(0)
    hits = 0
    for _ in range(25):
        scores, _ = scores_of(rng, (0.9, 0.5, 0.5), 3, 100, 20, training=0.05)
        hits += bool(compare(scores.reshape(3, 3, 100, 20).sum(3), np.full(100, 20.0)).apart[0, 1:].all())
    assert hits > 20


def test_folds_are_paired_and_seeds_are_not(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    scores, labels = scores_of(rng, (0.6, 0.5), 5, 40)
    runs = [
        keep(tmp_path, result(name, protocol="cross_validation", fold=fold), scores[place, fold], labels)
        for place, name in enumerate(("margin", "triplet"))
        for fold in range(5)
    ]
    verdict = tried(tmp_path, runs)
    found = verdict.ranked[0].comparison
    expected = compare(scores.reshape(2, 5, 40, 20).sum(3), np.full(40, 20.0), paired=True)
    assert found is not None
    assert found.intervals.difference_low == pytest.approx(expected.intervals.difference_low)
    assert any(note.startswith("Folds share most of their training classes") for note in verdict.notes)
    assert any("as (1/5 + 1/4) of that between them instead of 1/5" in note for note in verdict.notes)


def folds_of(folder: Path, parts: list[tuple[int, int]], gap: float = 1.5) -> tuple[list[Result], np.ndarray]:
    """Two losses far apart on every fold and seed in ``parts``, and their scores (losses, runs, queries)."""
    scores, labels = scores_of(np.random.default_rng(0), (0.5 + gap, 0.5), len(parts), 40)
    runs = [
        keep(folder, result(name, seed, protocol="cross_validation", fold=fold), scores[place, at], labels)
        for place, name in enumerate(("margin", "triplet"))
        for at, (fold, seed) in enumerate(parts)
    ]
    return runs, scores


def test_folds_of_one_seed_are_never_certain(tmp_path: Path) -> None:
    """They share its luck, however many they are."""
    runs, _ = folds_of(tmp_path, [(fold, 0) for fold in range(10)])
    verdict = tried(tmp_path, runs)
    assert verdict.one_run and not verdict.certain and not verdict.groups
    assert "margin leads with" in verdict.sentence and " as networks" in verdict.sentence
    assert verdict.sentence.endswith(
        "but with one seed of each loss nobody knows how much of that is luck in training."
    )
    assert any(note.startswith("Folds of one seed share its initialisation") for note in verdict.notes)


def test_folds_of_several_seeds_are_averaged_and_seeds_compared(tmp_path: Path) -> None:
    runs, scores = folds_of(tmp_path, [(fold, seed) for fold in range(4) for seed in range(3)])
    verdict = tried(tmp_path, runs)
    assert verdict.certain and "wins with" in verdict.sentence
    assert "The folds of a seed are averaged and count as one run of it." in verdict.notes
    averaged = scores.reshape(2, 4, 3, 40, 20).mean(1).sum(3)
    expected, found = compare(averaged, np.full(40, 20.0)), verdict.ranked[0].comparison
    assert found is not None and found.runs_p is not None and expected.runs_p is not None
    assert found.runs_p[0, 1] == pytest.approx(expected.runs_p[0, 1])


def test_a_seed_that_some_folds_lack_is_left_out_and_named(tmp_path: Path) -> None:
    runs, _ = folds_of(tmp_path, [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0)])
    verdict = tried(tmp_path, runs)
    assert verdict.ranked[0].parts == ((0, 0), (1, 0), (2, 0)) and not verdict.certain
    assert verdict.holes[-1].endswith(
        "seed 1, fold 1, seed 1 left out for every loss, since not every fold has the same seeds."
    )


def test_folds_with_a_seed_each_share_no_luck(tmp_path: Path) -> None:
    runs, _ = folds_of(tmp_path, [(fold, fold) for fold in range(6)])
    verdict = tried(tmp_path, runs)
    assert verdict.ranked[0].repeats == 6 and verdict.certain


def test_luck_that_folds_share_makes_no_loss_better(tmp_path: Path) -> None:
    """Equal losses; half a point of luck that all ten folds of a loss share, and as much of each fold: the folds alone tell
    them apart in many a try, so nothing of it may be called certain."""
    rng, classes, queries = np.random.default_rng(5), 60, 40
    hard, told, certain = rng.normal(0.67, 0.15, classes), 0, 0
    for trial in range(12):
        luck = rng.normal(0, 0.01, (2, 1, 1)) + rng.normal(0, 0.005, (2, 10, 1))
        right = rng.binomial(queries, np.clip(hard + luck + rng.normal(0, 0.04, (2, 10, classes)), 0.01, 0.99))
        scores = (np.arange(queries) < right[..., None]).astype(np.float64).reshape(2, 10, -1)
        labels, place = np.repeat(np.arange(classes), queries), tmp_path / str(trial)
        runs = [
            keep(place, result(name, protocol="cross_validation", fold=fold), scores[at, fold], labels)
            for at, name in enumerate(("margin", "triplet"))
            for fold in range(10)
        ]
        verdict = tried(place, runs)
        told += not verdict.groups
        certain += verdict.certain
    assert told > 2 and certain == 0


def test_without_answers_nothing_is_called_sure(tmp_path: Path) -> None:
    verdict = tried(tmp_path, bare("margin triplet n_pair"))
    assert (verdict.judged, verdict.certain, verdict.groups) == (False, False, ())
    assert verdict.sentence == (
        "By recall@1 on cub200, resnet50, 512 dimensions, fixed_validation, margin has the highest mean, 50.00 %, "
        "1.00 points ahead of triplet; whether that is more than chance cannot be said: run "
        "margin-cub200-resnet50-512-fixed_validation-0-0 (margin, seed 0) kept no queries.safetensors."
    )


def test_a_number_of_the_whole_test_set_cannot_be_paired(tmp_path: Path) -> None:
    verdict = tried(tmp_path, benchmark(tmp_path, LEVELS), metric="nmi")
    assert verdict.winner == "ranked_list"
    assert verdict.sentence.endswith("cannot be said: nmi is a number of the whole test set, not of each query.")


def test_equals_share_the_first_place(tmp_path: Path) -> None:
    runs = [result(name, metrics={"recall@1": value}) for name, value in (("a", 0.5), ("b", 0.5), ("c", 0.4))]
    verdict = tried(tmp_path, runs)
    assert verdict.leaders == ("a", "b")
    assert verdict.winner == "a and b"
    assert ", a and b share first place with 50.00 %, 10.00 points ahead of c." in verdict.sentence
    verdict = tried(tmp_path, runs[:2])
    assert verdict.sentence.endswith(", a and b share first place with 50.00 %.")


def test_test_feedback_is_named(tmp_path: Path) -> None:
    verdict = tried(tmp_path, bare("a b", protocol="test_feedback"))
    assert "test_feedback" in verdict.sentence
    assert (
        verdict.notes[0] == "test_feedback: epoch or settings were chosen on the test set, so every number is too good."
    )


def test_queries_without_a_relevant_item_do_not_count(tmp_path: Path) -> None:
    scores, labels = scores_of(np.random.default_rng(0), (0.6, 0.5), 1, 12)
    scores[:, :, :3] = np.nan
    runs = [keep(tmp_path, result(name), scores[place, 0], labels) for place, name in enumerate("ab")]
    found = tried(tmp_path, runs).ranked[0].comparison
    assert found is not None
    assert found.queries == 12 * 20 - 3


def test_rows_may_stand_in_another_order(tmp_path: Path) -> None:
    scores, labels = scores_of(np.random.default_rng(0), (0.9, 0.5), 1, 12)
    turned = np.random.default_rng(1).permutation(len(labels))
    plain = [keep(tmp_path / "plain", result(name), scores[place, 0], labels) for place, name in enumerate("ab")]
    mixed = [plain[0], keep(tmp_path / "plain", result("c"), scores[1, 0][turned], labels[turned], rows=turned)]
    one, two = (tried(tmp_path / "plain", runs).ranked[0].comparison for runs in (plain, mixed))
    assert one is not None and two is not None
    assert one.p == pytest.approx(two.p)


# ------------------------------------------------------------------------------------------------- bad answers


def test_other_queries_are_never_paired(tmp_path: Path) -> None:
    scores, labels = scores_of(np.random.default_rng(0), (0.6, 0.5), 1, 12)
    first = keep(tmp_path, result("a"), scores[0, 0], labels)
    for changes, what in (
        ({"rows": np.arange(240) + 5}, "different queries"),
        ({"labels": labels[::-1].copy()}, "other labels for the same queries"),
    ):
        other = keep(tmp_path, result("b"), scores[1, 0], labels, **changes)
        with pytest.raises(
            ValueError, match=rf"^cub200: runs to be compared must have been asked the same queries, got {what}"
        ):
            tried(tmp_path, [first, other])
    fewer = keep(tmp_path, result("b"), scores[1, 0][:200], labels[:200])
    with pytest.raises(
        ValueError, match=r"got 240 and 200 queries from run .* test both on the same test set, or keep"
    ):
        tried(tmp_path, [first, fewer])


def test_answers_of_another_epoch_are_refused(tmp_path: Path) -> None:
    scores, labels = scores_of(np.random.default_rng(0), (0.6, 0.5), 1, 12)
    runs = [keep(tmp_path, result(name), scores[place, 0], labels) for place, name in enumerate("ab")]
    runs[1] = dataclasses.replace(runs[1], metrics={"recall@1": runs[1].metrics["recall@1"] + 0.01})
    with pytest.raises(
        ValueError, match=r"must give the recall@1 of its result, .* belongs to another epoch: run it again"
    ):
        tried(tmp_path, runs)


def test_answers_without_rows_or_of_wrong_shape_are_refused(tmp_path: Path) -> None:
    scores, labels = scores_of(np.random.default_rng(0), (0.6, 0.5), 1, 12)
    first = keep(tmp_path, result("a"), scores[0, 0], labels)
    bad = keep(tmp_path, result("b"), scores[1, 0], labels, rows=np.arange(7))
    with pytest.raises(ValueError, match=r"must hold one row, label and score per query, got shapes \(7,\)"):
        tried(tmp_path, [first, bad])


def test_two_runs_of_one_loss_and_seed_are_refused(tmp_path: Path) -> None:
    runs = [*bare("a b"), result("a", id="other", metrics={"recall@1": 0.7})]
    with pytest.raises(
        ValueError, match=r"one run for each fold and seed, got a-.* and other for a, seed 0; keep them in sep"
    ):
        tried(tmp_path, runs)


# ------------------------------------------------------------------------------------------------- holes


def test_a_failed_run_is_named_and_its_seed_is_left_out_for_all(tmp_path: Path) -> None:
    runs = benchmark(tmp_path, LEVELS)
    runs[4] = dataclasses.replace(runs[4], status="failed", metrics={}, error="out of memory\nTraceback ...")
    verdict = tried(tmp_path, runs)
    table = verdict.ranked[0]
    assert table.parts == ((0, 0), (0, 2))
    assert len(table.labels) == 4
    title = "cub200, resnet50, 512 dimensions, fixed_validation"
    assert verdict.holes == (
        f"{title}: proxy_anchor: seed 1 failed: out of memory.",
        f"{title}: seed 1 left out for every loss, since not all of them have it.",
    )
    means = {
        label: np.mean([run.metrics["recall@1"] for run in runs if run.label == label and run.seed != 1])
        for label in LEVELS
    }
    assert dict(zip(table.labels, table.scores, strict=True)) == pytest.approx(means)


def test_a_loss_that_lacks_most_runs_is_left_out_and_named(tmp_path: Path) -> None:
    runs = [run for run in benchmark(tmp_path, LEVELS) if run.label != "triplet" or run.seed == 2]
    verdict = tried(tmp_path, runs)
    assert "triplet" not in verdict.ranked[0].labels
    assert verdict.holes[0].endswith("triplet: seed 0 is missing; seed 1 is missing, so it is left out here.")
    assert verdict.ranked[0].parts == ((0, 0), (0, 1), (0, 2))


def test_a_loss_that_always_failed_is_named(tmp_path: Path) -> None:
    verdict = tried(tmp_path, [*bare("a b"), result("c", status="failed", metrics={})])
    assert [entry.label for entry in verdict.standings] == ["a", "b"]
    assert verdict.holes[0].endswith("c: seed 0 failed: no reason given, so it is left out here.")


def test_a_run_without_the_measure_or_with_nonsense_is_a_hole(tmp_path: Path) -> None:
    runs = [*bare("a b"), result("c", metrics={"nmi": 0.5}), result("d", metrics={"recall@1": float("nan")})]
    holes = tried(tmp_path, runs).holes
    assert "c: seed 0 has no recall@1" in holes[0]
    assert "d: seed 0 has nan as recall@1" in holes[1]


def test_a_run_that_failed_and_was_done_again_is_no_hole(tmp_path: Path) -> None:
    runs = [*bare("a b"), result("a", id="earlier", status="failed", metrics={}, error="killed")]
    assert tried(tmp_path, runs).holes == ()


def missing(label: str, seed: int = 0, **changes: object) -> Result:
    return result(label, seed, status=results.MISSING, metrics={}, **changes)


def test_a_grid_that_is_not_finished_is_not_judged_as_if_it_were(tmp_path: Path) -> None:
    whole = benchmark(tmp_path, LEVELS, seeds=4, classes=60)
    runs = [*whole, *(missing("margin", seed) for seed in range(4)), missing("soft_triple"), missing("triplet", 4)]
    verdict = tried(tmp_path, runs)
    assert verdict.lacking == "6 of 22 runs of the grid are missing, among them all of margin and soft_triple"
    assert verdict.sentence == f"{tried(tmp_path, whole).sentence} This is not final: {verdict.lacking}."
    assert verdict.winner == "ranked_list" and verdict.certain  # among those that were compared
    title = "cub200, resnet50, 512 dimensions, fixed_validation"
    every = "; ".join(f"seed {seed} not run yet" for seed in range(4))
    assert f"{title}: margin: {every}; seed 4 is missing, so it is left out here." in verdict.holes
    assert f"{title}: triplet: seed 4 not run yet." in verdict.holes
    assert json.loads(json.dumps(verdict.record()))["lacking"] == verdict.lacking
    other = result("own", id=f"{results.ELSEWHERE}1", metrics={})  # of no grid
    assert tried(tmp_path, [*runs, other]).lacking == verdict.lacking
    assert tried(tmp_path, whole).lacking == tried(tmp_path, whole).record()["lacking"] == ""


def test_over_several_experiments_missing_runs_are_said_too(tmp_path: Path) -> None:
    runs = [run for dim in (64, 128, 512) for run in bare("a b c", dim=dim)]
    verdict = tried(tmp_path, [*runs, *(missing(label, dim=1024) for label in "abc")])
    assert verdict.sentence.endswith(" This is not final: 3 of 12 runs of the grid are missing.")
    assert len(verdict.ranked) == 3 and len(verdict.experiments) == 4


def test_a_protocol_that_no_run_has_yet_is_not_said_to_have_results(tmp_path: Path) -> None:
    runs = [*bare("a b"), *(missing(label, protocol="cross_validation") for label in "ab")]
    verdict = tried(tmp_path, runs)
    assert verdict.protocol == "fixed_validation" and not any("Results under" in note for note in verdict.notes)
    assert verdict.lacking == "2 of 4 runs of the grid are missing"


def test_with_one_loss_that_has_run_the_error_names_the_others(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"got only a \(.*: b: seed 0 not run yet, so it is left out here\); run near"):
        tried(tmp_path, [*bare("a"), missing("b")])


def test_a_p_that_cannot_be_less_says_so(tmp_path: Path) -> None:
    said = (
        "p = 0.0003 is the least that 20,000 random patterns of signs show when corrected: what has it may have less."
    )
    far = {"a": 3.0, "b": -3.0, "c": 0.0, "d": 0.1}
    verdict = tried(tmp_path / "far", benchmark(tmp_path / "far", far, seeds=1))
    found = verdict.ranked[0].comparison
    assert found is not None and found.p.min() == pytest.approx(6 / 20001) == found.least
    assert said in verdict.notes
    near = tried(tmp_path / "near", benchmark(tmp_path / "near", dict.fromkeys("abcd", 0.0), seeds=1))
    few = tried(tmp_path / "few", benchmark(tmp_path / "few", far, seeds=1, classes=10))  # all patterns
    assert not any("the least that" in note for verdict in (near, few) for note in verdict.notes)


def test_notes_are_on_what_is_compared(tmp_path: Path) -> None:
    """A loss that is left out for a hole is no part of it."""
    runs = [run for seed in (0, 1, 2) for run in bare("a b", seed=seed)] + bare("c")
    longer = [dataclasses.replace(run, settings={"epochs": 9 if run.label == "c" else 3}) for run in runs]
    assert not any("Budgets" in note for note in tried(tmp_path, longer).notes)
    longer = [dataclasses.replace(run, settings={"epochs": 9 if run.label == "b" else 3}) for run in runs]
    assert any("Budgets differ (b 9 epochs and a 3 epochs)" in note for note in tried(tmp_path, longer).notes)


def done_on(kind: str, run: Result, precision: str = "auto") -> Result:
    cost = {"seconds": 3.0} | ({"peak_bytes": 1e9} if kind == "GPU" else {})
    return dataclasses.replace(run, where={"device": "its name"}, cost=cost, settings={"precision": precision})


@pytest.mark.parametrize(
    ("precision", "how"), [("auto", ", with precision auto in bf16 and in float32"), ("float32", "")]
)
def test_runs_on_different_kinds_of_device_are_told_of(tmp_path: Path, precision: str, how: str) -> None:
    a, b, c = bare("a b c")
    first, second = (done_on("GPU", run, precision) for run in (a, b))
    said = f"2 runs on a GPU and 1 on a CPU are compared{how}: what differs may be the device and not the loss."
    assert said in tried(tmp_path, [first, second, done_on("CPU", c, precision)]).notes
    elsewhere = dataclasses.replace(c, where={}, cost={})
    failed = dataclasses.replace(done_on("CPU", c), status="failed", metrics={})
    for third in (done_on("GPU", c), elsewhere, failed):
        assert not any("device" in note for note in tried(tmp_path, [first, second, third]).notes)


def test_experiments_on_a_device_of_their_own_are_not_mixed(tmp_path: Path) -> None:
    runs = [done_on(kind, run) for kind, dim in (("GPU", 64), ("CPU", 128)) for run in bare("a b", dim=dim)]
    assert not any("device" in note for note in tried(tmp_path, runs).notes)
    runs[0] = done_on("CPU", runs[0])
    [note] = [note for note in tried(tmp_path, runs).notes if "device" in note]
    assert note.startswith("1 run on a GPU and 1 on a CPU are compared (in 1 of 2 experiments), with precision auto")


# ------------------------------------------------------------------------------------------------- several experiments


def test_several_data_sets_are_compared_by_ranks(tmp_path: Path) -> None:
    runs = [run for number in range(12) for run in bare("a b c", data=f"set{number}")]
    verdict = tried(tmp_path, runs)
    assert verdict.friedman is not None
    assert verdict.winner == "a"
    assert [entry.total for entry in verdict.standings] == [12, 24, 36]
    assert verdict.friedman.difference == pytest.approx(2.3437 * np.sqrt(12 / 72), abs=1e-3)
    assert verdict.certain  # mean ranks of 1 and 2 differ by more than 0.96
    assert not tried(tmp_path, runs[:30]).certain  # 1.05 with ten
    assert not any(note.startswith("One data set") for note in verdict.notes)


def test_many_data_sets_make_it_sure(tmp_path: Path) -> None:
    verdict = tried(tmp_path, [run for number in range(20) for run in bare("a b c", data=f"set{number}")])
    assert verdict.certain
    assert verdict.sentence.endswith(
        "a wins with mean rank 1, best in 20 of 20; b is next with 2. The losses differ (Friedman, p < 0.0001); mean ranks "
        "must differ by more than 0.74 to be told apart: a is told apart from both others."
    )


def test_networks_on_one_data_set_say_nothing_about_data_sets(tmp_path: Path) -> None:
    runs = [run for network in ("resnet50", "googlenet", "bn_inception") for run in bare("a b c", network=network)]
    verdict = tried(tmp_path, runs)
    assert (
        "Its 3 experiments share their test images, so they count for less than 3 and p is too small." in verdict.notes
    )


def test_experiments_that_share_images_are_never_certain(tmp_path: Path) -> None:
    """A loss that is good on these test classes by luck is ahead in each of them."""
    runs = [run for dim in range(12) for run in bare("a b", dim=64 + dim)]
    two = tried(tmp_path, runs)
    assert two.friedman is not None and two.friedman.significant and two.apart_from_all and not two.certain
    assert ", a leads with mean rank 1, " in two.sentence
    assert two.sentence.endswith(
        "The two are told apart by ranks (Wilcoxon, p = 0.00049), but experiments share their test images."
    )
    three = tried(tmp_path, [run for dim in range(20) for run in bare("a b c", dim=64 + dim)])
    assert not three.certain and three.apart_from_all
    assert three.sentence.endswith(
        "a is told apart by ranks from both others, but experiments share their test images."
    )
    once_more = [run for number in range(12) for run in bare("a b", data=f"set{number}")]
    assert tried(tmp_path, once_more).certain
    assert not tried(tmp_path, [*once_more, *bare("a b", data="set0", dim=64)]).certain


def test_equal_losses_on_shared_images_are_not_certain(tmp_path: Path) -> None:
    """What a loss is worth on these very classes is the same in every experiment, and ranks take it for a better loss: 0.3
    points, as on the hundred test classes of benchmarks/results/birds.tar.xz, beside 0.45 of luck in training."""
    rng, told, labels, none = np.random.default_rng(0), 0, ("margin", "triplet"), np.full(2, np.nan)
    for _ in range(60):
        worth = 0.6 + rng.normal(0, 0.0031, 2)
        scores = worth + rng.normal(0, 0.0045, (12, 2))
        tables = [
            Experiment("cub200", "resnet50", dim, "fixed_validation", labels, row, none)
            for dim, row in enumerate(scores)
        ]
        verdict = judge(tables, "recall@1")
        told += verdict.apart_from_all
        assert not verdict.certain
    assert told > 15


def test_too_few_experiments_are_called_that(tmp_path: Path) -> None:
    three = tried(tmp_path, [run for data in ("x", "y") for run in bare("a b c", data=data)])
    assert three.notes[0] == (
        "2 experiments are too few: mean ranks of 3 losses would have to differ by 2.34, more than they can. "
        "Add data sets or networks."
    )
    assert three.sentence.endswith("The losses cannot be told apart (Friedman, p = 0.17).")
    two = tried(tmp_path, [run for data in "vwxyz" for run in bare("a b", data=data)])
    assert two.notes[0] == "5 experiments are too few to tell two losses apart; 6 are the least."
    assert two.sentence.endswith("The losses cannot be told apart (Wilcoxon, p = 0.062).")
    six = tried(tmp_path, [run for data in "uvwxyz" for run in bare("a b", data=data)])
    assert six.certain
    assert six.sentence.endswith("The two are told apart (Wilcoxon, p = 0.031).")


def test_an_experiment_that_lacks_a_loss_is_named_and_not_part_of_the_test(tmp_path: Path) -> None:
    runs = [run for data in "vwxyz" for run in bare("a b c", data=data)]
    runs = [run for run in runs if (run.data, run.label) != ("x", "b")]
    verdict = tried(tmp_path, runs)
    assert verdict.friedman is not None
    assert verdict.friedman.experiments == 4
    assert len(verdict.experiments) == 5
    assert verdict.holes == (
        "x, resnet50, 512 dimensions, fixed_validation is not part of the overall ranking, which needs every loss in every "
        "experiment: it lacks b.",
    )


def test_a_loss_in_few_experiments_is_named_and_not_part_of_the_test(tmp_path: Path) -> None:
    runs = [run for data in "vwxyz" for run in bare("a b c", data=data)] + [result("d", data="z")]
    verdict = tried(tmp_path, runs)
    assert [entry.label for entry in verdict.standings] == ["a", "b", "c"]
    assert verdict.holes == ("d is not part of the overall ranking: it lacks 4 of 5 experiments.",)


def test_protocols_are_never_mixed(tmp_path: Path) -> None:
    runs = bare("a b", protocol="test_feedback") + bare("b a", protocol="fixed_validation")
    verdict = tried(tmp_path, runs)
    assert (verdict.protocol, verdict.winner, len(verdict.experiments)) == ("fixed_validation", "b", 1)
    assert verdict.notes[0] == (
        "Judged: fixed_validation. Results under test_feedback are not mixed with it; choose one with --protocol."
    )
    assert tried(tmp_path, runs, protocol="test_feedback").winner == "a"
    with pytest.raises(ValueError, match=r"protocol 'test-feedback' is not known; did you mean 'test_feedback'\?"):
        tried(tmp_path, runs, protocol="test-feedback")


def test_with_several_experiments_each_is_also_judged_by_its_queries(tmp_path: Path) -> None:
    runs = benchmark(tmp_path, LEVELS, classes=60) + benchmark(tmp_path, LEVELS, data="cars196", rng=1, classes=60)
    verdict = tried(tmp_path, runs)
    assert verdict.notes[-1] == (
        "Taken one by one, ranked_list is best and told apart from every other in 2 of 2 experiments."
    )


# ------------------------------------------------------------------------------------------------- wrong input


def test_one_loss_is_no_tournament(tmp_path: Path) -> None:
    with pytest.raises(
        ValueError, match=r"at least 2 losses with finished runs, got only a; run nearkin bench with more los"
    ):
        tried(tmp_path, bare("a"))
    failed = [result(name, status="failed", error="no space", metrics={}) for name in "ab"]
    with pytest.raises(
        ValueError,
        match=r"got none \(.*: a: seed 0 failed: no space, so it is left out here, and 1 more\); mend what",
    ):
        tried(tmp_path, failed)


def test_losses_without_a_common_experiment_cannot_be_compared(tmp_path: Path) -> None:
    with pytest.raises(
        ValueError, match=r"losses with runs of the same experiment .* got none in common; .* for a, b\."
    ):
        tried(tmp_path, [result("a", data="x"), result("b", data="y")])


def test_losses_without_a_common_seed_cannot_be_compared(tmp_path: Path) -> None:
    runs = [run for seed in range(3) for run in (result("a", seed), result("b", seed + 3))]
    with pytest.raises(TooFewError) as raised:
        tried(tmp_path, runs)
    title = "cub200, resnet50, 512 dimensions, fixed_validation"
    assert str(raised.value) == (
        f"a tournament needs at least 2 losses with runs of the same fold and seed, got none in common for a and b on "
        f"{title} ({title}: a: seed 3 is missing; seed 4 is missing; seed 5 is missing, so it is left out here); run the "
        f"missing seeds of each loss, or number models that were trained elsewhere by the same seeds."
    )


def test_a_misspelt_measure_is_corrected(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"metric 'recal@1' is not known; did you mean 'recall@1'\?"):
        tried(tmp_path, bare("a b"), metric="recal@1")


def test_a_depth_that_was_not_measured_is_no_misspelling(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"^metric must be one of recall@1, got 'recall@3'; choose one of these\.$"):
        tried(tmp_path, bare("a b"), metric="recall@3")


def test_no_results_at_all(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"results must hold at least one run, got none; run nearkin bench first\."):
        tried(tmp_path, [])


# ------------------------------------------------------------------------------------------------- record


def test_the_record_is_json_without_nan(tmp_path: Path) -> None:
    verdict = tried(tmp_path, benchmark(tmp_path, LEVELS))
    record = json.loads(json.dumps(verdict.record(), allow_nan=False))
    assert record["winner"] == "ranked_list"
    assert record["standings"][0]["deviation"] is None
    assert record["experiments"][0]["comparison"]["intervals"]["low"][0] == pytest.approx(verdict.standings[0].low)
    assert results.read(tmp_path)
