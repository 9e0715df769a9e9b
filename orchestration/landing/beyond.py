"""Digits beyond the ninth: providers bill a tenth of a nano-dollar, and a million such lines are money.

Every line is rounded to nine decimals by itself, so the lines of a bill may add up to something else than the bill. The
difference becomes a line of its own, so that the total is the provider's and nothing is hidden in other lines.
"""

from __future__ import annotations

from duckdb import DuckDBPyConnection

from orchestration.landing.bill_stage import COSTS, rest_of
from orchestration.landing.schemas import CHARGES

LINE = 0
"""The number of a line that is not in the file."""
_SAME = ("provider", "invoice_id", "billing_account_id", "billing_period_start_at", "billing_period_end_at", "currency")


def sum_up(con: DuckDBPyConnection, rows: str) -> None:
    """The temp table `bill_sums`: what the good lines of `rows` add up to, with all their digits and with nine."""
    same = ", ".join(_SAME)
    sums = ", ".join(
        f"sum(coalesce({cost}, billed_cost)) as rounded_{cost},"
        f" rounded_{cost} + sum(coalesce({rest_of(cost)}, {rest_of('billed_cost')})) as {cost}"
        for cost in COSTS
    )
    con.execute(
        f"""
        create or replace temp table bill_sums as
        select file, {same}, any_value(charge_key) as charge_key, bool_and(is_final) as is_final,
            count(*) as line_count, {sums}
        from {rows}
        where bad_reason is null and skip_reason is null
        group by file, {same}
        """
    )


def rounding_lines(con: DuckDBPyConnection) -> str | None:
    """A SELECT of such lines (file, line, content of charges) for what is summed up; None if there is none."""
    same = ", ".join(_SAME)
    # Totals are rounded as they run, so that several invoices of one file still add up to the file.
    rests = ", ".join(
        f"cast(sum({cost}) over upto as decimal(38, 9)) - coalesce(cast(sum({cost}) over before as decimal(38, 9)), 0)"
        f" - rounded_{cost} as {cost}"
        for cost in COSTS
    )
    con.execute(
        f"""
        create or replace temp table rounding_rests as
        select * replace ({rests}) from bill_sums
        window
            upto as (partition by file, currency order by {same} rows unbounded preceding),
            before as (
                partition by file, currency order by {same} rows between unbounded preceding and 1 preceding
            )
        """
    )
    con.execute(f"delete from rounding_rests where {' and '.join(f'{cost} = 0' for cost in COSTS)}")
    if not con.execute("select count(*) from rounding_rests").fetchall()[0][0]:
        return None
    words = {
        "charge_start_at": "billing_period_start_at",
        "charge_end_at": "billing_period_end_at",
        "charge_category": "'Adjustment'",
        "charge_frequency": "'One-Time'",
        "charge_description": "'What ' || line_count || ' lines have beyond nine decimals'",
    }
    known = {*_SAME, *COSTS, "charge_key", "is_final"}
    content = (f"{words.get(name, name if name in known else 'null')} as {name}" for name in CHARGES.content)
    return f"select file, {LINE} as line, {', '.join(content)} from rounding_rests"
