"""AWS Cost and Usage Reports: legacy CUR and CUR 2.0 (Data Exports), as text or Parquet.

One column has many spellings: `lineItem/UnblendedCost` in a CSV file, `line_item_unblended_cost` in Parquet, Athena
and CUR 2.0, which also folds product attributes, tags and cost categories into maps. Names are compared by
their letters and digits alone, and columns that a month does not have are null.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence

import pyarrow as pa
from duckdb import DuckDBPyConnection

from orchestration.connectors.base import Delivery, Feed, Reading
from orchestration.connectors.billing.columns import letters
from orchestration.connectors.billing.notation import currency, with_doubts
from orchestration.connectors.sql import (
    backwards,
    first_reason,
    identifier,
    literal,
    map_distinct,
    missing,
    money,
    quoted,
    unreadable,
    utc,
)
from orchestration.connectors.tables import Layout, load_table, require
from orchestration.errors import ApportionError
from orchestration.settings import AwsCurSource

REQUIRED = (
    "bill_billing_period_start_date",
    "bill_billing_period_end_date",
    "line_item_line_item_type",
    "line_item_usage_start_date",
    "line_item_usage_end_date",
    "line_item_currency_code",
    "line_item_unblended_cost",
)
MONEY = (
    "line_item_net_unblended_cost",
    "pricing_public_on_demand_cost",
    "reservation_effective_cost",
    "reservation_net_effective_cost",
    "reservation_unused_amortized_upfront_fee_for_billing_period",
    "reservation_net_unused_amortized_upfront_fee_for_billing_period",
    "reservation_unused_recurring_fee",
    "reservation_net_unused_recurring_fee",
    "savings_plan_savings_plan_effective_cost",
    "savings_plan_net_savings_plan_effective_cost",
    "savings_plan_total_commitment_to_date",
    "savings_plan_used_commitment",
    "savings_plan_amortized_upfront_commitment_for_billing_period",
    "savings_plan_recurring_commitment_for_billing_period",
    "savings_plan_net_amortized_upfront_commitment_for_billing_period",
    "savings_plan_net_recurring_commitment_for_billing_period",
)
MAPS = ("product", "resource_tags", "cost_category", "all_tags")
OPTIONAL = (
    *MONEY,
    *MAPS,
    "identity_line_item_id",
    "identity_time_interval",
    "bill_invoice_id",
    "bill_bill_type",
    "bill_payer_account_id",
    "line_item_usage_account_id",
    "line_item_product_code",
    "line_item_usage_type",
    "line_item_operation",
    "line_item_resource_id",
    "line_item_line_item_description",
    "product_product_name",
    "product_product_family",
    "product_region",
    "product_region_code",
    "product_sku",
    "product_instance_type",
    "line_item_usage_amount",
    "line_item_normalized_usage_amount",
    "reservation_total_reserved_units",
    "reservation_total_reserved_normalized_units",
    "reservation_start_time",
    "reservation_end_time",
    "reservation_reservation_a_r_n",
    "savings_plan_savings_plan_a_r_n",
    "split_line_item_parent_resource_id",
    "split_line_item_split_cost",
    "split_line_item_unused_cost",
    "split_line_item_split_usage_ratio",
)
RESERVED = (
    "reservation_total_reserved_normalized_units",
    "line_item_normalized_usage_amount",
    "reservation_total_reserved_units",
    "line_item_usage_amount",
)
COVERED = ("line_item_normalized_usage_amount", "line_item_usage_amount")
"""How much a fee reserves, and how much of it a line uses: the first of these that the line has."""
NUMBERS = ("line_item_unblended_cost", *MONEY, *RESERVED, "split_line_item_split_cost")
CATEGORIES = {
    "Usage": (
        *("Usage", "DiscountedUsage", "SavingsPlanCoveredUsage"),
        # Both belong to the hour and the service whose price they change, not to the month as a whole.
        *("SavingsPlanNegation", "%Discount"),
    ),
    "Purchase": ("Fee", "RIFee", "SavingsPlanUpfrontFee", "SavingsPlanRecurringFee", "%Fee", "FlatRateSubscription"),
    "Tax": ("Tax",),
    "Credit": ("Credit", "%Credit"),
    "Adjustment": ("Refund", "Adjustment", "Rounding"),
}
PRODUCT_KEYS = ("product_name", "product_family", "region_code", "region", "sku", "instance_type")
_TAG = re.compile(r"(?:resourceTags/|resource_tags_)(?:user[:_]|(aws[:_]eks[:_]))(.+)", re.IGNORECASE)
_TAG_COLUMN = "tag "
DISCOUNTED = "another cost after discounts without lines of their own: if the invoice has them, 'cost: net_unblended'"
_COST_CATEGORY = re.compile(r"(?:costCategory/|cost_category_)(.+)", re.IGNORECASE)
_FAMILY = re.compile(
    r"(identity|bill|line_?item|product|pricing|reservation|savings_?plan|split_?line_?item|discount|resource_?tags"
    r"|cost_?category|capacity_?reservation|tags)([/_]|$)",
    re.IGNORECASE,
)
"""The families that AWS sorts its columns into; most of them say nothing that a charge needs."""
ONLY_IN_CUR_2 = {"resourcetags", "tags", "product", "discount", "costcategory", "billpayeraccountname"}
_KEY = re.compile(r"(?:user[:_]|(aws[:_]eks[:_]))(.+)", re.IGNORECASE)


def feeds(source: AwsCurSource) -> list[Feed]:
    def read(con: DuckDBPyConnection, deliveries: Sequence[Delivery]) -> Reading:
        return _read(con, deliveries, source)

    return [Feed("charges", source.path, read, restates=source.replaces == "billing_period")]


def _read(con: DuckDBPyConnection, deliveries: Sequence[Delivery], source: AwsCurSource) -> Reading:
    columns = (*REQUIRED, *OPTIONAL)
    loaded = load_table(con, "cur_lines", deliveries, columns, _layout, neighbours="line_item_usage_start_date")
    tags = {name: key for layout in loaded.layouts for name in layout.places if (key := _key_of(name))}
    _read_maps(con)
    _find_copies(con, (*columns, *tags))
    found = loaded.found
    if source.cost == "unblended" and any("line_item_net_unblended_cost" in one.places for one in loaded.layouts):
        found = with_doubts(con, "cur_lines", found, {DISCOUNTED: _discounted(con)})
    notes = _notes(con, loaded.layouts, source)
    rows = _select(source, loaded.layouts, tags)
    return Reading(rows, loaded.counts, loaded.rejects, found=found, notes=notes)


_BY_LETTERS = {letters(name): name for name in (*REQUIRED, *OPTIONAL)} | {"tags": "all_tags"}


def _tag_key(column: str) -> str | None:
    if found := _TAG.fullmatch(column):
        return _key(found)
    if found := _COST_CATEGORY.fullmatch(column):
        return f"cost_category/{found[1]}"
    return None


def _tag_column(key: str) -> str:
    """A name for the column of a tag: `Team` and `team` are two tags, but one name to the database."""
    return _TAG_COLUMN + key.encode().hex()


def _key_of(column: str) -> str | None:
    return bytes.fromhex(column.removeprefix(_TAG_COLUMN)).decode() if column.startswith(_TAG_COLUMN) else None


def _key(found: re.Match[str]) -> str:
    """A tag's key: as its owner wrote it, or as far as AWS left it so."""
    return f"aws:eks:{found[2]}" if found[1] else found[2]


