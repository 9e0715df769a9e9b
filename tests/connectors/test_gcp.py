"""Google Cloud billing exports: costs and credits land apart, and their sums are those of the file."""

from __future__ import annotations

import json
import tracemalloc
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from orchestration.connectors.billing.json_records import records
from orchestration.errors import ApportionError
from tests.connectors.conftest import SHARED

CASES = sorted(path.name for path in SHARED.glob("gcp_cud/test_*"))


def gcp(workspace, **more):
    settings = {"area": "billing", "kind": "gcp_export", "path": "{data}/inbox/gcp*", "max_bad_share": 1.0}
    return workspace.source(**{**settings, **more})


def line(**more) -> dict:
    return {
        "billing_account_id": "00F3D8",
        "service": {"id": "6F81", "description": "Compute Engine"},
        "sku": {"id": "6C71", "description": "A100 GPU in Americas"},
        "usage_start_time": "2026-01-05 08:00:00 UTC",
        "usage_end_time": "2026-01-05 09:00:00 UTC",
        "project": {"id": "p1"},
        "location": {"region": "us-west1"},
        "cost": 10.5,
        "currency": "USD",
        "invoice": {"month": "202601"},
        "cost_type": "regular",
        **more,
    }


def concatenated(text: str) -> list[dict]:
    """The objects of a text by Python's own decoder, with amounts as decimals."""
    decoder, place, found = json.JSONDecoder(parse_float=Decimal), 0, []
    text = text.strip()
    while place < len(text):
        value, place = decoder.raw_decode(text, place)
        found += value if isinstance(value, list) else [value]
        while place < len(text) and text[place].isspace():
            place += 1
    return found


def nine(amount: object) -> Decimal:
    return Decimal(str(amount)).quantize(Decimal("1e-9"), rounding="ROUND_HALF_UP")


def sums(workspace) -> tuple[Decimal, Decimal]:
    ((cost, credits),) = workspace.query(
        """select coalesce(sum(billed_cost) filter (charge_category <> 'Credit'), 0),
            coalesce(sum(billed_cost) filter (charge_category = 'Credit'), 0)
        from (select distinct on (charge_key) * from {charges})"""
    )
    return cost, credits


@pytest.mark.parametrize("case", CASES or ["none"])
def test_the_published_cases_land_with_the_sums_of_their_files_before_and_after_attribution(
    workspace, shared: Path, case
):
    net = []
    for name in ("export.json", "expected_billingexport_output.json"):
        path = shared / "gcp_cud" / case / name
        rows = concatenated(path.read_text())
        last = max(row["usage_end_time"] for row in rows)
        source = gcp(workspace, path=str(path), max_bad_share=0.0)
        report = workspace.land(source, "2019-01-21", str(date.fromisoformat(last[:10]) + timedelta(1)))
        assert (report.tables["charges"].read, report.tables["charges"].landed) == (len(rows), len(rows))
        cost = sum(Decimal(str(row["cost"])) for row in rows)
        credits = sum(Decimal(str(credit["amount"])) for row in rows for credit in row.get("credits") or [])
        assert sum(sums(workspace)) == nine(cost + credits)
        assert abs(sums(workspace)[1] - credits) < len(rows) * Decimal("1e-9")
        assert workspace.query("select count(*) from {charges} where effective_cost <> billed_cost") == [(0,)]
        net.append(sum(sums(workspace)))
    # Google's attribution leaves binary fractions, and each line is rounded to nine decimals.
    assert abs(net[0] - net[1]) < Decimal("1e-7")


def test_each_credit_is_a_charge_with_the_day_and_the_labels_of_its_line(workspace):
    row = line(
        cost="1.23456789E-5",
        cost_at_list=2.5e1,
        credits=[
            {"full_name": "Committed use", "type": "COMMITTED_USAGE_DISCOUNT", "id": "c1", "amount": -1e-6},
            {"name": "Promo", "type": "PROMOTION", "amount": "-2E-6"},
            {"name": "Promo", "type": "PROMOTION", "amount": "-2E-6"},
        ],
        labels=[{"key": "team", "value": "nlp"}, {"key": "empty", "value": None}],
        system_labels=[{"key": "compute.googleapis.com/cores", "value": "4"}],
        tags=[{"key": "team", "value": "vision", "inherited": False, "namespace": "org"}],
        resource={"name": "vm-1", "global_name": "//compute.googleapis.com/vm-1"},
    )
    workspace.deliver("gcp_a.jsonl", json.dumps(row) + "\n")
    report = workspace.land(gcp(workspace), "2026-01-01", "2026-02-01")
    assert workspace.query(
        """select charge_category, charge_description, billed_cost, effective_cost, list_cost, commitment_id,
            resource_id
        from (select distinct on (charge_key) * from {charges}) order by 1 desc, 2"""
    ) == [
        *[("Usage", "A100 GPU in Americas", nine("1.23456789E-5"), nine("1.23456789E-5"), Decimal(25), None, VM)],
        *[("Credit", "Committed use", nine("-1e-6"), nine("-1e-6"), Decimal(0), "c1", VM)],
        *[("Credit", "Promo", nine("-2e-6"), nine("-2e-6"), Decimal(0), None, VM)] * 2,
    ]
    ((tags,),) = workspace.query("select distinct tags from {charges}")
    assert json.loads(tags) == {
        "team": "nlp",
        "empty": "",
        "compute.googleapis.com/cores": "4",
        "tag/team": "vision",
    }
    assert (report.tables["charges"].landed, list(report.variants)) == (
        1,
        ["Google Cloud detailed export, JSON"],
    )


