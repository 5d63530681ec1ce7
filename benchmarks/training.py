"""Training on a GPU: what images cost, what gradient caching costs, how soon birds are known, where the time goes.

    python benchmarks/training.py --root CUB_200_2011 --weights resnet50.safetensors
    python benchmarks/training.py ... --parts cached profile
    python benchmarks/training.py ... --go-on                only what was not measured at this commit

Parts, each through `nearkin train`'s own step: *share*, fed from the pack and fed with ready crops by turns; *cached*, all
training images as one ranked list by gradient caching, beside steps of 120; *reach*, seconds of training until R@1 on the
test classes of CUB-200-2011 is 67, in a process of its own that finds nothing compiled; *profile*, kernels of one epoch by
kind. Writes benchmarks/results/training-cuda.json.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import traceback
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from harness import RESULTS, at_hand, conditions, end, write

CACHES = ("TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR")
"""Variables that name the folders of what was compiled."""
RESULT = "training-cuda.json"
STEPS = 12
"""Steps that are profiled."""


@contextlib.contextmanager
def running(options: argparse.Namespace, **changes: Any) -> Iterator[Any]:
    """A run of `nearkin train` that is ready to step."""
    from nearkin.distributed import Ranks
    from nearkin.train import prepare
    from nearkin.train.loop import _Run
    from nearkin.train.screen import Silent

    with tempfile.TemporaryDirectory() as folder:
        settings = settled(options, folder, **changes)
        device = torch.device("cuda", 0)
        with prepare.machine(settings, device):
            run = _Run(settings, device, Ranks(), Silent(), False)
            run._new_layers_only(False)
            run.sampler.set_epoch(0, 0)
            yield run


def settled(options: argparse.Namespace, folder: str, **changes: Any) -> Any:
    from nearkin.train.settings import resolve

    return resolve(
        {
            "data": "cub200", "root": options.root, "weights": options.weights, "packs": options.packs,
            "network_settings": json.loads(options.network_settings), "loss": options.loss, "warm_up": 0,
            "out": str(Path(folder) / "run"), "tensorboard": False, **changes,
        }
    )  # fmt: skip


def epoch(run: Any, steps: int | None = None) -> int:
    """One epoch from the pack, or some steps of it; how many images."""
    run.sampler.set_epoch(0, 0)
    count = 0
    for images, labels, _ in itertools.islice(run._batches(10**6), steps):
        run._one_step(images, labels, 0)
        run.watch.records()
        count += len(labels)
    return count


def rate(function: Callable[[], int]) -> float:
    torch.cuda.synchronize()
    begin = time.perf_counter()
    count = function()
    torch.cuda.synchronize()
    return count / (time.perf_counter() - begin)


def share(options: argparse.Namespace) -> dict[str, Any]:
    with running(options) as run:
        ready = [(images.clone(), labels.clone()) for images, labels, _ in itertools.islice(run._batches(8), 8)]
        run._record(ready[0][0], False)

        def from_memory() -> int:
            count = 0
            for images, labels in itertools.islice(itertools.cycle(ready), run.per_epoch):
                run._one_step(images, labels, 0)
                run.watch.records()
                count += len(labels)
            return count

        rates: dict[str, list[float]] = {"from the pack": [], "ready crops": []}
        for round_ in range(options.rounds + 1):
            for name, function in (("from the pack", lambda: epoch(run)), ("ready crops", from_memory)):
                found = rate(function)
                if round_:
                    rates[name].append(found)
        batch = run.settings.batch
    medians = {name: statistics.median(found) for name, found in rates.items()}
    return {"batch": batch, "images_per_second": rates, "share": medians["from the pack"] / medians["ready crops"]}


def cached(options: argparse.Namespace) -> dict[str, Any]:
    """Images a second of plain steps and of one step over all images, for several sizes of chunk."""
    found: dict[str, Any] = {"images_per_second": {}, "bytes": {}}
    with running(options, loss="ranked_list", sampler="random", batch=120) as run:
        run._record(next(iter(run._batches(1)))[0], False)
        found["images_per_second"]["steps of 120"] = statistics.median([rate(lambda: epoch(run)) for _ in range(3)][1:])
    for chunk in options.chunks:
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        with running(options, loss="ranked_list", sampler="random", batch=options.images, chunk=chunk) as run:
            name = f"{options.images:,} at once, {chunk} at a time"
            rates = [rate(lambda: epoch(run)) for _ in range(4)][1:]
            found["images_per_second"][name] = statistics.median(rates)
            found["bytes"][name] = torch.cuda.max_memory_allocated()
        print(name, round(found["images_per_second"][name]), "images/s", flush=True)
    plain = found["images_per_second"]["steps of 120"]
    best = max(value for name, value in found["images_per_second"].items() if name != "steps of 120")
    return found | {"overhead": plain / best - 1}


def pack(options: argparse.Namespace) -> None:
    """Decode the images, or read them once, so that no part pays for it."""
    from nearkin.distributed import Ranks
    from nearkin.train import prepare
    from nearkin.train.screen import Silent

    with tempfile.TemporaryDirectory() as folder:
        for images in prepare.packs(settled(options, folder), Ranks(), Silent()):
            if images is not None:
                images.verify()


def cold() -> bool:
    """Whether nothing that was compiled before can be found: else compiling seems to take no time."""
    places = [os.environ.get(name) for name in CACHES]
    return all(place and Path(place).is_dir() and not any(Path(place).iterdir()) for place in places)


def reach_alone(options: argparse.Namespace) -> dict[str, Any]:
    """``reach`` in a process of its own, which is the first to compile anything."""
    with tempfile.TemporaryDirectory() as folder:
        places = {name: f"{folder}/{name}" for name in CACHES}
        for place in places.values():
            Path(place).mkdir()
        found = Path(folder) / "found.json"
        words = [sys.executable, str(Path(__file__).resolve()), *sys.argv[1:], "--reach-into", str(found)]
        subprocess.run(words, env=os.environ | places, check=True)
        return dict(json.loads(found.read_text()))


def reach(options: argparse.Namespace, goal: float = 0.67) -> dict[str, Any]:
    """Seconds of training, measurements not counted, until R@1 on the test classes reaches the goal; and apart from them
    what two epochs take longer before anything is compiled than after, where nothing was compiled before, and what
    recording the network's kernels took, where it was done."""
    from nearkin.train.loop import train

    nothing_compiled = cold()
    torch.zeros(1, device="cuda")  # waking the device is no compilation
    with tempfile.TemporaryDirectory() as folder:
        took = []
        for name in ("first", "again"):
            begin = time.perf_counter()
            train(settled(options, f"{folder}/{name}", warm_up=1, epochs=2, evaluate_every=2, protocol="last_epoch"))
            took.append(time.perf_counter() - begin)
        settings = settled(options, folder, warm_up=1, evaluate_every=1, protocol="test_feedback")
        recording = train(settings).get("recording_seconds")
        lines = [json.loads(line) for line in (Path(settings.out) / "log.jsonl").read_bytes().splitlines()]
    seconds = {line["epoch"]: line["seconds"] for line in lines if line["kind"] == "epoch"}
    seen = {line["epoch"]: line["recall@1"] for line in lines if line["kind"] in ("evaluate", "validate", "audit")}
    first = next((number for number in sorted(seen) if seen[number] >= goal), None)
    found = {
        "goal": goal,
        "epoch": first,
        "seconds": None if first is None else seconds[first],
        "recall@1": [[seconds[number], seen[number]] for number in sorted(seen)],
    }
    found |= {"compilation": took[0] - took[1]} if nothing_compiled else {}
    return found if recording is None else found | {"recording": recording}