def _layout(delivery: Delivery, header: Sequence[str]) -> Layout:
    if "BilledCost" in header:
        raise ApportionError(f"{delivery.path}: this is a FOCUS file", "give the source the kind 'focus'")
    places: dict[str, int] = {}
    unknown = []
    for place, column in enumerate(header):
        key = _tag_key(column)
        name = _tag_column(key) if key else _BY_LETTERS.get(letters(column))
        if name:
            places.setdefault(name, place)
        elif not _FAMILY.match(column):
            unknown.append(column)
    if "resource_tags" in places:
        places.pop("all_tags", None)  # the same tags again, with other keys
    require(delivery, places, REQUIRED, header)
    is_second = bool({letters(column) for column in header} & ONLY_IN_CUR_2)
    return Layout(places, "AWS CUR 2.0" if is_second else "AWS CUR", tuple(unknown))


def _read_maps(con: DuckDBPyConnection) -> None:
    """The maps of CUR 2.0; each distinct text is parsed once."""
    text = pa.string()
    for name, columns, parse in (
        ("product", [(key, text) for key in PRODUCT_KEYS], _product),
        ("resource_tags", [("tags", text)], _tags),
        ("cost_category", [("tags", text)], _cost_categories),
        ("all_tags", [("tags", text)], _all_tags),
    ):
        query = f"select distinct {name} from cur_lines where {name} is not null"
        map_distinct(con, f"cur_{name}", query, columns, parse)


