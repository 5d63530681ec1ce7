"""Every data set by name: how to load it, what was published about it, and where its archives come from."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from nearkin import checks
from nearkin.data.cars196 import cars196
from nearkin.data.cars196 import layout as cars196_layout
from nearkin.data.counts import PUBLISHED, Counts
from nearkin.data.cub200 import cub200
from nearkin.data.cub200 import layout as cub200_layout
from nearkin.data.folder import folder
from nearkin.data.glyphs import glyphs
from nearkin.data.inshop import inshop
from nearkin.data.inshop import layout as inshop_layout
from nearkin.data.listing import table
from nearkin.data.mnist import layout as mnist_layout
from nearkin.data.mnist import mnist
from nearkin.data.sop import layout as sop_layout
from nearkin.data.sop import sop
from nearkin.data.table import Splits


@dataclass(frozen=True)
class Remote:
    """One official file: its name, addresses in the order to try, and the published size and checksums.

    ``makes`` is what unpacking leaves beside it, empty for a file that is used as it is. Without an address the
    file has to be supplied by hand; without a checksum it cannot be verified.
    """

    name: str
    addresses: tuple[str, ...] = ()
    makes: str = ""
    size: int | None = None
    sha256: str | None = None
    md5: str | None = None


@dataclass(frozen=True)
class Entry:
    """A data set. ``sources`` are the sets of files any one of which makes it whole."""

    function: Callable[..., Splits]
    description: str
    needs_root: bool = True
    counts: Counts | None = None
    page: str = ""
    licence: str = ""
    sources: tuple[tuple[Remote, ...], ...] = ()
    by_hand: str = ""
    layout: Callable[[Path], str | None] | None = None


def _digits(name: str, size: int, sha256: str, md5: str) -> Remote:
    hosts = ("https://ossci-datasets.s3.amazonaws.com/mnist/", "https://storage.googleapis.com/cvdf-datasets/mnist/")
    return Remote(name, tuple(host + name for host in hosts), size=size, sha256=sha256, md5=md5)


DATASETS: dict[str, Entry] = {
    "cub200": Entry(
        cub200,
        "CUB-200-2011, 11,788 photographs of 200 species of birds",
        counts=PUBLISHED["cub200"],
        page="https://www.vision.caltech.edu/datasets/cub_200_2011/",
        licence="for non-commercial research and education",
        sources=(
            (
                Remote(
                    "CUB_200_2011.tgz",
                    ("https://data.caltech.edu/records/65de6-vp158/files/CUB_200_2011.tgz",),
                    makes="CUB_200_2011",
                    size=1_150_585_339,
                    sha256="0c685df5597a8b24909f6a7c9db6d11e008733779a671760afef78feb49bf081",
                    md5="97eceeb196236b17998738112f37df78",
                ),
            ),
        ),
        layout=cub200_layout,
    ),
    "cars196": Entry(
        cars196,
        "Cars196, 16,185 photographs of 196 models of cars",
        counts=PUBLISHED["cars196"],
        page="https://ai.stanford.edu/~jkrause/cars/car_dataset.html",
        licence="for research; the page that stated its terms is gone",
        sources=(
            (
                Remote("car_ims.tgz", makes="car_ims", md5="d5c8f0aa497503f355e17dc7886c3f14"),
                Remote("cars_annos.mat", md5="b407c6086d669747186bd1d764ff9dbc"),
            ),
            (
                Remote(
                    "cars_train.tgz",
                    makes="cars_train",
                    size=979_269_282,
                    sha256="512b227b30e2f0a8aab9e09485786ab4479582073a144998da74d64b801fd288",
                ),
                Remote(
                    "cars_test.tgz",
                    makes="cars_test",
                    size=977_350_468,
                    sha256="bffea656d6f425cba3c91c6d83336e4c5f86c6cffd8975b0f375d3a10da8e243",
                ),
                Remote(
                    "car_devkit.tgz",
                    makes="devkit",
                    size=330_960,
                    sha256="b97deb463af7d58b6bfaa18b2a4de9829f0f79e8ce663dfa9261bf7810e9accd",
                ),
                Remote(
                    "cars_test_annos_withlabels.mat",
                    size=185_758,
                    sha256="790f75be8ea34eeded134cc559332baf23e30e91367e9ddca97d26ed9b895f05",
                ),
            ),
        ),
        by_hand="its official pages at Stanford were taken down in 2023 and there is no other official address",
        layout=cars196_layout,
    ),
    "sop": Entry(
        sop,
        "Stanford Online Products, 120,053 photographs of 22,634 products",
        counts=PUBLISHED["sop"],
        page="https://cvgl.stanford.edu/projects/lifted_struct/",
        licence="see the LICENSE file in the archive",
        sources=(
            (
                Remote(
                    "Stanford_Online_Products.zip",
                    (
                        "http://ftp.cs.stanford.edu/cs/cvgl/Stanford_Online_Products.zip",
                        # The copy that the authors' own repository points to.
                        "https://drive.usercontent.google.com/download"
                        "?id=1TclrpQOF_ullUP99wk_gjGN8pKvtErG8&export=download&confirm=t",
                    ),
                    makes="Stanford_Online_Products",
                    size=3_083_860_082,
                    sha256="b04fa78210e69fab050ce73939550e1cd0f96890bdd98ec9fee732c3b756ef48",
                    md5="7f73d41a2f44250d4779881525aea32e",
                ),
            ),
        ),
        layout=sop_layout,
    ),
    "inshop": Entry(
        inshop,
        "In-Shop Clothes Retrieval (DeepFashion), 52,712 photographs of 7,982 items",
        counts=PUBLISHED["inshop"],
        page="https://mmlab.ie.cuhk.edu.hk/projects/DeepFashion/InShopRetrieval.html",
        licence="for non-commercial research and education, on agreement with its owners",
        sources=((Remote("img.zip", makes="img"), Remote("list_eval_partition.txt")),),
        by_hand="its owners give it out on agreement, through their page only",
        layout=inshop_layout,
    ),
    "mnist": Entry(
        mnist,
        "MNIST, 70,000 handwritten digits; both parts hold all ten classes",
        counts=PUBLISHED["mnist"],
        page="http://yann.lecun.com/exdb/mnist/",
        licence="see its page",
        sources=(
            (
                _digits(
                    "train-images-idx3-ubyte.gz",
                    9_912_422,
                    "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
                    "f68b3c2dcbeaaa9fbdd348bbdeb94873",
                ),
                _digits(
                    "train-labels-idx1-ubyte.gz",
                    28_881,
                    "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
                    "d53e105ee54ea40749a09fcbcd1e9432",
                ),
                _digits(
                    "t10k-images-idx3-ubyte.gz",
                    1_648_877,
                    "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
                    "9fb629c4189551a2d022fa330f9573f3",
                ),
                _digits(
                    "t10k-labels-idx1-ubyte.gz",
                    4_542,
                    "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
                    "ec29112dd5afa0611ce80d1b7f02629c",
                ),
            ),
        ),
        layout=mnist_layout,
    ),
    "glyphs": Entry(glyphs, "characters drawn from fonts; embedded, needs no download", needs_root=False),
    "folder": Entry(folder, "your own images, a folder per class"),
    "table": Entry(table, "your own images, listed in a CSV or Parquet file"),
}


def entry_of(name: str) -> Entry:
    """The entry of this name; a misspelt one is an error that offers the nearest."""
    if name not in DATASETS:
        raise ValueError(checks.unknown("data set", name, DATASETS))
    return DATASETS[name]


def check_options(name: str, options: Iterable[str]) -> None:
    """Raise on an option that this data set does not have."""
    known = [option for option in inspect.signature(entry_of(name).function).parameters if option != "root"]
    for option in options:
        if option not in known:
            raise ValueError(checks.unknown(f"option of {name}", option, known))


def load(name: str, root: str | os.PathLike[str] | None = None, **options: object) -> Splits:
    """A data set by name: ``load("cub200", "data/cub200")`` is ``cub200("data/cub200")``.

    Nothing is downloaded, and image files are not opened.

    >>> len(load("glyphs", classes=4, images=2).test)
    4
    """
    entry = entry_of(name)
    check_options(name, options)
    if not entry.needs_root:
        if root is not None:
            raise ValueError(f"{name}: root must be left out, since it is made here, got {str(root)!r}; drop it.")
        return entry.function(**options)
    if root is None or not str(root):
        file = "the CSV or Parquet file" if name == "table" else "the folder that holds it"
        remedy = f", or run nearkin data get {name} --root DIR first" if entry.sources else ""
        raise ValueError(f"{name}: root must be {file}, got none; pass root{remedy}.")
    return entry.function(root, **options)
