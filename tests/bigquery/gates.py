"""The gates that every statement for BigQuery passes: Google's analyzer, a lint for what it lets through, and Google's
reference evaluator beside DuckDB.

Each gate is a function from SQL to what is wrong with it, so that tests can also show that it closes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb

from tests.bigquery.google import Columns, Row, Tables, answer, output_columns
from tests.bigquery.project import Project

LINT = {
    r"\basof\b": "`asof` is only an alias to GoogleSQL: the join would be an ordinary one",
    r"\b(date|timestamp)_trunc\([^()]*,\s*week\s*\)": "a week begins on Sunday there and on Monday here; say isoweek",
    r"\bavg\s*\(": "a mean of money is a division: use `share` or `quotient`",
    r"(?<![/*])/(?![/*])": "a bare division rounds as each engine likes: use `share`, `quotient` or `floor_divide`",
}
"""What the analyzer accepts and what means something else on another engine."""
SHARED = re.compile(r"round\(cast\(.*? / nullif\(.*?, 0\), \d\)", re.DOTALL)
"""What `share` writes: the one place that divides."""


def lint(sql: str) -> list[str]:
    """Compiled SQL without comments, texts and what `share` wrote must have none of these."""
    bare = re.sub(r"--[^\n]*|/\*.*?\*/|r?'(?:[^'\\]|\\.)*'", "", sql, flags=re.DOTALL)
    bare = SHARED.sub("", bare)
    return [why for pattern, why in LINT.items() if re.search(pattern, bare, re.IGNORECASE)]


@dataclass
class Outcome:
    """What a gate has seen, and what it has against it."""

    models: int = 0
    statements: int = 0
    rows: int = 0
    problems: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return f"{self.models} models, {self.statements} statements, {self.rows} rows, {len(self.problems)} problems"


def analyse(project: Project) -> tuple[Outcome, Tables]:
    """Every model and test, in the order of the graph: each read against what the analyzer made of those before it."""
    tables, outcome = Tables(dict(project.given)), Outcome()
    for node in project.nodes:
        outcome.statements += 1
        outcome.problems += [f"{node.name}: {why}" for why in lint(node.sql)]
        try:
            found = output_columns(node.sql, tables)
        except Exception as error:  # whatever the analyzer raises is its verdict
            outcome.problems.append(f"{node.name}: {error}")
            continue
        if node.kind == "model":
            outcome.models += 1
            tables.columns[node.relation] = found
            if node.contract is not None and node.contract != found:
                outcome.problems.append(f"{node.name}: its contract says {node.contract}, its query gives {found}")
    return outcome, tables


class Warehouse:
    """What DuckDB made of the same inputs."""

    def __init__(self, project: Project, data: Path, database: Path) -> None:
        self._project, self._data = project, data
        self._connection = duckdb.connect(str(database), read_only=True)
        self._connection.execute("set TimeZone = 'UTC'")

    def rows(self, relation: str, columns: Columns) -> list[Row]:
        schema, name = self._project.described[relation]
        listed = ", ".join(f'"{column}"' for column in columns)
        files = f"read_parquet('{self._data}/landing/{name}/date=*/*.parquet', hive_partitioning = false)"
        table = files if schema == "landing" else f'{schema}."{name}"'
        return self._connection.execute(f"select {listed} from {table}").fetchall()


def compare(project: Project, warehouse: Warehouse) -> Outcome:
    """Each model on Google's evaluator, given what DuckDB has before it, against what DuckDB made of the same.

    Equal at every step means equal in the end, and a difference is seen where it arises.
    """
    outcome, tables = Outcome(), Tables(dict(project.given))
    tables.rows = {name: warehouse.rows(name, columns) for name, columns in project.given.items()}
    for model in project.models:
        outcome.models += 1
        outcome.statements += 1
        columns, theirs = answer(model.sql, tables)
        ours = warehouse.rows(model.relation, columns)
        tables.columns[model.relation], tables.rows[model.relation] = columns, ours
        outcome.rows += len(ours)
        outcome.problems += [f"{model.name}: {found}" for found in differences(columns, ours, theirs)]
    return outcome


def differences(columns: Columns, ours: Sequence[Row], theirs: Sequence[Row]) -> Iterator[str]:
    """None if both have the same rows; else how many there are and the first that differ."""
    one, two = (sorted((_plain(row, columns) for row in rows), key=repr) for rows in (ours, theirs))
    if one != two:
        here, there = ([row for row in rows if row not in others][:1] for rows, others in ((one, two), (two, one)))
        yield f"{len(one)} rows on DuckDB and {len(two)} on the evaluator, such as {here} and {there}"


def _plain(row: Row, columns: Mapping[str, str]) -> Row:
    return tuple(_plain_value(value, kind) for value, kind in zip(row, columns.values(), strict=True))


def _plain_value(value: Any, kind: str) -> Any:
    """A value as both sides mean it: DuckDB has weights as integers and landed times with their zone."""
    if value is None:
        return None
    match kind:
        case "numeric" | "bignumeric":
            return Decimal(value).normalize()
        case "timestamp":
            return value.replace(tzinfo=None)
    return value
