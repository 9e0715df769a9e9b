"""Landing a window of one source: read what has a say in it, decide, write its days.

Everything is read and judged before the first day is touched; a source that is too broken to trust changes
nothing.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import replace
from datetime import date
from pathlib import Path

from duckdb import DuckDBPyConnection

from orchestration.connectors import feeds
from orchestration.connectors.sql import constant, file_literal, literal
from orchestration.errors import ApportionError
from orchestration.landing import beyond, quarantine
from orchestration.landing import days as day_files
from orchestration.landing.copies import refuse_copies
from orchestration.landing.deliveries import discover
from orchestration.landing.engine import session
from orchestration.landing.index import Index
from orchestration.landing.live import StandingCharges, charges_on, make_live, stand, winners
from orchestration.landing.report import LandingReport, TableReport
from orchestration.landing.schemas import TABLES
from orchestration.landing.spans import ONE_DAY, Span, days
from orchestration.landing.stage import NOT_STAGED, FeedLoad, load_feed, register_deliveries
from orchestration.settings import Source

DayContent = tuple[int, str]
"""Rows and content hash of a day."""
EMPTY: DayContent = (0, "0")
BILL_DAYS_AT_ONCE = 2
"""The last steps of a day, its order and its file, are one thread's work. Each day at work needs its own memory."""


def land(source: Source, window_start: date, window_end: date, data_dir: Path) -> LandingReport:
    """Lands the UTC days [window_start, window_end) of a source; equal deliveries give equal days, always."""
    window = (window_start, window_end)
    if window_end <= window_start:
        raise ApportionError(
            f"source '{source.name}': the window {window_start} to {window_end} is empty",
            "the end is exclusive: to land one day, end on the next",
        )
    source_feeds = feeds(source)
    day_files.clean_up(data_dir, source.name, {feed.table for feed in source_feeds})
    with session(data_dir) as con, ExitStack() as at_work:
        index = Index.load(source, data_dir)
        loads = []
        for feed in source_feeds:
            if feed.pull:
                feed.pull(data_dir)
            found = discover(feed.pattern, source=source.name, optional=source.optional)
            loads.append(load_feed(con, feed, found, window, index))
        index.save()
        _quarantine(con, source, loads, data_dir)
        _refuse_if_broken(source, loads, data_dir)
        report = LandingReport(source.name, window_start, window_end)
        _write(con, source, loads, window, data_dir, report, at_work)
    return report


def _quarantine(con: DuckDBPyConnection, source: Source, loads: list[FeedLoad], data_dir: Path) -> None:
    folder = data_dir / "quarantine" / source.name
    quarantine.forget_all_but(
        folder, (quarantine.file_name(delivery) for load in loads for delivery in load.deliveries)
    )
    for load in loads:
        for rank, bad in load.bad_rows.items():
            quarantine.write(con, folder, load.feed.table, load.deliveries[rank], bad, load.bad[rank])


def _refuse_if_broken(source: Source, loads: list[FeedLoad], data_dir: Path) -> None:
    read = sum(load.counts[rank] for load in loads for rank in load.relevant)
    bad = sum(load.bad[rank] for load in loads for rank in load.relevant)
    if bad <= source.max_bad_share * read:
        return
    load, rank = max(
        ((load, rank) for load in loads for rank in load.relevant), key=lambda found: found[0].bad[found[1]]
    )
    first = "; ".join(f"line {row.line}: {row.reason}" for row in load.bad_rows[rank][:3])
    raise ApportionError(
        f"source '{source.name}': {bad} of {read} rows cannot be read ({bad / read:.1%}, allowed"
        f" {source.max_bad_share:.1%}), most of them in {load.deliveries[rank].path}"
        f" ({load.bad[rank]} of {load.counts[rank]}): {first}."
        " Nothing of this source was landed",
        f"look at {data_dir / 'quarantine' / source.name}, deliver the file again, or raise 'max_bad_share'"
        " of the source",
    )


