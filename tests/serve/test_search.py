"""Searches through the server, against the index itself."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from nearkin.index import Index
from nearkin.serve.application import app
from tests.serve.conftest import LOCAL, TestClient, png, untrained


def test_what_the_index_is(client: Any) -> None:
    facts = client.get("/api/index").json()
    assert (facts["name"], facts["images"], facts["dim"], facts["loss"]) == ("glyph.index", 49, 16, "ranked_list")
    assert facts["classes"] == [[f"letter{number}", 8] for number in range(6)]


def test_an_image_of_the_index(client: Any, folder: Path) -> None:
    index = Index.open(folder)
    number, vectors = index.vectors()
    cosines = vectors.astype(np.float64) @ vectors[5].astype(np.float64)
    cosines[5] = -2
    wanted = number[np.argsort(-cosines, kind="stable")][:10].tolist()
    found = client.get("/api/search", params={"id": int(number[5]), "k": 10}).json()
    assert [hit["id"] for hit in found["hits"]] == wanted
    own = index.row(int(number[5])).label
    for hit in found["hits"]:
        label = index.row(hit["id"]).label
        assert hit["label"] == label and hit["right"] == (label == own if label and own else None)
        assert "/" not in hit["name"]


def test_by_class_and_second_looks(client: Any) -> None:
    found = client.get("/api/search", params={"id": 3, "k": 40, "label": "letter2"}).json()
    assert len(found["hits"]) in (7, 8) and {hit["label"] for hit in found["hits"]} == {"letter2"}
    for again in ("expansion", "reciprocal"):
        assert len(client.get("/api/search", params={"id": 3, "k": 5, "again": again}).json()["hits"]) == 5


def test_a_picture_that_is_sent_finds_itself(client: Any, folder: Path) -> None:
    row = next(row for row in Index.open(folder).rows() if row.label == "letter4")
    key = client.post("/api/query", content=Path(row.path).read_bytes()).json()["key"]
    found = client.get("/api/search", params={"query": key, "k": 3}).json()
    assert found["hits"][0]["id"] == row.id
    assert found["hits"][0]["similarity"] == pytest.approx(1, abs=1e-3)
    assert found["hits"][0]["right"] is None
    picture = client.get(f"/query/{key}")
    assert picture.headers["content-type"] == "image/jpeg" and picture.content[:3] == b"\xff\xd8\xff"
    assert client.post("/api/query", content=Path(row.path).read_bytes()).json()["key"] == key


def test_pictures_are_made_anew(client: Any) -> None:
    small, large = client.get("/thumbnail/0"), client.get("/picture/0")
    assert small.headers["content-type"] == "image/webp" and small.content[8:12] == b"WEBP"
    assert large.headers["content-type"] == "image/jpeg" and large.content[:3] == b"\xff\xd8\xff"


WRONG = [
    ("/api/search", 422, "must name an image by id or by query"),
    ("/api/search?id=1&query=a", 422, "must name an image by id or by query"),
    ("/api/search?id=1&k=0", 422, "k must be from 1 to 500, got 0"),
    ("/api/search?id=1&k=100000", 422, "k must be from 1 to 500, got 100000"),
    ("/api/search?id=1&again=expantion", 422, "did you mean 'expansion'?"),
    ("/api/search?id=1&label=lion", 404, "No image of the index has the class 'lion'"),
    ("/api/search?id=12345", 404, "There is no image 12345 in the index"),
    ("/api/search?query=nothing", 404, "no longer kept; send it again"),
    ("/api/search?id=one", 422, "id is not as it must be"),
    ("/api/sample?seed=-1", 422, "seed is not as it must be"),
    ("/thumbnail/-1", 404, "There is no image -1"),
    ("/nothing", 404, "There is nothing at this address"),
    ("/docs", 404, "There is nothing at this address"),
    ("/openapi.json", 404, "There is nothing at this address"),
]


@pytest.mark.parametrize(("address", "status", "sentence"), WRONG)
def test_errors_are_sentences(client: Any, address: str, status: int, sentence: str) -> None:
    answer = client.get(address)
    assert answer.status_code == status
    assert sentence in answer.json()["error"]


HOSTILE = [
    "../../etc/passwd", "..%2f..%2fetc%2fpasswd", "%2e%2e%2f%2e%2e%2fetc%2fpasswd", "%2fetc%2fpasswd", "..%5c..%5cwindows",
    "0%00", "0/../../x", "1e3", "0x10", "NaN", "99999999999999999999999999", "page.html%00.js", "....//....//etc/passwd",
]  # fmt: skip


@pytest.mark.parametrize("prefix", ["/thumbnail/", "/picture/", "/query/", "/static/", "/"])
@pytest.mark.parametrize("hostile", HOSTILE)
def test_no_address_reaches_a_file(client: Any, prefix: str, hostile: str) -> None:
    answer = client.get(prefix + hostile)
    assert answer.status_code in (404, 422)
    assert set(answer.json()) == {"error"} and "root:" not in answer.text


@pytest.mark.parametrize(
    "target", ["/static/../../../../etc/passwd", "/../../etc/passwd", "//etc/passwd", "/static//etc/passwd"]
)
def test_no_raw_address_reaches_a_file(served: Any, target: str) -> None:
    """As it comes over the wire: clients tidy up addresses before they send them."""
    port = int(served.address.rpartition(":")[2])
    with socket.create_connection(("127.0.0.1", port), 10) as wire:
        wire.sendall(f"GET {target} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n".encode())
        answer = b"".join(iter(lambda: wire.recv(65536), b""))
    assert answer.startswith(b"HTTP/1.1 404") and b"root:" not in answer


def test_a_file_that_is_no_picture_is_not_shown(tmp_path: Path, pictures: Path) -> None:
    """A path of the index that points elsewhere by now gives the small picture, never the file."""
    photo = tmp_path / "photos" / "a" / "x.png"
    photo.parent.mkdir(parents=True)
    photo.write_bytes(png(np.zeros((40, 40, 3), np.uint8)))
    trained = untrained()
    Index.create(tmp_path / "i.index", trained).add(tmp_path / "photos", trained, workers=0)
    secret = tmp_path / "secret.txt"
    secret.write_text("the secret")
    photo.unlink()
    photo.symlink_to(secret)
    with TestClient(app(tmp_path / "i.index"), base_url=LOCAL) as client:
        answer = client.get("/picture/0")
        assert answer.content == client.get("/thumbnail/0").content and b"secret" not in answer.content
        photo.unlink()
        assert client.get("/picture/0").status_code == 200


def test_an_empty_index_and_one_that_grows(tmp_path: Path, pictures: Path) -> None:
    trained = untrained()
    index = Index.create(tmp_path / "i.index", trained)
    with TestClient(app(tmp_path / "i.index"), base_url=LOCAL) as client:
        assert client.get("/api/index").json()["images"] == 0
        assert client.get("/api/sample").json() == {"images": []}
        key = client.post("/api/query", content=png(np.zeros((9, 9), np.uint8))).json()["key"]
        assert client.get("/api/search", params={"query": key}).json()["hits"] == []
        index.add(pictures / "letter1", trained, workers=0)
        assert client.get("/api/index").json()["images"] == 8
        assert len(client.get("/api/search", params={"query": key}).json()["hits"]) == 8


def test_a_sample_shows_every_class_first(client: Any) -> None:
    found = client.get("/api/sample", params={"seed": 3}).json()["images"]
    assert len(found) == 24 and len({image["id"] for image in found}) == 24
    assert len({image["label"] for image in found[:7]}) == 7
    assert client.get("/api/sample", params={"seed": 3}).json()["images"] == found
    assert client.get("/api/sample", params={"seed": 4}).json()["images"] != found


def test_the_page_names_no_other_host() -> None:
    from nearkin.serve.files import static

    for name, (content, _) in static().items():
        text = content.decode().replace("http://www.w3.org/2000/svg", "")
        assert "http://" not in text and "https://" not in text and "//cdn" not in text, name
        assert "innerHTML" not in text and "eval(" not in text, name


def test_a_large_picture_is_shrunk(client: Any) -> None:
    import io

    key = client.post("/api/query", content=png(np.zeros((1500, 3000, 3), np.uint8))).json()["key"]
    assert max(Image.open(io.BytesIO(client.get(f"/query/{key}").content)).size) == 1024
