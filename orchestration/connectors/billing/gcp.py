"""Google Cloud billing exports, standard and detailed, as files: JSON objects in any arrangement, or Parquet.

A line carries its credits (discounts for commitments, sustained use, promotions) inside. Each becomes a charge of its
own with its negative amount, so that costs, credits and their sum can be compared with the invoice.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial

import duckdb
import pyarrow as pa
from duckdb import DuckDBPyConnection

from orchestration.connectors.base import Delivery, Feed, Found, Reading, Reject
from orchestration.connectors.billing import gcp_commitments as commitments
from orchestration.connectors.billing.bigquery import pull
from orchestration.connectors.billing.json_records import records
from orchestration.connectors.billing.notation import currency, with_doubts, without_zone
from orchestration.connectors.sql import (
    backwards,
    file_literal,
    first_reason,
    literal,
    map_distinct,
    missing,
    money,
    quoted,
    unreadable,
    utc,
)
from orchestration.connectors.tables import PACKED, is_parquet, unreadable_parquet
from orchestration.connectors.text import packing
from orchestration.errors import ApportionError
from orchestration.settings import GcpSource

PROVIDER = "Google Cloud"
FLUSH_RECORDS = 20_000
TEXTS = {
    # Nested as Google exports it, or flat as queries over it often save it.
    "account": ("$.billing_account_id",),
    "invoice_month": ("$.invoice.month", "$.invoice_month"),
    "project": ("$.project.id", "$.project_id"),
    "service": ("$.service.description", "$.service_description"),
    "sku": ("$.sku.id", "$.sku_id"),
    "sku_name": ("$.sku.description", "$.sku_description"),
    "started": ("$.usage_start_time",),
    "ended": ("$.usage_end_time",),
    "region": ("$.location.region", "$.location_region", "$.location.location", "$.location_location"),
    "global_name": ("$.resource.global_name", "$.resource_global_name"),
    "plain_name": ("$.resource.name", "$.resource_name"),
    "subscription": ("$.subscription.instance_id", "$.subscription_instance_id"),
    "pricing_amount": ("$.usage.amount_in_pricing_units", "$.usage_amount_in_pricing_units"),
    "usage_amount": ("$.usage.amount", "$.usage_amount"),
    "cost": ("$.cost",),
    "list": ("$.cost_at_list",),
    "currency": ("$.currency",),
    "cost_type": ("$.cost_type",),
    "correction": ("$.adjustment_info.id", "$.adjustment_info_id"),
    "correction_why": ("$.adjustment_info.description", "$.adjustment_info_description"),
}
RECORDS = ("service", "sku", "project", "location", "usage", "invoice", "adjustment_info", "resource", "price")
RECORDS += ("subscription", "consumption_model")
FIELDS = {
    *RECORDS,
    *("billing_account_id", "usage_start_time", "usage_end_time", "labels", "system_labels", "tags", "export_time"),
    *("cost", "cost_at_list", "cost_at_effective_price_default", "cost_at_list_consumption_model", "cost_type"),
    *("currency", "currency_conversion_rate", "credits", "transaction_type", "seller_name"),
}
FLAT = tuple(f"{name}_" for name in RECORDS)
LOOKED_AT = 1000
COMMITMENT_CREDITS = ("COMMITTED_USAGE_DISCOUNT", "COMMITTED_USAGE_DISCOUNT_DOLLAR_BASE", "FEE_UTILIZATION_OFFSET")
"""Credits for what a commitment covers: on the usage, or since 2025 on the fee that the usage uses up."""
LABELS = ("$.labels", "$.tags", "$.system_labels", "$.project.labels", "$.project_labels")
CATEGORIES = {"regular": "Usage", "tax": "Tax", "adjustment": "Adjustment", "rounding_error": "Adjustment"}
COMMITMENT_FEE = "(^|[^a-z])commitment( v[0-9]+)?( *:| *-)"
"""How fees for commitments are called: `Commitment v1: RAM in Americas for 3 Year`, `Commitment - dollar based v1: …`.
They are metered like usage, but pay for having and not for using."""
# As text, an amount keeps every digit; as a JSON number it would become a binary fraction.
EXACT = r"""regexp_replace({0}, '"(cost|cost_at_list|amount)"\s*:\s*([-+0-9.eE]+)', '"\1":"\2"', 'g')"""


def feeds(source: GcpSource) -> list[Feed]:
    def read(con: DuckDBPyConnection, deliveries: Sequence[Delivery]) -> Reading:
        return _read(con, deliveries, source)

    return [
        Feed(
            "charges",
            source.path,
            read,
            pull=partial(pull, source) if source.table else None,
            restates=source.replaces == "billing_period",
        )
    ]


def _read(con: DuckDBPyConnection, deliveries: Sequence[Delivery], source: GcpSource) -> Reading:
    con.execute("create or replace temp table gcp_lines (file bigint, line bigint, raw varchar)")
    counts, rejects = [0] * len(deliveries), []
    for file, delivery in enumerate(deliveries):
        counts[file] = (
            _load_parquet(con, file, delivery) if is_parquet(delivery) else _load_json(con, file, delivery, rejects)
        )
    con.execute(f"create or replace temp table gcp_fields as {_fields()}")
    con.execute("drop table gcp_lines")
    map_distinct(
        con,
        "gcp_tags",
        "select distinct labels from gcp_fields where labels is not null",
        [("tags", pa.string())],
        lambda text: [_tags(text)],
    )
    con.execute(f"create or replace temp table gcp_rows as {_select(source)}")
    # What a bad record looks like has to be kept here: its place in the file is not a line.
    kept = con.execute("select distinct file, line, bad_reason, raw from gcp_rows where bad_reason is not null")
    rejects += [Reject(*bad) for bad in kept.fetchall()]
    found = _found(con, deliveries)
    con.execute("drop table gcp_fields")
    return Reading("select * exclude (raw) from gcp_rows where bad_reason is null", counts, rejects, found=found)


def _found(con: DuckDBPyConnection, deliveries: Sequence[Delivery]) -> list[Found]:
    detailed = {
        file
        for (file,) in con.execute(
            "select distinct file from gcp_fields where coalesce(global_name, plain_name) is not null"
        ).fetchall()
    }
    found = [
        Found(
            f"Google Cloud {'detailed' if file in detailed else 'standard'} export, {_form(delivery)}",
            _unknown_fields(con, file),
        )
        for file, delivery in enumerate(deliveries)
    ]
    odd = {"times without a zone, taken as UTC": without_zone(("started", "ended"), found)}
    return with_doubts(con, "gcp_fields", found, odd)


def _unknown_fields(con: DuckDBPyConnection, file: int) -> tuple[str, ...]:
    """What the first records have and the schema of the export does not, nested or flat."""
    names = con.execute(
        f"""
        select distinct unnest(json_keys(raw))
        from (select raw from gcp_fields where file = {file} and is_object order by line limit {LOOKED_AT})
        order by 1
        """
    ).fetchall()
    return tuple(name for (name,) in names if name not in FIELDS and not name.startswith(FLAT))


def _form(delivery: Delivery) -> str:
    return "Parquet" if is_parquet(delivery) else f"{PACKED[packing(delivery.path)]}JSON"


def _load_json(con: DuckDBPyConnection, file: int, delivery: Delivery, rejects: list[Reject]) -> int:
    count, lines, texts = 0, [], []

    def flush() -> None:
        con.register("gcp_batch", pa.table({"line": pa.array(lines, pa.int64()), "raw": pa.array(texts, pa.string())}))
        con.execute(f"insert into gcp_lines select {file}, line, {EXACT.format('raw')} from gcp_batch")
        con.unregister("gcp_batch")
        lines.clear()
        texts.clear()

    for record in records(delivery.path):
        count += 1
        if not record.complete:
            rejects.append(Reject(file, record.line, "not a JSON object: truncated or broken", record.text))
            continue
        lines.append(record.line)
        texts.append(record.text)
        if len(lines) >= FLUSH_RECORDS:
            flush()
    flush()
    if not count:
        raise ApportionError(
            f"{delivery.path}: the file has no record",
            "deliver it again; if nothing was charged in its window, remove the file",
        )
    return count


def _load_parquet(con: DuckDBPyConnection, file: int, delivery: Delivery) -> int:
    """Appends a Parquet file as JSON text, so that one set of rules judges both forms."""
    # Some writers do not say of text that it is text.
    scan = f"read_parquet({file_literal(delivery.path)}, file_row_number = true, binary_as_string = true)"
    try:
        con.execute(
            f"insert into gcp_lines select {file}, file_row_number + 1, {EXACT.format('cast(to_json(t) as varchar)')}"
            f" from {scan} as t"
        )
    except duckdb.Error as error:
        raise unreadable_parquet(delivery, error) from error
    return con.execute(f"select count(*) from gcp_lines where file = {file}").fetchall()[0][0]


def _fields() -> str:
    paths = [path for spellings in TEXTS.values() for path in spellings]
    columns = ", ".join(
        f"nullif(coalesce({', '.join(f'texts[{paths.index(path) + 1}]' for path in spellings)}), '') as {name}"
        for name, spellings in TEXTS.items()
    )
    return f"""
        select file, line, raw, whole is not null as is_object, {columns},
            json_extract(whole, '$.credits') as credits,
            case when labels <> '[null,null,null,null,null]' then labels end as labels
        from (
            select *, json_extract_string(whole, [{quoted(paths)}]) as texts,
                cast(to_json(json_extract(whole, [{quoted(LABELS)}])) as varchar) as labels
            from (
                select file, line, raw,
                    case when json_valid(raw) and json_type(raw) = 'OBJECT' then raw end as whole
                from gcp_lines
            )
        )
    """


def _tags(text: str) -> str | None:
    """All kinds of labels as one object. The nearest to the resource has the plain name; another value of the same
    name is kept under where it comes from."""
    found: dict[str, str] = {}
    kinds = ("label", "tag", "system", "project", "project")
    for kind, labels in zip(kinds, json.loads(text), strict=True):
        if not isinstance(labels, dict | list | type(None)):
            raise ValueError(f"labels are not a list: {json.dumps(labels)}")
        pairs = labels.items() if isinstance(labels, dict) else (_pair(label) for label in labels or ())
        for key, value in pairs:
            name = key if found.get(key, value) == value else f"{kind}/{key}"
            found[name] = value
    return json.dumps(found, ensure_ascii=False) if found else None


def _pair(label: object) -> tuple[str, str]:
    if not isinstance(label, dict) or not isinstance(label.get("key"), str):
        raise ValueError(f"a label without a key: {json.dumps(label)}")
    value = label.get("value")
    return label["key"], "" if value is None else str(value)


def _select(source: GcpSource) -> str:
    names = ["global_name", "plain_name"]
    resource = f"coalesce({', '.join(names if source.resource_id == 'global_name' else names[::-1])})"
    category = " ".join(f"when {literal(key)} then {literal(value)}" for key, value in CATEGORIES.items())
    reason = first_reason(
        ("not is_object", literal("not a JSON object: truncated or broken")),
        missing("f.cost", "cost"),
        unreadable("f.cost", money("f.cost"), "cost", "a number"),
        unreadable("f.list", money("f.list"), "cost_at_list", "a number"),
        missing("f.currency", "currency"),
        missing("started", "usage_start_time"),
        missing("ended", "usage_end_time"),
        unreadable("started", "charge_start_at", "usage_start_time", "a time"),
        unreadable("ended", "charge_end_at", "usage_end_time", "a time"),
        backwards("charge_start_at", "charge_end_at"),
        unreadable("invoice_month", "month", "invoice.month", "a month such as 201901"),
        ("own_category is null", "'cost_type is unknown: ' || cost_type"),
        ("t.reason is not null", "t.reason"),
        (
            "credits is not null and json_type(credits) not in ('ARRAY', 'NULL')",
            literal("credits is not a list"),
        ),
        (
            f"list_bool_or(list_transform(amounts, lambda a: {money('a')} is null))",
            "'a credit has no readable amount: ' || cast(credits as varchar)",
        ),
    )
    return f"""
        with judged as (
            select
                f.*,
                t.tags,
                coalesce(json_extract(credits, '$[*]'), []) as credit_list,
                list_transform(credit_list, lambda c: json_extract_string(c, '$.amount')) as amounts,
                {utc("started")} as charge_start_at,
                {utc("ended")} as charge_end_at,
                try_strptime(coalesce(invoice_month, strftime(charge_start_at, '%Y%m')), ['%Y%m', '%Y-%m']) as month,
                case
                    when lower(coalesce(cost_type, 'regular')) = 'regular'
                        and regexp_matches(lower(sku_name), {literal(COMMITMENT_FEE)})
                        then 'Purchase'
                    else case lower(coalesce(cost_type, 'regular')) {category} end
                end as own_category,
                {commitments.credited()} as credited,
                {commitments.is_shared_out()} as is_shared_out,
                {commitments.covered()} as covered_quantity,
                {reason} as bad_reason
            from gcp_fields as f
            left join gcp_tags as t on t.text = f.labels
        ),

        charged as (
            select *, cast(null as json) as credit from judged
            union all
            select *, unnest(credit_list) from judged where bad_reason is null
        )

        select
            file,
            line,
            case when bad_reason is not null then raw end as raw,
            {literal(source.name)} as charge_key,
            {literal(PROVIDER)} as provider,
            coalesce(account, {literal(PROVIDER)}) || '-' || strftime(month, '%Y-%m') as invoice_id,
            account as billing_account_id,
            project as sub_account_id,
            cast(month as timestamptz) as billing_period_start_at,
            cast(month + interval 1 month as timestamptz) as billing_period_end_at,
            charge_start_at,
            charge_end_at,
            case when credit is null then own_category else 'Credit' end as charge_category,
            case when correction is not null then 'Correction' end as charge_class,
            case
                when credit is not null or own_category = 'Usage' then 'Usage-Based'
                when own_category = 'Purchase' then 'Recurring'
            end as charge_frequency,
            coalesce(
                json_extract_string(credit, '$.full_name'), json_extract_string(credit, '$.name'),
                case when credit is not null then 'Credit' end, sku_name, correction_why, cost_type
            ) as charge_description,
            cast(null as varchar) as service_category,
            service as service_name,
            sku as sku_id,
            region as region_id,
            {resource} as resource_id,
            cast(null as varchar) as resource_type,
            case
                when credit is null and (is_shared_out or covered_quantity > 0) then {commitments.COMMITMENT}
                when subscription is not null then subscription
                when json_extract_string(credit, '$.type') in ({quoted(COMMITMENT_CREDITS)})
                    then json_extract_string(credit, '$.id')
            end as commitment_id,
            case when credit is null and covered_quantity > 0 then 'Used' end as commitment_status,
            case
                when credit is not null then null
                when is_shared_out then cast({commitments.quantity()} as decimal(38, 9))
                else covered_quantity
            end as commitment_quantity,
            cast(null as timestamptz) as commitment_start_at,
            cast(null as timestamptz) as commitment_end_at,
            tags,
            {currency("currency")} as currency,
            -- Credits are what the list price does not know.
            case when credit is null then {money("list")} else 0 end as list_cost,
            case when credit is null then {money("cost")} else {money("json_extract_string(credit, '$.amount')")} end
                as billed_cost,
            -- Fees are metered by the hour, so what is billed is already spread over the term; what they cover is next.
            case when credit is null and is_shared_out then null else billed_cost end as effective_cost,
            d.delivered_at >= billing_period_end_at + interval {source.final_after_days} day as is_final,
            bad_reason,
            cast(null as varchar) as skip_reason
        from charged
        join deliveries as d using (file)
    """
