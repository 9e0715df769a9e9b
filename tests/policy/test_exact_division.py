"""Division is exact whatever the numbers: the macros' own SQL against Python's integers.

The macros guess in floating point or divide in 64 bits where numbers are small enough, and in 128 bits elsewhere; the
numbers here stand on both sides of every such border, on ties, and at the extremes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Context, Decimal
from random import Random

import duckdb
import pytest

from orchestration import dbt
from orchestration.workspace import Workspace

NANO = 10**9
LARGEST_64 = 2**63 - 1
LARGEST_128 = 2**127 - 1
Units = int | None
Case = tuple[Units, Units, Units]
"""Amount, running and total; amounts of money in units of their ninth decimal."""

WRITTEN = (1, 1_000, 25_200_000, 3_999_999_999, 4_000_000_001, 3_600_000_000_000)
"""Denominators that stand in the model, so that the macro knows them."""

EXPRESSIONS = {
    "quotient": "{{ quotient('running', 'total') }}",
    **{str(total): f"{{{{ quotient('running', '{total}') }}}}" for total in WRITTEN},
    "share": "{{ share('amount', 'running', 'total') }}",
    "whole share": "{{ share('running', 'amount', 'total', 0) }}",
    "nano units": "{{ nano_units('amount') }}",
    "product": "{{ times_rate('amount', 'rate') }}",
    "hours": "{{ seconds_to_hours('amount') }}",
}


@pytest.fixture(scope="module")
def sql(project: Workspace) -> dict[str, str]:
    """Each expression as dbt compiles it."""
    dbt.prepare(project)
    code = ";".join(EXPRESSIONS.values())
    result = dbt.invoke(project, ["--log-level", "none", "--quiet", "compile", "--inline", code])
    assert result.success, result.exception
    return dict(zip(EXPRESSIONS, result.result.results[0].node.compiled_code.split(";"), strict=True))


def half_up(numerator: int, denominator: int) -> int:
    """Rounded half away from zero; Python's integers have no end."""
    size = (2 * abs(numerator) + denominator) // (2 * denominator)
    return -size if numerator < 0 else size


def numeric(units: Units) -> Decimal | None:
    return None if units is None else Decimal(units).scaleb(-9, Context(prec=60))


def literal(value: Decimal | Units) -> str:
    """As text, because a number with a point would become floating point."""
    return "null" if value is None else f"'{value:f}'" if isinstance(value, Decimal) else f"'{value}'"


def said(expression: str, types: dict[str, str], rows: Sequence[Sequence[Decimal | Units]]) -> list[Decimal | Units]:
    """What the engine makes of each row."""
    names = ", ".join(types)
    columns = ", ".join(f"cast({name} as {kind}) as {name}" for name, kind in types.items())
    values = ", ".join(f"({number}, {', '.join(map(literal, row))})" for number, row in enumerate(rows))
    with duckdb.connect() as connection:
        connection.execute(
            f"create table cases as select number, {columns} from (values {values}) as v(number, {names})"
        )
        return [value for (value,) in connection.execute(f"select {expression} from cases order by number").fetchall()]


def around(*values: int) -> Iterator[int]:
    for value in values:
        yield from (value - 1, value, value + 1)


def numbers(random: Random, count: int, largest: int) -> list[int]:
    """Of all sizes."""
    return [random.randrange(1, 10 ** random.randint(1, len(str(largest)) - 1)) for _ in range(count)]


TOTALS = [
    *(1, 2, 3, 7, 1000, 3600, 3600 * NANO, 25_200_000, 2**53 + 1),
    *around(9 * 10**13, 10**15, 10**18, 2**63),
    *(10**24 + 7, 5 * 10**31),
]


