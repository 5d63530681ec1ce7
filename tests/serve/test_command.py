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
from tests.patience import PATIENCE

# Something in the background is deep inside a compiled library when it ends.
CALL = """
import torch
from nearkin import cli
from nearkin.serve import application

def busy(collection):
    network = torch.nn.Linear(64, 64)
    while True:
        torch.autograd.grad(network(torch.randn(8, 64)).sum(), network.weight)

application._warm = busy
cli.entry()
"""


def test_it_serves_until_ctrl_c(folder: Path) -> None:
    words = [sys.executable, "-c", CALL, "serve", str(folder), "--port", "0", "--no-open"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        try:
            assert process.stdout is not None
            first = process.stdout.readline()
            found = re.search(r"is shown at (http://127\.0\.0\.1:\d+/)$", first)
            assert found, first
            transport = httpx.HTTPTransport(retries=5)
            with httpx.Client(transport=transport) as client:
                assert client.get(found[1] + "api/index").json()["images"] == 49
            process.send_signal(signal.SIGINT)
            rest, _ = process.communicate(timeout=PATIENCE)
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


def test_what_was_given_is_looked_at_before_what_is_installed(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "fastapi", None)
    with pytest.raises(ValueError, match=r"index must be a folder with index\.json, got 'nowhere'"):
        run(Serve(index="nowhere", open=False))
    with pytest.raises(
        ValueError,
        match=r"run must be a folder that nearkin train wrote, got .*no config\.toml; make one with nearkin train",
    ):
        run(Serve(index=str(folder), run=(str(tmp_path),), open=False))


def test_the_command_complains_about_the_index_where_nothing_is_installed(tmp_path: Path) -> None:
    """In a process of its own: no module of the server may be imported on the way."""
    call = (
        "import sys; sys.modules.update({'fastapi': None, 'uvicorn': None, 'starlette': None});"
        "from nearkin.cli import main; sys.exit(main(['serve', 'nowhere']))"
    )
    done = subprocess.run([sys.executable, "-c", call], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 2 and done.stderr.startswith("nearkin serve: index must be a folder with index.json")


def test_several_runs_on_the_command_line(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from nearkin.cli import main

    assert main(["serve", str(folder), "--no-open", "--run", str(tmp_path / "a"), str(tmp_path / "b")]) == 2
    assert f"got {str(tmp_path / 'a')!r}, which is not there; check the path." in capsys.readouterr().err
    assert Serve(index="x", run=["a", "b"]).run == ("a", "b")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="run must be a list of texts, got 'a'"):
        Serve(index="x", run="a")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="port must be a whole number"):
        Serve(index="x", run=("a",), port=70000)


def test_small_answers_do_not_wait() -> None:
    with _listen("127.0.0.1", 0) as found:
        assert found.proto == socket.IPPROTO_TCP  # what asyncio looks at before it turns off waiting


def test_a_missing_report(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="report must be the folder of a benchmark or a page"):
        run(Serve(index=str(folder), report=str(tmp_path / "none"), open=False))