def _object(text: str) -> dict[str, str]:
    """A map as JSON: an object, or the list of pairs that some writers make of it."""
    try:
        found = json.loads(text)
        if isinstance(found, list):
            found = {pair["key"]: pair["value"] for pair in found}
        items = found.items()
    except (ValueError, AttributeError, TypeError, KeyError) as error:
        raise ValueError("is not a JSON object") from error
    shown = {key: value if isinstance(value, str) else json.dumps(value) for key, value in items if value is not None}
    return {key: value for key, value in shown.items() if value not in ("", "NULL", "\\N")}


def _product(text: str) -> list[str | None]:
    found = _object(text)
    return [found.get(key) for key in PRODUCT_KEYS]


def _tags(text: str) -> list[str]:
    keyed = ((_KEY.fullmatch(key), value) for key, value in _object(text).items())
    return [_json({_key(found): value for found, value in keyed if found})]


def _cost_categories(text: str) -> list[str]:
    return [_json({f"cost_category/{key}": value for key, value in _object(text).items()})]


def _all_tags(text: str) -> list[str]:
    """Tags of all kinds, whose keys are called as the columns of the legacy report are."""
    keyed = ((_tag_key(key), key, value) for key, value in _object(text).items())
    return [_json({own or key: value for own, key, value in keyed if own or not key.startswith("resourceTags/")})]


def _json(tags: dict[str, str]) -> str:
    return json.dumps(tags, ensure_ascii=False, separators=(",", ":"))


def _find_copies(con: DuckDBPyConnection, names: Sequence[str]) -> None:
    """Lines that are in their file twice, in the temp table `cur_copies` with the line that they repeat.

    A line id may repeat, but not with the same interval; and only what is the same in everything is a copy.
    """
    identity = "file, identity_line_item_id, identity_time_interval"
    con.execute("create or replace temp table cur_copies (file bigint, line bigint, original bigint)")
    ((doubled,),) = con.execute(
        f"select count(*) - count(distinct hash({identity})) from cur_lines"
        " where identity_line_item_id is not null and identity_time_interval is not null"
    ).fetchall()
    if doubled:
        everything = ", ".join(map(identifier, ("file", *names)))
        con.execute(
            f"""
            insert into cur_copies
            with suspects as (
                select * from cur_lines
                where hash({identity}) in (
                    select hash({identity}) from cur_lines
                    where identity_line_item_id is not null and identity_time_interval is not null
                    group by 1 having count(*) > 1
                )
            ),

            kept as (
                select file, line, min(line) over (partition by {everything}) as original from suspects
            )

            select file, line, original from kept where line > original
            """
        )


def _discounted(con: DuckDBPyConnection) -> str:
    """Lines with another net cost, in files whose net costs add up to another total.

    Where discounts are lines of their own, these are what makes both totals the same.
    """
    plain, net = money("line_item_unblended_cost"), money("line_item_net_unblended_cost")
    differing = con.execute(
        "select file from cur_lines"
        " where line_item_net_unblended_cost is not null or line_item_line_item_type like '%Discount'"
        f" group by file having abs(sum({plain}) - sum(coalesce({net}, 0))) >= 0.01"
    ).fetchall()
    files = ", ".join(str(file) for (file,) in differing) or "-1"
    return f"file in ({files}) and {plain} <> {net}"


def _notes(con: DuckDBPyConnection, layouts: Sequence[Layout], source: AwsCurSource) -> dict[str, int]:
    notes: Counter[str] = Counter()
    if source.cost == "net_unblended":
        without = sum("line_item_net_unblended_cost" not in layout.places for layout in layouts)
        notes["files without net costs, unblended taken"] = without
    split, fees = con.execute(
        """
        select
            count(*) filter (where split_line_item_parent_resource_id is not null),
            count(*) filter (
                where line_item_line_item_type = 'RIFee'
                and reservation_unused_recurring_fee is null
                and reservation_unused_amortized_upfront_fee_for_billing_period is null
                or line_item_line_item_type = 'SavingsPlanRecurringFee'
                and (savings_plan_total_commitment_to_date is null or savings_plan_used_commitment is null)
            )
        from cur_lines
        """
    ).fetchall()[0]
    done = "kept with their costs as tags" if source.split_lines == "keep" else "skipped"
    notes[f"lines of pods and tasks (split cost), {done}"] = split
    notes["commitment fees that do not say what was unused"] = fees
    return {note: count for note, count in notes.items() if count}