def runnings(total: int, random: Random) -> Iterator[int]:
    """Numerators that are nothing, all, ties of two shares, and anything."""
    yield from (0, 1, total // 2, total - 1, total, total + 1, 3 * total // 2)
    yield from (random.randint(0, total) for _ in range(8))


def quotients() -> list[Case]:
    random = Random(1)
    dividends = [*around(9 * 10**18, 2**63, 10**15), *numbers(random, 60, 10**27)]
    pairs = [(top, total) for total in TOTALS for top in (*runnings(total, random), *dividends)]
    # A tie: an odd number of halves of the ninth decimal.
    pairs += [(odd, 2 * NANO) for odd in (1, 3, 10**9 + 1, 10**17 + 1)]
    return [(None, top, total) for top, total in pairs if 2 * NANO * top + total <= LARGEST_128]


def shares() -> list[Case]:
    random = Random(2)
    borders = [*around(10**15, 10**12, 5 * 10**14), 999_999_999_999_997]
    amounts = [0, 1, 2, 5, NANO, 1234_567890123, 10**17 + 1, *borders, *numbers(random, 25, 10**18)]
    return [
        (sign * amount, running, total)
        for total in TOTALS
        for amount in amounts
        for running in runnings(total, random)
        for sign in (1, -1)
        if running <= total or 2 * amount * running + total <= LARGEST_128
    ]


def test_quotients(sql: dict[str, str]) -> None:
    cases = quotients()
    found = said(sql["quotient"], {"running": "hugeint", "total": "hugeint"}, [case[1:] for case in cases])
    assert found == [numeric(half_up(top * NANO, total)) for _, top, total in cases]


def test_quotients_of_64_bits(sql: dict[str, str]) -> None:
    cases = [case for case in quotients() if max(case[1], case[2]) <= LARGEST_64]
    found = said(sql["quotient"], {"running": "int64", "total": "int64"}, [case[1:] for case in cases])
    assert found == [numeric(half_up(top * NANO, total)) for _, top, total in cases]


@pytest.mark.parametrize("total", WRITTEN)
def test_quotients_by_a_known_number(sql: dict[str, str], total: int) -> None:
    random = Random(total)
    tops = [*runnings(total, random), *around(9 * 10**18, 2**63, 2**64), *numbers(random, 1_000, 10**24)]
    found = said(sql[str(total)], {"running": "hugeint"}, [(top,) for top in tops])
    assert found == [numeric(half_up(top * NANO, total)) for top in tops]


def test_shares(sql: dict[str, str]) -> None:
    cases = shares()
    types = {"amount": "decimal(38, 9)", "running": "hugeint", "total": "hugeint"}
    found = said(sql["share"], types, [(numeric(amount), running, total) for amount, running, total in cases])
    assert found == [numeric(half_up(amount * running, total)) for amount, running, total in cases]


def test_shares_in_whole_units(sql: dict[str, str]) -> None:
    """The quantity is `running` here, so that it is of any size; products of 128 bits are the end."""
    cases = [case for case in shares() if case[0] >= 0 and 2 * case[0] * case[1] + case[2] <= LARGEST_128]
    types = {"amount": "hugeint", "running": "hugeint", "total": "hugeint"}
    found = said(sql["whole share"], types, cases)
    assert found == [half_up(amount * running, total) for amount, running, total in cases]


def test_money_as_integers(sql: dict[str, str]) -> None:
    random = Random(3)
    borders = around(10**15, 2**53, 9 * 10**17, 10**18, 2**63, NANO // 2, 7 * NANO + NANO // 2)
    amounts = [0, 1, *borders, *numbers(random, 2_000, 10**18), *numbers(random, 100, 10**28)]
    amounts += [-amount for amount in amounts]
    found = said(sql["nano units"], {"amount": "decimal(38, 9)"}, [(numeric(amount),) for amount in amounts])
    assert found == amounts


def test_products(sql: dict[str, str]) -> None:
    random = Random(4)
    rates = [0, 1, NANO // 2, NANO - 1, NANO, NANO + 1, 160 * NANO + 7, *numbers(random, 20, 10**12)]
    pairs = [(sign * amount, rate) for amount in numbers(random, 200, 10**17) for rate in rates for sign in (1, -1)]
    types = {"amount": "decimal(38, 9)", "rate": "decimal(38, 9)"}
    found = said(sql["product"], types, [(numeric(amount), numeric(rate)) for amount, rate in pairs])
    assert found == [numeric(half_up(amount * rate, NANO)) for amount, rate in pairs]


def test_hours(sql: dict[str, str]) -> None:
    random = Random(5)
    ties = [1_800, 5_400, 3_600 * 10**9 + 1_800]
    seconds = [0, 1, *around(*ties, 10**15, 9 * 10**17, 10**18), *numbers(random, 2_000, 10**20)]
    seconds += [-second for second in seconds]
    found = said(sql["hours"], {"amount": "decimal(38, 9)"}, [(numeric(second),) for second in seconds])
    assert found == [numeric(half_up(second, 3600)) for second in seconds]


ABSENT: list[Case] = [(None, 1, 2), (NANO, None, 2), (NANO, 1, None), (NANO, 1, 0), (0, 0, 0), (-NANO, 3, 0)]


@pytest.mark.parametrize("name", ["quotient", "share", "whole share"])
def test_nothing_can_be_divided_by_nothing(sql: dict[str, str], name: str) -> None:
    types = {"amount": "decimal(38, 9)" if name == "share" else "hugeint", "running": "hugeint", "total": "hugeint"}
    known = ABSENT[1:] if name == "quotient" else ABSENT
    rows = [(numeric(amount) if name == "share" else amount, running, total) for amount, running, total in known]
    assert said(sql[name], types, rows) == [None for _ in rows]