VM = "//compute.googleapis.com/vm-1"


def test_credits_of_one_line_that_say_the_same_are_charges_of_their_own(workspace):
    credit = {"name": "x", "amount": -0.25}
    workspace.deliver("gcp.json", "\n".join(json.dumps(line(credits=[credit, credit])) for _ in range(2)))
    workspace.land(gcp(workspace), "2026-01-05", "2026-01-06")
    found = workspace.query(
        "select billed_cost, right(charge_key, 2), count(distinct left(charge_key, -2)) over (partition by billed_cost)"
        " from {charges} order by all"
    )
    assert found == [
        *((Decimal("-0.25"), f"#{place}", 1) for place in (1, 2, 3, 4)),
        *((Decimal("10.5"), f"#{place}", 1) for place in (1, 2)),
    ]


def test_one_a_line_one_after_the_other_an_array_and_parquet_are_the_same_bill(workspace):
    rows = [
        line(cost=0.1, labels=[{"key": "a", "value": 'b } { " \n'}], credits=[{"name": "x", "amount": -0.05}]),
        line(cost=3, cost_type="tax", credits=[]),
        line(cost=-0.01, cost_type="rounding_error"),
        line(cost=7, cost_type="adjustment", adjustment_info={"id": "77", "description": "late"}),
        line(cost=4, sku={"id": "f", "description": "Commitment v1: Ram in Americas for 3 Year"}),
    ]
    texts = [json.dumps(row) for row in rows]
    names = {name: None for row in rows for name in row}
    as_parquet = pa.Table.from_pylist([{**names, **row, "cost": float(row["cost"])} for row in rows])
    forms = {
        "gcp.jsonl": "\n".join(texts),
        "gcp.json": "".join(texts),
        "gcp.json.gz": "\n".join(json.dumps(row, indent=4) for row in rows),
        "gcp_array.json": json.dumps(rows, indent=1),
        "gcp.parquet": as_parquet,
    }
    found = []
    for name, content in forms.items():
        path = workspace.deliver(name, content)
        workspace.land(gcp(workspace), "2026-01-01", "2026-02-01")
        found.append(
            workspace.query(
                """select charge_category, charge_class, charge_frequency, charge_description, billed_cost, tags,
                    billing_period_end_at::date::varchar, count(*)
                from {charges} group by all order by all"""
            )
        )
        path.unlink()
    assert sorted((category, cost) for category, _, _, _, cost, *_ in found[0]) == [
        ("Adjustment", Decimal("-0.01")),
        ("Adjustment", Decimal(7)),
        ("Credit", Decimal("-0.05")),
        ("Purchase", Decimal(4)),
        ("Tax", Decimal(3)),
        ("Usage", Decimal("0.1")),
    ]
    for form in found[1:]:
        assert form == found[0]


def test_amounts_keep_every_digit_that_a_binary_fraction_would_lose(workspace):
    text = json.dumps(line(cost="@")).replace('"@"', "12345678901.123456789")
    workspace.deliver("gcp.jsonl", text)
    report = workspace.land(gcp(workspace), "2026-01-05", "2026-01-06")
    assert report.billed == {"USD": Decimal("12345678901.123456789")}


def test_several_currencies_stay_apart(workspace):
    rows = [line(), line(currency="chf", currency_conversion_rate=0.8, cost=8)]
    workspace.deliver("gcp.jsonl", "\n".join(map(json.dumps, rows)))
    report = workspace.land(gcp(workspace), "2026-01-05", "2026-01-06")
    assert report.billed == {"USD": Decimal("10.5"), "CHF": Decimal(8)}


