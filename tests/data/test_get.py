"""Getting benchmarks from a server on this machine, in small archives of the official layout."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
import tarfile
import threading
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from nearkin.data import DATASETS, DownloadError, get
from nearkin.data.counts import PUBLISHED, Counts
from nearkin.data.registry import Remote
from tests.data import layouts
from tests.data.server import Site, serving
from tests.patience import PATIENCE, until


@pytest.fixture
def site() -> Iterator[Site]:
    with serving(Site()) as running:
        yield running


def packed_birds(folder: Path) -> bytes:
    """CUB_200_2011.tgz in small: its folder, and the file that lies beside it in the original."""
    base = layouts.cub200(folder)
    layouts.lines(folder / "attributes.txt", ["1 has_bill_shape::curved_(up_or_down)"])
    with tarfile.open(folder / "x.tgz", "w:gz") as archive:
        archive.add(folder / "attributes.txt", "attributes.txt")
        archive.add(base, "CUB_200_2011")
    return (folder / "x.tgz").read_bytes()


def birds(site: Site, folder: Path, monkeypatch: pytest.MonkeyPatch, **facts: object) -> bytes:
    """The server offers the small archive, and the registry and the published counts say so."""
    content = packed_birds(folder)
    site.files["CUB_200_2011.tgz"] = content
    monkeypatch.setitem(PUBLISHED, "cub200", Counts(6, 2, 6, 2))
    monkeypatch.setattr(sys.modules["nearkin.data.cub200"], "CUB200", dict.fromkeys(layouts.BIRDS.values(), 3))
    chosen: dict[str, object] = {
        "addresses": (site.at("CUB_200_2011.tgz"),),
        "size": len(content),
        "sha256": hashlib.sha256(content).hexdigest(),
        "md5": None,
    }
    remote = replace(DATASETS["cub200"].sources[0][0], **(chosen | facts))  # type: ignore[arg-type]
    monkeypatch.setitem(DATASETS, "cub200", replace(DATASETS["cub200"], sources=((remote,),)))
    return content


def test_download_verify_unpack_and_count(site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = birds(site, tmp_path / "made", monkeypatch)
    said: list[str] = []
    shown: list[tuple[str, int, int | None]] = []
    root = tmp_path / "deep" / "data"
    splits = get("cub200", root, progress=lambda *facts: shown.append(facts), say=said.append)
    assert (len(splits.train), len(splits.test)) == (6, 6)
    assert sorted(path.name for path in root.iterdir()) == ["CUB_200_2011", "CUB_200_2011.tgz", "attributes.txt"]
    assert said == [
        "CUB_200_2011.tgz: sha256 as published.",
        f"CUB_200_2011.tgz is unpacked; it stays, {len(content):,} bytes: remove it if you need the room.",
        "6 images to train on and 6 to test on, as published.",
        "Terms of use: for non-commercial research and education; see https://www.vision.caltech.edu/datasets/cub_200_2011/.",
    ]
    assert {what for what, _, _ in shown} == {"download CUB_200_2011.tgz", "unpack CUB_200_2011.tgz"}
    assert ("download CUB_200_2011.tgz", len(content), len(content)) in shown


def test_what_is_there_is_not_fetched_again(site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    birds(site, tmp_path / "made", monkeypatch)
    get("cub200", tmp_path / "data")
    (tmp_path / "data" / "CUB_200_2011.tgz").unlink()
    said: list[str] = []
    get("cub200", tmp_path / "data", say=said.append)
    assert said == [f"cub200 is already whole in {tmp_path / 'data'}."] and len(site.asked) == 1


def test_an_archive_put_there_by_hand_is_verified_and_used(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = birds(site, tmp_path / "made", monkeypatch)
    archive = tmp_path / "data" / "CUB_200_2011.tgz"
    archive.parent.mkdir()
    archive.write_bytes(content[:-1] + b"x")
    with pytest.raises(
        ValueError, match=r"CUB_200_2011\.tgz must be the published file, got sha256 .*; remove it and run"
    ):
        get("cub200", tmp_path / "data")
    archive.write_bytes(content)
    assert len(get("cub200", tmp_path / "data").train) == 6
    assert site.asked == []


def test_without_a_published_checksum_it_is_said(site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    birds(site, tmp_path / "made", monkeypatch, sha256=None, size=None)
    said: list[str] = []
    get("cub200", tmp_path / "data", say=said.append)
    assert said[0] == "CUB_200_2011.tgz: not verified, since no checksum is published."


def test_a_wrong_file_is_not_unpacked(site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    birds(site, tmp_path / "made", monkeypatch, sha256="0" * 64)
    with pytest.raises(
        DownloadError, match=r"must give the published CUB_200_2011\.tgz, got sha256 .* nothing was kept"
    ):
        get("cub200", tmp_path / "data")
    assert list((tmp_path / "data").iterdir()) == []


def test_a_short_archive_is_counted(site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    birds(site, tmp_path / "made", monkeypatch)
    monkeypatch.setitem(PUBLISHED, "cub200", Counts(7, 2, 6, 2))
    with pytest.raises(ValueError, match=r"must hold the published 13 images, got 12 in .*: train has 6 of 7 images"):
        get("cub200", tmp_path / "data")


def test_it_resumes_and_says_so(site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = birds(site, tmp_path / "made", monkeypatch)
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "CUB_200_2011.tgz.part").write_bytes(content[:1_000])
    said: list[str] = []
    get("cub200", tmp_path / "data", say=said.append)
    assert said[0] == "CUB_200_2011.tgz: going on after 1,000 bytes."
    assert site.asked[0]["Range"] == "bytes=1000-"


def test_digits(site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    layouts.mnist(tmp_path / "made")
    monkeypatch.setitem(PUBLISHED, "mnist", Counts(20, 10, 10, 10))
    remotes = []
    for remote in DATASETS["mnist"].sources[0]:
        site.files[remote.name] = content = (tmp_path / "made" / remote.name).read_bytes()
        sum_ = hashlib.md5(content).hexdigest()
        remotes.append(Remote(remote.name, (site.at("gone"), site.at(remote.name)), size=len(content), md5=sum_))
    monkeypatch.setitem(DATASETS, "mnist", replace(DATASETS["mnist"], sources=(tuple(remotes),)))
    said: list[str] = []
    splits = get("mnist", tmp_path / "data", say=said.append)
    assert len(splits.train) == 20 and said[0] == "train-images-idx3-ubyte.gz: md5 as published."


def test_products_from_a_zip_file(site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = {"train": [(1, 1, "bicycle_final/1_0.JPG")], "test": [(2, 1, "bicycle_final/2_0.JPG")]}
    base = layouts.sop(tmp_path / "made", rows, make=layouts.picture)
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        for path in sorted(base.rglob("*")):
            archive.write(path, path.relative_to(base.parent))
    site.files["x.zip"] = (tmp_path / "x.zip").read_bytes()
    monkeypatch.setitem(PUBLISHED, "sop", Counts(1, 1, 1, 1))
    remote = Remote("Stanford_Online_Products.zip", (site.at("x.zip"),), makes="Stanford_Online_Products")
    monkeypatch.setitem(DATASETS, "sop", replace(DATASETS["sop"], sources=((remote,),)))
    assert get("sop", tmp_path / "data").train.super_classes == ("bicycle",)


def test_cars_say_that_their_address_has_vanished(tmp_path: Path) -> None:
    with pytest.raises(ValueError) as caught:
        get("cars196", tmp_path / "cars")
    assert str(caught.value) == (
        "cars196: its official pages at Stanford were taken down in 2023 and there is no other official address "
        "(https://ai.stanford.edu/~jkrause/cars/car_dataset.html), so its files must be supplied by hand, got none of "
        "car_ims.tgz and cars_annos.mat, or cars_train.tgz, cars_test.tgz, car_devkit.tgz and "
        f"cars_test_annos_withlabels.mat in {tmp_path / 'cars'}; put them there and run the same again to verify and "
        "unpack them."
    )
    assert not (tmp_path / "cars").exists()


def test_cars_supplied_by_hand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The newer set of files, its kit unpacked before; checksums of the real ones are left out."""
    from tests.data.test_cars196 import devkit

    made = devkit(tmp_path / "made", [1, 99], [98, 196])
    root = tmp_path / "data"
    for part in ("cars_train", "cars_test"):
        root.mkdir(exist_ok=True)
        with tarfile.open(root / f"{part}.tgz", "w:gz") as archive:
            archive.add(made / part, part)
    (made / "devkit").rename(root / "devkit")
    (made / "cars_test_annos_withlabels.mat").rename(root / "cars_test_annos_withlabels.mat")
    monkeypatch.setitem(PUBLISHED, "cars196", Counts(2, 2, 2, 2))
    plain = tuple(
        tuple(replace(remote, size=None, sha256=None, md5=None) for remote in source)
        for source in DATASETS["cars196"].sources
    )
    monkeypatch.setitem(DATASETS, "cars196", replace(DATASETS["cars196"], sources=plain))
    said: list[str] = []
    splits = get("cars196", root, say=said.append)
    assert (len(splits.train), len(splits.test)) == (2, 2)
    assert "devkit is already unpacked." in said


