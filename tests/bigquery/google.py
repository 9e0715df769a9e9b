"""Google's own SQL analyzer and reference evaluator (the package `zetasql`), as far as tests ask them.

The analyzer says whether a statement is GoogleSQL and which types come out of it; the evaluator answers queries on
small tables with the very arithmetic of the language. Neither has storage, partitions or jobs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from decimal import Decimal, getcontext
from typing import Any

import wasmtime
import zetasql.core.wasm_client
from google.protobuf.timestamp_pb2 import Timestamp
from zetasql.api import CatalogBuilder, PreparedQuery, TableBuilder
from zetasql.core import ZetaSqlLocalService
from zetasql.types import (
    AnalyzerOptions,
    EvaluateQueryRequest,
    LanguageOptions,
    ProductMode,
    TableContent,
    TableData,
    TypeKind,
    Value,
    ZetaSQLBuiltinFunctionOptions,
)
from zetasql.wasi._pb2.zetasql.local_service import local_service_pb2

getcontext().prec = 100  # BIGNUMERIC has up to 77 digits


class _Cached(wasmtime.Config):
    """Compiling the analyzer takes most of a minute; with wasmtime's cache, once per machine."""

    def __init__(self) -> None:
        super().__init__()
        self.cache = True


zetasql.core.wasm_client.Config = _Cached

KINDS = {
    "string": TypeKind.TYPE_STRING,
    "int64": TypeKind.TYPE_INT64,
    "float64": TypeKind.TYPE_DOUBLE,
    "bool": TypeKind.TYPE_BOOL,
    "date": TypeKind.TYPE_DATE,
    "timestamp": TypeKind.TYPE_TIMESTAMP,
    "numeric": TypeKind.TYPE_NUMERIC,
    "bignumeric": TypeKind.TYPE_BIGNUMERIC,
}
NAMES = {kind: name for name, kind in KINDS.items()}
Columns = dict[str, str]
"""The columns of a table and their GoogleSQL types, by the names of KINDS."""
Row = tuple[Any, ...]


@dataclass
class Tables:
    """What a statement may read: tables by the full name under which compiled SQL knows them."""

    columns: dict[str, Columns] = field(default_factory=dict)
    rows: dict[str, Sequence[Row]] = field(default_factory=dict)


def _language() -> LanguageOptions:
    options = LanguageOptions.maximum_features()
    options.reserved_keywords = ["QUALIFY"]
    options.product_mode = ProductMode.PRODUCT_EXTERNAL
    return options


LANGUAGE = _language()
OPTIONS = AnalyzerOptions(language_options=LANGUAGE, default_timezone="UTC")
FUNCTIONS = ZetaSQLBuiltinFunctionOptions(language_options=LANGUAGE)
_RELATION = re.compile(r"`([\w-]+)`\.`(\w+)`\.`(\w+)`(\s+as\s)?", re.IGNORECASE)


def output_columns(sql: str, tables: Tables) -> Columns:
    """The columns that a query gives; raises what the analyzer has against it."""
    flat, used = _flattened(sql)
    with _builder(flat, tables, used).prepare() as prepared:
        return _columns(prepared)


def answer(sql: str, tables: Tables) -> tuple[Columns, list[Row]]:
    """The columns and the rows of a query on the rows of `tables`."""
    flat, used = _flattened(sql)
    content = {short: _content(tables, full) for full, short in used.items()}
    with _builder(flat, tables, used).set_table_content(content).prepare() as prepared:
        columns = _columns(prepared)
        # As the service sends it: the package's own models of it lose times.
        found = ZetaSqlLocalService.get_instance().wasm_client.call_grpc_func(
            "ZetaSqlLocalService_EvaluateQuery",
            EvaluateQueryRequest(prepared_query_id=prepared.prepared_query_id).to_proto(),
            local_service_pb2.EvaluateQueryResponse,
        )
    return columns, [tuple(map(_read, row.cell)) for row in found.content.table_data.row]


def _builder(sql: str, tables: Tables, used: Mapping[str, str]) -> Any:
    # Preparing a query analyzes it, and does not bring the resolved tree over, which takes longer than making it.
    return PreparedQuery.builder().set_sql(sql).set_analyzer_options(OPTIONS).set_catalog(_catalog(tables, used))


def _columns(prepared: PreparedQuery) -> Columns:
    kinds = {column.name: TypeKind(column.type.type_kind) for column in prepared.columns}
    return {name: NAMES.get(kind, kind.name) for name, kind in kinds.items()}


def _flattened(sql: str) -> tuple[str, dict[str, str]]:
    """The query with tables of one catalog, under the alias that the last part of a full name gives them."""
    used: dict[str, str] = {}

    def short(found: re.Match[str]) -> str:
        project, dataset, table, alias = found.groups()
        name = used.setdefault(f"{project}.{dataset}.{table}", f"{dataset}__{table}")
        return f"`{name}`{alias or f' as `{table}` '}"

    return _RELATION.sub(short, sql), used


def _catalog(tables: Tables, used: Mapping[str, str]) -> Any:
    catalog = CatalogBuilder("apportion")
    for full, short in used.items():
        table = TableBuilder(short)
        for name, kind in tables.columns[full].items():
            table = table.add_column(name, KINDS[kind])
        catalog = catalog.add_table(table.build())
    return catalog.with_builtin_functions(FUNCTIONS).build()


def _content(tables: Tables, full: str) -> TableContent:
    kinds = list(tables.columns[full].values())
    return TableContent(
        table_data=TableData(
            row=[
                TableData.Row(cell=[_value(value, kind) for value, kind in zip(row, kinds, strict=True)])
                for row in tables.rows[full]
            ]
        )
    )


def _value(value: Any, kind: str) -> Value:
    if value is None:
        return Value()
    match kind:
        case "string":
            return Value(string_value=str(value))
        case "int64":
            return Value(int64_value=int(value))
        case "float64":
            return Value(double_value=float(value))
        case "bool":
            return Value(bool_value=bool(value))
        case "date":
            return Value(date_value=(value - date(1970, 1, 1)).days)
        case "timestamp":
            return Value(timestamp_value=_instant(value))
        case "numeric":
            return Value(numeric_value=_scaled(value, 9))
        case "bignumeric":
            return Value(bignumeric_value=_scaled(value, 38))
    raise ValueError(f"no way to write {value!r} as {kind}")


def _read(cell: Any) -> Any:
    """What `_value` wrote, or an answer holds."""
    field = cell.WhichOneof("value")
    found = getattr(cell, field) if field else None
    match field:
        case "numeric_value" | "bignumeric_value":
            return Decimal(int.from_bytes(found, "little", signed=True)).scaleb(-9 if field == "numeric_value" else -38)
        case "date_value":
            return date(1970, 1, 1) + timedelta(days=found)
        case "timestamp_value":
            return found.ToDatetime()
    return found


def _instant(value: datetime) -> Timestamp:
    instant = Timestamp()
    instant.FromDatetime(value)
    return instant


def _scaled(value: Decimal | int, scale: int) -> bytes:
    """A decimal as the language stores it: a whole number of its last decimals, in as few bytes as hold it."""
    with_scale = Decimal(value).scaleb(scale)
    whole = int(with_scale)
    assert whole == with_scale, f"{value} has more than {scale} decimals"
    return whole.to_bytes(whole.bit_length() // 8 + 1, "little", signed=True)
