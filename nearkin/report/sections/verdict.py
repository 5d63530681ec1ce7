"""What a person sees first: which loss wins here, by how much, with what certainty, at what cost."""

from __future__ import annotations

import math
from collections.abc import Sequence

from nearkin.report import summary
from nearkin.report.bench import Bench
from nearkin.report.markup import badge, unbroken, words
from nearkin.report.numbers import bytes_of, seconds_of
from nearkin.results import untrained
from nearkin.tournament import Verdict
from nearkin.tournament.permutation import least_classes
from nearkin.tournament.sentences import luck
from nearkin.tournament.words import between, chance, count, percent, rank, series


def hero(bench: Bench) -> str:
    """The head of the page, as HTML."""
    verdict = bench.verdict
    if verdict is None:
        return f'<section class="hero" id="verdict"><h2>No verdict</h2><p class="sentence">{words(bench.why)}</p></section>'
    tiles = [_winner(bench, verdict), _lead(verdict), _certainty(verdict), _cost(bench, verdict)]
    made = "".join(
        f'<div class="tile {kind}"><dt>{words(term)}</dt><dd><strong>{words(large)}</strong>{unbroken(small)}</dd></div>'
        for term, large, small, kind in tiles
        if large
    )
    warning = ""
    if verdict.protocol == "test_feedback":
        warning = (
            '<p class="warning"><b>test_feedback</b>: the epoch was chosen on the test set, so every number here is '
            "too good. Use it to compare with papers that did the same, for nothing else.</p>"
        )
    large, small = _outcome(verdict)
    said, which = words(large), badge(verdict.protocol)
    said += f': <span class="which">{words(small)} {which}</span>' if small else f" {which}"
    return (
        f'<section class="hero" id="verdict"><h2>{said}</h2>{warning}'
        f'<dl class="tiles">{made}</dl><p class="sentence">{unbroken(verdict.sentence)}</p></section>'
    )


def headline(verdict: Verdict) -> str:
    """The outcome in a few words."""
    return ": ".join(filter(None, _outcome(verdict)))


# A headline names so many losses at most, and counts the others.
NAMED = 2


def _outcome(verdict: Verdict) -> tuple[str, str]:
    """The outcome, and what belongs to it in smaller letters: whom it is about, and that the grid is not finished."""
    large, small = _standing(verdict)
    if verdict.lacking:
        large, small = f"{large} so far", "; ".join(filter(None, (small, "the grid is not finished")))
    return large, small


def _standing(verdict: Verdict) -> tuple[str, str]:
    equals = _equals(verdict)
    if equals:  # the highest mean is no news where it may be luck
        who = series(verdict.leaders, NAMED)
        return "No clear winner", f"{who} cannot be told apart from {series(equals, NAMED)}"
    if len(verdict.leaders) > 1:
        return f"{verdict.winner} share first place", ""
    if verdict.certain:
        return f"{verdict.winner} wins", ""
    if verdict.one_run:
        return f"{verdict.winner} leads, with one {verdict.once} of each", ""
    if verdict.shares_images and verdict.apart_from_all:
        return f"{verdict.winner} leads, but {luck(verdict)}", ""
    return f"{verdict.winner} has the highest mean", "whether by more than chance is not known"


def _equals(verdict: Verdict) -> list[str]:
    """The losses behind the leader that cannot be told apart from it, the best first."""
    first = verdict.standings[0].label
    together = {label for group in verdict.groups if first in group for label in group}
    return [
        entry.label for entry in verdict.standings if entry.label in together and entry.label not in verdict.leaders
    ]


Tile = tuple[str, str, str, str]


def _winner(bench: Bench, verdict: Verdict) -> Tile:
    first = verdict.standings[0]
    if verdict.friedman is not None:
        where = f"of {verdict.winner}, best in {first.best} of {count(len(verdict.ranked), 'experiment')}"
        return f"Best mean rank by {verdict.metric}", rank(first.mean), where, ""
    near = f", 95 % interval {between(first.low, first.high)}" if math.isfinite(first.low) else ""
    return (
        f"Highest {verdict.metric}",
        f"{percent(first.score)} %",
        f"{verdict.winner}{near}{_before(bench, verdict)}",
        "",
    )


def _before(bench: Bench, verdict: Verdict) -> str:
    """What the network had before the first step, where runs measured it: a score is worth what it adds to that."""
    [table] = verdict.ranked
    counted = [run for label in table.labels for run in bench.counted(table, label)]
    found = next(iter(untrained(counted, verdict.metric).values()), None)
    return "" if found is None else f". The network as it came has {percent(found)} %"


def _lead(verdict: Verdict) -> Tile:
    after = len(verdict.leaders)
    if after >= len(verdict.standings):
        return "Lead", "none", "all share first place", ""
    first, second = verdict.standings[0], verdict.standings[after]
    gaps = []
    for table in verdict.ranked:
        gaps.append(table.scores[table.labels.index(first.label)] - table.scores[table.labels.index(second.label)])
    gap = float(sum(gaps) / len(gaps))
    if verdict.friedman is not None:
        ahead = second.mean - first.mean
        unit = "rank" if math.isclose(ahead, 1) else "ranks"
        beside = f"{second.label} is next with mean rank {rank(second.mean)}; "
        beside += f"{_signed(gap)} points of {verdict.metric} on average"
        return "Lead", f"{rank(ahead)} {unit}", beside, ""
    table = verdict.ranked[0]
    shown = ""
    if table.comparison is not None:
        one, other = table.labels.index(first.label), table.labels.index(second.label)
        near = table.comparison.intervals
        shown = f", 95 % interval {between(near.difference_low[one, other], near.difference_high[one, other])}"
        shown += " of this pair alone" if len(table.labels) > 2 else ""
    return "Lead", f"{_signed(gap)} points", f"ahead of {second.label}{shown}", ""


