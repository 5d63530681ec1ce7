"""Which parameters to try next: a function of what was tried before, so that a study goes on as if never stopped.

Nothing is tried twice: training is a function of its settings, so a second time would tell nothing new.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from nearkin.train.cache import seed_of
from nearkin.tune.attempt import DONE, PRUNED, RUNNING, WAITING, Attempt, best, key
from nearkin.tune.needs import optuna
from nearkin.tune.plan import Plan, Values
from nearkin.tune.ranges import POINTS, Choice, Parameter, Range

# Trials that TPE draws at random before it learns from them.
RANDOM_FIRST = 8
DRAWS = 64
LARGEST_GRID = 5_000_000


class Pause(enum.Enum):
    """Why there is nothing to try."""

    WAIT = "until others are done"
    OVER = "everything has been tried"


Proposal = Values | Pause
Method = Callable[[Plan, Sequence[Attempt], int, int], Proposal]


def tpe(plan: Plan, tried: Sequence[Attempt], trials: int, seed: int) -> Proposal:
    """First the settings as they are, then some at random, then where good ones are denser than bad ones."""
    known = {attempt.key for attempt in tried}
    if plan.size is not None and len(known) >= plan.size:
        return Pause.OVER
    if key(plan.start) not in known:
        return plan.start
    for draw in range(DRAWS):
        found = plan.snap(_drawn(plan, tried, seed_of(seed, plan.loss, len(tried), draw) % 2**32))
        if key(found) not in known:
            return found
    # It insists on what it knows: the first other point of the grid.
    return grid(plan, tried, trials, seed)


def _drawn(plan: Plan, tried: Sequence[Attempt], seed: int) -> Values:
    """What TPE draws. It learns from failures too, as the worst there is, and takes running trials for such."""
    library = optuna()
    kinds = distributions(plan)
    sampler = library.samplers.TPESampler(n_startup_trials=RANDOM_FIRST, seed=seed)
    study = library.create_study(direction="maximize", sampler=sampler)
    state = library.trial.TrialState
    for attempt in tried:
        done, pruned = attempt.status == DONE, attempt.status == PRUNED
        study.add_trial(
            library.trial.create_trial(
                state=state.COMPLETE if done else state.PRUNED,
                value=attempt.value if done else None,
                params=attempt.parameters,
                distributions=kinds,
                intermediate_values=attempt.curve if done or pruned else {},
            )
        )
    found: Values = study.ask(kinds).params
    return found


def grid(plan: Plan, tried: Sequence[Attempt], trials: int, seed: int) -> Proposal:
    """The points of the grid in an order drawn from the seed."""
    axes = _axes(plan, trials)
    size = math.prod(map(len, axes))
    if size > LARGEST_GRID:
        raise ValueError(
            f"the grid of {plan.loss} must have at most {LARGEST_GRID:,} points, got {size:,}; "
            f"search fewer parameters, give larger steps, or use --method tpe."
        )
    known = {attempt.key for attempt in tried}
    order = np.random.default_rng(seed_of(seed, plan.loss)).permutation(size)
    for number in order:
        place, found = int(number), {}
        for name, axis in zip(plan.space, axes, strict=True):
            place, at = divmod(place, len(axis))
            found[name] = axis[at]
        if key(found) not in known:
            return found
    return Pause.OVER


def _axes(plan: Plan, trials: int) -> list[list[Any]]:
    """The values of each parameter; those without steps get enough of them for all trials."""
    free = sum(parameter.count is None for parameter in plan.space.values())
    stepped = math.prod(parameter.count or 1 for parameter in plan.space.values())
    points = POINTS
    while free and stepped * points**free < trials:
        points += 1
    return [parameter.values(points) for parameter in plan.space.values()]


def one_at_a_time(plan: Plan, tried: Sequence[Attempt], trials: int, seed: int) -> Proposal:
    """The settings as they are, then each parameter in turn, the others as in the best trial so far.

    Each gets its share of the trials, spread evenly over its range. The next one waits until all trials before are done.
    """
    known = {attempt.key: attempt for attempt in tried}
    if key(plan.start) not in known:
        return plan.start
    seen, left = [known[key(plan.start)]], trials - 1
    for place, (name, parameter) in enumerate(plan.space.items()):
        if place and any(attempt.status in (RUNNING, WAITING) for attempt in seen):
            return Pause.WAIT
        chosen = best(seen)
        now = chosen.parameters if chosen else plan.start
        points = spread(parameter, now[name], left // (len(plan.space) - place))
        left -= len(points)
        for value in points:
            point = {**now, name: value}
            if key(point) not in known:
                return point
            seen.append(known[key(point)])
    return Pause.OVER


def spread(parameter: Parameter, now: Any, number: int) -> list[Any]:
    """At most ``number`` values of a parameter other than the present one, evenly over its range."""
    if number < 1:
        return []
    if isinstance(parameter, Range) and parameter.count is None:
        found = parameter.values(number)
        if now in found:  # one more, without the one that is nearest to the present
            found = parameter.values(number + 1)
            found.remove(min(found, key=lambda value: abs(math.log(value / now) if parameter.log else value - now)))
        return found
    others = [value for value in parameter.values() if value != now]
    if len(others) <= number:
        return others
    if isinstance(parameter, Choice):
        return others[:number]
    places = np.linspace(0, len(others) - 1, number).round().astype(int) if number > 1 else [len(others) // 2]
    return [others[place] for place in places]


def distributions(plan: Plan) -> dict[str, Any]:
    """The parameters in the words of Optuna."""
    kinds = optuna().distributions
    found: dict[str, Any] = {}
    for name, parameter in plan.space.items():
        if isinstance(parameter, Choice):
            found[name] = kinds.CategoricalDistribution(parameter.choices)
        elif parameter.whole:
            last = parameter.values()[-1]
            found[name] = kinds.IntDistribution(
                int(parameter.low), last, log=parameter.log, step=int(parameter.step) or 1
            )
        else:
            high = parameter.values()[-1] if parameter.step else parameter.high
            found[name] = kinds.FloatDistribution(parameter.low, high, log=parameter.log, step=parameter.step or None)
    return found


METHODS: dict[str, Method] = {"tpe": tpe, "grid": grid, "one_at_a_time": one_at_a_time}
