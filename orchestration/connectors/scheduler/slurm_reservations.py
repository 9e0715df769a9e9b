"""`scontrol show reservation`: blocks of `Key=Value`, on several lines or (with -o) on one.

A dump has a handful of reservations, so this is plain Python. Only those that hold nodes for somebody are
landed: maintenance and root's reservations are no team's choice.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

import pyarrow as pa
from duckdb import DuckDBPyConnection

from orchestration.connectors.base import Delivery, Reading
from orchestration.connectors.scheduler.notation import node_names
from orchestration.connectors.scheduler.slurm_time import read_local
from orchestration.connectors.text import numbered_lines
from orchestration.errors import ApportionError
from orchestration.landing.schemas import RESERVATIONS
from orchestration.settings import SlurmSource

NOBODY = {"", "(null)", "root"}


def read_reservations(con: DuckDBPyConnection, deliveries: Sequence[Delivery], source: SlurmSource) -> Reading:
    rows: list[dict[str, object]] = []
    counts = [0] * len(deliveries)
    for file, delivery in enumerate(deliveries):
        for line, fields in _blocks(delivery):
            counts[file] += 1
            place = {"file": file, "line": line, "bad_reason": None, "skip_reason": None}
            try:
                rows.append({**place, **_record(fields, source)})
            except LookupError as error:
                raise ApportionError(
                    f"{delivery.path}, line {line}: a local time without a zone: {error.args[0]}",
                    f"add 'timezone: <IANA name>' to source '{source.name}'",
                ) from None
            except ValueError as error:
                rows.append({**place, "bad_reason": str(error)})
    places = [
        ("file", pa.int64()),
        ("line", pa.int64()),
        ("bad_reason", pa.string()),
        ("skip_reason", pa.string()),
    ]
    schema = pa.schema([*((name, RESERVATIONS.schema.field(name).type) for name in RESERVATIONS.content), *places])
    con.register("reservation_blocks", pa.Table.from_pylist(rows, schema))
    con.execute("create or replace temp table reservation_rows as from reservation_blocks")
    con.unregister("reservation_blocks")
    return Reading("from reservation_rows", counts)


def _blocks(delivery: Delivery) -> Iterator[tuple[int, dict[str, str]]]:
    """Each reservation with the line that it begins on."""
    begun: tuple[int, dict[str, str]] | None = None
    for start, lines in numbered_lines(delivery.path):
        for number, text in enumerate(lines.to_pylist(), start=start):
            fields = dict(word.split("=", 1) for word in text.split() if "=" in word)
            if "ReservationName" in fields:
                if begun:
                    yield begun
                begun = (number, fields)
            elif begun:
                begun[1].update(fields)
            elif fields:
                # Something like a block whose first line is lost: better one row too many in quarantine.
                begun = (number, fields)
    if begun:
        yield begun


def _record(fields: dict[str, str], source: SlurmSource) -> dict[str, object]:
    name = fields.get("ReservationName")
    if not name:
        raise ValueError("ReservationName is missing")
    accounts, users = (_somebody(fields.get(key, "")) for key in ("Accounts", "Users"))
    if not accounts and not users:
        return {"reservation_name": name, "skip_reason": "held for nobody but root"}
    start, end = (_time(fields, key, source) for key in ("StartTime", "EndTime"))
    if end < start:
        raise ValueError("ends before it starts")
    return {
        "cluster_id": source.cluster,
        "reservation_name": name,
        "node_names": node_names(fields.get("Nodes", ""))[0],
        "accounts": accounts,
        "users": users,
        "start_at": start,
        "end_at": end,
    }


def _somebody(text: str) -> str | None:
    """The accounts or users that are let in; `-name` keeps somebody out and holds nothing for anybody."""
    named = [name for name in text.split(",") if name not in NOBODY and not name.startswith("-")]
    return ",".join(sorted(named)) or None


def _time(fields: dict[str, str], key: str, source: SlurmSource) -> datetime:
    try:
        at = read_local(fields.get(key, ""), source.timezone)
    except ValueError:
        raise ValueError(f"{key} is not a time: {fields[key]}") from None
    if at is None:
        raise ValueError(f"{key} is missing")
    return at