def test_clothes_need_an_agreement(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match=r"inshop: its owners give it out on agreement, through their page only \(https://mmlab.*"
                       r"got none of img\.zip and list_eval_partition\.txt in"):  # fmt: skip
        get("inshop", tmp_path)
    made = layouts.inshop(
        tmp_path / "made", [("img/a.jpg", "1", "train"), ("img/b.jpg", "2", "query"), ("img/c.jpg", "2", "gallery")]
    )
    root = tmp_path / "data"
    (root / "Img").mkdir(parents=True)
    with zipfile.ZipFile(root / "Img" / "img.zip", "w") as archive:
        for path in sorted((made / "Img").rglob("*")):
            archive.write(path, path.relative_to(made / "Img"))
    (made / "Eval").rename(root / "Eval")
    monkeypatch.setitem(PUBLISHED, "inshop", Counts(1, 1, 2, 1, queries=1))
    said: list[str] = []
    splits = get("inshop", root, say=said.append)
    assert splits.test.query is not None and splits.test.query.tolist() == [True, False]
    assert (root / "Img" / "img" / "a.jpg").is_file()
    assert said[0] == "img.zip: not verified, since no checksum is published."


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("cup200", r"data set 'cup200' is not known; did you mean 'cub200'\?"),
        (
            "glyphs",
            r"name must be a data set to download, got 'glyphs', characters drawn .*; use nearkin\.data\.load\('glyphs'\)",
        ),
        ("folder", r"got 'folder', your own images, a folder per class; use nearkin\.data\.load\('folder', root\)\."),
    ],
)
def test_what_cannot_be_downloaded(name: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=message):
        get(name, tmp_path)


