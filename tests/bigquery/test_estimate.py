"""What `apportion estimate` counts: columns and days that queries read, their bytes, and what is billed for them."""

from __future__ import annotations

import io
import json
import re
import shutil
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rich.console import Console

from orchestration.dbt import Window
from orchestration.errors import ApportionError
from orchestration.estimate import report
from orchestration.estimate.billing import MIB, Estimate, billed, estimated
from orchestration.estimate.queries import Plan, Step, Table, plan, temporary
from orchestration.estimate.scans import EVER, Catalog, Days, Read, qualified, reads_of
from orchestration.estimate.sizes import Sizes, measured
from orchestration.landing.schemas import LANDINGS_SCHEMA, LICENSE_USAGE
from orchestration.workspace import Workspace
from tests.warehouses import GOLDEN, day

TEN, HUNDRED = 10, 100
"""Days of history. Back from the golden day, both begin on the first of a month, so that its own is as full in both."""

READ_ALL_DAYS = {
    *(
        f"dim_{name}_primary_key"
        for name in ("dates", "pools", "teams", "projects", "nodes", "jobs", "clusters", "users")
    ),
    # Reports over all months, and the invoices that whole months are compared with.
    *("rpt_team_costs_monthly_unique_key", "rpt_team_costs_monthly_complete"),
    *("rpt_reconciliation_unique_key", "assert_books_tie_to_invoices"),
    # What closed months would be charged today is known from all of their days.
    *("rpt_open_invoice_lines_unique_key", "assert_closed_and_open_lines_are_the_books"),
}
"""Checks that read more when there is more history, however few days a run has."""


# --- columns and days --------------------------------------------------------------------------------------

FACT, LOG, SMALL, VIEW = "p.d.fact", "p.d.log", "p.d.small", "p.d.view"
MARCH = Days(day("2026-03-01"), day("2026-04-01"))
IN_MARCH = "{0} >= date '2026-03-01' and {0} < date '2026-04-01'"


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    found = Catalog()
    found.add(FACT, {"usage_date": "DATE", "team": "STRING", "cost": "NUMERIC", "note": "STRING"}, "usage_date")
    found.add(LOG, {"date": "DATE", "team": "STRING", "seconds": "INT64"}, "date")
    found.add(SMALL, {"team": "STRING", "name": "STRING", "usage_date": "DATE"})
    view = f"select date as usage_date, team, seconds * 2 as doubled from `p`.`d`.`log` where {IN_MARCH.format('date')}"
    found.add_view(VIEW, qualified(view, found))
    return found


def read(catalog: Catalog, sql: str) -> set[tuple[str, frozenset[str], Days]]:
    for name in (FACT, LOG, SMALL, VIEW):
        sql = sql.replace("{" + name.rpartition(".")[2] + "}", "`" + name.replace(".", "`.`") + "`")
    return set(reads_of(qualified(sql, catalog), catalog))


