"""What a tournament comes to: who leads, by how much, how sure that is, and what it does not say."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from nearkin.tournament.experiment import Experiment
from nearkin.tournament.friedman import Friedman
from nearkin.tournament.words import series


@dataclass(frozen=True, kw_only=True)
class Standing:
    """The place of one loss. Numbers that do not apply are not numbers.

    - ``ranks``: its rank in each experiment of the overall ranking; ``total``, ``mean`` and sample standard ``deviation``
      of them, and in how many it is best (alone or with others);
    - ``score`` with ``low`` and ``high``: mean and 95 % interval as shares of 1, for one experiment only;
    - ``letters``: losses that share a letter cannot be told apart.
    """

    label: str
    ranks: tuple[float, ...]
    total: float
    mean: float
    deviation: float
    best: int
    letters: str = ""
    score: float = math.nan
    low: float = math.nan
    high: float = math.nan


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """Who wins, and is it more than chance.

    - ``leaders``: the loss in first place, or those who share it; ``certain``: whether one leads alone and is told apart
      from every other, in one experiment by more than one seed of each, for a single one tells networks apart, not losses,
      in however many folds; over several by ranks, each on a data set of its own, for experiments that share their test
      images are no independent ones. Seeds are not asked for there: luck in training is another in each experiment, and
      makes its ranks differ;
    - ``sentence`` says it in words, ``notes`` what it does not say, ``holes`` what failed or is missing;
    - ``judged``: whether any test could be made; if not, groups and letters are empty;
    - ``groups``: labels that cannot be told apart, two or more in each;
    - ``ranked``: the experiments that all of ``standings`` took part in; ``experiments``: every one;
    - ``lacking``: how many runs of the grid are missing, in words; empty where it is finished. ``certain`` is of the losses
      that were compared: one that has no run yet may still win.
    """

    metric: str
    protocol: str
    leaders: tuple[str, ...]
    certain: bool
    judged: bool
    sentence: str
    standings: tuple[Standing, ...]
    groups: tuple[tuple[str, ...], ...]
    ranked: tuple[Experiment, ...]
    experiments: tuple[Experiment, ...]
    friedman: Friedman | None
    notes: tuple[str, ...]
    holes: tuple[str, ...]
    lacking: str = ""

    @property
    def winner(self) -> str:
        """The loss in first place, or those who share it, as words."""
        return series(self.leaders)

    @property
    def one_run(self) -> bool:
        """Whether single runs, folds of a single seed or copies of one network were compared by their answers, so that luck
        in training cannot be told from the loss."""
        return self.friedman is None and self.judged and self.ranked[0].repeats == 1

    @property
    def once(self) -> str:
        """What there is one of, if ``one_run``."""
        return "run" if len(self.ranked[0].parts) == 1 or self.ranked[0].copied else "seed"

    @property
    def apart_from_all(self) -> bool:
        """Whether one loss leads alone and is told apart from every other, be it a matter of the loss or not."""
        alone = self.judged and len(self.leaders) == 1
        return alone and not any(self.leaders[0] in group for group in self.groups)

    @property
    def shares_images(self) -> bool:
        """Whether experiments that share their test images were compared by ranks, so that a loss that is good on these
        images is ahead in all of them."""
        return self.friedman is not None and shared_images(self.ranked)

    def record(self) -> dict[str, Any]:
        """Everything as plain values for JSON; what is not a number is None."""
        test = self.friedman
        return {
            "metric": self.metric,
            "protocol": self.protocol,
            "winner": self.winner,
            "leaders": list(self.leaders),
            "certain": self.certain,
            "judged": self.judged,
            "sentence": self.sentence,
            "lacking": self.lacking,
            "standings": [_plain(vars(standing)) for standing in self.standings],
            "groups": [list(group) for group in self.groups],
            "ranked": [experiment.name for experiment in self.ranked],
            "friedman": None if test is None else _plain(vars(test)),
            "experiments": [_experiment(experiment) for experiment in self.experiments],
            "notes": list(self.notes),
            "holes": list(self.holes),
        }


def shared_images(experiments: Sequence[Experiment]) -> bool:
    """Whether some are of one data set."""
    return len({table.data for table in experiments}) < len(experiments)


def _experiment(experiment: Experiment) -> dict[str, Any]:
    found = vars(experiment).copy()
    comparison = found.pop("comparison")
    found["name"] = experiment.name
    if comparison is not None:
        found["comparison"] = vars(comparison) | {"intervals": vars(comparison.intervals)}
    return _plain(found)


def _plain(value: Any) -> Any:
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, dict):
        return {key: _plain(entry) for key, entry in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(entry) for entry in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
