"""The whole path on a few characters: runs, results, tournament and report, in under a minute on a CPU."""

from __future__ import annotations

from pathlib import Path

GRID = """
losses = ["ranked_list", "multi_similarity", "proxy_anchor", "margin"]
data = [{data = "glyphs", data_settings = {classes = 40, images = 10}}]
networks = [{network = "small", network_settings = {width = 8}}]
dims = [32]
protocols = ["fixed_validation"]
seeds = [0, 1]

[settings]
side = 0
ratio = 0.7
audit = true
geometry = "crop"
size = 28
resize = 32
sampler = "pk"
batch = 30
images = 5
epochs = 20
lr = 2e-3
loss_multiplier = 10.0
warm_up = 0
frozen_batch_norm = false
device = "cpu"
threads = 1
tensorboard = false
"""


def check() -> None:
    """Raise where what judges the results is not installed: it would be missed only after the last run."""
    from nearkin.tournament.distributions import stats

    stats()


def finish(out: Path) -> None:
    """Judge the results and write the report, as a person would."""
    from nearkin.report.command import Report, make
    from nearkin.tournament.command import Tournament
    from nearkin.tournament.command import run as judge

    judge(Tournament(results=str(out)))
    print(make(Report(results=str(out)))[1])  # the tournament has said the verdict