def only(relation: str, columns: str, days: Days = EVER) -> set[Read]:
    return {Read(relation, frozenset(columns.split()), days)}


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        pytest.param("select * from {fact}", only(FACT, "usage_date team cost note"), id="a star is every column"),
        pytest.param(
            "with imported as (select * from {fact}), final as (select * from imported) select sum(cost) from final",
            only(FACT, "cost"),
            id="stars of CTEs are what is made of them",
        ),
        pytest.param(
            f"select team from {{fact}} where {IN_MARCH.format('usage_date')}",
            only(FACT, "usage_date team", MARCH),
            id="a filter on the partition column leaves its days, and reads the column",
        ),
        pytest.param(
            f"with days as (select * from {{fact}}) select team from days where {IN_MARCH.format('usage_date')}",
            only(FACT, "usage_date team", MARCH),
            id="a filter around a CTE reaches its table",
        ),
        pytest.param(
            "select team from (select usage_date, team, row_number() over (partition by team order by cost) as n"
            f" from {{fact}}) as ranked where {IN_MARCH.format('usage_date')} and n = 1",
            only(FACT, "usage_date team cost"),
            id="not where rows are ranked among all others",
        ),
        pytest.param(
            f"select team from {{fact}} where {IN_MARCH.format('usage_date')} or team = 'a'",
            only(FACT, "usage_date team"),
            id="half of an or is no filter",
        ),
        pytest.param(
            "select team from {fact} where usage_date = (select max(usage_date) from {small})",
            only(FACT, "usage_date team") | only(SMALL, "usage_date"),
            id="what is only known when the query runs is no filter",
        ),
        pytest.param(
            "select team from {fact} where usage_date in (date '2026-03-02', date '2026-03-05')",
            only(FACT, "usage_date team", Days(day("2026-03-02"), day("2026-03-06"))),
            id="a list reaches from its first day to its last",
        ),
        pytest.param(
            "select team from {fact} where usage_date between date '2026-03-01' and date '2026-03-31'",
            only(FACT, "usage_date team", MARCH),
            id="between holds both ends",
        ),
        pytest.param(
            f"select name from {{small}} where {IN_MARCH.format('usage_date')}",
            only(SMALL, "name usage_date"),
            id="a table without partitions is read whole",
        ),
        pytest.param(
            "select doubled from {view}", only(LOG, "date seconds", MARCH), id="a view costs what is read through it"
        ),
        pytest.param(
            "select small.name, fact.cost from {small} as small left join {fact} as fact"
            f" on small.team = fact.team and {IN_MARCH.format('fact.usage_date')}",
            only(SMALL, "team name") | only(FACT, "team cost usage_date", MARCH),
            id="the condition of a join filters the side that may be missing",
        ),
        pytest.param(
            "select team from {fact} where date '2026-03-01' <= usage_date and usage_date < date '2026-03-10' union all"
            " select team from {fact} where date '2026-03-20' <= usage_date and usage_date < date '2026-04-01'",
            only(FACT, "usage_date team", Days(day("2026-03-01"), day("2026-03-10")))
            | only(FACT, "usage_date team", Days(day("2026-03-20"), day("2026-04-01"))),
            id="branches have days of their own",
        ),
        pytest.param(
            "select name from {small} where exists (select 1 from {log} where log.team = small.team)",
            only(SMALL, "team name") | only(LOG, "team"),
            id="subqueries are read too",
        ),
        pytest.param(
            "with recursive up as (select team, name from {small} where name is null union all"
            " select small.team, small.name from {small} as small inner join up on small.name = up.team)"
            " select count(*) from up",
            only(SMALL, "team name"),
            id="what calls itself is read once",
        ),
    ],
)
def test_columns_and_days_of_a_query_are_found(catalog: Catalog, sql: str, expected: set[Read]) -> None:
    assert read(catalog, sql) == expected


# --- bytes and money ---------------------------------------------------------------------------------------

DAY = day("2026-03-10")
TWO_DAYS = Window(DAY, DAY + timedelta(days=2))
SEATS = Table("landing", "license_usage", {"product": "STRING", "seats": "INT64", "date": "DATE"}, "date")
TINY = Table(
    "core", "fct_tiny", {"usage_date": "DATE", "amount": "NUMERIC", "wide": "BIGNUMERIC", "ok": "BOOL"}, "usage_date"
)
STEP = Table("intermediate", "int_step", {"text": "STRING", "number": "FLOAT64"}, is_windowed=True)


@pytest.fixture
def tiny(tmp_path: Path) -> Workspace:
    """Two rows landed, two built, and a step of which the last run made one day."""
    workspace = Workspace(tmp_path / "sources.yml", tmp_path / "seeds", tmp_path / "data")
    at = datetime(2026, 3, 10, tzinfo=UTC)
    rows = [{"product": "Größe", "seats": 3, "checked_out_at": at}, {"product": None, "seats": 4, "checked_out_at": at}]
    _write(workspace, "license_usage", pa.Table.from_pylist(rows, LICENSE_USAGE.schema))
    landed = {
        "source": "one",
        "table_name": "license_usage",
        "rows": 2,
        "quarantined": 0,
        "content_hash": "",
        "date": DAY,
    }
    _write(workspace, "landings", pa.Table.from_pylist([landed], LANDINGS_SCHEMA))
    with duckdb.connect(str(workspace.warehouse)) as con:
        con.execute("create schema core; create schema intermediate")
        con.execute("create table core.fct_days as select date '2026-03-10' as usage_date")
        con.execute("create table intermediate.int_days as select date '2026-03-10' as usage_date")
        con.execute(
            "create table core.fct_tiny as select date '2026-03-10' as usage_date, 1::decimal(38, 9) as amount,"
            " unnest([1, null])::hugeint as wide, true as ok"
        )
        con.execute("create table intermediate.int_step as select 'abc' as text, unnest([1.5, 2.5]) as number")
    return workspace