KINDS = {
    "pooling": ("pool",),
    "compiled, element by element": ("triton_",),
    "convolutions and products": ("conv", "gemm", "cutlass", "sm90", "xmma", "cudnn", "implicit", "nvjet"),
    "shift, shortcut and rectifier in one": ("_forward", "_backward"),
    "optimiser": ("adam", "multi_tensor", "foreach"),
    "crops": ("_boxes", "crop", "grid_sample", "gather", "index", "interp", "upsample"),
    "vectors to length 1": ("_unit", "_through"),
    "sums": ("reduce",),
    "element by element": ("elementwise", "vectorized", "copy", "add", "relu", "triton", "fill", "memset"),
}


def kind(kernel: str) -> str:
    """What a kernel of that name does. Only names as short as ours are known by a part of them that others may have too.

    >>> kind("_forward"), kind("void cudnn::pooling_fw_4d_kernel"), kind("softmax_warp_forward")
    ('shift, shortcut and rectifier in one', 'pooling', 'other')
    """
    name = kernel.lower()
    for found, words in KINDS.items():
        if any(name.startswith(word) if word.startswith("_") else word in name for word in words):
            return found
    return "other"


def profile(options: argparse.Namespace) -> dict[str, Any]:
    """Milliseconds of kernels of some steps by kind, beside what the same steps take when nobody looks."""
    from torch.profiler import ProfilerActivity

    with running(options) as run:
        run._record(next(iter(run._batches(1)))[0], False)
        epoch(run)
        with torch.profiler.profile(activities=[ProfilerActivity.CUDA]) as seen:
            epoch(run, STEPS)
            torch.cuda.synchronize()
        images = run.settings.batch * STEPS
        wall = images / statistics.median(rate(lambda: epoch(run)) for _ in range(3)) * 1e3
    spent: dict[str, float] = defaultdict(float)
    largest: dict[str, float] = defaultdict(float)
    for event in seen.events():
        if event.device_type == torch.profiler.DeviceType.CUDA:
            spent[kind(event.name)] += event.device_time / 1e3
            largest[event.name[:80]] += event.device_time / 1e3
    top = sorted(largest.items(), key=lambda item: -item[1])[:25]
    return {"milliseconds": dict(spent), "steps": STEPS, "wall": wall, "largest": top}


