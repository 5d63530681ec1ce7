"""The page in a real browser: no errors, nothing wider than the screen, tables that sort, both themes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from nearkin.report import read, write
from nearkin.results import SHARED
from tests.browser import expect, launched
from tests.report.made import CLASSES, add, benchmark


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


def test_words_in_figures_are_of_one_size(browser: Any, characters_out: Path) -> None:
    """Side by side, the small panels had letters of 9.5 pixels and the others of 15.6."""
    opened = browser.new_page(viewport={"width": 1440, "height": 900})
    opened.goto((characters_out / "index.html").as_uri())
    sizes = opened.evaluate(
        """[...document.querySelectorAll('section svg text')].filter(part => part.getClientRects().length)
        .map(part => parseFloat(getComputedStyle(part).fontSize) * part.getScreenCTM().a)"""
    )
    opened.close()
    assert min(sizes) >= 11 and max(sizes) <= 15.5


def test_runs_can_be_read_on_a_telephone(browser: Any, birds: Path, tmp_path: Path) -> None:
    write(read(birds), tmp_path / "report", formats=())
    opened = browser.new_page(viewport={"width": 390, "height": 800})
    opened.goto((tmp_path / "report" / "index.html").as_uri())
    smallest = opened.evaluate(
        """Math.min(...[...document.querySelectorAll('#runs svg text')].filter(part => part.getClientRects().length)
        .map(part => parseFloat(getComputedStyle(part).fontSize) * part.getScreenCTM().a))"""
    )
    opened.close()
    assert smallest >= 9.5


@pytest.mark.parametrize("width", [390, 820, 1440])
def test_names_of_classes_are_whole(browser: Any, characters_out: Path, width: int) -> None:
    """Cards broke "Rhinoceros" before its last letter, strips cut it with an ellipsis."""
    opened = browser.new_page(viewport={"width": width, "height": 800})
    opened.goto((characters_out / "index.html").as_uri())
    broken = opened.evaluate(
        """() => {
            const names = document.querySelectorAll('.card b, .strip .query figcaption, .strip .miss figcaption span');
            const seen = new Set(), broken = [];
            names.forEach(one => {
                if (!one.getClientRects().length) return;
                one.textContent = 'Rhinoceros Yellow-headed Auklet';
                seen.add(one.closest('.card') ? 'card' : one.tagName);
                for (const word of one.textContent.matchAll(/[A-Za-z]+/g)) {
                    const range = document.createRange();
                    range.setStart(one.firstChild, word.index);
                    range.setEnd(one.firstChild, word.index + word[0].length);
                    if (range.getClientRects().length > 1) broken.push(word[0]);
                }
                if (one.scrollWidth > one.clientWidth && getComputedStyle(one).display === 'block') broken.push('cut');
            });
            return [[...seen].sort(), broken];
        }"""
    )
    opened.close()
    assert broken == [["FIGCAPTION", "SPAN", "card"], []]


@pytest.mark.parametrize("width", [390, 820, 1440])
def test_no_tile_is_the_tallest_by_far(browser: Any, tmp_path: Path, width: int) -> None:
    made = benchmark(tmp_path, {f"proxy_anchor {number}": 0.5 for number in range(6)}, seeds=3)
    best = read(tmp_path).tables[0]
    first = best.labels[best.order[0]]
    for run in made:
        cost = {"seconds": 48.1 if run.label == first else 39.6, "peak_bytes": 6.9e9}
        settings = {"levels": "lmh"} if run.label == first else {}
        add(tmp_path, replace(run, cost=cost, settings=settings, where=run.where | {SHARED: 3}))
    write(read(tmp_path), tmp_path / "report", formats=())
    opened = browser.new_page(viewport={"width": width, "height": 800})
    opened.goto((tmp_path / "report" / "index.html").as_uri())
    heights = opened.evaluate(
        """[...document.querySelectorAll('.tile dd')].map(one => {
            const range = document.createRange();
            range.selectNodeContents(one);
            return range.getBoundingClientRect().height;
        })"""
    )
    opened.close()
    *others, cost = heights
    assert len(heights) == 4 and cost <= 1.3 * max(others)


def test_lines_of_a_table_are_those_of_its_cells(page: Any) -> None:
    """Below a cell that stays where it is the line was missing, or a pixel off: rows are as high as whole pixels are."""
    found = page.evaluate(
        """[...document.querySelectorAll('table.scores tbody tr, table.heats tbody tr')]
        .filter(row => row.rowIndex > 1 && row.querySelector('td')).flatMap(row => [...row.cells].map(cell => {
            const style = getComputedStyle(cell);
            return [style.borderTopWidth, style.borderBottomWidth, cell.getBoundingClientRect().height % 1];
        }))"""
    )
    assert found and all(line == ["1px", "0px", 0] for line in found)


def test_the_menu_marks_the_section_in_view(browser: Any, characters_out: Path) -> None:
    opened = browser.new_page(viewport={"width": 1440, "height": 800}, reduced_motion="reduce")
    opened.goto((characters_out / "index.html").as_uri())
    marked = opened.locator("nav a[aria-current=true]")
    expect(marked).to_have_text(["Verdict"])
    for anchor, title in (("classes", "Class by class"), ("table", "Scores")):
        opened.click(f"nav a[href='#{anchor}']")
        expect(marked).to_have_text([title])
    bar, plain = (
        opened.eval_on_selector(f"nav a[href='#{anchor}']", "link => getComputedStyle(link).borderLeftColor")
        for anchor in ("table", "verdict")
    )
    assert bar != plain
    opened.evaluate("scrollTo(0, document.documentElement.scrollHeight)")
    expect(marked).to_have_text(["How it was made"])
    opened.close()


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
