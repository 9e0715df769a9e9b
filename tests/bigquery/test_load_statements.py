"""What Google's own analyzer and evaluator say of the statements that load and verify."""

from __future__ import annotations

from decimal import Decimal
from itertools import chain

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from zetasql.api import Analyzer, CatalogBuilder, TableBuilder

from orchestration.warehouse import digest
from orchestration.warehouse.bigquery import empty_statement, replace_statement
from orchestration.warehouse.tables import SCHEMAS, bigquery_type
from orchestration.workspace import Workspace
from tests.bigquery import google
from tests.bigquery.landed import DAY, land_company, rows_here


@pytest.fixture(scope="module")
def company(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    return land_company(tmp_path_factory.mktemp("company"))


def google_columns(table: str) -> google.Columns:
    return {field.name: bigquery_type(field.type).lower() for field in SCHEMAS[table]}


@pytest.mark.parametrize("table", ["charges", "jobs", "gpu_samples", "deliveries"])
def test_googles_evaluator_and_duckdb_agree_on_what_a_table_holds(company, table, tmp_path):
    """The emulator is DuckDB underneath; this is the arithmetic of the language itself."""
    rows = rows_here(company, table, [DAY])[:40]
    relation = f"p.d.{table}"
    columns, answers = google.answer(
        f"select {digest.sums(table, digest.IN_BIGQUERY)} from `p`.`d`.`{table}` group by `date`",
        google.Tables({relation: google_columns(table)}, {relation: rows}),
    )
    assert next(iter(columns)) == "date"
    there = {day: [Decimal(number or 0) for number in numbers] for day, *numbers in answers}
    named = [dict(zip(SCHEMAS[table].names, row, strict=True)) for row in rows]
    pq.write_table(pa.Table.from_pylist(named, SCHEMAS[table]), tmp_path / "rows.parquet")
    with duckdb.connect() as con:
        here = digest.of_files(con, table, [tmp_path / "rows.parquet"])
    assert there == {day: [found.rows, *chain(*found.columns)] for day, found in here.items()}


@pytest.mark.parametrize("table", SCHEMAS)
def test_every_statement_is_googles_sql(table):
    catalog = CatalogBuilder("landing")
    for name in ("landed", "staged"):
        built = TableBuilder(name)
        for column, kind in google_columns(table).items():
            built = built.add_column(column, google.KINDS[kind])
        catalog = catalog.add_table(built.build())
    analyzer = Analyzer(google.OPTIONS, catalog.with_builtin_functions(google.FUNCTIONS).build())
    for statement in (replace_statement(table, "landed", "staged"), empty_statement("landed")):
        assert analyzer.analyze_statement(statement.replace("@days", "[date '2026-03-10']"))