def test_a_root_that_is_a_file(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"root must be a folder, got the file .*x; pass another place\."):
        get("cub200", layouts.empty(tmp_path / "x"))


def test_the_interrupt_key_keeps_the_part(site: Site, tmp_path: Path) -> None:
    """A real process, a real signal."""
    site.files["CUB_200_2011.tgz"] = bytes(200_000)
    site.hold = threading.Event()
    script = f"""
from dataclasses import replace
from nearkin.data import DATASETS
from nearkin.data.commands import Get, get
entry = DATASETS["cub200"]
remote = replace(entry.sources[0][0], addresses=({site.at("CUB_200_2011.tgz")!r},), size=None, sha256=None, md5=None)
DATASETS["cub200"] = replace(entry, sources=((remote,),))
try:
    get(Get("cub200", {str(tmp_path / "my data")!r}))
except KeyboardInterrupt as stop:
    print(stop)
"""
    process = subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    part = tmp_path / "my data" / "CUB_200_2011.tgz.part"
    try:
        until(lambda: part.exists() and part.stat().st_size > 90_000)
        os.kill(process.pid, signal.SIGINT)
        out, _ = process.communicate(timeout=PATIENCE)
    finally:
        site.hold.set()
        process.kill()
    assert out.strip().splitlines()[-1] == (
        f"interrupted with {part.stat().st_size:,} bytes kept in {part}; "
        f"run nearkin data get cub200 --root '{part.parent}' to go on."
    )
