"""What the papers' recipes give with a ResNet-50 on CUB-200-2011: a results file from the folders of finished runs.

    nearkin train --data cub200 --root CUB_200_2011 --recipe NAME --weights resnet50.safetensors --out runs/NAME
    python benchmarks/recipes.py runs/proxy_anchor runs/deep_dive --note "Both ran at once on one device."

Writes benchmarks/results/recipes.json, with which a test compares the numbers in the recipes' docstrings. For runs that were
made on another machine, `--device`, `--torch` and `--commit` say on which and with what. Paths of that machine are not kept.
"""

from __future__ import annotations

import argparse
import json
import shlex
from pathlib import Path
from typing import Any

from harness import conditions, write

from nearkin.train.folder import RunFolder
from nearkin.train.settings import Train, resolve

WEIGHTS = "resnet50.safetensors"
MEASURES = ("recall@1", "recall@2", "recall@4", "recall@8", "map@r", "nmi", "queries")
COSTS = ("epoch", "step", "seconds", "images", "images_per_second", "peak_bytes")


def command(settings: Train, given: dict[str, Any]) -> str:
    """The command of a run, with ``given`` as options and paths that say what lies there."""
    words = ["nearkin", "train", "--data", settings.data, "--root", "CUB_200_2011", "--recipe", settings.recipe]
    words += ["--weights", WEIGHTS]
    for name, value in given.items():
        option = "--" + name.replace("_", "-")
        if isinstance(value, dict):
            pairs = (f"{key}={one if isinstance(one, str) else json.dumps(one)}" for key, one in value.items())
            words += [option, *pairs]
        elif isinstance(value, bool):
            words.append(option if value else option.replace("--", "--no-", 1))
        else:
            words += [option, str(value)]
    return shlex.join([*words, "--out", f"runs/{settings.recipe}"])


def found(run: Path) -> dict[str, Any]:
    """What one run measured, what it cost, and its settings."""
    settings = RunFolder(run).settings()
    result = json.loads((run / "metrics.json").read_bytes())
    own = resolve({"data": settings.data, "recipe": settings.recipe}).identity()
    identity = settings.identity() | {"weights": ""}
    given = {name: value for name, value in identity.items() if value != own[name]}
    return {
        "recipe": settings.recipe,
        "command": command(settings, given),
        **{name: result[name] for name in (*MEASURES, *COSTS)},
        "protocol": result["protocol"],
        "test_feedback": {name: result["test_feedback"][name] for name in ("best_epoch", "recall@1")},
        "settings": identity | {"weights": WEIGHTS},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", help="folders of finished runs")
    parser.add_argument("--device", default="", help="the device they ran on; default: this machine's")
    parser.add_argument("--torch", default="", help="the version of torch; default: this one")
    parser.add_argument("--commit", default="", help="the commit; default: this one")
    parser.add_argument("--note", default="", help="what else a reader must know, such as what ran beside them")
    options = parser.parse_args()
    here = conditions()
    where = {
        "device": options.device or here["device"],
        "versions": {"torch": options.torch or here["versions"]["torch"]},
        "commit": options.commit or here["commit"],
        "date": here["date"],
    }
    runs = [found(Path(run)) for run in options.runs]
    for run in runs:
        print(f"{run['recipe']}: R@1 {100 * run['recall@1']:.1f}, {run['seconds']:.0f} s, {run['command']}")
    print("saved", write("recipes.json", {"conditions": where, "note": options.note, "runs": runs}))


if __name__ == "__main__":
    main()
