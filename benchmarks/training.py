"""How much of a training step the images cost: `nearkin train`'s own step, fed from the pack and fed with ready crops.

    python benchmarks/training.py --root CUB_200_2011 --weights resnet50.safetensors

Both take turns in one process on the same network, loss and optimiser. Writes benchmarks/results/training-cuda.json.
"""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
import tempfile
import time
from pathlib import Path

import torch
from harness import conditions, write


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", required=True)
    parser.add_argument("--weights", required=True)
    parser.add_argument("--network-settings", default="{}")
    parser.add_argument("--packs", default="packs")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--loss", default="proxy_anchor")
    options = parser.parse_args()
    from nearkin.distributed import Ranks
    from nearkin.train import prepare
    from nearkin.train.loop import _Run
    from nearkin.train.screen import Silent
    from nearkin.train.settings import resolve

    with tempfile.TemporaryDirectory() as folder:
        settings = resolve(
            {
                "data": "cub200", "root": options.root, "weights": options.weights, "packs": options.packs,
                "network_settings": json.loads(options.network_settings), "loss": options.loss, "warm_up": 0,
                "out": str(Path(folder) / "run"), "tensorboard": False,
            }
        )  # fmt: skip
        device = prepare.device("cuda")
        device = torch.device("cuda", 0)
        with prepare.machine(settings, device):
            run = _Run(settings, device, Ranks(), Silent(), False)
            run._new_layers_only(False)
            run.sampler.set_epoch(0, 0)
            ready = [(images.clone(), labels.clone()) for images, labels, _ in itertools.islice(run._batches(8), 8)]
            run._record(ready[0][0], False)

            def from_pack() -> int:
                run.sampler.set_epoch(0, 0)
                count = 0
                for images, labels, _ in run._batches(10**6):
                    run._one_step(images, labels, 0)
                    run.watch.records()
                    count += len(labels)
                return count

            def from_memory() -> int:
                count = 0
                for images, labels in itertools.islice(itertools.cycle(ready), run.per_epoch):
                    run._one_step(images, labels, 0)
                    run.watch.records()
                    count += len(labels)
                return count

            rates: dict[str, list[float]] = {"from the pack": [], "ready crops": []}
            for round_ in range(options.rounds + 1):
                for name, function in (("from the pack", from_pack), ("ready crops", from_memory)):
                    torch.cuda.synchronize()
                    begin = time.perf_counter()
                    count = function()
                    torch.cuda.synchronize()
                    if round_:
                        rates[name].append(count / (time.perf_counter() - begin))
    medians = {name: statistics.median(found) for name, found in rates.items()}
    share = medians["from the pack"] / medians["ready crops"]
    print({name: round(value) for name, value in medians.items()}, f"share {share:.3f}")
    result = {"conditions": conditions(), "batch": settings.batch, "images_per_second": rates, "share": share}
    print("saved", write("training-cuda.json", result))


if __name__ == "__main__":
    main()
