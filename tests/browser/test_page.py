"""The page of everything and the page of one team, opened in a browser and held against the marts."""

from __future__ import annotations

import json
import re
import shutil
import time
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any

import duckdb
import pytest
from playwright.sync_api import Browser

from orchestration.errors import ApportionError
from orchestration.publish.page import Pages, write_pages
from orchestration.workspace import Workspace
from tests.browser.chromium import Opened, opened
from tests.browser.year import write_year

PHONE = 360
CONTRAST = (Path(__file__).with_name("contrast.js")).read_text(encoding="utf-8")
NASTY = "<script>document.title='owned'</script><img src=x onerror=alert(1)> \"quoted\" 'it' & 🦊 ]]> </script>"


@dataclass
class Site:
    """A published folder of its own, so that a test may change it."""

    workspace: Workspace

    @property
    def marts(self) -> Path:
        return self.workspace.published / "marts.duckdb"

    def rows(self, query: str) -> list[tuple]:
        with duckdb.connect(str(self.marts), read_only=True) as connection:
            return connection.execute(query).fetchall()

    def change(self, *statements: str) -> None:
        with duckdb.connect(str(self.marts)) as connection:
            for statement in statements:
                connection.execute(statement).fetchall()

    def write(self) -> Pages:
        return write_pages(self.workspace)


def site_of(demo: Workspace, root: Path) -> Site:
    site = Site(Workspace(demo.sources_file, demo.seeds, root))
    site.workspace.published.mkdir(parents=True)
    shutil.copy(demo.published / "marts.duckdb", site.marts)
    return site


@pytest.fixture(scope="module")
def site(demo: Workspace, tmp_path_factory: pytest.TempPathFactory) -> Site:
    return site_of(demo, tmp_path_factory.mktemp("site"))


@pytest.fixture(scope="module")
def pages(site: Site) -> Pages:
    return site.write()


@pytest.fixture
def own_site(demo: Workspace, tmp_path: Path) -> Site:
    """For tests that change the marts."""
    return site_of(demo, tmp_path)


@pytest.fixture(scope="module")
def month(site: Site) -> str:
    return site.rows("select strftime(max(month_date), '%Y-%m') from core.dim_dates")[0][0]


def figures(found: Opened, selector: str) -> list[dict[str, str]]:
    """What is marked on the page: its data attributes and the number as a person reads it."""
    return found.page.eval_on_selector_all(
        selector,
        "nodes => nodes.map(node => ({...node.dataset, text: node.textContent.replace(/[,]/g, '').replace('−', '-')}))",
    )


def shown_cents(amount: Decimal) -> str:
    return str(amount.quantize(Decimal("0.01"), rounding="ROUND_HALF_UP"))


# --- what it asks for and what it says -----------------------------------------------------------------------


def test_a_page_asks_for_nothing_but_itself_and_nothing_complains(browser: Browser, pages: Pages) -> None:
    for file in (pages.report, *pages.teams.values()):
        found = opened(browser, file)
        found.page.wait_for_selector("#flow svg, #flow .lead")
        for details in found.page.locator("details").all():
            details.evaluate("node => { node.open = true }")
        for chosen in ("quarter", "all", "month"):
            found.page.locator(f"input[name=range][value={chosen}]").check(force=True)
        found.page.locator("#theme").click()
        assert found.requests == [file.as_uri()]
        assert found.complaints == []
        found.page.context.close()


