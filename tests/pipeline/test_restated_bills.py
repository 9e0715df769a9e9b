"""A month that is billed anew: the reconciliation shows what it asked for before and what it asks for now.

And a commitment whose use the provider does not price: 744.00 for four machines in March, of which somebody uses one on
one day.
"""

from __future__ import annotations

import shutil
from decimal import Decimal
from pathlib import Path

import duckdb
import pytest

from orchestration.workspace import Workspace
from tests.golden.company import FILES as GOLDEN_FILES
from tests.warehouses import land_and_build, window

SOURCES = """\
sources:
  - {name: cloud, area: billing, kind: focus, path: "{data}/inbox/focus_*.csv"}
  - {name: azure, area: billing, kind: azure_cost, path: "{data}/inbox/azure_*.csv"}
  - {name: pair, area: billing, kind: azure_cost, dataset: pair, path: "{data}/inbox/pair_*.csv"}
  - {name: returned, area: billing, kind: azure_cost, path: "{data}/inbox/returned_*.csv"}
  - {name: committed, area: billing, kind: focus, path: "{data}/inbox/committed_*.csv"}
"""
BILL = (
    "ProviderName,ServiceName,ChargeCategory,BillingCurrency,BilledCost,EffectiveCost,ChargePeriodStart,ChargePeriodEnd,"
    "BillingPeriodStart,BillingPeriodEnd\n"
)
COMMITTED = (
    "ProviderName,ServiceName,ChargeCategory,ChargeFrequency,BillingCurrency,BilledCost,CommitmentDiscountId,"
    "CommitmentDiscountQuantity,CommitmentDiscountStatus,ResourceId,ChargePeriodStart,ChargePeriodEnd,"
    "BillingPeriodStart,BillingPeriodEnd\n"
)
MARCH = "2026-03-01T00:00:00Z,2026-04-01T00:00:00Z"
FEES = (
    "ChargeType,PricingModel,ReservationId,Quantity,Frequency,Term,Cost,Date,BillingCurrencyCode,ResourceId,"
    "MeterCategory\n"
)


def line(cost: str, day: int, category: str = "Usage") -> str:
    charged = f"2026-03-{day:02}T00:00:00Z,2026-03-{day + 1:02}T00:00:00Z"
    return f"Nebula,Virtual Machines,{category},USD,{cost},{cost},{charged},{MARCH}\n"


def pair(billed: str) -> str:
    return FEES + f"Usage,OnDemand,,1,UsageBased,,{billed},03/10/2026,EUR,vm-2,Virtual Machines\n"


class Company:
    def __init__(self, root: Path) -> None:
        self._inbox = root / "data" / "inbox"
        self._inbox.mkdir(parents=True)
        shutil.copytree(GOLDEN_FILES / "seeds", root / "seeds")
        (root / "sources.yml").write_text(SOURCES, encoding="utf-8")
        self._workspace = Workspace(root / "sources.yml", root / "seeds", root / "data")

    def deliver(self, name: str, content: str) -> None:
        (self._inbox / name).write_text(content, encoding="utf-8")

    def run(self, start: str, end: str) -> None:
        land_and_build(self._workspace, window(start, end))

    def query(self, sql: str) -> list[tuple]:
        with duckdb.connect(str(self._workspace.warehouse), read_only=True) as con:
            return con.execute(sql).fetchall()


@pytest.fixture(scope="module")
def company(tmp_path_factory) -> Company:
    made = Company(tmp_path_factory.mktemp("restated"))
    made.deliver(
        "focus_2026-03_20260402T060000Z.csv", BILL + line("100.00", 10) + line("7.00", 11) + line("3.00", 11, "Tax")
    )
    fee = "Purchase,Reservation,R1,4,Recurring,,744.00,03/01/2026,USD,,Virtual Machines\n"
    used = "Usage,Reservation,r1,24,UsageBased,,0,03/10/2026,USD,vm-1,Virtual Machines\n"
    made.deliver("azure_2026-03_20260402T060000Z.csv", FEES + fee + used)
    returned = "Refund,Reservation,R2,-4,Recurring,,-744.00,03/01/2026,USD,,Virtual Machines\n"
    made.deliver("returned_2026-03_20260402T060000Z.csv", FEES + returned)
    for stream in ("actual", "amortized"):
        made.deliver(f"pair_{stream}_2026-03_20260402T060000Z.csv", pair("5.00"))
    tenth = "2026-03-10T00:00:00Z,2026-03-11T00:00:00Z"
    committed = [
        f"Purchase,Recurring,USD,744.00,C1,2976,,,{MARCH},{MARCH}",
        f"Usage,Usage-Based,USD,0,C1,24,Used,vm-9,{tenth},{MARCH}",
        f"Usage,Usage-Based,USD,0,C1,72,Unused,,{tenth},{MARCH}",
        f"Purchase,One-Time,USD,310.00,C2,87600,,,{tenth},{MARCH}",
    ]
    made.deliver(
        "committed_2026-03_20260402T060000Z.csv", COMMITTED + "".join(f"Vega,Machines,{row}\n" for row in committed)
    )
    made.run("2026-03-10", "2026-03-12")
    return made


