"""JSON objects as a table of texts: one a line, one after the other, or in an array."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from duckdb import DuckDBPyConnection

from orchestration.connectors.base import Delivery, Reject
from orchestration.connectors.billing.json_records import records
from orchestration.connectors.sql import identifier, literal
from orchestration.connectors.text import Sink
from orchestration.errors import ApportionError

FLUSH_RECORDS = 20_000
SCHEMA = pa.schema([("file", pa.int64()), ("line", pa.int64()), ("raw", pa.string())])


def load_objects(
    con: DuckDBPyConnection, table: str, deliveries: Sequence[Delivery]
) -> tuple[list[list[str]], list[int], list[Reject]]:
    """Objects into the temp table (file, line, raw); by file its keys, which are its header, and how many it has."""
    sink, rejects, counts = Sink(con, table, SCHEMA), [], [0] * len(deliveries)
    for file, delivery in enumerate(deliveries):
        batch: list[tuple[int, int, str]] = []
        for record in records(delivery.path):
            counts[file] += 1
            if record.complete:
                batch.append((file, record.line, record.text))
            else:
                rejects.append(Reject(file, record.line, "not a JSON object: truncated or broken", record.text))
            if len(batch) >= FLUSH_RECORDS:
                sink.add(_table(batch))
                batch = []
        sink.add(_table(batch))
        if not counts[file]:
            raise ApportionError(
                f"{delivery.path}: the file has no record",
                "deliver it again; if there is nothing to say, remove the file",
            )
    sink.flush()
    keys: list[list[str]] = [[] for _ in deliveries]
    for file, key in con.execute(
        f"select file, key from (select file, line, unnest(json_keys(raw)) as key from {table})"
        " group by file, key order by file, min(line), key"
    ).fetchall():
        keys[file].append(key)
    return keys, counts, rejects


def select_keys(table: str, file: int, places: dict[str, str], columns: Sequence[str]) -> str:
    """SQL for the objects of one file as `columns`, each from the key that `places` names for it."""
    cells = ", ".join(
        f"{_value(places[name]) if name in places else 'cast(null as varchar)'} as {identifier(name)}"
        for name in columns
    )
    return f"select file, line, raw, {cells} from {table} where file = {file}"


def _value(key: str) -> str:
    escaped = key.replace('"', '\\"')
    return f"""nullif(json_extract_string(raw, {literal(f'$."{escaped}"')}), '')"""


def _table(rows: list[tuple[int, int, str]]) -> pa.Table:
    columns = zip(*rows, strict=True) if rows else [[], [], []]
    return pa.table(
        [pa.array(column, field.type) for column, field in zip(columns, SCHEMA, strict=True)], schema=SCHEMA
    )
