"""Importing nearkin is light."""

from __future__ import annotations

import json
import subprocess
import sys

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
begin = time.process_time()
import nearkin
seconds = time.process_time() - begin
print(json.dumps({"seconds": seconds, "modules": sorted(sys.modules)}))
"""


def imported() -> dict[str, object]:
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True)
    return dict(json.loads(done.stdout))


def test_it_adds_less_than_a_third_of_a_second_to_torch() -> None:
    """Time of this process, the best of three: a busy machine is not the import's fault."""
    assert min(float(str(imported()["seconds"])) for _ in range(3)) < 0.3


def test_it_loads_no_plotting_serving_or_search_module() -> None:
    modules = imported()["modules"]
    assert isinstance(modules, list)
    before = subprocess.run(
        [sys.executable, "-c", "import torch, numpy, sys, json; print(json.dumps(sorted(sys.modules)))"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    added = set(modules) - set(json.loads(before.stdout))
    assert not [name for name in added if name.split(".")[0] in HEAVY]
    assert "nearkin.losses" in modules
    assert not [name for name in modules if name.startswith(("nearkin.demo", "nearkin.cli", "nearkin.data"))]
