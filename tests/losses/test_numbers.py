"""Classes as small numbers instead of labels: the same masks."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from nearkin import masks
from nearkin.masks import Masks
from nearkin.pairs import spread

LABELS = torch.tensor([7, -3, 2**40, 7, -3, 5, 7])
OTHERS = torch.tensor([5, 7, 7, 2**40 + 1, -3, 9, 0])


@pytest.mark.parametrize(
    "given",
    [
        Masks((7, 7), LABELS, LABELS),
        Masks((7, 7), LABELS, LABELS.clone()),
        Masks((7, 7), LABELS, OTHERS, apart=True),
        Masks((7, 7), LABELS, OTHERS, self_index=torch.tensor([1, 4, -1, 2, -1, 0, -1])),
        Masks((7, 7), LABELS, OTHERS, apart=True, valid=torch.tensor([1, 0, 1, 1, 1, 0, 1]).bool()),
        Masks((7, 7), LABELS.to(torch.int32), OTHERS, apart=True),
        Masks((7, 7), LABELS + 256, OTHERS.to(torch.uint8), apart=True),
    ],
    ids=["own", "copy", "gallery", "places", "valid", "types", "narrow"],
)
def test_numbers_make_the_masks_of_labels(given: Masks, monkeypatch: pytest.MonkeyPatch) -> None:
    like = torch.zeros(7, 7)
    found = []
    for least in (0, 2**60):
        monkeypatch.setattr(masks, "NUMBERED", least)
        vars(given).pop("_numbers", None)
        parts = given.parts(0, 7, given.own_columns(like.device))
        assert parts.labels is not None and parts.gallery_labels is not None
        assert (parts.labels.dtype == torch.int32 == parts.gallery_labels.dtype) == (least == 0)
        positive, negative = parts.masks(like)
        found.append((spread(positive, negative), negative))
    truth: tuple[Tensor, Tensor] = given.all_rows(like)
    for one in found:
        for first, second in zip(one, truth, strict=True):
            torch.testing.assert_close(first, second)
