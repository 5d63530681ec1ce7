"""The grid: what it stands for, and what a wrong one gets."""

from __future__ import annotations

import contextlib
import json
import re
import sys
from pathlib import Path

import pytest

from nearkin.benchmark import grid as grids
from nearkin.benchmark.job import Job
from nearkin.cli import main
from tests.benchmark.grids import grid


def test_all_combinations_each_once() -> None:
    text = (
        'losses = ["margin", {label = "L/M/H", loss = "ranked_list", levels = "lmh"}]\ndata = ["glyphs"]\n'
        'networks = ["resnet18", "resnet50"]\ndims = [64, 512]\nseeds = [0, 1, 2]\n'
        'protocols = ["fixed_validation", {protocol = "cross_validation", folds = 4}]\n'
    )
    jobs = grids.parse(text).jobs
    assert len(jobs) == len({job.id for job in jobs}) == 2 * 2 * 2 * 3 * 5
    assert {job.label for job in jobs} == {"margin", "L/M/H"}
    folds = {job.settings.fold for job in jobs if job.settings.protocol == "cross_validation"}
    assert folds == {0, 1, 2, 3}
    assert [job.settings.seed for job in jobs] == sorted(job.settings.seed for job in jobs)


def test_settings_of_an_entry_go_before_those_of_all() -> None:
    text = (
        'losses = [{loss = "margin", lr = 0.5, loss_settings = {margin = 0.3}}, "triplet"]\ndata = ["glyphs"]\n'
        "[settings]\nlr = 0.25\nloss_settings = {miner = 'hard'}\n"
    )
    margin, triplet = grids.parse(text).jobs
    assert (margin.settings.lr, triplet.settings.lr) == (0.5, 0.25)
    assert margin.settings.loss_settings == {"miner": "hard", "margin": 0.3}
    assert margin.label == "margin (lr 0.5, loss_settings margin 0.3)"


def test_the_id_is_that_of_the_settings(tmp_path: Path) -> None:
    first, again = grids.read(grid(tmp_path)), grids.read(grid(tmp_path))
    other = grids.read(grid(tmp_path, lr=0.002))
    elsewhere = grids.read(grid(tmp_path, threads=2))  # where it is computed changes nothing
    ids = [[job.id for job in each.jobs] for each in (first, again, other, elsewhere)]
    assert ids[0] == ids[1] == ids[3] and not set(ids[0]) & set(ids[2])


def test_two_folders_of_images_are_two_data_sets(tmp_path: Path) -> None:
    text = 'losses = ["margin"]\ndata = [{data = "folder", root = "cats"}, {data = "folder", root = "dogs"}]\n'
    jobs = grids.parse(text, "grid", tmp_path).jobs
    assert [job.data for job in jobs] == ["cats", "dogs"] and jobs[0].id != jobs[1].id
    assert jobs[0].settings.root == str(tmp_path / "cats")


