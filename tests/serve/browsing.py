"""What the tests of the page in a real browser share."""

from __future__ import annotations

from typing import Any

from tests.serve.conftest import Served


def open_at(page: Any, served: Served, address: str = "/") -> None:
    page.goto(served.address + address)
    page.wait_for_selector("main > *")


def two_frames(page: Any) -> None:
    """What is asked for is drawn in the next frame, and what moves asks for it in a frame: both have passed."""
    page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done())))")


def drawn(page: Any) -> int:
    """How many pixels of the map are not empty."""
    two_frames(page)
    return int(
        page.locator("canvas").first.evaluate("""canvas => {
          const pixels = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
          let count = 0;
          for (let at = 3; at < pixels.length; at += 4) count += pixels[at] > 0;
          return count;
        }""")
    )


def lasso_everything(page: Any, edge: float) -> tuple[float, float, float, float]:
    """Draw a lasso around the map, so far from its edges; left, top, right and bottom of it."""
    stage = page.locator(".mapped .stage").bounding_box()
    left, top = stage["x"] + edge, stage["y"] + edge
    right, bottom = stage["x"] + stage["width"] - edge, stage["y"] + stage["height"] - edge
    page.get_by_role("button", name="Lasso").click()
    page.mouse.move(left, top)
    page.mouse.down()
    for x, y in ((right, top), (right, bottom), (left, bottom), (left, top + 9)):
        page.mouse.move(x, y, steps=3)
    page.mouse.up()
    return left, top, right, bottom
