"""What differs besides the loss is said, and nothing is said where runs are alike."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from nearkin.results import FAILED, Result
from nearkin.tournament.unlike import differing, unlike
from tests.tournament.made import result

LENGTHS = ", which may be what helps and costs memory and time of a search."
BUDGETS = "what differs may be the training and not the loss."
RECIPES = ": a difference between two losses is one of loss and recipe together."


def with_settings(label: str, changes: dict[str, Any] | None = None, **settings: Any) -> Result:
    return replace(result(label, **(changes or {})), settings=settings)


def test_runs_that_are_alike_need_no_word() -> None:
    runs = [with_settings(label, {"seed": seed}, lr=1e-3, epochs=15, seed=seed) for label in "abc" for seed in (0, 1)]
    assert unlike(runs) == []
    assert unlike([]) == [] and unlike([result("a"), result("b")]) == []  # trained elsewhere: nothing is known


@pytest.mark.parametrize(("levels", "times"), [("lmh", 3), ("mid, final", 2), ("final", 1), ("", 1)])
def test_numbers_of_a_vector_are_those_of_all_levels(levels: str, times: int) -> None:
    assert with_settings("a", {"dim": 64}, levels=levels).total == 64 * times


def test_longer_vectors_are_told_of() -> None:
    runs = [with_settings("a", {"dim": 512}, levels="lmh"), *(with_settings(label, {"dim": 512}) for label in "bc")]
    said = "Vectors differ in length (a 3 times as long as the shortest: 1,536 numbers instead of 512)"
    assert unlike(runs) == [said + LENGTHS]
    both = [replace(run, dim=dim) for run in runs for dim in (64, 512)]  # of several sizes there is no one number
    assert unlike(both) == ["Vectors differ in length (a 3 times as long as the shortest)" + LENGTHS]
    two = [
        with_settings(label, {"dim": 8}, levels=levels) for label, levels in zip("abc", ("lmh", "", "m,h"), strict=True)
    ]
    [said] = unlike(two)
    assert "(c 2 times as long as the shortest: 16 numbers instead of 8; a 3 times" in said


def test_all_with_three_levels_are_alike() -> None:
    assert unlike([with_settings(label, levels="lmh") for label in "ab"]) == []


def test_other_budgets_are_told_of() -> None:
    runs = [with_settings(label, epochs=epochs) for label, epochs in zip("abcd", (40, 15, 15, 20), strict=True)]
    assert unlike(runs) == [f"Budgets differ (a 40 epochs, d 20 epochs and the others 15 epochs): {BUDGETS}"]
    assert unlike(runs[:2]) == [f"Budgets differ (b 15 epochs and a 40 epochs): {BUDGETS}"]
    steps = [with_settings(label, epochs=number, iterations=2000) for number, label in enumerate("ab")]
    assert unlike(steps) == []  # iterations rule
    one = [
        with_settings("a", epochs=15, iterations=8000),
        *(with_settings(label, epochs=15, iterations=0) for label in "bc"),
    ]
    assert unlike(one) == [f"Budgets differ (a 8,000 iterations and the others 15 epochs): {BUDGETS}"]


def test_what_only_measures_or_lies_elsewhere_is_no_recipe() -> None:
    first = with_settings("a", weights="/here/weights.safetensors", root="/here", audit=True, ks=[1, 2], lr=1)
    other = with_settings("b", weights="weights.safetensors", root="here", audit=False, ks=[1], lr=1)
    assert unlike([first, other]) == []
    other.settings["weights"] = "others.safetensors"
    assert unlike([first, other]) == [f"Recipes differ (weights){RECIPES}"]


def test_levels_are_a_recipe_where_vectors_are_equally_long() -> None:
    runs = [with_settings(label, levels=levels) for label, levels in (("a", "mid"), ("b", "final"))]
    assert unlike(runs) == [f"Recipes differ (levels){RECIPES}"]


def test_lines_that_somebody_wrote_do_no_harm() -> None:
    odd = [with_settings("a", {"dim": 0}, epochs=[3], levels=7), with_settings("b", {"dim": 0}, epochs="many")]
    assert isinstance(unlike(odd), list)


def test_budgets_of_different_data_sets_may_differ() -> None:
    runs = [
        with_settings(label, {"data": data}, epochs=epochs) for label in "ab" for data, epochs in (("x", 5), ("y", 9))
    ]
    assert unlike(runs) == []


def test_recipes_that_differ_are_told_of_by_name() -> None:
    runs = [with_settings("a", lr=1e-5, batch=180, loss_settings={}), with_settings("b", lr=3e-5, batch=120, side=256)]
    assert differing(runs) == ["lr", "batch"]
    assert unlike(runs) == [f"Recipes differ (batch and lr){RECIPES}"]
    own = [with_settings(label, {"seed": number}, loss=label, loss_settings={label: 1}, seed=number, recipe=label)
           for number, label in enumerate("ab")]  # fmt: skip
    assert unlike(own) == []


def test_images_that_were_left_out_are_told_of() -> None:
    runs = [
        replace(result(label, data=data), left_out=number)
        for label in "ab"
        for data, number in (("x", 1), ("y", 3), ("z", 0))
    ]
    said = "Left out, since they cannot be read: 1 image of x and 3 images of y; nearkin data check names them."
    assert unlike(runs) == [said]
    elsewhere = replace(runs[0], id="elsewhere-a", left_out=0)
    assert unlike([*runs, elsewhere]) == [said]
    runs[0] = replace(runs[0], left_out=0)
    assert "0 to 1 images, not the same in all runs of x and 3 images of y" in unlike(runs)[0]


def test_what_failed_is_not_compared() -> None:
    runs = [with_settings("a", epochs=5, lr=1), with_settings("b", epochs=5, lr=1), with_settings("c", epochs=9, lr=2)]
    assert unlike(runs[:2]) == [] and unlike(runs)
    assert unlike([*runs[:2], replace(runs[2], status=FAILED)]) == []
