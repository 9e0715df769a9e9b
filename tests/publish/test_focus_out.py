"""FOCUS out: every line is shared out whole, the files tie to the books, and they follow the rules of FOCUS 1.3.

The rules of the specification are written down here once more, column by column, because no published checker knows
1.3; what its checker of 1.0 can say is asked as well.
"""

from __future__ import annotations

import csv
import json
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from typing import Any

import duckdb
import pytest

from orchestration.connectors.billing.focus_columns import INTRODUCED, SINCE_1_0
from orchestration.errors import ApportionError
from orchestration.publish.focus import MODEL, SCHEMA, FocusFiles, write_focus
from orchestration.workspace import PROJECT_ROOT, Workspace
from tests.compiled import answer, compiled
from tests.publish.focus_validator import BROKEN, SPELLINGS, verdicts
from tests.warehouses import DEMO, window

Row = dict[str, str]

DECIMALS = {
    *("BilledCost", "ContractedCost", "EffectiveCost", "ListCost"),
    *("ConsumedQuantity", "ContractedUnitPrice", "ListUnitPrice", "PricingQuantity"),
    *("x_AllocatableCost", "x_AllocatedRatio"),
}
TIMES = {"BillingPeriodEnd", "BillingPeriodStart", "ChargePeriodEnd", "ChargePeriodStart"}
NEVER_NULL = {
    *("BilledCost", "BillingAccountId", "BillingCurrency", "BillingPeriodEnd", "BillingPeriodStart", "ChargeCategory"),
    *("ChargeFrequency", "ChargePeriodEnd", "ChargePeriodStart", "ContractedCost", "EffectiveCost", "HostProviderName"),
    *("InvoiceIssuerName", "ListCost", "ProviderName", "PublisherName", "ServiceCategory", "ServiceName"),
    "ServiceProviderName",
    # Of rows that are shares of a charge, and all of these are.
    *("AllocatedMethodId", "AllocatedMethodDetails"),
}
MANDATORY = {
    *NEVER_NULL,
    *("BillingAccountName", "ChargeClass", "ChargeDescription", "PricingQuantity", "PricingUnit"),
    *("AllocatedResourceId", "AllocatedResourceName", "AllocatedTags"),
}
ALLOWED = {
    "ChargeCategory": {"Usage", "Purchase", "Tax", "Credit", "Adjustment"},
    "ChargeClass": {"", "Correction"},
    "ChargeFrequency": {"One-Time", "Recurring", "Usage-Based"},
    "CommitmentDiscountStatus": {"", "Used", "Unused"},
    "AllocatedMethodId": {"apportion-pool-day"},
}
TOGETHER = [
    ("AllocatedResourceId", "AllocatedResourceName"),
    ("AllocatedResourceId", "AllocatedTags"),
    ("ResourceId", "ResourceType"),
    ("RegionId", "RegionName"),
]
"""The second is null exactly where the first is."""


@pytest.fixture(scope="module")
def written(demo: Workspace) -> FocusFiles:
    return write_focus(demo, DEMO)


@pytest.fixture(scope="module")
def rows(written: FocusFiles) -> list[Row]:
    """As anybody reads the CSV: texts."""
    csv_file, _ = written.files
    with csv_file.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def origins(rows: list[Row]) -> dict[tuple[str, str], list[Row]]:
    found: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in rows:
        found[row["x_ChargeId"], row["x_UsageDate"]].append(row)
    return found


def elements(row: Row) -> list[dict[str, Any]]:
    return json.loads(row["AllocatedMethodDetails"], parse_float=Decimal, parse_int=Decimal)["Elements"]


def booked(demo: Workspace, sql: str) -> list[tuple[Any, ...]]:
    with duckdb.connect(str(demo.warehouse), read_only=True) as warehouse:
        return warehouse.execute(sql).fetchall()


# --- the money ---------------------------------------------------------------------------------------------


def test_every_line_of_every_day_is_shared_out_exactly(demo: Workspace, rows: list[Row]):
    billed = booked(
        demo,
        """
        select charge_key, cast(usage_date as varchar), sum(list_cost), sum(billed_cost), sum(effective_cost),
            sum(allocatable_cost)
        from core.fct_billed_costs group by all
        """,
    )
    columns = ("ListCost", "BilledCost", "EffectiveCost", "x_AllocatableCost")
    shared = {
        origin: tuple(sum(Decimal(row[column]) for row in parts) for column in columns)
        for origin, parts in origins(rows).items()
    }
    assert shared == {(key, day): tuple(costs) for key, day, *costs in billed}
    assert len(shared) > 1000


