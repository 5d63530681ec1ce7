"""Unpacking: all or nothing, and nothing outside the folder."""

from __future__ import annotations

import io
import os
import stat
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pytest

from nearkin.data import extract

CONTENT = {
    "top/a.txt": b"alpha" * 1000,
    "top/deep/b.bin": bytes(range(256)) * 300,
    "top/ü ñ.txt": b"",
    "loose.txt": b"x",
}


def tar(path: Path, content: dict[str, bytes], mode: str = "w") -> Path:
    with tarfile.open(path, mode) as archive:  # type: ignore[call-overload]
        for name, data in content.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            entry.mode = 0o000  # nobody wants files that cannot be read
            archive.addfile(entry, io.BytesIO(data))
    return path


def tar_of(path: Path, **facts: object) -> Path:
    """An archive with one unusual entry after a plain one."""
    with tarfile.open(path, "w") as archive:
        plain = tarfile.TarInfo("ok/fine.txt")
        archive.addfile(plain)
        entry = tarfile.TarInfo("ok/odd")
        for name, value in facts.items():
            setattr(entry, name, value)
        archive.addfile(entry)
    return path


def zipped(path: Path, content: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in content.items():
            archive.writestr(name, data)
    return path


def found(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    ("name", "mode"),
    [
        ("x.tar", "w"),
        ("x.tgz", "w:gz"),
        ("x.tar.bz2", "w:bz2"),
        ("x.tar.xz", "w:xz"),
        ("x.zip", ""),
        ("no ending", "w:gz"),
    ],
)
def test_what_was_packed_comes_out(tmp_path: Path, name: str, mode: str) -> None:
    archive = tar(tmp_path / name, CONTENT, mode) if mode else zipped(tmp_path / name, CONTENT)
    told: list[tuple[int, int]] = []
    moved = extract(archive, tmp_path / "out", lambda done, total: told.append((done, total)))
    assert found(tmp_path / "out") == CONTENT
    assert moved == [tmp_path / "out" / "loose.txt", tmp_path / "out" / "top"]
    size = archive.stat().st_size
    assert told[-1] == (size, size) and all(0 <= done <= total == size for done, total in told)
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["loose.txt", "top"]


def test_several_archives_into_one_folder(tmp_path: Path) -> None:
    extract(tar(tmp_path / "1.tar", {"001.a/x": b"1"}), tmp_path / "out")
    extract(tar(tmp_path / "2.tar", {"./002.b/x": b"2"}), tmp_path / "out")
    assert found(tmp_path / "out") == {"001.a/x": b"1", "002.b/x": b"2"}


def test_a_folder_that_is_there_is_not_touched_but_a_file_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "out" / "top").mkdir(parents=True)
    (tmp_path / "out" / "top" / "mine.txt").write_text("precious")
    with pytest.raises(
        ValueError, match=r"folder must not yet hold top, which x\.tar contains, got one in .*; remove it"
    ):
        extract(tar(tmp_path / "x.tar", CONTENT), tmp_path / "out")
    assert found(tmp_path / "out") == {"top/mine.txt": b"precious"}
    (tmp_path / "again").mkdir()
    (tmp_path / "again" / "loose.txt").write_text("old")
    extract(tmp_path / "x.tar", tmp_path / "again")
    assert found(tmp_path / "again") == CONTENT


@pytest.mark.parametrize(
    "name", ["../evil.txt", "/tmp/evil.txt", "ok/../../evil.txt", "..", "C:/evil.txt", "..\\evil.txt"]
)
@pytest.mark.parametrize("kind", ["tar", "zip"])
def test_names_that_lead_outside_are_refused(tmp_path: Path, name: str, kind: str) -> None:
    content = {"ok/fine.txt": b"1", name: b"evil"}
    archive = (tar if kind == "tar" else zipped)(tmp_path / f"x.{kind}", content)
    with pytest.raises(
        ValueError, match=r"must hold names inside its folder, got .*, which leads outside; do not trust"
    ):
        extract(archive, tmp_path / "in" / "out")
    assert found(tmp_path) == {archive.name: archive.read_bytes()}


@pytest.mark.parametrize(
    ("facts", "kind"),
    [
        ({"type": tarfile.SYMTYPE, "linkname": "/etc/passwd"}, "a link"),
        ({"type": tarfile.LNKTYPE, "linkname": "ok/fine.txt"}, "a link"),
        ({"type": tarfile.CHRTYPE, "devmajor": 1, "devminor": 3}, "a device"),
        ({"type": tarfile.FIFOTYPE}, "a device"),
    ],
)
def test_links_and_devices_are_refused(tmp_path: Path, facts: dict[str, object], kind: str) -> None:
    with pytest.raises(
        ValueError, match=rf"must hold files and folders only, got {kind}, 'ok/odd'; do not trust this file"
    ):
        extract(tar_of(tmp_path / "x.tar", **facts), tmp_path / "out")
    assert list((tmp_path / "out").iterdir()) == []


