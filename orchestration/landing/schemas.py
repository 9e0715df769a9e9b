"""The landing tables: one typed schema each, whatever the vendor's format was.

A connector turns a vendor's files into rows of these schemas; everything after it (landing, dbt sources)
knows only these. Times are UTC, intervals are half-open, and amounts of resources are already the integer
units that allocation weights use, so that no engine ever rounds them again:

* GPUs in 1/25,200 of a GPU (`gpu_units`), cores in thousandths, memory in MiB, time in milliseconds;
* money as decimal(38, 9).
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

GPU_UNITS_PER_GPU = 25_200

_text = pa.string()
_int = pa.int64()
_time = pa.timestamp("us", tz="UTC")
_money = pa.decimal128(38, 9)


@dataclass(frozen=True)
class LandingTable:
    """A landing table: its columns, and which of them bound the time that a record covers."""

    name: str
    schema: pa.Schema
    starts: str
    ends: str
    """Exclusive end; the same column as `starts` for instantaneous records. NULL = still open."""

    @property
    def content(self) -> list[str]:
        """The columns that say something about the world, not about how it was delivered."""
        return [name for name in self.schema.names if name not in PROVENANCE]


PROVENANCE = {"source": _text, "delivery": _text, "line": _int, "delivered_at": _time}
"""Where a row came from; the same for every table, and no part of what a day contains."""


def _table(name: str, starts: str, ends: str, **columns: pa.DataType) -> LandingTable:
    return LandingTable(name, pa.schema(list({**columns, **PROVENANCE}.items())), starts, ends)


CHARGES = _table(
    "charges",
    starts="charge_start_at",
    ends="charge_end_at",
    charge_key=_text,
    provider=_text,
    invoice_id=_text,
    billing_account_id=_text,
    sub_account_id=_text,
    billing_period_start_at=_time,
    billing_period_end_at=_time,
    charge_start_at=_time,
    charge_end_at=_time,
    charge_category=_text,
    charge_class=_text,
    charge_frequency=_text,
    charge_description=_text,
    service_category=_text,
    service_name=_text,
    sku_id=_text,
    region_id=_text,
    resource_id=_text,
    resource_type=_text,
    commitment_id=_text,
    commitment_status=_text,
    commitment_quantity=_money,
    commitment_start_at=_time,
    commitment_end_at=_time,
    tags=_text,
    currency=_text,
    list_cost=_money,
    billed_cost=_money,
    effective_cost=_money,
    is_final=pa.bool_(),
)

JOBS = _table(
    "jobs",
    starts="start_at",
    ends="end_at",
    cluster_id=_text,
    scheduler=_text,
    job_key=_text,
    job_id=_text,
    part_id=_text,
    array_job_id=_text,
    user_name=_text,
    account=_text,
    namespace=_text,
    partition=_text,
    qos=_text,
    job_name=_text,
    labels=_text,
    state=_text,
    exit_code=_text,
    submit_at=_time,
    start_at=_time,
    end_at=_time,
    as_of_at=_time,
    suspended_ms=_int,
    time_limit_ms=_int,
    checkpoint_interval_ms=_int,
    node_names=_text,
    gpu_units=_int,
    cpu_millicores=_int,
    memory_mib=_int,
    measured_cpu_millicores=_int,
    measured_memory_mib=_int,
    bytes_out=_int,
)

NODE_EVENTS = _table(
    "node_events",
    starts="start_at",
    ends="end_at",
    cluster_id=_text,
    node_name=_text,
    state=_text,
    reason=_text,
    start_at=_time,
    end_at=_time,
    as_of_at=_time,
)

RESERVATIONS = _table(
    "reservations",
    starts="start_at",
    ends="end_at",
    cluster_id=_text,
    reservation_name=_text,
    node_names=_text,
    accounts=_text,
    users=_text,
    start_at=_time,
    end_at=_time,
)

ACCOUNT_TREE = _table(
    "account_tree",
    starts="valid_from_at",
    ends="valid_to_at",
    cluster_id=_text,
    account=_text,
    parent_account=_text,
    valid_from_at=_time,
    valid_to_at=_time,
)

GPU_SAMPLES = _table(
    "gpu_samples",
    starts="sampled_at",
    ends="sampled_at",
    cluster_id=_text,
    node_name=_text,
    gpu_index=_int,
    gpu_instance=_text,
    part_id=_text,
    sampled_at=_time,
    interval_ms=_int,
    util_percent=pa.float64(),
    sm_active=pa.float64(),
    tensor_active=pa.float64(),
    power_watts=pa.float64(),
    energy_counter_mj=pa.float64(),
    memory_used_mib=pa.float64(),
)

STORAGE_USAGE = _table(
    "storage_usage",
    starts="valid_from_at",
    ends="valid_to_at",
    filesystem=_text,
    path=_text,
    owner=_text,
    account=_text,
    stored_bytes=_int,
    valid_from_at=_time,
    valid_to_at=_time,
)

LICENSE_USAGE = _table(
    "license_usage",
    starts="checked_out_at",
    ends="checked_in_at",
    product=_text,
    user_name=_text,
    account=_text,
    host_name=_text,
    seats=_int,
    checked_out_at=_time,
    checked_in_at=_time,
    as_of_at=_time,
)

NODE_INVENTORY = _table(
    "node_inventory",
    starts="valid_from_at",
    ends="valid_to_at",
    cluster_id=_text,
    node_name=_text,
    resource_id=_text,
    provider=_text,
    instance_type=_text,
    pool_id=_text,
    gpu_model=_text,
    gpu_units=_int,
    cpu_millicores=_int,
    memory_mib=_int,
    valid_from_at=_time,
    valid_to_at=_time,
)

TABLES = {
    table.name: table
    for table in (
        CHARGES,
        JOBS,
        NODE_EVENTS,
        RESERVATIONS,
        ACCOUNT_TREE,
        GPU_SAMPLES,
        STORAGE_USAGE,
        LICENSE_USAGE,
        NODE_INVENTORY,
    )
}

LANDINGS_SCHEMA = pa.schema(
    [
        ("source", _text),
        ("table_name", _text),
        ("rows", _int),
        ("quarantined", _int),
        ("content_hash", _text),
        ("date", pa.date32()),
    ]
)
"""One row per source, table and day: what the day was built from (see `landings` in dbt)."""


DELIVERIES_SCHEMA = pa.schema(
    [
        ("source", _text),
        ("table_name", _text),
        ("delivery", _text),
        ("delivered_at", _time),
        ("content_hash", _text),
        ("size_bytes", _int),
        ("variant", _text),
        ("stream", _text),
        ("replaces", _text),
        ("provider", _text),
        ("invoice_id", _text),
        ("period_start_date", pa.date32()),
        ("period_end_date", pa.date32()),
        ("currency", _text),
        ("rows", _int),
        ("quarantined", _int),
        ("billed_cost", _money),
        ("effective_cost", _money),
        ("date", pa.date32()),
    ]
)
"""One row per delivered file, invoice, billing period and currency (see `raw_deliveries` in dbt); `date` is the day of
the delivery. `replaces` says what older deliveries give way to it: billing_period, window or nothing. `stream` tells
deliveries apart that stand beside each other, such as actual and amortized cost."""


CLOSED_LINES_SCHEMA = pa.schema(
    [
        ("close_number", _int),
        ("period_date", pa.date32()),
        ("invoice_id", _text),
        ("invoice_version", _int),
        ("billing_mode", _text),
        ("team_id", _text),
        ("team_name", _text),
        ("cost_centre", _text),
        ("project_id", _text),
        ("project_name", _text),
        ("component", _text),
        ("allocation_kind", _text),
        ("corrected_period_date", pa.date32()),
        ("cause", _text),
        ("currency", _text),
        ("amount", _money),
        ("invoiced_amount", _money),
        ("reporting_currency", _text),
        ("reporting_rate", _money),
        ("reporting_amount", _money),
        ("expense_account", _text),
        ("clearing_account", _text),
        ("clearing_cost_centre", _text),
        ("closed_at", _time),
        ("closed_by", _text),
        ("override_reason", _text),
        ("policy_version", _text),
        ("delivery_hashes", _text),
        ("content_hash", _text),
        ("previous_hash", _text),
        ("date", pa.date32()),
    ]
)
"""One row per line of a closed month (see `fct_invoice_lines` in dbt); `date` is the month's first day."""

