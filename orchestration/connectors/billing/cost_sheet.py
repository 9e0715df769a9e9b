"""Cost sheets: what owned hardware, rooms and people cost, written down by finance in a CSV file.

A sheet has no invoice, so a line stands for itself: it is usage of its own period, billed in the months that
the period touches, and final as soon as it is written.
"""

from __future__ import annotations

from collections.abc import Sequence

from duckdb import DuckDBPyConnection

from orchestration.connectors.base import Delivery, Feed, Reading
from orchestration.connectors.billing.notation import currency, no_object
from orchestration.connectors.sql import (
    NO_COMMITMENT_TERMS,
    day,
    first_reason,
    literal,
    missing,
    money,
    quoted,
    unreadable,
)
from orchestration.connectors.tables import by_name, load_table
from orchestration.settings import CostSheetSource

REQUIRED = ("cost_id", "cost_type", "period_start", "period_end", "amount", "currency")
OPTIONAL = ("description", "resource_id", "pool", "tags")
COST_TYPES = ("depreciation", "colocation", "power", "license", "staff", "other")


def feeds(source: CostSheetSource) -> list[Feed]:
    def read(con: DuckDBPyConnection, deliveries: Sequence[Delivery]) -> Reading:
        columns = (*REQUIRED, *OPTIONAL)
        loaded = load_table(con, "cost_lines", deliveries, columns, by_name(REQUIRED, OPTIONAL, "cost sheet"))
        return Reading(_select(source), loaded.counts, loaded.rejects, found=loaded.found)

    return [Feed("charges", source.path, read)]


def _select(source: CostSheetSource) -> str:
    provider = literal(source.provider or source.name)
    # Spreadsheets save rows that somebody has emptied as nothing but separators.
    is_blank = f"coalesce({', '.join(f'l.{name}' for name in (*REQUIRED, *OPTIONAL))}) is null"
    reason = first_reason(
        (is_blank, "null"),
        missing("l.cost_id", "cost_id"),
        missing("l.amount", "amount"),
        unreadable("l.amount", "billed_cost", "amount", "a number"),
        missing("l.currency", "currency"),
        missing("l.period_start", "period_start"),
        missing("l.period_end", "period_end"),
        unreadable("l.period_start", "first_day", "period_start", "a date"),
        unreadable("l.period_end", "end_day", "period_end", "a date"),
        ("end_day <= first_day", literal("the period is empty or ends before it starts")),
        missing("l.cost_type", "cost_type"),
        (f"l.cost_type not in ({quoted(COST_TYPES)})", "'cost_type is unknown: ' || l.cost_type"),
        (no_object("l.tags"), literal("tags is not a JSON object")),
    )
    return f"""
        select
            l.file,
            l.line,
            {day("l.period_start")} as first_day,
            {day("l.period_end")} as end_day,
            {literal(source.name)} as charge_key,
            {provider} as provider,
            {provider} || '-' || strftime(first_day, '%Y-%m') as invoice_id,
            cast(null as varchar) as billing_account_id,
            cast(null as varchar) as sub_account_id,
            cast(date_trunc('month', first_day) as timestamptz) as billing_period_start_at,
            cast(date_trunc('month', end_day - 1) + interval 1 month as timestamptz) as billing_period_end_at,
            cast(first_day as timestamptz) as charge_start_at,
            cast(end_day as timestamptz) as charge_end_at,
            'Usage' as charge_category,
            cast(null as varchar) as charge_class,
            'Recurring' as charge_frequency,
            l.description as charge_description,
            cast(null as varchar) as service_category,
            l.cost_type as service_name,
            l.pool as sku_id,
            cast(null as varchar) as region_id,
            l.resource_id as resource_id,
            cast(null as varchar) as resource_type,
            cast(null as varchar) as commitment_id,
            cast(null as varchar) as commitment_status,
            {NO_COMMITMENT_TERMS},
            l.tags as tags,
            {currency("l.currency")} as currency,
            {money("l.amount")} as list_cost,
            {money("l.amount")} as billed_cost,
            {money("l.amount")} as effective_cost,
            true as is_final,
            {reason} as bad_reason,
            case when {is_blank} then 'is empty' end as skip_reason
        from cost_lines as l
        join deliveries as d using (file)
    """
