"""The map in a real browser: a run from epoch to epoch, sixty thousand images, and what is not there."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from nearkin.index import Index, Row
from nearkin.index.change import Change
from nearkin.serve import plane
from tests.browser import expect
from tests.patience import quickest, until
from tests.serve.browsing import drawn, lasso_everything, open_at, two_frames
from tests.serve.conftest import Served, untrained

MANY = 60_000
MARKED = """(canvas) => {
  const pixels = new Uint32Array(canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data.buffer);
  let sum = 0;
  for (let at = 0; at < pixels.length; at += 1) if (pixels[at]) sum = (sum * 31 + at + pixels[at] % 1009) % 1000003;
  return sum;
}"""
WATCHED = f"""canvas => {{
  const marked = {MARKED};
  window.marks_ = new Set();
  const look = () => {{ window.marks_.add(marked(canvas)); requestAnimationFrame(look); }};
  look();
}}"""


@pytest.fixture(scope="module")
def moving(folder: Path, kept_run: Path) -> Iterator[Served]:
    found = Served(folder, runs=[kept_run])
    yield found
    found.close()


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Sixty thousand images of three hundred classes, with the places that principal components give."""
    place = tmp_path_factory.mktemp("many") / "many.index"
    index, draws = Index.create(place, untrained()), np.random.default_rng(0)
    middles = draws.normal(size=(300, 16))
    buffer = io.BytesIO()
    Image.new("RGB", (16, 16), (90, 120, 200)).save(buffer, "WEBP")
    for begin in range(0, MANY, 20_000):
        kinds = draws.integers(0, 300, 20_000)
        vectors = middles[kinds] + 0.5 * draws.normal(size=(20_000, 16))
        vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
        rows = [Row(-1, f"/none/{begin + at}.png", f"kind{kind:03d}", 1, 1) for at, kind in enumerate(kinds)]
        Change(index).append(rows, vectors, [buffer.getvalue()] * 20_000)
    patch = pytest.MonkeyPatch()
    patch.setattr(plane, "_can_improve", lambda: False)
    found = Served(place)
    yield found
    found.close()
    patch.undo()


def marks(page: Any) -> int:
    """A number that changes with what is drawn."""
    two_frames(page)
    return int(page.locator(".mapped canvas").first.evaluate(MARKED))


def ready(page: Any, moving: Served, address: str = "/?tab=map&run=way") -> None:
    open_at(page, moving, address)
    expect(page.locator(".note")).to_contain_text("48 test images of way at 4 epochs")
    expect(page.locator(".player")).to_be_visible()


def test_the_first_view_cuts_no_picture(page: Any, served: Served) -> None:
    page.set_viewport_size({"width": 1200, "height": 560})
    open_at(page, served, "/?tab=map")
    expect(page.locator(".mapped .note")).to_contain_text("49 images")
    rim = """canvas => {
      const { width, height } = canvas, { data } = canvas.getContext("2d").getImageData(0, 0, width, height);
      let [all, cut] = [0, 0];
      for (let at = 0; at < width * height; at += 1) {
        const [x, y] = [at % width, Math.floor(at / width)];
        if (data[4 * at + 3]) { all += 1; cut += x === 0 || y === 0 || x === width - 1 || y === height - 1; }
      }
      return [all, cut];
    }"""
    page.wait_for_load_state("networkidle")
    two_frames(page)
    everything, cut = page.locator("canvas.over").evaluate(rim)
    assert everything > 1000 and cut == 0


def test_the_slider_by_keyboard_moves_points_epoch_by_epoch(page: Any, moving: Served) -> None:
    open_at(page, moving, "/?tab=map")
    page.get_by_label("What the map shows").select_option("way by epoch")
    page.wait_for_url("**/?tab=map&run=way")
    ready(page, moving)
    words, slider = page.locator(".player .words"), page.get_by_role("slider", name="Epoch")
    expect(words).to_contain_text("Epoch 4")
    assert "R@1" in words.inner_text() and "%" in words.inner_text()
    last = marks(page)
    slider.focus()
    page.keyboard.press("ArrowLeft")
    expect(words).to_contain_text("Epoch 3")
    assert "Epoch 3, R@1" in slider.get_attribute("aria-valuetext")
    page.wait_for_url("**epoch=3")
    page.keyboard.press("Home")
    expect(words).to_contain_text("Epoch 1")
    page.wait_for_url("**epoch=1")
    first = marks(page)
    assert first != last
    page.keyboard.press("End")
    page.wait_for_url("**/?tab=map&run=way")
    assert marks(page) == last
    ready(page, moving, "/?tab=map&run=way&epoch=1")  # as somebody else would open it
    expect(words).to_contain_text("Epoch 1")
    assert marks(page) == first


