"""Each file of a source, read as landing would read it, judged, and forgotten again."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from pathlib import Path

from duckdb import DuckDBPyConnection

from orchestration.check.bills import Bills
from orchestration.check.loaded import Loaded
from orchestration.check.policy import Policy
from orchestration.connectors import feeds
from orchestration.errors import ApportionError
from orchestration.landing import beyond
from orchestration.landing.deliveries import discover
from orchestration.landing.engine import session
from orchestration.landing.index import Index
from orchestration.landing.quarantine import BadRow
from orchestration.landing.spans import FOREVER
from orchestration.landing.stage import FeedLoad, begin, drop, read_files
from orchestration.settings import Source
from orchestration.workspace import Workspace

SHOWN_BAD_ROWS = 3


@dataclass(frozen=True)
class Total:
    """What a file charges under one category."""

    category: str
    currency: str
    lines: int
    billed: Decimal
    effective: Decimal


@dataclass
class FileCheck:
    source: str
    kind: str
    table: str
    path: Path
    problem: str | None = None
    """Why nothing of it could be read."""
    remedy: str | None = None
    variant: str | None = None
    first_day: date | None = None
    last_day: date | None = None
    """None while it has no end."""
    rows: int = 0
    bad: int = 0
    skipped: int = 0
    too_many_bad: bool = False
    bad_rows: list[BadRow] = field(default_factory=list)
    """The first few."""
    totals: list[Total] = field(default_factory=list)
    unknown_columns: tuple[str, ...] = ()
    doubts: list[str] = field(default_factory=list)
    unmapped: list[str] = field(default_factory=list)
    """Accounts that no payer rule claims, services that no cost rule explains."""
    overlaps: list[str] = field(default_factory=list)
    """What of it is loaded already, and what it would replace."""

    @property
    def has_failed(self) -> bool:
        return self.problem is not None or self.too_many_bad

    @property
    def has_remarks(self) -> bool:
        return self.has_failed or bool(self.bad or self.unknown_columns or self.doubts or self.unmapped)


def check_source(workspace: Workspace, source: Source, policy: Policy) -> Iterator[FileCheck]:
    """Every file of a source; nothing of the workspace is changed."""
    loaded = Loaded(workspace.data, source)
    with tempfile.TemporaryDirectory() as scratch, session(Path(scratch)) as con:
        index = Index.empty(source, Path(scratch))
        for feed in feeds(source):
            try:
                deliveries = discover(feed.pattern, source=source.name, optional=source.optional)
            except ApportionError as error:
                yield FileCheck(source.name, source.kind, feed.table, Path(feed.pattern), error.message, error.remedy)
                continue
            load = begin(con, feed, deliveries, index)
            bills = Bills(load)
            for rank, delivery in enumerate(deliveries):
                found = FileCheck(source.name, source.kind, feed.table, delivery.path)
                try:
                    read_files(con, load, [rank], index)
                except ApportionError as error:
                    found.problem, found.remedy = error.message, error.remedy
                else:
                    _describe(con, found, load, rank, source)
                    found.unmapped += policy.unmapped(con, feed.table, load.stage, rank)
                    found.overlaps += loaded.overlaps(con, load, rank)
                    if feed.table == "charges":
                        found.doubts += bills.doubts(con, rank)
                drop(con, load, {rank})
                yield found


def _describe(con: DuckDBPyConnection, found: FileCheck, load: FeedLoad, rank: int, source: Source) -> None:
    found.rows, found.bad, found.skipped = load.counts[rank], load.bad[rank], load.skipped[rank]
    found.too_many_bad = found.bad > source.max_bad_share * found.rows
    found.bad_rows = load.bad_rows[rank][:SHOWN_BAD_ROWS]
    if rank in load.found:
        of_file = load.found[rank]
        found.variant, found.unknown_columns = of_file.variant, of_file.unknown_columns
        found.doubts += of_file.doubts
    spans = load.known(rank).days
    found.first_day = spans[0][0]
    found.last_day = None if spans[-1][1] == FOREVER else date.fromordinal(spans[-1][1].toordinal() - 1)
    if load.feed.table == "charges":
        found.totals = [
            Total(*row)
            for row in con.execute(
                f"""
                select charge_category, currency, count(*) filter (line <> {beyond.LINE}), sum(billed_cost),
                    sum(coalesce(effective_cost, billed_cost))
                from {load.stage} where rank = {rank} group by all order by currency, charge_category
                """
            ).fetchall()
        ]