def _write(
    con: DuckDBPyConnection,
    source: Source,
    loads: list[FeedLoad],
    window: Span,
    data_dir: Path,
    report: LandingReport,
    at_work: ExitStack,
) -> None:
    live: dict[str, str] = {}
    written: dict[str, Iterator[tuple[int, DayContent]]] = {}
    content: dict[str, dict[date, DayContent]] = {}
    for load in loads:
        table = load.feed.table
        report.files_known += len(load.deliveries)
        report.files_read += [load.deliveries[rank].name for rank in sorted(load.counts)]
        report.notes |= load.notes
        report.variants.update(found.variant for found in load.found.values())
        if table in NOT_STAGED:
            report.tables[table] = _account_unstaged(load, window)
        elif load.bills:
            charges = stand(con, load, window)
            refuse_copies(con, load, charges)
            ahead = _write_bill_days(con, source, load, charges, window, data_dir)
            written[table] = at_work.enter_context(closing(ahead))
            report.tables[table] = TableReport()  # accounted for when its days are written
        else:
            live[table] = make_live(con, load, window)
            report.tables[table] = _account_staged(con, load, live[table], window)
            content[table] = _content(con, load, live[table])
    bad_on = {load.feed.table: _bad_by_day(load, window) for load in loads}
    for day in days([window]):
        before = day_files.landed_hashes(data_dir, source.name, day)
        landings = []
        for load in loads:
            table = load.feed.table
            if table in NOT_STAGED:
                size, (rows, content_hash) = _write_unstaged(con, source, load, day, data_dir)
            elif load.bills:
                size, (rows, content_hash) = next(written[table])
            else:
                rows, content_hash = content[table].get(day, EMPTY)
                size = _write_staged(con, source, load, live[table], day, rows, data_dir)
            report.tables[table].rows += rows
            report.tables[table].bytes += size
            landings.append(
                {
                    "source": source.name,
                    "table_name": table,
                    "rows": rows,
                    "quarantined": bad_on[table].get(day, 0),
                    "content_hash": content_hash,
                }
            )
        day_files.write_landings(data_dir, source.name, day, landings)
        if any(entry["rows"] for entry in landings):
            report.days_written.append(day)
        after = {entry["table_name"]: entry["content_hash"] for entry in landings}
        if after != (before or dict.fromkeys(after, EMPTY[1])):
            report.days_changed.append(day)
    for load in loads:
        if load.bills:
            _account_charges(con, source, load, window, data_dir, report)


def _columns(table: str) -> str:
    return ", ".join(f'"{name}"' for name in TABLES[table].content)


def _hash(table: str) -> str:
    """SQL for a hash over rows in any order, of what they say and not of where they came from."""
    # The key of a bill line is made of all else that it says.
    told = "charge_key, is_final" if table == "charges" else _columns(table)
    return f"coalesce(format('{{:x}}', sum(hash({told}))), '0')"


def _content(con: DuckDBPyConnection, load: FeedLoad, live: str) -> dict[date, DayContent]:
    found = con.execute(f"select date, count(*), {_hash(load.feed.table)} from {live} group by date").fetchall()
    return {day: (rows, content_hash) for day, rows, content_hash in found}


def _write_staged(
    con: DuckDBPyConnection, source: Source, load: FeedLoad, live: str, day: date, rows: int, data_dir: Path
) -> int:
    target = day_files.day_file(data_dir, load.feed.table, day, source.name)
    if not rows:
        day_files.remove_day(target)
        return 0
    rows_of_day = f"select * from {live} where date = date '{day}' order by rank, line, \"{load.table.content[1]}\""
    return day_files.write_day(con, target, _with_provenance(source, load, rows_of_day))


def _with_provenance(source: Source, load: FeedLoad, rows: str) -> str:
    return (
        f"select {_columns(load.feed.table)}, {literal(source.name)} as source, delivery, line, delivered_at, date"
        f" from ({rows})"
    )


def _write_bill_days(
    con: DuckDBPyConnection, source: Source, load: FeedLoad, charges: StandingCharges, window: Span, data_dir: Path
) -> Generator[tuple[int, DayContent], None, None]:
    """The days of a bill in their order, a few of them under way at any time. Once closed, no other one is begun."""

    def write(day: date) -> tuple[int, DayContent]:
        with con.cursor() as own:
            return _write_charges(own, source, load, charges, day, data_dir)

    with ThreadPoolExecutor(BILL_DAYS_AT_ONCE) as pool:
        yield from pool.map(write, days([window]))


def _write_charges(
    con: DuckDBPyConnection, source: Source, load: FeedLoad, charges: StandingCharges, day: date, data_dir: Path
) -> tuple[int, DayContent]:
    """Bill lines are decided upon, ordered and written by day, so that a month needs no more memory than a few days."""
    target = day_files.day_file(data_dir, "charges", day, source.name)
    if day not in charges.days:
        day_files.remove_day(target)
        return 0, EMPTY
    ordered = f"{charges_on(load, charges, day)} order by rank, line, charge_key"
    size = day_files.write_day(con, target, _with_provenance(source, load, ordered))
    content = _content_of_file(con, "charges", target)
    if content == EMPTY:
        day_files.remove_day(target)
        return 0, EMPTY
    return size, content


