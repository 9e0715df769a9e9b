"""What a workspace has loaded already, as far as a file speaks of it again."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import duckdb
from duckdb import DuckDBPyConnection

from orchestration.connectors.sql import literal
from orchestration.landing.days import landed_days
from orchestration.landing.history import content_hash
from orchestration.landing.spans import FOREVER
from orchestration.landing.stage import FeedLoad
from orchestration.settings import Source


class Loaded:
    def __init__(self, data_dir: Path, source: Source) -> None:
        self._data_dir, self._source = data_dir, source
        files = sorted((data_dir / "landing" / "deliveries").glob(f"date=*/{source.name}.parquet"))
        self._history = duckdb.connect()
        if files:
            listed = ", ".join(literal(str(file)) for file in files)
            self._history.execute(f"create table history as from read_parquet([{listed}], hive_partitioning = false)")
        self._known = bool(files)
        self._days = landed_days(data_dir, source.name)

    def overlaps(self, con: DuckDBPyConnection, load: FeedLoad, rank: int) -> list[str]:
        delivery = load.deliveries[rank]
        if self._known and self._is_loaded(load.feed.table, delivery.name, content_hash(delivery.path)):
            return ["loaded already, as it is"]
        if load.feed.table == "charges":
            return self._replaced_bills(con, load, rank)
        spans = load.known(rank).days
        again = sorted(day for day in self._days if any(start <= day < end for start, end in spans))
        if not again:
            return []
        total = sum((end - start).days for start, end in spans if end != FOREVER) or len(again)
        return [f"{len(again)} of its {total} days are loaded, {again[0]} to {again[-1]}"]

    def _is_loaded(self, table: str, name: str, digest: str) -> bool:
        found = self._history.execute(
            "select count(*) from history where table_name = ? and delivery = ? and content_hash = ?",
            [table, name, digest],
        ).fetchall()
        return found[0][0] > 0

    def _replaced_bills(self, con: DuckDBPyConnection, load: FeedLoad, rank: int) -> list[str]:
        if not self._known or not load.known(rank).claims:
            return []
        delivery, sentences = load.deliveries[rank], []
        for invoice, currency, rows, billed in con.execute(
            f"""
            select invoice_id, currency, count(*), sum(billed_cost) from {load.stage} where rank = {rank}
            group by all order by all
            """
        ).fetchall():
            for name, old_rows, old_billed in self._history.execute(
                """
                select delivery, sum(rows), sum(billed_cost) from history
                where table_name = 'charges' and invoice_id = ? and currency = ? and delivered_at < ?
                group by delivery, delivered_at order by delivered_at desc limit 1
                """,
                [invoice, currency, delivery.delivered_at],
            ).fetchall():
                sentences.append(
                    f"invoice {invoice}: {name} had {old_rows} lines and {_amount(old_billed)} {currency},"
                    f" this has {rows} and {_amount(billed)}"
                )
        return sentences


def _amount(amount: Decimal) -> str:
    return f"{amount:,.2f}"
