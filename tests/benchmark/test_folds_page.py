"""The page of ten folds says what was measured, beside what the thesis printed."""

from __future__ import annotations

from types import ModuleType

import pytest

from tests.benchmark.scripts import ROOT, check_no_places, script


@pytest.fixture(scope="module")
def folds() -> ModuleType:
    return script("folds")


def test_the_page_is_what_was_measured(folds: ModuleType) -> None:
    assert folds.page() == (ROOT / "docs" / "folds.md").read_text()


def test_nothing_kept_says_where_files_lay(folds: ModuleType) -> None:
    check_no_places(folds.PACKED)


def test_every_loss_stands_in_the_thesis(folds: ModuleType) -> None:
    assert folds.printed("proxy_anchor") == "66.32 ± 0.44"
    labels = {job.label for job in folds.grid.read("cross_validation").jobs}
    assert all(folds.printed(label) for label in labels)
