"""The weight that each loss gives a pair, drawn from the loss itself, with settings that a person may change."""

from __future__ import annotations

import functools
import json
import math
from typing import Any

from nearkin import checks, losses, weights
from nearkin.checks import Limit

POINTS = 61
PROXY = {"classes": 10, "dim": 8}
WIDE = 4.0
"""A slider without an end of its own reaches this many times the default."""


def listed() -> list[dict[str, Any]]:
    """Every loss: its name, what it does, and its settings with their ranges."""
    found = []
    for name in losses.names():
        kind = losses.LOSSES[name]
        if kind.name != name:
            continue  # another name of a loss that is listed
        first = (kind.__doc__ or "").strip().splitlines()[0].replace("``", "")
        proxies = issubclass(kind, losses.ProxyLoss)
        found.append({"name": name, "about": first, "proxies": proxies, "settings": _settings(name)})
    return found


def curve(name: str, given: str = "{}") -> dict[str, Any]:
    """Weights of a positive and of a negative pair against their similarity; ``given``: settings as JSON."""
    if name not in losses.LOSSES:
        raise ValueError(checks.unknown("loss", name, losses.names()))
    try:
        settings = json.loads(given)
    except ValueError:
        settings = None
    if not isinstance(settings, dict) or len(given) > 2000:
        raise ValueError(f"settings must be a JSON object of settings of {name}, got something else; move a slider.")
    known = {entry["name"]: entry for entry in _settings(name)}
    for key, value in settings.items():
        if key not in known:
            raise ValueError(checks.unknown(f"{name}: setting", key, known))
        high = known[key].get("high") if known[key].get("step") == 1 else None
        if high is not None and isinstance(value, (int, float)) and value > high:  # counts cost time and memory
            raise ValueError(f"{name}: {key} must be at most {high} here, got {value}; move the slider.")
    return _curve(name, json.dumps(settings, sort_keys=True))


@functools.lru_cache(512)
def _curve(name: str, settings: str) -> dict[str, Any]:
    try:
        found = weights.curve(_made(name, json.loads(settings)), points=POINTS)
    except (TypeError, RuntimeError) as error:
        raise ValueError(f"{name} has no curve with these settings: {error}") from error
    return {part: _plain(getattr(found, part).tolist()) for part in ("similarity", "positive", "negative")}


@functools.cache
def _settings(name: str) -> list[dict[str, Any]]:
    """Numbers with the range of a slider, and choices with their options."""
    loss, found = _made(name, {}), []
    for key, limit in loss.limits.items():
        value = getattr(loss, key)
        if key in PROXY:
            continue
        if isinstance(limit, tuple):
            options = [option for option in limit if isinstance(option, str)]
            if isinstance(value, str) and len(options) > 1:
                found.append({"name": key, "value": value, "options": options})
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            found.append({"name": key, "value": value, **_range(limit, float(value))})
    return found


def _range(limit: Limit, value: float) -> dict[str, Any]:
    """The ends of a slider, strictly inside open limits, and its step."""
    reach = WIDE * max(abs(value), 0.25)
    low = limit.low if math.isfinite(limit.low) else -reach
    high = limit.high if math.isfinite(limit.high) else max(reach, low + 1)
    if limit.whole:
        low, high = math.ceil(low) + limit.low_open, max(math.floor(min(high, 64)) - limit.high_open, value)
        return {"low": int(low), "high": int(high), "step": 1}
    step = (high - low) / 100
    return {
        "low": round(min(value, low + step) if limit.low_open else low, 6),
        "high": round(high - step if limit.high_open else high, 6),
        "step": round(step, 6),
    }


def _made(name: str, settings: dict[str, Any]) -> Any:
    return losses.example(name, settings, **PROXY).double()


def _plain(values: list[float]) -> list[float | None]:
    """What JSON can hold."""
    return [round(value, 6) if math.isfinite(value) else None for value in values]
