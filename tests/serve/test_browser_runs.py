"""Runs, side by side and leaks in a real browser, used as a person would."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.browser import expect
from tests.report.made import benchmark
from tests.serve.browsing import open_at
from tests.serve.conftest import Served
from tests.serve.test_folders import fed


@pytest.fixture(scope="module")
def going(trained_runs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run in its second epoch."""
    place = tmp_path_factory.mktemp("going") / "going"
    shutil.copytree(trained_runs / "margin", place)
    for name in ("metrics.json", "queries.safetensors"):
        (place / name).unlink()
    lines = (place / "log.jsonl").read_text().splitlines(keepends=True)
    first = next(number for number, line in enumerate(lines) if '"validate"' in line)
    (place / "log.jsonl").write_text("".join(lines[: first + 1]))
    return place


@pytest.fixture(scope="module")
def served_runs(
    folder: Path, trained_runs: Path, going: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Served]:
    birds = tmp_path_factory.mktemp("bench") / "birds"
    benchmark(birds)
    found = Served(folder, results=birds, runs=[trained_runs / "margin", trained_runs / "contrastive", going])
    yield found
    found.close()


def test_from_the_board_to_the_strips_and_back(page: Any, served_runs: Served) -> None:
    open_at(page, served_runs, "/?tab=runs")
    table = page.locator(".folders")
    expect(table.locator("tbody tr")).to_have_count(3)
    assert table.locator("thead th").all_inner_texts()[:2] == ["Run", "R@1, %"]
    assert "loss" in table.locator("thead th").all_inner_texts()
    table.get_by_role("link", name="contrastive").click()
    page.wait_for_url("**/?tab=strips&of=run%2Fcontrastive")
    expect(page.get_by_label("Queries of")).to_have_value("run/contrastive")
    expect(page.locator(".lead")).to_contain_text("contrastive answered 48 queries")
    expect(page.locator(".strip img").first).to_be_visible()
    width = page.locator(".strip img").first.evaluate("image => image.decode().then(() => image.naturalWidth)")
    assert width == 32  # the picture of the test image itself
    shared = page.url
    page.get_by_label("against").select_option("run/margin")
    expect(page.locator("h1")).to_have_text("contrastive against margin")
    page.go_back()
    expect(page.locator("h1")).to_have_text("Worst queries first")
    page.go_back()
    expect(page.locator(".folders tbody tr")).to_have_count(3)
    page.goto(shared)  # as somebody else would open it
    expect(page.get_by_label("Queries of")).to_have_value("run/contrastive")


def test_two_losses_of_a_benchmark_side_by_side(page: Any, served_runs: Served) -> None:
    open_at(page, served_runs, "/?tab=runs")
    board = page.locator(".board").first
    assert board.locator("tbody th").first.inner_text() == "ranked_list"
    box = page.locator(".comparing").first
    box.get_by_label("Second").select_option(label="ranked_list")
    box.get_by_role("button", name="Compare").click()
    expect(box.get_by_role("status")).to_have_text("Choose two different ones.")
    box.get_by_label("Second").select_option(label="margin")
    box.get_by_role("button", name="Compare").click()
    expect(page.locator("h1")).to_have_text("ranked_list against margin")
    expect(page.locator(".lead")).to_contain_text("Only ranked_list is right on")
    expect(page.locator(".lead")).to_contain_text("over 10 test classes")
    expect(page.locator("main")).to_contain_text("Pictures are not shown: the folder of the run has no config.toml")
    first = page.locator(".strip").first
    assert first.locator(".both h3").all_inner_texts() == ["ranked_list", "margin"]
    assert first.locator("img").count() == 0
    assert first.locator(".bare").first.inner_text().startswith("test image ")  # names stand in place of pictures
    signs = [first.locator(".both .grid").nth(place).locator(".sign").first.inner_text() for place in (0, 1)]
    assert sorted(signs) == ["✓", "✕"]


def test_by_keyboard_alone(page: Any, served_runs: Served) -> None:
    open_at(page, served_runs, "/?tab=runs")
    expect(page.locator(".folders tbody tr")).to_have_count(3)
    page.locator(".folders tbody a").first.focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**/?tab=strips&of=run%2Fmargin")
    page.wait_for_selector(".strip")
    page.get_by_label("Queries of").focus()
    page.keyboard.press("ArrowDown")  # the next run
    page.wait_for_url("**/?tab=strips&of=run%2Fcontrastive")
    expect(page.locator(".lead")).to_contain_text("contrastive answered")
    assert page.evaluate("document.activeElement.name") == "of"  # the field that was used keeps the focus
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.name") == "against"


def test_a_run_that_goes_on_shows_its_next_epoch(page: Any, served_runs: Served, going: Path) -> None:
    open_at(page, served_runs, "/?tab=runs")
    row = page.locator(".folders tbody tr", has_text="going")
    expect(row.locator(".state").last).to_have_text("going on, epoch 1 of 3 done")
    assert row.locator("a").count() == 0 and row.locator("td").first.inner_text().startswith("(")
    assert page.locator(".lines circle").count() == 2  # one epoch of validation and of the loss is a dot
    with (going / "log.jsonl").open("a") as file:
        file.write(json.dumps({"kind": "epoch", "epoch": 1, "loss": 0.4}) + "\n")
    expect(row.locator(".state").last).to_have_text("going on, epoch 2 of 3 done")
    assert page.locator(".lines circle").count() == 1


