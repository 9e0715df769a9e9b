"""What is odd about a bill beside the other bills of its source: what it replaces, and what it says again."""

from __future__ import annotations

from datetime import date, datetime

from duckdb import DuckDBPyConnection

from orchestration.landing import beyond
from orchestration.landing.copies import fingerprints
from orchestration.landing.stage import FeedLoad

SKETCH = 500
"""How many lines of a file are remembered: those with the smallest hashes, which are the same ones in a new version."""
_SUBJECT = (
    *("charge_start_at", "charge_end_at", "charge_category", "charge_description", "service_name", "sku_id"),
    *("region_id", "resource_id", "sub_account_id", "tags"),
)
"""What a line is about, and no new version of it changes."""

Accounts = dict[date, frozenset[str]]
"""The billing accounts with lines in each billing period, by the period's first day."""


class Bills:
    """The bills of a source, told one after the other, the oldest first."""

    def __init__(self, load: FeedLoad) -> None:
        self._load = load
        self._accounts: dict[int, Accounts] = {}
        self._said: dict[tuple, int] = {}
        self._periods: dict[int, set[date]] = {}
        self._sketches: dict[tuple[datetime, str], set[int]] = {}
        """What the parts of each delivery are about, as far as they have been told."""

    def doubts(self, con: DuckDBPyConnection, rank: int) -> list[str]:
        return [
            *self._claims_of_a_few_rows(con, rank),
            *(self._other_accounts(con, rank) or self._nothing_in_common(con, rank)),
            *self._outside_its_window(con, rank),
            *self._copies(con, rank),
        ]

    def _lines(self, rank: int) -> str:
        return f"{self._load.stage} where rank = {rank} and line <> {beyond.LINE}"

    def _claims_of_a_few_rows(self, con: DuckDBPyConnection, rank: int) -> list[str]:
        """A bill replaces what older ones say of its billing periods; a period with hardly a row was hardly meant."""
        periods = con.execute(
            f"""
            select cast(billing_period_start_at as date) as starts, count(*) as rows, sum(count(*)) over () as all_rows
            from {self._lines(rank)} group by 1 order by 1
            """
        ).fetchall()
        return [
            f"only {rows} of its {all_rows} rows are of the billing period from {starts}, which it replaces as a whole"
            for starts, rows, all_rows in periods
            if rows * 20 < all_rows and self._replaces(rank, starts)
        ]

    def _replaces(self, rank: int, period: date) -> bool:
        claims = self._load.known(rank).claims
        return any(c.whole_periods and c.span[0] <= period < c.span[1] for c in claims)

    def _is_before(self, older: int, rank: int) -> bool:
        """Whether a file may have to give way to another: it is older, and tells the same part of the bill."""
        one, other = self._load.deliveries[older], self._load.deliveries[rank]
        return one.delivered_at < other.delivered_at and self._stream(older) == self._stream(rank)

    def _delivery(self, rank: int) -> tuple[datetime, str]:
        """What the parts of one export have in common."""
        return self._load.deliveries[rank].delivered_at, self._stream(rank)

    def _stream(self, rank: int) -> str:
        stream = self._load.feed.stream
        return stream(self._load.deliveries[rank]) if stream else ""

    def _other_accounts(self, con: DuckDBPyConnection, rank: int) -> list[str]:
        """A bill of another payer is no new version of the older one, but would replace it all the same."""
        found = con.execute(
            f"""
            select cast(billing_period_start_at as date), list(distinct billing_account_id order by billing_account_id)
            from {self._lines(rank)} and billing_account_id is not null group by 1 order by 1
            """
        ).fetchall()
        mine = self._accounts[rank] = {period: frozenset(accounts) for period, accounts in found}
        deliveries, doubts = self._load.deliveries, []
        for older, accounts in self._accounts.items():
            gone = [
                period
                for period in mine
                if self._is_before(older, rank)
                and self._replaces(rank, period)
                and accounts.get(period, mine[period]).isdisjoint(mine[period])
            ]
            if gone:
                doubts.append(
                    f"replaces {deliveries[older].name} in the billing period from {gone[0]}, which is of another"
                    f" billing account ({', '.join(sorted(accounts[gone[0]]))}): give each its own source"
                )
        return doubts

    def _nothing_in_common(self, con: DuckDBPyConnection, rank: int) -> list[str]:
        """A new version repeats most lines of the old one; one that repeats none is a part, or another bill."""
        periods = con.execute(
            f"select distinct cast(billing_period_start_at as date) from {self._lines(rank)}"
        ).fetchall()
        smallest = con.execute(
            f"select distinct hash({', '.join(_SUBJECT)}) as subject from {self._lines(rank)} order by 1 limit {SKETCH}"
        ).fetchall()
        mine = {period for (period,) in periods if self._replaces(rank, period)}
        sketch = self._sketches.setdefault(self._delivery(rank), set())
        sketch.update(subject for (subject,) in smallest)
        deliveries = self._load.deliveries
        strangers = [
            deliveries[older].name
            for older, its_periods in self._periods.items()
            if self._is_before(older, rank)
            and its_periods & mine
            and self._sketches[self._delivery(older)].isdisjoint(sketch)
        ]
        self._periods[rank] = {period for (period,) in periods}
        if not strangers:
            return []
        return [
            f"replaces {strangers[0]}{f' and {len(strangers) - 1} more' if strangers[1:] else ''}, without a line in"
            " common: parts of one export need part numbers (docs/sources.md), bills that add up 'replaces: nothing'"
        ]

    def _outside_its_window(self, con: DuckDBPyConnection, rank: int) -> list[str]:
        """Days in a name may be when a file was made. Then next day's file has the same lines again, and both count."""
        declared = self._load.deliveries[rank].declared
        claims = self._load.known(rank).claims
        if declared is None or not claims or claims[0].whole_periods:
            return []
        ((outside, lines),) = con.execute(
            f"""
            select count(*) filter (last_day < date '{declared[0]}' or first_day >= date '{declared[1]}'), count(*)
            from {self._lines(rank)} and charge_category = 'Usage'
            """
        ).fetchall()
        if not outside:
            return []
        return [
            f"{outside} of its {lines} lines of usage are not of {declared[0]} to {declared[1]}, as its name says:"
            " other files that have them too count as well"
        ]

    def _copies(self, con: DuckDBPyConnection, rank: int) -> list[str]:
        deliveries = self._load.deliveries
        for said in fingerprints(con, self._load, [rank]).values():
            first = self._said.setdefault((self._stream(rank), *said), rank)
            is_newer = self._is_before(first, rank)
            if first != rank and not (is_newer and all(c.whole_periods for c in self._load.known(rank).claims)):
                return [f"says line for line the same as {deliveries[first].name}, and neither replaces the other"]
        return []
