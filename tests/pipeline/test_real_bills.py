"""Public bills through the whole pipeline: what their owners paid comes out at the other end, to the last digit.

Totals are worked out again here with Python's own readers. Every bill is read as a company that has adopted nothing yet
would read it: no cost rule matches, so each cent stays visible in the pool `unmapped`.
"""

from __future__ import annotations

import csv
import gzip
import json
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path

import duckdb
import pyarrow.parquet as pq
import pytest

from orchestration.workspace import Workspace
from tests.golden.company import FILES as GOLDEN_FILES
from tests.warehouses import land_and_build, window

SHARED = Path(__file__).parents[3] / "shared" / "data"
CUR = SHARED / "aws_cur" / "Nov2018-WorkshopCUR-00001.snappy.parquet"
HIVE = SHARED / "aws_cur" / "BeforeCUR.gz"
FOCUS = SHARED / "focus" / "focus_sample.csv"
AZURE = {kind: SHARED / "azure" / f"EA_{kind}Cost_Small.csv" for kind in ("Actual", "Amortized")}
GCP = sorted((SHARED / "gcp_cud").glob("test_*"))

pytestmark = pytest.mark.skipif(not SHARED.is_dir(), reason="the folder of real samples (../shared/data) is not here")


def source(name: str, kind: str, path: Path) -> str:
    return f"  - {{name: {name}, area: billing, kind: {kind}, path: {json.dumps(str(path))}}}\n"


@pytest.fixture(scope="module")
def books(tmp_path_factory) -> duckdb.DuckDBPyConnection:
    """One company with all of these bills, and the days that they charge."""
    root = tmp_path_factory.mktemp("real_bills")
    shutil.copytree(GOLDEN_FILES / "seeds", root / "seeds")
    google = "".join(source(case.name, "gcp_export", case / "export.json") for case in GCP)
    azure = "".join(source(f"azure_{kind.lower()}", "azure_cost", path) for kind, path in AZURE.items())
    for start, end, sources in [
        ("2018-11-01", "2018-12-01", source("aws", "aws_cur", CUR)),
        (*hive_month(), source("hive", "aws_cur", HIVE)),
        ("2019-01-21", "2019-01-22", google),
        ("2019-07-21", "2019-07-22", google),
        # A monthly fee of 21 September is for the month that begins then.
        ("2023-09-01", "2023-10-21", azure),
        ("2024-09-01", "2024-11-01", source("focus", "focus", FOCUS)),
    ]:
        (root / "sources.yml").write_text("sources:\n" + sources, encoding="utf-8")
        workspace = Workspace(root / "sources.yml", root / "seeds", root / "data")
        land_and_build(workspace, window(start, end))
    return duckdb.connect(str(workspace.warehouse), read_only=True)


def totals(books: duckdb.DuckDBPyConnection, name: str) -> tuple[Decimal, Decimal]:
    """Billed and effective cost of a source, of which every invoice must tie."""
    ((differences,),) = books.execute(
        """
        select sum(abs(billed_difference)) + sum(abs(allocated_difference)) from reporting.rpt_reconciliation
        where invoice_id in (select invoice_id from core.fct_billed_costs where source_name = ?)
        """,
        [name],
    ).fetchall()
    assert differences == 0
    ((billed, effective),) = books.execute(
        "select sum(billed_cost), sum(effective_cost) from core.fct_billed_costs where source_name = ?", [name]
    ).fetchall()
    return billed, effective


def exact(amounts: Iterable[object]) -> Decimal:
    """The sum of amounts with all their digits, to nine decimals."""
    total = sum((Decimal(str(amount)) for amount in amounts), Decimal(0))
    return total.quantize(Decimal("1e-9"), ROUND_HALF_UP)


# --- AWS ---------------------------------------------------------------------------------------------------

UNUSED = ("reservation_unused_recurring_fee", "reservation_unused_amortized_upfront_fee_for_billing_period")


def november() -> list[dict]:
    names = ["line_item_unblended_cost", "line_item_line_item_type", "reservation_effective_cost", *UNUSED]
    return pq.read_table(CUR, columns=names).to_pylist()