def test_a_job_can_be_read_from_its_folder(tmp_path: Path) -> None:
    for job in grids.read(grid(tmp_path)).jobs:
        job.save(tmp_path)
        assert Job.load(job.folder(tmp_path)) == job


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('losses = ["proxy_ancor"]\ndata = ["glyphs"]', "loss 'proxy_ancor' is not known; did you mean 'proxy_anchor'"),
        (
            'losses = [{loss = "triplet", margn = 0.2}]\ndata = ["glyphs"]',
            r"losses: setting 'margn' is not known; did you mean loss_settings = \{margin = \.\.\.\}\?",
        ),
        ('loses = ["margin"]\ndata = ["glyphs"]', "grid: key 'loses' is not known; did you mean 'losses'"),
        ('losses = ["margin"]\ndata = ["glyfs"]', "data set 'glyfs' is not known; did you mean 'glyphs'"),
        ('losses = ["margin"]', "grid: data must be a list of what to compare, got none"),
        ('losses = []\ndata = ["glyphs"]', "losses must be a list with at least one entry, got \\[\\]"),
        ('losses = "margin"\ndata = ["glyphs"]', "losses must be a list with at least one entry, got 'margin'"),
        ('losses = ["margin"]\ndata = ["glyphs"]\n[settings]\nlearning_rate = 1', "setting 'learning_rate'"),
        (
            'losses = ["margin"]\ndata = [{data = "glyphs", data_settings = {classes = 9}}]\n'
            '[settings]\ndata_settings = "x"',
            "grid: train: data_settings must be a table of settings, got 'x'; change data_settings.",
        ),
        (
            'losses = ["margin"]\ndata = ["glyphs"]\nseeds = [99999999999999999999999]',
            "train: seed must be a whole number at least 0 and at most 9223372036854775807, got 99999999999999999999999",
        ),
        ('losses = [{loss = "margin", loss_settings = {margn = 1}}]\ndata = ["glyphs"]', "margn.*margin"),
        ('losses = [{label = "x"}]\ndata = ["glyphs"]', "each table of losses must have 'loss'"),
        (
            'losses = ["margin", "margin"]\ndata = ["glyphs"]',
            "each run must differ from the others, got 'margin on glyphs",
        ),
        (
            'losses = ["margin"]\ndata = ["glyphs"]\nseeds = [0, 3, 3]',
            "got 'margin on glyphs, resnet50 512, last_epoch, seed 3' twice; drop the repeated entry",
        ),
        (
            'losses = [{label = "a", loss = "margin"}, {label = "a", loss = "triplet"}]\ndata = ["glyphs"]',
            "a label of its own, got 'a' for two settings that differ in loss",
        ),
        (
            'losses = ["margin"]\ndata = ["glyphs"]\n'
            'protocols = [{protocol = "fixed_validation", ratio = 0.7}, {protocol = "fixed_validation", ratio = 0.8}]',
            "^grid: each protocol must be in one entry of protocols, got 'fixed_validation' in two that differ in ratio; an "
            "experiment is known by its protocol's name alone: give ratio in entries of losses, each with a label, as in "
            'the grid "splits" that comes with nearkin.$',
        ),
        (
            'losses = ["margin"]\ndata = ["glyphs"]\n'
            'protocols = [{protocol = "cross_validation", folds = 3}, {protocol = "cross_validation", folds = 4}]',
            "got 'cross_validation' in two that differ in folds; .* alone: write a grid for each number of folds.$",
        ),
        (
            'losses = ["margin"]\ndata = ["glyphs"]\nnetworks = [{network = "small", network_settings = {width = 4}}, '
            '{network = "small", network_settings = {width = 8}}]',
            "^grid: each network must be in one entry of networks, got 'small' in two that differ in network_settings; an "
            "experiment is known by its network's name alone: give network_settings in entries of losses, each with a "
            "label.$",
        ),
        (
            'losses = ["margin"]\ndata = ["glyphs"]\ndims = [64, {dim = 64, levels = "lmh"}]',
            "got 64 in two that differ in levels; an experiment is known by its dim alone: give levels in entries of",
        ),
        (
            'losses = ["margin"]\ndata = [{data = "glyphs", data_settings = {classes = 20}}, "glyphs"]',
            "^grid: each data set must have a name of its own, got 'glyphs' for two settings that differ in data_settings; "
            "give each entry of data a label.$",
        ),
        *(
            (
                f'losses = [{{loss = "margin", label = {label}}}]\ndata = ["glyphs"]',
                f"^grid: losses: label must be a text that says something, got {came}; write label = "
                '"NAME IN TABLES", or leave label out.$',
            )
            for label, came in (
                ('["x"]', r"\['x'\]"),
                ("{a = 1}", "{'a': 1}"),
                ('""', "''"),
                ('" "', "' '"),
                ("3", "3"),
            )
        ),
        (
            'losses = ["margin"]\ndata = [{data = "glyphs", label = ["x"]}]',
            r"^grid: data: label must be a text that says something, got \['x'\]; write",
        ),
        ('losses = [{loss = ["margin"]}]\ndata = ["glyphs"]', "loss must be a text, got \\['margin'\\]"),
        ('losses = [{loss = "ranked_list", alpha = 1.0}]\ndata = ["glyphs"]', "write loss_settings = {alpha = ...}"),
        ('losses = ["margin"]\ndata = [{data = "glyphs", data_settings = {clases = 3}}]', "did you mean 'classes'"),
        (
            'losses = ["margin"]\ndata = ["glyphs"]\nnetworks = [{network = "small", network_settings = {widht = 8}}]',
            "small: setting 'widht' is not known; did you mean 'width'",
        ),
        ('losses = ["margin"\ndata = ["glyphs"]', "grid must be a TOML file, got"),
        ('losses = ["margin"]\ndata = ["glyphs"]\nretries = -1', "retries must be a whole number at least 0, got -1"),
        ('losses = ["margin"]\ndata = ["glyphs"]\nprotocols = ["fixed"]', "protocol must be 'last_epoch' or"),
        (
            'losses = ["margin"]\ndata = ["glyphs"]\nprotocols = [{protocol = "cross_validation", folds = 1}]',
            "folds must be a whole number at least 2, got 1",
        ),
    ],
)
def test_a_wrong_grid_is_one_sentence(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        grids.parse(text)
    assert "\n" not in str(caught.value)


def test_a_grid_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", str(tmp_path / "no.toml")]) == 2
    assert "which is not there" in capsys.readouterr().err
    assert main(["bench"]) == 2
    assert "give a grid or --smoke, got neither" in capsys.readouterr().err
    assert main(["bench", "status", str(tmp_path)]) == 2
    assert "has no grid.toml" in capsys.readouterr().err
    assert main(["bench", "rebuild", str(tmp_path)]) == 2
    assert "holds no runs" in capsys.readouterr().err


def test_without_scipy_no_run_is_begun_whose_judge_is_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "scipy", None)
    assert main(["bench", "--smoke", "--out", str(tmp_path / "out")]) != 0
    assert "a tournament needs SciPy" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
    assert main(["bench", "--smoke", "--dry-run"]) == 0  # which judges nothing


