"""FOCUS cost and usage files: 1.0 to 1.3 and the drafts before them, as text or Parquet, packed or not."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pyarrow as pa
from duckdb import DuckDBPyConnection

from orchestration.connectors.base import Delivery, Feed, Reading
from orchestration.connectors.billing.focus_columns import COLUMNS, understood_for
from orchestration.connectors.billing.notation import (
    any_of,
    currency,
    is_dressed,
    is_slashed,
    month_first,
    no_object,
    refuse_day_first,
    undressed_money,
    with_doubts,
    without_zone,
)
from orchestration.connectors.sql import (
    backwards,
    first_reason,
    literal,
    map_distinct,
    missing,
    money,
    unreadable,
    utc,
)
from orchestration.connectors.tables import Layout, load_table
from orchestration.settings import FocusSource

CATEGORIES = ("Usage", "Purchase", "Tax", "Credit", "Adjustment")
TIMES = ("ChargePeriodStart", "ChargePeriodEnd", "BillingPeriodStart", "BillingPeriodEnd")
AMOUNTS = ("BilledCost", "ListCost", "EffectiveCost")


def feeds(source: FocusSource) -> list[Feed]:
    def read(con: DuckDBPyConnection, deliveries: Sequence[Delivery]) -> Reading:
        return _read(con, deliveries, source)

    return [Feed("charges", source.path, read, restates=source.replaces == "billing_period")]


def _read(con: DuckDBPyConnection, deliveries: Sequence[Delivery], source: FocusSource) -> Reading:
    loaded = load_table(con, "focus_cells", deliveries, COLUMNS, understood_for(source))
    _fill_in(con, loaded.layouts, BillingCurrency=source.currency, ProviderName=source.provider)
    refuse_day_first(con, "focus_lines", TIMES, deliveries)
    map_distinct(
        con,
        "focus_tags",
        "select distinct Tags from focus_lines where ltrim(Tags) like '[%'",
        [("object", pa.string())],
        lambda text: [_object(text)],
    )
    odd = {
        "times without a zone, taken as UTC": without_zone(TIMES, loaded.found),
        "dates such as 4/1/25, taken as month/day/year": any_of(is_slashed, TIMES),
        "commitments paid once without an EffectiveCost: their fee counts in its billing period": _paid_once(),
        "amounts such as $1,000.00, taken without the signs": any_of(is_dressed, AMOUNTS),
    }
    found = with_doubts(con, "focus_lines", loaded.found, odd)
    return Reading(_select(source), loaded.counts, loaded.rejects, found=found)


def _fill_in(con: DuckDBPyConnection, layouts: Sequence[Layout], **settings: str | None) -> None:
    """What the settings say for files that do not have a column; an empty cell of one that has it stays empty."""
    filled = []
    for column, value in settings.items():
        lacks = [column not in layout.places for layout in layouts]
        if value is not None and any(lacks):
            filled.append(f"case when {lacks}[file + 1] then {literal(value)} else {column} end as {column}")
    replaced = f" replace ({', '.join(filled)})" if filled else ""
    con.execute(f"create or replace temp view focus_lines as select *{replaced} from focus_cells")


def _paid_once() -> str:
    return (
        "EffectiveCost is null and lower(ChargeCategory) = 'purchase' and ChargeFrequency = 'One-Time'"
        " and CommitmentDiscountId is not null"
    )


def _object(text: str) -> str:
    """A list of tags, as pairs `{"key": …, "value": …}` or as small objects, as the object it should be."""
    merged: dict[str, object] = {}
    try:
        for tag in json.loads(text):
            merged |= {tag["key"]: tag.get("value")} if "key" in tag else tag
    except (ValueError, TypeError, AttributeError) as error:
        raise ValueError("is not a JSON object") from error
    return json.dumps(merged, ensure_ascii=False)


def _time(column: str) -> str:
    return f"coalesce(cast({month_first(column)} as timestamptz), {utc(column)})"


def _category() -> str:
    """Of a draft, what 1.0 would call it: there, credits are a kind of adjustment."""
    cases = " ".join(f"when {literal(name.lower())} then {literal(name)}" for name in CATEGORIES)
    return f"""case
        when l.ChargeCategory = 'Adjustment' and l.ChargeSubcategory = 'Credit' then 'Credit'
        else case lower(l.ChargeCategory) {cases} end
    end"""


def _select(source: FocusSource) -> str:
    reason = first_reason(
        missing("l.BilledCost", "BilledCost"),
        unreadable("l.BilledCost", "billed_cost", "BilledCost", "a number"),
        unreadable("l.ListCost", "list_cost", "ListCost", "a number"),
        unreadable("l.EffectiveCost", "effective_cost", "EffectiveCost", "a number"),
        unreadable(
            "l.CommitmentDiscountQuantity",
            money("l.CommitmentDiscountQuantity"),
            "CommitmentDiscountQuantity",
            "a number",
        ),
        missing("l.BillingCurrency", "BillingCurrency"),
        missing("provider", "ProviderName"),
        missing("l.ChargePeriodStart", "ChargePeriodStart"),
        missing("l.ChargePeriodEnd", "ChargePeriodEnd"),
        missing("l.BillingPeriodStart", "BillingPeriodStart"),
        missing("l.BillingPeriodEnd", "BillingPeriodEnd"),
        unreadable("l.ChargePeriodStart", "charge_start_at", "ChargePeriodStart", "a time"),
        unreadable("l.ChargePeriodEnd", "charge_end_at", "ChargePeriodEnd", "a time"),
        unreadable("l.BillingPeriodStart", "billing_period_start_at", "BillingPeriodStart", "a time"),
        unreadable("l.BillingPeriodEnd", "billing_period_end_at", "BillingPeriodEnd", "a time"),
        backwards("charge_start_at", "charge_end_at"),
        ("billing_period_end_at <= billing_period_start_at", literal("the billing period is empty")),
        missing("l.ChargeCategory", "ChargeCategory"),
        ("charge_category is null", "'ChargeCategory is unknown: ' || l.ChargeCategory"),
        (f"t.reason is not null or {no_object('all_tags')}", literal("Tags is not a JSON object")),
    )
    return f"""
        select
            l.file,
            l.line,
            {_time("l.BillingPeriodStart")} as billing_period_start_at,
            {_time("l.BillingPeriodEnd")} as billing_period_end_at,
            {literal(source.name)} as charge_key,
            coalesce(l.ProviderName, l.ServiceProviderName) as provider,
            provider || '-' || strftime(billing_period_start_at, '%Y-%m') as month_of_provider,
            coalesce(l.InvoiceId, l.x_InvoiceId, month_of_provider) as invoice_id,
            l.BillingAccountId as billing_account_id,
            l.SubAccountId as sub_account_id,
            {_time("l.ChargePeriodStart")} as charge_start_at,
            {_time("l.ChargePeriodEnd")} as charge_end_at,
            {_category()} as charge_category,
            coalesce(l.ChargeClass, case when l.ChargeSubcategory = 'Refund' then 'Correction' end) as charge_class,
            l.ChargeFrequency as charge_frequency,
            l.ChargeDescription as charge_description,
            l.ServiceCategory as service_category,
            l.ServiceName as service_name,
            l.SkuId as sku_id,
            l.RegionId as region_id,
            l.ResourceId as resource_id,
            l.ResourceType as resource_type,
            l.CommitmentDiscountId as commitment_id,
            coalesce(
                l.CommitmentDiscountStatus,
                case l.ChargeSubcategory when 'Used Commitment' then 'Used' when 'Unused Commitment' then 'Unused' end
            ) as commitment_status,
            -- For lines without an effective cost. What is paid once is for a term that no column tells.
            {money("l.CommitmentDiscountQuantity")} as committed,
            case
                when charge_category <> 'Purchase' or l.ChargeFrequency = 'Recurring'
                    then cast(committed as decimal(38, 9))
            end as commitment_quantity,
            cast(null as timestamptz) as commitment_start_at,
            cast(null as timestamptz) as commitment_end_at,
            coalesce(t.object, l.Tags) as all_tags,
            all_tags as tags,
            {currency("l.BillingCurrency")} as currency,
            {undressed_money("l.ListCost")} as list_cost,
            {undressed_money("l.BilledCost")} as billed_cost,
            {undressed_money("l.EffectiveCost")} as effective_cost,
            d.delivered_at >= billing_period_end_at + interval {source.final_after_days} day as is_final,
            {reason} as bad_reason,
            cast(null as varchar) as skip_reason
        from focus_lines as l
        join deliveries as d using (file)
        left join focus_tags as t on t.text = l.Tags
    """