def test_the_word_stands_beside_numbers_of_a_run_that_goes_on_by_the_test_set(
    page: Any, folder: Path, trained_runs: Path, tmp_path: Path
) -> None:
    served = Served(folder, runs=[fed(trained_runs / "margin", tmp_path / "fed")])
    try:
        open_at(page, served, "/?tab=runs")
        row = page.locator(".folders tbody tr")
        expect(row.locator(".state")).to_have_text("going on (test_feedback), epoch 2 of 3 done")
        assert row.locator("td").first.inner_text() == "50.0"
        expect(page.locator(".lines figcaption").first).to_have_text(
            "R@1 in %, test classes (test_feedback), every run"
        )
    finally:
        served.close()


def test_leaks_as_pictures(page: Any, folder: Path, trained_runs: Path, tmp_path: Path) -> None:
    import numpy as np

    from nearkin.data.glyphs import glyphs
    from nearkin.index import Index
    from tests.serve.conftest import png, untrained

    place = tmp_path / "planted.index"
    shutil.copytree(folder, place)
    table = glyphs(classes=12, images=8).train
    (tmp_path / "new" / "letter1").mkdir(parents=True)
    (tmp_path / "new" / "letter1" / "copy.png").write_bytes(png(np.asarray(table.images[5]).squeeze()))
    Index.open(place).add(tmp_path / "new", untrained(), workers=0)
    served = Served(place, runs=[trained_runs / "margin"])
    try:
        open_at(page, served, "/?tab=doctor")
        section = page.get_by_role("region", name="Seen in training")
        section.get_by_role("button", name="Compare").click()
        page.wait_for_url("**/?tab=doctor&of=run%2Fmargin")
        expect(section).to_contain_text("1 of 50 images shows the same picture as a training image, in 1 pair.")
        expect(section).to_contain_text("None shows the same picture as a training image. Every pair of 48 images")
        pair = section.locator(".leaks > li")
        assert pair.count() == 1 and pair.locator("img").count() == 2
        assert pair.locator(".name").all_inner_texts() == ["letter1", table.class_names[int(table.labels[5])]]
        for number in range(2):
            width = pair.locator("img").nth(number).evaluate("image => image.decode().then(() => image.naturalWidth)")
            assert width == 32
        expect(page.get_by_role("heading", name="The same image twice")).to_be_visible()
    finally:
        served.close()


def test_an_answer_that_comes_late_does_not_take_the_place_of_a_later_view(page: Any, served_runs: Served) -> None:
    held: list[Any] = []
    page.route("**/api/failing?of=run%2Fmargin*", lambda route: held.append(route))
    open_at(page, served_runs, "/?tab=strips&of=run/margin")
    expect(page.locator("main")).to_contain_text("The answers of this run are read")
    page.get_by_label("Queries of").select_option("run/contrastive")
    expect(page.locator(".lead")).to_contain_text("contrastive answered")
    with page.expect_response("**/api/failing?of=run%2Fmargin*"):
        held[0].continue_()
    page.wait_for_timeout(200)
    expect(page.locator(".lead")).to_contain_text("contrastive answered")
    expect(page.locator("main h1")).to_have_count(1)


def test_wrong_addresses_are_sentences(page: Any, served_runs: Served) -> None:
    open_at(page, served_runs, "/?tab=strips&of=run/margn")
    expect(page.locator("main .empty")).to_contain_text("did you mean 'run/margin'?")
    open_at(page, served_runs, "/?tab=strips&of=run/margin&against=bench/0/margin")
    expect(page.locator("main .empty")).to_contain_text("must have been asked the same queries")
    page.get_by_label("against").select_option("run/contrastive")  # the way out is on the page
    expect(page.locator("h1")).to_have_text("margin against contrastive")
    open_at(page, served_runs, "/?tab=doctor&of=run/nobody")
    expect(page.locator("main [role=alert]")).to_contain_text("is not known")


@pytest.mark.parametrize("width", [360, 820, 1600])
def test_everything_fits_and_has_a_name(page: Any, served_runs: Served, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 800})
    views = ("runs", "strips&of=run/margin", "strips&of=run/margin&against=run/contrastive", "doctor&of=run/margin")
    for view in views:
        open_at(page, served_runs, f"/?tab={view}")
        expect(page.locator(".strip, .board, .leaks, .empty").first).to_be_visible()
        expect(page.locator(".progress")).to_have_count(0)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, view
        nameless = page.evaluate("""() => [...document.querySelectorAll("button, a, select, img, svg[role=img]")]
          .filter((element) => element.tagName === "IMG" ? !element.hasAttribute("alt")
            : !(element.getAttribute("aria-label") || element.textContent.trim() || (element.labels || []).length))
          .map((element) => element.outerHTML)""")
        assert nameless == [], view