def test_key_figures_are_the_sums_of_the_marts(browser: Browser, site: Site, pages: Pages, month: str) -> None:
    totals = site.rows(
        f"""
        select currency, sum(total_cost), sum(direct_cost), sum(idle_cost)
        from reporting.rpt_team_costs_daily where strftime(month_date, '%Y-%m') = '{month}' group by all order by all
        """
    )
    assert len(totals) == 2
    for currency, total, direct, idle in totals:
        found = opened(browser, pages.report, f"#view?month={month}&currency={currency}")
        (card,) = figures(found, f"[data-figure=month-total][data-currency={currency}][data-month='{month}']")
        assert Decimal(card["exact"]) == total
        assert card["text"] == shown_cents(total)

        kinds = {one["kind"]: one["text"] for one in figures(found, "[data-figure=kind]")}
        assert (kinds["direct"], kinds["idle"]) == (shown_cents(direct), shown_cents(idle))

        teams = {one["team"]: one for one in figures(found, "#drill [data-figure=team-total]")}
        expected = dict(
            site.rows(
                f"""
                select team_id, sum(total_cost) from reporting.rpt_team_costs_daily
                where currency = '{currency}' and strftime(month_date, '%Y-%m') = '{month}' group by all
                """
            )
        )
        assert {team: Decimal(one["exact"]) for team, one in teams.items()} == expected
        assert {team: one["text"] for team, one in teams.items()} == {
            team: shown_cents(cost) for team, cost in expected.items()
        }
        assert sum(Decimal(one["exact"]) for one in teams.values()) == total

        causes = {one["cause"]: Decimal(one["exact"]) for one in figures(found, "[data-figure=idle]")}
        assert causes == dict(
            site.rows(
                f"""
                select idle_cause, sum(idle_cost) from reporting.rpt_idle_daily
                where currency = '{currency}' and strftime(month_date, '%Y-%m') = '{month}'
                group by all having round(sum(idle_cost), 2) <> 0
                """
            )
        )
        waste = {one["team"]: one["text"] for one in figures(found, "[data-figure=waste]") if one["text"] != "–"}
        assert waste == {
            team: shown_cents(cost)
            for team, cost in site.rows(
                f"""
                select team_id, sum(held_idle_cost) from reporting.rpt_job_receipts
                where currency = '{currency}' and strftime(month_date, '%Y-%m') = '{month}' and team_id in (
                    select team_id from reporting.rpt_team_costs_daily group by 1 having sum(gpu_hours) > 0
                )
                group by all having sum(held_idle_cost) is not null
                """
            )
        }
        found.page.context.close()


def test_each_invoice_is_shown_with_what_was_billed(browser: Browser, site: Site, pages: Pages) -> None:
    found = opened(browser, pages.report)
    shown = sorted(
        (one["invoice"], Decimal(one["exact"]), one["text"]) for one in figures(found, "[data-figure=billed]")
    )
    assert shown == sorted(
        (invoice, billed, shown_cents(billed))
        for invoice, billed in site.rows("select invoice_id, billed_cost from reporting.rpt_reconciliation")
    )
    assert "invoices tie" in found.text("#books .lead")
    found.page.context.close()


def test_an_invoice_that_does_not_tie_is_told_in_words(browser: Browser, own_site: Site) -> None:
    own_site.change(
        """
        update reporting.rpt_reconciliation set billed_difference = 0.000000001
        where invoice_id = (select max(invoice_id) from reporting.rpt_reconciliation)
        """
    )
    found = opened(browser, own_site.write().report)
    assert "do not tie" in found.text("#books .lead")
    assert found.page.locator("#books .badge.bad", has_text="off by 0.000000001").count() >= 1
    found.page.context.close()


def test_the_forecast_is_the_days_so_far_and_the_weekday_means(
    browser: Browser, site: Site, pages: Pages, month: str
) -> None:
    last = site.rows("select max(usage_date) from core.dim_dates")[0][0]
    first = last.replace(day=1)
    following = (first + timedelta(days=32)).replace(day=1)
    for currency in ("USD", "CHF"):
        cost = dict(
            site.rows(
                f"""
                select usage_date, sum(total_cost) from reporting.rpt_team_costs_daily
                where currency = '{currency}' group by all
                """
            )
        )
        cents = {day: int(shown_cents(amount).replace(".", "")) for day, amount in cost.items()}
        history = [day for day in cents if day > last - timedelta(days=28)]

        def expected(day: date, history: list[date] = history, cents: dict[date, int] = cents) -> int:
            same = [one for one in history if one.weekday() == day.weekday()] or history
            return sum(cents[one] for one in same) // len(same)

        so_far = sum(amount for day, amount in cost.items() if day >= first)
        missing = [first + timedelta(days=n) for n in range((following - first).days)]
        total = int(shown_cents(so_far).replace(".", "")) + sum(expected(day) for day in missing if day not in cost)
        found = opened(browser, pages.report, f"#view?month={month}&currency={currency}")
        (shown,) = figures(found, f"[data-figure=forecast][data-currency={currency}]")
        assert Decimal(shown["exact"]) == Decimal(total) / 100
        assert "estimate" in found.text("#month")
        found.page.context.close()


# --- looking around ------------------------------------------------------------------------------------------


