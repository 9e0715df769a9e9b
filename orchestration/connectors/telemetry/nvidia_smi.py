"""Logs of nvidia-smi: `--query-gpu=… --format=csv -l 60`, with or without header and units, and `dmon -o DT`.

They tell neither their node nor their time zone, which the settings must. A log that is appended to after a restart has
its header again in the middle, which is no row.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from duckdb import DuckDBPyConnection

from orchestration.connectors.base import Delivery, Found
from orchestration.connectors.sql import literal
from orchestration.connectors.tables import PACKED, first_line
from orchestration.connectors.telemetry.samples import USUAL_NAMES, node_of, nodes_of
from orchestration.connectors.text import load_lines, packing
from orchestration.errors import ApportionError
from orchestration.settings import TelemetrySource

QUERY = {
    "timestamp": ("timestamp",),
    "gpu": ("index",),
    "util_percent": ("utilization.gpu",),
    "power_watts": ("power.draw", "power.draw.average", "power.draw.instant"),
    "memory_used_mib": ("memory.used",),
    "mig": ("mig.mode.current",),
}
DMON = {"gpu": ("gpu",), "util_percent": ("sm",), "power_watts": ("pwr",), "memory_used_mib": ("fb",)}
"""Our columns, and what nvidia-smi calls them: the first of several that is there."""
QUERY_WORDS = {"utilization", "power", "memory", "temperature", "clocks", "mig"}
NO_DATA = r"\[.*\]|N/A|-|ERR!"
UNITS = r"\s*(%|W|MiB)$"


@dataclass(frozen=True)
class _Log:
    """How one log is written."""

    is_dmon: bool
    header: str
    """The header line as it stands in the file; empty for a log without one."""
    names: tuple[str, ...]

    @property
    def variant(self) -> str:
        how = "dmon log" if self.is_dmon else "query log" if self.header else "query log without header"
        return f"nvidia-smi {how}, {len(self.names)} columns"

    def cell(self, ours: str) -> str | None:
        """SQL for the text of one of our columns."""
        spellings = (DMON if self.is_dmon else QUERY).get(ours, ())
        return next((f"cells[{self.names.index(name) + 1}]" for name in spellings if name in self.names), None)


def is_log(source: TelemetrySource, delivery: Delivery) -> bool:
    _, line = first_line(delivery)
    return _is_dmon(line) or _is_query(_plain(line)) or (_is_query(_plain(source.header or "")) and not _is_named(line))


def load(
    con: DuckDBPyConnection, deliveries: Sequence[Delivery], source: TelemetrySource
) -> tuple[str, list[int], list[Found]]:
    """Logs into a temp table; SQL for their samples as text, the samples in each, and what each is."""
    logs = [_understood(source, delivery) for delivery in deliveries]
    load_lines(con, "smi_lines", deliveries, header=False)
    headers = " or ".join(
        f"(file = {file} and {_is_no_row(log)})" for file, log in enumerate(logs) if log.is_dmon or log.header
    )
    if headers:
        _refuse_other_headers(con, deliveries, logs)
        con.execute(f"delete from smi_lines where {headers}")
    counts = dict(con.execute("select file, count(*) from smi_lines group by file").fetchall())
    found = [Found(f"{PACKED[packing(d.path)]}{log.variant}") for d, log in zip(deliveries, logs, strict=True)]
    node = nodes_of(source, deliveries, "null")
    alike = {log: [file for file, other in enumerate(logs) if other == log] for log in logs}
    texts = " union all ".join(_texts(log, files, node) for log, files in alike.items())
    return texts, [counts.get(file, 0) for file in range(len(deliveries))], found


def _understood(source: TelemetrySource, delivery: Delivery) -> _Log:
    if source.timezone is None:
        raise ApportionError(
            f"{delivery.path}: nvidia-smi prints local times without a zone",
            "give the zone of the node's clock as 'timezone' of the source, such as Europe/Zurich or UTC",
        )
    if node_of(source, delivery) is None:
        raise ApportionError(
            f"{delivery.path}: an nvidia-smi log does not say of which node it is",
            "give 'node', or 'node_from_path' with a pattern for the file's path such as '/([^/]+)/smi_[^/]*$'",
        )
    _, line = first_line(delivery)
    if _is_dmon(line):
        log = _Log(True, line.rstrip(), tuple(line.replace("#", " ").lower().split()))
        if log.names[:3] != ("date", "time", "gpu") or "pid" in log.names:
            raise ApportionError(
                f"{delivery.path}, line 1: no GPU samples with their date and time (found: {line.strip()})",
                "log with: nvidia-smi dmon -s pum -o DT",
            )
        return log
    named = _is_named(line)
    log = _Log(False, line.rstrip() if named else "", _plain(line if named else source.header or ""))
    for ours in ("timestamp", "gpu"):
        if not log.cell(ours):
            raise ApportionError(
                f"{delivery.path}, line 1: missing column {QUERY[ours][0]} (found: {', '.join(log.names)})",
                "log with: nvidia-smi --format=csv -l 60"
                " --query-gpu=timestamp,index,utilization.gpu,power.draw,memory.used",
            )
    return log


def _is_dmon(line: str) -> bool:
    return line.lstrip().startswith("#") and "gpu" in line.lower().replace("#", " ").split()


def _is_named(line: str) -> bool:
    return "timestamp" in _plain(line) or _is_query(_plain(line))


def _is_query(names: Sequence[str]) -> bool:
    return "timestamp" in names and any("." in name and name.split(".")[0] in QUERY_WORDS for name in names)


def _plain(line: str) -> tuple[str, ...]:
    """`timestamp, utilization.gpu [%]` to names."""
    return tuple(re.sub(r"\s*\[.*?\]", "", name).strip().lower() for name in line.split(","))


def _is_no_row(log: _Log) -> str:
    return "starts_with(ltrim(raw), '#')" if log.is_dmon else f"rtrim(raw) = {literal(log.header)}"


def _refuse_other_headers(con: DuckDBPyConnection, deliveries: Sequence[Delivery], logs: Sequence[_Log]) -> None:
    """After a header with other columns, the same place means something else."""
    for file, log in enumerate(logs):
        looks = (
            "regexp_matches(raw, '^\\s*#.*\\bgpu\\b')"
            if log.is_dmon
            else "regexp_matches(raw, '(^|,)\\s*timestamp\\s*(,|$)')"
        )
        for (line,) in con.execute(
            f"select line from smi_lines where file = {file} and {looks} and rtrim(raw) <> {literal(log.header)}"
            " order by line limit 1"
        ).fetchall():
            raise ApportionError(
                f"{deliveries[file].path}, line {line}: another header than in line 1, so this is more than one log",
                "deliver logs with different columns as files of their own",
            )


def _texts(log: _Log, files: Sequence[int], node: str) -> str:
    def value(ours: str) -> str:
        cell = log.cell(ours)
        if cell is None:
            return "cast(null as varchar)"
        bare = f"regexp_replace({cell}, {literal(UNITS)}, '')"
        known = f"case when not regexp_full_match({cell}, {literal(NO_DATA)}) then {bare} end"
        mig = log.cell("mig")
        # Of a device that is cut into instances, the utilization means nothing, whatever is printed.
        return f"case when {mig} <> 'Enabled' then {known} end" if ours == "util_percent" and mig else known

    columns = {ours: value(ours) for ours in USUAL_NAMES} | {"node": node}
    if log.is_dmon:
        day = "regexp_replace(cells[1], '^([0-9]{4})([0-9]{2})([0-9]{2})$', '\\1-\\2-\\3')"
        columns["timestamp"] = f"{day} || ' ' || cells[2]"
    cells = (
        "regexp_split_to_array(trim(raw), '\\s+')"
        if log.is_dmon
        else "list_transform(string_split(raw, ','), lambda cell: trim(cell))"
    )
    width = len(log.names)
    return f"""
        select file, line, {", ".join(f"{sql} as {ours}" for ours, sql in columns.items())},
            case when len(cells) <> {width} then 'has ' || len(cells) || ' fields instead of {width}' end as problem
        from (select file, line, {cells} as cells from smi_lines where file in ({", ".join(map(str, files))}))
    """