def test_broken_records_are_kept_aside_and_take_no_other_with_them(workspace):
    good = json.dumps(line(cost=1))
    bad = [
        json.dumps(line(cost="twelve")),
        json.dumps(line(cost=None)),
        json.dumps(line(cost_type="gift")),
        json.dumps(line(credits=[{"name": "x", "amount": "-1"}, {"name": "y"}])),
        json.dumps(line(usage_end_time="2026-01-05 07:00:00 UTC")),
        json.dumps(line(invoice={"month": "2026-13"})),
        json.dumps(line(labels=[{"value": "x"}])),
        json.dumps(line(labels=5)),
        good[:-40],
        good.replace('"currency": "USD"', '"currency": "USD'),
        "what is this",
    ]
    text = "\n".join(part for one in bad for part in (one, good)) + "\n" + good[:50]
    workspace.deliver("gcp.jsonl", text)
    report = workspace.land(gcp(workspace), "2026-01-01", "2026-02-01")
    reasons = workspace.quarantined()
    assert report.billed == {"USD": Decimal(len(bad))}
    assert [number for number, _ in reasons] == [*range(1, 2 * len(bad), 2), 2 * len(bad) + 1]
    assert [reason for _, reason in reasons] == [
        "cost is not a number: twelve",
        "cost is missing",
        "cost_type is unknown: gift",
        'a credit has no readable amount: [{"name":"x","amount":"-1"},{"name":"y"}]',
        "ends before it starts",
        "invoice.month is not a month such as 201901: 2026-13",
        'a label without a key: {"value": "x"}',
        "labels are not a list: 5",
        *["not a JSON object: truncated or broken"] * 4,
    ]


def test_records_are_cut_alike_wherever_a_block_ends(tmp_path: Path, monkeypatch):
    rows = [{"a": {"b": [{"c": "}{"}, {"d": "\\"}]}}, {"e": 'x"y'}, {}]
    path = tmp_path / "x.json"
    path.write_text("\n\n".join(json.dumps(row, indent=2) for row in rows))
    for size in (1, 2, 3, 7, 1000):
        monkeypatch.setattr("orchestration.connectors.text.BLOCK_BYTES", size)
        assert [json.loads(record.text) for record in records(path)] == rows
        assert [record.line for record in records(path)] == [1, 14, 18]


def test_a_file_without_line_ends_is_cut_alike_in_memory_that_does_not_grow(tmp_path: Path, monkeypatch):
    rows = [{"n": n, "text": 'a } { " \\ ü', "deep": [{"b": "}" * (n % 9)}]} for n in range(3000)]
    path = tmp_path / "x.json"
    path.write_text("".join(json.dumps(row, ensure_ascii=False) for row in rows))
    for size in (1000, 4096, 65_536):
        monkeypatch.setattr("orchestration.connectors.text.BLOCK_BYTES", size)
        assert [json.loads(record.text) for record in records(path)] == rows
    path.write_text(path.read_text() * 20)
    tracemalloc.start()
    assert sum(record.complete for record in records(path)) == 20 * len(rows)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < path.stat().st_size / 4


def test_hours_that_google_puts_on_the_month_before_survive_the_next_bill(workspace):
    """An invoice month is one of Pacific time: the first hours of February, in UTC, are on January's."""
    hours = {"usage_start_time": "2026-02-01 05:00:00 UTC", "usage_end_time": "2026-02-01 06:00:00 UTC"}
    late = {"usage_start_time": "2026-01-30 05:00:00 UTC", "usage_end_time": "2026-01-30 06:00:00 UTC"}
    january = [line(cost=1), line(cost=2, **hours)]
    february = [line(cost=4, invoice={"month": "202602"}, **(hours | late)), line(cost=8, invoice={"month": "202602"})]
    for name, rows in (("01_20260203", january), ("02_20260303", february), ("01_20260304", january)):
        workspace.deliver(f"gcp_2026-{name}T000000Z.jsonl", "\n".join(map(json.dumps, rows)))
    report = workspace.land(gcp(workspace), "2026-01-01", "2026-03-01")
    assert report.billed == {"USD": Decimal(15)}


def test_a_commitment_of_the_model_of_2025_costs_what_nobody_used_of_it(workspace):
    plan = {"subscription": {"instance_id": "plan-1"}, "consumption_model": {"id": "7754", "description": "Flex"}}
    fee = line(
        cost=10,
        sku={"id": "f", "description": "Commitment - dollar based v1: GCE for 1 year"},
        credits=[{"type": "FEE_UTILIZATION_OFFSET", "id": "x", "full_name": "offset", "amount": -7}],
        **plan,
    )
    workspace.deliver("gcp.jsonl", json.dumps(fee) + "\n" + json.dumps(line(cost=7, new_field=1, **plan)))
    report = workspace.land(gcp(workspace), "2026-01-01", "2026-02-01")
    assert report.billed == {"USD": Decimal(10)}
    assert workspace.query(
        "select distinct charge_category, billed_cost::int, commitment_id from {charges} order by 2"
    ) == [("Credit", -7, "plan-1"), ("Usage", 7, "plan-1"), ("Purchase", 10, "plan-1")]


def test_an_empty_export_is_refused(workspace):
    workspace.deliver("gcp.json", "[]\n")
    with pytest.raises(ApportionError, match="has no record"):
        workspace.land(gcp(workspace), "2026-01-05", "2026-01-06")
