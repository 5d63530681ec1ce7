"""ONNX: one file that turns pixels into unit vectors, without nearkin or torch."""

from __future__ import annotations

import json
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch

from nearkin import checkpoint
from nearkin.export.portable import Portable
from nearkin.trained import Trained

OPSET = 20
INSTALL = "onnx and onnxscript must be installed for this, got none; run pip install 'nearkin[onnx]'."


def to_onnx(trained: Trained, path: str | Path) -> None:
    """Write a trained embedding as ONNX: input "images" (n, height, width, 3) uint8, output "embeddings" (n, dim).

    The number of images, their height and width stay open. Facts about the model are in its metadata.
    """
    try:
        import onnx
        import onnxscript  # noqa: F401
    except ImportError:
        raise ImportError(INSTALL) from None
    side = max(trained.view.resize, trained.view.size)
    example = torch.zeros(2, side + 3, side + 5, 3, dtype=torch.uint8)
    open_sizes = dict.fromkeys(range(3), torch.export.Dim.DYNAMIC)
    portable = Portable(Trained(trained.model.cpu().float(), trained.view, trained.facts, torch.device("cpu"))).eval()
    with _quiet(), torch.no_grad():
        program = torch.onnx.export(
            portable,
            (example,),
            input_names=["images"],
            output_names=["embeddings"],
            dynamic_shapes={"images": open_sizes},
            opset_version=OPSET,
            dynamo=True,
            verbose=False,
        )
    trained.model.to(trained.device)
    assert program is not None
    content = program.model_proto
    facts = {"nearkin": json.dumps(trained.facts), "dim": str(trained.dim), "input": "uint8 RGB, rows from the top"}
    onnx.helper.set_model_props(content, facts)
    onnx.checker.check_model(content)
    checkpoint.replace(Path(path), content.SerializeToString())


@contextmanager
def _quiet() -> Iterator[None]:
    """The exporter speaks of what does not concern a person who exports."""
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)
