"""GPU telemetry in files: Parquet, any delimited text, and logs of nvidia-smi, which one source may mix.

Parquet stays where it is and is read in one pass. Text is cut and typed once, into a temp table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from duckdb import DuckDBPyConnection

from orchestration.connectors.base import Delivery, Feed, Found, Read, Reading, Reject
from orchestration.connectors.tables import Layout, is_parquet, load_table, unless_named
from orchestration.connectors.telemetry import intervals, nvidia_smi, parquet
from orchestration.connectors.telemetry.samples import ROW, USUAL_NAMES, judged, nodes_of, places
from orchestration.settings import ColumnFrom, TelemetrySource


def feeds(source: TelemetrySource) -> list[Feed]:
    def read(con: DuckDBPyConnection, deliveries: Sequence[Delivery]) -> Reading:
        return _read(con, deliveries, source)

    return [Feed("gpu_samples", source.path, _remembering(read))]


def _remembering(read: Read) -> Read:
    """Landing asks again for each day, and a month in one text file would be cut thirty times over."""
    last: tuple[DuckDBPyConnection, Sequence[Delivery], Reading] | None = None

    def again(con: DuckDBPyConnection, deliveries: Sequence[Delivery]) -> Reading:
        nonlocal last
        if last is None or last[0] is not con or last[1] != deliveries:
            last = (con, list(deliveries), read(con, deliveries))
        return last[2]

    return again


def _read(con: DuckDBPyConnection, deliveries: Sequence[Delivery], source: TelemetrySource) -> Reading:
    logs, tables, selects = [], [], []
    counts, found = [0] * len(deliveries), [Found("")] * len(deliveries)
    proven, rejects = {}, []
    for file, delivery in enumerate(deliveries):
        if is_parquet(delivery):
            facts = parquet.describe(con, source, delivery)
            if facts.has_text_times:
                tables.append(file)
                continue
            counts[file], found[file] = facts.rows, facts.found
            selects.append(parquet.select(source, file, delivery, facts))
            if facts.proven:
                proven[file] = facts.proven
        elif nvidia_smi.is_log(source, delivery):
            logs.append(file)
        else:
            tables.append(file)
    parts = [" union all ".join(selects)] if selects else []
    for name, files, load in (("smi_samples", logs, _load_logs), ("table_samples", tables, _load_tables)):
        if files:
            chosen = [deliveries[file] for file in files]
            texts, factors, own_counts, own_found, own_rejects = load(con, chosen, source)
            con.execute(f"create or replace temp table {name} as {judged(source, _numbered(texts, files), factors)}")
            for file, count, what in zip(files, own_counts, own_found, strict=True):
                counts[file], found[file] = count, what
            rejects += [replace(reject, file=files[reject.file]) for reject in own_rejects]
            _add_doubts(con, name, source, found)
            parts.append(f"select {', '.join(ROW)} from {name}")
    rows = " union all ".join(_timed(part, source) for part in parts)
    return Reading(rows, counts, rejects, proven=proven, found=found)


def _timed(rows: str, source: TelemetrySource) -> str:
    timed = intervals.fixed(rows, source.interval_seconds) if source.interval_seconds else intervals.worked_out(rows)
    return f"select {', '.join(ROW)}, interval_ms, cast(null as varchar) as skip_reason from ({timed})"


Texts = tuple[str, dict[str, float], list[int], list[Found], list[Reject]]
"""SQL for samples as text, the factors of our columns, and by file: rows, what it is, what could not be cut."""


def _load_logs(con: DuckDBPyConnection, deliveries: Sequence[Delivery], source: TelemetrySource) -> Texts:
    texts, counts, found = nvidia_smi.load(con, deliveries, source)
    return texts, {}, counts, found, []


def _load_tables(con: DuckDBPyConnection, deliveries: Sequence[Delivery], source: TelemetrySource) -> Texts:
    def understand(delivery: Delivery, header: Sequence[str]) -> Layout:
        own = {ours: place.column for ours, place in places(source, delivery, header).items()}
        unknown = tuple(name for name in header if name not in own.values())
        return Layout({ours: list(header).index(name) for ours, name in own.items()}, "GPU samples", unknown)

    loaded = load_table(con, "sample_lines", deliveries, list(USUAL_NAMES), understand, unless_named(source.header))
    node = nodes_of(source, deliveries, "node")
    texts = f"select * replace ({node} as node), cast(null as varchar) as problem from sample_lines"
    factors = {ours: said.factor for ours, said in source.columns.items() if isinstance(said, ColumnFrom)}
    return texts, factors, loaded.counts, loaded.found, loaded.rejects


def _numbered(texts: str, files: Sequence[int]) -> str:
    """The files of one form know their place among themselves; this gives them their place among all."""
    return f"select * replace ([{', '.join(map(str, files))}][file + 1] as file) from ({texts})"


def _add_doubts(con: DuckDBPyConnection, table: str, source: TelemetrySource, found: list[Found]) -> None:
    """What was read of each file, but might be meant otherwise."""
    for file, zoneless, ambiguous, single in con.execute(
        f"""
        select file, count(*) filter (is_zoneless), count(*) filter (is_ambiguous),
            count(*) = count(distinct (node_name, gpu_index, gpu_instance))
        from {table} where bad_reason is null group by file order by file
        """
    ).fetchall():
        doubts = []
        if zoneless and source.timezone is None:
            doubts.append(f"{zoneless} times name no zone and are taken as UTC (see 'timezone')")
        if ambiguous and source.timezone:
            doubts.append(f"{ambiguous} local times came twice that day and were told apart by their order in the file")
        if single and not source.interval_seconds:
            doubts.append("one sample per GPU does not tell how much time it stands for (see 'interval_seconds')")
        found[file] = replace(found[file], doubts=(*found[file].doubts, *doubts))
