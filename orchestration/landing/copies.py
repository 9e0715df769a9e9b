"""The same bill under two names, both of which would count.

A newer bill replaces an older one, so a second copy usually does no harm. It does where both have the same time (a copy
with its date, packed and unpacked side by side), where bills add up, and where their names say different windows.
"""

from __future__ import annotations

from collections.abc import Iterable

from duckdb import DuckDBPyConnection

from orchestration.errors import ApportionError
from orchestration.landing.live import StandingCharges
from orchestration.landing.schemas import CHARGES
from orchestration.landing.stage import FeedLoad

_SAID = ", ".join(f'"{name}"' for name in CHARGES.content if name not in ("charge_key", "is_final"))


def fingerprints(con: DuckDBPyConnection, load: FeedLoad, ranks: Iterable[int]) -> dict[int, tuple]:
    """What the staged lines of files say, in any order: how many there are and a hash of all that they say."""
    return {
        rank: (lines, said)
        for rank, lines, said in con.execute(
            f"select rank, count(*), sum(hash({_SAID})) from {load.stage}"
            f" where rank in ({', '.join(map(str, ranks)) or '-1'}) group by rank"
        ).fetchall()
    }


def refuse_copies(con: DuckDBPyConnection, load: FeedLoad, charges: StandingCharges) -> None:
    """Stops where two files that count say the same, line for line."""
    if len(load.counts) < 2:
        return
    alike = con.execute(
        f"select list(rank) from (select rank, count(*) as lines, sum(billed_cost) as billed from {load.stage}"
        " group by rank) group by lines, billed having count(*) > 1"
    ).fetchall()
    for (ranks,) in alike:
        counting = con.execute(
            f"select distinct rank from {load.stage} as s"
            f" where rank in ({', '.join(map(str, ranks))}) and {charges.lines}"
        ).fetchall()
        said: dict[tuple, int] = {}
        for rank, print_ in sorted(fingerprints(con, load, [rank for (rank,) in counting]).items()):
            first = said.setdefault(print_, rank)
            if first != rank:
                raise ApportionError(
                    f"{load.deliveries[rank].path}: says line for line the same as {load.deliveries[first].path}, and"
                    " neither replaces the other: everything in it would count twice",
                    "remove one of them; where a date in the name says when the file was delivered, write it as a stamp"
                    " such as 20260402T060000Z",
                )
