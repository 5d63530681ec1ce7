"""Names of classes as a person would write them."""

from __future__ import annotations

import re
from collections.abc import Sequence

NUMBER = re.compile(r"^\d+[._ -]+(?=\D)")


def readable(names: Sequence[object]) -> list[str]:
    """Without the number in front and with spaces for underscores; as they are where two would become the same.

    >>> readable(["001.Black_footed_Albatross", "002.Laysan_Albatross"])
    ['Black footed Albatross', 'Laysan Albatross']
    >>> readable(["1.gull", "2.gull"]), readable(["_", "7"])
    (['1.gull', '2.gull'], ['_', '7'])
    """
    given = [str(name) for name in names]
    made = [NUMBER.sub("", name).replace("_", " ").strip() for name in given]
    return made if all(made) and len(set(made)) == len(set(given)) else given
