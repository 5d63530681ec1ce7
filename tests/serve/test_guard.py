"""Who is let in, and what every answer carries."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.serve.conftest import LOCAL, TestClient

OTHERS = (
    "evil.example",
    "evil.example:8517",
    "127.0.0.1.evil.example",
    "localhost.evil.example",
    "",
    "a@127.0.0.1",
    "192.168.0.7",
)


@pytest.mark.parametrize("host", OTHERS)
def test_only_the_own_names_are_answered(client: Any, host: str) -> None:
    answer = client.get("/api/index", headers={"host": host})
    assert answer.status_code == 421
    assert answer.json()["error"].startswith("This page answers at its own address only")


@pytest.mark.parametrize("host", ["127.0.0.1:8517", "localhost:9", "LOCALHOST", "[::1]:8517"])
def test_names_of_this_machine_are_answered(client: Any, host: str) -> None:
    assert client.get("/api/index", headers={"host": host}).status_code == 200


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "http://127.0.0.1:8518", "http://localhost:8517", "file://"]
)
def test_another_site_may_not_send(client: Any, origin: str) -> None:
    answer = client.post("/api/query", content=b"x", headers={"origin": origin})
    assert answer.status_code == 403
    assert "Another site" in answer.json()["error"]


def test_the_page_itself_may_send(client: Any) -> None:
    assert client.post("/api/query", content=b"x", headers={"origin": LOCAL}).status_code == 422  # let in; no image


def test_another_site_may_not_embed_but_may_link(client: Any) -> None:
    embedded = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors"}
    assert client.get("/thumbnail/0", headers=embedded).status_code == 403
    assert client.get("/", headers={"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}).status_code == 200
    forced = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}
    assert client.post("/api/query", content=b"x", headers=forced).status_code == 403


@pytest.mark.parametrize(
    "address", ["/", "/api/index", "/thumbnail/0", "/static/page.js", "/nothing", "/thumbnail/999"]
)
def test_every_answer_is_closed_to_the_outside(client: Any, address: str) -> None:
    headers = client.get(address).headers
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy and "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy and "http" not in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["cross-origin-resource-policy"] == "same-origin"
    assert "access-control-allow-origin" not in headers


def test_a_token_is_asked_for_and_becomes_a_cookie(folder: Path) -> None:
    from nearkin.serve.application import app

    made = app(folder, host="0.0.0.0", token="abcdefgh12345678")
    with TestClient(made, base_url="http://192.168.0.7:8517", follow_redirects=False) as visitor:
        for address in ("/", "/api/index", "/thumbnail/0", "/static/page.js", "/?token=abcdefgh1234567", "/?token="):
            assert visitor.get(address).status_code == 401, address
        assert visitor.post("/api/query?token=abcdefgh12345678", content=b"x").status_code == 401
        assert visitor.get("/", headers={"cookie": "nearkin=wrong"}).status_code == 401
        right = {"authorization": "Bearer abcdefgh12345678"}
        assert visitor.get("/api/index", headers=right).status_code == 200
        opened = visitor.get("/?token=abcdefgh12345678&id=3")
        assert opened.status_code == 303 and opened.headers["location"] == "/?id=3"
        assert "HttpOnly" in opened.headers["set-cookie"] and "SameSite=Strict" in opened.headers["set-cookie"]
        assert visitor.get("/api/index").status_code == 200
        assert visitor.get("/api/index", headers={"host": "evil.example"}).status_code == 421
