"""A small index of drawn characters, and the server over it."""

from __future__ import annotations

import io
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from nearkin import models
from nearkin.data.glyphs import glyphs
from nearkin.index import Index
from nearkin.trained import Trained, View
from tests.browser import launched
from tests.patience import PATIENCE, until

pytest.importorskip("fastapi", reason="needs fastapi")
pytest.importorskip("httpx", reason="needs httpx")

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # it would rather have another client library; this one does
    from starlette.testclient import TestClient

LOCAL = "http://127.0.0.1:8517"


def png(pixels: Any) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "PNG")
    return buffer.getvalue()


def untrained() -> Trained:
    model = models.create("small", dim=16, size=32, grey=False, width=4, seed=0)
    facts = {"loss": "ranked_list", "data": "glyphs"}
    return Trained(model, View("crop", 32, 32, 64), facts, torch.device("cpu"))


@pytest.fixture(scope="session")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six characters, eight images of each, a folder per class, and one image without a class."""
    root = tmp_path_factory.mktemp("glyphs")
    table = glyphs(classes=12, images=8, size=32).test
    for place in range(len(table)):
        folder = root / f"letter{int(table.labels[place])}"
        folder.mkdir(exist_ok=True)
        pixels = np.asarray(table.images[place])
        (folder / f"{place:03d}.png").write_bytes(png(pixels.squeeze()))
    (root / "alone.png").write_bytes(png(np.full((40, 50, 3), 90, np.uint8)))
    return root


@pytest.fixture(scope="session")
def folder(pictures: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The index of these pictures."""
    place = tmp_path_factory.mktemp("served") / "glyph.index"
    trained = untrained()
    Index.create(place, trained).add(pictures, trained, workers=0)
    return place


@pytest.fixture(scope="session")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("empty") / "empty.index"
    Index.create(place, untrained())
    return place


@pytest.fixture(scope="session")
def client(folder: Path) -> Iterator[Any]:
    from nearkin.serve.application import app

    with TestClient(app(folder), base_url=LOCAL) as found:
        yield found


class Served:
    """A server in a thread, at an address."""

    def __init__(self, folder: Path, **options: Any) -> None:
        import uvicorn

        from nearkin.serve.application import app
        from nearkin.serve.command import _listen

        self.socket = _listen("127.0.0.1", 0)
        self.address = f"http://127.0.0.1:{self.socket.getsockname()[1]}"
        self.server = uvicorn.Server(uvicorn.Config(app(folder, **options), log_level="error"))
        self.thread = threading.Thread(target=self.server.run, kwargs={"sockets": [self.socket]})
        self.thread.start()
        until(lambda: self.server.started)

    def close(self) -> None:
        self.server.should_exit = True
        self.thread.join(PATIENCE)
        self.socket.close()


@pytest.fixture(scope="session")
def served(folder: Path) -> Iterator[Served]:
    found = Served(folder)
    yield found
    found.close()


@pytest.fixture(scope="session")
def served_empty(empty: Path) -> Iterator[Served]:
    found = Served(empty)
    yield found
    found.close()


@pytest.fixture(scope="session")
def trained_runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two finished runs on the same twelve characters, by the names of their losses."""
    from nearkin.train.loop import train
    from tests.train.runs import tiny

    root = tmp_path_factory.mktemp("runs")
    for loss in ("margin", "contrastive"):
        settings = tiny(
            root / loss, root / "packs", loss=loss, epochs=3, protocol="fixed_validation", ratio=0.6, audit=True,
            evaluate_every=0, warm_up=0,
        )  # fmt: skip
        train(settings)
    return root


@pytest.fixture(scope="session")
def kept_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run on twelve characters that kept its embedding at each of four epochs: 48 test images of six classes."""
    from nearkin.train.loop import train
    from tests.train.runs import tiny

    root = tmp_path_factory.mktemp("kept")
    train(tiny(root / "way", root / "packs", epochs=4, evaluate_every=1, keep_embeddings=True, warm_up=0))
    return root / "way"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with launched() as found:
        yield found


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    """A page that fails the test on any error of a script and on any request to another host."""
    context = browser.new_context(viewport={"width": 1200, "height": 900})
    found = context.new_page()
    wrong: list[str] = []
    own = ("http://127.0.0.1:", "blob:", "data:")
    found.on("pageerror", lambda error: wrong.append(str(error)))
    found.on("request", lambda request: None if request.url.startswith(own) else wrong.append(request.url))
    found.on("console", lambda message: wrong.append(message.text) if "Content Security" in message.text else None)
    found.set_default_timeout(1000 * PATIENCE)
    yield found
    context.close()
    assert wrong == []
