"""Times and amounts as a person would say them."""

from __future__ import annotations

import math


def seconds_of(value: float) -> str:
    """
    >>> seconds_of(0.034), seconds_of(4.26), seconds_of(272), seconds_of(9000), seconds_of(math.nan)
    ('0.03 s', '4.3 s', '4 min 32 s', '2 h 30 min', '-')
    """
    if not math.isfinite(value):
        return "-"
    if value < 1:
        return f"{value:.2f} s"
    if value < 100:
        return f"{value:.1f} s"
    if value < 3600:
        minutes, rest = divmod(round(value), 60)
        return f"{minutes} min {rest} s"
    hours, rest = divmod(round(value / 60), 60)
    return f"{hours} h {rest} min"


def bytes_of(value: float) -> str:
    """
    >>> bytes_of(7.2e9), bytes_of(math.nan)
    ('7.2 GB', '-')
    """
    if not math.isfinite(value):
        return "-"
    for size, unit in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if value >= size:
            return f"{value / size:.1f} {unit}"
    return f"{value:.0f} B"


def cosine_of(value: float) -> str:
    """Two digits; more near 1, where two digits would make all alike.

    >>> cosine_of(0.634), cosine_of(0.98999), cosine_of(0.99214), cosine_of(0.9996), cosine_of(0.99999), cosine_of(1.0)
    ('0.63', '0.99', '0.9921', '0.99960', '0.99999', '1.00000')
    """
    if value < 0.99:
        return f"{value:.2f}"
    digits = 5 if value > 0.99999 else math.ceil(-math.log10(1 - value)) + 1
    return f"{value:.{min(digits, 5)}f}"
