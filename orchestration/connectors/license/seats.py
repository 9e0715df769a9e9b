"""Licences in use: tables of seats and of tokens, logs of FlexNet servers, and what `lmstat -a` prints."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from duckdb import DuckDBPyConnection

from orchestration.connectors.base import Delivery, Feed, Found, Reading, Reject
from orchestration.connectors.license import flexnet, lmstat, tokens
from orchestration.connectors.sql import backwards, first_reason, literal, missing, unreadable, utc, whole
from orchestration.connectors.tables import Layout, by_name, first_line, is_parquet, load_table
from orchestration.settings import SeatsSource

REQUIRED = ("product", "user", "seats", "checked_out", "checked_in")
OPTIONAL = ("account", "host")
COLUMNS = (
    *("file", "line", "product", "user_name", "account", "host_name", "seats", "checked_out_at", "checked_in_at"),
    *("bad_reason", "skip_reason"),
)

Loaded = tuple[str, list[int], list[Found], list[Reject]]
"""SQL for the rows of files of one form, and by file: rows, what it is, what could not be cut."""


def feeds(source: SeatsSource) -> list[Feed]:
    def read(con: DuckDBPyConnection, deliveries: Sequence[Delivery]) -> Reading:
        return _read(con, deliveries, source)

    return [Feed("license_usage", source.path, read)]


def _read(con: DuckDBPyConnection, deliveries: Sequence[Delivery], source: SeatsSource) -> Reading:
    counts, found, rejects, parts = [0] * len(deliveries), [Found("")] * len(deliveries), [], []
    loaders = [_loader(delivery) for delivery in deliveries]
    for place, loader in enumerate(dict.fromkeys(loaders)):
        files = [file for file, own in enumerate(loaders) if own is loader]
        sql, own_counts, own_found, own_rejects = loader(con, [deliveries[file] for file in files], source)
        rows = f"select * replace ([{', '.join(map(str, files))}][file + 1] as file) from ({sql})"
        con.execute(
            f"create or replace temp table license_rows_{place} as"
            f" select {', '.join(f'l.{name}' for name in COLUMNS)},"
            " case when l.checked_in_at is null"
            " then greatest(coalesce(l.as_of_at, d.delivered_at), l.checked_out_at) end as as_of_at"
            f" from ({rows}) as l join deliveries as d using (file)"
        )
        parts.append(f"from license_rows_{place}")
        for file, count, what in zip(files, own_counts, own_found, strict=True):
            counts[file], found[file] = count, what
        rejects += [replace(reject, file=files[reject.file]) for reject in own_rejects]
    return Reading(" union all by name ".join(parts), counts, rejects, found=found)


def _loader(delivery: Delivery) -> Callable[[DuckDBPyConnection, Sequence[Delivery], SeatsSource], Loaded]:
    if is_parquet(delivery):
        return _load_tables
    _, line = first_line(delivery)
    return next((form.load for form in (flexnet, lmstat) if form.begins(line)), _load_tables)


def _load_tables(con: DuckDBPyConnection, deliveries: Sequence[Delivery], source: SeatsSource) -> Loaded:
    seats = by_name(REQUIRED, OPTIONAL, "licence seats")
    used_up = by_name(tokens.REQUIRED, tokens.OPTIONAL, "licence tokens")

    def understand(delivery: Delivery, header: Sequence[str]) -> Layout:
        names = {name.strip().lower() for name in header}
        if "tokens" not in names or "seats" in names:
            return seats(delivery, header)
        layout = used_up(delivery, header)
        tokens.require_a_time(delivery, layout)
        return layout

    columns = dict.fromkeys([*REQUIRED, *OPTIONAL, *tokens.REQUIRED, *tokens.OPTIONAL])
    loaded = load_table(con, "license_lines", deliveries, list(columns), understand)
    of_tokens = [file for file, layout in enumerate(loaded.layouts) if "tokens" in layout.places]
    of_seats = [file for file in range(len(deliveries)) if file not in of_tokens]
    parts = [
        select(f"(select * from license_lines where file in ({', '.join(map(str, files))}))")
        for select, files in ((_select, of_seats), (tokens.select, of_tokens))
        if files
    ]
    return " union all by name ".join(parts), loaded.counts, loaded.found, loaded.rejects


def _select(lines: str) -> str:
    reason = first_reason(
        missing("l.product", "product"),
        missing("l.user", "user"),
        missing("l.seats", "seats"),
        unreadable("l.seats", whole("l.seats"), "seats", "a whole number"),
        (f"{whole('l.seats')} < 0", literal("seats is negative")),
        missing("l.checked_out", "checked_out"),
        unreadable("l.checked_out", "checked_out_at", "checked_out", "a time"),
        unreadable("l.checked_in", "checked_in_at", "checked_in", "a time"),
        backwards("checked_out_at", "checked_in_at"),
    )
    return f"""
        select
            l.file,
            l.line,
            l.product as product,
            l.user as user_name,
            l.account as account,
            l.host as host_name,
            {whole("l.seats")} as seats,
            {utc("l.checked_out")} as checked_out_at,
            {utc("l.checked_in")} as checked_in_at,
            cast(null as timestamptz) as as_of_at,
            {reason} as bad_reason,
            cast(null as varchar) as skip_reason
        from {lines} as l
    """