def test_play_and_pause_are_smooth_and_end_at_the_last_epoch(page: Any, moving: Served) -> None:
    ready(page, moving)
    page.get_by_role("button", name="Play").click()
    expect(page.get_by_role("button", name="Pause")).to_be_visible()
    seen = {marks(page)}

    def moves() -> bool:
        seen.add(marks(page))
        if page.get_by_role("button", name="Play").is_visible():  # at its end, too soon on a machine with much to do
            page.get_by_role("button", name="Play").click()
        return len(seen) > 5  # more than the four epochs: between them as well

    until(moves)
    expect(page.get_by_role("button", name="Play")).to_be_visible()
    expect(page.locator(".player .words")).to_contain_text("Epoch 4")
    canvas = page.locator(".mapped canvas").first
    canvas.focus()
    page.keyboard.press(",")
    expect(page.locator(".player .words")).to_contain_text("Epoch 3")
    page.keyboard.press(".")
    expect(page.locator(".player .words")).to_contain_text("Epoch 4")
    page.keyboard.press(" ")
    expect(page.locator(".player .words")).not_to_contain_text("Epoch 4")  # from the first one again
    page.keyboard.press(" ")
    expect(page.get_by_role("button", name="Play")).to_be_visible()
    page.wait_for_url("**epoch=*")
    still = marks(page)
    page.wait_for_timeout(400)
    assert marks(page) == still


@pytest.mark.parametrize("motion", ["reduce", "no-preference"])
def test_less_motion_where_it_is_asked_for(browser: Any, moving: Served, motion: str) -> None:
    context = browser.new_context(reduced_motion=motion, viewport={"width": 900, "height": 800})
    found = context.new_page()
    ready(found, moving)
    two_frames(found)
    found.locator(".mapped canvas").first.evaluate(WATCHED)
    found.get_by_role("slider", name="Epoch").focus()

    def seen() -> int:
        """How many pictures on the way to the first epoch and back."""
        for key, address in (("Home", "**epoch=1"), ("End", "**run=way")):
            found.keyboard.press(key)
            found.wait_for_url(address)
            two_frames(found)
        return int(found.evaluate("() => window.marks_.size"))

    if motion == "reduce":
        assert seen() == seen() == 2  # of both epochs alone
    else:
        until(lambda: seen() > 4)
    context.close()


def test_hover_lasso_class_and_recall_of_a_run(page: Any, moving: Served) -> None:
    ready(page, moving)
    left, top, right, bottom = lasso_everything(page, 5)
    expect(page.locator(".listed h2")).to_have_text("48 images inside the lasso")
    assert page.locator(".listed .tile img").first.get_attribute("src").startswith("/epoch-image/")
    page.get_by_role("button", name="Clear").click()
    page.get_by_role("button", name="Lasso").click()
    tip = page.locator(".tip")
    for step in range(400):
        page.mouse.move(left + (step * 53) % (right - left), top + (step * 37) % (bottom - top))
        if tip.is_visible():
            break
    number = tip.get_attribute("data-id")
    assert tip.locator("img").get_attribute("src") == f"/epoch-image/{number}?run=way"
    assert tip.locator("img").evaluate("image => image.decode().then(() => image.naturalWidth)") == 32
    name = tip.locator("b").inner_text()
    page.mouse.down()
    page.mouse.up()
    expect(page.locator(".listed h2")).to_have_text(f"8 images of class {name}")
    page.keyboard.press("Escape") if page.locator("canvas:focus").count() else page.locator(".listed button").click()
    by_class = marks(page)
    page.get_by_label("What colours mean").select_option("recall")
    expect(page.locator(".key")).to_be_visible()
    assert marks(page) != by_class


def test_a_run_that_is_not_there_is_a_sentence(page: Any, moving: Served) -> None:
    open_at(page, moving, "/?tab=map&run=nowhere")
    expect(page.get_by_role("alert")).to_contain_text("nowhere")
    page.get_by_label("What the map shows").select_option("way by epoch")
    expect(page.locator(".player")).to_be_visible()


def test_a_run_beside_an_empty_index(page: Any, empty: Path, kept_run: Path) -> None:
    served = Served(empty, runs=[kept_run])
    try:
        open_at(page, served, "/?tab=map")
        expect(page.locator(".player")).to_be_visible()
        assert drawn(page) > 48 * 9
    finally:
        served.close()


@pytest.mark.parametrize("width", [390, 820, 1440])
def test_nothing_hangs_over_the_side(page: Any, moving: Served, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 800})
    ready(page, moving)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.locator(".player").bounding_box()["width"] <= width


def test_sixty_thousand_images_are_there_within_two_seconds_and_move_smoothly(page: Any, many: Served) -> None:
    def opened() -> None:
        open_at(page, many, "/?tab=map")
        expect(page.locator(".note")).to_contain_text("60,000 images by principal components")
        assert drawn(page) > 10_000

    assert quickest(opened, enough=2) < 2
    page.evaluate("""() => { let last = performance.now(); window.frames_ = [];
      const next = (now) => { window.frames_.push(now - last); last = now; requestAnimationFrame(next); };
      requestAnimationFrame(next); }""")

    def smooth() -> bool:
        """Whether half of the frames came quickly, 17 ms after the one before on a quiet machine."""
        page.evaluate("() => { window.frames_ = []; }")
        page.mouse.move(600, 450)
        page.mouse.down()
        for step in range(60):
            page.mouse.move(600 + 4 * (step % 30), 450 + 3 * (step % 20))
        page.mouse.up()
        return float(np.median(page.evaluate("window.frames_"))) < 60

    until(smooth)
    page.get_by_label("Class to bring out").select_option("7")
    expect(page.locator(".listed h2")).to_contain_text("images of class kind007")
    assert 60 < page.locator(".listed .tile").count() <= 120
