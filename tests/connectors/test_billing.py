"""FOCUS files and cost sheets: every cent is landed once, or is in quarantine with a reason."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from orchestration.errors import ApportionError

COLUMNS = (
    "BilledCost,BillingCurrency,BillingPeriodStart,BillingPeriodEnd,ChargePeriodStart,ChargePeriodEnd,"
    "ChargeCategory,ProviderName,ListCost,EffectiveCost,ResourceId,Tags"
)
JANUARY = "2026-01-01T00:00:00Z,2026-02-01T00:00:00Z"


def usage(cost: str, start: str, end: str, *, category: str = "Usage", rest: str = ",,,", month: str = JANUARY) -> str:
    return f"{cost},USD,{month},{start},{end},{category},Acme{rest},"


def bill(*lines: str) -> str:
    return "\n".join([COLUMNS, *lines]) + "\n"


def focus(workspace, **more):
    settings = {"area": "billing", "kind": "focus", "path": "{data}/inbox/focus_*", "max_bad_share": 1.0}
    return workspace.source(**{**settings, **more})


def test_amounts_are_read_exactly_and_broken_lines_are_kept_aside(workspace):
    hour = "2026-01-05T03:00:00Z", "2026-01-05T04:00:00Z"
    workspace.deliver(
        "focus_2026-01_20260203T060000Z.csv.gz",
        bill(
            usage("1.2345678905", *hour),
            usage("-1.2345678905", *hour, rest=",NULL,0.1234567894999,"),
            usage("2.5E-9", "2026-01-05 03:00:00", "2026-01-05 04:00:00"),
            usage("7", *hour, rest=',,,"i, 1","{""team"": ""nlp""}"').removesuffix(","),
            usage("twelve", *hour),
            usage("", *hour),
            usage("1", hour[0], ""),
            usage("1", hour[1], hour[0]),
            usage("1", *hour, category="Gift"),
            usage("1", *hour, rest=",,,,not json").removesuffix(","),
            "1,USD,2026-01-01T00:00:00Z",
            usage("9", hour[0], hour[0]),
        ),
    )
    report = workspace.land(focus(workspace), "2026-01-01", "2026-02-01")
    assert report.billed == {"USD": Decimal("16.000000003")}
    assert workspace.query(
        "select line, billed_cost, list_cost, effective_cost, resource_id from {charges} order by 1"
    ) == [
        (2, Decimal("1.234567891"), None, None, None),
        (3, Decimal("-1.234567891"), None, Decimal("0.123456789"), None),
        (4, Decimal("0.000000003"), None, None, None),
        (5, Decimal("7"), None, None, "i, 1"),
        (13, Decimal("9"), None, None, None),
    ]
    assert workspace.quarantined() == [
        (6, "BilledCost is not a number: twelve"),
        (7, "BilledCost is missing"),
        (8, "ChargePeriodEnd is missing"),
        (9, "ends before it starts"),
        (10, "ChargeCategory is unknown: Gift"),
        (11, "Tags is not a JSON object"),
        (12, "has 3 fields instead of 12"),
    ]
    ((key, invoice, tags, provider, final),) = workspace.query(
        "select charge_key, invoice_id, tags, provider, is_final from {charges} where line = 5"
    )
    assert key.startswith("src:")
    assert (invoice, tags, provider, final) == ("Acme-2026-01", '{"team": "nlp"}', "Acme", False)


def test_usage_is_on_the_days_of_its_time_and_other_charges_on_those_of_their_billing_period_too(workspace):
    workspace.deliver(
        "focus_2026-01_20260210T060000Z.csv",
        bill(
            usage("1", "2026-01-30T22:00:00Z", "2026-02-01T00:00:00Z"),
            usage("1", "2026-02-01T00:00:00Z", "2026-02-01T01:00:00Z"),
            usage("-5", "2026-01-07T00:00:00Z", "2026-01-07T01:00:00Z", category="Credit"),
        ),
    )
    report = workspace.land(focus(workspace), "2025-12-25", "2026-03-01")
    found = workspace.query(
        "select line, count(*), min(date)::varchar, max(date)::varchar from {charges} group by 1 order by 1"
    )
    assert found == [
        (2, 2, "2026-01-30", "2026-01-31"),
        (3, 1, "2026-02-01", "2026-02-01"),
        (4, 31, "2026-01-01", "2026-01-31"),
    ]
    assert report.billed == {"USD": Decimal("-3")}
    assert workspace.query("select bool_and(is_final) from {charges}") == [(True,)]


def test_a_restated_week_replaces_exactly_its_lines(workspace):
    def hours(day: str) -> tuple[str, str]:
        return f"2026-01-{day}T00:00:00Z", f"2026-01-{day}T01:00:00Z"

    year_ahead = usage("1200", "2026-01-01T00:00:00Z", "2027-01-01T00:00:00Z", category="Purchase")
    month = bill(
        usage("10", *hours("11")),
        usage("20", *hours("12")),
        usage("30", *hours("18")),
        usage("40", *hours("19")),
        year_ahead,
    )
    workspace.deliver("focus_2026-01_20260203T060000Z.csv", month)
    source = focus(workspace)
    workspace.land(source, "2026-01-01", "2026-02-01")
    before = workspace.snapshot()
    week = bill(usage("21", *hours("12")), usage("1", *hours("13")))
    name = "focus_2026-01-12_2026-01-19_20260210T060000Z.csv"
    _, cursor = workspace.touched(source)
    workspace.deliver(name, week)
    days, _ = workspace.touched(source, cursor)
    assert days == [f"2026-01-{d}" for d in range(12, 19)]
    report = workspace.land(source, "2026-01-01", "2026-02-01")
    # The hours of the 12th and 13th differ, the line of the 18th is gone, and nothing else moved.
    assert [str(day) for day in report.days_changed] == ["2026-01-12", "2026-01-13", "2026-01-18"]
    amounts = workspace.query(
        "select distinct line, billed_cost::int from {charges} where billed_cost < 1000 order by 2"
    )
    assert [amount for _, amount in amounts] == [1, 10, 21, 40]
    assert report.tables["charges"].superseded == 2
    # A new version of the whole month repeats the year that was paid ahead, and does not double it.
    workspace.deliver("focus_2026-01_20260215T060000Z.csv", month)
    report = workspace.land(source, "2026-01-01", "2026-02-01")
    assert report.billed == {"USD": Decimal("1300")}
    (workspace.data / "inbox" / name).unlink()
    (workspace.data / "inbox" / "focus_2026-01_20260215T060000Z.csv").unlink()
    workspace.land(source, "2026-01-01", "2026-02-01")
    assert workspace.snapshot() == before


def test_a_credit_that_a_restated_week_drops_touches_its_whole_month(workspace):
    credit = usage("-5", "2026-01-13T00:00:00Z", "2026-01-13T01:00:00Z", category="Credit")
    workspace.deliver("focus_2026-01_20260203T060000Z.csv", bill(credit))
    source = focus(workspace)
    _, cursor = workspace.touched(source)
    path = workspace.deliver("focus_2026-01-12_2026-01-19_20260210T060000Z.csv", bill())
    days, cursor = workspace.touched(source, cursor)
    assert days == [f"2026-01-{d:02}" for d in range(1, 32)]
    path.unlink()
    assert workspace.touched(source, cursor)[0] == days


def test_parquet_is_judged_like_text(workspace):
    hour = "2026-01-05T03:00:00Z", "2026-01-05T04:00:00Z"
    names = COLUMNS.split(",")
    row = usage("1.5", *hour).split(",")
    table = pa.table({name: pa.array([value or None, value or None]) for name, value in zip(names, row, strict=True)})
    table = table.set_column(0, "BilledCost", pa.array([1.5, None]))
    tags = pa.array([[("team", "nlp")], None], pa.map_(pa.string(), pa.string()))
    workspace.deliver("focus_2026-01_a.parquet", table.set_column(names.index("Tags"), "Tags", tags))
    workspace.deliver("focus_2026-01_b.csv", bill(usage("2", *hour)))
    report = workspace.land(focus(workspace), "2026-01-05", "2026-01-06")
    assert report.billed == {"USD": Decimal("3.5")}
    assert workspace.quarantined() == [(2, "BilledCost is missing")]
    assert workspace.query("select tags from {charges} where tags is not null") == [('{"team":"nlp"}',)]


def test_parts_of_one_delivery_stand_beside_each_other(workspace):
    hour = "2026-01-05T03:00:00Z", "2026-01-05T04:00:00Z"
    for part, cost in (("1", "10"), ("2", "20")):
        workspace.deliver(f"focus_2026-01_20260203T060000Z_part{part}.csv", bill(usage(cost, *hour)))
    report = workspace.land(focus(workspace), "2026-01-05", "2026-01-06")
    assert report.billed == {"USD": Decimal("30")}


def test_a_bill_without_a_needed_column_names_it(workspace):
    workspace.deliver("focus_2026-01.csv", "BilledCost,BillingCurrency\n1,USD\n")
    with pytest.raises(ApportionError, match=r"focus_2026-01.csv, line 1: missing column BillingPeriodStart"):
        workspace.land(focus(workspace), "2026-01-05", "2026-01-06")


def test_the_published_sample_lands_with_its_billed_total(workspace, shared: Path):
    source = focus(workspace, path=str(shared / "focus" / "focus_sample.csv"), max_bad_share=0.0)
    report = workspace.land(source, "2024-08-01", "2024-11-01")
    assert report.tables["charges"].landed == 1000
    # 20.52022672899 in the file; each line is rounded to nine decimals once.
    assert abs(report.billed["USD"] - Decimal("20.52022672899")) < Decimal("0.0000005")
    assert workspace.query("select count(distinct charge_key) from {charges} where billed_cost < 0") == [(13,)]


def test_cost_sheet_lines_are_usage_of_their_own_period(workspace):
    workspace.deliver(
        "sheet_2026.csv",
        "cost_id,description,cost_type,resource_id,pool,period_start,period_end,amount,currency,tags\n"
        'a,"Racks, two",colocation,,p1,2026-01-15,2026-02-15,-100.1234567895,CHF,"{""team"": ""x""}"\n'
        "b,Fans,other,r1,,2026-01-01,2026-02-01,12k,CHF,\n"
        "c,Fans,magic,r1,,2026-01-01,2026-02-01,12,CHF,\n"
        "d,Fans,other,r1,,2026-01-01,2026-01-01,12,CHF,\n",
    )
    source = workspace.source(
        area="billing", kind="cost_sheet", path="{data}/inbox/sheet_*.csv", provider="us", max_bad_share=1.0
    )
    report = workspace.land(source, "2026-01-01", "2026-03-01")
    assert (report.rows, report.quarantined) == (31, 3)
    assert workspace.query(
        """select distinct provider, invoice_id, billing_period_start_at::date::varchar, service_name, sku_id,
        billing_period_end_at::date::varchar, billed_cost = list_cost and billed_cost = effective_cost,
        billed_cost,
        charge_category, charge_frequency, is_final from {charges}"""
    ) == [
        (
            *("us", "us-2026-01", "2026-01-01", "colocation", "p1", "2026-03-01", True),
            *(Decimal("-100.123456790"), "Usage", "Recurring", True),
        )
    ]


def test_the_same_bill_delivered_again_keeps_its_lines_and_changes_no_day(workspace):
    month = usage("31", "2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z")
    lines = bill(month, month, usage("2", "2026-01-02T03:00:00Z", "2026-01-02T04:00:00Z"))
    source = focus(workspace)
    workspace.deliver("focus_2026-01_20260203T060000Z.csv.gz", lines)
    workspace.land(source, "2026-01-01", "2026-01-04")
    before = workspace.query("select date, charge_key, billed_cost from {charges} order by all")
    assert len({key for _, key, _ in before}) == 3

    workspace.deliver("focus_2026-01_20260204T060000Z.csv.gz", lines)
    assert workspace.land(source, "2026-01-02", "2026-01-03").days_changed == []
    assert workspace.query("select date, charge_key, billed_cost from {charges} order by all") == before
