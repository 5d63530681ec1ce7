"""Search in an index on a CPU: how long a query takes, from the bytes of a picture to its neighbours.

    python benchmarks/index.py [--rows 100000] [--dim 512]

Vectors are drawn, pictures are not needed; the query is a real picture that is decoded and embedded by the small network.
"""

from __future__ import annotations

import argparse
import io
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from harness import ROOT, conditions, fill, write
from PIL import Image

from nearkin import models
from nearkin.index import Index, Row
from nearkin.index import segment as segments
from nearkin.index.manifest import Part
from nearkin.trained import Trained, View

PART = 32_768


def filled(folder: Path, trained: Trained, rows: int) -> Index:
    """An index of drawn vectors."""
    index = Index.create(folder, trained)
    random = np.random.default_rng(0)
    manifest = index.manifest
    for begin in range(0, rows, PART):
        count = min(PART, rows - begin)
        vectors = random.standard_normal((count, trained.dim), np.float32)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        known = [Row(begin + n, f"/{begin + n}.jpg", f"kind{n % 100}") for n in range(count)]
        name = f"{manifest.next_part:06d}"
        sums = segments.write(folder / "segments" / name, vectors, known, [b""] * count)
        manifest = manifest.with_part(Part(name, count, sums), begin + count)
    manifest.write(folder)
    index.reload()
    return index


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--dim", type=int, default=512)
    parser.add_argument("--queries", type=int, default=200)
    options = parser.parse_args()
    model = models.create("small", dim=options.dim, size=64, grey=False, seed=0)
    trained = Trained(model, View("crop", 64, 72, 256), {}, torch.device("cpu"))
    random = np.random.default_rng(1)
    pictures = []
    for _ in range(options.queries):
        buffer = io.BytesIO()
        Image.fromarray(random.integers(0, 256, (300, 400, 3), np.uint8)).save(buffer, "JPEG")
        pictures.append(buffer.getvalue())
    with tempfile.TemporaryDirectory() as folder:
        index = filled(Path(folder) / "my.index", trained, options.rows)
        spent: dict[str, list[float]] = {"embed": [], "search": [], "whole": []}
        for picture in [pictures[0], *pictures]:
            begin = time.perf_counter()
            vector = trained.embed(picture)[0]
            middle = time.perf_counter()
            assert len(index.search(vector, 20)) == 20
            end = time.perf_counter()
            for name, seconds in (("embed", middle - begin), ("search", end - middle), ("whole", end - begin)):
                spent[name].append(1e3 * seconds)
    found = {
        name: {"median": float(np.median(values[1:])), "p95": float(np.percentile(values[1:], 95))}
        for name, values in spent.items()
    }
    result = {"conditions": conditions(), "rows": options.rows, "dim": options.dim, "milliseconds": found}
    print(found)
    print("saved", write("index-cpu.json", result))
    where, whole = result["conditions"], found["whole"]
    text = (
        f"A query takes {whole['median']:.0f} ms, in 95 of 100 cases at most {whole['p95']:.0f} ms, among {options.rows:,} "
        f"vectors of {options.dim} numbers: {found['embed']['median']:.0f} ms to decode and embed a picture with the small "
        f"network, the rest to search ({where['device']}, torch {where['versions']['torch']}, commit {where['commit']}, "
        f"`{where['command']}`)."
    )
    fill(ROOT / "docs" / "index.md", "index-cpu", text)


if __name__ == "__main__":
    main()