def _signed(gap: float) -> str:
    return f"{100 * gap:+.2f}".replace("-", "−")


def _certainty(verdict: Verdict) -> Tile:
    if not verdict.judged:
        reason = next((table.reason for table in verdict.ranked if table.reason), "")
        return "Certainty", "? unknown", reason or "no answers to single queries were kept", "unsure"
    near = _equals(verdict)
    base, chance_of = _base(verdict), _p(verdict, near)
    if verdict.certain:
        if verdict.lacking:
            told = f"told apart at 95 % from every other loss that was compared{chance_of}; {verdict.lacking}. {base}"
            return "Certainty", "~ so far", told, "unsure"
        return "Certainty", "✓ sure", f"told apart from every other loss at 95 %{chance_of}. {base}", "sure"
    if len(verdict.leaders) > 1:
        return "Certainty", "= tied", f"{series(verdict.leaders)} have the same place", "unsure"
    if verdict.one_run and not near:
        told = f"these networks are told apart{chance_of}, but {luck(verdict)}. {base}"
        return "Certainty", f"~ one {verdict.once}", told, "unsure"
    if verdict.shares_images and not near:
        told = f"told apart by ranks from every other loss{chance_of}, but {luck(verdict)}. {base}"
        return "Certainty", "~ shared images", told, "unsure"
    who = near[0] if len(near) == 1 else f"{len(near)} others"
    return "Certainty", "~ not sure", f"cannot be told apart from {who}{chance_of}. {base}", "unsure"


def _base(verdict: Verdict) -> str:
    """What the certainty rests on and, where it is none, what may bring it."""
    if verdict.friedman is not None:
        data = len({table.data for table in verdict.ranked})
        made = f"{count(len(verdict.ranked), 'experiment')} on {count(data, 'data set')}"
        more = "more data sets"  # networks on one would share its images
    else:
        [table] = verdict.ranked
        found = table.comparison
        assert found is not None  # it is judged by this
        classes = count(found.classes, "test class", "test classes")
        runs = count(1 if table.copied else len(table.parts), "run")
        made = f"{classes}, {count(found.queries, 'query', 'queries')}, {runs} each"
        more = "more seeds" if verdict.one_run and not _equals(verdict) else "more seeds or test classes"
        if found.classes < least_classes(len(table.labels)):  # nothing else can help
            more = "more test classes"
    return f"{made}." if verdict.certain else f"{made}; {more} may tell."


def _p(verdict: Verdict, near: Sequence[str]) -> str:
    """The p-value that the certainty rests on, where one does."""
    test = verdict.friedman
    if test is not None:
        # With the losses different as a whole, single ones are told apart by the critical difference, which has no p.
        return "" if test.significant and near else f" ({chance(test.p)})"
    found = verdict.ranked[0].comparison
    if found is None:
        return ""
    labels = verdict.ranked[0].labels
    first = labels.index(verdict.standings[0].label)
    if near:
        whose = f" for {near[0]}" if len(near) > 1 else ""
        return f" ({chance(found.p[first, labels.index(near[0])])}{whose})"
    return f" ({chance(max(found.p[first, at] for at in range(len(labels)) if at != first))} at most)"


def _cost(bench: Bench, verdict: Verdict) -> Tile:
    """Seconds of a run over all ranked experiments, beside the quickest loss and the equals that are quicker."""
    spent = {
        entry.label: [summary.cost(bench.counted(table, entry.label), "seconds") for table in verdict.ranked]
        for entry in verdict.standings
    }
    total = {label: sum(values) / len(values) for label, values in spent.items()}
    known = {label: value for label, value in total.items() if math.isfinite(value) and value > 0}
    first = verdict.standings[0].label
    if first not in known:
        return "Cost", "", "", ""
    equals = [*verdict.leaders[1:], *_equals(verdict)]
    said = [f"{_once(bench, verdict, list(known))}."]
    peaks = [summary.cost(bench.counted(table, first), "peak_bytes") for table in verdict.ranked]
    takes = [f"{bytes_of(max(peaks))} of device memory"] if all(math.isfinite(peak) for peak in peaks) else []
    lengths = {label: bench.counted(verdict.ranked[0], label)[0].total for label in spent}
    if lengths[first] > min(lengths.values()):
        takes.append(f"vectors {lengths[first] / min(lengths.values()):g} times as long as the shortest")
    if takes:
        said.append(f"{_capital(', '.join(takes))}.")
    return "Cost", seconds_of(known[first]), " ".join([*said, _quicker(known, first, equals)]), ""


def _once(bench: Bench, verdict: Verdict, labels: Sequence[str]) -> str:
    """What the seconds are of."""
    runs = [run for table in verdict.ranked for label in labels for run in bench.counted(table, label)]
    shared = summary.sharing(runs)
    said = "to train once" + (", on average" if len(verdict.ranked) > 1 else "")
    said += f", while {shared} shared the device" if shared else ""
    return said + (f" ({summary.UNKNOWN_SHARING})" if summary.sharing_unknown(runs) else "")


def _quicker(known: dict[str, float], first: str, equals: Sequence[str]) -> str:
    """A quicker loss that may be as good, else the quickest of all: one of them is enough for a tile."""
    cheaper = [label for label in equals if known.get(label, math.inf) < 0.9 * known[first]]
    if cheaper:
        best = min(cheaper, key=lambda label: (known[label], label))
        return f"{best} may be as good, in {seconds_of(known[best])}."
    quick = min(known, key=lambda label: (known[label], label))
    return "The quickest of all." if quick == first else f"The quickest, {quick}, takes {seconds_of(known[quick])}."


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
