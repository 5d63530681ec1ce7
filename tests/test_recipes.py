"""Recipes: the papers' settings, to the digit of the formula sheet."""

from __future__ import annotations

import importlib
import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from nearkin import losses, published, recipes
from nearkin.cli import main
from nearkin.train.settings import Train, resolve

# (recipe, what was chosen) -> what the source says.
SHEET: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("ranked_list", {"data": "cub200"}, {"network": "bn_inception", "levels": "lmh", "dim": 512, "batch": 180, "images": 3,
     "optimizer": "sgd", "momentum": 0.9, "weight_decay": 1e-5, "lr": 1e-3, "head_multiplier": 10.0, "iterations": 10_000,
     "geometry": "squash", "size": 227, "resize": 256, "mirror": True}),
    ("ranked_list", {"data": "cars196"}, {"lr": 1e-2, "iterations": 10_000}),
    ("ranked_list", {"data": "sop"}, {"lr": 1e-2, "iterations": 16_000}),
    ("deep_dive", {"data": "cub200", "network": "resnet50"}, {"batch": 100, "size": 224, "lr": 1e-4, "epochs": 100,
     "step_epochs": 5.0, "gamma": 0.1, "optimizer": "adamw"}),
    ("deep_dive", {"data": "cub200", "network": "bn_inception"}, {"batch": 180, "size": 227, "step_epochs": 10.0}),
    ("deep_dive", {"data": "cars196", "network": "resnet50"}, {"step_epochs": 10.0, "gamma": 0.1}),
    ("deep_dive", {"data": "cars196", "network": "googlenet"}, {"step_epochs": 20.0, "gamma": 0.1}),
    ("deep_dive", {"data": "sop", "network": "resnet50"}, {"step_epochs": 10.0, "gamma": 0.25, "lr": 6e-4}),
    ("deep_dive", {"data": "sop", "network": "googlenet"}, {"step_epochs": 20.0, "gamma": 0.25}),
    ("deep_dive", {"loss": "margin"}, {"loss_settings": {"margin": 0.5, "beta": 1.2, "miner": "distance_weighted"},
     "sampler": "pk", "images": 5}),
    ("unified_view", {"data": "cub200"}, {"loss": "raw", "optimizer": "adam", "lr": 1e-5, "schedule": "constant",
     "images": 5, "size": 227, "geometry": "squash"}),
    ("unified_view", {"data": "inshop"}, {"images": 4}),
    ("nra", {"data": "cub200"}, {"network": "googlenet", "batch": 128, "images": 8, "lr": 1e-4, "optimizer": "sgd",
     "momentum": 0.9, "size": 224, "geometry": "longer_side"}),
    ("nra", {"data": "sop"}, {"images": 4, "lr": 1e-3}),
    ("nra", {"data": "cars196"}, {"lr": 5e-4}),
    ("proxy_anchor", {"data": "cub200"}, {"batch": 120, "sampler": "random", "lr": 1e-4, "weight_decay": 1e-4,
     "loss_multiplier": 100.0, "clip_value": 10.0, "geometry": "resized_crop", "size": 224, "frozen_batch_norm": True,
     "pooling": "gap+gmp"}),
    ("proxy_anchor", {"data": "cub200", "network": "bn_inception"}, {"batch": 180}),
    ("proxy_anchor", {"data": "sop"}, {"frozen_batch_norm": False}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "chosen", "expected"), SHEET)
def test_a_recipe_says_what_its_paper_says(name: str, chosen: dict[str, Any], expected: dict[str, Any]) -> None:
    made = resolve({"recipe": name, **chosen})
    assert {key: getattr(made, key) for key in expected} == expected


