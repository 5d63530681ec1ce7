"""Where kernels cannot be made, that is said once and other ways are taken."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from typing import Any

import pytest

from nearkin import kernels


@pytest.fixture(autouse=True)
def _asked_anew() -> Iterator[None]:
    kernels.usable.cache_clear()
    yield
    kernels.usable.cache_clear()


def test_without_the_language(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert not kernels.usable()


@pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="needs triton")
def test_without_a_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    from triton.runtime import driver

    class Without:
        def get_current_target(self) -> Any:
            raise RuntimeError("Failed to find C compiler.\nMore words.")

    monkeypatch.setattr(type(driver), "active", property(lambda self: Without()))
    with pytest.warns(UserWarning, match="Triton cannot be used, GPU work will be slower: Failed to find C compiler.$"):
        assert not kernels.usable()
    assert not kernels.usable()  # and says no more


@pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="needs triton")
def test_the_interpreter_needs_no_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    assert kernels.usable()
