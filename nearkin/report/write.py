"""Writes a report into a folder: index.html, tables, figures."""

from __future__ import annotations

import json
from pathlib import Path

from nearkin import checkpoint
from nearkin.report import raster, tables
from nearkin.report.bench import Bench
from nearkin.report.page import MADE, page
from nearkin.report.sections import sections

PAGE = "index.html"
FORMATS = ("svg", "png")


def write(
    bench: Bench, out: str | Path, title: str = "", formats: tuple[str, ...] = FORMATS
) -> tuple[list[Path], list[str]]:
    """Write everything; returns the files, and remarks on what could not be written."""
    out = Path(out)
    _make(out)
    made = sections(bench)
    texts = {
        "results.csv": tables.results_csv(bench),
        "runs.csv": tables.runs_csv(bench),
        "results.md": tables.markdown(bench),
        "results.tex": tables.latex(bench),
    }
    if bench.verdict is not None and bench.verdict.friedman is not None:
        texts["ranks.csv"] = tables.ranks_csv(bench.verdict)
    contents: dict[str, bytes] = {name: text.encode() for name, text in texts.items()}
    contents[PAGE] = page(bench, made, title, list(texts)).encode()
    remarks = []
    figures = [figure for section in made for figure in section.figures]
    if "svg" in formats:
        contents |= {f"figures/{figure.name}.svg": figure.file().encode() for figure in figures}
    if "png" in formats and figures:
        if raster.available():
            contents |= {f"figures/{figure.name}.png": raster.png(figure) for figure in figures}
        else:
            remarks.append(raster.MISSING)
    _tidy(out, set(contents))
    if any(name.startswith("figures/") for name in contents):
        (out / "figures").mkdir(exist_ok=True)
    for name, content in contents.items():
        checkpoint.replace(out / name, content)
    return [out / name for name in contents], remarks


def _make(out: Path) -> None:
    """Make the folder; a page there that is no report is left alone."""
    try:
        (out / "cache").mkdir(parents=True, exist_ok=True)
        page_there = (out / PAGE).read_text(encoding="utf-8", errors="replace") if (out / PAGE).exists() else MADE
    except OSError as error:
        raise ValueError(
            f"out must be a folder that can be written, got {str(out)!r} ({error.strerror}); choose another."
        ) from None
    if MADE not in page_there:
        raise ValueError(
            f"out must be a new folder or that of an earlier report, got {str(out)!r}, whose {PAGE} is something else; "
            f"choose another."
        )


def _tidy(out: Path, made: set[str]) -> None:
    """Remove what an earlier report wrote and this one does not; nothing else is touched."""
    record = out / "cache" / "files.json"
    try:
        before = {str(name) for name in json.loads(record.read_bytes())}
    except (OSError, ValueError, TypeError):
        before = set()
    for name in sorted(before - made):
        if "/" not in name.removeprefix("figures/"):
            (out / name).unlink(missing_ok=True)
    checkpoint.replace(record, json.dumps(sorted(made), indent=1).encode())