@pytest.mark.parametrize("loss", ["proxy_nca", "margin", "arcface", "soft_triple"])
def test_learning_rates_of_the_thesis_hold_on_every_data_set(loss: str) -> None:
    rates = {"proxy_nca": 1e-5, "margin": 5e-5, "arcface": 1e-4, "soft_triple": 1e-4}
    for data in ("cub200", "sop"):
        made = resolve({"recipe": "deep_dive", "loss": loss, "data": data})
        assert made.lr * made.loss_multiplier == pytest.approx(rates[loss])


@pytest.mark.parametrize("loss", losses.names())
@pytest.mark.parametrize("name", recipes.names())
def test_every_recipe_takes_every_loss_that_is_named(name: str, loss: str) -> None:
    made = resolve({"recipe": name, "loss": loss})
    assert made.loss == loss
    extra = {"classes": 4, "dim": 8} if issubclass(losses.LOSSES[loss], losses.ProxyLoss) else {}
    losses.create(loss, **made.loss_settings, **extra)


@pytest.mark.parametrize("loss", losses.names())
@pytest.mark.parametrize("name", ["default", "deep_dive"])
def test_losses_with_proxies_need_no_balanced_batches(name: str, loss: str) -> None:
    proxies = issubclass(losses.LOSSES[loss], losses.ProxyLoss)
    assert resolve({"recipe": name, "loss": loss}).sampler == ("random" if proxies else "pk")


@pytest.mark.parametrize(("network", "sides"), [("resnet50", (288, 320)), ("small", (0, 0)), ("digits", (0, 0))])
def test_the_default_tests_on_a_larger_picture_where_the_network_takes_one(
    network: str, sides: tuple[int, int]
) -> None:
    made = resolve({"network": network})
    assert (made.test_size, made.test_resize) == sides


@pytest.mark.parametrize(
    ("chosen", "sides"),
    [
        ({}, (224, 256, 288, 320)),
        ({"size": 224}, (224, 256, 288, 320)),
        ({"size": 32}, (32, 37, 0, 0)),
        ({"size": 300, "geometry": "crop"}, (300, 343, 0, 0)),
        ({"size": 32, "resize": 100}, (32, 100, 0, 0)),
        ({"size": 112, "test_size": 224}, (112, 128, 224, 256)),
        ({"test_size": 288}, (224, 256, 288, 320)),
        ({"test_size": 256}, (224, 256, 256, 284)),
        ({"test_resize": 300}, (224, 256, 288, 300)),
        ({"test_size": 0}, (224, 256, 0, 0)),
        ({"recipe": "proxy_anchor"}, (224, 256, 0, 0)),
        ({"recipe": "ranked_list"}, (227, 256, 0, 0)),
        ({"recipe": "deep_dive", "size": 128}, (128, 256, 0, 0)),
    ],
)
def test_the_side_that_crops_are_cut_from_follows_their_size(
    chosen: dict[str, Any], sides: tuple[int, int, int, int]
) -> None:
    """Unless it is typed, or the recipe of a paper says it."""
    made = resolve(chosen)
    assert (made.size, made.resize, made.test_size, made.test_resize) == sides


