"""A real browser for the tests of pages. Where there is none they are skipped when they ask for it, not when their module is
imported: what fails to be imported once stays half imported for those that come after."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.patience import PATIENCE

NAMES = ("chromium", "chromium-browser", "google-chrome")


@contextmanager
def launched() -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright")
    place = next((found for name in NAMES if (found := shutil.which(name))), None)
    if place is None:
        pytest.skip("needs Chromium")
    with playwright.sync_playwright() as started:
        found = started.chromium.launch(executable_path=place, args=["--no-sandbox"])
        yield found
        found.close()


def expect(what: Any) -> Any:
    """Waits until what is asked of a page or a part of it is true; pages forbid eval, which waiting for a function needs."""
    from playwright import sync_api

    sync_api.expect.set_options(timeout=1000 * PATIENCE)
    return sync_api.expect(what)
