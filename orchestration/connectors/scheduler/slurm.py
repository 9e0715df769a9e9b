"""Slurm: jobs, node events, reservations and the tree of accounts, as its commands print them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from duckdb import DuckDBPyConnection

from orchestration.connectors.base import Delivery, Feed, Reading
from orchestration.connectors.scheduler.slurm_accounts import read_accounts
from orchestration.connectors.scheduler.slurm_events import read_events
from orchestration.connectors.scheduler.slurm_jobs import read_jobs
from orchestration.connectors.scheduler.slurm_reservations import read_reservations
from orchestration.settings import SlurmSource


def feeds(source: SlurmSource) -> list[Feed]:
    def bound(read: Callable[..., Reading]) -> Callable[[DuckDBPyConnection, Sequence[Delivery]], Reading]:
        return lambda con, deliveries: read(con, deliveries, source)

    found = [Feed("jobs", source.jobs, bound(read_jobs))]
    if source.events:
        found.append(Feed("node_events", source.events, bound(read_events)))
    if source.reservations:
        found.append(Feed("reservations", source.reservations, bound(read_reservations)))
    if source.accounts:
        found.append(Feed("account_tree", source.accounts, bound(read_accounts)))
    return found
