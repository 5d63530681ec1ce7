"""What there is to measure on a GPU: the commands of ``everything.py``."""

from __future__ import annotations

import importlib.util
import json
import math
import sys
from dataclasses import dataclass

from harness import ENDED, ROOT

GRIDS = {"birds": "benchmarks/birds.toml", "ablations": "benchmarks/ablations.toml", "folds": "cross_validation"}
PARTS = ("reach", "share", "cached", "profile")


@dataclass(frozen=True)
class Step:
    """A command and where its results go.

    - ``least``: it is not begun with fewer seconds left;
    - ``most``: seconds after which it is stopped, so that what hangs does not take the time of others;
    - ``parts``: what its result must have to be one;
    - ``grid``: the folder of its runs, if it does runs, which are packed;
    - ``packing``: seconds that bringing its result away takes;
    - ``failed``: the exit code with which it has come to its end though some of it failed;
    - ``needs``: modules that must be there, or it would end at once.
    """

    command: list[str]
    result: str
    least: float
    most: float = math.inf
    parts: tuple[str, ...] = ()
    grid: str = ""
    packing: float = 2
    failed: int = ENDED
    needs: tuple[str, ...] = ()

    def lacks(self) -> list[str]:
        """Modules that it needs and that are not there."""
        return [name for name in self.needs if importlib.util.find_spec(name) is None]


def steps(root: str, weights: str, network: str, workers: int) -> dict[str, Step]:
    """The steps, the most telling first. Those that train need data."""

    def script(name: str, *words: str) -> list[str]:
        return [sys.executable, str(ROOT / "benchmarks" / f"{name}.py"), *words, "--go-on"]

    def engine(*parts: str, least: float, most: float) -> Step:
        command = script("engine", "--ahead", "--parts", *parts)
        return Step(command, "engine-cuda.json", least, most, parts, needs=("pytorch_metric_learning",))

    found = {
        "engine": engine("small", "large", least=60, most=300),
        "exact": engine("exact", "exact_large", "exact_float32", least=60, most=240),
        "million": Step(script("million"), "evaluation-cuda.json", 60, 240, ("retrieval", "clustering")),
        "huge": engine("huge", least=60, most=150),
    }
    if root:
        data = ["--root", root, "--weights", weights, "--network-settings", network]
        for part in PARTS:
            command = script("training", *data, "--parts", part)
            found[f"training_{part}"] = Step(command, "training-cuda.json", 120, 300, (part,))
    tools = ("pytest", "xdist", "hypothesis")
    found["tests"] = Step(script("gpu_tests", "-n", "8"), "gpu-tests.json", 150, 300, ("tests",), needs=tools)
    found["sizes"] = engine("sizes", least=60, most=240)
    found["profile"] = engine("profile", least=40, most=150)
    if root:
        place = [f"root={root}", f"weights={weights}", f"network_settings={_toml(network)}"]
        for name, grid in GRIDS.items():
            folder = f"bench/{name}"
            words = ["bench", grid, "--out", folder, "--workers", str(workers), "--settings", *place]
            command = [sys.executable, "-m", "nearkin", *words]
            found[name] = Step(command, f"{name}.tar.xz", 60, grid=folder, packing=15, failed=1)
    return found


def chosen(found: dict[str, Step], names: list[str]) -> dict[str, Step]:
    """The steps of these names in this order; the beginning of several names stands for all of them."""
    several = {name: [key for key in found if key == name or key.startswith(f"{name}_")] for name in names}
    for name, keys in several.items():
        if not keys:
            raise ValueError(name)
    return {key: found[key] for keys in several.values() for key in keys}


def _toml(network: str) -> str:
    return "{" + ", ".join(f"{key} = {json.dumps(value)}" for key, value in json.loads(network).items()) + "}"
