"""The pass of a GPU over boxes, run on a CPU by the kernel language's interpreter, by the tests of every other way."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from nearkin.data.resample import Colours, resample
from tests.data.test_resample import ragged

SCRIPT = """
import itertools
import numpy as np
import torch
from nearkin.data import resample_kernel
from nearkin.data.resample import resample
from tests.data import test_resample as ways

resample_kernel.PIXELS = 512
ways.TOLERANCE["kernel"] = 0.02
for kind, around in itertools.product(("inside", "whole", "pixels", "beyond"), (True, False)):
    ways.test_every_way_is_the_plain_loop(kind, around, "kernel")
for around in (True, False):
    ways.test_boxes_beside_their_image_are_filled("kernel", around)
ways.test_pillow_agrees(24, "kernel")
ways.test_cutting_first_is_what_torch_makes_of_the_cut(24, "kernel")
ways.test_a_box_of_whole_pixels_is_copied_exactly("kernel")
_, place = ways.ragged(ways.SIZES)
options = {"boxes": ways.boxes_of("beyond"), "size": 9, "colours": ways.GREY_LEVELS, "way": "kernel"}
found = resample(**place, **options)
last = resample(**place, **options, dtype=torch.bfloat16, channels_last=True)
assert last.is_contiguous(memory_format=torch.channels_last)
assert ((last.float() - found).abs() <= found.abs() * 2**-7).all()
"""


@pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="needs triton")
def test_one_pass_is_every_other_way() -> None:
    environment = os.environ | {"TRITON_INTERPRET": "1", "PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr


def test_it_needs_a_gpu() -> None:
    _, place = ragged([(9, 9)])
    with pytest.raises(ValueError, match="way 'kernel' does not suit"):
        resample(**place, boxes=np.array([[0.0, 0.0, 5.0, 5.0]]), size=4, colours=Colours.of(), way="kernel")
