"""Whether a published recall can be a share of the queries it was measured on."""

from __future__ import annotations

import math
from fractions import Fraction

from nearkin.data.counts import PUBLISHED
from nearkin.published.fact import Fact


def attainable(fact: Fact) -> bool | None:
    """False if no whole number of successful queries gives the digits as printed, whether they were rounded or cut.

    Such a cell is a misprint, a mean of several runs, or was measured on other images than the whole test part. None for
    what is no share of the test queries: other metrics, and means with a deviation.

    >>> from nearkin import published
    >>> [found] = published.facts("deep_dive", 6, loss="n_pair", dim=64, metric="recall@2")
    >>> found.printed, attainable(found)  # 4,060 of 5,924 images are 68.535 %, one more 68.552 %
    ('68.54', False)
    """
    counts = PUBLISHED.get(fact.data)
    if counts is None or not fact.metric.startswith("recall@") or fact.deviation is not None:
        return None
    queries = counts.queries or counts.test_images
    value = Fraction(fact.printed)
    step = Fraction(1, 10 ** len(fact.printed.partition(".")[2]))
    # Rounding reaches from half a step below to half a step above, cutting from the value to a step above.
    least = math.ceil((value - step / 2) * queries / 100)
    return Fraction(100 * least, queries) < value + step
