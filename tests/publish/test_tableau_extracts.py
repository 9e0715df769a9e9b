"""Tableau gets the marts, exactly: the extracts as the Hyper API reads them, the data source as Tableau does."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import sys
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from xml.etree import ElementTree as xml

import duckdb
import pytest
from tableauhyperapi import Connection, HyperProcess, TableName, Telemetry

from orchestration.errors import ApportionError
from orchestration.publish.tableau.extracts import Extracts, write_extracts
from orchestration.publish.tableau.hyper import engine
from orchestration.workspace import Workspace

NUMBERS = re.compile(r"DECIMAL|.*INT")

CLOSED_LINES = """
    create table core.fct_invoice_lines as
    select
        1::bigint as close_number, usage_date as period_date, team_id, component, currency,
        ['first', 'second'] as delivery_hashes, amount, now()::timestamp as closed_at
    from core.fct_cost_allocations
    limit 50
"""
"""What a close leaves, as far as an extract cares: money, a date, a time, and a type that Tableau has no name for."""

Query = Callable[[Path, str], list[list]]


@pytest.fixture(scope="session")
def published(demo: Workspace, tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """The demo's published marts in a place of their own, with closed invoice lines even if nothing was closed."""
    workspace = replace(demo, data=tmp_path_factory.mktemp("tableau"))
    workspace.published.mkdir()
    shutil.copy(demo.published / "marts.duckdb", workspace.published)
    with duckdb.connect(str(workspace.published / "marts.duckdb")) as marts:
        if not marts.execute("from duckdb_tables() where table_name = 'fct_invoice_lines'").fetchall():
            marts.execute(CLOSED_LINES)
    return workspace


@pytest.fixture(scope="session")
def extracts(published: Workspace) -> Extracts:
    return write_extracts(published)


@pytest.fixture(scope="session")
def hyper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Query]:
    logs = {"log_dir": str(tmp_path_factory.mktemp("hyper"))}
    with HyperProcess(Telemetry.DO_NOT_SEND_USAGE_DATA_TO_TABLEAU, parameters=logs) as process:

        def query(file: Path, sql: str) -> list[list]:
            with Connection(process.endpoint, str(file)) as connection:
                return connection.execute_list_query(sql)

        query.columns = lambda file, table: _columns(process, file, table)
        yield query


def _columns(process: HyperProcess, file: Path, table: str) -> dict[str, str]:
    with Connection(process.endpoint, str(file)) as connection:
        definition = connection.catalog.get_table_definition(TableName("Extract", table))
    return {column.name.unescaped: str(column.type) for column in definition.columns}


@pytest.fixture(scope="session")
def tds(extracts: Extracts) -> xml.Element:
    with zipfile.ZipFile(extracts.datasource) as archive:
        return xml.fromstring(archive.read("apportion_costs.tds"))


# --- the extracts --------------------------------------------------------------------------------------------


def test_every_extract_has_the_rows_and_the_sums_of_its_mart_per_currency(
    published: Workspace, extracts: Extracts, hyper: Query
) -> None:
    with duckdb.connect(str(published.published / "marts.duckdb"), read_only=True) as marts:
        tables = marts.execute(
            """
            select schema_name, table_name from duckdb_tables()
            where schema_name = 'reporting' and table_name like 'rpt\\_%' escape '\\'
                or table_name = 'fct_invoice_lines'
            """
        ).fetchall()
        assert set(extracts.tables) == {table for _, table in tables} | {"costs"}
        assert len(tables) >= 8
        compared = 0
        for schema, table in tables:
            columns = marts.execute(f"describe {schema}.{table}").fetchall()
            numbers = [name for name, kind, *_ in columns if NUMBERS.match(kind)]
            by = "currency" if "currency" in [name for name, *_ in columns] else "1"
            sums = "".join(f', sum("{name}")' for name in numbers)
            question = f"select {by}, count(*){sums} from {{}} group by 1 order by 1"
            expected = marts.execute(question.format(f"{schema}.{table}")).fetchall()
            found = hyper(extracts.tables[table], question.format(f'"Extract"."{table}"'))
            assert [tuple(row) for row in found] == expected, table
            assert list(hyper.columns(extracts.tables[table], table)) == [name for name, *_ in columns]
            compared += len(numbers) * len(expected)
    assert compared > 100


