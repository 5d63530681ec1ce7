"""Other people's networks to compare with, and the real data, where they are there."""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path
from types import ModuleType

import pytest
import torch

_LIBRARIES: list[torch.library.Library] = []


def _torchvision() -> ModuleType:
    pytest.importorskip("torchvision", reason="needs torchvision to compare with", exc_type=ModuleNotFoundError)
    import torchvision

    return torchvision


@pytest.fixture(scope="session")
def torchvision() -> ModuleType:
    """torchvision; where its operators do not fit this torch, two are declared, which its networks never call."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return _torchvision()
        except RuntimeError:
            for name in [name for name in sys.modules if name.split(".")[0] == "torchvision"]:
                del sys.modules[name]
            library = torch.library.Library("torchvision", "DEF")
            for name in ("nms", "qnms"):
                library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
            _LIBRARIES.append(library)
            return _torchvision()


@pytest.fixture(scope="session")
def timm(torchvision: ModuleType) -> ModuleType:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip("timm", reason="needs timm")


@pytest.fixture(scope="session")
def test_data() -> Path:
    """The folder of real images and weights that NEARKIN_TEST_DATA names."""
    folder = os.environ.get("NEARKIN_TEST_DATA")
    if not folder:
        pytest.skip("needs real images and weights: set NEARKIN_TEST_DATA to their folder")
    return Path(folder)