def _write_unstaged(
    con: DuckDBPyConnection, source: Source, load: FeedLoad, day: date, data_dir: Path
) -> tuple[int, DayContent]:
    """One pass from the delivered files to the day's file, in the order in which they were delivered."""
    table = load.feed.table
    target = day_files.day_file(data_dir, table, day, source.name)
    ranks = [rank for rank in winners(load, day) if load.day_rows[rank, day]]
    if not ranks:
        day_files.remove_day(target)
        return 0, EMPTY
    chosen = [load.deliveries[rank] for rank in ranks]
    register_deliveries(con, chosen, ranks, load.feed)
    reading = load.feed.read(con, chosen)
    which = " ".join(f"when {file} then {literal(d.name)}" for file, d in enumerate(chosen))
    name = constant(*dict.fromkeys(d.name for d in chosen), choice=f"case file {which} end")
    times = " ".join(f"when {file} then timestamptz '{d.delivered_at}'" for file, d in enumerate(chosen))
    starts = load.table.starts
    size = day_files.write_day(
        con,
        target,
        f"select {_columns(table)}, {constant(source.name)} as source, {name} as delivery,"
        f" line, case file {times} end as delivered_at, date '{day}' as date from ({reading.rows})"
        f" where bad_reason is null"
        f" and {starts} >= timestamptz '{day}' and {starts} < timestamptz '{day + ONE_DAY}'",
    )
    return size, _content_of_file(con, table, target)


def _content_of_file(con: DuckDBPyConnection, table: str, target: Path) -> DayContent:
    return con.execute(
        f"select count(*), {_hash(table)} from read_parquet({file_literal(target)}, hive_partitioning = false)"
    ).fetchall()[0]


def _bad_by_day(load: FeedLoad, window: Span) -> dict[date, int]:
    """Bad rows have no time of their own; each counts once, on the first day that its file speaks about.

    Only an inventory is in force on every day, and so is what is missing from it.
    """
    if load.feed.table == "node_inventory":
        return dict.fromkeys(days([window]), sum(load.bad[rank] for rank in load.relevant))
    found: dict[date, int] = {}
    for rank in load.relevant:
        declared = load.deliveries[rank].declared
        day = declared[0] if declared else load.known(rank).days[0][0]
        found[day] = found.get(day, 0) + load.bad[rank]
    return found


def _account_staged(con: DuckDBPyConnection, load: FeedLoad, live: str, window: Span) -> TableReport:
    good, inside = con.execute(
        f"""
        select count(*), count(*) filter (is_inside) from (
            select bool_or(
                (first_day < $until and coalesce(last_day, first_day) >= $since)
                or (first_day < $until and last_day is null)
                or (also_first_day < $until and also_last_day >= $since)
            ) as is_inside
            from {load.stage} where line <> {beyond.LINE} group by rank, line
        )
        """,
        {"since": window[0], "until": window[1]},
    ).fetchall()[0]
    ((landed,),) = con.execute(
        f"select count(*) from (select distinct delivery, line from {live} where line <> {beyond.LINE})"
    ).fetchall()
    return _report(load, landed=landed, superseded=inside - landed, outside=good - inside)


def _account_charges(
    con: DuckDBPyConnection, source: Source, load: FeedLoad, window: Span, data_dir: Path, report: LandingReport
) -> None:
    """Counts what was written, as any reader would."""
    files = [day_files.day_file(data_dir, "charges", day, source.name) for day in days([window])]
    written = ", ".join(file_literal(file) for file in files if file.exists())
    con.execute(
        "create or replace temp view written_charges as "
        + (f"from read_parquet([{written}], hive_partitioning = false)" if written else f"from {load.stage} limit 0")
    )
    before = report.tables["charges"]
    report.tables["charges"] = replace(
        _account_staged(con, load, "written_charges", window), rows=before.rows, bytes=before.bytes
    )
    report.billed = _billed(con)


def _account_unstaged(load: FeedLoad, window: Span) -> TableReport:
    inside = {key: rows for key, rows in load.day_rows.items() if window[0] <= key[1] < window[1]}
    landed = sum(rows for (rank, day), rows in inside.items() if rank in winners(load, day))
    return _report(
        load,
        landed=landed,
        superseded=sum(inside.values()) - landed,
        outside=load.day_rows.total() - sum(inside.values()),
    )


def _report(load: FeedLoad, *, landed: int, superseded: int, outside: int) -> TableReport:
    return TableReport(
        read=load.counts.total(),
        landed=landed,
        quarantined=sum(load.bad[rank] for rank in load.counts),
        skipped=load.skipped.total(),
        superseded=superseded,
        outside=outside,
    )


def _billed(con: DuckDBPyConnection) -> dict:
    """Each charge once, however many of its days were written; most have only one, which need not be compared."""
    has_one_day = (
        "charge_category = 'Usage'"
        " and epoch_us(charge_start_at) // 86400000000 = (epoch_us(charge_end_at) - 1) // 86400000000"
    )
    return dict(
        con.execute(
            f"""
            select currency, sum(billed_cost)
            from (
                select currency, billed_cost from written_charges where {has_one_day}
                union all
                select currency, billed_cost from (
                    select distinct on (charge_key) currency, billed_cost from written_charges where not ({has_one_day})
                )
            )
            group by currency
            """
        ).fetchall()
    )
