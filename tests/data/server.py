"""A web server on this machine that can resume, refuse, drop connections and lie, as the test says."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tests.patience import PATIENCE


@dataclass
class Site:
    """Files by name and how the server behaves; ``asked`` keeps the headers of every request."""

    files: dict[str, bytes] = field(default_factory=dict)
    address: str = ""
    ranges: bool = True
    version: str = '"one"'
    drop_after: list[int] = field(default_factory=list)
    """For each coming request, after how many bytes the connection breaks."""
    refuse: list[int] = field(default_factory=list)
    """Codes that the next requests get."""
    wrong_range: bool = False
    say_length: bool = True
    hold: threading.Event | None = None
    asked: list[dict[str, str]] = field(default_factory=list)

    def at(self, name: str) -> str:
        return f"{self.address}/{name}"


@contextmanager
def serving(site: Site) -> Iterator[Site]:
    class Handler(BaseHTTPRequestHandler):
        def log_message(self, format: str, *arguments: object) -> None:
            pass

        def do_GET(self) -> None:
            site.asked.append(dict(self.headers))
            if site.refuse:
                self.send_error(site.refuse.pop(0))
                return
            content = site.files.get(self.path.lstrip("/"))
            if content is None:
                self.send_error(404)
                return
            start = self._start(content)
            if start is None:
                return
            body = content[start:]
            self._head(content, start, body)
            if site.drop_after:
                self.wfile.write(body[: site.drop_after.pop(0)])
                self.wfile.flush()
                self.connection.close()
                return
            if site.hold is not None:
                self.wfile.write(body[: len(body) // 2])
                self.wfile.flush()
                site.hold.wait(PATIENCE)
                return
            self.wfile.write(body)

        def _start(self, content: bytes) -> int | None:
            """Where to begin: as asked, or at the beginning; None where that was refused."""
            wanted = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
            same = self.headers.get("If-Range") in (None, site.version)
            if not (site.ranges and wanted and same):
                return 0
            if int(wanted[1]) >= len(content):
                self.send_response(416)
                self.send_header("Content-Range", f"bytes */{len(content)}")
                self.send_header("Content-Length", "0")
                self.end_headers()
                return None
            return int(wanted[1])

        def _head(self, content: bytes, start: int, body: bytes) -> None:
            self.send_response(206 if start else 200)
            if start:
                shown = start - 1 if site.wrong_range else start
                self.send_header("Content-Range", f"bytes {shown}-{len(content) - 1}/{len(content)}")
            if site.say_length:
                self.send_header("Content-Length", str(len(body)))
            if site.version:
                self.send_header("ETag", site.version)
            self.end_headers()

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    site.address = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield site
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
