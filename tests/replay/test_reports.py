"""The reports say what the facts say, however often a pool is billed in another currency."""

from __future__ import annotations

from decimal import Decimal

import duckdb

from orchestration.workspace import Workspace

A_ROUNDING = Decimal("0.0001")
"""Hours are rounded to nine decimals per row."""


def test_hours_are_counted_once_though_pools_are_billed_in_two_currencies(demo: Workspace) -> None:
    with duckdb.connect(str(demo.warehouse), read_only=True) as warehouse:

        def one(sql: str) -> Decimal:
            return warehouse.execute(sql).fetchone()[0]

        assert (
            one("select max(n) from (select count(distinct currency) as n from core.fct_pool_hours group by pool_id)")
            == 2
        )
        held = one("select sum(gpu_seconds) from core.fct_job_usage_hourly")
        for report in ("rpt_team_costs_daily", "rpt_team_costs_monthly", "rpt_job_receipts"):
            assert abs(one(f"select sum(gpu_hours) from reporting.{report}") * 3600 - held) < 3600 * A_ROUNDING
        kwh = one("select sum(energy_kwh) from core.fct_job_usage_hourly")
        assert abs(one("select sum(energy_kwh) from reporting.rpt_job_receipts") - kwh) < A_ROUNDING
        capacity = one(
            "select sum(capacity) from (select max(capacity_hours) as capacity from core.fct_pool_hours"
            " where component = 'gpu' group by hour_at, pool_id)"
        )
        shown = one(
            "select sum(capacity_hours) from reporting.rpt_idle_daily where component = 'gpu' and idle_cause = 'down'"
        )
        assert abs(shown - capacity) < A_ROUNDING


def test_the_money_of_every_report_is_the_money_of_the_facts(demo: Workspace) -> None:
    with duckdb.connect(str(demo.warehouse), read_only=True) as warehouse:
        paid = warehouse.execute(
            "select currency, sum(amount) from core.fct_cost_allocations group by currency order by 1"
        ).fetchall()
        for report in ("rpt_team_costs_daily", "rpt_team_costs_monthly"):
            assert (
                warehouse.execute(
                    f"select currency, sum(total_cost) from reporting.{report} group by currency order by 1"
                ).fetchall()
                == paid
            )
