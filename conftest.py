"""What every test and documented example starts with."""

from __future__ import annotations

import importlib.util
import signal
from typing import Any

import hypothesis
import pytest
import torch

# Examples are looked for in every module; these cannot be imported where the language of their kernels is not installed.
collect_ignore_glob = [] if importlib.util.find_spec("triton") else ["nearkin/*/*kernel.py"]

# What lands must not depend on luck: the same examples each time, unless others are asked for.
hypothesis.settings.register_profile("same", derandomize=True)
hypothesis.settings.register_profile("others", derandomize=False, print_blob=True)
hypothesis.settings.load_profile("same")


def pytest_configure(config: pytest.Config) -> None:
    # Shells let what runs in the background ignore Ctrl-C, and all its children, which some tests want to interrupt.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    # Several test processes share the cores; each on one thread is faster than all on all.
    torch.set_num_threads(1)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if torch.cuda.is_available():
        return
    skip = pytest.mark.skip(reason="needs a CUDA device")
    for item in items:
        if "gpu" in item.keywords:
            item.add_marker(skip)


@pytest.fixture(autouse=True)
def _examples(doctest_namespace: dict[str, Any]) -> None:
    """Documented examples may use torch without importing it, from the same random state."""
    doctest_namespace["torch"] = torch
    torch.manual_seed(0)
