"""Which losses and runs are compared when some are missing."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from nearkin.tournament import complete


@given(st.dictionaries(st.sampled_from("abcdef"), st.sets(st.integers(0, 4)), min_size=1))
def test_a_block_has_no_holes_and_nothing_is_lost_from_sight(table: dict[str, set[int]]) -> None:
    block = complete(table)
    assert all(set(block.columns) <= table[row] for row in block.rows)
    assert sorted(block.rows + block.rows_out) == sorted(table)
    assert sorted(block.columns + block.columns_out) == sorted(set().union(*table.values()))
    assert bool(block.rows) == bool(block.columns)


@given(st.dictionaries(st.sampled_from("abcdef"), st.sets(st.integers(0, 4)), min_size=2), st.integers(0, 4))
def test_where_all_share_a_run_two_or_more_are_compared(table: dict[str, set[int]], shared: int) -> None:
    assert len(complete({row: columns | {shared} for row, columns in table.items()}).rows) >= 2


def test_a_run_that_has_only_begun_waits() -> None:
    table = {"a": {0, 1}, "b": {0}, "c": {0}}
    assert complete(table).rows == ("a", "b", "c")
    assert complete(table).columns == (0,)


def test_a_loss_that_lacks_most_runs_goes_rather_than_the_runs() -> None:
    block = complete({"a": range(5), "b": range(5), "c": range(5), "d": [3]})
    assert (block.rows, block.columns, block.rows_out) == (("a", "b", "c"), (0, 1, 2, 3, 4), ("d",))


def test_a_loss_that_lacks_one_run_stays() -> None:
    block = complete({"a": range(3), "b": [0, 2]})
    assert (block.rows, block.columns, block.columns_out) == (("a", "b"), (0, 2), (1,))


def test_two_with_nothing_in_common_cannot_be_compared() -> None:
    assert complete({"a": [0], "b": [1]}).rows == ()


def test_the_one_with_fewest_goes_where_nothing_is_common() -> None:
    block = complete({"a": [0, 1], "b": [1, 2], "c": [0, 2]})
    assert (block.rows, block.columns) == (("a", "b"), (1,))


def test_folds_and_seeds_stand_in_their_order() -> None:
    assert complete({"a": [(1, 0), (0, 10), (0, 2)]}).columns == ((0, 2), (0, 10), (1, 0))