def _write(workspace: Workspace, table: str, rows: pa.Table) -> None:
    folder = workspace.data / "landing" / table / f"date={DAY}"
    folder.mkdir(parents=True)
    pq.write_table(rows, folder / "one.parquet")


def tiny_plan(window: Window) -> Plan:
    days = Days(window.start, window.end)
    tables = {"seats": SEATS, "tiny": TINY, "step": STEP}
    queries = [
        frozenset({Read("seats", frozenset({"product", "seats"}), days), Read("step", frozenset(STEP.types), EVER)}),
        frozenset({Read("tiny", frozenset(TINY.types), days), Read(temporary("tiny"), frozenset(TINY.types), days)}),
    ]
    return Plan(tables, [Step("fct_tiny", "model", "core", queries)])


def test_bytes_are_those_that_one_counts_by_hand(tiny: Workspace) -> None:
    one_day = Window(DAY, DAY + timedelta(days=1))
    sizes = measured(tiny, one_day, tiny_plan(one_day))
    # 2 + 7 bytes of UTF-8, and nothing for the missing name; two integers; a date is 8, a numeric 16, a bool 1.
    assert sizes.bytes["seats"] == {DAY: {"product": 9, "seats": 16}}
    assert sizes.bytes["tiny"] == {DAY: {"usage_date": 16, "amount": 32, "wide": 32, "ok": 2}}
    assert sizes.bytes["step"] == {None: {"text": 10, "number": 16}}
    assert (sizes.averaged, sizes.unknown, sizes.empty) == ({}, [], [])

    (bill,) = estimated(tiny_plan(one_day), sizes, one_day).bills
    # The query reads 25 and 26 bytes; to replace the day, BigQuery reads it as it was and as it will be.
    assert bill.scanned == 25 + 26 + 2 * 82
    assert bill.billed == 4 * 10 * MIB
    assert bill.padding == bill.billed - bill.scanned


def test_days_that_are_not_there_yet_count_as_the_mean_of_those_that_are(tiny: Workspace) -> None:
    sizes = measured(tiny, TWO_DAYS, tiny_plan(TWO_DAYS))
    following = DAY + timedelta(days=1)
    assert sizes.averaged == {"landed": [following], "built": [following]}
    assert sizes.bytes["seats"][following] == sizes.bytes["seats"][DAY]
    assert sizes.bytes["tiny"][following] == sizes.bytes["tiny"][DAY]
    assert sizes.bytes["step"] == {None: {"text": 20, "number": 32}}  # twice the day that it holds


def test_tables_that_were_never_built_or_are_empty_are_named(tiny: Workspace) -> None:
    with duckdb.connect(str(tiny.warehouse)) as con:
        con.execute("drop table core.fct_tiny; delete from intermediate.int_step")
    sizes = measured(tiny, TWO_DAYS, tiny_plan(TWO_DAYS))
    assert (sizes.unknown, sizes.empty) == (["core.fct_tiny"], ["intermediate.int_step"])
    told = "\n".join(report.notes(estimated(tiny_plan(TWO_DAYS), sizes, TWO_DAYS)))
    assert "core.fct_tiny" in told
    assert "intermediate.int_step" in told


def test_days_like_empty_ones_are_empty(tiny: Workspace) -> None:
    with duckdb.connect(str(tiny.warehouse)) as con:
        con.execute("delete from core.fct_tiny")
    sizes = measured(tiny, TWO_DAYS, tiny_plan(TWO_DAYS))
    assert sizes.empty == ["core.fct_tiny"]
    (bill,) = estimated(tiny_plan(TWO_DAYS), sizes, TWO_DAYS).bills
    assert bill.scanned == 2 * (25 + 26)


