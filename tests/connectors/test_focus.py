"""FOCUS files: every cent is landed once, or is in quarantine with a reason, whatever version they are of."""

from __future__ import annotations

import csv
import io
import json
import re
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from orchestration.connectors.base import Found
from orchestration.errors import ApportionError
from orchestration.landing import days as day_files
from tests.connectors.conftest import SHARED
from tests.connectors.readings import read_bill

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
    # 16.0000000025 in all: the lines say a nano-dollar more than is billed once they are rounded, and one line less.
    assert report.billed == {"USD": Decimal("16.000000003")}
    assert workspace.query(
        "select line, billed_cost, list_cost, effective_cost, resource_id from {charges} where line > 0 order by 1"
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


def nine(text: str) -> Decimal:
    """An amount as a spreadsheet may write it, rounded to nine decimals, once."""
    bare = text.strip().replace("$", "").replace(",", "")
    return Decimal("0" if bare in ("", "NULL", "null") else bare).quantize(Decimal("1e-9"), rounding="ROUND_HALF_UP")


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8-sig", newline="") as text:
        return list(csv.DictReader(text))


def totals(workspace) -> tuple[Decimal, Decimal]:
    return workspace.query(
        "select sum(billed_cost), sum(effective_cost) from (select distinct on (charge_key) * from {charges})"
    )[0]


def test_the_published_sample_lands_with_its_billed_and_effective_totals(workspace, shared: Path):
    path = shared / "focus" / "focus_sample.csv"
    source = focus(workspace, path=str(path), max_bad_share=0.0)
    report = workspace.land(source, "2024-08-01", "2024-11-01")
    assert report.tables["charges"].landed == 1000
    rows = rows_of(path)
    # The file has amounts with eleven decimals; a line of its own makes up for the rounding of the others.
    billed, effective = (sum(Decimal(r[column]) for r in rows) for column in ("BilledCost", "EffectiveCost"))
    assert billed == Decimal("20.52022672899")
    assert totals(workspace) == (nine(str(billed)), nine(str(effective)))
    below_zero = "select count(distinct charge_key) from {charges} where billed_cost < 0 and line > 0"
    assert workspace.query(below_zero) == [(13,)]
    (found,) = read_bill(source, workspace.data).found
    assert found == Found("FOCUS 1.0, CSV", ("Id",), ("1000 rows have times without a zone, taken as UTC",))


EXAMPLES = sorted(str(path.relative_to(SHARED)) for path in SHARED.glob("focus/spec_examples/**/*.csv"))
HOUR_THIRTY = {"commitment_discount_purchase_scenario_2.csv", "commitment_discount_purchase_scenario_3.csv"}


@pytest.mark.parametrize("example", EXAMPLES or ["none"])
def test_the_examples_of_the_specification_land_with_their_totals(workspace, shared: Path, example):
    path = shared / example
    rows = rows_of(path)
    readable = [row for row in rows if not row["ChargePeriodEnd"].endswith("T30:00:00Z")]
    assert len(rows) - len(readable) == (path.name in HOUR_THIRTY)
    # Those about commitments leave out currency and provider.
    settings = {} if "BillingCurrency" in rows[0] else {"currency": "USD", "provider": "Acme"}
    bill = read_bill(focus(workspace, path=str(path), **settings), workspace.data)
    assert (len(bill.charges), len(bill.bad)) == (len(readable), len(rows) - len(readable))
    assert bill.total("billed_cost") == sum(nine(row["BilledCost"]) for row in readable)
    assert bill.total("effective_cost") == sum(nine(row["EffectiveCost"]) for row in readable)
    assert all(charge["commitment_id"] != "null" for charge in bill.charges)


ROW = {
    "BilledCost": "1.5",
    "BillingCurrency": "usd",
    "BillingPeriodStart": "2026-01-01T00:00Z",
    "BillingPeriodEnd": "2026-02-01T00:00:00.0000000Z",
    "ChargePeriodStart": "2026-01-05T04:00:00+01:00",
    "ChargePeriodEnd": "2026-01-05T04:00:00.000000Z",
    "ChargeCategory": "Usage",
    "EffectiveCost": "1.25",
    "ProviderName": "Acme",
    "RegionId": "eu",
}


def as_csv(*rows: dict[str, str], delimiter: str = ",") -> str:
    out = io.StringIO()
    writer = csv.DictWriter(out, list(rows[0]), delimiter=delimiter, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def renamed(row: dict[str, str], **names: str) -> dict[str, str]:
    return {names.get(name, name): value for name, value in row.items()}


@pytest.mark.parametrize(
    ("version", "row"),
    [
        (
            "0.5",
            renamed(ROW, ChargeCategory="ChargeType", EffectiveCost="AmortizedCost", BillingCurrency="BilledCurrency"),
        ),
        ("1.0-preview", renamed(ROW, RegionId="Region") | {"ChargeSubcategory": "Used Commitment"}),
        (
            "1.0-preview",  # as Oracle writes it
            renamed(ROW, ProviderName="Provider", RegionId="Region") | {"Publisher": "Acme", "InvoiceIssuer": "Acme"},
        ),
        ("1.0", ROW | {"x_Own": "1", "oci_Own": "2", "BillingAccountType": "a"}),
        ("1.0", {"_".join(re.findall("[A-Z][a-z]+", name)).lower(): value for name, value in ROW.items()}),
        ("1.0", {name.upper(): value for name, value in ROW.items()}),
        ("1.1", ROW | {"SkuMeter": "m", "CommitmentDiscountQuantity": "1"}),
        ("1.2", ROW | {"InvoiceId": "7", "SkuMeter": "m", "PricingCurrency": "USD"}),
        ("1.3", renamed(ROW, ProviderName="ServiceProviderName") | {"InvoiceId": "7", "AllocatedTags": "{}"}),
    ],
)
def test_every_version_is_told_by_its_columns_and_reads_the_same(workspace, version, row):
    workspace.deliver("focus_a.csv.gz", as_csv(row))
    source = focus(workspace)
    assert read_bill(source, workspace.data).found == [Found(f"FOCUS {version}, gzipped CSV")]
    report = workspace.land(source, "2026-01-01", "2026-02-01")
    assert report.billed == {"USD": Decimal("1.5")}
    assert workspace.query(
        "select provider, region_id, charge_category, effective_cost, charge_start_at::varchar,"
        " charge_end_at - charge_start_at = interval 1 hour, billing_period_end_at::varchar from {charges}"
    ) == [("Acme", "eu", "Usage", Decimal("1.25"), "2026-01-05 03:00:00+00", True, "2026-02-01 00:00:00+00")]


def test_what_a_draft_calls_an_adjustment_is_what_1_0_calls_it(workspace):
    kinds = ["Credit", "Refund", "Rounding Error", "General Adjustment"]
    rows = [ROW | {"ChargeCategory": "Adjustment", "ChargeSubcategory": kind, "BilledCost": "-1"} for kind in kinds]
    rows += [ROW | {"ChargeSubcategory": kind} for kind in ("On-Demand", "Used Commitment", "Unused Commitment")]
    workspace.deliver("focus_a.csv", as_csv(*rows))
    workspace.land(focus(workspace), "2026-01-01", "2026-02-01")
    assert workspace.query(
        "select distinct line, charge_category, charge_class, commitment_status from {charges} order by 1"
    ) == [
        (2, "Credit", None, None),
        (3, "Adjustment", "Correction", None),
        (4, "Adjustment", None, None),
        (5, "Adjustment", None, None),
        (6, "Usage", None, None),
        (7, "Usage", None, "Used"),
        (8, "Usage", None, "Unused"),
    ]


def test_settings_stand_in_for_columns_and_never_for_cells(workspace):
    bare = {name: value for name, value in ROW.items() if name not in ("BillingCurrency", "ProviderName")}
    workspace.deliver("focus_a.csv", as_csv(bare))
    for missing, settings in (("BillingCurrency", {}), ("ProviderName", {"currency": "CHF"})):
        with pytest.raises(ApportionError, match=f"focus_a.csv, line 1: missing column {missing}"):
            workspace.land(focus(workspace, **settings), "2026-01-01", "2026-02-01")
    workspace.deliver("focus_b.csv", as_csv(ROW | {"BillingCurrency": ""}, ROW))
    report = workspace.land(focus(workspace, currency="CHF", provider="Us"), "2026-01-01", "2026-02-01")
    assert report.billed == {"CHF": Decimal("1.5"), "USD": Decimal("1.5")}
    assert workspace.quarantined() == [(2, "BillingCurrency is missing")]


def test_tags_are_one_object_however_they_are_listed(workspace):
    texts = [
        '{"a": "b"}',
        '[{"key": "a", "value": "b"}, {"key": "ü", "value": null}]',
        '[{"a": "b"}, {"c": "d"}]',
        "[]",
        "[1]",
        '["a"',
    ]
    workspace.deliver("focus_a.csv", as_csv(*({**ROW, "Tags": text} for text in texts)))
    pairs = pa.list_(pa.struct([("key", pa.string()), ("value", pa.string())]))
    table = pa.Table.from_pylist([ROW | {"Tags": None}]).drop_columns("Tags")
    for name, kind in (("b", pairs), ("c", pa.map_(pa.string(), pa.string()))):
        value = [{"key": "a", "value": name}] if kind is pairs else [("a", name)]
        workspace.deliver(f"focus_{name}.parquet", table.append_column("Tags", pa.array([value], kind)))
    workspace.land(focus(workspace), "2026-01-01", "2026-02-01")
    found = [json.loads(tags) for (tags,) in workspace.query("select tags from {charges} order by delivery, line")]
    assert found == [{"a": "b"}, {"a": "b", "ü": None}, {"a": "b", "c": "d"}, {}, {"a": "b"}, {"a": "c"}]
    assert workspace.quarantined() == [(6, "Tags is not a JSON object"), (7, "Tags is not a JSON object")]


def test_text_that_parquet_does_not_call_text_is_text(workspace):
    row = ROW | {"ProviderName": "Zürich", "Tags": '{"team": "nlp"}'}
    workspace.deliver("focus_a.parquet", pa.table({name: pa.array([value.encode()]) for name, value in row.items()}))
    workspace.land(focus(workspace, path="{data}/inbox/*"), "2026-01-01", "2026-02-01")
    found = workspace.query("select provider, tags, billed_cost from {charges}")
    assert found == [("Zürich", '{"team": "nlp"}', Decimal("1.5"))]


def test_binary_fractions_of_parquet_are_rounded_as_they_are_shown(workspace):
    shown = [0.1 + 0.2, 1e-10, 5e-10, -2.5e-9, 123456789.123456789, 4.35, 1e17]
    table = pa.Table.from_pylist([ROW] * len(shown)).set_column(0, "BilledCost", pa.array(shown))
    workspace.deliver("focus_a.parquet", table)
    workspace.land(focus(workspace), "2026-01-01", "2026-02-01")
    found = workspace.query("select billed_cost from {charges} order by line")
    assert [cost for (cost,) in found] == [nine(repr(amount)) for amount in shown]


def test_spreadsheet_notation_is_read_and_said_and_the_rest_is_put_aside(workspace):
    days = {"ChargePeriodStart": "1/5/26", "ChargePeriodEnd": "01/06/2026", "BillingPeriodEnd": "1/31/26 12:00"}
    amounts = ["$1,000.50 ", "-$2", "1,234.5", "1,000", "1.000,5", "€5", "12,34.5"]
    workspace.deliver("focus_a.csv", as_csv(*(ROW | days | {"BilledCost": amount} for amount in amounts)))
    source = focus(workspace)
    report = workspace.land(source, "2026-01-01", "2026-02-01")
    assert report.billed == {"USD": Decimal("1000.5") - 2 + Decimal("1234.5")}
    assert [line for line, _ in workspace.quarantined()] == [5, 6, 7, 8]
    assert workspace.query("select distinct charge_start_at::varchar, charge_end_at::varchar from {charges}") == [
        ("2026-01-05 00:00:00+00", "2026-01-06 00:00:00+00")
    ]
    assert read_bill(source, workspace.data).found[0].doubts == (
        "7 rows have dates such as 4/1/25, taken as month/day/year",
        "3 rows have amounts such as $1,000.00, taken without the signs",
    )


def test_a_file_with_the_day_before_the_month_is_refused_instead_of_being_read_as_other_months(workspace):
    days = {"ChargePeriodStart": "5/1/26", "ChargePeriodEnd": "6/1/26"}
    workspace.deliver("focus_a.csv", as_csv(ROW | days, ROW | days | {"ChargePeriodEnd": "13/01/26"}))
    with pytest.raises(ApportionError, match=r"focus_a.csv, line 3: 13/01/26 puts the day before the month"):
        workspace.land(focus(workspace), "2026-01-01", "2026-02-01")


def test_a_column_that_is_there_twice_is_refused(workspace):
    workspace.deliver("focus_a.csv", as_csv(ROW | {"billed_cost": "7"}))
    with pytest.raises(ApportionError, match="line 1: column BilledCost is there more than once"):
        workspace.land(focus(workspace), "2026-01-01", "2026-02-01")


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


def test_a_run_that_dies_between_days_begins_no_other_and_the_next_run_repairs_it(workspace, monkeypatch):
    def lines(cost: str) -> str:
        days = [f"2026-01-{day:02}" for day in range(1, 29)]
        return bill(*(usage(cost, f"{day}T03:00:00Z", f"{day}T04:00:00Z") for day in days))

    def days_at(cost: str) -> int:
        ((found,),) = workspace.query(f"select count(*) from {{charges}} where billed_cost = {cost}")
        return found

    source = focus(workspace)
    workspace.deliver("focus_2026-01_20260203T060000Z.csv.gz", lines("1"))
    workspace.land(source, "2026-01-01", "2026-02-01")
    workspace.deliver("focus_2026-01_20260204T060000Z.csv.gz", lines("2"))

    def dying(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(day_files, "write_landings", dying)
    with pytest.raises(KeyboardInterrupt):
        workspace.land(source, "2026-01-01", "2026-02-01")
    monkeypatch.undo()
    begun = days_at("2")
    assert 1 <= begun < 28
    assert days_at("1") == 28 - begun
    assert len(workspace.land(source, "2026-01-01", "2026-02-01").days_changed) == 28
    assert days_at("2") == 28
