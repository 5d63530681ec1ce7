"""What a verdict says in words, what it does not say, and what is missing."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

from nearkin.tournament.experiment import TEST_FEEDBACK, Experiment
from nearkin.tournament.friedman import Friedman
from nearkin.tournament.luck import in_folds, repeats
from nearkin.tournament.permutation import least_classes
from nearkin.tournament.unfinished import warned
from nearkin.tournament.verdict import Verdict
from nearkin.tournament.words import between, chance, count, percent, rank, series


def luck(verdict: Verdict) -> str:
    """Why a loss that is told apart is not called better."""
    if verdict.shares_images:
        return "experiments share their test images"
    if verdict.ranked[0].copied:
        return "all runs of each loss gave the same answers, so that nobody knows how much of that is luck in training"
    return f"with one {verdict.once} of each loss nobody knows how much of that is luck in training"


def spoken(verdict: Verdict) -> Verdict:
    """The verdict with its sentence."""
    text = _several(verdict, verdict.friedman) if verdict.friedman is not None else _one(verdict)
    return dataclasses.replace(verdict, sentence=warned(text, verdict.lacking))


def _one(verdict: Verdict) -> str:
    table = verdict.ranked[0]
    first, second = verdict.standings[0], verdict.standings[len(verdict.leaders)] if _has_second(verdict) else None
    where = f"By {verdict.metric} on {table.name}"
    shown = f"{percent(first.score)} %" + (f" {between(first.low, first.high)}" if math.isfinite(first.low) else "")
    if len(verdict.leaders) > 1:
        start = f"{where}, {verdict.winner} share first place with {shown}"
        return (
            f"{start}."
            if second is None
            else f"{start}, {_points(first.score - second.score)} ahead of {second.label}."
        )
    assert second is not None
    lead = _points(first.score - second.score)
    if table.comparison is None:
        reason = f": {table.reason}" if table.reason else ""
        return (
            f"{where}, {first.label} has the highest mean, {shown}, {lead} ahead of {second.label}; whether that is more "
            f"than chance cannot be said{reason}."
        )
    one, other = table.labels.index(first.label), table.labels.index(second.label)
    intervals = table.comparison.intervals
    near = between(intervals.difference_low[one, other], intervals.difference_high[one, other])
    lead += f" {near}" if len(table.labels) == 2 else f" ({near} of this pair alone)"
    p = [table.comparison.p[one, table.labels.index(entry.label)] for entry in verdict.standings[1:]]
    equals = [entry.label for entry in verdict.standings[1:] if _beside_first(verdict, entry.label)]
    if not equals:
        verb, of = ("wins", "") if verdict.certain else ("leads", " as networks")
        told = f"the two are told apart{of}" if len(p) == 1 else f"it is told apart{of} from {_everyone(len(p))}"
        sure = f"{told} ({'largest ' if len(p) > 1 else ''}{chance(max(p))})"
        why = "" if verdict.certain else f", but {luck(verdict)}"
        return f"{where}, {first.label} {verb} with {shown}, {lead} ahead of {second.label}; {sure}{why}."
    whose = f" for {equals[0]}" if len(equals) > 1 else ""
    return (
        f"{where}, {first.label} has the highest mean, {shown}, {lead} ahead of {second.label}, but cannot be told apart "
        f"from {series(equals)} ({chance(table.comparison.p[one, table.labels.index(equals[0])])}{whose})."
    )


def _several(verdict: Verdict, test: Friedman | None) -> str:
    assert test is not None
    first = verdict.standings[0]
    names = list(dict.fromkeys(table.data for table in verdict.ranked))
    where = f"By {verdict.metric} over {count(test.experiments, 'experiment')} on {series(names)} ({verdict.protocol})"
    if len(verdict.leaders) > 1:
        start = f"{where}, {verdict.winner} share first place with mean rank {rank(first.mean)}"
    else:
        second = verdict.standings[1]
        verb = "wins" if verdict.certain else "leads"
        start = (
            f"{where}, {first.label} {verb} with mean rank {rank(first.mean)}, best in {first.best} of {test.experiments}; "
            f"{second.label} is next with {rank(second.mean)}"
        )
    by, doubt = (" by ranks", f", but {luck(verdict)}") if verdict.shares_images else ("", "")
    name = "Wilcoxon" if test.method == "wilcoxon" else "Friedman"
    if not test.significant:
        return f"{start}. The losses cannot be told apart ({name}, {chance(test.p)})."
    if test.method == "wilcoxon":
        return f"{start}. The two are told apart{by} ({name}, {chance(test.p)}){doubt}."
    rule = f"mean ranks must differ by more than {test.difference:.2f} to be told apart"
    others = [entry for entry in verdict.standings if entry.label not in verdict.leaders]
    near = [entry.label for entry in others if _beside_first(verdict, entry.label)]
    far = [entry.label for entry in others if entry.label not in near]
    lead = "they are" if len(verdict.leaders) > 1 else f"{first.label} is"
    if not near:
        end = f"{lead} told apart{by} from {_everyone(len(far))}{doubt}"
    elif not far:
        end = f"{lead} not told apart from any other, though the losses differ as a whole"
    else:
        end = f"{lead} told apart from {series(far)}, but not from {series(near)}"
    return f"{start}. The losses differ (Friedman, {chance(test.p)}); {rule}: {end}."


def _has_second(verdict: Verdict) -> bool:
    return len(verdict.standings) > len(verdict.leaders)


def _everyone(others: int) -> str:
    return "the other" if others == 1 else "both others" if others == 2 else f"all {others} others"


def _points(gap: float) -> str:
    return f"{percent(gap)} points"


def _beside_first(verdict: Verdict, label: str) -> bool:
    """Whether the loss in first place and another are in one group."""
    return any(verdict.standings[0].label in group and label in group for group in verdict.groups)


# ------------------------------------------------------------------------------------------------- notes


def other_protocols(chosen: str, others: Sequence[str]) -> list[str]:
    if not others:
        return []
    return [f"Judged: {chosen}. Results under {series(others)} are not mixed with it; choose one with --protocol."]


def notes(ranked: Sequence[Experiment], test: Friedman | None, losses: int) -> list[str]:
    """What the reader should know before believing the verdict."""
    found = []
    if ranked[0].protocol == TEST_FEEDBACK:
        found.append("test_feedback: epoch or settings were chosen on the test set, so every number is too good.")
    data = list(dict.fromkeys(table.data for table in ranked))
    if len(data) == 1:
        found.append(f"One data set ({data[0]}): this says nothing about data sets in general.")
        if test is not None:
            found.append(
                f"Its {len(ranked)} experiments share their test images, so they count for less than {len(ranked)} and p "
                f"is too small."
            )
    elif len(data) < len(ranked):
        found.append(
            f"{count(len(ranked), 'experiment')} on {len(data)} data sets: those on one data set share their test images, "
            f"so they count for less than {len(ranked)} and p is too small."
        )
    if test is not None:
        found += _power(test, losses)
    return found + _how(ranked)


def _power(test: Friedman, losses: int) -> list[str]:
    n = test.experiments
    if test.method == "wilcoxon":
        return [f"{n} experiments are too few to tell two losses apart; 6 are the least."] if n < 6 else []
    if test.difference >= losses - 1:
        return [
            f"{n} experiments are too few: mean ranks of {losses} losses would have to differ by {test.difference:.2f}, "
            f"more than they can. Add data sets or networks."
        ]
    return []


PAIR = " The interval of a difference is that of the pair alone, not corrected, so that the two may disagree."
FEW = {
    (1, False): "One run of each loss{}: another seed may give another order.",
    (
        2,
        False,
    ): "Two runs of each loss{} say little about luck in training: equal losses are called different up to about "
    "twice as often as 1 time in 20. Three or more are better.",
    (
        1,
        True,
    ): "Folds of one seed{} share its initialisation and the order of its batches: they tell networks apart, not "
    "losses, and another seed may give another order.",
    (2, True): "Two seeds of each fold{} say little about luck in training; three or more are better.",
}
FOLDS = (
    "Folds share most of their training classes, so their spread shows little of what other training classes would do. Of "
    "{0} folds, the variance of a mean counts as (1/{0} + 1/{1}) of that between them instead of 1/{0} (Nadeau and Bengio); "
    "the luck of other training classes is not covered even so, and the interval is too narrow for them."
)
ALL_COPIES = (
    "Every run of each loss{} gave the same answer to each query, as one network does that was entered under several seeds: "
    "they count as one run. Add models that were trained with these seeds."
)
COPIES = (
    "Every run of {} gave the same answer to each query, as one network does that was entered under several seeds: where it "
    "was trained, nothing is known of its luck."
)
SEEDS = "The folds of a seed are averaged and count as one run of it."


def _how(ranked: Sequence[Experiment]) -> list[str]:
    """How experiments were judged by their queries, and what that leaves open."""
    judged = [table for table in ranked if table.comparison is not None]
    if not judged:
        return []
    several = any(len(table.parts) > 1 for table in judged)
    drawn, pairs = "the test classes", "all pairs"
    if len(judged) == 1 and judged[0].comparison is not None:
        table, found = judged[0], judged[0].comparison
        drawn = f"{count(found.classes, 'test class', 'test classes')} ({count(found.queries, 'query', 'queries')})"
        pairs = count(len(table.labels) * (len(table.labels) - 1) // 2, "pair")
    test = "a paired permutation test on the same queries, class by class"
    alone = "" if all(len(table.labels) == 2 for table in judged) else PAIR
    told = [
        f"Intervals (95 %) draw {drawn}{' and the runs of each loss' if several else ''} anew. p is "
        + (f"the larger of {test}, and of a test over classes and runs" if several else f"that of {test}")
        + f", corrected by Holm for {pairs}; below 0.05 two losses are told apart.{alone}"
    ]
    told += [said for table in judged if (said := floor(table))][:1]
    for few, text in FEW.items():
        those = [table for table in judged if not table.copied and (table.repeats, in_folds(table.parts)) == few]
        if those:
            told.append(text.format(_which(those, judged)))
    told += _copies(judged)
    folded = [table.parts for table in judged if in_folds(table.parts)]
    paired = dict.fromkeys(len(parts) for parts in folded if repeats(parts) in (1, len(parts)))
    told += [FOLDS.format(number, number - 1) for number in paired]
    if any(1 < repeats(parts) < len(parts) for parts in folded):
        told.append(SEEDS)
    return told + _few_classes(judged)


def _which(those: Sequence[Experiment], judged: Sequence[Experiment]) -> str:
    """The names of some experiments in brackets; nothing where they are all."""
    return "" if len(those) == len(judged) else f" ({series([table.name for table in those], 2)})"


def _copies(judged: Sequence[Experiment]) -> list[str]:
    """What seeds that all gave the same answers do not say."""
    whole = [table for table in judged if table.copied]
    told = [ALL_COPIES.format(_which(whole, judged))] if whole else []
    some = [table for table in judged if table.copies and not table.copied]
    for labels in dict.fromkeys(table.copies for table in some):
        told.append(COPIES.format(series(labels) + _which([table for table in some if table.copies == labels], judged)))
    return told


def _few_classes(judged: Sequence[Experiment]) -> list[str]:
    """Where no p can be small enough, since even the least of all patterns of signs is above the level when corrected."""
    told: dict[tuple[int, int], list[Experiment]] = {}
    for table in judged:
        losses = len(table.labels)
        if table.comparison is not None and table.comparison.classes < least_classes(losses):
            told.setdefault((table.comparison.classes, losses), []).append(table)
    return [
        f"{count(classes, 'test class', 'test classes')}{_which(those, judged)} are too few to tell any of "
        f"{count(losses, 'loss', 'losses')} apart; {least_classes(losses)} are the least."
        for (classes, losses), those in told.items()
    ]


def floor(table: Experiment) -> str:
    """Where a p is as small as it can be, that it may be smaller in truth; nothing where it makes no difference."""
    found = table.comparison
    if found is None or found.least < 1e-4 or found.p.min() > found.least * (1 + 1e-9):
        return ""
    least = chance(found.least)
    drawn = f"{found.flips:,} random patterns of signs"
    return f"{least} is the least that {drawn} show when corrected: what has it may have less."


def alone(ranked: Sequence[Experiment], label: str) -> list[str]:
    """In how many single experiments the leader of several is ahead of every other beyond chance."""
    judged = [table for table in ranked if table.comparison is not None]
    if not judged:
        return []
    sure = 0
    for table in judged:
        place = table.labels.index(label)
        if table.comparison is not None and table.order[0] == place:
            sure += int(table.comparison.apart[place].sum() == len(table.labels) - 1)
    return [
        f"Taken one by one, {label} is best and told apart from every other in {sure} of {len(judged)} experiments."
    ]


def too_few(labels: Sequence[str], holes: Sequence[str]) -> str:
    came = f"only {labels[0]}" if labels else "none"
    more = f", and {len(holes) - 1} more" if len(holes) > 1 else ""
    why = f" ({holes[0].rstrip('.')}{more})" if holes else ""
    failed = not labels and any(" failed: " in hole for hole in holes)
    remedy = "mend what failed and run nearkin bench --retry-failed" if failed else "run nearkin bench with more losses"
    return f"a tournament needs at least 2 losses with finished runs, got {came}{why}; {remedy}."


def no_common_run(table: Experiment) -> str:
    """Where losses have runs, but not of the same folds and seeds."""
    why = f" ({table.holes[0].rstrip('.')})" if table.holes else ""
    return (
        f"a tournament needs at least 2 losses with runs of the same fold and seed, got none in common for "
        f"{series(table.finished)} on {table.name}{why}; run the missing seeds of each loss, or number models that were "
        f"trained elsewhere by the same seeds."
    )


def left_out(
    tables: Sequence[Experiment], labels: Sequence[str], numbers: Sequence[int], rows: Sequence[str]
) -> list[str]:
    """Sentences for losses and experiments that the overall ranking had to do without."""
    found = []
    for label in labels:
        without = sum(label not in table.labels for table in tables)
        found.append(
            f"{label} is not part of the overall ranking: it lacks {without} of {count(len(tables), 'experiment')}."
        )
    for number in numbers:
        table = tables[number]
        lacking = [label for label in rows if label not in table.labels]
        if table.labels and lacking:
            found.append(
                f"{table.name} is not part of the overall ranking, which needs every loss in every experiment: "
                f"it lacks {series(lacking)}."
            )
        elif not table.labels:
            found.append(f"{table.name} is not part of the overall ranking: it has no finished run.")
    return found