def test_a_grid_of_somebody_else_s_is_not_replaced(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "grid.toml").write_text("my = 'own'\n")
    assert main(["bench", str(grid(tmp_path)), "--out", str(mine)]) == 2
    said = capsys.readouterr().err
    assert "which holds a grid.toml that nearkin bench did not write; choose another folder." in said
    assert [path.name for path in mine.iterdir()] == ["grid.toml"]
    assert (mine / "grid.toml").read_text() == "my = 'own'\n"
    grids.check_own(tmp_path, grids.read(grid(tmp_path)))  # beside the very file that it was made of


def test_a_place_that_is_no_folder_is_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").touch()
    assert main(["bench", str(grid(tmp_path)), "--out", str(tmp_path / "file")]) == 2
    assert capsys.readouterr().err == (
        f"nearkin bench: out must be a folder, got '{tmp_path / 'file'}', which is a file; choose another.\n"
    )
    path = grid(tmp_path)
    assert main(["bench", str(path), "--out", str(path)]) == 2
    assert capsys.readouterr().err.endswith("grid.toml', which is a file; choose another.\n")


def test_a_folder_is_no_grid_unless_one_that_comes_with_nearkin_has_its_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["bench", str(tmp_path)]) == 2
    assert capsys.readouterr().err == (
        f"nearkin bench: grid must be a TOML file, got '{tmp_path}', which is a folder; check the path.\n"
    )
    monkeypatch.chdir(tmp_path)
    (tmp_path / "losses").mkdir()
    assert len(grids.read("losses").jobs) == 48


def test_two_folders_of_one_name_want_labels(tmp_path: Path) -> None:
    text = 'losses = ["margin"]\ndata = [{data = "folder", root = "a/images"}, {data = "folder", root = "b/images"}]'
    with pytest.raises(
        ValueError, match="each data set must have a name of its own, got 'images' for .* give each entry"
    ):
        grids.parse(text, folder=tmp_path)


def test_paths_that_are_typed_are_seen_from_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    over = {"data": [{"data": "folder", "root": "a/images"}]}
    [job] = grids.parse('losses = ["margin"]\ndata = ["glyphs"]', folder=tmp_path / "grids", over=over).jobs
    assert job.settings.root == str(tmp_path / "a" / "images")


def test_a_dry_run_lists_and_does_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", str(grid(tmp_path)), "--dry-run", "--out", str(tmp_path / "out")]) == 0
    assert "2 runs" in capsys.readouterr().out and not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"data": '["cub200"]'}, "cub200: root must be the folder that holds it, got none"),
        ({"data": '[{data = "folder", root = "nowhere"}]'}, "nowhere: "),
        ({"protocols": '["cross_validation"]'}, "as many classes as folds \\(10\\), got 3; use last_epoch"),
        ({"networks": '[{network = "small", weights = "no.safetensors"}]'}, "no.safetensors', which is not there"),
    ],
)
def test_what_every_run_would_meet_is_said_before_the_first(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], changes: dict[str, str], message: str
) -> None:
    axes = {"losses": '["margin"]', "data": '[{data = "glyphs", data_settings = {classes = 6}}]'} | changes
    (tmp_path / "grid.toml").write_text("".join(f"{key} = {value}\n" for key, value in axes.items()))
    assert main(["bench", str(tmp_path / "grid.toml"), "--out", str(tmp_path / "out")]) == 2
    said = capsys.readouterr().err
    assert re.search(message, said) and said.count("\n") == 1
    assert not (tmp_path / "out").exists()


def own(folder: Path, *more: str) -> list[grids.Job]:
    """The runs of a grid over images of one's own."""
    text = 'losses = ["margin"]\ndata = [{data = "folder", root = "images"}]\n' + "".join(more)
    (folder / "images").mkdir(parents=True)
    (folder / "grid.toml").write_text(text)
    return list(grids.read(folder / "grid.toml").jobs)


