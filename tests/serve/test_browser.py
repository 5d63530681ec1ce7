"""The page in a real browser, used as a person would: mouse, keyboard, files, and what goes wrong."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from nearkin.index import Index
from tests.browser import expect
from tests.serve.browsing import drawn, lasso_everything, open_at, two_frames
from tests.serve.conftest import Served


def test_click_through_filter_and_back(page: Any, served: Served) -> None:
    open_at(page, served)
    assert page.locator("h1").inner_text() == "Find images that look alike"
    assert page.locator(".tile").count() == 24
    page.locator(".tile", has_text="letter2").first.click()
    page.wait_for_selector(".asked")
    assert page.locator(".asked h2").inner_text() == "letter2"
    assert page.locator(".tile").count() == 48
    right = page.locator(".tile.right")
    assert right.count() == 7 and right.first.locator(".sign").inner_text() == "✓"
    assert page.locator(".tile.wrong .sign").first.inner_text() == "✕"
    assert re.search(r"\d+ of the first 10 are of the same class, letter2", page.locator(".summary").inner_text())
    page.get_by_label("Class", exact=True).fill("letter3")
    page.keyboard.press("Enter")
    expect(page.locator(".tile")).to_have_count(8)
    shared = page.url
    assert "label=letter3" in shared
    page.locator(".chips button").first.click()
    expect(page.locator(".tile")).to_have_count(48)
    page.go_back()
    expect(page.locator(".tile")).to_have_count(8)
    page.goto(shared)  # as somebody else would open it
    expect(page.locator(".tile")).to_have_count(8)
    assert {label.split()[0] for label in page.locator(".tile .name").all_inner_texts()} == {"letter3"}


def test_a_picture_from_the_disk(page: Any, served: Served, folder: Path) -> None:
    row = next(row for row in Index.open(folder).rows() if row.label == "letter5")
    open_at(page, served)
    page.locator("input[type=file]").set_input_files(row.path)
    page.wait_for_selector(".asked")
    assert page.locator(".asked h2").inner_text() == "Your image"
    assert page.locator(".tile").first.get_attribute("data-id") == str(row.id)
    assert page.locator(".tile .number").first.inner_text() == "1.00"
    page.reload()
    page.wait_for_selector(".asked")
    assert page.locator(".tile").first.get_attribute("data-id") == str(row.id)


def test_a_part_of_a_picture_by_keyboard(page: Any, served: Served) -> None:
    open_at(page, served, "/?id=4")
    page.get_by_role("button", name="Crop").click()
    page.wait_for_selector("dialog .frame")
    for key in ("ArrowLeft", "ArrowUp", "Shift+ArrowRight"):
        page.keyboard.press(key)
    box = page.locator("dialog .frame").evaluate(
        "element => [element.style.left, element.style.top, element.style.width]"
    )
    assert box == ["18%", "18%", "62%"]
    page.keyboard.press("Enter")
    page.wait_for_url("**/?query=*")
    expect(page.locator(".asked h2")).to_have_text("Your image")
    size = page.locator(".asked img").evaluate("image => image.decode().then(() => image.naturalWidth)")
    assert size == round(32 * 0.62)


def test_a_part_of_a_picture_that_comes_late(page: Any, served: Served) -> None:
    open_at(page, served, "/?id=4")
    held: list[Any] = []
    page.route(page.locator(".asked img").evaluate("image => image.src + '?late'"), lambda route: held.append(route))
    late = "import('/static/crop.js').then(({ crop }) => crop(document.querySelector('.asked img').src + '?late'))"
    with page.expect_request("**?late"):
        page.evaluate(late)
    page.keyboard.press("Enter")
    page.wait_for_timeout(200)
    held[0].continue_()
    page.wait_for_url("**/?query=*")
    expect(page.locator(".asked h2")).to_have_text("Your image")
    size = page.locator(".asked img").evaluate("image => image.decode().then(() => image.naturalWidth)")
    assert size == round(32 * 0.6)


def test_dropped_and_pasted(page: Any, served: Served, folder: Path) -> None:
    open_at(page, served)
    path = next(iter(Index.open(folder).rows())).path
    content = list(Path(path).read_bytes())
    give = """([content, kind]) => {
      const held = new DataTransfer();
      held.items.add(new File([new Uint8Array(content)], "x.png", {type: "image/png"}));
      const facts = {bubbles: true, cancelable: true};
      if (kind === "drop") for (const name of ["dragenter", "dragover", "drop"])
        document.body.dispatchEvent(new DragEvent(name, {...facts, dataTransfer: held}));
      else document.body.dispatchEvent(new ClipboardEvent("paste", {...facts, clipboardData: held}));
    }"""
    for kind in ("drop", "paste"):
        open_at(page, served)
        page.evaluate(give, [content, kind])
        page.wait_for_selector(".asked")
        assert not page.evaluate("document.body.classList.contains('over')")


def test_a_bad_file_and_a_bad_address_are_sentences(page: Any, served: Served, tmp_path: Path) -> None:
    bad = tmp_path / "x.png"
    bad.write_text("no image")
    open_at(page, served)
    page.locator("input[type=file]").set_input_files(bad)
    alert = page.get_by_role("alert")
    alert.wait_for()
    assert "cannot be searched for: it is not an image of a kind that is known." in alert.inner_text()
    page.get_by_role("button", name="Close").click()
    assert alert.is_hidden()
    open_at(page, served, "/?id=777")
    assert "There is no image 777 in the index" in page.locator("main").inner_text()
    open_at(page, served, "/?query=%3Cscript%3E")
    assert "no longer kept" in page.locator("main").inner_text()


def test_what_cannot_be_used_shows_no_focus(page: Any, served: Served) -> None:
    open_at(page, served)
    page.keyboard.press("Tab")
    outline = "element => { element.focus(); return getComputedStyle(element).outlineStyle; }"
    assert page.locator("main").evaluate(outline) == "none"
    assert page.locator(".tile").first.evaluate(outline) == "solid"


def test_keyboard_alone(page: Any, served: Served) -> None:
    open_at(page, served)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.locator(".tile").first.focus()
    page.keyboard.press("ArrowRight")
    wanted = page.locator(".tile").nth(1).get_attribute("data-id")
    assert page.evaluate("document.activeElement.dataset.id") == wanted
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/?id={wanted}")
    page.wait_for_selector(".asked")
    assert page.get_by_role("status").inner_text() == "48 images found."


def test_light_and_dark(page: Any, served: Served) -> None:
    open_at(page, served)
    ground = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(ground)
    page.get_by_role("button", name="Switch to dark colours").click()
    assert page.evaluate(ground) != light
    page.reload()
    assert page.evaluate(ground) != light


@pytest.mark.parametrize("width", [320, 900, 1600])
def test_nothing_hangs_over_the_side(page: Any, served: Served, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 800})
    for address in ("/", "/?id=4", "/?id=4&label=letter1"):
        open_at(page, served, address)
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_everything_has_a_name(page: Any, served: Served) -> None:
    """Buttons, links, fields and pictures say what they are to those who cannot see them."""
    open_at(page, served, "/?id=4")
    nameless = page.evaluate("""() => [...document.querySelectorAll("button, a, input, select, img")].filter((element) => {
      if (element.getAttribute("aria-hidden") === "true") return false;
      if (element.tagName === "IMG") return !element.hasAttribute("alt");
      return !(element.getAttribute("aria-label") || element.textContent.trim() || (element.labels || []).length);
    }).map((element) => element.outerHTML)""")
    assert nameless == []


def test_an_empty_index(page: Any, served_empty: Served) -> None:
    open_at(page, served_empty)
    assert page.locator("h1").inner_text() == "This index is empty"
    assert "nearkin index add" in page.locator(".drop").inner_text()


def settled(page: Any, served: Served) -> None:
    """The map, once its last form is drawn."""
    open_at(page, served, "/?tab=map")
    expect(page.locator(".note")).to_contain_text("49 images by t-SNE. Drag")
    two_frames(page)


def test_the_map_by_mouse(page: Any, served: Served) -> None:
    settled(page, served)
    before = drawn(page)
    assert before > 49 * 9
    left, top, right, bottom = lasso_everything(page, 20)
    expect(page.locator(".listed h2")).to_have_text("49 images inside the lasso")
    assert page.locator(".listed .tile").count() == 49
    page.get_by_role("button", name="Clear").click()
    expect(page.locator(".listed .tile")).to_have_count(0)
    page.get_by_role("button", name="Lasso").click()
    # A walk over the map meets an image; a click on it searches.
    tip = page.locator(".tip")
    for step in range(400):
        page.mouse.move(left + (step * 53) % (right - left), top + (step * 37) % (bottom - top))
        if tip.is_visible():
            break
    number = tip.get_attribute("data-id")
    assert tip.locator("img").get_attribute("src") == f"/thumbnail/{number}"
    page.mouse.down()
    page.mouse.up()
    page.wait_for_url(f"**/?id={number}")
    page.wait_for_selector(".asked")


def test_the_map_by_keyboard_and_colour(page: Any, served: Served) -> None:
    with page.expect_response("**/thumbnail/*"):  # few images: pictures take the place of points at once
        settled(page, served)
    page.locator("canvas").first.focus()
    for key in ("+", "+", "-", "0", "+", "ArrowLeft", "l"):
        page.keyboard.press(key)
    expect(page.locator(".listed h2")).to_contain_text("in view")
    page.keyboard.press("Escape")
    page.get_by_label("What colours mean").select_option("recall")
    expect(page.locator(".key")).to_be_visible()
    page.get_by_label("Class to bring out").select_option(label="letter2 (8)")
    expect(page.locator(".listed h2")).to_have_text("8 images of class letter2")


def test_strips_doctor_and_losses(page: Any, served: Served) -> None:
    open_at(page, served, "/?tab=strips")
    expect(page.locator("h1")).to_have_text("Worst queries first")
    expect(page.locator(".strip").first.locator(".tile.wrong").first).to_be_visible()
    page.get_by_role("link", name="Doctor").click()
    expect(page.locator("h1")).to_have_text("What looks wrong")
    page.get_by_role("link", name="Losses").click()
    expect(page.locator(".loss h2")).to_have_text("ranked list")  # the loss of the index
    path = page.locator(".loss .positive")
    before = path.get_attribute("d")
    page.get_by_label("alpha").focus()
    for _ in range(10):
        page.keyboard.press("ArrowRight")
    expect(path).not_to_have_attribute("d", before)
    page.get_by_role("button", name="Defaults").click()
    expect(path).to_have_attribute("d", before)
    page.locator(".all a", has_text="contrastive").click()
    expect(page.locator(".loss h2")).to_have_text("contrastive")
    assert "loss=contrastive" in page.url


@pytest.mark.parametrize("tab", ["map", "strips", "doctor", "losses"])
def test_other_views_fit_a_phone_and_an_empty_index(page: Any, served: Served, served_empty: Served, tab: str) -> None:
    page.set_viewport_size({"width": 360, "height": 740})
    for server in (served, served_empty):
        open_at(page, server, f"/?tab={tab}")
        page.wait_for_selector("main h1", state="attached")
        assert page.evaluate("document.documentElement.scrollWidth") <= 360
        assert page.locator("main").inner_text().strip()


def test_runs_are_a_view_where_results_are_given(page: Any, folder: Path, tmp_path: Path) -> None:
    from tests.report.made import benchmark

    benchmark(tmp_path / "birds")
    served = Served(folder, results=tmp_path / "birds")
    try:
        open_at(page, served)
        page.get_by_role("link", name="Runs").click()
        expect(page.locator(".board tbody tr")).to_have_count(3)
        assert page.locator(".board tbody th").first.inner_text() == "ranked_list"
        assert page.locator(".lines path").count() == 6
        page.set_viewport_size({"width": 360, "height": 740})
        assert page.evaluate("document.documentElement.scrollWidth") <= 360
    finally:
        served.close()
