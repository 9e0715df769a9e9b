"""Prometheus samples out of files: scrapes in the text or OpenMetrics format, dumps of `promtool`, answers of the API.

Whatever the form, each sample becomes a row (file, line, series, value, instant), and each series a row (name, labels).
A month of a cluster is millions of lines that repeat some thousand series, so a line is only cut into series, value and
time, in SQL, and a series is read once.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from duckdb import DuckDBPyConnection

from orchestration.connectors.base import Delivery, Reject
from orchestration.connectors.exposition_json import JsonSeries, json_series
from orchestration.connectors.exposition_labels import NAME, parse_head
from orchestration.connectors.sql import first_reason, literal, map_distinct, quoted
from orchestration.connectors.tables import PACKED
from orchestration.connectors.text import beginning, numbered_lines, packing
from orchestration.errors import ApportionError

BATCH_ROWS = 200_000
FOREIGN_LINES = 1000
TEXT, OPEN_METRICS, DUMP, JSON = "Prometheus text", "OpenMetrics", "promtool dump", "Prometheus API JSON"
_JSON_BEGINS = re.compile(r'[\[\s]*\{\s*"(?:status|metric|data|isPartial)"\s*:')
_TEXT_BEGINS = re.compile(r"#|[a-zA-Z_:]|\{\s*(?:__name__|[a-zA-Z_][a-zA-Z0-9_]*)\s*=|\{\s*\"[^\"]*\"\s*[,}]")
_LABELS = r'\{(?:[^"{}]|"(?:[^"\\]|\\.)*")*\}'
# Any legal line: also several blanks, tabs, and an exemplar behind the value.
_LINE = rf"^((?:{NAME})?[ \t]*{_LABELS}|{NAME}(?:[ \t]))[ \t]*([^\s{{}}\"]+)(?:[ \t]+([^\s#]+))?[ \t]*(?:#.*)?$"


@dataclass
class ExposedFile:
    """What one file turned out to hold."""

    file: int
    delivery: Delivery
    form: str
    count: int = 0
    """Samples."""
    unasked: int = 0
    """Samples of metrics that nobody asked for."""
    has_untimed: bool = False
    """Some sample carries no time of its own and takes that of the delivery."""
    is_complete: bool = False
    """The end mark of OpenMetrics is there."""
    is_known: bool = False
    """Some line of it was a sample."""
    warnings: list[str] = field(default_factory=list)

    @property
    def variant(self) -> str:
        return PACKED[packing(self.delivery.path)] + self.form

    @property
    def doubts(self) -> list[str]:
        found = list(self.warnings)
        if self.has_untimed and self._is_stamped_by_age:
            at = self.delivery.delivered_at.strftime("%Y-%m-%d %H:%M:%S")
            found.append(f"samples without a time are taken to be of the file's modification time, {at} UTC")
        if self.form == OPEN_METRICS and not self.is_complete:
            found.append("the end mark `# EOF` is missing: the file may be cut off")
        return found

    @property
    def _is_stamped_by_age(self) -> bool:
        return int(self.delivery.delivered_at.timestamp()) == self.delivery.mtime_ns // 10**9


@dataclass(frozen=True)
class Exposed:
    files: list[ExposedFile]
    rejects: list[Reject]


def is_exposition(delivery: Delivery) -> bool:
    """Whether a file holds Prometheus samples, in one of the forms."""
    start = beginning(delivery.path)
    return bool(_JSON_BEGINS.match(start) or _TEXT_BEGINS.match(start))


def load_samples(
    con: DuckDBPyConnection, name: str, deliveries: Mapping[int, Delivery], metrics: Mapping[str, str]
) -> Exposed:
    """The samples of some metrics into temp tables `<name>_samples` and `<name>_series`.

    `metrics` maps the names that a metric goes by to the one that the caller uses. Samples of other metrics are counted
    and left out. Tables: samples (file, line, series, value, taken_at), series (series, metric, labels as a map).
    """
    return _Loader(con, name, deliveries, metrics).run()


class _Loader:
    def __init__(
        self, con: DuckDBPyConnection, name: str, deliveries: Mapping[int, Delivery], metrics: Mapping[str, str]
    ) -> None:
        self._con, self._name, self._metrics = con, name, metrics
        self._files = {file: ExposedFile(file, delivery, _form(delivery)) for file, delivery in deliveries.items()}
        self._rejects: list[Reject] = []
        self._batches: list[pa.Table] = []
        self._rows = 0

    def run(self) -> Exposed:
        self._create_tables()
        files = list(self._files.values())
        for file in files:
            if file.form != JSON:
                self._load_text(file)
        self._flush(self._digest_lines)
        for file in files:
            if file.form == JSON:
                self._load_json(file)
        self._flush(self._digest_points)
        self._read_series()
        return Exposed(files, self._rejects)

    def _create_tables(self) -> None:
        name = self._name
        self._con.execute(
            f"create or replace temp table {name}_samples"
            " (file bigint, line bigint, series uhugeint, value double, taken_at timestamptz)"
        )
        self._con.execute(f"create or replace temp table {name}_heads (series uhugeint, head varchar)")
        times = pa.table(
            {
                "file": pa.array(list(self._files), pa.int64()),
                "delivered_at": pa.array(
                    [file.delivery.delivered_at for file in self._files.values()], pa.timestamp("us", tz="UTC")
                ),
            }
        )
        self._con.register("exposed_times", times)
        self._con.execute(f"create or replace temp table {name}_files as from exposed_times")
        self._con.unregister("exposed_times")

    def _load_text(self, file: ExposedFile) -> None:
        for start, lines in numbered_lines(file.delivery.path):
            number = np.arange(start, start + len(lines))
            comment = pc.match_substring_regex(lines, r"^\s*(#.*)?$")
            comments = lines.filter(comment)
            if pc.any(pc.match_substring_regex(comments, r"^# (EOF|UNIT )")).as_py():
                file.form = OPEN_METRICS
                file.is_complete |= bool(pc.any(pc.equal(comments, "# EOF")).as_py())
            is_sample = pc.invert(comment)
            samples = lines.filter(is_sample)
            if not file.count and len(samples) and samples[0].as_py().startswith("{__name__"):
                file.form = DUMP
            file.count += len(samples)
            number = number[is_sample.to_numpy(zero_copy_only=False)]
            self._add(
                pa.table({"file": np.full(len(number), file.file), "line": number, "raw": samples}), self._digest_lines
            )
        if not file.count:
            # Taken at its word, a file of comments alone would erase the days that it is complete for.
            raise ApportionError(
                f"{file.delivery.path}: holds no sample", "deliver it again, or move it out of the inbox"
            )

    def _load_json(self, file: ExposedFile) -> None:
        for found in json_series(file.delivery, file.warnings):
            if isinstance(found, JsonSeries):
                file.count += len(found.values)
                self._add(
                    pa.table(
                        {
                            "file": np.full(len(found.values), file.file),
                            "line": np.full(len(found.values), found.line),
                            "name": pa.repeat(found.name, len(found.values)),
                            "head": pa.repeat(found.head, len(found.values)),
                            "value": pa.array(found.values, pa.string()),
                            "stamp": pa.array(found.stamps, pa.float64()),
                        }
                    ),
                    self._digest_points,
                )
            else:
                file.count += 1
                self._rejects.append(Reject(file.file, *found))

    def _add(self, batch: pa.Table, digest: str) -> None:
        self._batches.append(batch)
        self._rows += batch.num_rows
        if self._rows >= BATCH_ROWS:
            self._flush(digest)

    @property
    def _digest_lines(self) -> str:
        """Lines as (file, line, raw, name, head, value, stamp); what cannot be cut has no value."""
        wanted = quoted(self._metrics)
        exact = f"regexp_extract(raw, {literal(_LINE)}, ['head', 'value', 'stamp'])"
        # The usual line is `name{labels} value [time]`: what is behind the last brace is cut at its blanks. Only what
        # then is no number is read by the rules of the format, which costs three times as much.
        return f"""
            with named as (
                select file, line, raw,
                    case when starts_with(raw, '{{')
                        then coalesce(nullif(regexp_extract(raw, '__name__="([^"]*)"', 1), ''),
                            regexp_extract(raw, '^\\{{\\s*"([^"]*)"', 1))
                        else regexp_extract(raw, {literal("^" + NAME)}) end as name
                from exposed_batch
            ),

            tailed as (
                select *, case when contains(raw, '}}') then string_split(raw, '}}')[-1]
                    else raw[strlen(name) + 1:] end as tail
                from named
            ),

            quick as (
                select * exclude (tail), string_split(trim(tail), ' ') as words,
                    left(raw, length(raw) - length(tail)) as quick_head,
                    not contains(raw, ' # ') and length(tail) < length(raw) and len(words) <= 2
                        and try_cast(words[1] as double) is not null
                        and (len(words) = 1 or try_cast(words[2] as double) is not null) as is_quick
                from tailed
            ),

            exact as (
                select *, case when not is_quick then {exact} end as parts from quick
            )

            select file, line, raw, name,
                case when is_quick then quick_head else trim(parts.head) end as head,
                case when is_quick then words[1] else nullif(parts.value, '') end as value,
                try_cast(case when is_quick then words[2] else nullif(parts.stamp, '') end as double) as stamp,
                not is_quick and parts.stamp <> '' and try_cast(parts.stamp as double) is null as is_misdated,
                name in ({wanted}) as is_wanted
            from exact
        """

    @property
    def _digest_points(self) -> str:
        return f"""
            select file, line, head as raw, name, head, value, stamp,
                stamp is null as is_misdated, name in ({quoted(self._metrics)}) as is_wanted
            from exposed_batch
        """

    def _flush(self, digest: str) -> None:
        """Judges the collected rows and keeps the samples that were asked for."""
        if not self._batches:
            return
        name, con = self._name, self._con
        con.register("exposed_batch", pa.concat_tables(self._batches))
        self._batches, self._rows = [], 0
        reason = first_reason(
            ("value is null", literal("not a sample: name, labels and value cannot be told apart")),
            ("number is null", "'value is not a number: ' || value"),
            ("is_misdated or (stamp is not null and taken_at is null)", literal("timestamp is not a time")),
        )
        # Milliseconds in the text format, seconds in OpenMetrics; as seconds, the former would be after the year 5000.
        con.execute(
            f"""
            create or replace temp table {name}_judged as
            select *, {reason} as reason, md5_number(head) as series
            from (
                select c.* exclude (stamp), c.stamp, try_cast(c.value as double) as number,
                    case
                        when c.stamp is null then f.delivered_at
                        when c.stamp >= 1e11 and c.stamp < 2e14
                            then make_timestamptz(cast(round(c.stamp) as bigint) * 1000)
                        when c.stamp > 0 and c.stamp < 1e11
                            then make_timestamptz(cast(round(c.stamp * 1000) as bigint) * 1000)
                    end as taken_at
                from ({digest}) as c join {name}_files as f using (file)
            )
            """
        )
        con.unregister("exposed_batch")
        self._refuse_foreign_files()
        con.execute(
            f"insert into {name}_samples select file, line, series, number, taken_at from {name}_judged"
            " where reason is null and is_wanted"
        )
        con.execute(
            f"insert into {name}_heads select distinct series, head from {name}_judged as j"
            f" where reason is null and is_wanted and not exists (from {name}_heads as h where h.series = j.series)"
        )
        for row in con.execute(
            f"select file, line, reason, raw from {name}_judged where reason is not null order by file, line"
        ).fetchall():
            self._rejects.append(Reject(*row))
        for file, unasked, untimed in con.execute(
            f"select file, count(*) filter (not is_wanted), count(*) filter (is_wanted and stamp is null)"
            f" from {name}_judged where reason is null group by file"
        ).fetchall():
            self._files[file].unasked += unasked
            self._files[file].has_untimed |= untimed > 0
        con.execute(f"drop table {name}_judged")

    def _refuse_foreign_files(self) -> None:
        """A file that begins with a thousand broken lines and no sample is something else, whatever it looks like."""
        for file, line, good, bad in self._con.execute(
            f"select file, min(line), count(*) filter (reason is null), count(*) filter (reason is not null)"
            f" from {self._name}_judged group by file order by file"
        ).fetchall():
            found = self._files[file]
            if bad >= FOREIGN_LINES and not good and not found.is_known:
                raise ApportionError(
                    f"{found.delivery.path}, line {line}: no sample, nor is any of the {bad - 1} lines after it",
                    "deliver samples of Prometheus, or correct the path of the source",
                )
            found.is_known |= good > 0

    def _read_series(self) -> None:
        name = self._name
        map_distinct(
            self._con,
            f"{name}_parsed",
            f"select distinct head from {name}_heads",
            [("metric", pa.string()), ("labels", pa.map_(pa.string(), pa.string()))],
            lambda head: parse_head(head, self._metrics),
        )
        self._con.execute(
            f"create or replace temp table {name}_series as select series, metric, labels, head, reason"
            f" from {name}_heads as h join {name}_parsed as p on p.text = h.head"
        )
        self._con.execute(f"drop table {name}_heads")
        reject_series(self._con, name, "reason", self._rejects)


def reject_series(con: DuckDBPyConnection, name: str, reason: str, rejects: list[Reject]) -> None:
    """Takes out all samples of the series for which the SQL `reason` is not null."""
    bad = f"select series, head, {reason} as why from {name}_series where why is not null"
    for file, line, why, head in con.execute(
        f"select file, line, why, head from {name}_samples join ({bad}) using (series) order by file, line"
    ).fetchall():
        rejects.append(Reject(file, line, why, head))
    con.execute(f"delete from {name}_samples where series in (select series from ({bad}))")
    con.execute(f"delete from {name}_series where series in (select series from ({bad}))")


def _form(delivery: Delivery) -> str:
    start = beginning(delivery.path)
    if not start:
        raise ApportionError(
            f"{delivery.path}: the file is empty",
            "deliver it again; if nothing happened in its window, remove the file",
        )
    if _JSON_BEGINS.match(start):
        return JSON
    if _TEXT_BEGINS.match(start):
        return TEXT
    raise ApportionError(
        f"{delivery.path}, line 1: neither Prometheus text, OpenMetrics nor JSON of the Prometheus API: {start[:60]!r}",
        "deliver a scrape, a dump of promtool or an answer of /api/v1/query_range, or correct the path of the source",
    )
