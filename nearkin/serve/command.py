"""The command `nearkin serve`: a page over an index, on this machine alone unless it is told otherwise."""

from __future__ import annotations

import os
import secrets
import socket
import sys
import threading
from dataclasses import dataclass
from pathlib import Path

from nearkin import config
from nearkin.checks import Limit
from nearkin.config import option

PORT = Limit(low=0, high=65535, whole=True)
INSTALL = "FastAPI and uvicorn must be installed to serve a page, got neither or one; run pip install 'nearkin[serve]'."


@dataclass(frozen=True)
class Serve:
    """The flags of ``nearkin serve``."""

    index: str = option("", "folder of the index", positional=True)
    host: str = option("127.0.0.1", "address to listen at; another than this machine's own asks visitors for a token")
    port: int = option(8517, "port to listen at; 0: any that is free", PORT)
    token: str = option("", "word that visitors must know; default: drawn at random where others can reach the page")
    report: str = option("", "folder of a benchmark, or the page of its report, to show beside the index")
    run: tuple[str, ...] = option(
        (), "folders that nearkin train wrote, to show beside the index; several may follow", of=str
    )
    device: str = option("cpu", "where the network runs: cpu, cuda or cuda:N; auto: cuda where there is one")
    open: bool = option(True, "open the page in the browser")

    def __post_init__(self) -> None:
        config.check("serve", self)
        if self.token and (len(self.token) < 8 or not self.token.isascii() or not self.token.isalnum()):
            raise ValueError(
                f"serve: token must be at least 8 letters and digits, got {len(self.token)} characters; choose another."
            )


def run(settings: Serve) -> None:
    """Search an index, see it as a map and examine it, in the browser.

    nearkin serve my.index
    nearkin serve my.index --run runs/a runs/b    with runs of nearkin train: measures, curves, pictures side by side
    nearkin serve my.index --port 0 --no-open
    nearkin serve my.index --host 0.0.0.0         for others in the network; the address printed carries a token

    The page loads nothing from elsewhere. Ctrl-C ends it.
    """
    from nearkin.index import Index
    from nearkin.serve.folders import check

    # What is wrong with what was given is said before anything starts, and before anything is asked to be installed.
    Index.open(settings.index)
    report, results = _report(settings.report)
    runs = [check(given) for given in settings.run]
    try:
        import fastapi  # noqa: F401
        import uvicorn
    except ImportError as error:
        raise ImportError(INSTALL) from error
    from nearkin.serve.application import app
    from nearkin.serve.guard import is_local

    token = settings.token or ("" if is_local(settings.host) else secrets.token_hex(16))
    listening = _listen(settings.host, settings.port)
    port = listening.getsockname()[1]
    made = app(
        settings.index, host=settings.host, token=token, report=report, results=results, runs=runs,
        device=settings.device,
    )  # fmt: skip
    shown = settings.host if settings.host not in ("0.0.0.0", "::", "") else socket.gethostname()
    address = f"http://{f'[{shown}]' if ':' in shown else shown}:{port}/" + (f"?token={token}" if token else "")
    print(f"{settings.index} is shown at {address}\nCtrl-C ends it.", flush=True)
    server = uvicorn.Server(uvicorn.Config(made, log_level="error", access_log=False, server_header=False))
    if settings.open and _has_screen():
        import webbrowser

        threading.Timer(0.5, webbrowser.open, [address]).start()
    try:
        server.run(sockets=[listening])
    except KeyboardInterrupt:
        pass  # the way to end it
    finally:
        listening.close()
    print("\nended")


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # With the protocol named, the server sends small answers at once; else each waits 40 ms for a larger one.
    found = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    if os.name == "posix":
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind((host, port))
    except OSError as error:
        found.close()
        reason = error.strerror or str(error)
        raise ValueError(
            f"serve: host and port must be free to listen at, got {host}:{port} ({reason}); try --port 0."
        ) from error
    return found


def _report(given: str) -> tuple[Path | None, Path | None]:
    """The page of a report and the folder with the results of a benchmark, as far as they are there."""
    if not given:
        return None, None
    from nearkin.report.write import PAGE
    from nearkin.results import FILE

    path = Path(given)
    folder = path if path.is_dir() else path.parent
    pages = [path] if path.suffix == ".html" else [folder / "report" / PAGE, folder / PAGE]
    page = next((tried for tried in pages if tried.is_file()), None)
    results = next((tried for tried in (folder, folder.parent) if path.exists() and (tried / FILE).is_file()), None)
    if page is None and results is None:
        raise ValueError(
            f"serve: report must be the folder of a benchmark or a page that nearkin report wrote, got {given!r}; "
            f"make one with nearkin bench."
        )
    return page, results


def _has_screen() -> bool:
    """Whether a browser window could open; without a screen a text browser would take over the terminal."""
    if sys.platform in ("darwin", "win32"):
        return True
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
