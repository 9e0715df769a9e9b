"""Dagster's event log on SQLite, with its connections kept open and batches written in one transaction.

Dagster opens, configures and closes a SQLite connection several times for each event. A run over 35 days writes some
two thousand events (every partition of every asset, planned and done), and spent more time on them than on the work.
Nothing else is changed: same files, same tables, same locking. `DAGSTER_EVENT_BATCH_SIZE` makes Dagster hand over
batches (see `Workspace.environment`).
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import sqlalchemy as db
from dagster._core.events.log import EventLogEntry
from dagster._core.storage.event_log import SqliteEventLogStorage
from dagster._core.storage.sqlite import SQLITE_BUSY_TIMEOUT_SECONDS
from sqlalchemy.pool import QueuePool

MOST_OPEN_SHARDS = 8


class WarmSqliteEventLogStorage(SqliteEventLogStorage):
    def __init__(self, *arguments: Any, **options: Any) -> None:
        self._engines: dict[str, db.Engine] = {}
        self._batch: dict[str, db.Connection] | None = None
        self._batch_thread: int | None = None
        super().__init__(*arguments, **options)

    @classmethod
    def from_config_value(cls, inst_data: Any, config_value: Any) -> WarmSqliteEventLogStorage:
        return cls(inst_data=inst_data, **config_value)

    @contextmanager
    def _connect(self, shard: str) -> Iterator[db.Connection]:
        if self._batch_thread == threading.get_ident():
            assert self._batch is not None
            if shard not in self._batch:
                self._batch[shard] = self._batch_stack.enter_context(self._transaction(shard))
            yield self._batch[shard]
        else:
            with self._db_lock, self._transaction(shard) as connection:
                yield connection

    @contextmanager
    def _transaction(self, shard: str) -> Iterator[db.Connection]:
        engine = self._engine(shard)
        if shard not in self._initialized_dbs:
            self._initdb(engine)
            self._initialized_dbs.add(shard)
        with engine.connect() as connection, connection.begin():
            yield connection

    def store_event_batch(self, events: Sequence[EventLogEntry]) -> None:
        """All events of a batch, or none of them; the lock is held for the whole of it."""
        with self._db_lock:
            try:
                with ExitStack() as self._batch_stack:
                    self._batch, self._batch_thread = {}, threading.get_ident()
                    for event in events:
                        self.store_event(event)
            finally:
                self._batch = self._batch_thread = None

    def _engine(self, shard: str) -> db.Engine:
        """Each run has a file of its own; only the latest few stay open."""
        engine = self._engines.pop(shard, None) or self._open(shard)
        self._engines[shard] = engine
        while len(self._engines) > MOST_OPEN_SHARDS:
            self._engines.pop(next(iter(self._engines))).dispose()
        return engine

    def _open(self, shard: str) -> db.Engine:
        engine = db.create_engine(
            self.conn_string_for_shard(shard),
            poolclass=QueuePool,
            pool_size=1,
            # The lock above lets one thread in at a time.
            connect_args={"timeout": SQLITE_BUSY_TIMEOUT_SECONDS, "check_same_thread": False},
        )

        @db.event.listens_for(engine, "connect")
        def _relax(connection: Any, _: Any) -> None:
            # An event lost to a power cut is shown as missing and written again by the next run.
            connection.execute("pragma synchronous = off")

        return engine

    def dispose(self) -> None:
        for engine in self._engines.values():
            engine.dispose()
        self._engines.clear()
        super().dispose()
