"""Random small companies, each in its own UTC day.

`world(seed, index, sizes)` draws one; `random_worlds` many, for one build of the warehouse; `worlds()` is the
hypothesis strategy; `shrink` makes a world that fails as small as greedy dropping can. Every id carries the
world's index, and no policy is valid on the day of another world, so worlds cannot meet.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import astuple, dataclass, replace
from datetime import date, timedelta
from random import Random

from hypothesis import strategies as st

from .seed_tables import Row
from .workspace import Packed, landed, pack, write_workspace
from .world_choices import LONGEST_REACH
from .world_facts import FactMaker, Sizes, row
from .world_policies import PolicyMaker

__all__ = [
    "Packed",
    "Sizes",
    "World",
    "landed",
    "pack",
    "random_worlds",
    "row",
    "shrink",
    "world",
    "worlds",
    "write_workspace",
]

FIRST_DAY = date(2026, 3, 2)
DAYS_APART = LONGEST_REACH + 1
"""A world's records and policies may reach into the days around its own, which no world is compared on."""
DROPPABLE_SEEDS = (
    *("cost_rules", "payer_rules", "workload_rules", "complexity_weights", "allocation_policies", "idle_policies"),
    *("entitlements", "adjustments", "outcome_policies"),
)


@dataclass(frozen=True)
class World:
    index: int
    day: date
    tables: dict[str, list[Row]]
    """Landing rows (without the date), whole records."""
    seeds: dict[str, list[Row]]


def world(seed: int, index: int = 0, sizes: Sizes | None = None) -> World:
    """The random world of a seed; the same arguments give the same world everywhere."""
    rng = Random(f"{seed}world")
    dense = rng.random() < 0.5
    sizes = sizes or Sizes(
        nodes=rng.choice([2, 3, 4, 5] if dense else [0, 1, 2, 2, 3, 3, 4, 4]),
        jobs=rng.choice([4, 6, 8, 10] if dense else [0, 1, 2, 3, 4, 5, 6, 7, 8, 8]),
        charges=rng.randint(6 if dense else 1, 12),
        events=rng.randint(0, 3),
        reservations=rng.choice([0, 1, 2, 3]),
        sampled=rng.randint(2 if dense else 0, 4 if dense else 3),
        readings=rng.randint(0, 4),
        seats=rng.randint(0, 3),
    )
    policies = PolicyMaker(rng, index, FIRST_DAY + timedelta(days=DAYS_APART * index), dense)
    seeds = policies.make()
    return World(index, policies.day, FactMaker(seed, policies, sizes).make(), seeds)


def random_worlds(seed: int, count: int) -> list[World]:
    """`count` worlds in days of their own, for one build."""
    return [world(seed * 1_000_003 + index, index) for index in range(count)]


@st.composite
def worlds(draw: st.DrawFn, index: int = 0) -> World:
    """Sizes that hypothesis can shrink, contents from a seed that it can vary."""
    tops = (4, 8, 12, 3, 3, 3, 4, 3)
    sizes = Sizes(*(draw(st.integers(0, top)) for top in tops))
    assert len(tops) == len(astuple(sizes))
    return world(draw(st.integers(0, 2**32)), index, sizes)


# --- shrinking ---------------------------------------------------------------------------------------------


def shrink(failing: World, fails: Callable[[World], bool]) -> World:
    """Drop rows while the world still fails: whole tables, then halves, quarters … down to single rows.

    Of the seeds only rules and policies are dropped, to which nothing refers: a smaller world is still valid.
    """
    progress = True
    while progress:
        progress = False
        for side in ("tables", "seeds"):
            for table in sorted(getattr(failing, side)):
                if side == "seeds" and table not in DROPPABLE_SEEDS:
                    continue
                chunk = len(getattr(failing, side)[table])
                while chunk:
                    failing, dropped = _drop_chunks(failing, side, table, chunk, fails)
                    progress |= dropped
                    chunk //= 2
    return failing


def _drop_chunks(
    failing: World, side: str, table: str, chunk: int, fails: Callable[[World], bool]
) -> tuple[World, bool]:
    dropped, at = False, 0
    while at < len(rows := getattr(failing, side)[table]):
        kept = rows[:at] + rows[at + chunk :]
        smaller = replace(failing, **{side: {**getattr(failing, side), table: kept}})
        if fails(smaller):
            failing, dropped = smaller, True
        else:
            at += chunk
    return failing, dropped
