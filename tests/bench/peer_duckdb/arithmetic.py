"""The split and the words that all steps share: components in the order in which a bill line is cut into them."""

from __future__ import annotations

RESOURCES = {"cpu": "cpu_millicores", "gpu": "gpu_units", "memory": "memory_mib"}
COMPONENTS = tuple(RESOURCES)
UNITS = {"cpu": 1_000, "gpu": 25_200, "memory": 1_024}
"""How many units of a resource are a core, a GPU or a GiB."""


def each(template: str) -> str:
    return ", ".join(
        template.format(name=name, amount=RESOURCES[name], unit=UNITS[name], hour=UNITS[name] * 3600)
        for name in COMPONENTS
    )


WIDE_SHARE = """
create temp macro wide_share(amount, running, total) as
    sign(amount) * ((2 * abs(amount)::hugeint * running + total) // (2 * total::hugeint))
"""
"""amount × running ÷ total, rounded half away from zero."""

SHARE = """
create temp macro share(amount, running, total) as
    sign(amount) * (
        2 * abs(amount) // total * running // 2
        + (2 * abs(amount) // total * running % 2 * total + 2 * abs(amount) % total * running + total) // (2 * total)
    )
"""
"""The same in 64 bits, which is several times as fast: twice the amount is divided first, then its remainder. Good for
totals up to 3e9; beyond, DuckDB refuses to overflow."""

PART = """
create temp macro part(amount, weight, running, total) as
    share(amount, running, total) - share(amount, running - weight, total)
"""

NANO = "create temp macro nano(amount) as (amount * 1000000000)::bigint"
DECIMAL = "create temp macro decimal_of(nano) as (nano * 0.000000001)::decimal(18, 9)"
"""An integer of 1e-9 as the number that it stands for, and back."""

QUOTIENT = "create temp macro quotient(nano, divisor) as decimal_of((2 * nano + divisor) // (2 * divisor))"
"""An integer of 1e-9 divided by a whole number."""

POLICY_ROW = "create temp macro policy_row(seed, key, valid_from) as seed || '/' || key || '@' || valid_from"

MACROS = (WIDE_SHARE, SHARE, PART, NANO, DECIMAL, QUOTIENT, POLICY_ROW)