def test_the_costs_are_those_of_the_allocations_at_every_level(
    published: Workspace, extracts: Extracts, hyper: Query
) -> None:
    costs = extracts.tables["costs"]
    with duckdb.connect(str(published.published / "marts.duckdb"), read_only=True) as marts:
        for theirs, ours in {
            "currency": "currency",
            "currency, usage_date, team_id": "currency, usage_date, team_id",
            "currency, coalesce(project_id, '')": "currency, coalesce(project_id, '')",
            "currency, coalesce(user_name, '(nobody)')": "currency, user_name",
            "currency, coalesce(job_key, '')": "currency, coalesce(job_key, '')",
            "currency, pool_id, component, allocation_kind, coalesce(idle_cause, '')": (
                "currency, pool_id, component, allocation_kind, coalesce(idle_cause, '')"
            ),
        }.items():
            # Rows that carry only hours of a kind that cost nothing have a cost of 0, and their group may be new.
            expected = marts.execute(
                f"select {theirs}, sum(amount) as cost from core.fct_cost_allocations group by all having cost <> 0"
            ).fetchall()
            levels = len(expected[0]) - 1
            group = ", ".join(str(level + 1) for level in range(levels))
            found = hyper(
                costs, f'select {ours}, sum(cost) from "Extract"."costs" group by {group} having sum(cost) <> 0'
            )
            assert {tuple(str(part) for part in row) for row in found} == {
                tuple(str(part) for part in row) for row in expected
            }, theirs
        hours = marts.execute("select sum(gpu_hours) from reporting.rpt_job_receipts").fetchone()
    assert hyper(costs, 'select sum(gpu_hours) from "Extract"."costs"') == [list(hours)]


def test_the_drill_path_narrows_from_organisation_to_job(extracts: Extracts, hyper: Query) -> None:
    costs = extracts.tables["costs"]
    organisations = {row[0] for row in hyper(costs, 'select distinct organisation from "Extract"."costs"')}
    assert {"Research", "Product"} <= organisations
    assert hyper(
        costs, 'select distinct organisation from "Extract"."costs" where team_path = \'Research / Vision\''
    ) == [["Research"]]
    # A job belongs to one user: the same name under another one is another job.
    assert (
        hyper(
            costs,
            """
            select job from "Extract"."costs" where job_key is not null
            group by job having count(distinct job_key) > 1
            """,
        )
        == []
    )
    nulls = hyper(
        costs,
        """
        select count(*) from "Extract"."costs"
        where organisation is null or team_name is null or project_name is null or user_name is null or job is null
            or usage_year is null or usage_month is null or usage_day is null
        """,
    )
    assert nulls == [[0]]


def test_money_is_stored_exactly_in_64_bits_or_where_it_must_in_128(
    published: Workspace, tmp_path: Path, extracts: Extracts, hyper: Query
) -> None:
    assert extracts.wide == ()
    assert hyper.columns(extracts.tables["costs"], "costs")["cost"] == "NUMERIC(18, 9)"

    workspace = replace(published, data=tmp_path)
    workspace.published.mkdir()
    shutil.copy(published.published / "marts.duckdb", workspace.published)
    with duckdb.connect(str(workspace.published / "marts.duckdb")) as marts:
        marts.execute("update reporting.rpt_reconciliation set billed_cost = 12345678901234.123456789")
        (rows,) = marts.execute("select count(*) from reporting.rpt_reconciliation").fetchone()
    grown = write_extracts(workspace)
    assert grown.wide == ("rpt_reconciliation.billed_cost",)
    kept = hyper.columns(grown.tables["rpt_reconciliation"], "rpt_reconciliation")
    assert (kept["billed_cost"], kept["allocatable_cost"]) == ("NUMERIC(38, 9)", "NUMERIC(18, 9)")
    assert hyper(grown.tables["rpt_reconciliation"], 'select sum(billed_cost) from "Extract"."rpt_reconciliation"') == [
        [rows * Decimal("12345678901234.123456789")]
    ]