def test_the_shares_of_a_line_add_up_to_one(rows: list[Row]):
    for parts in origins(rows).values():
        assert sum(element["AllocatedRatio"] for row in parts for element in elements(row)) == 1
        for row in parts:
            assert Decimal(row["x_AllocatedRatio"]) == sum(element["AllocatedRatio"] for element in elements(row))


def test_shares_are_those_of_the_pool_day(demo: Workspace, rows: list[Row]):
    """Found again from the elements alone: of each pool, component and day, what a payer has of what all have."""
    amounts: dict[tuple[str, ...], Decimal] = {}
    for row in rows:
        for element in elements(row):
            if row["x_TeamId"]:
                cell = (row["x_UsageDate"], element["x_PoolId"], element["x_Component"], element["UsageUnit"])
                amounts[*cell, row["x_TeamId"], row["x_ProjectId"]] = element["UsageQuantity"]
    expected = booked(
        demo,
        """
        select cast(usage_date as varchar), pool_id, component, currency, team_id, coalesce(project_id, ''), sum(amount)
        from core.fct_cost_allocations
        where (usage_date, pool_id, component, currency) in (
            select (usage_date, pool_id, component, currency) from core.fct_billed_costs
        )
        group by all having sum(amount) <> 0
        """,
    )
    assert amounts == {tuple(key): amount for *key, amount in expected}


def test_each_team_has_what_it_is_charged_but_for_rounding_and_for_transfers_without_a_bill(demo, rows):
    charged = booked(
        demo,
        """
        select team_id, currency, sum(amount) from core.fct_cost_allocations where pool_id <> 'none' group by all
        """,
    )
    costs: dict[tuple[str, str], Decimal] = defaultdict(Decimal)
    for row in rows:
        costs[row["x_TeamId"], row["BillingCurrency"]] += Decimal(row["x_AllocatableCost"])
    for team, currency, amount in charged:
        assert abs(costs[team, currency] - amount) < Decimal("0.0001"), (team, currency)


CELL = {"usage_date": DEMO.start, "pool_id": "p", "component": "gpu", "currency": "USD"}


def test_shares_can_be_negative_and_still_add_up(demo: Workspace, written: FocusFiles):
    """A team with more credit than charge, a line that is itself a credit, and a pool that earns more than it costs."""
    keys = [
        key for (key,) in booked(demo, "select charge_key from core.fct_billed_costs where usage_date = '2026-01-01'")
    ]
    bill, credit, refund, *_ = sorted(set(keys))  # what else is to be known of a line is read from what was landed
    earning = {**CELL, "pool_id": "earning"}
    lines = [
        {**CELL, "charge_key": bill, **_costs("100.000000001")},
        {**CELL, "charge_key": credit, **_costs("-40")},
        {**earning, "charge_key": refund, **_costs("-7.000000003")},
    ]
    allocations = [
        {**CELL, "team_id": "credited", "amount": Decimal("-10")},
        {**CELL, "team_id": "paying", "amount": Decimal("70.000000001")},
        {**earning, "team_id": "credited", "amount": Decimal("-9.000000003")},
        {**earning, "team_id": "paying", "amount": Decimal("2")},
    ]
    beside = replace(demo, data=demo.data / "focus", focus=True)
    sql = compiled(beside, [MODEL], DEMO)[MODEL]
    tables = {"fct_billed_costs": lines, "fct_cost_allocations": allocations}
    found = {(row["x_ChargeId"], row["x_TeamId"]): row for row in answer(sql, tables, demo.warehouse)}
    for line in lines:
        cell = [one for one in allocations if one["pool_id"] == line["pool_id"]]
        total = sum(one["amount"] for one in cell)
        parts = [found[line["charge_key"], one["team_id"]] for one in cell]
        assert sum(part["EffectiveCost"] for part in parts) == line["effective_cost"]
        assert sum(part["x_AllocatedRatio"] for part in parts) == 1
        for one, part in zip(cell, parts, strict=True):
            assert abs(part["EffectiveCost"] - line["effective_cost"] * one["amount"] / total) <= Decimal("1e-9")
            assert abs(part["x_AllocatedRatio"] - one["amount"] / total) <= Decimal("1e-9")
    assert found[bill, "credited"]["EffectiveCost"] < 0 < found[credit, "credited"]["EffectiveCost"]