def test_nothing_landed_is_said_with_a_remedy(tmp_path: Path) -> None:
    with pytest.raises(ApportionError, match="nothing is landed") as raised:
        measured(
            Workspace(tmp_path / "sources.yml", tmp_path / "seeds", tmp_path / "data"), TWO_DAYS, tiny_plan(TWO_DAYS)
        )
    assert "apportion run" in (raised.value.remedy or "")


def test_each_table_of_a_query_is_billed_for_ten_mib_at_least() -> None:
    assert billed([]) == 0
    assert billed([1, 11 * MIB]) == 21 * MIB
    assert billed([10 * MIB + 1]) == 11 * MIB


# --- the project -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def planned(golden: Workspace) -> Plan:
    """Nobody is asked, whatever the environment says: for this project, dbt would look for credentials to compile."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("APPORTION_BIGQUERY_PROJECT", "my-project-1")
        patch.setenv("APPORTION_BIGQUERY_KEYFILE", "/nowhere/key.json")
        patch.delenv("APPORTION_BIGQUERY_ENDPOINT", raising=False)
        return plan(golden, GOLDEN)


@pytest.fixture(scope="module")
def short(golden: Workspace, planned: Plan, tmp_path_factory: pytest.TempPathFactory) -> Estimate:
    return estimate_with_history(golden, planned, tmp_path_factory.mktemp("short"), TEN)


@pytest.fixture(scope="module")
def long(golden: Workspace, planned: Plan, tmp_path_factory: pytest.TempPathFactory) -> Estimate:
    return estimate_with_history(golden, planned, tmp_path_factory.mktemp("long"), HUNDRED)


def estimate_with_history(golden: Workspace, planned: Plan, root: Path, days: int) -> Estimate:
    """Of the golden day, after days that were all like it."""
    ours = Workspace(golden.sources_file, golden.seeds, root / "data")
    shutil.copytree(golden.data / "landing", ours.data / "landing")
    shutil.copy(golden.warehouse, ours.warehouse)
    _repeat_landing(ours, days)
    _repeat_marts(ours, days)
    return estimated(planned, measured(ours, GOLDEN, planned), GOLDEN)


def _repeat_landing(workspace: Workspace, days: int) -> None:
    for table in (workspace.data / "landing").iterdir():
        landed = sorted(table.glob("date=2*"))
        for number in range(days):
            target = table / f"date={GOLDEN.start - timedelta(days=number)}"
            if landed and not target.exists():
                shutil.copytree(landed[0], target)


def _repeat_marts(workspace: Workspace, days: int) -> None:
    with duckdb.connect(str(workspace.warehouse)) as con:
        tables = con.execute(
            "select schema_name, table_name, list(column_name) from duckdb_columns() join duckdb_tables()"
            " using (schema_name, table_name) where schema_name in ('core', 'reporting') group by all"
        ).fetchall()
        for schema, table, columns in tables:
            name = f"{schema}.{table}"
            if "period_date" in columns:
                continue  # of the ledger, which grows by closes and not by days
            column, earlier = (
                ("usage_date", f"select usage_date - number::integer from range(1, {days}) as days(number)")
                if "usage_date" in columns
                else (
                    "month_date",
                    f"select distinct date_trunc('month', date '{GOLDEN.start}' - number::integer)::date"
                    f" as month from range({days}) as days(number) where month <> month_date",
                )
            )
            con.execute(
                f"insert into {name} select rows.* replace (earlier.day as {column}) from {name} as rows,"
                f" lateral ({earlier}) as earlier(day)"
            )
        built = con.execute("select count(*) from core.fct_days").fetchone()
        assert built == (days,)


def test_a_day_costs_the_same_however_long_the_history_is(short: Estimate, long: Estimate) -> None:
    before = {bill.name: bill for bill in short.bills}
    grown = {bill.name for bill in long.bills if bill.scanned > before[bill.name].scanned}
    # The list of delivered files has no partitions: a row per file, far below the minimum that is billed.
    assert grown - {"int_deliveries"} <= READ_ALL_DAYS == {bill.name for bill in long.of_all_days()}
    assert report.total(long.of_the_days()).billed == report.total(short.of_the_days()).billed
    assert all(bill.tables == before[bill.name].tables for bill in long.bills)


def test_monthly_reports_read_their_month_and_nothing_else(planned: Plan) -> None:
    march = Days(date(2026, 3, 1), date(2026, 4, 1))
    for step in planned.steps:
        if step.name in ("rpt_fairness", "rpt_method_comparison"):
            assert {read.days for read in step.queries[0] if planned.tables[read.relation].partition_column} == {march}


def test_tables_read_something_and_views_cost_nothing(planned: Plan, manifest: dict[str, Any]) -> None:
    queries = {(step.layer, step.name): step.queries for step in planned.steps}
    assert {len(found) for (layer, _), found in queries.items() if layer == "staging"} == {0}
    between = {name: len(found) for (layer, name), found in queries.items() if layer == "intermediate"}
    kinds = {node["name"]: node["config"]["materialized"] for node in manifest["nodes"].values()}
    assert between == {name: int(kinds[name] == "table") for name in between}
    assert {"int_books", "int_drivers"} <= {name for name, found in between.items() if not found}
    facts = {name: len(found) for (layer, name), found in queries.items() if layer == "core" and name[:4] == "fct_"}
    ledger = {"fct_invoice_lines": 1, "fct_closed_days": 1}  # as it is, and not in the place of some days
    assert facts == dict.fromkeys(facts, 2) | ledger
    reads_nothing = {name for (_, name), found in queries.items() if not all(found)}
    assert reads_nothing == {"int_hour_steps"}, "a list of numbers"


def test_staging_is_seen_through_to_the_day_and_columns_that_were_landed(planned: Plan) -> None:
    (reads,) = next(step.queries for step in planned.steps if step.name == "int_gpu_hours")
    (samples,) = [read for read in reads if planned.tables[read.relation].name == "gpu_samples"]
    assert samples.days == Days(GOLDEN.start, GOLDEN.end)
    assert {"date", "power_watts", "sampled_at"} <= samples.columns
    assert {"sm_active", "tensor_active", "memory_used_mib", "delivery"}.isdisjoint(samples.columns)


def test_table_and_json_tell_the_same(golden: Workspace, planned: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "plan", lambda *_: planned)  # compiled once for all tests
    data = json.loads(shown(golden, as_json=True))
    rows = {
        cells[0]: cells[1:]
        for line in shown(golden, as_json=False).splitlines()
        if len(cells := re.split(r"\s{2,}", line.strip())) == 6
    }
    for model in data["models"]:
        if model["tables"]:
            assert rows[model["name"]] == cells_of(model)
        else:
            assert model["name"] not in rows
    of_the_days = [test for test in data["tests"] if not test["reads_all_days"]]
    assert rows[f"{len(of_the_days)} tests"][2] == mib(sum(test["billed_bytes"] for test in of_the_days))
    assert rows["total"] == cells_of(data["total"])
    assert data["total"]["billed_bytes"] == sum(one["billed_bytes"] for one in data["models"] + of_the_days)
    assert rows[report.ALL_DAYS] == cells_of(data["all_days"])
    everything = sum(one["billed_bytes"] for one in data["models"] + data["tests"])
    assert data["total"]["billed_bytes"] + data["all_days"]["billed_bytes"] == everything
    assert Decimal(data["total"]["price"]) == round(Decimal(8) * data["total"]["billed_bytes"] / 2**40, 6)


def shown(workspace: Workspace, as_json: bool) -> str:
    output = io.StringIO()
    report.show_estimate(workspace, GOLDEN, Decimal(8), Console(file=output, width=200), as_json=as_json)
    return output.getvalue()


def cells_of(bill: dict) -> list[str]:
    sizes = [mib(bill[f"{part}_bytes"]) for part in ("scanned", "billed", "minimum")]
    return [str(bill["tables"]), *sizes, bill["price"]]


def mib(size: int) -> str:
    return f"{size / MIB:,.1f}"


def test_the_price_is_the_bytes_times_the_rate() -> None:
    assert Estimate(TWO_DAYS, Decimal("6.25"), [], Sizes({})).price(2**40) == Decimal("6.25")