def test_only_what_changed_is_written_and_nothing_is_left_lying_about(published: Workspace, tmp_path: Path) -> None:
    workspace = replace(published, data=tmp_path)
    workspace.published.mkdir()
    shutil.copy(published.published / "marts.duckdb", workspace.published)
    first = write_extracts(workspace)
    assert set(first.written) == set(first.tables)
    before = _hashes(first)
    (first.folder / ".building-killed").mkdir()
    (first.folder / "rpt_of_yesterday.hyper").touch()

    assert write_extracts(workspace).written == ()
    assert _hashes(first) == before

    with duckdb.connect(str(workspace.published / "marts.duckdb")) as marts:
        marts.execute("delete from reporting.rpt_fairness where team_id = 'vision'")
        # The same rows in another order are the same table.
        marts.execute("create table again as from reporting.rpt_idle_daily order by idle_cost")
        marts.execute("delete from reporting.rpt_idle_daily")
        marts.execute("insert into reporting.rpt_idle_daily from again")
        marts.execute("drop table again")
    second = write_extracts(workspace)
    assert second.written == ("rpt_fairness",)
    assert second.rows["rpt_fairness"] < first.rows["rpt_fairness"]
    after = _hashes(second)
    assert {name for name in before if before[name] != after[name]} == {"rpt_fairness.hyper"}

    second.tables["costs"].unlink()
    assert write_extracts(workspace).written == ("costs",)
    assert {file.name for file in second.folder.iterdir()} == {*after, ".extracts.json"}
    assert not list(Path.cwd().glob("hyperd*.log"))


def _hashes(extracts: Extracts) -> dict[str, str]:
    files = (extracts.datasource, *extracts.tables.values())
    return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


def test_without_published_marts_it_says_what_to_run(published: Workspace, tmp_path: Path) -> None:
    with pytest.raises(ApportionError, match="apportion run"):
        write_extracts(replace(published, data=tmp_path))


def test_where_hyper_does_not_exist_it_says_where_it_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tableauhyperapi", None)
    with pytest.raises(ApportionError, match="cannot be loaded on this machine"), engine(tmp_path, wide=False):
        pass


# --- the data source -----------------------------------------------------------------------------------------


def test_tableaus_document_api_reads_the_data_source(extracts: Extracts) -> None:
    try:
        from tableaudocumentapi import Datasource
    except ImportError as error:  # it needs distutils, which Python 3.12 no longer has by itself
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(f"tableaudocumentapi cannot be imported: {error}")
    source = Datasource.from_file(str(extracts.datasource))
    assert (source.name, source.caption, source.version) == ("apportion_costs", "Apportion costs", "18.1")
    assert [(link.dbclass, link.dbname) for link in source.connections] == [("hyper", "Data/Extracts/costs.hyper")]

    fields = source.fields
    captions = {"[cost]": "Cost", "[organisation]": "Organisation", "[job]": "Job", "[gpu_model]": "GPU model"}
    assert {name: fields[name].caption for name in captions} == captions
    cost = fields["[cost]"]
    assert (cost.datatype, cost.role, cost.type, cost.default_aggregation) == ("real", "measure", "quantitative", "Sum")
    assert "exact to nine decimals" in cost.description
    assert (fields["[usage_date]"].datatype, fields["[team_name]"].role) == ("date", "dimension")
    assert {name for name, field in fields.items() if field.hidden == "true"} == {
        f"[{key}]" for key in ("team_id", "root_team_id", "project_id", "job_key", "pool_id")
    }
    assert fields["[one_currency_cost]"].calculation == "IF MIN([currency]) = MAX([currency]) THEN SUM([cost]) END"
    undescribed = [name for name, field in fields.items() if not field.description]
    assert undescribed == []


