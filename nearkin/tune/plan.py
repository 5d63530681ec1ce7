"""What is searched for one loss: the settings that stay, the parameters that change, and a run made of both."""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from nearkin import checks, losses, miners
from nearkin.train.settings import Train
from nearkin.tune import ranges
from nearkin.tune.ranges import Parameter
from nearkin.tune.spaces import COMMON, SPACES, Space

OWN = "own"
INVERSE = "_inverse"
# What a search must not change: where the result lies, what is measured, and how.
FIXED = ("data", "recipe", "protocol", "ratio", "folds", "fold", "split_seed", "audit", "test", "loss", "ks")

Values = dict[str, Any]


@dataclass(frozen=True)
class Plan:
    """A loss, its settings before the search, and the parameters to search."""

    loss: str
    base: Train
    space: Space

    @functools.cached_property
    def start(self) -> Values:
        """The settings as they are, each parameter moved to the nearest value of its range."""
        return {name: parameter.snap(self._before(name)) for name, parameter in self.space.items()}

    def _before(self, name: str) -> Any:
        if name == "loss_lr":
            return self.base.lr * self.base.loss_multiplier
        key = name.removesuffix(INVERSE)
        value = self._loss_setting(key) if key in own(self.loss) else getattr(self.base, key)
        if name.endswith(INVERSE):
            return 1 / value if value else math.inf
        return value if value is not None else 0

    def _loss_setting(self, name: str) -> Any:
        return getattr(losses.example(self.loss, self.base.loss_settings), name)

    def snap(self, values: Mapping[str, Any]) -> Values:
        return {name: parameter.snap(values[name]) for name, parameter in self.space.items()}

    @property
    def size(self) -> int | None:
        """How many different settings there are; None: no end of them."""
        counts = [parameter.count for parameter in self.space.values()]
        return None if None in counts else math.prod(count for count in counts if count)

    def settings(self, values: Mapping[str, Any], out: str = "") -> Train:
        """The settings of a run with these parameters: it validates, and leaves the test set alone."""
        changes: dict[str, Any] = {}
        table = dict(self.base.loss_settings)
        for name, value in values.items():
            if name.endswith(INVERSE):
                table[name.removesuffix(INVERSE)] = 1 / value
            elif name in own(self.loss):
                table[name] = value
            elif name != "loss_lr":
                changes[name] = value
        if "loss_lr" in values:
            changes["loss_multiplier"] = values["loss_lr"] / changes.get("lr", self.base.lr)
        return replace(self.base, **changes, loss_settings=table, out=out)

    def fixed(self) -> dict[str, Any]:
        """What must stay the same for as long as a study goes on, in the form in which JSON gives it back."""
        space = {name: parameter.record() for name, parameter in self.space.items()}
        found: dict[str, Any] = json.loads(json.dumps({**self.base.identity(), "ranges": space}))
        return found

    def accepted(self, values: Mapping[str, Any], out: str = "") -> Train:
        """The settings of a run with these parameters; raise where training or the loss refuses them."""
        found = self.settings(values, out)
        losses.example(self.loss, found.loss_settings)
        return found

    def check(self) -> None:
        """Raise if a setting of the loss is misspelt or out of its limits, before any work is done."""
        for name, parameter in self.space.items():
            if name.removesuffix(INVERSE) in own(self.loss):
                for value in parameter.ends():
                    self._check_end(name, value)
        self.accepted(self.start)

    def _check_end(self, name: str, value: Any) -> None:
        """Raise if the loss refuses the value whatever the other settings are: with others the same value may be fine."""
        owner, limits = f"ranges of {self.loss}", losses.LOSSES[self.loss].limits
        if name in limits:
            checks.setting(owner, name, value, limits[name])
        elif name.endswith(INVERSE):
            inverse = (1 / value if value else math.inf) if isinstance(value, int | float) else value
            checks.setting(owner, f"1 / {name}", inverse, limits[name.removesuffix(INVERSE)])
        else:
            try:
                miners.resolve(self.loss, value)
            except (ValueError, TypeError) as error:
                raise ValueError(f"{owner}: {error}") from None


def own(loss: str) -> set[str]:
    """The settings of a loss that can be searched."""
    cls = losses.LOSSES[loss]
    found = {name for name in cls.limits if name not in ("classes", "lr_multiplier")}  # loss_multiplier stands for it
    return found | {"miner"} if issubclass(cls, losses.PairLoss) else found


def space(loss: str, names: str, given: Mapping[str, Any]) -> Space:
    """The parameters of these comma-separated names; "own" stands for those the loss brings. Given ranges go first.

    >>> space("proxy_anchor", "own,lr", {"scale": [16, 32, 64]})["scale"]
    Choice(choices=(16, 32, 64))
    """
    brought = SPACES[loss]
    found: Space = {}
    for word in filter(None, (word.strip() for word in names.split(","))):
        for name in brought if word == OWN else (word,):
            found[name] = _parameter(loss, name, given.get(name))
    if not found:
        raise ValueError(f"search must name at least one parameter, got {names!r}; write own, or names such as lr.")
    if "loss_lr" in found and "loss_multiplier" in found:
        raise ValueError(
            f"search must not hold both loss_lr and loss_multiplier, which say the same, got {', '.join(found)} "
            f"for {loss}; leave one out."
        )
    return found


def _parameter(loss: str, name: str, given: object) -> Parameter:
    mine, training = own(loss), _training()
    key = name.removesuffix(INVERSE)
    if key not in mine and name not in training and name != "loss_lr":
        raise ValueError(checks.unknown(f"search: parameter of {loss}", name, mine | set(training) | {"loss_lr"}))
    known = SPACES[loss].get(name) or COMMON.get(name)
    if isinstance(given, Mapping) and "choices" not in given:
        limit = losses.LOSSES[loss].limits.get(name) if name in mine else None
        whole = limit.whole if isinstance(limit, checks.Limit) else training.get(name) is int
        return ranges.read(name, {"whole": whole, **given}, known)
    if given is not None and given is not True:
        return ranges.read(name, given)
    if known is None:
        raise ValueError(
            f"search: {name} of {loss} has no range of its own, got none; give one, such as "
            f"--ranges '{name}={{low=0,high=1}}' or --ranges '{name}=[1,2]'."
        )
    return known


def _training() -> dict[str, type]:
    """The settings of training that can be searched, and their types."""
    return {
        field.name: field.metadata["type"]
        for field in fields(Train)
        if field.metadata["type"] in (int, float, str) and not field.metadata["machine"] and field.name not in FIXED
    }
