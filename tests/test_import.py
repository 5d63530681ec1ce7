"""Importing nearkin is light."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

HEAVY = (
    "matplotlib",
    "PIL",
    "rich",
    "sklearn",
    "scipy",
    "fastapi",
    "uvicorn",
    "pandas",
    "optuna",
    "torchvision",
    "timm",
    "safetensors",
    "pyarrow",
    "ray",
    "lancedb",
    "onnx",
    "huggingface_hub",
    "tensorboard",
)

CODE = """
import json, sys, time
import torch, numpy
before = set(sys.modules)
begin = time.process_time()
import nearkin
for name in nearkin.__all__:
    getattr(nearkin, name)
seconds = time.process_time() - begin
print(json.dumps({"seconds": seconds, "added": sorted(set(sys.modules) - before)}))
"""


def imported() -> dict[str, Any]:
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True)
    return dict(json.loads(done.stdout))


@pytest.fixture(scope="module")
def once() -> dict[str, Any]:
    return imported()


def test_it_adds_less_than_a_third_of_a_second_to_torch(once: dict[str, Any]) -> None:
    """Time of that process, one of three: a busy machine is not the import's fault."""
    assert once["seconds"] < 0.3 or any(imported()["seconds"] < 0.3 for _ in range(2))


def test_it_loads_no_plotting_serving_or_search_module(once: dict[str, Any]) -> None:
    added = once["added"]
    assert not [name for name in added if name.split(".")[0] in HEAVY]
    assert "nearkin.losses" in added
    assert not [name for name in added if name.startswith(("nearkin.demo", "nearkin.cli", "nearkin.data"))]


def test_the_command_line_loads_torch_only_when_a_command_needs_it() -> None:
    """So that an interruption meanwhile is one line."""
    code = "import sys, nearkin.cli; print('torch' in sys.modules, 'numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]


def test_a_name_that_is_not_there() -> None:
    import nearkin

    assert set(nearkin.__all__) <= set(dir(nearkin))
    with pytest.raises(AttributeError, match="^module 'nearkin' has no attribute 'embeder'$"):
        nearkin.embeder  # noqa: B018