def test_what_nobody_is_charged_for_is_a_row_without_a_team(demo: Workspace, written: FocusFiles):
    """Paid ahead, or a pool whose charges and credits cancel out on that day."""
    ((ahead,), (charge,), (credit,), *_) = booked(
        demo, "select distinct charge_key from core.fct_billed_costs where usage_date = '2026-01-01' order by 1"
    )
    lines = [
        {**CELL, "pool_id": "ahead", "charge_key": ahead, **_costs("0"), "billed_cost": Decimal(1000)},
        {**CELL, "pool_id": "even", "charge_key": charge, **_costs("5")},
        {**CELL, "pool_id": "even", "charge_key": credit, **_costs("-5")},
    ]
    sql = compiled(replace(demo, data=demo.data / "focus", focus=True), [MODEL], DEMO)[MODEL]
    found = answer(sql, {"fct_billed_costs": lines}, demo.warehouse)
    assert {(row["x_ChargeId"], row["BilledCost"], row["EffectiveCost"]) for row in found} == {
        (ahead, 1000, 0),
        (charge, 5, 5),
        (credit, -5, -5),
    }
    for row in found:
        assert (row["AllocatedMethodId"], row["x_AllocatedRatio"]) == ("apportion-pool-day", 1)
        assert {
            row[name] for name in ("AllocatedResourceId", "AllocatedResourceName", "AllocatedTags", "x_TeamId")
        } == {None}


def _costs(amount: str) -> dict[str, Decimal]:
    return dict.fromkeys(("list_cost", "billed_cost", "effective_cost", "allocatable_cost"), Decimal(amount))


def test_totals_are_those_of_the_bill(demo: Workspace, written: FocusFiles):
    bill = booked(
        demo, "select currency, sum(billed_cost), sum(effective_cost) from core.fct_billed_costs group by currency"
    )
    assert written.totals == {currency: (billed, effective) for currency, billed, effective in bill}


def test_both_files_say_the_same(written: FocusFiles, rows: list[Row]):
    csv_file, parquet_file = written.files
    assert csv_file.name == "focus_allocations_2026-01-01_2026-01-04.csv"
    kinds = dict(duckdb.sql(f"select column_name, column_type from (describe from '{parquet_file}')").fetchall())
    assert {name for name, kind in kinds.items() if kind == "DECIMAL(38,9)"} == DECIMALS
    assert {name for name, kind in kinds.items() if kind == "TIMESTAMP WITH TIME ZONE"} == TIMES
    texts = ", ".join(
        f"coalesce(strftime(timezone('UTC', {name}), '%Y-%m-%dT%H:%M:%SZ'), '')"
        if name in TIMES
        else f"coalesce(cast({name} as varchar), '')"
        for name in kinds
    )
    parquet = duckdb.sql(f"select {texts} from '{parquet_file}'").fetchall()
    assert parquet == [tuple(row.values()) for row in rows]
    assert written.rows == len(rows)


# --- when it is asked for ----------------------------------------------------------------------------------


def test_nothing_of_it_stays_in_the_books(demo: Workspace, written: FocusFiles):
    assert booked(demo, f"select 1 from information_schema.tables where table_schema = '{SCHEMA}'") == []
    assert not list(written.files[0].parent.glob("*.tmp-*"))


def test_asked_again_in_pieces_of_a_day_it_is_the_same_to_the_byte(demo, written, monkeypatch):
    before = written.files[0].read_bytes()
    monkeypatch.setattr("orchestration.publish.focus.SHARES_AT_ONCE", 1)
    again = write_focus(demo, DEMO)
    assert again.files[0].read_bytes() == before
    assert again.totals == written.totals


def test_days_that_are_not_in_the_books_are_refused(demo: Workspace):
    with pytest.raises(ApportionError, match="do not hold 1 of the 2 days, the first is 2026-01-04") as refusal:
        write_focus(demo, window("2026-01-03", "2026-01-05"))
    assert "run those days" in refusal.value.remedy


# --- the rules of FOCUS 1.3 --------------------------------------------------------------------------------


def test_every_mandatory_column_is_there_and_every_other_is_of_focus_or_marked_as_ours(rows: list[Row]):
    columns = list(rows[0])
    of_focus = {*SINCE_1_0, *(name for version in ("1.1", "1.2", "1.3") for name in INTRODUCED[version])}
    assert set(columns) >= MANDATORY
    assert [name for name in columns if name not in of_focus and not re.fullmatch(r"x_([A-Z][a-z]+)+", name)] == []


def test_what_must_not_be_null_is_not_null(rows: list[Row]):
    assert {name for row in rows for name in NEVER_NULL if row[name] == ""} == set()


