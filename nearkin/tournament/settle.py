"""From the results of a benchmark to one verdict."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nearkin import checks
from nearkin.results import MISSING, Result
from nearkin.tournament import sentences
from nearkin.tournament.blocks import complete
from nearkin.tournament.experiment import Experiment, experiments
from nearkin.tournament.friedman import Friedman, friedman
from nearkin.tournament.groups import groups, letters
from nearkin.tournament.ranks import Ranking
from nearkin.tournament.unchosen import unchosen
from nearkin.tournament.unfinished import unfinished
from nearkin.tournament.unlike import unlike
from nearkin.tournament.untrained import untrained
from nearkin.tournament.verdict import Standing, Verdict, shared_images
from nearkin.tournament.words import no_metric

# Where results were chosen in several ways, the most careful one is judged.
CAREFUL = ("cross_validation", "fixed_validation", "last_epoch", "test_feedback")


class TooFewError(ValueError):
    """There are no two losses to compare: no fault of the results, of which a page can still show what there is."""


def settle(
    results: Sequence[Result],
    folder: str | Path,
    metric: str = "recall@1",
    *,
    protocol: str = "",
    seed: int = 0,
) -> Verdict:
    """Who wins by ``metric``, and is it more than chance.

    ``results`` are those of ``nearkin.results.read(folder)``. Several experiments (data sets, networks, sizes) are compared
    by ranks and the Friedman test, one by the answers to its queries. Protocols are never mixed: the most careful one there
    is judged, or the one asked for.
    """
    if not results:
        raise ValueError("results must hold at least one run, got none; run nearkin bench first.")
    _check_metric(results, metric)
    chosen, others = _protocol(results, protocol)
    judged = [result for result in results if result.protocol == chosen]
    tables = experiments(judged, folder, metric, seed=seed)
    counted = _counted(judged, tables)
    notes = [
        *sentences.other_protocols(chosen, others),
        *unlike(counted),
        *untrained(counted, tables, metric),
        *unchosen(counted, folder),
    ]
    return judge(tables, metric, notes=notes, lacking=unfinished(results), seed=seed)


def judge(
    tables: Sequence[Experiment],
    metric: str,
    *,
    notes: Sequence[str] = (),
    lacking: str = "",
    seed: int = 0,
) -> Verdict:
    """The verdict on experiments of one protocol, wherever their scores come from; ``lacking``: what is missing so far."""
    holes = [hole for table in tables for hole in table.holes]
    labels = list(dict.fromkeys(label for table in tables for label in table.labels))
    if len(labels) < 2:
        strangers = next((table for table in tables if len(table.finished) > 1), None)
        raise TooFewError(sentences.no_common_run(strangers) if strangers else sentences.too_few(labels, holes))
    block = complete({label: [n for n, table in enumerate(tables) if label in table.labels] for label in labels})
    if len(block.rows) < 2:
        raise TooFewError(
            "a tournament needs at least 2 losses with runs of the same experiment (data set, network, dimensions, "
            f"protocol, fold and seed), got none in common; run nearkin bench with one grid for {', '.join(labels)}."
        )
    ranked = [tables[number] for number in block.columns]
    holes += sentences.left_out(tables, block.rows_out, block.columns_out, block.rows)
    scores = np.array([[table.scores[table.labels.index(label)] for label in block.rows] for table in ranked])
    ranking = Ranking.of(block.rows, scores)
    test = friedman(scores, seed=seed) if len(ranked) > 1 else None
    single = ranked[0] if test is None else None
    order = _order(ranking, scores)
    apart = _apart(test, single, block.rows)
    sets = [] if apart is None else groups(apart[np.ix_(order, order)])
    marks = letters(sets, len(order))
    standings = tuple(_standing(ranking, place, single, mark) for place, mark in zip(order, marks, strict=True))
    leaders = tuple(entry.label for entry in standings if math.isclose(entry.mean, standings[0].mean, abs_tol=1e-9))
    ahead = bool(sets) and sets[0] == (0,) and not any(0 in members for members in sets[1:])
    # What may have made the difference besides the loss: luck in training, or classes that many experiments share.
    sound = single.repeats > 1 if single is not None else not shared_images(ranked)
    verdict = Verdict(
        metric=metric,
        protocol=ranked[0].protocol,
        leaders=leaders,
        certain=ahead and sound,
        judged=apart is not None,
        sentence="",
        standings=standings,
        groups=tuple(tuple(standings[place].label for place in members) for members in sets if len(members) > 1),
        ranked=tuple(ranked),
        experiments=tuple(tables),
        friedman=test,
        notes=(
            *notes,
            *sentences.notes(ranked, test, len(block.rows)),
            *(sentences.alone(ranked, leaders[0]) if test else ()),
        ),
        holes=tuple(holes),
        lacking=lacking,
    )
    return sentences.spoken(verdict)


def _counted(results: Sequence[Result], tables: Sequence[Experiment]) -> list[Result]:
    """The runs that scores are made of."""
    parts = {(table.data, table.network, table.dim, table.protocol): table for table in tables}
    found = []
    for result in results:
        table = parts[result.experiment]
        if result.done and result.label in table.labels and (result.fold, result.seed) in table.parts:
            found.append(result)
    return found


def _check_metric(results: Sequence[Result], metric: str) -> None:
    known = {name for result in results for name in result.metrics}
    if known and metric not in known:
        raise ValueError(no_metric(metric, known))


def _protocol(results: Sequence[Result], asked: str) -> tuple[str, list[str]]:
    found = list(dict.fromkeys(result.protocol for result in results))
    if asked and asked not in found:
        raise ValueError(checks.unknown("protocol", asked, found))
    careful = [name for name in CAREFUL if name in found] + [name for name in found if name not in CAREFUL]
    done = {result.protocol for result in results if result.done}
    chosen = asked or next((name for name in careful if name in done), careful[0])
    begun = {result.protocol for result in results if result.status != MISSING}
    return chosen, [name for name in found if name != chosen and name in begun]


def _order(ranking: Ranking, scores: NDArray[np.float64]) -> list[int]:
    """Places of the losses by mean rank; equals by mean score, then as they came."""
    keys = (-np.round(scores.mean(0), 9), np.round(ranking.mean, 9))
    return [int(place) for place in np.lexsort(keys)]


def _apart(test: Friedman | None, single: Experiment | None, rows: tuple[str, ...]) -> NDArray[np.bool_] | None:
    if test is not None:
        return test.apart
    if single is None or single.comparison is None:
        return None
    places = [single.labels.index(label) for label in rows]
    return np.asarray(single.comparison.apart[np.ix_(places, places)])


def _standing(ranking: Ranking, place: int, single: Experiment | None, mark: str) -> Standing:
    own = ranking.ranks[:, place]
    score = low = high = math.nan
    if single is not None:
        column = single.labels.index(ranking.labels[place])
        score = float(single.scores[column])
        if single.comparison is not None:
            low = float(single.comparison.intervals.low[column])
            high = float(single.comparison.intervals.high[column])
    return Standing(
        label=ranking.labels[place],
        ranks=tuple(float(entry) for entry in own),
        total=float(ranking.total[place]),
        mean=float(ranking.mean[place]),
        deviation=float(ranking.deviation[place]),
        best=int((own == ranking.ranks.min(1)).sum()),
        letters=mark,
        score=score,
        low=low,
        high=high,
    )
