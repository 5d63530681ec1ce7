"""Data sets: each is a function that returns `Splits`, a training and a test part that share no class.

`load(name, root)` finds one by name in `DATASETS`; `get(name, root)` downloads a benchmark, `info(path)` says what
lies at a path. Loading downloads nothing and opens no image.
"""

from nearkin.data.archive import extract
from nearkin.data.cars196 import cars196
from nearkin.data.cub200 import cub200
from nearkin.data.download import DownloadError, download
from nearkin.data.folder import folder
from nearkin.data.get import get
from nearkin.data.glyphs import glyphs
from nearkin.data.info import Info, describe, info
from nearkin.data.inshop import inshop
from nearkin.data.listing import table
from nearkin.data.mnist import mnist
from nearkin.data.registry import DATASETS, load
from nearkin.data.sop import sop
from nearkin.data.table import ImageTable, Splits

__all__ = [
    "DATASETS",
    "DownloadError",
    "ImageTable",
    "Info",
    "Splits",
    "cars196",
    "cub200",
    "describe",
    "download",
    "extract",
    "folder",
    "get",
    "glyphs",
    "info",
    "inshop",
    "load",
    "mnist",
    "sop",
    "table",
]
