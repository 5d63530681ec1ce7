"""Numbers in sentences, as a person would say them."""

from __future__ import annotations


def count(number: int, word: str, several: str = "") -> str:
    """
    >>> count(1, "seed"), count(1200, "class", "classes"), count(1, "file lies", "files lie")
    ('1 seed', '1,200 classes', '1 file lies')
    """
    return f"{number:,} {word if number == 1 else several or word + 's'}"


def feedback(protocol: str) -> str:
    """What stands after a number of the test set where that chose the epoch.

    >>> feedback("test_feedback"), feedback("fixed_validation")
    (' (test_feedback)', '')
    """
    return f" ({protocol})" if protocol == "test_feedback" else ""
