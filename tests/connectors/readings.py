"""What a connector makes of files, without landing their days: for tests that read thousands of them."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

from orchestration.connectors import feeds
from orchestration.connectors.base import Found
from orchestration.landing.deliveries import discover
from orchestration.landing.engine import session
from orchestration.landing.stage import register_deliveries
from orchestration.settings import Source


@dataclass(frozen=True)
class ReadBill:
    charges: list[dict]
    """Good rows, with their `file` and `line`."""
    bad: dict[tuple[int, int], tuple[str, str | None]]
    """Reason and, if the connector keeps it, text of each row that is put aside, by file and line."""
    found: list[Found]

    def total(self, column: str = "billed_cost") -> Decimal:
        return sum((charge[column] for charge in self.charges if charge[column] is not None), Decimal())


def read_bill(source: Source, data_dir: Path) -> ReadBill:
    """Reads all files of a source; every row of them must be good, bad or skipped, and is so once."""
    (feed,) = feeds(source)
    deliveries = discover(feed.pattern, source=source.name, optional=False)
    with session(data_dir) as con:
        register_deliveries(con, deliveries, list(range(len(deliveries))), feed)
        reading = feed.read(con, deliveries)
        # Rounded as landing rounds each line.
        nine = ", ".join(
            f"cast({cost}_cost as decimal(38, 9)) as {cost}_cost" for cost in ("list", "billed", "effective")
        )
        rows = con.execute(f"select * replace ({nine}) from ({reading.rows})")
        names = [column[0] for column in rows.description]
        charges = [dict(zip(names, row, strict=True)) for row in rows.fetchall()]
    bad = {(reject.file, reject.line): (reject.reason, reject.raw) for reject in reading.rejects}
    assert len(bad) == len(reading.rejects), "a line is rejected twice"
    bad |= {(row["file"], row["line"]): (row["bad_reason"], None) for row in charges if row["bad_reason"]}
    good = [row for row in charges if not row["bad_reason"]]
    for file, count in enumerate(reading.counts):
        lines = {row["line"] for row in good if row["file"] == file}
        aside = {line for where, line in bad if where == file}
        assert not lines & aside, "a row is read and put aside"
        assert count == len(lines) + len(aside), f"rows were lost in {deliveries[file].name}"
    return ReadBill([row for row in good if not row["skip_reason"]], bad, reading.found)
