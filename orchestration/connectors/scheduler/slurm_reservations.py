"""Reservations: what `scontrol show reservation` prints, its JSON, or the history of `sacctmgr show reservation`.

A dump has a handful of reservations, so this is plain Python. Only those that hold nodes for somebody are
landed: maintenance and root's reservations are no team's choice.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

import pyarrow as pa
from duckdb import DuckDBPyConnection

from orchestration.connectors.base import Delivery, Found, Reading, Reject
from orchestration.connectors.scheduler.slurm_json import Record, is_json, read_document, text
from orchestration.connectors.scheduler.slurm_notation import node_names
from orchestration.connectors.scheduler.slurm_text import Asked, Cut, layout_of
from orchestration.connectors.scheduler.slurm_time import read_local
from orchestration.connectors.text import numbered_lines
from orchestration.errors import ApportionError
from orchestration.landing.schemas import RESERVATIONS
from orchestration.settings import SlurmSource

NOBODY = {"", "(null)", "root"}
NOTHING = "No reservations in the system"
ONLY_IDS = "names only the ids of associations, not the accounts or users that it is for"
COLUMNS = ("Name", "NodeNames", "TimeStart", "TimeEnd", "Assocs")

Fields = dict[str, str]
"""A reservation under the names of scontrol."""


def read_reservations(con: DuckDBPyConnection, deliveries: Sequence[Delivery], source: SlurmSource) -> Reading:
    rows: list[dict[str, object]] = []
    rejects: list[Reject] = []
    counts = [0] * len(deliveries)
    found = []
    for file, delivery in enumerate(deliveries):
        variant, reservations = _reservations(file, delivery, source, rejects)
        for line, fields in reservations:
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
        unnamed = sum(row["file"] == file and row["skip_reason"] == ONLY_IDS for row in rows)
        doubts = (f"{unnamed} reservations are left out: sacctmgr {ONLY_IDS}",) if unnamed else ()
        found.append(Found(variant, doubts=doubts))
        counts[file] += sum(reject.file == file for reject in rejects)
    con.register("reservation_blocks", pa.Table.from_pylist(rows, _schema()))
    con.execute("create or replace temp table reservation_rows as from reservation_blocks")
    con.unregister("reservation_blocks")
    return Reading("from reservation_rows", counts, rejects, found=found)


def _schema() -> pa.Schema:
    places = [("file", pa.int64()), ("line", pa.int64()), ("bad_reason", pa.string()), ("skip_reason", pa.string())]
    return pa.schema([*((name, RESERVATIONS.schema.field(name).type) for name in RESERVATIONS.content), *places])


def _reservations(
    file: int, delivery: Delivery, source: SlurmSource, rejects: list[Reject]
) -> tuple[str, list[tuple[int, Fields]]]:
    """What a file is, and its reservations with the line that each begins on."""
    if is_json(delivery):
        listed: list[tuple[int, Fields]] = []
        version = read_document(delivery, "reservations", lambda line, record: listed.append((line, _of_json(record))))
        return f"Slurm JSON, {version or 'of an unknown version'}", listed
    if _is_blocks(delivery):
        return "scontrol reservations", list(_blocks(delivery))
    layout = layout_of(delivery, Asked("sacctmgr reservations", ("TimeStart", "StartTime", "Start"), source.delimiter))
    cut = Cut(file, delivery, Asked("sacctmgr reservations", ("TimeStart",)), layout)
    schema = pa.schema([("file", pa.int64()), ("line", pa.int64()), *((name, pa.string()) for name in COLUMNS)])
    rows = [row for batch in cut.batches(schema) for row in batch.to_pylist()]
    rejects += cut.rejects
    return f"sacctmgr reservations, {layout}", [(row["line"], _of_history(row)) for row in rows]


def _of_json(record: Record) -> Fields:
    named = {
        "ReservationName": "name",
        "Accounts": "accounts",
        "Users": "users",
        "Nodes": "node_list",
        "StartTime": "start_time",
        "EndTime": "end_time",
    }
    return {key: text(record.get(name)) or "" for key, name in named.items()}


def _of_history(row: dict[str, str | None]) -> Fields:
    named = {
        "ReservationName": "Name",
        "Associations": "Assocs",
        "Nodes": "NodeNames",
        "StartTime": "TimeStart",
        "EndTime": "TimeEnd",
    }
    return {key: row[name] or "" for key, name in named.items()}


def _is_blocks(delivery: Delivery) -> bool:
    """Whether a file is scontrol's: lines of `Key=Value`, or the sentence that there are none."""
    for _, lines in numbered_lines(delivery.path):
        for line in lines[:50].to_pylist():
            if line.strip():
                return line.startswith(NOTHING) or "=" in line.split()[0]
    return True


def _blocks(delivery: Delivery) -> Iterator[tuple[int, Fields]]:
    """Each reservation with the line that it begins on: lines that go on with one are indented."""
    begun: tuple[int, Fields] | None = None
    for start, lines in numbered_lines(delivery.path):
        for number, line in enumerate(lines.to_pylist(), start=start):
            if not line.strip() or line.startswith(NOTHING):
                continue
            if begun is None or not line[0].isspace():
                if begun:
                    yield begun
                begun = (number, {})
            for key, equals, value in (word.partition("=") for word in line.split()):
                if equals:
                    # A key that is there twice is from two reservations, of which one lost its beginning.
                    begun[1][key] = f"{begun[1][key]} {value}" if key in begun[1] else value
    if begun:
        yield begun


def _record(fields: Fields, source: SlurmSource) -> dict[str, object]:
    name = fields.get("ReservationName")
    if not name:
        raise ValueError("ReservationName is missing")
    accounts, users = (_somebody(fields.get(key, "")) for key in ("Accounts", "Users"))
    if not accounts and not users:
        only_ids = fields.get("Associations", "").strip(",")
        return {"reservation_name": name, "skip_reason": ONLY_IDS if only_ids else "held for nobody but root"}
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


def _somebody(names: str) -> str | None:
    """The accounts or users that are let in; `-name` keeps somebody out and holds nothing for anybody."""
    named = [name for name in names.split(",") if name not in NOBODY and not name.startswith("-")]
    return ",".join(sorted(named)) or None


def _time(fields: Fields, key: str, source: SlurmSource) -> datetime:
    try:
        at = read_local(fields.get(key, ""), source.timezone)
    except ValueError:
        raise ValueError(f"{key} is not a time: {fields[key]}") from None
    if at is None:
        raise ValueError(f"{key} is missing")
    return at
