"""What Dagster shows of a workspace: its sources, the dbt project, and when they run."""

from __future__ import annotations

import dagster as dg

from orchestration.defs.automation import exports, inbox_sensor, nightly, nightly_exports, pipeline, restatements
from orchestration.defs.ledger import close_job
from orchestration.defs.publish import published_assets
from orchestration.defs.raw import raw_asset
from orchestration.defs.transform import model_assets
from orchestration.settings import load_sources
from orchestration.workspace import DUCKDB, Workspace


def definitions_of(workspace: Workspace) -> dg.Definitions:
    """Needs no warehouse, no network and no secret: only the sources file, the seeds and the dbt project."""
    sources = load_sources(workspace.sources_file, workspace.data)
    models = model_assets(workspace, sources)
    is_local = workspace.target == DUCKDB
    return dg.Definitions(
        assets=[
            *(raw_asset(source, workspace) for source in sources),
            models,
            # BI tools read BigQuery itself; only a file needs a copy for them.
            *(published_assets(workspace, models) if is_local else []),
        ],
        jobs=[pipeline, close_job(workspace), *([exports] if is_local else [])],
        schedules=[nightly, restatements, *([nightly_exports] if is_local else [])],
        sensors=[inbox_sensor(workspace, sources)],
        # Steps wait for each other anyway (one writer), and a process of its own costs each of them seconds.
        executor=dg.in_process_executor,
    )