def test_a_first_delivery_is_provisional_and_has_nothing_before_it(company):
    assert company.query(
        "select billed_cost, delivery_count, previous_billed_cost, delivered_billed_cost, cost_status"
        " from reporting.rpt_reconciliation where provider = 'Nebula'"
    ) == [(Decimal(110), 1, None, Decimal(110), "provisional")]


def test_a_fee_goes_to_what_it_covers_and_the_rest_to_nobody_in_particular(company):
    # 744.00 for the 31 days of March are 24.00 a day for 96 hours of machines, of which 24 are covered on the 10th.
    assert company.query(
        "select usage_date::varchar, pool_id, component, resource_id, sum(effective_cost), sum(billed_cost)"
        " from core.fct_billed_costs where commitment_fee_key is not null and source_name = 'azure'"
        " group by all order by all"
    ) == [
        ("2026-03-10", "commitments", "other", None, Decimal(18), Decimal(0)),
        ("2026-03-10", "unmapped", "other", "vm-1", Decimal(6), Decimal(0)),
        ("2026-03-11", "commitments", "other", None, Decimal(24), Decimal(0)),
    ]
    assert company.query("select max(abs(billed_difference)) from reporting.rpt_reconciliation") == [(Decimal(0),)]


def test_a_fee_that_was_given_back_is_given_back_by_time_too(company):
    # Nothing is left of what was purchased, so nobody can have used it.
    assert company.query(
        "select usage_date::varchar, pool_id, sum(effective_cost) from core.fct_billed_costs"
        " where source_name = 'returned' group by all order by all"
    ) == [("2026-03-10", "commitments", Decimal(-24)), ("2026-03-11", "commitments", Decimal(-24))]


def test_focus_without_effective_cost_shares_out_what_recurs_and_keeps_what_is_paid_once(company):
    assert company.query(
        "select usage_date::varchar, pool_id, resource_id, sum(effective_cost) from core.fct_billed_costs"
        " where source_name = 'committed' group by all having sum(effective_cost) <> 0 order by all"
    ) == [
        ("2026-03-10", "commitments", None, Decimal(18)),
        ("2026-03-10", "unmapped", "vm-9", Decimal(6)),
        ("2026-03-10", "unmapped", None, Decimal(10)),
        ("2026-03-11", "commitments", None, Decimal(24)),
        ("2026-03-11", "unmapped", None, Decimal(10)),
    ]


def test_a_new_delivery_replaces_the_month_and_both_totals_are_shown(company):
    company.deliver("focus_2026-03_20260407T060000Z.csv", BILL + line("90.00", 10) + line("12.00", 11))
    company.deliver("pair_amortized_2026-03_20260407T060000Z.csv", pair("4.00"))
    company.run("2026-03-10", "2026-03-12")
    assert company.query(
        "select billed_cost, delivery_count, previous_billed_cost, delivered_billed_cost, billed_difference,"
        " cost_status from reporting.rpt_reconciliation where provider = 'Nebula'"
    ) == [(Decimal(102), 2, Decimal(110), Decimal(102), Decimal(0), "final")]
    assert company.query(
        "select delivery, version_number, is_replaced, row_count, billed_cost, length(content_hash)"
        " from core.raw_deliveries where source_name = 'cloud' order by delivered_at"
    ) == [
        ("focus_2026-03_20260402T060000Z.csv", 1, True, 3, Decimal(110), 64),
        ("focus_2026-03_20260407T060000Z.csv", 2, False, 2, Decimal(102), 64),
    ]


def test_a_new_amortized_export_leaves_the_actual_one_of_its_pair(company):
    assert company.query(
        "select delivery, version_number, is_replaced, billed_cost, effective_cost"
        " from core.raw_deliveries where source_name = 'pair' order by delivery"
    ) == [
        ("pair_actual_2026-03_20260402T060000Z.csv", 1, False, Decimal(5), Decimal(0)),
        ("pair_amortized_2026-03_20260402T060000Z.csv", 1, True, Decimal(0), Decimal(5)),
        ("pair_amortized_2026-03_20260407T060000Z.csv", 2, False, Decimal(0), Decimal(4)),
    ]
    assert company.query(
        "select billed_cost, delivery_count, previous_billed_cost, delivered_billed_cost, billed_difference"
        " from reporting.rpt_reconciliation where currency = 'EUR'"
    ) == [(Decimal(5), 2, Decimal(5), Decimal(5), Decimal(0))]
