"""Who stores how much where, by day: tables, JSON objects, listings of objects, and what file systems report.

All of them become one table of texts, which one set of rules judges. Where many lines make one reading (the objects of
a bucket), the sum stands on the first of them and the others are skipped as parts of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

from duckdb import DuckDBPyConnection

from orchestration.connectors.base import Delivery, Feed, Found, Reading, Reject
from orchestration.connectors.sql import day, first_reason, literal, missing, unreadable, utc, whole
from orchestration.connectors.storage import reports
from orchestration.connectors.storage.columns import COLUMNS, understood
from orchestration.connectors.storage.objects import load_objects, select_keys
from orchestration.connectors.tables import PACKED, Layout, first_line, is_parquet, load_table, unless_named
from orchestration.connectors.text import packing
from orchestration.settings import StorageSource

HUMAN = r"([0-9]+(?:\.[0-9]+)?)\s*([KMGTP])i?B?"
"""`11.14 TB`, as reports print it for people; their units are powers of 1024."""

Loaded = tuple[str, list[int], list[Found], list[Reject]]
"""SQL for what files of one form say, and by file: rows, what it is, what could not be cut.

The SQL has file, line, form, filesystem, path, owner, account, size, factor, date, skip and problem."""


def feeds(source: StorageSource) -> list[Feed]:
    def read(con: DuckDBPyConnection, deliveries: Sequence[Delivery]) -> Reading:
        return _read(con, deliveries, source)

    return [Feed("storage_usage", source.path, read)]


def _read(con: DuckDBPyConnection, deliveries: Sequence[Delivery], source: StorageSource) -> Reading:
    counts, found, rejects, texts = [0] * len(deliveries), [Found("")] * len(deliveries), [], []
    loaders = [_loader(delivery) for delivery in deliveries]
    for loader in dict.fromkeys(loaders):
        files = [file for file, own in enumerate(loaders) if own is loader]
        sql, own_counts, own_found, own_rejects = loader(con, [deliveries[file] for file in files], source)
        texts.append(f"(select * replace ([{', '.join(map(str, files))}][file + 1] as file) from ({sql}))")
        for file, count, what in zip(files, own_counts, own_found, strict=True):
            counts[file], found[file] = count, what
        rejects += [replace(reject, file=files[reject.file]) for reject in own_rejects]
    con.execute(f"create or replace temp table storage_texts as {' union all by name '.join(texts)}")
    con.execute(f"create or replace temp table storage_judged as {_judged(source, deliveries)}")
    con.execute(f"create or replace temp table storage_rows as {_summed()}")
    rejects += _bad_objects(con)
    found = _doubted(con, deliveries, source, found)
    return Reading("select * from storage_rows where raw is null or bad_reason is null", counts, rejects, found=found)


def _loader(delivery: Delivery) -> Callable[[DuckDBPyConnection, Sequence[Delivery], StorageSource], Loaded]:
    if is_parquet(delivery):
        return _load_tables
    if first_line(delivery)[1].lstrip().startswith(("{", "[")):
        return _load_objects
    return _load_reports if reports.report_of(delivery) else _load_tables


def _load_reports(con: DuckDBPyConnection, deliveries: Sequence[Delivery], source: StorageSource) -> Loaded:
    sql, counts, found = reports.load(con, deliveries, source)
    return sql, counts, found, []


def _load_tables(con: DuckDBPyConnection, deliveries: Sequence[Delivery], source: StorageSource) -> Loaded:
    factors: dict[int, float] = {}

    def understand(delivery: Delivery, header: Sequence[str]) -> Layout:
        layout, factors[len(factors)] = understood(source, delivery, header)
        return layout

    loaded = load_table(con, "storage_lines", deliveries, COLUMNS, understand, unless_named(source.header))
    sql = _texts("select *, cast(null as varchar) as raw from storage_lines", source, loaded.layouts, factors)
    return sql, loaded.counts, loaded.found, loaded.rejects


def _load_objects(con: DuckDBPyConnection, deliveries: Sequence[Delivery], source: StorageSource) -> Loaded:
    keys, counts, rejects = load_objects(con, "storage_objects", deliveries)
    layouts, factors, selects = [], {}, []
    for file, delivery in enumerate(deliveries):
        layout, factors[file] = understood(source, delivery, keys[file])
        layouts.append(layout)
        places = {ours: keys[file][place] for ours, place in layout.places.items()}
        selects.append(f"({select_keys('storage_objects', file, places, COLUMNS)})")
    found = [
        Found(f"{layout.variant}, {PACKED[packing(delivery.path)]}JSON", layout.unknown)
        for delivery, layout in zip(deliveries, layouts, strict=True)
    ]
    return _texts(" union all ".join(selects), source, layouts, factors), counts, found, rejects


def _texts(rows: str, source: StorageSource, layouts: Sequence[Layout], factors: dict[int, float]) -> str:
    """Our columns of a table or of objects as what every form is made into."""
    filesystem = f"coalesce(t.filesystem, {literal(source.filesystem)})" if source.filesystem else "t.filesystem"
    has_path = ", ".join(str(file) for file, layout in enumerate(layouts) if "path" in layout.places) or "-1"
    factor = " ".join(f"when {file} then {Decimal(str(factor)):f}" for file, factor in factors.items())
    folders = f"array_to_string(string_split(url_decode(t.key), '/')[:-2][:{source.prefix_depth}], '/')"
    return f"""
        select t.file, t.line, t.raw,
            case when t.key is null then 'table' else 'listing' end as form,
            {filesystem} as filesystem,
            case
                when t.key is null then nullif(concat_ws('/', t.namespace, t.path), '')
                else rtrim({filesystem} || '/' || {folders}, '/')
            end as path,
            t.owner, coalesce(t."group", t.namespace) as account, t.size, case t.file {factor} end as factor, t.date,
            case when t.key is not null and t.size is null then 'an object without size, such as a delete marker' end
                as skip,
            case when t.key is null and t.path is null and t.file in ({has_path}) then 'path is missing' end as problem
        from ({rows}) as t
    """


def _judged(source: StorageSource, deliveries: Sequence[Delivery]) -> str:
    """One row per line: typed, with its time, and with what is wrong with it."""
    is_human = f"t.form in ('report', 'du') and regexp_full_match(t.size, {literal(HUMAN)})"
    figure, unit = (f"regexp_extract(t.size, {literal(HUMAN)}, {group})" for group in (1, 2))
    power = f"cast(pow(1024, strpos('KMGTP', {unit})) as bigint)"
    stored = f"""
        case
            when {is_human}
                then try_cast(round(cast({figure} as decimal(18, 3)) * {power}) as bigint)
            when t.factor = 1 then {whole("t.size")}
            else try_cast(round(try_cast(t.size as decimal(22, 3)) * cast(t.factor as decimal(16, 3))) as bigint)
        end"""
    owner = "t.owner"
    if source.owner_from_path:
        owner = f"coalesce(t.owner, nullif(regexp_extract(t.path, {literal(source.owner_from_path)}, 1), ''))"
    twice = "t.form = 'du' and row_number() over (partition by t.file, t.form, t.path order by t.line) > 1"
    reason = first_reason(
        ("t.problem is not null", "t.problem"),
        ("t.skip is not null", "null"),
        missing("t.filesystem", "filesystem"),
        (twice, literal("the path is there twice")),
        missing("t.size", "bytes"),
        unreadable("t.size", "stored_bytes", "bytes", "a whole number"),
        ("stored_bytes < 0", literal("bytes is negative")),
        unreadable("t.date", "measured_on", "date", "a date"),
        ("t.has_date and t.date is null", literal("date is missing")),
    )
    return f"""
        select
            t.file,
            t.line,
            t.raw,
            t.form,
            {is_human} as is_rounded,
            coalesce(cast({utc("t.date")} as date), {day("t.date")}) as measured_on,
            t.filesystem as filesystem,
            t.path as path,
            {owner} as owner,
            t.account as account,
            {stored} as stored_bytes,
            cast(coalesce(measured_on, s.since) as timestamptz) as valid_from_at,
            cast(coalesce(measured_on + 1, s.until) as timestamptz) as valid_to_at,
            {reason} as bad_reason,
            t.skip as skip_reason
        from (select *, count(date) over (partition by file) > 0 as has_date from storage_texts) as t
        join ({_spans(deliveries)}) as s using (file)
    """


def _spans(deliveries: Sequence[Delivery]) -> str:
    """The days for which a reading without a date stands: those of the file's name, else the day of its delivery."""
    rows = []
    for file, delivery in enumerate(deliveries):
        delivered = delivery.delivered_at.date()
        since, until = delivery.declared or (delivered, delivered + timedelta(days=1))
        rows.append(f"({file}, date '{since}', date '{until}')")
    return f"select * from (values {', '.join(rows)}) as spans (file, since, until)"


