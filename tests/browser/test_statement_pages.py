"""Statements as people open them: on a screen, on a phone and on paper."""

from __future__ import annotations

import re
from decimal import Decimal
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from orchestration.publish.statements import write_statements
from orchestration.workspace import Workspace
from tests.browser.chromium import opened
from tests.publish import closed as closing

closed = closing.closed
CONTRAST = (Path(__file__).with_name("contrast.js")).read_text(encoding="utf-8")
PHONE = 360


@pytest.fixture(scope="module")
def books(closed: Workspace, tmp_path_factory: pytest.TempPathFactory) -> closing.Books:
    """A closed month and the draft of the next."""
    books = closing.Books(closed, tmp_path_factory.mktemp("statements"))
    books.open_april()
    write_statements(books.workspace)
    return books


def file_of(books: closing.Books, month: str, team: str) -> Path:
    return books.workspace.published / "statements" / month / f"{team}.html"


@pytest.mark.parametrize(
    ("month", "table"), [("2026-03", "core.fct_invoice_lines"), ("2026-04", "reporting.rpt_open_invoice_lines")]
)
def test_it_asks_nobody_complains_of_nothing_and_says_what_the_ledger_says(
    browser: Browser, books: closing.Books, month: str, table: str
) -> None:
    file = file_of(books, month, "nlp")
    seen = opened(browser, file)
    totals = books.rows(f"select currency, sum(invoiced_amount) from {table} where team_id = 'nlp' group by currency")
    assert len(totals) == 2
    for currency, total in totals:
        assert Decimal(seen.text(f"#total-{currency}")) == total
        # The lines that a person can add up with a pencil come to the same.
        lines = seen.page.locator("#lines table", has_text=f"nlp-{currency}").locator("tbody td:last-child")
        assert sum(_amount(text) for text in lines.all_inner_texts()) == total
    assert seen.page.locator(".state").inner_text() == ("Closed" if month == "2026-03" else "Draft")
    assert seen.requests == [file.as_uri()]
    assert seen.complaints == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_is_readable_on_a_screen_and_on_a_phone(browser: Browser, books: closing.Books, scheme: str) -> None:
    for width in (1280, PHONE):
        seen = opened(browser, file_of(books, "2026-04", "nlp"), width=width, color_scheme=scheme)
        assert seen.page.evaluate("document.documentElement.scrollWidth") <= width
        assert seen.page.locator("#total-USD").is_visible()
        assert seen.page.evaluate(CONTRAST) == []
        ground = seen.page.evaluate("getComputedStyle(document.querySelector('main')).backgroundColor")
        assert (ground == "rgb(255, 255, 255)") == (scheme == "light")


def test_on_paper_it_has_numbered_pages_whole_rows_and_the_colours_of_paper(
    browser: Browser, books: closing.Books
) -> None:
    seen = opened(browser, file_of(books, "2026-03", "nlp"), color_scheme="dark")
    paper = seen.page.pdf(prefer_css_page_size=True)
    assert paper.startswith(b"%PDF-")
    pages = len(re.findall(rb"/Type\s*/Page\b", paper))
    assert 2 <= pages <= 6
    (size,) = set(re.findall(rb"/MediaBox\s*\[([^\]]*)\]", paper))
    assert [round(float(number)) for number in size.split()] == [0, 0, 595, 842], "A4"

    seen.page.emulate_media(media="print")
    style = "(selector, name) => getComputedStyle(document.querySelector(selector))[name]"
    asked = {
        ("main", "backgroundColor"): "rgb(255, 255, 255)",
        ("thead", "display"): "table-header-group",
        ("tbody tr", "breakInside"): "avoid",
        ("h2", "breakAfter"): "avoid",
    }
    for (selector, name), expected in asked.items():
        assert seen.page.evaluate(f"([selector, name]) => ({style})(selector, name)", [selector, name]) == expected


def _amount(text: str) -> Decimal:
    return Decimal(text.replace(",", "").replace("\u2212", "-"))
