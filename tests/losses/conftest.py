"""Every test of a loss runs twice: positives kept as a matrix of counts, and as few columns side by side."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from nearkin import masks


@pytest.fixture(autouse=True, scope="module", params=["columns", "matrix"])
def _kind_of_mask(request: pytest.FixtureRequest) -> Iterator[None]:
    before = masks.SHARE, masks.SMALL
    masks.SHARE, masks.SMALL = (0, 0) if request.param == "columns" else (10**9, 10**9)
    yield
    masks.SHARE, masks.SMALL = before
