"""A company that has closed a month, for everything that is made of closed months."""

from __future__ import annotations

import shutil
from datetime import date
from pathlib import Path

import duckdb
import pytest

from orchestration.ledger.close import close_month
from orchestration.publish.marts import publish
from orchestration.workspace import Workspace

MONTH = date(2026, 3, 1)
_MADE: dict[Workspace, Workspace] = {}
"""Several rooms of the test house import the fixture; the month is closed once."""


@pytest.fixture(scope="session")
def closed(golden: Workspace, tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """The golden company with its month closed and published. Tests that change something take a copy."""
    if golden not in _MADE:
        _MADE[golden] = _closed(golden, tmp_path_factory.mktemp("closed"))
    return _MADE[golden]


def _closed(golden: Workspace, root: Path) -> Workspace:
    made_again = shutil.ignore_patterns("dagster", "dbt")
    shutil.copytree(golden.seeds, root / "seeds")
    shutil.copytree(golden.data, root / "data", ignore=made_again, copy_function=shutil.copy2)
    shutil.copy(golden.sources_file, root / "sources.yml")
    workspace = Workspace(root / "sources.yml", root / "seeds", root / "data")
    close_month(workspace, MONTH, override="Only one day of it is built", by="finance")
    with workspace.writing():
        publish(workspace)
    return workspace


class Books:
    """Published marts of their own: to be asked, and to be changed where a test needs other books."""

    def __init__(self, workspace: Workspace, root: Path) -> None:
        self.workspace = Workspace(workspace.sources_file, workspace.seeds, root)
        self.workspace.published.mkdir(parents=True)
        self._marts = self.workspace.published / "marts.duckdb"
        shutil.copy(workspace.published / "marts.duckdb", self._marts)

    def rows(self, query: str) -> list[tuple]:
        with duckdb.connect(str(self._marts), read_only=True) as connection:
            return connection.execute(query).fetchall()

    def change(self, *statements: str) -> None:
        with duckdb.connect(str(self._marts)) as connection:
            for statement in statements:
                connection.execute(statement).fetchall()

    def open_april(self) -> None:
        """A draft of the month after: the same again, and a correction of the closed month for its project."""
        self.change(
            """
            insert into reporting.rpt_open_invoice_lines by name
            select * exclude (close_number, closed_at, closed_by, override_reason, policy_version, delivery_hashes,
                    content_hash, previous_hash)
                replace (date '2026-04-01' as period_date, replace(invoice_id, '2026-03', '2026-04') as invoice_id)
            from core.fct_invoice_lines
            """,
            """
            insert into reporting.rpt_open_invoice_lines by name
            select * replace ('true_up' as allocation_kind, date '2026-03-01' as corrected_period_date,
                    'restated bill (1 days)' as cause, -0.014 as amount, -0.01 as invoiced_amount,
                    -0.01 as reporting_amount)
            from reporting.rpt_open_invoice_lines
            where project_id = 'llm' and component = 'gpu' and allocation_kind = 'direct'
            """,
        )