def _instant(column: str) -> str:
    """A time as ISO text, or as epoch seconds, milliseconds, microseconds or nanoseconds by its length."""
    number = f"try_cast({column} as bigint)"
    return f"""(case
        when not regexp_full_match({column}, '[0-9]{{9,19}}') then {utc(column)}
        when length({column}) <= 11 then make_timestamptz({number} * 1000000)
        when length({column}) <= 14 then make_timestamptz({number} * 1000)
        when length({column}) <= 17 then make_timestamptz({number})
        else make_timestamptz({number} // 1000)
    end)"""


def _category() -> str:
    exact, endings = [], []
    for category, types in CATEGORIES.items():
        plain = quoted(t for t in types if not t.startswith("%"))
        exact.append(f"when l.line_item_line_item_type in ({plain}) then {literal(category)}")
        endings += [
            f"when l.line_item_line_item_type like {literal(t)} then {literal(category)}"
            for t in types
            if t.startswith("%")
        ]
    return f"case {' '.join([*exact, *endings])} end"


def _files_with(layouts: Sequence[Layout], column: str) -> str:
    """Whether the file of a line has a column at all, as SQL."""
    files = [str(file) for file, layout in enumerate(layouts) if column in layout.places]
    return f"l.file in ({', '.join(files)})" if files else "false"


def _number(column: str) -> str:
    """A column of NUMBERS as the number that it is."""
    return f"l.{column}_number"


def _net_or_plain(net: str, plain: str) -> str:
    """A net amount that cannot be read is no reason to take the plain one."""
    return f"case when l.{net} is not null then {_number(net)} else {_number(plain)} end"


def _effective(source: AwsCurSource, layouts: Sequence[Layout]) -> str:
    """What a line costs once fees are moved to what they paid for; null where AWS does not say.

    The used part of a fee is on the lines that it covers, so its own line keeps the unused part. Where a file has
    no such figures, the quantities that are reserved and covered stand in for them (see `commitment_quantity`).
    """

    def amount(plain: str, net: str) -> str:
        return _net_or_plain(net, plain) if source.cost == "net_unblended" else _number(plain)

    reserved = amount("reservation_effective_cost", "reservation_net_effective_cost")
    planned = amount("savings_plan_savings_plan_effective_cost", "savings_plan_net_savings_plan_effective_cost")
    upfront, recurring = (
        amount(f"reservation_unused_{part}", f"reservation_net_unused_{part}")
        for part in ("amortized_upfront_fee_for_billing_period", "recurring_fee")
    )
    has_reserved = _files_with(layouts, "reservation_effective_cost")
    has_planned = _files_with(layouts, "savings_plan_savings_plan_effective_cost")
    unused_plan = f"{_number('savings_plan_total_commitment_to_date')} - {_number('savings_plan_used_commitment')}"
    if source.cost == "net_unblended":
        unused_plan = _after_discount(unused_plan)
    return f"""case l.line_item_line_item_type
        when 'DiscountedUsage' then {reserved}
        when 'RIFee' then case when {has_reserved} then coalesce({upfront}, 0) + coalesce({recurring}, 0) end
        when 'SavingsPlanCoveredUsage' then {planned}
        when 'SavingsPlanRecurringFee' then {unused_plan}
        when 'SavingsPlanNegation' then case when {has_planned} then 0 else billed_cost end
        when 'SavingsPlanUpfrontFee' then case when {has_planned} then 0 else billed_cost end
        when 'Fee' then case when not is_upfront then billed_cost when {has_reserved} then 0 end
        else billed_cost
    end"""


