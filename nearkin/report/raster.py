"""Figures as PNG, for programs that take no SVG."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from nearkin.report import palette
from nearkin.report.figures.draw import Figure

ZOOM = 2.0
MISSING = (
    "PNG figures need resvg-py, which is not installed; SVG figures are written. Run pip install 'nearkin[report]'."
)


def available() -> bool:
    return importlib.util.find_spec("resvg_py") is not None


def png(figure: Figure) -> bytes:
    """The figure in light colours at twice its size."""
    import resvg_py

    text = figure.file(f"<style>{palette.rules(False)}</style>").replace("currentColor", palette.COLOURS["ink"][0])
    folders = _fonts()
    return bytes(
        resvg_py.svg_to_bytes(
            svg_string=text,
            zoom=ZOOM,
            font_dirs=folders or None,
            skip_system_fonts=bool(folders),
            font_family="DejaVu Sans" if folders else None,
            sans_serif_family="DejaVu Sans" if folders else None,
        )
    )


def _fonts() -> list[str]:
    """The fonts that come with matplotlib, where it is installed: the same letters on every machine."""
    found = importlib.util.find_spec("matplotlib")
    if found is None or not found.submodule_search_locations:
        return []
    folder = Path(next(iter(found.submodule_search_locations))) / "mpl-data" / "fonts" / "ttf"
    return [str(folder)] if folder.is_dir() else []
