"""SciPy is loaded when needed, and a missing one is one sentence."""

from __future__ import annotations

import subprocess
import sys

import pytest

from nearkin.tournament import critical_difference


def test_a_missing_scipy_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "scipy", None)
    with pytest.raises(
        ImportError, match=r"^a tournament needs SciPy; install it with pip install 'nearkin\[tournament\]'\.$"
    ):
        critical_difference(3, 4)


def test_importing_the_tournament_loads_nothing_heavy() -> None:
    code = (
        "import sys, torch, numpy; before = set(sys.modules); import nearkin.tournament.command; "
        "print(*(set(sys.modules) - before))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {name.split(".")[0] for name in done.stdout.split()}
    assert "nearkin" in loaded
    assert not loaded & {"scipy", "matplotlib", "rich", "safetensors", "PIL", "pandas"}
