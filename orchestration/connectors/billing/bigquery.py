"""A billing export straight from its BigQuery table: changed invoice months become files, which are read as any other.

So a run never depends on the table staying as it is, and the same rules judge what was pulled and what was delivered.
Rows come through BigQuery's plain REST interface, page by page, as the JSON that BigQuery itself makes of them.
"""

from __future__ import annotations

import gzip
import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from orchestration.errors import ApportionError
from orchestration.settings import GcpSource
from orchestration.warehouse.access import connect, in_our_words

if TYPE_CHECKING:
    from google.cloud.bigquery import Client

PAGE_ROWS = 20_000
KEEP_REPLACED = timedelta(days=1)
"""A file that was just replaced may still be open in a run that began before."""
STATE = "pulled.json"


@dataclass(frozen=True)
class Month:
    """What the table holds of an invoice month, or held when it was pulled."""

    rows: int
    exported_at: str
    """When Google last added to it."""


@dataclass(frozen=True)
class Pulled(Month):
    file: str
    pulled_at: str


def pull(source: GcpSource, data_dir: Path) -> None:
    """Brings the invoice months that changed into `pulled/<source>/`, unless that was done a moment ago."""
    folder = data_dir / "pulled" / source.name
    asked_at, known = _load(folder, source)
    now = datetime.now(UTC)
    if asked_at and now - asked_at < timedelta(minutes=source.pull_every_minutes):
        return
    with _speaking_of(source):
        client = _client(source)
        changed = {
            month: state
            for month, state in _months(client, source).items()
            if _is_new(source, month, state, known.get(month), folder, now)
        }
        folder.mkdir(parents=True, exist_ok=True)
        known |= _fetch(client, source, changed, folder, now) if changed else {}
    _save(folder, source, now, known)
    _forget_replaced(folder, known, now)


def _is_new(source: GcpSource, month: str, now_has: Month, had: Pulled | None, folder: Path, now: datetime) -> bool:
    if source.first_month and month < source.first_month.replace("-", ""):
        return False
    if had is None or not (folder / had.file).exists():
        return True
    if now_has.rows < had.rows:
        if now_has.exported_at == had.exported_at:
            return False  # partitions expire; what was pulled of them stays
        raise ApportionError(
            f"source '{source.name}': invoice month {month} of {source.table} has {now_has.rows} rows, fewer than the"
            f" {had.rows} that were pulled before, and newer ones among them",
            f"if rows were really withdrawn, remove {folder / had.file} and run again",
        )
    final_at = _next_month(month) + timedelta(days=source.final_after_days)
    became_final = datetime.fromisoformat(had.pulled_at) < final_at <= now
    return (now_has.rows, now_has.exported_at) != (had.rows, had.exported_at) or became_final


def _next_month(month: str) -> datetime:
    year, number = int(month[:4]), int(month[4:])
    return datetime(year + number // 12, number % 12 + 1, 1, tzinfo=UTC)


def _months(client: Client, source: GcpSource) -> dict[str, Month]:
    found = client.query(
        "select invoice.month as month, count(*) as row_count, cast(max(export_time) as string) as exported_at"
        f" from `{source.table}` group by 1"
    ).result()
    months = {row["month"]: Month(row["row_count"], row["exported_at"]) for row in found}
    odd = [month for month in months if not re.fullmatch(r"[0-9]{4}(0[1-9]|1[0-2])", month or "")]
    if odd:
        raise ApportionError(
            f"source '{source.name}': {months[odd[0]].rows} rows of {source.table} have the invoice month {odd[0]!r}",
            "name a view that leaves these rows out or gives them a month such as 202601",
        )
    return months


def _fetch(
    client: Client, source: GcpSource, months: Mapping[str, Month], folder: Path, now: datetime
) -> dict[str, Pulled]:
    """All changed months in one pass over the table, each into its own file."""
    from google.cloud import bigquery

    wanted = bigquery.QueryJobConfig(query_parameters=[bigquery.ArrayQueryParameter("months", "STRING", [*months])])
    rows = client.query(
        "select invoice.month as month, cast(export_time as string) as exported_at, to_json_string(t) as record"
        f" from `{source.table}` as t where invoice.month in unnest(@months)",
        job_config=wanted,
    ).result(page_size=PAGE_ROWS)
    counts, newest = dict.fromkeys(months, 0), dict.fromkeys(months, "")
    names = {month: f"{month[:4]}-{month[4:]}_{now:%Y%m%dT%H%M%SZ}.jsonl.gz" for month in months}
    with ExitStack() as stack:  # an error on the way leaves none of them
        files = {month: stack.enter_context(_appearing(folder / name)) for month, name in names.items()}
        for month, exported_at, record in rows:
            files[month].write(record.encode() + b"\n")
            counts[month] += 1
            newest[month] = max(newest[month], exported_at)
        for month, expected in months.items():
            if counts[month] < expected.rows:
                raise ApportionError(
                    f"source '{source.name}': {source.table} gave {counts[month]} of {expected.rows} rows of {month}",
                    "run again; nothing of this pull was kept",
                )
    return {month: Pulled(counts[month], newest[month], names[month], now.isoformat()) for month in months}


@contextmanager
def _appearing(path: Path) -> Iterator[gzip.GzipFile]:
    """A file that is there only when it is complete."""
    beside = path.with_name(f".{path.name}.tmp-{os.getpid()}")
    try:
        with gzip.open(beside, "wb", compresslevel=3) as file:
            yield file
        os.replace(beside, path)  # not reached after an error
    finally:
        beside.unlink(missing_ok=True)


def _client(source: GcpSource) -> Client:
    return connect((source.table or "").split(".")[0], location=source.location, endpoint=source.api_endpoint)


def _speaking_of(source: GcpSource) -> AbstractContextManager[None]:
    return in_our_words(
        f"source '{source.name}'",
        f"{source.table} cannot be read from BigQuery",
        "check 'table' (project.dataset.table), 'location' and that the account may read it and run queries",
    )


def _load(folder: Path, source: GcpSource) -> tuple[datetime | None, dict[str, Pulled]]:
    """What was pulled, and when; if that is lost, everything is pulled again."""
    try:
        stored = json.loads((folder / STATE).read_text(encoding="utf-8"))
        months = {month: Pulled(**state) for month, state in stored["months"].items()}
        table, asked_at = stored["table"], datetime.fromisoformat(stored["asked_at"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None, {}
    if table != source.table:
        raise ApportionError(
            f"source '{source.name}': {folder} holds what was pulled from {table}, and its table is {source.table} now",
            "give the new table to a source of another name, or remove the folder to begin afresh",
        )
    return asked_at, months


def _save(folder: Path, source: GcpSource, now: datetime, known: Mapping[str, Pulled]) -> None:
    state = {
        "table": source.table,
        "asked_at": now.isoformat(),
        "months": {month: asdict(pulled) for month, pulled in sorted(known.items())},
    }
    beside = folder / f".{STATE}.tmp-{os.getpid()}"
    beside.write_text(json.dumps(state, indent=1), encoding="utf-8")
    os.replace(beside, folder / STATE)


def _forget_replaced(folder: Path, known: Mapping[str, Pulled], now: datetime) -> None:
    """Removes what a newer pull of the same month has replaced; months that only a file knows of stay."""
    for pulled in known.values():
        for path in folder.glob(f"{pulled.file[:7]}_*.jsonl.gz"):
            age = now - datetime.fromtimestamp(path.stat().st_mtime, UTC)
            if path.name != pulled.file and age > KEEP_REPLACED:
                path.unlink(missing_ok=True)
