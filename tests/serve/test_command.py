"""The command: what it prints, what it refuses, and that Ctrl-C ends it."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from nearkin.serve.command import Serve, _listen, run

CALL = "import sys; from nearkin.serve.command import Serve, _listen, run; run(Serve(index=sys.argv[1], port=0, open=False))"


def test_it_serves_until_ctrl_c(folder: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", CALL, str(folder)], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            first = process.stdout.readline()
            found = re.search(r"is shown at (http://127\.0\.0\.1:\d+/)$", first)
            assert found, first
            transport = httpx.HTTPTransport(retries=5)
            with httpx.Client(transport=transport) as client:
                assert client.get(found[1] + "api/index").json()["images"] == 49
            process.send_signal(signal.SIGINT)
            rest, _ = process.communicate(timeout=15)
        finally:
            process.kill()
    assert process.returncode == 0
    assert rest.endswith("ended\n") and "Traceback" not in rest


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"port": 70000}, "port must be a whole number at least 0 and at most 65535, got 70000"),
        ({"token": "short"}, "token must be at least 8 letters and digits, got 5 characters"),
        ({"token": "with spaces; and more"}, "token must be at least 8 letters and digits"),
    ],
)
def test_settings_are_checked(settings: dict[str, object], sentence: str) -> None:
    with pytest.raises(ValueError, match=re.escape(sentence)):
        Serve(index="x", **settings)  # type: ignore[arg-type]


def test_no_index(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="nearkin index build"):
        run(Serve(index=str(tmp_path), open=False))


def test_a_port_in_use(folder: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(ValueError, match=rf"got 127.0.0.1:{port} \(.*\); try --port 0"):
            run(Serve(index=str(folder), port=port, open=False))


def test_without_fastapi(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    with pytest.raises(ImportError, match=r"run pip install 'nearkin\[serve\]'"):
        run(Serve(index=str(folder), open=False))


def test_small_answers_do_not_wait() -> None:
    with _listen("127.0.0.1", 0) as found:
        assert found.proto == socket.IPPROTO_TCP  # what asyncio looks at before it turns off waiting


def test_a_missing_report(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="report must be the folder of a benchmark or a page"):
        run(Serve(index=str(folder), report=str(tmp_path / "none"), open=False))