def test_links_in_zip_files_are_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        entry = zipfile.ZipInfo("link")
        entry.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(entry, "/etc/passwd")
    with pytest.raises(ValueError, match=r"got a link, 'link'; do not trust this file\."):
        extract(tmp_path / "x.zip", tmp_path / "out")


def test_files_named_twice_are_refused(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "x.tar", "w") as archive:
        for _ in range(2):
            archive.addfile(tarfile.TarInfo("ok/a.txt"))
    with pytest.raises(ValueError, match=r"must name each file once, got 'ok/a\.txt' twice; fetch it again\."):
        extract(tmp_path / "x.tar", tmp_path / "out")


def test_encrypted_zip_files_say_so(tmp_path: Path) -> None:
    path = zipped(tmp_path / "x.zip", {"a.txt": b"secret"})
    content = bytearray(path.read_bytes())
    content[content.index(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"must not be encrypted, got 'a\.txt' with a password; unpack it by hand"):
        extract(path, tmp_path / "out")


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:xz", "zip"])
def test_an_archive_cut_off_anywhere_leaves_nothing(tmp_path: Path, mode: str) -> None:
    random = np.random.default_rng(0)
    content = {f"top/{number}": random.bytes(random.integers(1, 4000)) for number in range(9)}
    whole = zipped(tmp_path / "x", content) if mode == "zip" else tar(tmp_path / "x", content, mode)
    data = whole.read_bytes()
    # The last block boundary before the end mark of a plain tar is the hardest place to notice.
    last = (
        len(data)
        if mode != "w"
        else max(place for place in range(0, len(data), 512) if data[place : place + 512].strip(b"\0"))
    )
    cuts = [0, 1, 100, 512, len(data) // 3, len(data) // 2, last - 1, *([last + 512] if mode == "w" else [])]
    cuts += list(range(512, last, 512))[::5] if mode == "w" else []
    for cut in cuts:
        short = tmp_path / "short"
        short.write_bytes(data[:cut])
        with pytest.raises(ValueError, match=r"fetch it again\.|which is neither; check the file\."):
            extract(short, tmp_path / "out")
        assert list((tmp_path / "out").iterdir()) == []


def test_a_flipped_bit_is_noticed(tmp_path: Path) -> None:
    content = {"top/a.bin": np.random.default_rng(0).bytes(9_000)}
    made = [tar(tmp_path / f"x.{kind}", content, f"w:{kind}") for kind in ("gz", "bz2", "xz")]
    for path in (*made, zipped(tmp_path / "x.zip", content)):
        data = bytearray(path.read_bytes())
        data[len(data) // 3] ^= 16
        path.write_bytes(data)
        with pytest.raises(ValueError, match=r"must be whole, got .*; fetch it again\.|which is neither"):
            extract(path, tmp_path / "out")
        assert list((tmp_path / "out").iterdir()) == []


def test_an_interruption_leaves_nothing(tmp_path: Path) -> None:
    def stop(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        extract(tar(tmp_path / "x.tar", CONTENT), tmp_path / "out", stop)
    assert list((tmp_path / "out").iterdir()) == []


def test_no_room_is_said_before_writing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = os.statvfs(tmp_path)
    assert usage.f_bavail
    monkeypatch.setattr("nearkin.data.archive.shutil.disk_usage", lambda path: type("Usage", (), {"free": 10})())
    with pytest.raises(
        ValueError, match=r"disk must have room for top/a\.txt \(5,000 bytes\), got 10 bytes free in .*; make"
    ):
        extract(tar(tmp_path / "x.tar", CONTENT), tmp_path / "out")


def test_files_that_are_no_archives(tmp_path: Path) -> None:
    (tmp_path / "x.zip").write_text("<html>")
    with pytest.raises(
        ValueError, match=r"archive must be a tar or zip file, got .*x\.zip, which is neither; check the file"
    ):
        extract(tmp_path / "x.zip", tmp_path / "out")
    with pytest.raises(ValueError, match=r"archive must be a file, got .*gone\.tar, which is none; check the path\."):
        extract(tmp_path / "gone.tar", tmp_path / "out")
