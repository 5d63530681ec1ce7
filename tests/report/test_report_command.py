"""The command `nearkin report`."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from nearkin import config
from nearkin.report import raster
from nearkin.report.command import Report, run
from tests.report.made import benchmark


def parsed(*words: str) -> Report:
    parser = argparse.ArgumentParser()
    config.add_flags(parser, Report)
    return Report(**config.given(Report, vars(parser.parse_args(words))))


def test_it_writes_everything(birds: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(parsed(str(birds), "--out", str(tmp_path / "out"), "--title", "Birds", "--figures", "svg"))
    shown = capsys.readouterr()
    assert "By recall@1 on cub200" in shown.out and f"open {tmp_path / 'out' / 'index.html'}" in shown.out
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {"index.html", "results.csv", "runs.csv", "results.md", "results.tex", "figures", "cache"}
    assert "<title>Birds</title>" in (tmp_path / "out" / "index.html").read_text()
    assert {"bars-1.svg", "ranks.svg", "weights.svg", "similarities-1.svg"} <= {
        path.name for path in (tmp_path / "out" / "figures").iterdir()
    }


def test_the_default_is_beside_the_results(tmp_path: Path) -> None:
    benchmark(tmp_path, seeds=1)
    run(Report(results=str(tmp_path / "results.jsonl"), figures="", points=0))
    assert (tmp_path / "report" / "index.html").exists()
    assert not (tmp_path / "report" / "figures").exists()  # none were asked for


def test_png_where_it_can_be_drawn(
    birds: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(raster, "available", lambda: False)
    run(Report(results=str(birds), out=str(tmp_path), figures="svg,png"))
    assert capsys.readouterr().err == (
        "nearkin report: PNG figures need resvg-py, which is not installed; SVG figures are written. "
        "Run pip install 'nearkin[report]'.\n"
    )
    assert not list((tmp_path / "figures").glob("*.png")) and list((tmp_path / "figures").glob("*.svg"))


def test_figures_that_are_gone_are_removed_and_others_kept(birds: Path, tmp_path: Path) -> None:
    (tmp_path / "figures").mkdir()
    (tmp_path / "figures" / "mine.svg").write_text("<svg/>")
    run(Report(results=str(birds), out=str(tmp_path), figures="svg"))
    assert (tmp_path / "figures" / "bars-1.svg").exists()
    run(Report(results=str(birds), out=str(tmp_path), figures=""))
    assert [path.name for path in (tmp_path / "figures").iterdir()] == ["mine.svg"]


def test_a_page_that_is_no_report_is_left_alone(birds: Path, tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text("my own page")
    with pytest.raises(ValueError, match=r"out must be a new folder or that of an earlier report, .*choose another\.$"):
        run(Report(results=str(birds), out=str(tmp_path)))
    assert (tmp_path / "index.html").read_text() == "my own page"


def test_another_measure(tmp_path: Path, birds: Path) -> None:
    run(Report(results=str(birds), out=str(tmp_path), figures="", metric="nmi", points=0))
    text = (tmp_path / "index.html").read_text()
    assert "nmi in percent" in text


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"results": "nowhere"}, r"results must be a folder with results.jsonl, .* got 'nowhere'"),
        ({"pictures": "some"}, r"report: pictures must be auto, none or the folder of another benchmark, got 'some'; "),
        ({"queries": -1}, r"report: queries must be a whole number at least 0, got -1"),
        ({"figures": "svg,pgn"}, r"report: figures 'pgn' is not known; did you mean 'png'\?"),
        ({"metric": "recal@1"}, r"metric 'recal@1' is not known; did you mean 'recall@1'\?"),
    ],
)
def test_errors_are_one_sentence(settings: dict[str, object], sentence: str, birds: Path, tmp_path: Path) -> None:
    plain = {"results": str(birds), "out": str(tmp_path / "out")}
    with pytest.raises(ValueError, match=sentence):
        run(Report(**(plain | settings)))  # type: ignore[arg-type]


def test_a_folder_that_cannot_be_made(birds: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match=r"out must be a folder that can be written, got .*choose another\.$"):
        run(Report(results=str(birds), out=str(tmp_path / "file")))


def test_a_torn_line_is_told_of(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    benchmark(tmp_path, seeds=1)
    with (tmp_path / "results.jsonl").open("a") as file:
        file.write('{"id": "ab')
    run(Report(results=str(tmp_path), figures="", points=0))
    assert "the last line was cut short" in capsys.readouterr().err
    assert "the last line was cut short" in (tmp_path / "report" / "index.html").read_text()