def _summed() -> str:
    """Objects summed to the folders that were asked for, and of nested totals what is each folder's own."""
    good = "bad_reason is null and skip_reason is null"
    return f"""
        with sums as (
            select min(line) as line, cast(sum(stored_bytes) as bigint) as total,
                file, filesystem, path, owner, account, valid_from_at, valid_to_at
            from storage_judged where form = 'listing' and {good} group by all
        ),

        inner_sums as ({reports.inner_sums("storage_judged")}),

        placed as (
            select r.*, sums.total, coalesce(inner_sums.inner_bytes, 0) as inner_bytes
            from storage_judged as r
            left join sums on r.file = sums.file and r.line = sums.line
            left join inner_sums on r.file = inner_sums.file and r.line = inner_sums.line
        )

        select * exclude (total, inner_bytes) replace (
            case when form = 'listing' and {good} then total else stored_bytes - inner_bytes end as stored_bytes,
            coalesce(bad_reason, case when stored_bytes < inner_bytes then 'smaller than the folders in it' end)
                as bad_reason,
            case when form = 'listing' and {good} and total is null then 'in the sum on the first line of its folder'
                else skip_reason end as skip_reason
        )
        from placed
    """


def _bad_objects(con: DuckDBPyConnection) -> list[Reject]:
    """What bad JSON objects look like: the line on which one begins does not show it."""
    bad = con.execute(
        "select file, line, bad_reason, raw from storage_rows where raw is not null and bad_reason is not null"
    )
    return [Reject(*row) for row in bad.fetchall()]


def _doubted(
    con: DuckDBPyConnection, deliveries: Sequence[Delivery], source: StorageSource, found: list[Found]
) -> list[Found]:
    doubted = list(found)
    for file, rounded, dateless, sizes in con.execute(
        "select file, count(*) filter (is_rounded), count(*) filter (measured_on is null),"
        " count(*) filter (form = 'du' and not is_rounded)"
        " from storage_rows where bad_reason is null and skip_reason is null group by file order by file"
    ).fetchall():
        doubts = []
        if rounded:
            doubts.append(f"{rounded} sizes are rounded for people; let the tool print plain numbers")
        if dateless and not deliveries[file].declared:
            doubts.append("neither the file nor its name has a date: it stands for the day of its delivery")
        if sizes and source.unit is None:
            doubts.append("sizes are taken as bytes, as du -b prints them; without it du prints KiB (see 'unit')")
        doubted[file] = replace(found[file], doubts=(*found[file].doubts, *doubts))
    return doubted
