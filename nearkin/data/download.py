"""Downloading one file: it resumes, tries again, and is checked before it gets its name."""

from __future__ import annotations

import hashlib
import http.client
import os
import re
import shutil
import socket
import ssl
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from nearkin import __version__

Progress = Callable[[int, int | None], None]
CHUNK = 1 << 20
PART = ".part"
AGAIN = frozenset({408, 425, 429, 500, 502, 503, 504})
"""Answers after which the same request may succeed."""


class DownloadError(OSError):
    """A download that did not succeed, in one sentence."""


class _TryAgainError(Exception):
    """The connection broke or the server is busy; what has arrived is kept."""


@dataclass(frozen=True)
class Check:
    """What is known of a file beforehand: its size in bytes and a checksum."""

    size: int | None = None
    sha256: str | None = None
    md5: str | None = None

    @property
    def kind(self) -> str | None:
        """The checksum that is used, the stronger one where both are known."""
        return "sha256" if self.sha256 else "md5" if self.md5 else None

    def problem(self, path: Path) -> str | None:
        """What is wrong with a file, as a phrase, or None."""
        size = path.stat().st_size
        if self.size is not None and size != self.size:
            return f"{size:,} bytes instead of {self.size:,}"
        if self.kind is None:
            return None
        with open(path, "rb") as file:
            found = hashlib.file_digest(file, self.kind).hexdigest()
        wanted = self.sha256 or self.md5
        return None if found == wanted else f"{self.kind} {found} instead of {wanted}"


def download(
    addresses: str | Sequence[str],
    target: str | os.PathLike[str],
    *,
    sha256: str | None = None,
    md5: str | None = None,
    size: int | None = None,
    progress: Progress | None = None,
    tries: int = 5,
    wait: float = 1.0,
    timeout: float = 30.0,
) -> Path:
    """Fetch a file from the first of the addresses that gives it, and return its path.

    What has arrived lies in ``target`` + ``.part`` and the next call goes on from there, also after an interruption. A
    dropped connection is tried again, up to ``tries`` times in a row without any new byte, waiting ``wait`` seconds
    and twice as long each time. The file gets its name only after size and checksum, where given, were found right.
    ``progress(done, total)`` counts bytes; the total is None where the server does not say.
    """
    path, check = Path(target).expanduser(), Check(size, sha256, md5)
    if path.exists():
        problem = check.problem(path)
        if problem is None:
            return path
        raise DownloadError(f"{path} must be the published file, got {problem}; remove it and run the same again.")
    path.parent.mkdir(parents=True, exist_ok=True)
    options = [addresses] if isinstance(addresses, str) else list(addresses)
    failures = []
    for address in options:
        if urllib.parse.urlsplit(address).scheme not in ("http", "https"):
            raise ValueError(f"address must begin with http:// or https://, got {address!r}; pass a web address.")
        try:
            return _one(address, path, check, progress, tries, wait, timeout)
        except DownloadError as error:
            failures.append(error)
    if len(failures) == 1:
        raise failures[0]
    raise DownloadError(" ".join(str(failure) for failure in failures)) from failures[-1]


def part_of(path: Path) -> Path:
    """Where the bytes of an unfinished download lie."""
    return path.with_name(path.name + PART)


def _one(
    address: str, path: Path, check: Check, progress: Progress | None, tries: int, wait: float, timeout: float
) -> Path:
    part = part_of(path)
    failed = 0
    while True:
        before = _length(part)
        try:
            _fetch(address, part, check, progress, timeout)
            break
        except _TryAgainError as error:
            failed = 1 if _length(part) > before else failed + 1
            if failed >= tries:
                kept = f"; the first {_length(part):,} bytes are kept in {part}" if _length(part) else ""
                raise DownloadError(
                    f"{address} must answer, got {error} {tries} times{kept}; check the network and run the same again."
                ) from error
            time.sleep(wait * 2 ** (failed - 1))
    problem = check.problem(part)
    if problem is not None:
        _drop(part)
        raise DownloadError(
            f"{address} must give the published {path.name}, got {problem}; nothing was kept, run the same again or "
            f"fetch the file elsewhere."
        )
    os.replace(part, path)
    _validator(part).unlink(missing_ok=True)
    return path


def _length(part: Path) -> int:
    return part.stat().st_size if part.exists() else 0


def _validator(part: Path) -> Path:
    """Beside the part: the address and the version of the file it is a part of."""
    return part.with_name(part.name + ".version")


def _drop(part: Path) -> None:
    part.unlink(missing_ok=True)
    _validator(part).unlink(missing_ok=True)