def test_the_data_source_says_how_to_drill_where_fields_are_and_how_they_look(tds: xml.Element) -> None:
    paths = {path.get("name"): [field.text for field in path] for path in tds.iterfind("drill-paths/drill-path")}
    assert paths == {
        "Payer": ["[organisation]", "[team_name]", "[project_name]", "[user_name]", "[job]"],
        "Calendar": ["[usage_year]", "[usage_month]", "[usage_day]"],
    }
    folders = {
        folder.get("name"): [item.get("name") for item in folder] for folder in tds.iterfind("folders-common/folder")
    }
    assert list(folders) == ["Time", "Who pays", "Where", "What for", "Measures"]
    assert folders["Measures"] == ["[currency]", "[cost]", "[gpu_hours]", "[one_currency_cost]", "[idle_share]"]

    columns = {column.get("name"): column for column in tds.iterfind("column")}
    placed = [name for items in (*paths.values(), *folders.values()) for name in items]
    visible = {name for name, column in columns.items() if column.get("hidden") != "true"}
    assert len(placed) == len(set(placed))
    assert set(placed) == visible

    measures = {name: column for name, column in columns.items() if column.get("role") == "measure"}
    assert {name: (column.get("aggregation"), column.get("default-format")) for name, column in measures.items()} == {
        "[cost]": ("Sum", "n#,##0.00;-#,##0.00"),
        "[gpu_hours]": ("Sum", "n#,##0.0;-#,##0.0"),
        "[one_currency_cost]": (None, "n#,##0.00;-#,##0.00"),
        "[idle_share]": (None, "p0.0%"),
    }
    assert columns["[usage_date]"].get("default-format") == "*yyyy-MM-dd"


def test_the_data_source_names_tables_and_columns_that_its_extract_has(
    tds: xml.Element, extracts: Extracts, hyper: Query, tmp_path: Path
) -> None:
    with zipfile.ZipFile(extracts.datasource) as archive:
        assert archive.testzip() is None
        inside = Path(archive.extract(tds.find(".//named-connection/connection").get("dbname"), tmp_path))
    assert inside.read_bytes() == extracts.tables["costs"].read_bytes()
    existing = hyper.columns(inside, "costs")

    (named,) = tds.iterfind("connection/named-connections/named-connection")
    relations = list(tds.iter("relation"))
    assert len(relations) == 2
    assert {(relation.get("connection"), relation.get("table")) for relation in relations} == {
        (named.get("name"), "[Extract].[costs]")
    }
    maps = {entry.get("key"): entry.get("value") for entry in tds.iterfind("connection/cols/map")}
    assert maps == {f"[{column}]": f"[costs].[{column}]" for column in existing}

    types = {"string": "TEXT", "date": "DATE", "real": "NUMERIC(18, 9)"}
    records = tds.findall("connection/metadata-records/metadata-record")
    assert {record.findtext("remote-name"): types[record.findtext("local-type")] for record in records} == existing
    (whole,) = tds.iterfind("object-graph/objects/object")
    assert {record.findtext("object-id") for record in records} == {f"[{whole.get('id')}]"}
    datatypes = {f"[{record.findtext('remote-name')}]": record.findtext("local-type") for record in records}
    columns = {column.get("name"): column for column in tds.iterfind("column")}
    for name, column in columns.items():
        formula = column.find("calculation")
        if formula is None:
            assert column.get("datatype") == datatypes[name]
        else:
            assert set(re.findall(r"\[\w+\]", formula.get("formula"))) <= set(maps)
    assert set(columns) >= set(maps)


ORDER = (
    "document-format-change-manifest", "connection", "aliases", "column", "drill-paths", "folders-common", "layout",
    "object-graph",
)  # fmt: skip
RECORD_ORDER = (
    "remote-name", "remote-type", "local-name", "parent-name", "remote-alias", "ordinal", "local-type", "aggregation",
    "precision", "scale", "contains-null", "object-id",
)  # fmt: skip
"""As in Tableau's published schema of its documents, which is strict about order: Tableau refuses a file otherwise."""


def test_elements_stand_in_the_order_of_tableaus_schema(tds: xml.Element) -> None:
    assert [child.tag for child in tds] == sorted((child.tag for child in tds), key=ORDER.index)
    for record in tds.iter("metadata-record"):
        assert [child.tag for child in record] == [tag for tag in RECORD_ORDER if record.find(tag) is not None]
    for column in tds.iterfind("column"):
        assert [child.tag for child in column] in (["desc"], ["calculation", "desc"])
