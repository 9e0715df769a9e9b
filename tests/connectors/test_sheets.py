"""What people keep by hand, the node inventory and the cost sheet, in every form in which a table may come."""

from __future__ import annotations

import csv
import io
import zipfile
from decimal import Decimal

import pyarrow as pa
import pytest

NODES = (
    ("cluster", "node", "pool", "gpus", "cores", "memory_gib", "from", "to"),
    [
        ("c", "n1", "p1", "8", "96", "1024", "2026-01-01T00:00:00Z", "2026-01-06T12:00:00Z"),
        ("c", "n1", "p2", "8", "96", "1024", "2026-01-06T12:00:00Z", ""),
        ("c", "n2", "p, 1", "0.5", "0.25", "1.5", "2026-01-01", ""),
    ],
)
COSTS = (
    ("cost_id", "cost_type", "pool", "period_start", "period_end", "amount", "currency", "description", "tags"),
    [
        ("a", "depreciation", "p1", "2026-01-01", "2026-02-01", "31000.10", "CHF", 'racks "A", "B"', '{"team": "nlp"}'),
        ("b", "staff", "", "2026-01-05", "2026-01-06", "-0.123456789", "EUR", "two\nlines", ""),
    ],
)


def text(table: tuple, delimiter: str) -> str:
    out = io.StringIO()
    writer = csv.writer(out, delimiter=delimiter)
    writer.writerow(table[0])
    writer.writerows(table[1])
    return out.getvalue()


def zipped(content: str) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("sheet.csv", content)
    return out.getvalue()


def forms(table: tuple) -> dict[str, str | bytes | pa.Table]:
    return {
        "comma": text(table, ","),
        "semicolon": text(table, ";"),
        "tab.gz": text(table, "\t"),
        "zip": zipped(text(table, ";")),
        "spreadsheet": text(table, "\t").encode("utf-16"),
        "parquet": pa.table(dict(zip(table[0], zip(*table[1], strict=True), strict=True))),
    }


@pytest.mark.parametrize("form", forms(NODES))
def test_an_inventory_says_the_same_in_every_form(workspace, form):
    workspace.deliver(f"nodes_{form}", forms(NODES)[form])
    source = workspace.source(area="inventory", kind="node_inventory", path="{data}/inbox/nodes_*")
    report = workspace.land(source, "2026-01-06", "2026-01-07")
    assert (report.rows, report.quarantined) == (3, 0)
    assert workspace.query(
        "select node_name, pool_id, gpu_units, cpu_millicores, memory_mib, valid_to_at is null"
        " from {node_inventory} order by line"
    ) == [
        ("n1", "p1", 201600, 96000, 1048576, False),
        ("n1", "p2", 201600, 96000, 1048576, True),
        ("n2", "p, 1", 12600, 250, 1536, True),
    ]


@pytest.mark.parametrize("form", forms(COSTS))
def test_a_cost_sheet_says_the_same_in_every_form(workspace, form):
    workspace.deliver(f"costs_{form}", forms(COSTS)[form])
    source = workspace.source(area="billing", kind="cost_sheet", path="{data}/inbox/costs_*")
    report = workspace.land(source, "2026-01-05", "2026-01-06")
    assert (report.rows, report.quarantined) == (2, 0)
    assert workspace.query(
        "select service_name, sku_id, billed_cost, currency, charge_description, tags,"
        " date_diff('day', charge_start_at, charge_end_at), provider from {charges} order by service_name"
    ) == [
        ("depreciation", "p1", Decimal("31000.100000000"), "CHF", 'racks "A", "B"', '{"team": "nlp"}', 31, "src"),
        ("staff", None, Decimal("-0.123456789"), "EUR", "two\nlines", None, 1, "src"),
    ]
