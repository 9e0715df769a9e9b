"""What a query reads on BigQuery: of which tables, which columns, and which days of the partition column.

BigQuery bills whole columns of whole partitions. A column counts if the query needs it for its result, however many
CTEs and views lie between; a partition counts unless a constant filter on the partition column leaves it out. A table
that is named several times in one query is read once: all columns and days that any of the places needs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import NamedTuple

from sqlglot import exp, parse_one
from sqlglot.optimizer.annotate_types import annotate_types
from sqlglot.optimizer.qualify import qualify
from sqlglot.optimizer.scope import Scope, build_scope
from sqlglot.schema import MappingSchema

DIALECT = "bigquery"


class Days(NamedTuple):
    """Half-open days of a partition column."""

    start: date
    end: date

    def both(self, other: Days) -> Days:
        return Days(max(self.start, other.start), min(self.end, other.end))


EVER = Days(date.min, date.max)


class Read(NamedTuple):
    """Columns that a query needs of a table, on the days that its filters leave."""

    relation: str
    columns: frozenset[str]
    days: Days


@dataclass(frozen=True)
class Catalog:
    """What is known of the relations that a query may name, by their full names."""

    schema: MappingSchema = field(default_factory=lambda: MappingSchema(dialect=DIALECT))
    types: dict[str, dict[str, str]] = field(default_factory=dict)
    """BigQuery type by column."""
    partitioned_by: dict[str, str] = field(default_factory=dict)
    views: dict[str, Scope] = field(default_factory=dict)

    def add(self, relation: str, types: Mapping[str, str], partition_column: str | None = None) -> None:
        self.types[relation] = dict(types)
        self.schema.add_table(_table(relation), dict(types))
        if partition_column:
            self.partitioned_by[relation] = partition_column

    def add_view(self, relation: str, query: exp.Query) -> None:
        """A query over a view scans what the view's own query would."""
        self.add(relation, column_types(query, self))
        self.views[relation] = _scope(query)


def qualified(sql: str, catalog: Catalog) -> exp.Query:
    """A query in which every column says whose it is and no star is left."""
    found = qualify(
        parse_one(sql, dialect=DIALECT),
        schema=catalog.schema,
        dialect=DIALECT,
        validate_qualify_columns=False,
        quote_identifiers=False,
    )
    assert isinstance(found, exp.Query)
    return found


def column_types(query: exp.Query, catalog: Catalog) -> dict[str, str]:
    """The columns that a qualified query gives, and their types."""
    annotate_types(query, schema=catalog.schema, dialect=DIALECT)
    return {one.alias_or_name: one.type.sql(DIALECT).partition("(")[0] if one.type else "" for one in query.selects}


def reads_of(query: exp.Query, catalog: Catalog) -> frozenset[Read]:
    """What a qualified query reads if all of its columns are wanted: one read per table and days."""
    scope = _scope(query)
    columns: dict[tuple[str, Days], set[str]] = {}
    for read in _Reader(catalog).reads(scope, frozenset(_outputs(scope)), {}):
        columns.setdefault((read.relation, read.days), set()).update(read.columns)
    return frozenset(Read(relation, frozenset(names), days) for (relation, days), names in columns.items())


# --- reading a query from its result back to its tables ----------------------------------------------------

Filters = dict[str, Days]
"""The days that are left of a column, by its name."""


