"""The landing tables in BigQuery: the columns of the landed files, a partition per UTC day."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from orchestration.errors import ApportionError
from orchestration.landing.schemas import LANDINGS_SCHEMA, TABLES, WHOLE_TABLES
from orchestration.warehouse.settings import BigQuerySettings

if TYPE_CHECKING:
    from google.cloud.bigquery import Client, SchemaField, Table

LANDINGS = "landings"

SCHEMAS = {
    **{name: table.schema.append(pa.field("date", pa.date32())) for name, table in TABLES.items()},
    LANDINGS: LANDINGS_SCHEMA,
    **WHOLE_TABLES,
}

CLUSTERED_BY = {
    "charges": ["provider", "billing_account_id", "resource_id"],
    "jobs": ["cluster_id", "account", "job_key"],
    "gpu_samples": ["cluster_id", "node_name", "gpu_index"],
    "node_events": ["cluster_id", "node_name"],
    "node_inventory": ["cluster_id", "node_name"],
    "storage_usage": ["filesystem", "account"],
    "license_usage": ["product", "account"],
}
"""By what models join and people filter. Of the others, a day is too small to be worth an order."""

LARGE = {"charges", "jobs", "gpu_samples"}
"""A query over all days of these is a mistake that costs money, so BigQuery refuses it."""

OTHER_NAMES = {"INTEGER": "INT64", "FLOAT": "FLOAT64", "BOOLEAN": "BOOL", "DECIMAL": "NUMERIC"}


def bigquery_type(column: pa.DataType) -> str:
    if pa.types.is_decimal(column):
        return "NUMERIC"  # 38 digits, 9 of them after the point: the same as ours
    if pa.types.is_timestamp(column):
        return "TIMESTAMP"
    return {
        pa.string(): "STRING",
        pa.int64(): "INT64",
        pa.float64(): "FLOAT64",
        pa.bool_(): "BOOL",
        pa.date32(): "DATE",
    }[column]


def fields(name: str) -> list[SchemaField]:
    from google.cloud.bigquery import SchemaField

    return [SchemaField(field.name, bigquery_type(field.type)) for field in SCHEMAS[name]]


def columns(name: str) -> str:
    """Quoted: `rows` and `partition` are words of the language."""
    return ", ".join(f"`{column}`" for column in SCHEMAS[name].names)


def ensure(client: Client, settings: BigQuerySettings) -> None:
    """Makes the dataset and the tables that are not there yet, and refuses those that are something else."""
    _ensure_dataset(client, settings)
    there = {table.table_id for table in client.list_tables(settings.landing)}
    for name in SCHEMAS.keys() & there:
        _refuse_other_columns(client.get_table(f"{settings.landing}.{name}"))
    missing = [name for name in SCHEMAS if name not in there]
    if missing and LANDINGS in there:
        # Somebody dropped a table: whatever was known of the days is no longer so.
        client.query(f"truncate table `{settings.landing}.{LANDINGS}`").result()
    for name in missing:
        client.create_table(_definition(settings, name), exists_ok=True)


def _ensure_dataset(client: Client, settings: BigQuerySettings) -> None:
    from google.api_core.exceptions import NotFound
    from google.cloud.bigquery import Dataset

    try:
        found = client.get_dataset(settings.landing)
    except NotFound:
        wanted = Dataset(settings.landing)
        wanted.location = settings.location
        found = client.create_dataset(wanted, exists_ok=True)
    if (found.location or "").upper() != settings.location.upper():
        raise ApportionError(
            f"the dataset {settings.landing} is in {found.location}, and APPORTION_BIGQUERY_LOCATION is"
            f" {settings.location}: a dataset cannot move",
            f"set APPORTION_BIGQUERY_LOCATION={found.location}, or name another APPORTION_BIGQUERY_DATASET",
        )


def _definition(settings: BigQuerySettings, name: str) -> Table:
    from google.cloud.bigquery import Table, TimePartitioning

    table = Table(f"{settings.landing}.{name}", schema=fields(name))
    if name in WHOLE_TABLES:
        return table  # small, and replaced as a whole
    table.time_partitioning = TimePartitioning(field="date")
    table.clustering_fields = CLUSTERED_BY.get(name)
    table.require_partition_filter = name in LARGE or None
    return table


def _refuse_other_columns(table: Table) -> None:
    wanted = {field.name: field.field_type for field in fields(table.table_id)}
    found = {field.name: OTHER_NAMES.get(field.field_type, field.field_type) for field in table.schema}
    for column in [*wanted, *(found.keys() - wanted.keys())]:
        is_there, should_be = found.get(column, "missing"), wanted.get(column, "absent")
        if column in wanted and column in found and is_there == should_be:
            continue
        raise ApportionError(
            f"the column '{column}' of {table.full_table_id} is {is_there}, and should be {should_be}",
            "the table was made by another version or by somebody else: drop it, and push the landed history again;"
            " the landed files hold all that it had",
        )