def _after_discount(unused: str) -> str:
    """The unused part of a savings plan as far as it is paid: AWS gives the net commitment of the month as a whole."""
    parts = ("amortized_upfront_commitment_for_billing_period", "recurring_commitment_for_billing_period")
    plain, net = (
        " + ".join(f"coalesce(cast({_number(f'savings_plan_{kind}{part}')} as double), 0)" for part in parts)
        for kind in ("", "net_")
    )
    has_net = " or ".join(f"l.savings_plan_net_{part} is not null" for part in parts)
    paid = f"cast({unused} as double) * ({net}) / ({plain})"
    return f"case when ({has_net}) and {plain} <> 0 then cast(round({paid}, 9) as decimal(38, 18)) else {unused} end"


def _tags_sql(tags: dict[str, str]) -> str:
    """All tags of a line as one JSON object; a null deletes its key, which is how the empty ones go."""
    columns = "".join(f", {literal(key)}, l.{identifier(column)}" for column, key in tags.items())
    return f"""nullif(cast(json_merge_patch(
        coalesce(rt.tags, every.tags, '{{}}'),
        coalesce(cc.tags, '{{}}'),
        json_object({columns.removeprefix(", ")}),
        case when is_split or {_number("split_line_item_split_cost")} <> 0 then json_object(
            'aws:split_parent_resource_id', l.split_line_item_parent_resource_id,
            'aws:split_cost', l.split_line_item_split_cost,
            'aws:split_unused_cost', l.split_line_item_unused_cost,
            'aws:split_usage_ratio', l.split_line_item_split_usage_ratio
        ) else '{{}}' end
    ) as varchar), '{{}}')"""


def _typed() -> str:
    """Lines with their times and numbers. Each is read once here, and used in many places of the query around it."""
    bounds = {
        side: f"nullif(coalesce(line_item_usage_{side}_date, split_part(identity_time_interval, '/', {place})), '')"
        for place, side in ((1, "start"), (2, "end"))
    }
    numbers = ", ".join(f"{money(name)} as {name}_number" for name in NUMBERS)
    return f"""
        select
            *,
            {_instant("bill_billing_period_start_date")} as billing_period_start_at,
            {_instant("bill_billing_period_end_date")} as billing_period_end_at,
            {_instant("start_text")} as start_at,
            {_instant("end_text")} as end_at,
            {numbers}
        from (select *, {bounds["start"]} as start_text, {bounds["end"]} as end_text from cur_lines)
    """


def _judged() -> str:
    """What a line is and when it applies, which most of what it says depends on."""
    return f"""
        select
            l.*,
            {_category()} as charge_category,
            l.split_line_item_parent_resource_id is not null as is_split,
            l.line_item_line_item_type = 'Fee' and l.reservation_reservation_a_r_n is not null as is_upfront,
            case when start_text is not null then start_at
                when charge_category <> 'Usage' then billing_period_start_at end as charge_start_at,
            case when end_text is null then case when charge_category <> 'Usage' then billing_period_end_at end
                -- Fees of a month end with its last second, all else with the hour.
                when epoch(end_at) % 3600 >= 3599 then date_trunc('second', end_at) + interval 1 second
                else end_at end as charge_end_at
        from ({_typed()}) as l
    """


def _reason() -> str:
    return first_reason(
        ("copy.original is not null", "'is the same line as line ' || copy.original"),
        missing("l.line_item_line_item_type", "line_item_line_item_type"),
        ("charge_category is null", "'line_item_line_item_type is unknown: ' || l.line_item_line_item_type"),
        missing("l.line_item_unblended_cost", "line_item_unblended_cost"),
        *(unreadable(f"l.{name}", _number(name), name, "a number") for name in (REQUIRED[-1], *MONEY)),
        missing("l.line_item_currency_code", "line_item_currency_code"),
        missing("l.bill_billing_period_start_date", "bill_billing_period_start_date"),
        missing("l.bill_billing_period_end_date", "bill_billing_period_end_date"),
        *(
            unreadable(f"l.bill_{name}_date", f"{name}_at", f"bill_{name}_date", "a time")
            for name in ("billing_period_start", "billing_period_end")
        ),
        ("billing_period_end_at <= billing_period_start_at", literal("the billing period is empty")),
        unreadable("start_text", "charge_start_at", "line_item_usage_start_date", "a time"),
        unreadable("end_text", "charge_end_at", "line_item_usage_end_date", "a time"),
        missing("charge_start_at", "line_item_usage_start_date"),
        missing("charge_end_at", "line_item_usage_end_date"),
        backwards("charge_start_at", "charge_end_at"),
        *((f"{short}.reason is not null", f"'{name} ' || {short}.reason") for short, name in _SHORT.items()),
    )


