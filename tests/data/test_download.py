"""Downloads against a server on this machine that drops, refuses and lies."""

from __future__ import annotations

import hashlib
import shutil
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from nearkin.data import DownloadError, download
from tests.data.server import Site, serving

BODY = np.random.default_rng(0).bytes(300_000)
SHA256 = hashlib.sha256(BODY).hexdigest()
MD5 = hashlib.md5(BODY).hexdigest()


@pytest.fixture
def site() -> Iterator[Site]:
    with serving(Site({"a.bin": BODY})) as running:
        yield running


def fetch(site: Site, target: Path, **options: object) -> Path:
    chosen: dict[str, object] = {"wait": 0.0, "timeout": 5.0} | options
    return download(site.at("a.bin"), target, **chosen)  # type: ignore[arg-type]


def left(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize(
    "check", [{}, {"sha256": SHA256}, {"md5": MD5}, {"size": len(BODY), "sha256": SHA256, "md5": MD5}]
)
def test_the_file_arrives_whole(site: Site, tmp_path: Path, check: dict[str, object]) -> None:
    told: list[tuple[int, int | None]] = []
    path = fetch(site, tmp_path / "new" / "a.bin", progress=lambda *facts: told.append(facts), **check)
    assert path.read_bytes() == BODY
    assert told[0] == (0, len(BODY)) and told[-1] == (len(BODY), len(BODY))
    assert [done for done, _ in told] == sorted(done for done, _ in told)
    assert left(tmp_path / "new") == ["a.bin"]
    assert site.asked[0]["User-Agent"].startswith("nearkin/")


def test_a_file_that_is_there_is_not_fetched_again(site: Site, tmp_path: Path) -> None:
    (tmp_path / "a.bin").write_bytes(BODY)
    fetch(site, tmp_path / "a.bin", sha256=SHA256)
    assert site.asked == []
    (tmp_path / "a.bin").write_bytes(BODY[:-1])
    with pytest.raises(
        DownloadError, match=r"a\.bin must be the published file, got sha256 .* instead of .*; remove it"
    ):
        fetch(site, tmp_path / "a.bin", sha256=SHA256)
    with pytest.raises(
        DownloadError, match=r"got 299,999 bytes instead of 300,000; remove it and run the same again\."
    ):
        fetch(site, tmp_path / "a.bin", size=len(BODY))


def test_dropped_connections_are_resumed(site: Site, tmp_path: Path) -> None:
    site.drop_after = [100_000, 50_000, 0, 149_999]
    path = fetch(site, tmp_path / "a.bin")
    assert path.read_bytes() == BODY
    ranges = [asked.get("Range") for asked in site.asked]
    assert ranges[0] is None and len(ranges) == 5
    assert ranges[1] == "bytes=100000-" and ranges[2] == ranges[3] == "bytes=150000-" and ranges[4] == "bytes=299999-"
    assert all(asked.get("If-Range") == '"one"' for asked in site.asked[1:])


def test_a_later_call_goes_on_where_the_first_ended(site: Site, tmp_path: Path) -> None:
    site.drop_after = [120_000]
    message = (
        r"must answer, got 120,000 of 300,000 bytes 1 times; the first 120,000 bytes are kept in .*a\.bin\.part; check "
    )
    with pytest.raises(DownloadError, match=message + r"the network and run the same again\."):
        fetch(site, tmp_path / "a.bin", tries=1)
    assert left(tmp_path) == ["a.bin.part", "a.bin.part.version"]
    told: list[tuple[int, int | None]] = []
    fetch(site, tmp_path / "a.bin", progress=lambda *facts: told.append(facts))
    assert told[0] == (120_000, 300_000)
    assert (tmp_path / "a.bin").read_bytes() == BODY and left(tmp_path) == ["a.bin"]


def test_a_server_without_ranges_begins_anew(site: Site, tmp_path: Path) -> None:
    site.ranges = False
    site.drop_after = [200_000]
    assert fetch(site, tmp_path / "a.bin", sha256=SHA256).read_bytes() == BODY
    assert [asked.get("Range") for asked in site.asked] == [None, "bytes=200000-"]


def test_only_tries_without_a_new_byte_are_counted(site: Site, tmp_path: Path) -> None:
    site.drop_after = [30_000] * 9
    assert fetch(site, tmp_path / "a.bin", tries=2).read_bytes() == BODY
    assert len(site.asked) == 10


def test_a_file_that_changed_meanwhile_is_fetched_anew(site: Site, tmp_path: Path) -> None:
    site.drop_after = [200_000]
    with pytest.raises(DownloadError):
        fetch(site, tmp_path / "a.bin", tries=1)
    site.files["a.bin"], site.version = BODY[::-1], '"two"'
    assert fetch(site, tmp_path / "a.bin").read_bytes() == BODY[::-1]


def test_without_version_or_checksum_halves_are_not_joined(site: Site, tmp_path: Path) -> None:
    site.version = ""
    site.drop_after = [200_000]
    with pytest.raises(DownloadError):
        fetch(site, tmp_path / "a.bin", tries=1)
    site.files["a.bin"] = BODY[::-1]
    assert fetch(site, tmp_path / "a.bin").read_bytes() == BODY[::-1]
    assert "Range" not in site.asked[-1]


def test_a_part_of_another_address_is_joined_only_under_a_checksum(site: Site, tmp_path: Path) -> None:
    site.files["mirror.bin"] = BODY
    site.drop_after = [200_000]
    with pytest.raises(DownloadError):
        fetch(site, tmp_path / "a.bin", tries=1)
    download(site.at("mirror.bin"), tmp_path / "a.bin", sha256=SHA256)
    assert site.asked[-1]["Range"] == "bytes=200000-" and "If-Range" not in site.asked[-1]
    assert (tmp_path / "a.bin").read_bytes() == BODY


def test_a_part_that_was_whole_is_taken(site: Site, tmp_path: Path) -> None:
    """The server answers 416 to a request for what lies beyond the end."""
    (tmp_path / "a.bin.part").write_bytes(BODY)
    assert fetch(site, tmp_path / "a.bin", sha256=SHA256).read_bytes() == BODY
    assert [asked.get("Range") for asked in site.asked] == ["bytes=300000-"]


def test_with_a_known_size_a_whole_part_needs_no_request(site: Site, tmp_path: Path) -> None:
    (tmp_path / "a.bin.part").write_bytes(BODY)
    fetch(site, tmp_path / "a.bin", sha256=SHA256, size=len(BODY))
    assert site.asked == []


def test_a_part_that_is_too_long_is_thrown_away(site: Site, tmp_path: Path) -> None:
    for check in ({"sha256": SHA256}, {"sha256": SHA256, "size": len(BODY)}):
        (tmp_path / "a.bin.part").write_bytes(BODY + b"more")
        assert fetch(site, tmp_path / "a.bin", **check).read_bytes() == BODY
        (tmp_path / "a.bin").unlink()


def test_a_range_that_was_not_asked_for_is_refused(site: Site, tmp_path: Path) -> None:
    site.drop_after = [200_000]
    site.wrong_range = True
    assert fetch(site, tmp_path / "a.bin").read_bytes() == BODY
    assert [asked.get("Range") for asked in site.asked] == [None, "bytes=200000-", None]


def test_a_wrong_checksum_keeps_nothing(site: Site, tmp_path: Path) -> None:
    wrong = "0" * 64
    with pytest.raises(DownloadError) as caught:
        fetch(site, tmp_path / "a.bin", sha256=wrong)
    assert str(caught.value) == (
        f"{site.at('a.bin')} must give the published a.bin, got sha256 {SHA256} instead of {wrong}; nothing was kept, "
        f"run the same again or fetch the file elsewhere."
    )
    assert left(tmp_path) == []


def test_a_wrong_size_is_refused_before_anything_is_written(site: Site, tmp_path: Path) -> None:
    with pytest.raises(
        DownloadError, match=r"must give 5,000,000 bytes, got 300,000 of type unknown; the address has changed"
    ):
        fetch(site, tmp_path / "a.bin", size=5_000_000)
    assert left(tmp_path) == []


def test_busy_servers_are_asked_again(site: Site, tmp_path: Path) -> None:
    site.refuse = [503, 429, 500]
    assert fetch(site, tmp_path / "a.bin").read_bytes() == BODY
    site.refuse = [503] * 9
    with pytest.raises(DownloadError, match=r"got the answer 503 \(Service Unavailable\) 3 times; check the network"):
        fetch(site, tmp_path / "b.bin", tries=3)
    assert len(site.asked) == 4 + 3


def test_waiting_doubles(site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float] = []
    monkeypatch.setattr(time, "sleep", waited.append)
    site.refuse = [503] * 9
    with pytest.raises(DownloadError):
        fetch(site, tmp_path / "a.bin", tries=4, wait=1.5)
    assert waited == [1.5, 3.0, 6.0]


@pytest.mark.parametrize(
    ("code", "meaning"),
    [(404, "Not Found): the file is not there any more"), (410, "Gone): the file is not there any more"),
     (403, "Forbidden): the server refuses it"), (400, "Bad Request): the server cannot give it")],
)  # fmt: skip
def test_a_refusal_is_final_and_says_why(site: Site, tmp_path: Path, code: int, meaning: str) -> None:
    site.refuse = [code]
    with pytest.raises(DownloadError) as caught:
        fetch(site, tmp_path / "a.bin")
    assert str(caught.value) == (
        f"{site.at('a.bin')} must be a file to download, got {code} ({meaning}; fetch the file by hand and put it where "
        f"it belongs."
    )
    assert len(site.asked) == 1 and left(tmp_path) == []


def test_the_next_address_is_tried(site: Site, tmp_path: Path) -> None:
    path = download([site.at("gone.bin"), site.at("a.bin")], tmp_path / "a.bin", sha256=SHA256)
    assert path.read_bytes() == BODY
    with pytest.raises(DownloadError, match=r"one\.bin must be .* 404 .*two\.bin must be .* 404"):
        download([site.at("one.bin"), site.at("two.bin")], tmp_path / "b.bin")


def test_no_network_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_names(*arguments: object, **options: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", no_names)
    message = (
        r"^host nowhere\.example must be reachable, got Name or service not known; check the network connection, then "
    )
    with pytest.raises(DownloadError, match=message + r"run the same again\.$"):
        download("https://nowhere.example/a.bin", tmp_path / "a.bin")


def test_nobody_at_the_address(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{taken.getsockname()[1]}/a.bin"
        with pytest.raises(DownloadError, match=r"must answer, got a broken connection 2 times; check the network"):
            download(address, tmp_path / "a.bin", tries=2, wait=0.0, timeout=2.0)


def test_a_server_that_falls_silent_is_given_up(site: Site, tmp_path: Path) -> None:
    site.hold = threading.Event()
    try:
        with pytest.raises(
            DownloadError, match=r"must answer, got no answer in time 1 times; the first 150,000 bytes are kept"
        ):
            fetch(site, tmp_path / "a.bin", tries=1, timeout=2.0)
    finally:
        site.hold.set()


def test_no_room_is_said_before_anything_is_written(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda path: type("Usage", (), {"free": 1_000})())
    with pytest.raises(
        DownloadError, match=r"disk must have room for 300,000 bytes, got 1,000 free in .*; make room, then run"
    ):
        fetch(site, tmp_path / "a.bin")
    assert left(tmp_path) == []


def test_an_unknown_length_is_no_hindrance(site: Site, tmp_path: Path) -> None:
    site.say_length = False
    told: list[tuple[int, int | None]] = []
    assert fetch(site, tmp_path / "a.bin", progress=lambda *facts: told.append(facts)).read_bytes() == BODY
    assert told[-1] == (300_000, None)


def test_an_interruption_keeps_what_has_arrived(site: Site, tmp_path: Path) -> None:
    def stop(done: int, total: int | None) -> None:
        if done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fetch(site, tmp_path / "a.bin", progress=stop)
    kept = (tmp_path / "a.bin.part").stat().st_size
    assert kept > 0 and not (tmp_path / "a.bin").exists()
    fetch(site, tmp_path / "a.bin", sha256=SHA256)
    assert (tmp_path / "a.bin").read_bytes() == BODY
    assert site.asked[-1].get("Range") == f"bytes={kept}-"


def test_addresses_must_be_of_the_web(tmp_path: Path) -> None:
    with pytest.raises(
        ValueError, match=r"address must begin with http:// or https://, got 'file:///etc/passwd'; pass a web"
    ):
        download("file:///etc/passwd", tmp_path / "a.bin")