def _fetch(address: str, part: Path, check: Check, progress: Progress | None, timeout: float) -> None:
    """One request for what is still missing; returns when the part is whole."""
    start = _length(part)
    if check.size is not None and start >= check.size:
        if start == check.size:
            return
        _drop(part)
        start = 0
    headers = {"User-Agent": f"nearkin/{__version__}", "Accept-Encoding": "identity"}
    version = _known_version(part, address)
    # Without a version or a checksum two halves of different files could be joined unseen: begin anew.
    if start and (version or check.kind):
        headers["Range"] = f"bytes={start}-"
        if version:
            headers["If-Range"] = version
    request = urllib.request.Request(address, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=timeout) as answer:
            _receive(address, answer, part, start if "Range" in headers else 0, check, progress)
    except urllib.error.HTTPError as error:
        with error:  # it holds the connection
            _refused(address, error, part)
    except urllib.error.URLError as error:
        if isinstance(error.reason, socket.gaierror):
            host = urllib.parse.urlsplit(address).hostname
            raise DownloadError(
                f"host {host} must be reachable, got {error.reason.strerror or error.reason}; check the network "
                f"connection, then run the same again."
            ) from error
        raise _TryAgainError(_said(error.reason)) from error
    except (http.client.HTTPException, ConnectionError, TimeoutError, ssl.SSLError) as error:
        raise _TryAgainError(_said(error)) from error


def _said(error: object) -> str:
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if isinstance(error, ConnectionError | http.client.HTTPException):
        return "a broken connection"
    return str(error)


def _refused(address: str, error: urllib.error.HTTPError, part: Path) -> None:
    """What an answer with an error code means: the end, another try, or that the part was whole or wrong."""
    if error.code == 416:
        whole = re.fullmatch(r"bytes \*/(\d+)", error.headers.get("Content-Range", ""))
        if whole and int(whole[1]) == _length(part):
            return
        _drop(part)
        raise _TryAgainError("a part that does not fit") from error
    if error.code in AGAIN:
        raise _TryAgainError(f"the answer {error.code} ({error.reason})") from error
    meaning = {404: "the file is not there any more", 410: "the file is not there any more"}.get(
        error.code, "the server refuses it" if error.code in (401, 403) else "the server cannot give it"
    )
    raise DownloadError(
        f"{address} must be a file to download, got {error.code} ({error.reason}): {meaning}; fetch the file by hand "
        f"and put it where it belongs."
    ) from error


def _receive(address: str, answer: Any, part: Path, start: int, check: Check, progress: Progress | None) -> None:
    """Append what comes to the part, or begin it anew where the server sends all."""
    if answer.status == 206:
        span = re.fullmatch(r"bytes (\d+)-\d+/(\d+|\*)", answer.headers.get("Content-Range", ""))
        if span is None or int(span[1]) != start:
            _drop(part)
            raise _TryAgainError("another part than asked for")
    else:
        start = 0
    length = answer.headers.get("Content-Length")
    total = None if length is None else start + int(length)
    if check.size is not None and total is not None and total != check.size:
        _drop(part)
        raise DownloadError(
            f"{address} must give {check.size:,} bytes, got {total:,} of type "
            f"{answer.headers.get('Content-Type', 'unknown')}; the address has changed, fetch the file by hand."
        )
    _check_room(part, (total or check.size or 0) - start)
    _remember_version(part, address, answer)
    with open(part, "ab" if start else "wb") as file:
        _copy(answer, file, start, total, progress)
        file.flush()
        os.fsync(file.fileno())
        arrived = file.tell()
    if total is not None and arrived < total:
        raise _TryAgainError(f"{arrived:,} of {total:,} bytes")


def _copy(answer: Any, file: IO[bytes], done: int, total: int | None, progress: Progress | None) -> None:
    if progress is not None:
        progress(done, total)
    # read1 gives what has come instead of waiting for a whole chunk, so a slow line still shows progress; asking for
    # no more than is announced does not wait for a server that keeps the connection open.
    while piece := answer.read1(CHUNK if total is None else min(CHUNK, total - done)):
        file.write(piece)
        done += len(piece)
        if progress is not None:
            progress(done, total)


def _check_room(part: Path, needed: int) -> None:
    free = shutil.disk_usage(part.parent).free
    if needed > free:
        raise DownloadError(
            f"disk must have room for {needed:,} bytes, got {free:,} free in {part.parent}; make room, then run the "
            f"same again."
        )


def _remember_version(part: Path, address: str, answer: Any) -> None:
    tag = answer.headers.get("ETag", "")
    version = tag if tag and not tag.startswith("W/") else answer.headers.get("Last-Modified", "")
    _validator(part).write_text(f"{address}\n{version}\n", encoding="utf-8")


def _known_version(part: Path, address: str) -> str:
    try:
        stored, version = _validator(part).read_text(encoding="utf-8").splitlines()[:2]
    except (OSError, ValueError):
        return ""
    return version if stored == address else ""
