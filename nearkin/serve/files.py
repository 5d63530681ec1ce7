"""The files of the page, read once: only these can be asked for."""

from __future__ import annotations

from importlib import resources

from nearkin.report import palette

KINDS = {"html": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}


def static() -> dict[str, tuple[bytes, str]]:
    """Content and kind of every file of the page, by name."""
    found = {}
    for entry in resources.files("nearkin.serve").joinpath("static").iterdir():
        kind = KINDS.get(entry.name.rpartition(".")[2])
        if kind is not None:
            found[entry.name] = (entry.read_bytes(), kind)
    return found


def colours() -> str:
    """The colours of the report, light and dark, as a style sheet."""
    light, dark = palette.variables(), palette.variables(dark=True)
    return (
        f":root{{color-scheme:light;{light}}}"
        f"@media(prefers-color-scheme:dark){{:root:not([data-theme=light]){{color-scheme:dark;{dark}}}}}"
        f":root[data-theme=dark]{{color-scheme:dark;{dark}}}"
    )