def _select(source: AwsCurSource, layouts: Sequence[Layout], tags: dict[str, str]) -> str:
    net = source.cost == "net_unblended"
    plain = "line_item_unblended_cost"
    billed = _net_or_plain("line_item_net_unblended_cost", plain) if net else _number(plain)
    return f"""
        select
            l.file,
            l.line,
            charge_category,
            billing_period_start_at,
            billing_period_end_at,
            charge_start_at,
            charge_end_at,
            {literal(source.name)} as charge_key,
            'AWS' as provider,
            coalesce(l.bill_invoice_id, 'AWS-' || strftime(billing_period_start_at, '%Y-%m')) as invoice_id,
            l.bill_payer_account_id as billing_account_id,
            l.line_item_usage_account_id as sub_account_id,
            case when l.bill_bill_type = 'Refund' or l.line_item_line_item_type = 'Refund'
                then 'Correction' end as charge_class,
            case
                when charge_category = 'Usage' then 'Usage-Based'
                when l.line_item_line_item_type in ('RIFee', 'SavingsPlanRecurringFee', 'FlatRateSubscription')
                then 'Recurring'
                else 'One-Time'
            end as charge_frequency,
            l.line_item_line_item_description as charge_description,
            coalesce(l.product_product_family, p.product_family) as service_category,
            coalesce(l.product_product_name, p.product_name, l.line_item_product_code) as service_name,
            coalesce(l.product_sku, p.sku) as sku_id,
            coalesce(l.product_region_code, p.region_code, l.product_region, p.region) as region_id,
            l.line_item_resource_id as resource_id,
            coalesce(l.product_instance_type, p.instance_type) as resource_type,
            coalesce(l.reservation_reservation_a_r_n, l.savings_plan_savings_plan_a_r_n) as commitment_id,
            {_tags_sql(tags)} as tags,
            {currency("l.line_item_currency_code")} as currency,
            {billed} as billed_cost,
            case
                when is_split then null
                -- Their list price is that of the use, which has lines of its own.
                when l.line_item_line_item_type in (
                    'RIFee', 'SavingsPlanRecurringFee', 'SavingsPlanUpfrontFee', 'SavingsPlanNegation'
                ) or l.line_item_line_item_type like '%Discount'
                or is_upfront then 0
                when charge_category <> 'Usage' then null
                -- Without a public price AWS writes 0; use under a reservation is billed 0 and has one.
                when {_number("pricing_public_on_demand_cost")} = 0 and billed_cost <> 0 then null
                else {_number("pricing_public_on_demand_cost")}
            end as list_cost,
            {_effective(source, layouts)} as effective_cost,
            case
                when l.line_item_line_item_type in ('DiscountedUsage', 'SavingsPlanCoveredUsage') then 'Used'
                when l.line_item_line_item_type in ('RIFee', 'SavingsPlanRecurringFee') and effective_cost > 0
                then 'Unused'
            end as commitment_status,
            -- Only needed where AWS does not say what covered use costs; in normalized units where it has them.
            case
                when l.line_item_line_item_type = 'RIFee' then coalesce({", ".join(map(_number, RESERVED))})
                when l.line_item_line_item_type = 'DiscountedUsage' then coalesce({", ".join(map(_number, COVERED))})
            end as commitment_quantity,
            case when is_upfront then {_instant("l.reservation_start_time")} end as commitment_start_at,
            case when is_upfront then {_instant("l.reservation_end_time")} end as commitment_end_at,
            billing_period_end_at <= d.final_until as is_final,
            {_reason()} as bad_reason,
            case when {source.split_lines == "skip"} and is_split and billed_cost = 0
                then 'describes the cost of another line' end as skip_reason
        from ({_judged()}) as l
        join (
            select file, delivered_at - interval {source.final_after_days} day as final_until from deliveries
        ) as d using (file)
        left join cur_copies as copy on copy.file = l.file and copy.line = l.line
        left join cur_product as p on p.text = l.product
        left join cur_resource_tags as rt on rt.text = l.resource_tags
        left join cur_cost_category as cc on cc.text = l.cost_category
        left join cur_all_tags as every on every.text = l.all_tags
    """


_SHORT = {"p": "product", "rt": "resource_tags", "cc": "cost_category", "every": "tags"}
