"""What is published as assets, downstream of everything that it holds."""

from collections.abc import Callable
from typing import Any

import dagster as dg

from orchestration import progress
from orchestration.defs.raw import OWNERS, WAREHOUSE_POOL
from orchestration.publish import write_marts, write_report, write_statements, write_tableau
from orchestration.runs import sign
from orchestration.workspace import Workspace

MARTS = dg.AssetKey(["published", "marts"])


def published_assets(workspace: Workspace, models: dg.AssetsDefinition) -> list[dg.AssetsDefinition]:
    """The copy of the marts, and what is made of it."""

    def published(
        name: str,
        description: str,
        deps: list[dg.AssetKey],
        kinds: set[str],
        write: Callable[[Workspace], dict[str, Any]],
    ) -> dg.AssetsDefinition:
        @dg.asset(
            key=["published", name],
            description=description,
            deps=deps,
            pool=WAREHOUSE_POOL,
            group_name="published",
            owners=OWNERS,
            kinds=kinds,
        )
        def publish(context: dg.AssetExecutionContext) -> dg.MaterializeResult:
            sign(context)
            progress.say(f"publishing {name}")
            with workspace.writing():
                return dg.MaterializeResult(metadata=write(workspace))

        return publish

    return [
        published(
            "marts",
            "`published/marts.duckdb` and Parquet per mart: what BI tools read while a run writes.",
            [key for key in models.keys if key.path[0] in ("core", "reporting")],
            {"duckdb", "parquet"},
            write_marts,
        ),
        published(
            "report",
            "`published/report.html`, and a page per team that holds that team's data only.",
            [MARTS],
            {"html"},
            write_report,
        ),
        published(
            "statements",
            "A statement per team and month, and the journal of each closed month: HTML, XLSX and CSV.",
            [MARTS],
            {"html", "excel", "csv"},
            write_statements,
        ),
        published(
            "tableau",
            "`.hyper` extracts of the reports and a `.tdsx` data source.",
            [MARTS],
            {"tableau"},
            write_tableau,
        ),
    ]
