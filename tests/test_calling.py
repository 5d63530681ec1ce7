"""Lines that the program prints can be copied: they call this installation, from the folder where one stands."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from nearkin import calling


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The script of an installation whose folder the shell does not search."""
    script = tmp_path / "my venv" / "bin" / "nearkin"
    script.parent.mkdir(parents=True)
    script.write_text("#!/bin/sh\necho this one\n")
    script.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(script.with_name("python")))
    monkeypatch.setenv("PATH", os.defpath)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    return script


def test_the_name_is_enough_where_the_shell_finds_it(installed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{installed.parent}{os.pathsep}{os.defpath}")
    assert calling.program() == "nearkin"


def test_the_whole_path_is_given_where_the_shell_does_not(installed: Path) -> None:
    assert calling.program() == shlex.quote(str(installed))
    # Through a shell, as a person pastes it.
    assert subprocess.run(calling.line("index"), shell=True, capture_output=True).stdout == b"this one\n"


def test_another_installation_of_that_name_is_not_called(
    installed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "nearkin"
    other.write_text("#!/bin/sh\necho another\n")
    other.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.defpath}")
    assert calling.program() == shlex.quote(str(installed))


def test_a_path_below_the_working_folder_is_short(
    installed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert calling.program() == "'my venv/bin/nearkin'"
    monkeypatch.chdir(installed.parent)
    assert calling.program() == "./nearkin"  # the bare name would be looked for elsewhere


def test_without_a_script_the_module_is_called(installed: Path) -> None:
    installed.unlink()
    assert calling.program() == f"{shlex.quote(sys.executable)} -m nearkin"


def test_words_with_spaces_stay_whole(installed: Path) -> None:
    words = ["index", "search", "my birds.index", "IMAGE"]
    assert shlex.split(calling.line(*words)) == [str(installed), *words]