def test_values_are_of_their_type_and_among_those_that_are_allowed(rows: list[Row]):
    for row in rows:
        for name in DECIMALS:
            assert re.fullmatch(r"(-?\d+(\.\d+)?)?", row[name]), (name, row[name])
        for name in TIMES:
            assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", row[name]), (name, row[name])
        for name, allowed in ALLOWED.items():
            assert row[name] in allowed, (name, row[name])
        assert re.fullmatch("[A-Z]{3}", row["BillingCurrency"])


def test_periods_begin_before_they_end_and_a_charge_stays_within_its_day(rows: list[Row]):
    for row in rows:
        assert row["BillingPeriodStart"] < row["BillingPeriodEnd"]
        assert row["ChargePeriodStart"] < row["ChargePeriodEnd"]
        assert row["ChargePeriodStart"].startswith(row["x_UsageDate"])


def test_columns_that_belong_together_are_null_together(rows: list[Row]):
    for first, second in TOGETHER:
        assert {(row[first] == "", row[second] == "") for row in rows} <= {(True, True), (False, False)}, first


def test_everything_but_costs_and_payer_is_the_same_in_all_shares_of_a_line(rows: list[Row]):
    own = DECIMALS | {name for name in rows[0] if name.startswith(("Allocated", "x_Team", "x_Project", "x_CostCentre"))}
    for parts in origins(rows).values():
        assert len({tuple(value for name, value in row.items() if name not in own) for row in parts}) == 1
        assert len({row["AllocatedResourceId"] for row in parts}) == len(parts)


def test_json_columns_are_objects_in_the_form_that_focus_asks_for(rows: list[Row]):
    for row in rows:
        details = json.loads(row["AllocatedMethodDetails"])
        assert list(details) == ["Elements"]
        for element in details["Elements"]:
            assert isinstance(element["AllocatedRatio"], int | float)
            assert ("UsageQuantity" in element) <= ("UsageUnit" in element)
            assert {"x_PoolId", "x_Component"} == {name for name in element if name.startswith("x_")}
        tags, allocated = (json.loads(row[name] or "{}") for name in ("Tags", "AllocatedTags"))
        assert not tags.keys() & allocated.keys()
        assert all(isinstance(value, str) for value in (*tags.values(), *allocated.values()))
        assert all(key.startswith("apportion:") for key in allocated)


def test_the_contracted_cost_is_the_list_cost_of_use_and_the_billed_cost_of_credits(rows: list[Row]):
    for row in rows:
        assert (
            row["ContractedCost"] == row["ListCost" if row["ChargeCategory"] in ("Usage", "Purchase") else "BilledCost"]
        )


def test_the_foundations_checker_has_nothing_against_it(written: FocusFiles):
    """Its rules for FOCUS 1.0: presence, types, nulls and allowed values of the columns that 1.0 had."""
    found = verdicts(written.files[0], sorted(DECIMALS))
    assert len(found) > 100
    assert {rule for rule, verdict in found.items() if verdict != "passed"} == set(BROKEN)


def test_the_foundations_checker_is_really_asked(written: FocusFiles, tmp_path):
    lines = list(_spoiled(written))
    spoiled = tmp_path / "spoiled.csv"
    with spoiled.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(lines)
    found = verdicts(spoiled, sorted(DECIMALS), {**SPELLINGS, "SkuId": "Sku"})
    failed = {rule for rule, verdict in found.items() if verdict == "failed"}
    assert failed >= {"ServiceCategory_Enum", "BillingPeriodEnd_IsDateTime", "BilledCost_NotNull", "SkuId_Required"}


def _spoiled(written: FocusFiles) -> Iterator[list[str]]:
    with written.files[0].open(newline="", encoding="utf-8") as file:
        reader = csv.reader(file)
        header = next(reader)
        yield header
        row = dict(zip(header, next(reader), strict=True))
        yield list({**row, "ServiceCategory": "Magic", "BillingPeriodEnd": "01/02/2026", "BilledCost": ""}.values())
        yield list(row.values())


# --- the page ----------------------------------------------------------------------------------------------


def test_the_page_tells_of_every_column_where_it_comes_from(rows: list[Row]):
    page = (PROJECT_ROOT / "docs" / "focus-out.md").read_text(encoding="utf-8")
    described = [
        name.strip("` ")
        for line in page.splitlines()
        if line.startswith("| `")
        for name in line.split("|")[1].split(",")
    ]
    assert sorted(described) == sorted(rows[0])