def assert_receipt(found: Opened, site: Site, month: str) -> None:
    """The receipt that is open adds up, and is the one of the marts."""
    command = found.text("#drill .command code")
    key = re.fullmatch(r"apportion explain job '?(.+?)'?", command).group(1)
    lines = [Decimal(one["exact"]) for one in figures(found, "[data-figure=receipt-line]")]
    (total,) = figures(found, "[data-figure=receipt-total]")
    assert sum(lines) == Decimal(total["exact"])
    ((expected,),) = site.rows(
        f"""
        select sum(total_cost) from reporting.rpt_job_receipts
        where job_key = '{key}' and currency = 'USD' and strftime(month_date, '%Y-%m') = '{month}' and team_id = 'nlp'
        """
    )
    assert Decimal(total["exact"]) == expected


def test_from_team_to_project_to_receipt_by_mouse(browser: Browser, site: Site, pages: Pages, month: str) -> None:
    found = opened(browser, pages.report)
    found.page.locator("#drill a[data-team=nlp]").click()
    assert "Language" in found.text("#drill h3")
    projects = figures(found, "#drill tbody [data-figure=project-total]")
    (own,) = figures(found, "#drill .beside [data-figure=team-total]")
    assert sum(Decimal(one["exact"]) for one in projects) == Decimal(own["exact"])

    found.page.locator("#drill a[data-project='nlp-foundation']").click()
    assert "Foundation model" in found.text("#drill h3")
    found.page.locator("#drill a[data-job]").first.click()
    assert_receipt(found, site, month)

    found.page.go_back()
    assert "Foundation model" in found.text("#drill h3")
    found.page.locator("#drill .crumbs a").first.click()
    assert found.page.locator("#drill a[data-team]").count() > 5
    assert found.complaints == []
    found.page.context.close()


def test_from_team_to_project_to_receipt_by_keyboard(browser: Browser, site: Site, pages: Pages, month: str) -> None:
    found = opened(browser, pages.report)
    keyboard = found.page.keyboard
    keyboard.press("Tab")
    assert found.page.evaluate("document.activeElement.className") == "skip"
    found.page.locator("#drill-heading").focus()
    for wanted in ("[data-team=nlp]", "[data-project='nlp-foundation']", "[data-job]"):
        for _ in range(40):
            keyboard.press("Tab")
            if found.page.evaluate(f'document.activeElement.matches("#drill {wanted}")'):
                break
        keyboard.press("Enter")
        # The heading of what was opened has the focus: a screen reader reads it, and Tab goes on from there.
        assert found.page.evaluate("document.activeElement.matches('#drill h3')")
    assert_receipt(found, site, month)
    found.page.context.close()


def test_charts_can_be_read_with_arrow_keys(browser: Browser, pages: Pages) -> None:
    found = opened(browser, pages.report)
    found.page.locator("#trend svg").focus()
    found.page.keyboard.press("ArrowRight")
    assert "Language" in found.text("#said")
    # Focus has scrolled the page, of which the page is told in the next frame: the tip stays.
    found.page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    assert found.page.locator("#tip").is_visible()
    found.page.mouse.wheel(0, 200)
    found.page.locator("#tip").wait_for(state="hidden")
    found.page.locator("#idle .heat").first.focus()
    found.page.keyboard.press("ArrowRight")
    assert found.page.evaluate("document.activeElement.dataset.place") == "1"
    found.page.context.close()


def test_another_month_and_currency_are_shown_and_have_an_address(browser: Browser, own_site: Site) -> None:
    own_site.change(
        """
        insert into core.dim_dates by name
        select * replace (usage_date - 31 as usage_date, month_date - interval 1 month as month_date)
        from core.dim_dates
        """,
        """
        insert into reporting.rpt_team_costs_daily by name
        select * replace (
            usage_date - 31 as usage_date, month_date - interval 1 month as month_date, total_cost / 2 as total_cost
        ) from reporting.rpt_team_costs_daily
        """,
    )
    found = opened(browser, own_site.write().report)
    months = found.page.eval_on_selector_all("#pick-month option", "nodes => nodes.map(node => node.value)")
    assert len(months) == 2
    found.page.locator("#pick-month").select_option(months[1])
    found.page.locator("#pick-currency").select_option("CHF")
    ((total,),) = own_site.rows(
        f"""
        select sum(total_cost) from reporting.rpt_team_costs_daily
        where currency = 'CHF' and strftime(month_date, '%Y-%m') = '{months[1]}'
        """
    )
    (shown,) = figures(found, "[data-figure=month-total][data-currency=CHF]")
    assert Decimal(shown["exact"]) == total
    assert f"month={months[1]}&currency=CHF" in found.page.url
    # The newer month is compared to the same days of the one before.
    found.page.locator("#pick-month").select_option(months[0])
    (change,) = figures(found, "[data-figure=month-change][data-currency=CHF]")
    assert "+100.0 %" in change["text"]
    found.page.context.close()


