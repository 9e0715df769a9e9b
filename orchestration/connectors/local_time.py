"""Clocks without a zone: which instant a log meant that was written line by line.

In autumn an hour of local time comes twice. A log goes forward, so its order tells the two apart: what follows a step
back of the clock belongs to the second pass.
"""

from __future__ import annotations

from orchestration.connectors.sql import literal

HOUR = "interval 1 hour"


def in_order(rows: str, partition: str, order: str = "line") -> str:
    """SQL for rows with a zoneless timestamp `local`, plus `stepped_back_to`, what the clock was last set back to.

    Writers that overtake each other by seconds do not set the clock back.
    """
    log = f"partition by {partition} order by {order}"
    return f"""
        select *, max(step) over ({log} rows unbounded preceding) as stepped_back_to
        from (
            select *, case when local < lag(local) over ({log}) - interval 1 minute then local end as step
            from ({rows})
        )
    """


def instant(zone: str) -> str:
    """SQL for the instant of `local`, in rows that are `in_order`."""
    read = f"timezone({literal(zone)}, local)"
    second_pass = f"local - stepped_back_to between interval 0 hour and {HOUR}"
    passes = (
        f"case when {_shows(f'({read} {sign} {HOUR})', zone)} = local then {read} {sign} {HOUR} else {read} end"
        for sign in "+-"
    )
    return "(case when {} then {} else {} end)".format(second_pass, *passes)


def is_ambiguous(zone: str) -> str:
    """SQL for whether the clock showed the time `local` twice."""
    read = f"timezone({literal(zone)}, local)"
    return f"(local in ({', '.join(_shows(f'({read} {sign} {HOUR})', zone) for sign in '-+')}))"


def _shows(at: str, zone: str) -> str:
    return f"timezone({literal(zone)}, {at})"