def test_what_is_typed_goes_before_file_and_recipe(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('recipe = "deep_dive"\nlr = 0.5\nepochs = 7\nloss = "margin"\nloss_settings = {beta = 1.0}\n')
    words = ["train", "--config", str(path), "--epochs", "9", "--loss-settings", "margin=0.3", "--dry-run"]
    assert main(words) == 0
    shown = Train(**tomllib.loads(capsys.readouterr().out))
    assert (shown.lr, shown.epochs, shown.batch) == (0.5, 9, 100)
    assert shown.loss_settings == {"margin": 0.3, "beta": 1.0, "miner": "distance_weighted"}
    assert shown.loss_multiplier == pytest.approx(1e-4)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--recipe", "deep"], "recipe 'deep' is not known; did you mean 'deep_dive'?"),
        (["--loss", "ranked"], "loss 'ranked' is not known; did you mean 'ranked_list'?"),
        (["--network", "resnet5"], "network 'resnet5' is not known; did you mean 'resnet50'?"),
        (["--data", "cub"], "data set 'cub' is not known; did you mean 'cub200'?"),
        (["--lr", "0"], "lr must be a finite number above 0, got 0.0; change lr."),
        (["--geometry", "crop", "--size", "300", "--resize", "256"], "size must be at most resize (256), got 300; "
         "crops are cut from that side."),
        (["--crop-scale", "0.5"], "crop_scale must be two shares, least and most, got (0.5,); pass, for example, 0.16 1."),
        (["--resume", "nowhere"], "run must be a folder with a config.toml, got 'nowhere'; check the path."),
        (["--device", "tpu"], "device must be auto, cpu, cuda or cuda:N, got 'tpu'; choose one of these."),
    ],
)  # fmt: skip
def test_a_bad_setting_is_one_sentence(words: list[str], sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", *words]) == 2
    assert capsys.readouterr().err.strip() == f"nearkin train: {sentence}"


def test_a_file_without_any_k_is_told_before_training(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine.toml").write_text("ks = []\n")
    assert main(["train", "--config", str(tmp_path / "mine.toml")]) == 2
    assert capsys.readouterr().err == (
        "nearkin train: ks must be at least one number, got none; pass, for example, 1 2 4 8.\n"
    )


def test_what_was_measured_on_birds_is_the_default_recipe() -> None:
    """The settings kept with each measured run are those that the recipe gives today."""
    path = Path(__file__).parent.parent / "benchmarks" / "results" / "cub.json"
    runs = json.loads(path.read_bytes())["runs"]
    assert len(runs) == 45
    given = ("data", "network", "weights", "network_settings", "loss", "levels", "seed", "evaluate_every")
    for run in runs:
        was = run["settings"]
        own = {"loss_settings": was["loss_settings"]} if was["loss"] == "proxy_repulsion" else {}
        now = resolve({name: was[name] for name in given}, own).identity()
        assert json.loads(json.dumps({name: now[name] for name in was})) == was, run["run"]


RECIPES = json.loads((Path(__file__).parent.parent / "benchmarks" / "results" / "recipes.json").read_bytes())


@pytest.mark.parametrize("run", RECIPES["runs"], ids=lambda run: run["recipe"])
def test_a_recipe_tells_what_was_measured_with_it(run: dict[str, Any]) -> None:
    """Command, time and result in the docstring are those of the results file."""
    told = " ".join(str(importlib.import_module(f"nearkin.recipes.{run['recipe']}").__doc__).split())
    shown = re.search(r"nearkin train .*?--weights \S+", told)
    assert shown is not None
    assert run["command"].startswith(shown.group())
    device = RECIPES["conditions"]["device"].split()[-1]
    assert f"{run['seconds']:.0f} s of training on an {device} that another run shared" in told
    assert f"{run['images_per_second']:,.0f} images a second" in told
    assert f"expect R@1 {100 * run['recall@1']:.1f} on the test classes of CUB-200-2011" in told


def test_the_thesis_recipe_tells_how_far_it_is_from_the_thesis() -> None:
    [run] = [run for run in RECIPES["runs"] if run["recipe"] == "deep_dive"]
    [fact] = published.facts("deep_dive", 6, "cub200", run["settings"]["loss"], "resnet50", 512, "recall@1")
    told = " ".join(str(recipes.deep_dive.__doc__).split())
    assert f"far below the {fact.value:.1f} of the thesis' Table 6" in told
    assert f"best on the test set, which was {100 * run['test_feedback']['recall@1']:.1f} here" in told


@pytest.mark.parametrize("run", RECIPES["runs"], ids=lambda run: run["recipe"])
def test_what_was_measured_is_the_recipe_of_today(run: dict[str, Any]) -> None:
    was = run["settings"]
    given = ("data", "recipe", "weights", "network_settings", "evaluate_every")
    now = resolve({name: was[name] for name in given}).identity()
    assert json.loads(json.dumps({name: now[name] for name in was})) == was
