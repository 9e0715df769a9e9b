"""One file into one table by a load job, which replaces the table: straight, or by way of a bucket."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from orchestration.warehouse.access import reason
from orchestration.warehouse.settings import BigQuerySettings, credentials
from orchestration.warehouse.tables import fields

if TYPE_CHECKING:
    from google.api_core.retry import Retry
    from google.cloud.bigquery import Client, LoadJob, LoadJobConfig
    from google.cloud.storage import Bucket

STAGED_FOR = timedelta(days=1)
"""What a killed load left goes by itself."""
TRANSIENT = {"backendError", "internalError", "jobRateLimitExceeded", "rateLimitExceeded", "tableUnavailable"}
RETRY_SECONDS = 600.0
FIRST_RETRY_SECONDS = 1.0

Wait = Callable[[], object]


@contextmanager
def staged(client: Client, settings: BigQuerySettings, table: str, path: Path) -> Iterator[tuple[str, Wait]]:
    """A table of its own with the columns of `table`, being filled: its name, and how to wait for it.

    Its name is new each time, so that nobody else's load can be in it.
    """
    from google.cloud.bigquery import Table

    name = f"{settings.landing}._load_{table}_{uuid.uuid4().hex[:12]}"
    definition = Table(name, schema=fields(table))
    definition.expires = datetime.now(UTC) + STAGED_FOR
    client.create_table(definition)
    try:
        with filled(client, settings, table, path, name) as wait:
            yield name, wait
    finally:
        with suppress(Exception):  # it expires; an error on the way here says more
            client.delete_table(name, not_found_ok=True)


@contextmanager
def filled(client: Client, settings: BigQuerySettings, table: str, path: Path, target: str) -> Iterator[Wait]:
    """Begins to replace `target` by the file, which has the columns of `table`; gives how to wait for it.

    What fails for the moment is tried again: a table that is replaced twice is the same.
    """
    from google.cloud.bigquery import LoadJobConfig

    config = LoadJobConfig(
        source_format="PARQUET",
        schema=fields(table),
        write_disposition="WRITE_TRUNCATE",
        create_disposition="CREATE_NEVER",
    )
    with _starting(client, settings, path, target, config) as start:
        again = retry()
        job = again(start)()

        def wait() -> None:
            try:
                job.result()
            except Exception as error:
                if not is_transient(error):
                    raise
                again(lambda: start().result())()

        yield wait


@contextmanager
def _starting(
    client: Client, settings: BigQuerySettings, path: Path, target: str, config: LoadJobConfig
) -> Iterator[Callable[[], LoadJob]]:
    if settings.bucket is None:

        def upload() -> LoadJob:
            with path.open("rb") as file:
                return client.load_table_from_file(file, target, job_config=config)

        yield upload
        return
    bucket, folder = _bucket(settings)
    blob = bucket.blob(f"{folder}{uuid.uuid4().hex}.parquet")
    blob.upload_from_filename(str(path))
    try:
        yield lambda: client.load_table_from_uri(f"gs://{bucket.name}/{blob.name}", target, job_config=config)
    finally:
        with suppress(Exception):
            blob.delete()


def _bucket(settings: BigQuerySettings) -> tuple[Bucket, str]:
    from google.cloud import storage

    name, _, folder = (settings.bucket or "").removeprefix("gs://").partition("/")
    client = storage.Client(project=settings.project, credentials=credentials(settings))
    return client.bucket(name), f"{folder}/" if folder else ""


def retry() -> Retry:
    from google.api_core.retry import Retry

    return Retry(predicate=is_transient, initial=FIRST_RETRY_SECONDS, maximum=60, timeout=RETRY_SECONDS)


def is_transient(error: Exception) -> bool:
    """Whether the same request may well succeed a little later."""
    import requests
    from google.api_core.exceptions import ServerError, TooManyRequests

    broken_line = (requests.ConnectionError, requests.Timeout, requests.exceptions.ChunkedEncodingError)
    return isinstance(error, (ServerError, TooManyRequests, *broken_line)) or reason(error) in TRANSIENT