@dataclass
class _Reader:
    """One query's walk. Answers are kept: a CTE that many others read is asked the same again and again."""

    catalog: Catalog
    known: dict[tuple[int, frozenset[str], frozenset[tuple[str, Days]]], frozenset[Read]] = field(default_factory=dict)
    walking: set[int] = field(default_factory=set)

    def reads(self, scope: Scope, wanted: frozenset[str], filters: Filters) -> frozenset[Read]:
        key = (id(scope), wanted, frozenset(filters.items()))
        if key in self.known:
            return self.known[key]
        if id(scope.expression) in self.walking:  # a recursive CTE that names itself
            return frozenset()
        self.walking.add(id(scope.expression))
        try:
            if isinstance(scope.expression, exp.SetOperation):
                found = self._of_set_operation(scope, wanted, filters)
            elif isinstance(scope.expression, exp.Select):
                found = self._of_select(scope, wanted, filters)
            else:  # UNNEST and the like, whose arguments are counted where it stands
                found = frozenset()
        finally:
            self.walking.discard(id(scope.expression))
        self.known[key] = found
        return found

    def _of_set_operation(self, scope: Scope, wanted: frozenset[str], filters: Filters) -> frozenset[Read]:
        """Branches go by position, under the names of the first. Only UNION ALL can do without a column."""
        names = _outputs(scope)
        keeps_all = not isinstance(scope.expression, exp.Union) or bool(scope.expression.args.get("distinct"))
        if keeps_all or _is_recursive(scope.expression):
            wanted = frozenset(names)
        if scope.expression.args.get("limit"):
            filters = {}
        found: set[Read] = set()
        for branch in scope.set_operation_scopes:
            renamed = dict(zip(names, _outputs(branch), strict=True))
            inner = {renamed[name]: days for name, days in filters.items()}
            found |= self.reads(branch, frozenset(renamed[name] for name in wanted), inner)
        return frozenset(found)

    def _of_select(self, scope: Scope, wanted: frozenset[str], filters: Filters) -> frozenset[Read]:
        select = scope.expression
        parts = list(_needed_parts(select, wanted))
        nodes = {id(node) for part in parts for node in part.walk()}
        columns: dict[str, set[str]] = {name: set() for name in scope.selected_sources}
        for column in (column for part in parts for column in part.find_all(exp.Column)):
            if column.table in columns:
                columns[column.table].add(column.name)
        left = _filters(scope, filters)
        found: set[Read] = set()
        for name, (_, source) in scope.selected_sources.items():
            found |= self._of_source(source, frozenset(columns[name]), left.get(name, {}))
        for subquery in scope.subquery_scopes:
            if id(subquery.expression) in nodes:
                found |= self.reads(subquery, frozenset(_outputs(subquery)), {})
        return frozenset(found)

    def _of_source(self, source: Scope | exp.Expr, wanted: frozenset[str], filters: Filters) -> frozenset[Read]:
        if isinstance(source, Scope):
            return self.reads(source, wanted, filters)
        assert isinstance(source, exp.Table)
        relation = ".".join(part.name for part in source.parts)
        if relation in self.catalog.views:
            return self.reads(self.catalog.views[relation], wanted, filters)
        days = filters.get(self.catalog.partitioned_by.get(relation, ""), EVER)
        return frozenset({Read(relation, wanted, days)})


def _needed_parts(select: exp.Select, wanted: frozenset[str]) -> Iterator[exp.Expr]:
    """The select list as far as it is wanted, and everything that decides which rows there are."""
    everything = bool(select.args.get("distinct"))
    yield from (one for one in select.selects if everything or one.alias_or_name in wanted)
    for name, clause in select.args.items():
        if name in ("expressions", "with_", "from_"):  # the tables of FROM are sources
            continue
        for part in clause if isinstance(clause, list) else [clause]:
            if isinstance(part, exp.Join):
                yield from (part.args[key] for key in ("on", "this") if _holds_columns(part.args.get(key)))
            elif isinstance(part, exp.Expr):
                yield part


def _holds_columns(part: exp.Expr | None) -> bool:
    """A joined table or subquery is a source of its own; a joined UNNEST reads the columns of its neighbours."""
    return part is not None and not isinstance(part, exp.Table | exp.Subquery)


# --- filters -----------------------------------------------------------------------------------------------


def _filters(scope: Scope, outer: Filters) -> dict[str, Filters]:
    """Which days are left of which source's columns, by this query's own filters and those of whoever reads it."""
    select = scope.expression
    optional = _optional_sources(select)
    found: dict[str, Filters] = {}

    def narrow(source: str, column: str, days: Days) -> None:
        of_source = found.setdefault(source, {})
        of_source[column] = of_source.get(column, EVER).both(days)

    for source, column, days in _constant_filters(select.args.get("where")):
        if source not in optional:
            narrow(source, column, days)
    for join in select.args.get("joins") or []:
        for source, column, days in _constant_filters(join.args.get("on")):
            # The condition of an outer join leaves rows out of the side that may be missing, and of that alone.
            if not join.side or (join.side == "LEFT" and source == join.alias_or_name):
                narrow(source, column, days)
    if not _sees_other_rows(scope):
        for one in select.selects:
            inner = one.unalias()
            if one.alias_or_name in outer and isinstance(inner, exp.Column) and inner.table not in optional:
                narrow(inner.table, inner.name, outer[one.alias_or_name])
    return found