# --- for everybody's eyes ------------------------------------------------------------------------------------


def test_light_and_dark_follow_the_system_until_somebody_chooses(browser: Browser, pages: Pages) -> None:
    found = opened(browser, pages.report, color_scheme="dark")
    ground = "getComputedStyle(document.body).backgroundColor"
    dark = found.page.evaluate(ground)
    assert found.page.locator("#theme").get_attribute("aria-pressed") == "true"
    found.page.locator("#theme").click()
    light = found.page.evaluate(ground)
    assert light != dark
    assert found.page.locator("#theme").get_attribute("aria-pressed") == "false"
    found.page.reload()
    assert found.page.evaluate(ground) == light
    found.page.emulate_media(color_scheme="light")
    found.page.locator("#theme").press("Enter")
    assert found.page.evaluate(ground) == dark
    found.page.context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_from_its_ground(browser: Browser, pages: Pages, scheme: str) -> None:
    for file in (pages.report, pages.teams["nlp"]):
        found = opened(browser, file, color_scheme=scheme)
        found.page.wait_for_selector("#flow svg")
        assert found.page.evaluate(CONTRAST) == []
        found.page.context.close()


def test_a_screen_reader_finds_its_way(browser: Browser, pages: Pages) -> None:
    for file in (pages.report, pages.teams["nlp"]):
        found = opened(browser, file)
        found.page.wait_for_selector("#flow svg")
        page = found.page
        assert page.locator("h1").count() == page.locator("main").count() == page.locator("header").count() == 1
        assert page.locator("html").get_attribute("lang") == "en"
        levels = page.eval_on_selector_all("h1, h2, h3, h4", "nodes => nodes.map(node => Number(node.tagName[1]))")
        assert all(deeper <= level + 1 for level, deeper in pairwise(levels))
        assert page.locator("section").count() == page.locator("section[aria-labelledby]").count() == 7
        for label in ("Month", "Currency"):
            assert page.get_by_role("combobox", name=label, exact=True).is_visible()
        # Every drawing is either decoration or an image with a name and a table behind it.
        charts = page.locator("svg:not([aria-hidden])")
        assert charts.count() == page.locator("svg[role=img][aria-label]").count() == 2
        assert page.locator("section:has(svg[role=img]) details.behind").count() == 2
        assert page.locator("table").count() == page.locator("table caption").count()
        page.context.close()


def test_nothing_sticks_out_of_a_phone(browser: Browser, pages: Pages) -> None:
    sticks_out = "document.documentElement.scrollWidth > document.documentElement.clientWidth"
    for file in (pages.report, pages.teams["nlp"]):
        found = opened(browser, file, width=PHONE, has_touch=True)
        found.page.wait_for_selector("#flow svg")
        assert not found.page.evaluate(sticks_out)
        for details in found.page.locator("details").all():
            details.evaluate("node => { node.open = true }")
        for level in ("[data-team=nlp]", "[data-project='']", "[data-job]"):
            links = found.page.locator(f"#drill a{level}")
            if links.count():
                links.first.click()
            assert not found.page.evaluate(sticks_out), (file.name, level)
        found.page.context.close()


# --- what others must not see, and what nobody may do ---------------------------------------------------------


def embedded(file: Path) -> Any:
    text = file.read_text(encoding="utf-8")
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL).group(1))


