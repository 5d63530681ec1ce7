"""Real birds: every loss on CUB-200-2011 with a ResNet-50, as `nearkin train` does it.

    python benchmarks/cub.py --root CUB_200_2011 --weights resnet50.safetensors --out folder

Runs share the device: several processes each take the next run. Every run is a run folder; finished ones are skipped, so
that a stopped benchmark goes on. `--validate` trains on the first half of the training classes and measures the second
half: settings are chosen there, and the test classes are never read. Results go to results.json in the folder.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import statistics
import sys
import time
import traceback
from pathlib import Path
from typing import Any

LMH = {"levels": "lmh"}
# What is run: a name, the loss, and what differs from the default recipe of that loss.
RUNS: dict[str, tuple[str, dict[str, Any]]] = {
    "proxy_anchor": ("proxy_anchor", {}),
    "multi_similarity": ("multi_similarity", {}),
    "soft_triple": ("soft_triple", {}),
    "lifted_structure": ("lifted_structure", {}),
    "proxy_nca": ("proxy_nca", {}),
    "margin": ("margin", {}),
    "contrastive": ("contrastive", {}),
    "arcface": ("arcface", {}),
    "triplet": ("triplet", {}),
    "n_pair": ("n_pair", {}),
    "ranked_list": ("ranked_list", {}),
    "ranked_list L/M/H": ("ranked_list", LMH),
    "raw + vthm": ("raw", {}),
    "nra": ("nra", {}),
    "proxy_repulsion 2": ("proxy_repulsion", {"loss_settings": {"variant": 2}}),
}


def settings_of(name: str, seed: int, options: argparse.Namespace, overrides: dict[str, Any]) -> Any:
    from nearkin.train.settings import resolve

    loss, own = RUNS[name]
    common = {
        "data": "folder" if options.validate else "cub200",
        "root": options.root,
        "packs": str(Path(options.packs)),
        "network": "resnet50",
        "weights": options.weights,
        "network_settings": json.loads(options.network_settings),
        "loss": loss,
        "seed": seed,
        "evaluate_every": options.evaluate_every,
        "compile": options.compile,
        "checkpoint_every": 1e9,
        "out": str(Path(options.out) / "runs" / f"{name.replace(' ', '_').replace('/', '')}-{seed}-{options.tag}"),
    }
    return resolve(common, own, overrides)


def work(number: int, jobs: Any, done: Any, options: argparse.Namespace) -> None:
    from nearkin.train.loop import train

    while True:
        job = jobs.get()
        if job is None:
            return
        name, seed, tag, overrides = job
        options.tag = tag
        begun = time.perf_counter()
        try:
            settings = settings_of(name, seed, options, overrides)
            path = Path(settings.out) / "metrics.json"
            result = json.loads(path.read_bytes()) if path.exists() else train(settings)
            done.put(
                {
                    "run": name,
                    "seed": seed,
                    "tag": tag,
                    "overrides": overrides,
                    "wall": round(time.perf_counter() - begun, 1),
                    **result,
                }
            )
        except Exception as error:
            traceback.print_exc()
            done.put(
                {
                    "run": name,
                    "seed": seed,
                    "tag": tag,
                    "overrides": overrides,
                    "error": f"{type(error).__name__}: {error}",
                }
            )


def line(found: dict[str, Any]) -> str:
    if "error" in found:
        return f"{found['run']:20s} seed {found['seed']} {found['tag']}: {found['error'][:200]}"
    shares = " ".join(f"{100 * found[f'recall@{k}']:5.1f}" for k in (1, 2, 4, 8))
    best = found.get("test_feedback", {})
    return (
        f"{found['run']:20s} seed {found['seed']} {found['tag']:14s} R {shares}  MAP@R {100 * found['map@r']:.1f} "
        f"NMI {100 * found['nmi']:.1f}  {found['seconds']:.0f} s (wall {found['wall']:.0f}) "
        f"{found['images_per_second']:,.0f} img/s "
        f"{found.get('peak_bytes', 0) / 2**30:.1f} GiB  best {100 * best.get('recall@1', 0):.1f} @ {best.get('best_epoch')}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", required=True, help="CUB-200-2011: class folders, or the official layout")
    parser.add_argument("--weights", required=True, help="ImageNet weights of ResNet-50")
    parser.add_argument("--network-settings", default="{}", help="JSON, such as the stride variant of the weights")
    parser.add_argument("--out", required=True, help="folder of the runs and results.json")
    parser.add_argument("--packs", default="packs", help="folder of decoded images")
    parser.add_argument("--only", nargs="*", default=list(RUNS), help="runs by name")
    parser.add_argument("--seeds", type=int, nargs="*", default=[0, 1, 2])
    parser.add_argument("--workers", type=int, default=3, help="runs at a time")
    parser.add_argument("--evaluate-every", type=int, default=2)
    parser.add_argument("--compile", action="store_true")
    parser.add_argument(
        "--validate", action="store_true", help="root holds the training classes only; settings are chosen here"
    )
    parser.add_argument("--variants", default="", help="JSON file: list of [run, tag, settings] to run instead")
    parser.add_argument("--seconds", type=float, default=1e9, help="start no run after so many seconds")
    options = parser.parse_args()
    os.makedirs(options.out, exist_ok=True)
    jobs_list = [(name, seed, "default", {}) for seed in options.seeds for name in options.only]
    if options.variants:
        jobs_list = [
            (name, seed, tag, own)
            for seed in options.seeds
            for name, tag, own in json.loads(Path(options.variants).read_text())
        ]
    begun = time.perf_counter()
    context = multiprocessing.get_context("spawn")
    jobs, done = context.Queue(), context.Queue()
    workers = [context.Process(target=work, args=(n, jobs, done, options)) for n in range(options.workers)]
    for worker in workers:
        worker.start()
    waiting, running, results = list(jobs_list), 0, []
    while waiting or running:
        while waiting and running < options.workers and time.perf_counter() - begun < options.seconds:
            jobs.put(waiting.pop(0))
            running += 1
        if not running:
            break
        found = done.get()
        running -= 1
        results.append(found)
        print(line(found), flush=True)
        Path(options.out, "results.json").write_text(json.dumps(results, indent=1))
    for _ in workers:
        jobs.put(None)
    print(f"\n{len(results)} runs, {len(waiting)} not started, {time.perf_counter() - begun:.0f} s")
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for found in results:
        if "error" not in found:
            groups.setdefault((found["run"], found["tag"]), []).append(found)
    for (name, tag), runs in sorted(groups.items(), key=lambda item: -statistics.mean(r["recall@1"] for r in item[1])):
        means = " ".join(f"{100 * statistics.mean(r[f'recall@{k}'] for r in runs):5.1f}" for k in (1, 2, 4, 8))
        print(f"{name:20s} {tag:14s} {len(runs)} seeds  R {means}")


def page() -> None:
    """Write docs/cub.md from benchmarks/results/cub.json."""
    from harness import RESULTS, ROOT

    content = json.loads((RESULTS / "cub.json").read_bytes())
    where = content["conditions"]
    groups: dict[str, list[dict[str, Any]]] = {}
    for found in content["runs"]:
        groups.setdefault(found["run"], []).append(found)
    head = ["loss", "seeds", "R@1", "R@2", "R@4", "R@8", "MAP@R", "NMI", "seconds", "GiB", "best epoch R@1"]
    lines = ["| " + " | ".join(head) + " |", "|---|" + "---:|" * (len(head) - 1)]
    for name, runs in sorted(groups.items(), key=lambda item: -_mean(item[1], "recall@1")):
        first = f"{100 * _mean(runs, 'recall@1'):.1f}"
        if len(runs) > 1:
            first += f" ± {100 * statistics.stdev(run['recall@1'] for run in runs):.1f}"
        cells = [f"{100 * _mean(runs, key):.1f}" for key in ("recall@2", "recall@4", "recall@8", "map@r", "nmi")]
        best = 100 * statistics.mean(run["test_feedback"]["recall@1"] for run in runs)
        memory = max(run["peak_bytes"] for run in runs) / 2**30
        seconds = _mean(runs, "seconds")
        lines.append(
            f"| {name} | {len(runs)} | {first} | {' | '.join(cells)} | {seconds:.0f} | {memory:.1f} | {best:.1f} |"
        )
    text = f"""# Real birds

CUB-200-2011, ResNet-50 with ImageNet weights, 512 dimensions (L/M/H: 3 x 512), the default recipe:
{content["epochs"]} epochs, the last one measured; mean over seeds, with their sample standard deviation where there
are several. An untrained head gives R@1 about 52. The last column is the best of the epochs that were measured, chosen
on the test set (test feedback): it flatters, and stands here only to compare with papers that do the same.

{chr(10).join(lines)}

{content["note"]} {where["device"]}, torch {where["versions"]["torch"]}, commit {where["commit"]}, `{where["command"]}`.
"""
    (ROOT / "docs" / "cub.md").write_text(text)


def _mean(runs: list[dict[str, Any]], key: str) -> float:
    return statistics.mean(run[key] for run in runs)


if __name__ == "__main__":
    if "--page" in sys.argv:
        page()
    else:
        main()
