"""FOCUS cost and usage files (1.0 to 1.3; CSV, gzipped or not, and Parquet)."""

from __future__ import annotations

from collections.abc import Sequence

import duckdb
from duckdb import DuckDBPyConnection

from orchestration.connectors.base import Delivery, Feed, Reading
from orchestration.connectors.sql import (
    backwards,
    file_literal,
    first_reason,
    identifier,
    literal,
    missing,
    money,
    unreadable,
    utc,
)
from orchestration.connectors.text import load_csv
from orchestration.errors import ApportionError
from orchestration.settings import FocusSource

REQUIRED = (
    "BilledCost",
    "BillingCurrency",
    "BillingPeriodStart",
    "BillingPeriodEnd",
    "ChargePeriodStart",
    "ChargePeriodEnd",
    "ChargeCategory",
)
OPTIONAL = (
    "ProviderName",
    "ServiceProviderName",  # its name from FOCUS 1.3 on
    "InvoiceId",
    "x_InvoiceId",
    "BillingAccountId",
    "SubAccountId",
    "ChargeClass",
    "ChargeFrequency",
    "ChargeDescription",
    "ServiceCategory",
    "ServiceName",
    "SkuId",
    "RegionId",
    "ResourceId",
    "ResourceType",
    "CommitmentDiscountId",
    "CommitmentDiscountStatus",
    "Tags",
    "ListCost",
    "EffectiveCost",
)
CATEGORIES = ("Usage", "Purchase", "Tax", "Credit", "Adjustment")


def feeds(source: FocusSource) -> list[Feed]:
    def read(con: DuckDBPyConnection, deliveries: Sequence[Delivery]) -> Reading:
        return _read(con, deliveries, source)

    return [Feed("charges", source.path, read)]


def _read(con: DuckDBPyConnection, deliveries: Sequence[Delivery], source: FocusSource) -> Reading:
    text = [(file, d) for file, d in enumerate(deliveries) if d.path.suffix != ".parquet"]
    loaded, found_rejects = load_csv(con, "focus_lines", [d for _, d in text], REQUIRED, OPTIONAL)
    # Ordinals of the text files alone, back to the ordinals of all files.
    files = [file for file, _ in text]
    counts = [0] * len(deliveries)
    for file, count in zip(files, loaded, strict=True):
        counts[file] = count
    rejects = [type(r)(files[r.file], r.line, r.reason, r.raw) for r in found_rejects]
    if files and files != list(range(len(files))):
        cases = " ".join(f"when {place} then {file}" for place, file in enumerate(files))
        con.execute(f"update focus_lines set file = case file {cases} end")
    for file, delivery in enumerate(deliveries):
        if delivery.path.suffix == ".parquet":
            counts[file] = _load_parquet(con, file, delivery)
    return Reading(_select(source), counts, rejects)


def _load_parquet(con: DuckDBPyConnection, file: int, delivery: Delivery) -> int:
    """Appends a Parquet file as text, so that one set of rules judges both forms."""
    scan = f"read_parquet({file_literal(delivery.path)}, file_row_number = true)"
    try:
        types = {name: kind for name, kind, *_ in con.execute(f"describe from {scan}").fetchall()}
    except duckdb.Error as error:
        raise ApportionError(f"{delivery.path}: not a readable Parquet file: {error}", "deliver it again") from error
    absent = [name for name in REQUIRED if name not in types]
    if absent:
        raise ApportionError(
            f"{delivery.path}: missing column {', '.join(absent)}", "deliver the file with these columns"
        )

    def as_text(name: str) -> str:
        if name not in types:
            return "null"
        nested = types[name].startswith(("MAP", "STRUCT"))
        shown = f"to_json({identifier(name)})" if nested else identifier(name)
        return f"nullif(nullif(cast({shown} as varchar), ''), 'NULL')"

    columns = ", ".join(as_text(name) for name in (*REQUIRED, *OPTIONAL))
    con.execute(f"insert into focus_lines select {file}, file_row_number + 1, {columns} from {scan}")
    return con.execute(f"select count(*) from focus_lines where file = {file}").fetchall()[0][0]


def _select(source: FocusSource) -> str:
    reason = first_reason(
        missing("l.BilledCost", "BilledCost"),
        unreadable("l.BilledCost", "billed_cost", "BilledCost", "a number"),
        unreadable("l.ListCost", "list_cost", "ListCost", "a number"),
        unreadable("l.EffectiveCost", "effective_cost", "EffectiveCost", "a number"),
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
        (
            f"l.ChargeCategory not in ({', '.join(literal(c) for c in CATEGORIES)})",
            "'ChargeCategory is unknown: ' || l.ChargeCategory",
        ),
        (
            "l.Tags is not null and (not json_valid(l.Tags) or json_type(l.Tags) <> 'OBJECT')",
            literal("Tags is not a JSON object"),
        ),
    )
    return f"""
        select
            l.file,
            l.line,
            {utc("l.BillingPeriodStart")} as billing_period_start_at,
            {utc("l.BillingPeriodEnd")} as billing_period_end_at,
            {literal(source.name)} as charge_key,
            coalesce(l.ProviderName, l.ServiceProviderName) as provider,
            provider || '-' || strftime(billing_period_start_at, '%Y-%m') as month_of_provider,
            coalesce(l.InvoiceId, l.x_InvoiceId, month_of_provider) as invoice_id,
            l.BillingAccountId as billing_account_id,
            l.SubAccountId as sub_account_id,
            {utc("l.ChargePeriodStart")} as charge_start_at,
            {utc("l.ChargePeriodEnd")} as charge_end_at,
            l.ChargeCategory as charge_category,
            l.ChargeClass as charge_class,
            l.ChargeFrequency as charge_frequency,
            l.ChargeDescription as charge_description,
            l.ServiceCategory as service_category,
            l.ServiceName as service_name,
            l.SkuId as sku_id,
            l.RegionId as region_id,
            l.ResourceId as resource_id,
            l.ResourceType as resource_type,
            l.CommitmentDiscountId as commitment_id,
            l.CommitmentDiscountStatus as commitment_status,
            l.Tags as tags,
            l.BillingCurrency as currency,
            {money("l.ListCost")} as list_cost,
            {money("l.BilledCost")} as billed_cost,
            {money("l.EffectiveCost")} as effective_cost,
            d.delivered_at >= billing_period_end_at + interval {source.final_after_days} day as is_final,
            {reason} as bad_reason,
            cast(null as varchar) as skip_reason
        from focus_lines as l
        join deliveries as d using (file)
    """