MEASURES: dict[str, Callable[[argparse.Namespace], dict[str, Any]]] = {
    "reach": reach_alone,
    "share": share,
    "cached": cached,
    "profile": profile,
}


def known(part: dict[str, Any] | None, now: dict[str, Any]) -> bool:
    """Whether a part need not be measured again."""
    return part is not None and at_hand(part["conditions"], now)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", required=True)
    parser.add_argument("--weights", required=True)
    parser.add_argument("--network-settings", default="{}")
    parser.add_argument("--packs", default="", help="where decoded images are kept (default: where nearkin keeps them)")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--loss", default="proxy_anchor")
    parser.add_argument("--parts", nargs="*", default=list(MEASURES), choices=list(MEASURES))
    parser.add_argument("--images", type=int, default=5864, help="images of the batch of gradient caching")
    parser.add_argument("--chunks", type=int, nargs="*", default=[120, 240, 488])
    parser.add_argument(
        "--go-on", action="store_true", help="leave parts as they are that were measured at this commit"
    )
    parser.add_argument("--reach-into", default="", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.reach_into:
        Path(options.reach_into).write_text(json.dumps(reach(options)))
        return
    path = RESULTS / RESULT
    result = json.loads(path.read_text()) if path.exists() else {}
    now = conditions()
    left = [part for part in options.parts if not (options.go_on and known(result.get(part), now))]
    if left:
        pack(options)
    failed = []
    for part in left:
        try:
            found = MEASURES[part](options)
        except Exception:  # the other parts are still worth their time
            traceback.print_exc()
            failed.append(part)
            continue
        result[part] = {"conditions": now, **found}
        print(part, json.dumps({name: value for name, value in found.items() if name != "largest"})[:1500], flush=True)
        write(RESULT, result)
    end(failed, len(failed) < len(options.parts))


if __name__ == "__main__":
    main()
