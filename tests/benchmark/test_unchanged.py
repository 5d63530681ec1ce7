"""Own images that change between two calls of a benchmark are noticed before anything is trained on them."""

from __future__ import annotations

from pathlib import Path

import pytest

from nearkin import results
from nearkin.benchmark import unchanged
from nearkin.cli import main
from tests.index.conftest import draw


def test_changed_images_are_told_of_and_nothing_is_lost(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    photos, grid, out = tmp_path / "photos", tmp_path / "grid.toml", tmp_path / "out"
    for number in range(24):
        draw(photos / f"kind{number // 4}" / f"{number}.png", number)

    def bench(*losses: str, words: tuple[str, ...] = ()) -> tuple[int, str]:
        grid.write_text(
            f'losses = {list(losses)}\ndata = [{{data = "folder", root = "{photos}"}}]\n'
            'networks = [{network = "small", network_settings = {width = 4}}]\n'
            "[settings]\nepochs = 1\nsize = 16\nbatch = 8\nimages = 2\n"
        )
        return main(["bench", str(grid), "--out", str(out), *words]), capsys.readouterr().err

    def refused(what: str, *words: str) -> bool:
        return bench("margin", "triplet", words=words) == (2, said.format(what))

    said = (
        f"nearkin bench: {photos} must hold the 24 images that finished runs in {out} were done on, got {{}}; "
        f"put them back as they were, or give another folder with --out.\n"
    )
    assert bench("margin")[0] == 0
    before = (out / results.FILE).read_bytes()
    draw(photos / "kind0" / "new.png", 99)
    assert refused("25")
    assert refused("25", "--executor", "ray")  # on this machine too
    assert refused("25", "--settings", "epochs=2")  # none of this grid is done, but of the former is
    (photos / "kind0" / "new.png").unlink()
    (photos / "kind0" / "0.png").rename(photos / "kind1" / "0.png")
    assert refused("as many, but not the same")
    assert bench("margin")[0] == 0  # nothing is left to do
    assert (out / results.FILE).read_bytes() == before
    (photos / "kind1" / "0.png").rename(photos / "kind0" / "0.png")
    assert bench("margin", "triplet")[0] == 0 and len(results.read(out)) == 2
    (out / unchanged.FILE).write_text("{")
    code, told = bench("margin", "contrastive")
    assert code == 2 and f"{out / unchanged.FILE} must be what nearkin bench wrote, got a damaged file" in told


def test_what_failed_is_not_tried_again_on_other_images(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    photos, grid, out = tmp_path / "photos", tmp_path / "grid.toml", tmp_path / "out"
    for number in range(24):
        draw(photos / f"kind{number // 4}" / f"{number}.png", number)
    grid.write_text(
        f'losses = ["margin", {{label = "wild", loss = "triplet", lr = 1e30}}]\nretries = 0\n'
        f'data = [{{data = "folder", root = "{photos}"}}]\n'
        'networks = [{network = "small", network_settings = {width = 4}}]\n'
        "[settings]\nepochs = 1\nsize = 16\nbatch = 8\nimages = 2\n"
    )
    assert main(["bench", str(grid), "--out", str(out)]) == 1
    draw(photos / "kind0" / "new.png", 99)
    assert main(["bench", str(grid), "--out", str(out), "--retry-failed"]) == 2
    assert "must hold the 24 images that finished runs" in capsys.readouterr().err


def test_images_may_change_while_no_run_is_done(tmp_path: Path) -> None:
    from nearkin import data

    for number in range(8):
        draw(tmp_path / "photos" / f"kind{number // 2}" / f"{number}.png", number)
    root = str(tmp_path / "photos")
    unchanged.check({"a": (root, data.load("folder", root))}, set(), tmp_path)
    (tmp_path / "photos" / "kind0" / "0.png").unlink()
    unchanged.check({"a": (root, data.load("folder", root))}, set(), tmp_path)
    (tmp_path / "photos" / "kind0" / "1.png").unlink()
    with pytest.raises(ValueError, match="must hold the 7 images"):
        unchanged.check({"a": (root, data.load("folder", root))}, {"a"}, tmp_path)
