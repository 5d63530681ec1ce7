"""A published number and what it is about."""

from __future__ import annotations

from dataclasses import dataclass

PROTOCOLS = ("test_feedback", "fixed_validation", "cross_validation", "unknown")


@dataclass(frozen=True)
class Fact:
    """One cell of a published table.

    - ``source``, ``table``: where it is printed, such as "deep_dive" and 6 (Tables I and II of nra are 1 and 2);
    - ``method``: the name of the row as printed, without marks of citation; ``loss``: nearkin's loss, "" where it has
      none for it;
    - ``data``, ``network``: nearkin's names; ``network`` is "" and ``dim`` None where the source does not state them, or
      where the number is about several; ``dim`` counts all dimensions, three times 512 where three levels are joined;
    - ``protocol``: how the model was chosen, one of ``PROTOCOLS``; ``quoted``: taken from another document, so that
      network, size and protocol may differ from those of the rows beside it;
    - ``metric``: "recall@1", "nmi", "validation_recall@1" (on validation classes), or "rank_total", "rank_mean" and
      "rank_deviation" of a tournament;
    - ``value``: the number, in percent but for ranks; ``deviation``: what stands behind a plus-minus sign, else None;
      ``printed``: the cell with the digits it was printed with;
    - ``setting``: what distinguishes the row, as settings of ``nearkin train`` or of the loss, such as "alpha=1.4";
      ``fold`` of a cross validation; ``split``: training / validation classes in percent; ``note``: a remark of the source;
    - ``flag``: why the number should not be believed, "" where nothing speaks against it.
    """

    source: str
    table: int
    method: str
    loss: str
    data: str
    network: str
    dim: int | None
    protocol: str
    metric: str
    value: float
    deviation: float | None = None
    printed: str = ""
    quoted: bool = False
    setting: str = ""
    fold: int | None = None
    split: str = ""
    note: str = ""
    flag: str = ""
