"""How fast images are decoded into a pack, and how fast batches of crops come out of it.

python benchmarks/feed.py                     writes benchmarks/results/feed-cpu.json
python benchmarks/feed.py --device cuda       writes benchmarks/results/feed-cuda.json

The images are 500 x 375 JPEG files drawn here; a pack has their shorter side at 256, crops are 224 x 224.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from harness import conditions, write
from PIL import Image

from nearkin.data.feed import Feed
from nearkin.data.geometry import NAMES, Geometry
from nearkin.data.pack import Pack, pack
from nearkin.data.table import ImageTable


def draw(folder: Path, count: int) -> ImageTable:
    """Noise at several scales, which JPEG finds about as hard as a photograph."""
    generator = np.random.default_rng(0)
    paths = []
    for i in range(count):
        layers = [
            np.asarray(
                Image.fromarray(generator.integers(0, 256, (side, side, 3), dtype=np.uint8)).resize((500, 375)), float
            )
            for side in (4, 16, 64, 200)
        ]
        pixels = np.average(layers, axis=0, weights=(8, 4, 2, 1)).astype(np.uint8)
        paths.append(folder / f"{i}.jpg")
        Image.fromarray(pixels).save(paths[-1], quality=90)
    return ImageTable(paths, np.arange(count) % 20, tuple(map(str, range(20))))


def packing(table: ImageTable, workers: int) -> tuple[Pack, float]:
    with tempfile.TemporaryDirectory() as folder:
        begin = time.perf_counter()
        made = pack(table, Path(folder) / "pack", workers=workers)
        return made, len(made) / (time.perf_counter() - begin)


def feeding(feed: Feed, images: int, batch: int, seconds: float) -> float:
    """Images a second, over batches that nobody uses."""
    generator = np.random.default_rng(1)
    batches = [generator.integers(0, images, batch) for _ in range(1000)]
    found = feed.train(batches)
    for _ in range(3):
        next(found)
    if feed.device.type == "cuda":
        torch.cuda.synchronize()
    begin, done = time.perf_counter(), 0
    for pictures, _, _ in found:
        done += len(pictures)
        if time.perf_counter() - begin > seconds:
            break
    if feed.device.type == "cuda":
        torch.cuda.synchronize()
    rate = done / (time.perf_counter() - begin)
    found.close()
    return rate


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--images", type=int, default=600)
    parser.add_argument("--batch", type=int, default=120)
    parser.add_argument("--seconds", type=float, default=2.0, help="of each measurement of a feed")
    parser.add_argument("--workers", type=int, nargs="+", default=[0, 2])
    settings = parser.parse_args()
    where = conditions()
    rows: list[dict[str, Any]] = []

    def report(**row: Any) -> None:
        rows.append(row)
        print(
            ", ".join(
                f"{key} {value:,.0f}" if isinstance(value, float) else f"{key} {value}" for key, value in row.items()
            )
        )

    with tempfile.TemporaryDirectory() as folder:
        table = draw(Path(folder), settings.images)
        for workers in settings.workers:
            made, rate = packing(table, workers)
            report(what="pack", workers=workers, images_per_second=rate)
    made = Pack(**{**vars(made), "pixels": np.array(made.pixels)})
    ways: list[tuple[bool | None, int]] = [(None, workers) for workers in settings.workers]
    if settings.device != "cpu":
        ways = [(True, 0), *((False, workers) for workers in settings.workers)]
    for name in NAMES:
        for resident, workers in ways:
            feed = Feed(
                made, Geometry(name), device=settings.device, resident=resident, workers=workers,
                mean=(0.485, 0.456, 0.406), std=(0.229, 0.224, 0.225),
                dtype=torch.float32 if settings.device == "cpu" else torch.bfloat16,
                channels_last=settings.device != "cpu",
            )  # fmt: skip
            rate = feeding(feed, len(made), settings.batch, settings.seconds)
            report(what=name, resident=bool(resident), workers=workers, images_per_second=rate)
    kind = torch.device(settings.device).type
    print("saved", write(f"feed-{kind}.json", {"conditions": where, "settings": vars(settings), "rows": rows}))


if __name__ == "__main__":
    main()
