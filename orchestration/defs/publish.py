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
        group: str,
        write: Callable[[Workspace], dict[str, Any]],
    ) -> dg.AssetsDefinition:
        @dg.asset(
            key=["published", name],
            description=description,
            deps=deps,
            pool=WAREHOUSE_POOL,
            group_name=group,
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
            "published",
            write_marts,
        ),
        published(
            "report",
            "`published/report.html`, and a page per team that holds that team's data only.",
            [MARTS],
            {"html"},
            "published",
            write_report,
        ),
        published(
            "statements",
            "A statement per team and month, and the journal of each closed month: HTML, XLSX and CSV.",
            [MARTS],
            {"html", "excel", "csv"},
            "exports",
            write_statements,
        ),
        published(
            "tableau",
            "`.hyper` extracts of the reports and a `.tdsx` data source.",
            [MARTS],
            {"tableau"},
            "exports",
            write_tableau,
        ),
    ]