def test_a_team_page_names_no_other_team_and_has_only_its_money(browser: Browser, own_site: Site) -> None:
    # Jobs, pools and projects are called after others, as people do.
    own_site.change(
        "update reporting.rpt_job_receipts set job_name = 'compare_with_Vision-and-SEARCH' where team_id = 'nlp'",
        "update core.dim_pools set pool_name = 'Lent by Robotics, 2026' where pool_id = 'cirrus-h100-reserved'",
        "update core.dim_projects set project_name = 'Speech & Language' where project_id = 'nlp-eval'",
    )
    pages = own_site.write()
    teams = own_site.rows("select team_id, team_name from core.dim_teams")
    for team_id, file in pages.teams.items():
        text = file.read_text(encoding="utf-8")
        found = opened(browser, file)
        read = found.page.locator("body").inner_text()
        for other_id, other_name in teams:
            if other_id == team_id:
                continue
            for word in (other_id, other_name):
                for place in (text, read):
                    assert not re.search(rf"\b{re.escape(word)}\b", place, re.IGNORECASE), (team_id, word)
        expected = dict(
            own_site.rows(
                f"""
                select currency, sum(total_cost) from reporting.rpt_team_costs_daily
                where team_id = '{team_id}' group by all
                """
            )
        )
        shown = {one["currency"]: Decimal(one["exact"]) for one in figures(found, "[data-figure=month-total]")}
        assert {currency: cost for currency, cost in shown.items() if cost} == {c: x for c, x in expected.items() if x}
        data = embedded(file)
        assert [row[0] for row in data["teams"]] == [team_id]
        assert not {"idle", "bills", "reconciliation"} & data.keys()
        found.page.context.close()
    names = {row[5] for row in embedded(pages.teams["nlp"])["jobs"]["rows"]}
    assert names == {"compare_with_•••-and-•••"}
    assert ["nlp-eval", "••• & Language"] in embedded(pages.teams["nlp"])["projects"]


def test_hostile_names_are_shown_as_text(browser: Browser, own_site: Site) -> None:
    nasty = NASTY.replace("'", "''")
    own_site.change(
        f"update core.dim_teams set team_name = '{nasty}' where team_id = 'nlp'",
        f"update core.dim_projects set project_name = '{nasty}'",
        f"update core.dim_pools set pool_name = '{nasty}'",
        f"update core.fct_billed_costs set provider = '{nasty}'",
        f"update reporting.rpt_reconciliation set provider = '{nasty}', invoice_id = '{nasty}'",
        f"update reporting.rpt_job_receipts set job_name = '{nasty}', user_name = '{nasty}'",
        f"update reporting.rpt_job_receipts set job_key = '{nasty}' || job_key",
        "update core.dim_teams set team_id = '../../up' where team_id = 'vision'",
        "update reporting.rpt_team_costs_daily set team_id = '../../up' where team_id = 'vision'",
        "update reporting.rpt_job_receipts set team_id = '../../up' where team_id = 'vision'",
    )
    pages = own_site.write()
    folder = own_site.workspace.published / "teams"
    assert {file.parent for file in pages.teams.values()} == {folder}
    for file in (pages.report, pages.teams["nlp"], pages.teams["../../up"]):
        found = opened(browser, file)
        found.page.wait_for_selector("#flow svg")
        for level in ("[data-team=nlp]", "[data-project]", "[data-job]"):
            links = found.page.locator(f"#drill a{level}")
            if links.count():
                links.first.click()
        assert NASTY in found.page.locator("#drill").text_content()
        assert found.page.title().startswith("Cost report")
        assert found.page.locator("img, body script:not([type])").count() == 1
        assert found.requests == [file.as_uri()]
        assert found.complaints == []
        found.page.context.close()


LINES = """
    create or replace table {table} (
        close_number bigint, period_date date, invoice_id varchar, team_id varchar, component varchar,
        allocation_kind varchar, corrected_period_date date, cause varchar, currency varchar, amount decimal(38, 9),
        invoiced_amount decimal(38, 9), reporting_currency varchar, reporting_amount decimal(38, 9),
        closed_at timestamp, closed_by varchar, override_reason varchar, content_hash varchar
    )
"""


