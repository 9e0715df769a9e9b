"""A company of which only the books are made up: allocations, teams and days go in, the ledger's own models come out.

The SQL is that of the models, as dbt compiles it, and closes go through the real ledger on disk; the sums that judge
them share no code with it. Books are kept per currency, and currencies know nothing of each other: a company with
twenty of them lives twenty lives at the price of one.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from orchestration.dbt import Window
from orchestration.ledger.book import LINE_COLUMNS, Close, append, closes
from orchestration.ledger.close import ORDER
from orchestration.ledger.months import month_of, next_month
from tests.compiled import RELATION

Row = dict[str, Any]
DAYS_OF_TEAMS = """
create view reporting.rpt_team_costs_daily as
select
    allocations.usage_date, date_trunc('month', allocations.usage_date)::date as month_date, allocations.team_id,
    allocations.project_id, allocations.component, allocations.currency, team_days.cost_centre,
    coalesce(team_days.billing_mode, 'showback') as billing_mode,
    {}
from core.fct_cost_allocations as allocations
left join core.fct_team_days as team_days using (usage_date, team_id)
group by all
"""
"""The daily report that the ledger adds up, from the books that are made up here."""
BOOKED_KINDS = ("direct", "idle", "shared", "burst", "outcome_credit", "adjustment", "unattributed")
MADE_UP = ("fct_cost_allocations", "fct_team_days")
VIEWS = ("rpt_open_invoice_lines", "rpt_chargeback_invoices", "rpt_journal_entries")
FIRST = date(2026, 1, 1)
CENT = Decimal("0.01")
TEAMS = ("assistant", "nlp", "platform", "unattributed", "vision")
PROJECTS = (None, "alpha", "beta")
COMPONENTS = ("cpu", "gpu", "storage")
KINDS = ("adjustment", "direct", "idle", "shared")
CURRENCIES = ("USD", *(f"C{number:02d}" for number in range(19)))
Payer = tuple[str, str | None, str, str]
"""Team, project, component, currency."""


def cents(amount: Decimal) -> Decimal:
    return amount.quantize(CENT, ROUND_HALF_UP)


class Warehouse:
    """The models over empty tables of the right types, all in memory."""

    def __init__(self, sql: dict[str, str], like: Path) -> None:
        self.con = duckdb.connect(config={"threads": 1})
        self.con.execute(f"attach '{like}' as built (read_only); attach ':memory:' as warehouse; use warehouse")
        read = {relation for text in sql.values() for relation in RELATION.findall(text)}
        read = read - {("reporting", "rpt_team_costs_daily")} | {("core", name) for name in MADE_UP}
        self.tables = sorted(name for _, name in read if name not in sql)
        for schema, table in sorted(read):
            self.con.execute(f"create schema if not exists {schema}")
            if table in self.tables:
                self.con.execute(f"create table {schema}.{table} as from built.{schema}.{table} limit 0")
        self.con.execute("create schema if not exists reporting")
        sums = (f"coalesce(sum(amount) filter (allocation_kind = '{kind}'), 0) as {kind}_cost" for kind in BOOKED_KINDS)
        self.con.execute(DAYS_OF_TEAMS.format(", ".join(sums)))
        for name in VIEWS:
            self.con.execute(f"create view reporting.{name} as {sql[name]}")
        self.con.execute("detach built")

    def empty(self) -> None:
        for table in self.tables:
            self.con.execute(f"delete from core.{table}")

    def insert(self, table: str, rows: list[Row]) -> None:
        if rows:
            self.con.register("given", pa.Table.from_pylist(rows))
            self.con.execute(f"insert into core.{table} by name from given")
            self.con.unregister("given")

    def rows(self, sql: str) -> list[Row]:
        found = self.con.execute(sql)
        names = [column[0] for column in found.description]
        return [dict(zip(names, values, strict=True)) for values in found.fetchall()]


@dataclass
class Life:
    """One random history of a company and its ledger."""

    warehouse: Warehouse
    data: Path
    random: random.Random
    allocations: dict[date, list[Row]] = field(default_factory=dict)
    hashes: dict[date, dict[str, int]] = field(default_factory=dict)
    kept: Counter = field(default_factory=Counter)
    """All closed lines as they were when they were closed."""

    def begin(self) -> None:
        self.warehouse.empty()
        self.warehouse.insert(
            "dim_exchange_rates",
            [
                {"currency": currency, "rate_to_reporting": Decimal(rate), "valid_from": start, "valid_to": end}
                for currency in CURRENCIES
                for rate, start, end in (
                    ("1.100000000", FIRST, date(2026, 2, 10)),
                    ("1.253333333", date(2026, 2, 10), date(9999, 12, 31)),
                )
            ],
        )
        self.warehouse.insert(
            "dim_journal_accounts",
            [
                {
                    "component": component,
                    "expense_account": f"65-{component}",
                    "clearing_account": "1990",
                    "clearing_cost_centre": "CC-0",
                    "valid_from": FIRST,
                    "valid_to": date(9999, 12, 31),
                }
                for component in ("*", "gpu")
            ],
        )
        self.warehouse.insert("dim_teams", [{"team_id": team, "team_name": team.title()} for team in TEAMS])

    # --- what happens ----------------------------------------------------------------------------------------

    def run(self, day: date, cause: str) -> None:
        """A day is built, or built again from something else."""
        state = self.hashes.setdefault(day, {"policy_hash": 1, "bill_hash": 1, "records_hash": 1})
        state[cause] += 1
        if cause == "policy_hash":
            self._set_teams(day)
        if cause != "policy_hash" or self.random.random() < 0.7:
            self.allocations[day] = list(self._random_rows(day))
        self.warehouse.con.execute("delete from core.fct_cost_allocations where usage_date = ?", [day])
        self.warehouse.insert("fct_cost_allocations", self.allocations.setdefault(day, []))
        self.warehouse.con.execute("delete from core.fct_days where usage_date = ?", [day])
        self.warehouse.insert(
            "fct_days", [{"usage_date": day, **{name: str(number) for name, number in state.items()}}]
        )
        if not self.warehouse.rows(f"select 1 from core.fct_team_days where usage_date = date '{day}'"):
            self._set_teams(day)

    def _set_teams(self, day: date) -> None:
        self.warehouse.con.execute("delete from core.fct_team_days where usage_date = ?", [day])
        self.warehouse.insert(
            "fct_team_days",
            [
                {
                    "usage_date": day,
                    "team_id": team,
                    "cost_centre": None if is_built_in else self.random.choice(("CC-1", "CC-2")),
                    "billing_mode": "showback" if is_built_in else self.random.choice(("chargeback", "showback")),
                }
                for team in TEAMS
                for is_built_in in [team in ("platform", "unattributed")]
            ],
        )

    def _random_rows(self, day: date) -> Iterator[Row]:
        for _ in range(self.random.randint(0, 80)):
            yield {
                "usage_date": day,
                "team_id": self.random.choice(TEAMS),
                "project_id": self.random.choice(PROJECTS),
                "component": self.random.choice(COMPONENTS),
                "allocation_kind": self.random.choice(KINDS),
                "currency": self.random.choice(CURRENCIES),
                # Many amounts of a fraction of a cent, some in the middle between two cents, some large, some back.
                "amount": self.random.choice((1, -1))
                * Decimal(
                    self.random.choice((5 * 10**6, self.random.randint(1, 10**7), self.random.randint(1, 10**13)))
                ).scaleb(-9),
            }

    def close(self) -> Close:
        made = closes(self.data)
        period = next_month(made[-1].period) if made else FIRST
        order = ", ".join(f"{name} nulls first" for name in ORDER)
        lines = self.warehouse.rows(
            f"select {', '.join(LINE_COLUMNS)} from reporting.rpt_open_invoice_lines"
            f" where period_date = date '{period}' order by {order}"
        )
        days = [day for day in self.hashes if day < next_month(period)]
        close = append(
            self.data,
            period,
            {"closed_at": datetime.now(UTC).isoformat(), "closed_by": "finance"},
            lines,
            [{"usage_date": day, **self.hashes[day]} for day in sorted(days)],
        )
        number = {"close_number": close.number, "closed_at": datetime(2026, 5, 1), "content_hash": close.content_hash}
        self.warehouse.insert("fct_invoice_lines", [{**number, "period_date": period, **line} for line in lines])
        self.warehouse.con.execute("delete from core.fct_closed_days")
        unbuilt = {"policy_hash": "", "bill_hash": "", "records_hash": ""}
        self.warehouse.insert(
            "fct_closed_days",
            [
                {"usage_date": day, "period_date": month_of(day), "close_number": close.number}
                | {name: str(value) for name, value in self.hashes.get(day, unbuilt).items()}
                for day in Window(FIRST, next_month(period))
            ],
        )
        self.kept = self.closed_lines()
        return close

    # --- what must hold --------------------------------------------------------------------------------------

    def closed_lines(self) -> Counter:
        return Counter(tuple(row.items()) for row in self.warehouse.rows("from core.fct_invoice_lines"))

    def books(self) -> dict[tuple[date, Payer], Decimal]:
        found: dict[tuple[date, Payer], Decimal] = {}
        for day, rows in self.allocations.items():
            for row in rows:
                key = month_of(day), (row["team_id"], row["project_id"], row["component"], row["currency"])
                found[key] = found.get(key, Decimal(0)) + row["amount"]
        return {key: amount for key, amount in found.items() if amount}

    def check(self) -> int:
        """Returns how many true-ups are open."""
        assert self.closed_lines() == self.kept, "a closed line has changed"
        closed = self.warehouse.rows("from core.fct_invoice_lines")
        still_open = self.warehouse.rows("from reporting.rpt_open_invoice_lines")
        told: dict[tuple[date, Payer], Decimal] = {}
        for line in [*closed, *still_open]:
            key = (
                line["corrected_period_date"] or line["period_date"],
                (line["team_id"], line["project_id"], line["component"], line["currency"]),
            )
            told[key] = told.get(key, Decimal(0)) + line["amount"]
        assert {key: amount for key, amount in told.items() if amount} == self.books()
        self._check_cents(closed, still_open)
        self._check_invoices(closed)
        self._check_journal(closed)
        last = max((line["period_date"] for line in closed), default=None)
        for line in still_open:
            assert line["amount"] != 0, "a true-up or a line of nothing"
            assert (line["allocation_kind"] == "true_up") == (line["corrected_period_date"] is not None)
            assert line["cause"] if line["allocation_kind"] == "true_up" else line["cause"] is None
            assert last is None or line["period_date"] > last
        return sum(line["allocation_kind"] == "true_up" for line in still_open)

    def _check_cents(self, closed: list[Row], still_open: list[Row]) -> None:
        """Cents are cut from running sums in the stated order; so they add up to the cent at every level."""
        for lines in (closed, still_open):
            groups: dict[tuple[date, str], list[Row]] = {}
            for line in lines:
                groups.setdefault((line["period_date"], line["currency"]), []).append(line)
            for rows in groups.values():
                rows.sort(key=lambda row: tuple((row[name] is not None, row[name] or "") for name in ORDER[1:]))
                running = value = Decimal(0)
                for row in rows:
                    worth = (row["amount"] * row["reporting_rate"]).quantize(Decimal("1e-9"), ROUND_HALF_UP)
                    assert row["invoiced_amount"] == cents(running + row["amount"]) - cents(running)
                    assert row["reporting_amount"] == cents(value + worth) - cents(value)
                    running, value = running + row["amount"], value + worth
                assert sum(row["invoiced_amount"] for row in rows) == cents(running)

    def _check_invoices(self, closed: list[Row]) -> None:
        expected: dict[str, Decimal] = {}
        for line in closed:
            if line["billing_mode"] == "chargeback":
                expected[line["invoice_id"]] = expected.get(line["invoice_id"], Decimal(0)) + line["invoiced_amount"]
        invoices = self.warehouse.rows("from reporting.rpt_chargeback_invoices")
        assert {row["invoice_id"]: row["invoiced_amount"] for row in invoices} == expected
        assert all(row["charged_amount"] + row["true_up_amount"] == row["invoiced_amount"] for row in invoices)

    def _check_journal(self, closed: list[Row]) -> None:
        entries = self.warehouse.rows("from reporting.rpt_journal_entries")
        for posting in {row["posting_id"] for row in entries}:
            rows = [row for row in entries if row["posting_id"] == posting]
            for kind in ("", "reporting_"):
                assert sum(row[f"{kind}debit"] - row[f"{kind}credit"] for row in rows) == 0
                assert all(row[f"{kind}debit"] >= 0 and row[f"{kind}credit"] >= 0 for row in rows)
            assert sorted(row["line_number"] for row in rows) == list(range(1, len(rows) + 1))
        posted = sum(row["debit"] - row["credit"] for row in entries if row["side"] == "team")
        assert posted == sum(line["invoiced_amount"] for line in closed if line["billing_mode"] == "chargeback")


def random_day(life: Life, months: int) -> date:
    """Of few days, so that many are built again after their month is closed."""
    period = FIRST
    for _ in range(life.random.randrange(months)):
        period = next_month(period)
    return period.replace(day=life.random.randint(1, 4))