def test_what_is_typed_takes_the_place_of_what_the_grid_varies(tmp_path: Path) -> None:
    (tmp_path / "2024").mkdir()
    over = {
        "data": "folder", "root": 2024, "network": "small", "dim": 16, "protocol": "cross_validation", "folds": 3,
        "seed": 7, "loss": ["margin", "triplet"],
    }  # fmt: skip
    with contextlib.chdir(tmp_path):
        made = grids.read("losses", over)
    found = [job.settings for job in made.jobs]
    assert [(one.loss, one.fold) for one in found] == [(loss, n) for n in range(3) for loss in ("margin", "triplet")]
    for one in found:
        assert (one.data, one.network, one.dim, one.seed) == ("folder", "small", 16, 7)
        assert one.root == str(tmp_path / "2024")
    grids.copy(made, tmp_path / "out")
    assert [job.id for job in grids.of(tmp_path / "out").jobs] == [job.id for job in made.jobs]


def test_three_folds_are_done_where_three_are_typed() -> None:
    """Its one entry of cross validation says ten, and nothing else can be meant."""
    jobs = grids.read("cross_validation", {"root": "birds", "folds": 3}).jobs
    assert {(job.settings.folds, job.settings.fold) for job in jobs} == {(3, 0), (3, 1), (3, 2)} and len(jobs) == 9
    both = 'losses = ["margin"]\ndata = ["glyphs"]\nprotocols = ["last_epoch", {protocol = "cross_validation", folds = 10}]'
    assert [job.settings.protocol for job in grids.parse(both, over={"folds": 2}).jobs] == [
        "last_epoch", "cross_validation", "cross_validation",
    ]  # fmt: skip


def test_what_is_typed_takes_the_place_of_what_one_entry_says(tmp_path: Path) -> None:
    text = (
        'losses = [{loss = "margin", batch = 30, loss_settings = {margin = 0.1, beta = 1.0}}]\n'
        'data = [{data = "glyphs", data_settings = {classes = 40}}]'
    )
    over = {"batch": 20, "loss_settings": {"margin": 0.3}, "data_settings": {"classes": 20, "images": 5}}
    made = grids.parse(text, folder=tmp_path, over=over)
    [job] = made.jobs
    assert job.settings.batch == 20 and job.settings.loss_settings == {"margin": 0.3, "beta": 1.0}
    assert job.settings.data_settings == {"classes": 20, "images": 5}
    grids.copy(made, tmp_path / "out")
    assert [job.id for job in grids.of(tmp_path / "out").jobs] == [job.id]


def test_what_one_entry_of_several_says_is_a_part_of_it() -> None:
    jobs = grids.read("losses", {"root": "birds", "levels": "layer3"}).jobs
    assert {job.settings.levels for job in jobs} == {"layer3", "lmh"}
    jobs = grids.read("ranked_list_alpha", {"root": "birds", "loss_settings": {"margin": 0.3}}).jobs
    assert [job.settings.loss_settings for job in jobs[:2]] == [
        {"margin": 0.3, "alpha": 1.0},
        {"margin": 0.3, "alpha": 1.2},
    ]


@pytest.mark.parametrize(
    ("name", "over", "sentence"),
    [
        (
            "splits",
            {"ratio": 0.6},
            "splits: ratio must be left to the entries of losses, which give it themselves (0.7, 0.8, 0.9 and 0.95), got "
            "0.6 in --settings; leave it out, or put one entry in their place: --settings loss=multi_similarity ratio=0.6.",
        ),
        (
            "ranked_list_alpha",
            {"loss_settings": {"alpha": 2.0}},
            "ranked_list_alpha: loss_settings alpha must be left to the entries of losses, which give it themselves (1.0, "
            "1.2 and 1.4), got 2.0 in --settings; leave it out, or put one entry in their place: --settings "
            "loss=ranked_list 'loss_settings={alpha = 2.0}'.",
        ),
    ],
)
def test_what_a_grid_varies_is_not_passed_over_in_silence(
    tmp_path: Path, name: str, over: dict[str, object], sentence: str
) -> None:
    with pytest.raises(ValueError, match=re.escape(sentence)):
        grids.read(name, {"root": "birds", **over})


def test_a_folder_in_which_it_was_passed_over_is_still_read(tmp_path: Path) -> None:
    made = grids.read("splits", {"root": str(tmp_path)})
    grids.copy(made, tmp_path / "out")
    kept = tmp_path / "out" / "grid.json"
    kept.write_text(json.dumps(json.loads(kept.read_text()) | {"over": {"root": str(tmp_path), "ratio": 0.6}}))
    assert [job.id for job in grids.of(tmp_path / "out").jobs] == [job.id for job in made.jobs]


