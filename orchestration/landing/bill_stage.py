"""Bill lines between their files and their days: Parquet files that SQL reads one day at a time.

Bills are the longest tables that are staged, and a temp table of one would be held in memory or spilled block by block
for each of its days. Here each reading is written once, good and bad lines alike, in groups that are small enough to be
passed over when none of their lines is of the day that is asked for.
"""

from __future__ import annotations

from pathlib import Path

from duckdb import DuckDBPyConnection

from orchestration.connectors.spool import new_spool_file
from orchestration.connectors.sql import file_literal, literal
from orchestration.landing.schemas import CHARGES, sql_type

COSTS = ("list_cost", "billed_cost", "effective_cost")
PARTS = "format parquet, compression lz4_raw, row_group_size 16384"
PROVENANCE = "rank, delivery, stream, line, delivered_at"
DAYS = "first_day, last_day, also_first_day, also_last_day, only_day"


def _type(name: str) -> str:
    return sql_type(CHARGES.schema.field(name).type)


SAID = "format('{{:016x}}', hash({}))".format(
    ", ".join(name for name in CHARGES.content if name not in ("charge_key", "is_final"))
)
"""A bill line is known by what it says, and by its place among lines that say the same: the same line keeps its key
when the bill is delivered again, and days that were built before and after still speak of one line. The database's own
hash costs a quarter of an MD5 over the text of all columns."""


def rest_of(cost: str) -> str:
    """The column with what rounding a cost to nine decimals leaves over."""
    return f"{cost}_rest"


class BillStage:
    """The staged lines of a feed, as the view `name`. Lines that are in no file are in the table `<name>_added`.

    `part` and `part_row` tell lines apart, also those of which all else is the same. Nothing here is a temporary object
    of the database: several cursors read it at once, and each has only its own of those.
    """

    def __init__(self, con: DuckDBPyConnection, name: str, columns: str, said: str) -> None:
        """`said` is SQL for the column of that name."""
        self._con, self._name, self._said = con, name, said
        self._parts: dict[Path, set[int]] = {}
        self.added = f"{name}_added"
        con.execute(f"create or replace table {self.added} ({columns})")
        self._show()

    def add(self, rows: str, ranks: set[int], day_columns: str) -> str:
        """Stages what was read; returns all of it, in SQL, with lines that are bad or of no interest."""
        part = new_spool_file(self._con, self._name)
        content = ", ".join(
            f"r.{name}" if name in COSTS else f"cast(r.{name} as {_type(name)}) as {name}" for name in CHARGES.content
        )
        rounded = ", ".join(f"cast({cost} as {_type(cost)}) as {cost}" for cost in COSTS)
        rests = ", ".join(f"{cost} - cast({cost} as {_type(cost)}) as {rest_of(cost)}" for cost in COSTS)
        self._con.execute(
            f"""
            copy (
                select *, {self._said} as said
                from (
                    select * replace ({rounded}), {rests}
                    from (
                        select {content}, r.file, r.line, r.bad_reason, r.skip_reason, d.rank, d.name as delivery,
                            d.stream, d.delivered_at, {day_columns}
                        from ({rows}) as r join deliveries as d using (file)
                    )
                )
            ) to {literal(str(part))} ({PARTS})
            """
        )
        self._parts[part] = ranks
        self._show()
        return f"(select * exclude (rank, delivery, stream, delivered_at) from read_parquet({file_literal(part)}))"

    def drop(self, ranks: set[int]) -> None:
        self._con.execute(f"delete from {self.added} where rank in ({', '.join(map(str, ranks))})")
        for part, kept in list(self._parts.items()):
            kept -= ranks
            if not kept:
                part.unlink()
                del self._parts[part]
        self._show()

    def _show(self) -> None:
        content = ", ".join(CHARGES.content)
        parts = "".join(
            f" union all select {content}, {PROVENANCE}, {DAYS}, said, {number} as part, file_row_number as part_row"
            f" from read_parquet({file_literal(part)}, file_row_number = true)"
            " where bad_reason is null and skip_reason is null"
            f" and rank in ({', '.join(map(str, sorted(ranks)))})"
            for number, (part, ranks) in enumerate(self._parts.items(), 1)
        )
        added = f"select *, {self._said} as said, 0 as part, rowid as part_row from {self.added}"
        self._con.execute(f"create or replace view {self._name} as {added}{parts}")
