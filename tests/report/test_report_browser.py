"""The page in a real browser: no errors, nothing wider than the screen, tables that sort, both themes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from nearkin.report import read, write
from tests.browser import launched
from tests.report.made import CLASSES, benchmark


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with launched() as found:
        yield found


@pytest.fixture(
    scope="module", params=[(380, "light"), (900, "dark"), (1600, "light")], ids=lambda size: f"{size[0]}-{size[1]}"
)
def page(browser: Any, characters_out: Path, request: pytest.FixtureRequest) -> Iterator[Any]:
    width, scheme = request.param
    opened = browser.new_page(viewport={"width": width, "height": 800}, color_scheme=scheme)
    opened.trouble, opened.asked = [], []
    opened.on("console", lambda told: opened.trouble.append(told.text))
    opened.on("pageerror", lambda error: opened.trouble.append(str(error)))
    opened.on("request", lambda asked: opened.asked.append(asked.url))
    opened.goto((characters_out / "index.html").as_uri())
    yield opened
    opened.close()


def test_it_fits_and_is_silent(page: Any) -> None:
    page.evaluate("document.querySelectorAll('details').forEach(part => part.open = true)")
    wide, room = page.evaluate("[document.documentElement.scrollWidth, document.documentElement.clientWidth]")
    assert wide <= room
    assert page.trouble == []
    assert all(address.startswith(("file:", "data:")) for address in page.asked)
    # Outside boxes that scroll, no element reaches over the edge of the screen.
    over = page.evaluate(
        """[...document.querySelectorAll('main *')].filter(part => !part.closest('.scroll, svg, nav')
        && part.getBoundingClientRect().right > innerWidth + 1).map(part => part.className || part.tagName)"""
    )
    assert over == []


def test_words_in_figures_are_large_enough(page: Any) -> None:
    smallest = page.evaluate(
        """Math.min(...[...document.querySelectorAll('section svg text')].filter(part => part.getClientRects().length)
        .map(part => part.getBoundingClientRect().height))"""
    )
    assert smallest >= 9  # the height of a line: letters of 8 pixels or more


def test_images_are_shown(page: Any) -> None:
    assert page.evaluate("[...document.images].length > 20 && [...document.images].every(one => one.naturalWidth > 0)")


def test_strips_and_the_answer_need_no_scrolling(page: Any) -> None:
    page.evaluate("document.querySelectorAll('details').forEach(part => part.open = true)")
    sides = page.evaluate("[...document.querySelectorAll('.strip')].map(box => box.scrollWidth - box.clientWidth)")
    assert sides and max(sides) <= 0
    over = page.evaluate(
        """[...document.querySelectorAll('#ranks svg text, #ranks svg circle')].filter(part =>
        part.getClientRects().length && part.getBoundingClientRect().right > innerWidth).map(part => part.textContent)"""
    )
    assert over == []
    shown = page.evaluate(
        "[...document.querySelectorAll('#ranks svg')].filter(one => one.getClientRects().length).length"
    )
    assert shown == 1


def test_marks_of_the_map_can_be_seen(page: Any) -> None:
    sizes = page.evaluate(
        "[...document.querySelectorAll('.spot > :last-child')].map(one => one.getBoundingClientRect().width)"
    )
    assert sizes and min(sizes) >= 3.5


def test_no_card_is_half_empty_on_a_wide_screen(browser: Any, birds: Path, tmp_path: Path) -> None:
    write(read(birds), tmp_path / "report", formats=())
    opened = browser.new_page(viewport={"width": 1440, "height": 800})
    opened.goto((tmp_path / "report" / "index.html").as_uri())
    for anchor in ("feedback", "classes", "runs"):
        filled = opened.evaluate(
            """anchor => {
                const card = document.getElementById(anchor), room = card.getBoundingClientRect();
                const parts = [...card.querySelectorAll('svg, table')].map(part => part.getBoundingClientRect());
                return (Math.max(...parts.map(part => part.right)) - room.left) / room.width;
            }""",
            anchor,
        )
        assert filled > 0.85, anchor
    opened.close()


def test_a_box_fades_where_it_goes_on_and_only_there(browser: Any, tmp_path: Path) -> None:
    benchmark(tmp_path, {f"loss {number}": number / 10 for number in range(1, 9)}, seeds=1)
    write(read(tmp_path), tmp_path / "report", formats=())
    for width in (380, 1600):
        opened = browser.new_page(viewport={"width": width, "height": 800})
        opened.goto((tmp_path / "report" / "index.html").as_uri())
        opened.wait_for_timeout(100)
        boxes = opened.locator(".scroll, .panels.many, nav")
        marked = boxes.evaluate_all("all => all.map(box => [box.scrollWidth > box.clientWidth + 2, box.dataset.more])")
        assert all((more == "right") == wider and more in ("right", None) for wider, more in marked)
        assert any(wider for wider, _ in marked) == (width == 380)
        assert opened.locator(".swipe").first.is_visible() == (width == 380)
        if width == 380:
            many = opened.locator(".panels.many").first
            assert "gradient" in many.evaluate("box => getComputedStyle(box).maskImage")
            many.evaluate("box => box.scrollTo({left: 1e6, behavior: 'instant'})")
            opened.wait_for_function("document.querySelector('.panels.many').dataset.more === 'left'")
        opened.close()


def test_the_theme_follows_the_system_and_the_button(page: Any) -> None:
    def ground() -> str:
        found: str = page.evaluate("getComputedStyle(document.body).backgroundColor")
        return found

    dark = page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches")
    themes = ["rgb(246, 247, 249)", "rgb(16, 18, 22)"]
    assert ground() == themes[dark]
    page.click("#theme")
    assert ground() == themes[not dark]
    page.click("#theme")
    assert ground() == themes[dark]


def test_tables_sort(page: Any) -> None:
    def column(place: int) -> list[float]:
        text = page.eval_on_selector_all(
            "#table tbody tr", "(rows, place) => rows.map(row => row.cells[place].textContent)", place
        )
        return [float(entry) for entry in text]

    page.click("#table th:nth-child(3) button")
    assert column(2) == sorted(column(2), reverse=True)
    page.click("#table th:nth-child(3) button")
    assert column(2) == sorted(column(2))
    assert page.get_attribute("#table th:nth-child(3)", "aria-sort") == "ascending"


def test_it_is_whole_without_scripts(browser: Any, characters_out: Path) -> None:
    context = browser.new_context(java_script_enabled=False)
    opened = context.new_page()
    opened.goto((characters_out / "index.html").as_uri())
    assert opened.locator("section").count() > 8
    assert opened.locator("#theme").is_hidden()
    context.close()


def test_long_names_fit_on_a_telephone(browser: Any, tmp_path: Path) -> None:
    long = "a_loss_with_a_name_that_has_no_place_to_break_" * 3
    names = ["Black_footed_Albatross_of_the_northern_seas_" * 3] * CLASSES
    for dim in (64, 512):
        benchmark(tmp_path, {long: 0.8, "triplet": 0.4}, seeds=1, names=names, data=long, network=long, dim=dim)
    write(read(tmp_path), tmp_path / "report", title=long, formats=())
    opened = browser.new_page(viewport={"width": 380, "height": 800})
    opened.goto((tmp_path / "report" / "index.html").as_uri())
    opened.evaluate("document.querySelectorAll('details').forEach(part => part.open = true)")
    assert opened.evaluate("document.documentElement.scrollWidth") <= 380
    opened.close()