def test_folders_of_ones_own_are_told_apart(tmp_path: Path) -> None:
    [one], [other] = own(tmp_path / "a"), own(tmp_path / "b")
    assert one.data == other.data == "images" and one.id != other.id
    text = 'losses = ["margin"]\ndata = ["folder"]'
    [typed] = grids.parse(text, over={"root": str(tmp_path / "a" / "images")}).jobs
    assert (typed.data, typed.id) == (one.data, one.id)


def test_weights_are_known_by_their_content(tmp_path: Path) -> None:
    made = []
    for name, content in (("a", b"one"), ("b", b"one"), ("c", b"two")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "w.safetensors").write_bytes(content)
        path = tmp_path / name / "grid.toml"
        path.write_text(
            'losses = ["margin"]\ndata = ["glyphs"]\nnetworks = [{network = "small", weights = "w.safetensors"}]'
        )
        made.append(grids.read(path))
    first, same, other = (found.jobs[0].id for found in made)
    assert first == same != other
    grids.copy(made[0], tmp_path / "out")
    (tmp_path / "a" / "w.safetensors").unlink()
    assert grids.of(tmp_path / "out").jobs[0].id == first  # as its runs are called, though the file is gone
    made[0].jobs[0].save(tmp_path / "out")
    assert grids.Job.load(tmp_path / "out" / "runs" / first).id == first


# What the sources vary, and how many runs that makes with three seeds.
ABLATIONS = {
    "ranked_list_alpha": ("alpha", [1.0, 1.2, 1.4]),
    "ranked_list_margin": ("margin", [0.0, 0.2, 0.4, 0.6, 1.2]),
    "ranked_list_temperature": ("temperature", [0.0, 5.0, 10.0, 15.0, 20.0]),
    "nra_power": ("power", [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]),
}


@pytest.mark.parametrize(
    ("name", "varied"),
    [
        *((name, {"loss_settings"}) for name in ABLATIONS),
        ("ranked_list_batch", {"batch"}),
        ("ranked_list_levels", {"levels"}),
        ("ranked_list_levels_fast", {"levels"}),
        ("unified_view", {"loss", "loss_settings"}),
        ("splits", {"ratio"}),
    ],
)
def test_an_ablation_varies_one_thing(name: str, varied: set[str]) -> None:
    runs = [job.settings.identity() for job in grids.read(name, {"root": "birds"}).jobs]
    assert {key for key in runs[0] if any(run[key] != runs[0][key] for run in runs)} == {*varied, "seed"}


@pytest.mark.parametrize("name", grids.names())
def test_the_grids_that_come_with_nearkin(name: str) -> None:
    jobs = grids.read(name, {"root": "birds", "weights": "w.safetensors"}).jobs
    assert all(job.settings.root == str(Path.cwd() / "birds") for job in jobs)
    first = [job for job in jobs if job.settings.seed == 0]
    if name in ABLATIONS:
        key, values = ABLATIONS[name]
        assert [job.settings.loss_settings[key] for job in first] == values and len(jobs) == 3 * len(first)
    if name == "deep_dive":
        assert len(jobs) == 3 * 3 * 4 * 11
    if name == "cross_validation":
        assert [job.settings.fold for job in jobs if job.label == "proxy_anchor"] == list(range(10))
    if name == "ranked_list_batch":
        assert [job.settings.batch for job in first] == [120, 150, 165, 180, 195]
    if name == "unified_view":
        assert len(first) == 7
    if name == "losses":
        assert len(first) >= 12 and len({job.settings.epochs for job in jobs}) == 1


def test_a_grid_keeps_what_was_put_on_top_of_it(tmp_path: Path) -> None:
    grid_ = grids.read("nra_power", {"root": str(tmp_path), "epochs": 3})
    grids.copy(grid_, tmp_path / "out")
    assert [job.id for job in grids.of(tmp_path / "out").jobs] == [job.id for job in grid_.jobs]


def test_a_damaged_copy_of_what_was_put_on_top_is_named(tmp_path: Path) -> None:
    grids.copy(grids.read(grid(tmp_path), {"epochs": 5}), tmp_path / "out")
    (tmp_path / "out" / "grid.json").write_text("{x")
    with pytest.raises(
        ValueError, match=r"grid.json must be what nearkin bench wrote, got .*; give nearkin bench its grid again\."
    ):
        grids.of(tmp_path / "out")


def test_a_name_that_no_grid_has(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "loses"]) == 2
    assert "did you mean 'losses'" in capsys.readouterr().err
