"""Azure Cost Management exports: actual and amortized cost, of enterprise and customer agreements.

The two exports tell the same usage twice. Only the actual one has purchases of reservations and savings plans, and in
it what they cover costs nothing; the amortized one has no purchase, a part of it on every covered line, and lines for
what nobody used.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from fnmatch import fnmatchcase

from duckdb import DuckDBPyConnection

from orchestration.connectors.base import Delivery, Feed, Found, Reading
from orchestration.connectors.billing.azure_columns import SPELLINGS, understand
from orchestration.connectors.billing.notation import (
    any_of,
    currency,
    is_slashed,
    month_first,
    no_object,
    refuse_day_first,
    with_doubts,
)
from orchestration.connectors.sql import (
    first_reason,
    literal,
    missing,
    money,
    quoted,
    unreadable,
)
from orchestration.connectors.tables import load_table
from orchestration.errors import ApportionError
from orchestration.settings import AzureSource

CATEGORIES = {
    "usage": "Usage",
    "unusedreservation": "Usage",
    "unusedsavingsplan": "Usage",
    "purchase": "Purchase",
    "refund": "Purchase",
    "tax": "Tax",
    "credit": "Credit",
    "adjustment": "Adjustment",
    "roundingadjustment": "Adjustment",
}
FREQUENCIES = {"onetime": "One-Time", "recurring": "Recurring", "usagebased": "Usage-Based"}
COMMITMENTS = ("reservation", "savingsplan")
PROVIDER = "Microsoft"
DATES = ("date", "period_start", "period_end")
LARGEST_MANIFEST = 1 << 20
LONGEST_TERM = 120
"""Months; longer ones are numbers of something else."""


def feeds(source: AzureSource) -> list[Feed]:
    def read(con: DuckDBPyConnection, deliveries: Sequence[Delivery]) -> Reading:
        return _read(con, deliveries, source)

    def stream(delivery: Delivery) -> str:
        return _named(delivery, source)

    streams = stream if source.dataset == "pair" else None
    return [Feed("charges", source.path, read, streams, restates=source.replaces == "billing_period")]


def _named(delivery: Delivery, source: AzureSource) -> str:
    """What a file of a pair is, by its name: its lines need not show it, and landing asks before they are read."""
    return "amortized" if fnmatchcase(delivery.name.lower(), source.amortized_files.lower()) else "actual"


def _read(con: DuckDBPyConnection, deliveries: Sequence[Delivery], source: AzureSource) -> Reading:
    bills = {file: delivery for file, delivery in enumerate(deliveries) if not _is_manifest(delivery)}
    loaded = load_table(con, "azure_cells", list(bills.values()), tuple(SPELLINGS), understand)
    has_type = ["charge_type" in layout.places for layout in loaded.layouts]
    con.execute(
        f"""
        create or replace temp view azure_lines as select * replace (
            -- Numbered as they were given to us, manifests included.
            {list(bills)}[file + 1] as file,
            -- Before 2019 there was nothing but usage, and no column to say so.
            case when {has_type}[file + 1] then charge_type else 'Usage' end as charge_type
        ) from azure_cells
        """
    )
    counts, found = [0] * len(deliveries), [Found("manifest of an Azure export, no bill")] * len(deliveries)
    for place, file in enumerate(bills):
        counts[file], found[file] = loaded.counts[place], loaded.found[place]
    rejects = [replace(reject, file=list(bills)[reject.file]) for reject in loaded.rejects]
    unproven = refuse_day_first(con, "azure_lines", DATES, deliveries)
    datasets = _datasets(con, bills, source)
    for file, dataset in datasets.items():
        found[file] = replace(found[file], variant=f"{found[file].variant}, {dataset} cost")
    may_be_days = f"({any_of(is_slashed, DATES)}) and file in ({', '.join(map(str, unproven)) or '-1'})"
    odd = {"only dates such as 01/05/2026, taken as month/day/year": may_be_days}
    if source.dataset != "pair":
        odd["reservations paid once for a Term that is not said: their fee counts in its billing period"] = _paid_once(
            bills, datasets
        )
    notes = {"manifests of exports, skipped": len(deliveries) - len(bills)} if len(bills) < len(deliveries) else {}
    return Reading(
        _select(source, datasets), counts, rejects, found=with_doubts(con, "azure_lines", found, odd), notes=notes
    )


def _is_manifest(delivery: Delivery) -> bool:
    """Whether a file is what Azure puts next to the parts of an export, to tell which parts there are."""
    if delivery.size > LARGEST_MANIFEST:
        return False
    try:
        content = json.loads(delivery.path.read_bytes())
    except ValueError:
        return False
    return isinstance(content, dict) and bool({"manifestVersion", "blobs"} & content.keys())


def _plain(column: str) -> str:
    return f"lower(replace(replace({column}, ' ', ''), '_', ''))"


def _datasets(con: DuckDBPyConnection, bills: dict[int, Delivery], source: AzureSource) -> dict[int, str]:
    """What each file is: as set, or as its lines about commitments show, or as it is called, or else actual."""
    committed = f"{_plain('pricing_model')} in ({quoted(COMMITMENTS)})"
    kind = _plain("charge_type")
    shown = {
        file: (amortized, actual)
        for file, amortized, actual in con.execute(
            f"""
            select file,
                count(*) filter ({kind} like 'unused%' or ({kind} = 'usage' and {committed} and {money("cost")} <> 0)),
                count(*) filter ({kind} = 'purchase' and {committed})
            from azure_lines group by file
            """
        ).fetchall()
    }
    found: dict[int, str] = {}
    for file, delivery in bills.items():
        amortized, actual = shown.get(file, (0, 0))
        content = None  # also where both kinds of line are there: then names and settings decide
        if bool(amortized) != bool(actual):
            content = "amortized" if amortized else "actual"
        if source.dataset == "auto":
            wanted = content or _named(delivery, source)
        else:
            wanted = _named(delivery, source) if source.dataset == "pair" else source.dataset
        if content and content != wanted:
            raise ApportionError(
                f"{delivery.path}: its lines about reservations and savings plans are those of an {content} cost"
                f" export, but source '{source.name}' takes it for {wanted}",
                "correct 'dataset' or 'amortized_files' of the source, or move the file",
            )
        found[file] = wanted
    if source.dataset == "auto" and len(set(found.values())) > 1:
        other = {kind: bills[file].path for file, kind in reversed(found.items())}
        raise ApportionError(
            f"source '{source.name}' has both actual cost ({other['actual']}) and amortized cost"
            f" ({other['amortized']}): the same usage would count twice",
            "set 'dataset: pair' to join them, or narrow the path to one of them",
        )
    return found


def _date(column: str) -> str:
    """A day as 09/21/2023 or as ISO, with or without a time of day."""
    value = f"cast(coalesce({month_first(column)}, try_cast(try_cast({column} as timestamptz) as timestamp)) as date)"
    return f"(case when {value} >= date '1970-01-01' and {value} < date '9999-01-01' then {value} end)"


def _mapped(column: str, mapping: dict[str, str]) -> str:
    cases = " ".join(f"when {literal(key)} then {literal(value)}" for key, value in mapping.items())
    return f"case {_plain(column)} {cases} end"


def _months(column: str) -> str:
    """A term in months: 12, 36 months, 3 years, P1Y; null where it is nothing that anybody sells."""
    number = f"try_cast(regexp_extract({column}, '[0-9]+') as int)"
    months = f"{number} * case when regexp_full_match(upper(trim({column})), 'P?[0-9]+ *Y(EARS?)?') then 12 else 1 end"
    known = f"regexp_full_match(upper(trim({column})), 'P?[0-9]+ *(Y(EARS?)?|M(ONTHS?)?)?')"
    return f"(case when {known} and {number} between 1 and {LONGEST_TERM} then {months} end)"


def _paid_once(bills: dict[int, Delivery], datasets: dict[int, str]) -> str:
    """Reservations whose fee stays in its month: nothing says for how long it is."""
    files = ", ".join(str(file) for file in bills if datasets[file] == "actual") or "-1"
    return (
        f"file in ({files}) and {_plain('charge_type')} = 'purchase' and {_plain('pricing_model')} = 'reservation'"
        f" and {_plain('frequency')} <> 'recurring' and {_months('term')} is null"
    )


def _amount(column: str) -> str:
    return f"try_cast({column} as decimal(18, 9))"


def _select(source: AzureSource, datasets: dict[int, str]) -> str:
    is_amortized = "l.file in ({})".format(
        ", ".join(str(file) for file, dataset in datasets.items() if dataset == "amortized") or "-1"
    )
    if source.dataset == "pair":
        # Zero and not null: the other file has this cost, and nothing may stand in for it.
        billed, effective = (
            f"case when {'' if origin == 'amortized' else 'not '}{is_amortized} then {money('l.cost')}"
            f" else case when {money('l.cost')} is not null then 0 end end"
            for origin in (source.billed_from, source.effective_from)
        )
    else:
        billed = money("l.cost")
        effective = f"case when {is_amortized} then {money('l.cost')} end"
    tags = "(case when ltrim(l.tags) like '{%' then l.tags else '{' || l.tags || '}' end)"
    reason = first_reason(
        missing("l.cost", "the cost"),
        unreadable("l.cost", "billed_cost", "the cost", "a number"),
        missing("l.currency", "the billing currency"),
        missing("l.date", "Date"),
        unreadable("l.date", "day", "Date", "a date (month/day/year or ISO)"),
        unreadable("l.period_start", "period_day", "BillingPeriodStartDate", "a date"),
        unreadable("l.period_end", "period_last", "BillingPeriodEndDate", "a date"),
        ("billing_period_end_at <= billing_period_start_at", literal("the billing period is empty")),
        missing("l.charge_type", "ChargeType"),
        ("charge_category is null", "'ChargeType is unknown: ' || l.charge_type"),
        (no_object(tags), literal("Tags is not a JSON object, with or without braces")),
    )
    own_currency = "coalesce(l.pricing_currency, l.currency) = l.currency"
    price = f"coalesce(nullif({_amount('l.payg_price')}, 0), {_amount('l.unit_price')})"
    return f"""
        select
            l.file,
            l.line,
            {_date("l.date")} as day,
            {_date("l.period_start")} as period_day,
            {_date("l.period_end")} as period_last,
            {literal(source.name)} as charge_key,
            {literal(PROVIDER)} as provider,
            cast(coalesce(period_day, date_trunc('month', day)) as timestamptz) as billing_period_start_at,
            -- The last day is part of the period.
            cast(coalesce(
                period_last + 1, date_trunc('month', coalesce(period_day, day)) + interval 1 month
            ) as timestamptz) as billing_period_end_at,
            coalesce(
                l.invoice, {literal(PROVIDER + "-")} || strftime(billing_period_start_at, '%Y-%m')
            ) as invoice_id,
            l.account as billing_account_id,
            l.subscription as sub_account_id,
            cast(day as timestamptz) as charge_start_at,
            cast(day + 1 as timestamptz) as charge_end_at,
            {_mapped("l.charge_type", CATEGORIES)} as charge_category,
            case when {_plain("l.charge_type")} = 'refund' then 'Correction' end as charge_class,
            {_mapped("l.frequency", FREQUENCIES)} as charge_frequency,
            coalesce(l.product, l.meter_name) as charge_description,
            l.family as service_category,
            coalesce(l.service, l.consumed) as service_name,
            l.meter_id as sku_id,
            lower(l.location) as region_id,
            -- The same resource is spelled in several ways from day to day; Azure does not tell cases apart.
            lower(l.resource) as resource_id,
            l.consumed as resource_type,
            lower(coalesce(l.benefit, l.reservation)) as commitment_id,
            case
                when {_plain("l.charge_type")} like 'unused%' then 'Unused'
                when charge_category = 'Usage' and {_plain("l.pricing_model")} in ({quoted(COMMITMENTS)}) then 'Used'
            end as commitment_status,
            -- Needed where there is no amortized export: what a fee reserves over its term, and what use it covers.
            {_plain("l.pricing_model")} = 'reservation' as is_reserved,
            is_reserved and charge_category = 'Purchase' as is_fee,
            case when charge_frequency = 'Recurring' then 1 else {_months("l.term")} end as months,
            case when is_fee then cast(day as timestamptz) end as commitment_start_at,
            case when is_fee then cast(cast(day + to_months(cast(months as int)) as date) as timestamptz) end
                as commitment_end_at,
            case
                when is_reserved and commitment_status = 'Used' then {_amount("l.quantity")}
                when is_fee then {_amount("l.quantity")} * date_diff('hour', commitment_start_at, commitment_end_at)
            end as commitment_quantity,
            {tags} as tags,
            {currency("l.currency")} as currency,
            cast(case
                when charge_category <> 'Usage' or commitment_status = 'Unused' then null
                when l.payg_cost is not null then {money("l.payg_cost")}
                when {own_currency} then round({_amount("l.quantity")} * {price}, 9)
            end as decimal(38, 18)) as list_cost,
            {billed} as billed_cost,
            {effective} as effective_cost,
            d.delivered_at >= billing_period_end_at + interval {source.final_after_days} day as is_final,
            {reason} as bad_reason,
            cast(null as varchar) as skip_reason
        from azure_lines as l
        join deliveries as d using (file)
    """