def _optional_sources(select: exp.Select) -> set[str]:
    """The sources that an outer join may leave without a row: a filter after it is not a filter of their table."""
    optional: set[str] = set()
    start = select.args.get("from_")
    before = {start.alias_or_name} if start else set()
    for join in select.args.get("joins") or []:
        if join.side in ("RIGHT", "FULL"):
            optional |= before
        if join.side in ("LEFT", "FULL"):
            optional.add(join.alias_or_name)
        before.add(join.alias_or_name)
    return optional


def _sees_other_rows(scope: Scope) -> bool:
    """Whether rows that a filter would leave out change the rows that stay, so that it cannot be moved inside."""
    return bool(scope.expression.args.get("limit")) or any(scope.find_all(exp.Window))


def _constant_filters(condition: exp.Expr | None) -> Iterator[tuple[str, str, Days]]:
    """Source, column and days of every condition that compares a column with a date that is written out."""
    if condition is None:
        return
    condition = condition.this if isinstance(condition, exp.Where) else condition
    for one in _conjuncts(condition):
        column, days = _compared(one)
        if column is not None and days is not None:
            yield column.table, column.name, days


def _conjuncts(condition: exp.Expr) -> Iterator[exp.Expr]:
    condition = condition.unnest()
    if isinstance(condition, exp.And):
        yield from _conjuncts(condition.left)
        yield from _conjuncts(condition.right)
    else:
        yield condition


_MIRRORED: dict[type, type] = {exp.LT: exp.GT, exp.LTE: exp.GTE, exp.GT: exp.LT, exp.GTE: exp.LTE, exp.EQ: exp.EQ}


def _compared(condition: exp.Expr) -> tuple[exp.Column | None, Days | None]:
    kind, subject = type(condition), condition.this
    if kind is exp.Between and isinstance(subject, exp.Column):
        low, high = _day(condition.args["low"]), _day(condition.args["high"])
        return subject, Days(low, high + timedelta(days=1)) if low and high else None
    if kind is exp.In and isinstance(subject, exp.Column):
        days = [_day(one) for one in condition.expressions]
        listed = [day for day in days if day]
        whole = listed and len(listed) == len(days)
        return subject, Days(min(listed), max(listed) + timedelta(days=1)) if whole else None
    if kind not in _MIRRORED:
        return None, None
    other = condition.expression
    if isinstance(other, exp.Column):
        kind, subject, other = _MIRRORED[kind], other, subject
    day = _day(other)
    if not isinstance(subject, exp.Column) or day is None:
        return None, None
    following = day + timedelta(days=1)
    return subject, {
        exp.LT: Days(date.min, day),
        exp.LTE: Days(date.min, following),
        exp.GT: Days(following, date.max),
        exp.GTE: Days(day, date.max),
        exp.EQ: Days(day, following),
    }[kind]


def _day(value: exp.Expr) -> date | None:
    """The day of a date literal."""
    is_date = isinstance(value, exp.Cast) and value.is_type(exp.DataType.Type.DATE)
    if not (is_date and isinstance(value.this, exp.Literal) and value.this.is_string):
        return None
    return date.fromisoformat(value.this.name)


# --- small things of the parser ----------------------------------------------------------------------------


def _scope(query: exp.Query) -> Scope:
    scope = build_scope(query)
    assert scope is not None
    return scope


def _outputs(scope: Scope) -> list[str]:
    return [one.alias_or_name for one in scope.expression.selects]


def _is_recursive(union: exp.Expr) -> bool:
    cte = union.parent
    return isinstance(cte, exp.CTE) and any(table.name == cte.alias for table in union.find_all(exp.Table))


def _table(relation: str) -> exp.Table:
    catalog, schema, name = relation.split(".")
    return exp.table_(name, db=schema, catalog=catalog, quoted=True)
