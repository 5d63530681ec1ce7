"""docs/published.md."""

from __future__ import annotations

from pathlib import Path

from nearkin import published
from nearkin.published.page import page

PAGE = Path(__file__).resolve().parents[2] / "docs" / "published.md"


def test_the_page_is_up_to_date() -> None:
    wanted = page()
    assert PAGE.read_text(encoding="utf-8") == wanted, "run python -m nearkin.published.page > docs/published.md"
    for table in published.tables():
        assert f"| {table.label} | {table.caption} | " in wanted


def test_the_example_on_the_page_runs() -> None:
    start = "    from nearkin import published\n"
    code = start + page().split(start)[1].split("\nHow to read")[0]
    lines = [line[4:] for line in code.splitlines()]
    names: dict[str, object] = {}
    exec("\n".join(lines), names)
    fact = names["fact"]
    assert isinstance(fact, published.Fact) and fact.value == 69.48