CLOSED_DAYS_SCHEMA = pa.schema(
    [
        ("close_number", _int),
        ("usage_date", pa.date32()),
        ("policy_hash", _text),
        ("bill_hash", _text),
        ("records_hash", _text),
        ("date", pa.date32()),
    ]
)
"""One row per close and day that it saw first or changed: what the day was built from, empty if it was not built."""

RETROACTIVE_DAYS_SCHEMA = pa.schema(
    [
        ("usage_date", pa.date32()),
        ("policy_hash", _text),
        ("after_close_number", _int),
        ("recorded_at", _time),
        ("recorded_by", _text),
        ("reason", _text),
        ("date", pa.date32()),
    ]
)
"""One row per day of a closed month and change of policy that was let into it."""

WHOLE_TABLES = {
    "deliveries": DELIVERIES_SCHEMA,
    "closed_lines": CLOSED_LINES_SCHEMA,
    "closed_days": CLOSED_DAYS_SCHEMA,
    "retroactive_days": RETROACTIVE_DAYS_SCHEMA,
}
"""History that no run of days makes or forgets: small, and handed on as a whole."""


def sql_type(column: pa.DataType) -> str:
    """The DuckDB type that is written to Parquet as this Arrow type."""
    if pa.types.is_decimal(column):
        return f"decimal({column.precision}, {column.scale})"
    return {
        _text: "varchar",
        _int: "bigint",
        _time: "timestamptz",
        pa.float64(): "double",
        pa.bool_(): "boolean",
    }[column]
