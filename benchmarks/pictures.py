"""Photograph the page and the report for docs/look.md: characters only, three widths, in Chromium without a window.

python benchmarks/pictures.py     writes docs/pictures/*.webp; needs what make demo left, playwright and Chromium

The page is the real one: ``nearkin serve`` over the index of the demonstration, beside a benchmark of four losses that is
run in runs/pictures the first time (about two minutes) and then kept.
"""

from __future__ import annotations

import argparse
import io
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from harness import ROOT

INDEX = ROOT / "runs" / "demo" / "unseen.index"
BENCH = ROOT / "runs" / "pictures"
OUT = ROOT / "docs" / "pictures"
LIMIT = 3_000_000
"""Bytes of all pictures together."""
SCREENS = ((390, 844, "light"), (820, 1100, "dark"), (1440, 900, "light"))
"""Width, height and theme: a telephone, a tablet, a desk."""
VIEWS = {
    "search": "/?id={id}",
    "map": "/?tab=map",
    "strips": "/?tab=strips",
    "losses": "/?tab=losses&loss=ranked_list",
    "runs": "/?tab=runs",
    "doctor": "/?tab=doctor",
    "report": "/report",
}
PATIENCE = 120_000
"""Milliseconds until a view is drawn: the first map is computed."""


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--index", type=Path, default=INDEX, help="index to show")
    parser.add_argument("--bench", type=Path, default=BENCH, help="folder of the benchmark; run where it is missing")
    parser.add_argument("--out", type=Path, default=OUT, help="folder of the pictures")
    parser.add_argument("--views", nargs="+", choices=list(VIEWS), default=list(VIEWS), help="only these")
    given = parser.parse_args()
    if not (given.index / "index.json").exists():
        raise SystemExit(f"{given.index} must be an index, got none; run make demo first.")
    benchmark(given.bench)
    given.out.mkdir(parents=True, exist_ok=True)
    asked = query(given.index)
    with served(given.index, given.bench) as address:
        for name, content in pictures(address, given.views, asked):
            (given.out / f"{name}.webp").write_bytes(content)
            print(f"{name}.webp  {len(content) / 1000:,.0f} kB")
    total = sum(path.stat().st_size for path in given.out.glob("*.webp"))
    print(f"{total / 1e6:.2f} MB in {given.out}")
    if total > LIMIT:
        raise SystemExit(f"the pictures must take at most {LIMIT / 1e6:g} MB together; lower the quality.")


def benchmark(folder: Path) -> None:
    """Run what is missing of the benchmark, and write its report anew."""
    for words in (
        ["bench", str(ROOT / "benchmarks" / "pictures.toml"), "--out", str(folder)],
        ["report", str(folder), "--figures", ""],
    ):
        subprocess.run([sys.executable, "-m", "nearkin", *words], check=True)


def query(index: Path) -> int:
    """The image to search for: the first that finds six to eight of its own class among the first ten."""
    from nearkin.index import Index

    opened = Index.open(index)
    for row in opened.rows():
        found = opened.search(opened.vector(row.id), 10, leave_out=(row.id,))
        if 6 <= sum(hit.label == row.label for hit in found) <= 8 and found[0].label == row.label:
            return row.id
    return next(iter(opened.rows())).id


@contextmanager
def served(index: Path, bench: Path) -> Iterator[str]:
    """The address of the page, while it is shown."""
    command = [sys.executable, "-m", "nearkin", "serve", str(index), "--report", str(bench), "--port", "0", "--no-open"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        said = process.stdout.readline()
        if "http://" not in said:
            raise SystemExit(f"nearkin serve must print its address first, got {said!r}.")
        yield said[said.index("http://") :].strip().rstrip("/")
    finally:
        process.terminate()
        process.wait()


def pictures(address: str, views: list[str], asked: int) -> Iterator[tuple[str, bytes]]:
    """The name and the content of each picture."""
    from playwright.sync_api import sync_playwright

    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for width, height, theme in SCREENS:
            page = browser.new_page(
                viewport={"width": width, "height": height},
                color_scheme=theme,  # type: ignore[arg-type]
                reduced_motion="reduce",
            )
            page.set_default_timeout(PATIENCE)
            for name in views:
                page.goto(address + VIEWS[name].format(id=asked))
                settle(page, name)
                yield f"{name}-{width}", small(page.screenshot())
            page.close()
        browser.close()


def settle(page: Any, name: str) -> None:
    """Wait until the view is drawn: nothing is asked for, nothing goes on, every picture has come."""
    from playwright.sync_api import expect

    if name == "report":
        page.wait_for_selector("#verdict")
        return
    page.wait_for_selector("main > *")
    expect(page.locator("#working")).to_be_hidden(timeout=PATIENCE)
    expect(page.locator("main progress:visible")).to_have_count(0, timeout=PATIENCE)
    if name == "map":
        expect(page.locator("main")).to_contain_text("t-SNE", timeout=PATIENCE)
        page.wait_for_timeout(1500)  # points glide to their places
    page.wait_for_load_state("networkidle")
    page.wait_for_timeout(400)


def small(picture: bytes) -> bytes:
    """A screenshot as WebP."""
    from PIL import Image

    buffer = io.BytesIO()
    Image.open(io.BytesIO(picture)).convert("RGB").save(buffer, "WEBP", quality=78, method=6)
    return buffer.getvalue()


if __name__ == "__main__":
    main()