def test_closed_months_and_true_ups_are_shown_to_whom_they_concern(browser: Browser, own_site: Site) -> None:
    closed = """
        insert into core.fct_invoice_lines values
        (1, '2026-01-01', 'a', 'nlp', 'gpu', 'direct', null, null, 'USD', 100.004, 100, 'USD', 100,
            '2026-02-03 10:00', 'finn', 'Robotics was late', 'abcdef0123456789'),
        (1, '2026-01-01', 'b', 'vision', 'gpu', 'direct', null, null, 'CHF', 50, 50, 'USD', 62.5,
            '2026-02-03 10:00', 'finn', 'Robotics was late', 'abcdef0123456789')
    """
    open_lines = """
        insert into reporting.rpt_open_invoice_lines values
        (null, '2026-02-01', 'c', 'nlp', 'gpu', 'true_up', '2026-01-01', 'job moved from Vision', 'USD', -3.216000001,
            -3.22, 'USD', -3.22, null, null, null, null),
        (null, '2026-02-01', 'd', 'vision', 'gpu', 'true_up', '2026-01-01', 'restated bill', 'USD', 3.216000001,
            3.22, 'USD', 3.22, null, null, null, null)
    """
    own_site.change(
        LINES.format(table="core.fct_invoice_lines"),
        LINES.format(table="reporting.rpt_open_invoice_lines"),
        closed,
        open_lines,
    )
    pages = own_site.write()
    found = opened(browser, pages.report)
    assert {(one["currency"], one["text"]) for one in figures(found, "[data-figure=closed]")} == {
        ("USD", "100.00"),
        ("CHF", "50.00"),
    }
    assert {(one["exact"], one["text"]) for one in figures(found, "[data-figure=open-true-up]")} == {
        ("-3.216000001", "-3.22"),
        ("3.216000001", "+3.22"),
    }
    assert "closed" in found.text("#month .badge >> nth=0")
    assert figures(found, "[data-figure=reporting-total]")[0]["text"] == "USD 162.50"
    assert "Robotics was late" in found.page.locator("#books").inner_text()
    found.page.context.close()

    found = opened(browser, pages.teams["nlp"])
    books = found.page.locator("#books").inner_text()
    assert "job moved from •••" in books
    assert "••• was late" in books
    assert "restated bill" not in books
    assert [one["text"] for one in figures(found, "[data-figure=closed]")] == ["100.00"]
    found.page.context.close()


# --- the files -----------------------------------------------------------------------------------------------


def test_pages_of_teams_that_are_gone_are_removed(own_site: Site) -> None:
    first = own_site.write()
    assert set(first.teams) >= {"nlp", "vision", "platform"}
    own_site.change(
        "delete from reporting.rpt_team_costs_daily where team_id = 'vision'",
        "delete from reporting.rpt_job_receipts where team_id = 'vision'",
    )
    again = own_site.write()
    assert {file.name for file in (own_site.workspace.published / "teams").iterdir()} == {
        f"{team_id}.html" for team_id in set(first.teams) - {"vision"}
    }
    assert not list(own_site.workspace.published.glob("*.tmp-*"))
    assert again.report == own_site.workspace.published / "report.html"


def test_the_same_marts_give_the_same_bytes(own_site: Site) -> None:
    first = {file: file.read_bytes() for file in (own_site.write().report, *own_site.write().teams.values())}
    own_site.write()
    assert {file: file.read_bytes() for file in first} == first


def test_nothing_published_is_told_with_the_remedy(tmp_path: Path) -> None:
    with pytest.raises(ApportionError, match="nothing to make a page of"):
        write_pages(Workspace(tmp_path, tmp_path, tmp_path))


def test_books_without_a_day_give_a_page_that_says_so(browser: Browser, own_site: Site) -> None:
    own_site.change(*(f"delete from {table}" for table in ("core.dim_dates", "reporting.rpt_team_costs_daily")))
    found = opened(browser, own_site.write().report)
    assert "No day is loaded yet" in found.page.locator("main").inner_text()
    assert found.complaints == []
    found.page.context.close()


def test_a_year_of_fifty_teams_is_small_and_opens_fast(browser: Browser, demo: Workspace, tmp_path: Path) -> None:
    site = Site(Workspace(demo.sources_file, demo.seeds, tmp_path))
    site.workspace.published.mkdir()
    write_year(demo.published / "marts.duckdb", site.marts)
    pages = site.write()
    assert len(pages.teams) == 50
    assert pages.report_bytes < 8_000_000
    assert max(file.stat().st_size for file in pages.teams.values()) < 2_000_000

    # The best of three: how fast it is, not how busy the machine is.
    seconds = []
    for _ in range(3):
        started = time.perf_counter()
        found = opened(browser, pages.report)
        found.page.wait_for_selector("#flow svg")
        found.page.wait_for_selector("html[data-ready]", state="attached")
        found.page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
        seconds.append(time.perf_counter() - started)
        assert found.complaints == []
        found.page.context.close()
    assert min(seconds) < 3, seconds
