"""Settings: flags, TOML files and errors."""

from __future__ import annotations

import argparse
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given as drawn
from hypothesis import strategies as st

from nearkin import config
from nearkin.checks import COUNT, POSITIVE, SEED
from nearkin.config import option
from nearkin.train.objective import Objective


@dataclass(frozen=True)
class Bake:
    """A command."""

    cake: str = option("", "what to bake", positional=True)
    heat: float = option(180.0, "degrees", POSITIVE)
    eggs: int = option(3, "eggs", COUNT)
    fan: bool = option(True, "blow")
    shape: str = option("round", "form", ("round", "square"))
    sizes: tuple[int, ...] = option((1, 2), "sizes", COUNT)
    extras: dict[str, Any] = option({}, "what else")

    def __post_init__(self) -> None:
        config.check("bake", self)


def flags(*words: str) -> dict[str, Any]:
    parser = argparse.ArgumentParser()
    config.add_flags(parser, Bake)
    return config.given(Bake, vars(parser.parse_args(["apple", *words])))


def test_only_what_was_typed_is_given() -> None:
    assert flags() == {"cake": "apple"}
    assert flags("--eggs", "4", "--no-fan", "--sizes", "3", "4", "--extras", "nuts=2", "glaze=dark") == {
        "cake": "apple",
        "eggs": 4,
        "fan": False,
        "sizes": [3, 4],
        "extras": {"nuts": 2, "glaze": "dark"},
    }


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"heat": -1.0}, "bake: heat must be a finite number above 0, got -1.0; change heat."),
        ({"heat": "hot"}, "bake: heat must be a number, got 'hot'; change heat."),
        ({"eggs": 2.5}, "bake: eggs must be a whole number, got 2.5; change eggs."),
        ({"eggs": True}, "bake: eggs must be a whole number, got True; change eggs."),
        ({"fan": 1}, "bake: fan must be true or false, got 1; change fan."),
        ({"shape": "star"}, "bake: shape must be 'round' or 'square', got 'star'; choose one of these."),
        ({"sizes": (0,)}, "bake: sizes must be a whole number at least 1, got 0; change sizes."),
        ({"sizes": "12"}, "bake: sizes must be a list of numbers, got '12'; change sizes."),
        ({"extras": [1]}, "bake: extras must be a table of settings, got [1]; change extras."),
    ],
)
def test_a_wrong_value_is_one_sentence(settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError) as error:
        Bake(**settings)
    assert str(error.value) == sentence


def test_whole_numbers_are_numbers_and_lists_are_tuples() -> None:
    made = Bake(heat=200, sizes=[4])  # type: ignore[arg-type]
    assert type(made.heat) is float and made.sizes == (4,)


def test_layers_go_over_each_other_and_tables_are_merged() -> None:
    made = config.changed(Bake, {"eggs": 1, "extras": {"a": 1, "b": 1}}, {"extras": {"b": 2}}, {"eggs": 2})
    assert (made.eggs, made.extras) == (2, {"a": 1, "b": 2})
    with pytest.raises(ValueError, match="setting 'egs' is not known; did you mean 'eggs'?"):
        config.changed(Bake, {"egs": 1})


def test_what_is_no_table_is_not_covered_by_one() -> None:
    for layers in (
        ({"extras": "x"}, {"extras": {"a": 1}}),
        ({"extras": {"a": 1}}, {"extras": "x"}, {"extras": {"b": 2}}),
    ):
        with pytest.raises(ValueError) as error:
            config.changed(Bake, *layers)
        assert str(error.value) == "bake: extras must be a table of settings, got 'x'; change extras."
    with pytest.raises(ValueError, match="bake: eggs must be a whole number, got {'a': 1}; change eggs."):
        config.changed(Bake, {"eggs": 3}, {"eggs": {"a": 1}})


@pytest.mark.parametrize(
    ("value", "fits"), [(2**63 - 1, True), (2**63, False), (10**22, False), (10**400, False), (-1, False), (0, True)]
)
def test_a_seed_is_a_number_that_torch_takes(value: int, fits: bool) -> None:
    assert SEED.allows(value) is fits
    if fits:
        torch.manual_seed(value)
    assert str(SEED) == "a whole number at least 0 and at most 9223372036854775807"
    assert not POSITIVE.allows(10**400)  # no float


def test_the_largest_seed_suffices_for_several_levels() -> None:
    made = Objective("margin", {}, levels=("L", "M", "H"), dim=4, classes=2, seed=2**63 - 1)
    assert [loss.seed for loss in made.levels.values()] == [2**63 - 1, 0, 1]


@drawn(
    st.builds(
        Bake,
        cake=st.text(max_size=20).filter(lambda text: text.isprintable()),
        heat=st.floats(1e-300, 1e300),
        eggs=st.integers(1, 10**9),
        fan=st.booleans(),
        sizes=st.lists(st.integers(1, 9)).map(tuple),
        extras=st.dictionaries(st.text(max_size=5), st.one_of(st.integers(-9, 9), st.text(max_size=9), st.booleans())),
    )
)
def test_a_file_gives_the_same_settings_again(settings: Bake) -> None:
    assert Bake(**tomllib.loads(config.dump(settings))) == settings


def test_a_bad_file_is_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "bake.toml"
    with pytest.raises(ValueError, match="which is not there; check the path."):
        config.read(path, Bake)
    path.write_text("heet = 3")
    with pytest.raises(ValueError, match="bake.toml: key 'heet' is not known; did you mean 'heat'?"):
        config.read(path, Bake)
    path.write_text("heat = = 3")
    with pytest.raises(ValueError, match="config must be a TOML file, got .*; mend the file."):
        config.read(path, Bake)
    with pytest.raises(ValueError, match="extras must be words like key=value, got 'nuts'"):
        flags("--extras", "nuts")