def effective_cost(row: dict) -> list[object]:
    kind = row["line_item_line_item_type"]
    if kind == "DiscountedUsage":
        return [row["reservation_effective_cost"]]
    return [row[name] or 0 for name in UNUSED] if kind == "RIFee" else [row["line_item_unblended_cost"]]


def test_the_november_of_aws_ties_billed_and_effective(books):
    rows = november()
    billed = exact(row["line_item_unblended_cost"] for row in rows)
    assert round(billed, 4) == Decimal("3505.3270")
    assert totals(books, "aws") == (billed, exact(cost for row in rows for cost in effective_cost(row)))


def test_used_and_unused_reservations_of_aws_add_up_to_their_fee(books):
    found = dict(
        books.execute(
            "select charge_category, sum(billed_cost) from core.fct_billed_costs where source_name = 'aws' group by 1"
        ).fetchall()
    )
    assert found["Purchase"] == Decimal("147.384")
    recurring = pq.read_table(CUR, columns=["reservation_recurring_fee_for_usage", UNUSED[0]])
    used, unused = (exact(value or 0 for value in recurring.column(place).to_pylist()) for place in (0, 1))
    assert (round(used, 3), unused) == (Decimal("125.784"), Decimal("21.6"))
    # What nobody used, of the hours and of what was paid ahead in other months, is in no pool's rate.
    ahead = exact(row[UNUSED[1]] or 0 for row in november())
    assert books.execute(
        "select pool_id, component, sum(effective_cost) from core.fct_billed_costs"
        " where source_name = 'aws' and charge_category = 'Purchase' and effective_cost <> 0 group by all"
    ).fetchall() == [("commitments", "other", unused + ahead)]


def hive_rows() -> list[dict[str, str]]:
    with gzip.open(HIVE, "rt", encoding="utf-8", newline="\n") as lines:
        header, *rows = (line.rstrip("\n").split("\x01") for line in lines)
    return [dict(zip(header, row, strict=True)) for row in rows]


def hive_month() -> tuple[str, str]:
    ((start, end),) = {(r["bill_billing_period_start_date"], r["bill_billing_period_end_date"]) for r in hive_rows()}
    return start[:10], end[:10]


def test_the_hive_text_of_aws_ties(books):
    assert totals(books, "hive")[0] == exact(row["line_item_unblended_cost"] for row in hive_rows())


# --- FOCUS and Azure ---------------------------------------------------------------------------------------


def csv_rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8-sig", newline="") as lines:
        return list(csv.DictReader(lines))


def test_the_focus_sample_ties(books):
    rows = csv_rows(FOCUS)
    billed, effective = (exact(row[name] for row in rows) for name in ("BilledCost", "EffectiveCost"))
    assert billed == exact(["20.52022672899"])
    assert totals(books, "focus") == (billed, effective)


@pytest.mark.parametrize("kind", AZURE)
def test_each_azure_export_ties(books, kind):
    rows = csv_rows(AZURE[kind])
    cost = next(name for name in rows[0] if name.lower() in ("costinbillingcurrency", "cost"))
    total = exact(row[cost] for row in rows)
    assert totals(books, f"azure_{kind.lower()}") == (total, total)


# --- Google ------------------------------------------------------------------------------------------------


def gcp_records(path: Path) -> Iterator[dict]:
    text, place, decode = path.read_text(encoding="utf-8"), 0, json.JSONDecoder().raw_decode
    while place < len(text):
        if text[place] in " \n\t\r,[]":
            place += 1
        else:
            record, place = decode(text, place)
            yield record


@pytest.mark.parametrize("case", GCP, ids=lambda case: case.name)
def test_attributing_the_commitments_of_google_moves_cost_without_changing_it(books, case):
    records = list(gcp_records(case / "export.json"))
    costs = Counter({"cost": exact(record["cost"] for record in records)})
    costs["credits"] = exact(credit["amount"] for record in records for credit in record.get("credits") or [])
    found = books.execute(
        "select sum(billed_cost) filter (charge_category <> 'Credit'),"
        " sum(billed_cost) filter (charge_category = 'Credit')"
        " from core.fct_billed_costs where source_name = ?",
        [case.name],
    ).fetchall()
    assert found == [(costs["cost"], costs["credits"])]
    assert totals(books, case.name) == (costs.total(), costs.total())
