"""The published copy as an asset, downstream of everything that it holds."""

import dagster as dg

from orchestration import progress
from orchestration.defs.raw import OWNERS, WAREHOUSE_POOL
from orchestration.publish.marts import publish
from orchestration.runs import sign
from orchestration.workspace import Workspace


def published_asset(workspace: Workspace, models: dg.AssetsDefinition) -> dg.AssetsDefinition:
    @dg.asset(
        key=["published", "marts"],
        description="`published/marts.duckdb` and Parquet per mart: what BI tools read while a run writes.",
        deps=[key for key in models.keys if key.path[0] in ("core", "reporting")],
        pool=WAREHOUSE_POOL,
        group_name="published",
        owners=OWNERS,
        kinds={"duckdb", "parquet"},
    )
    def marts(context: dg.AssetExecutionContext) -> dg.MaterializeResult:
        sign(context)
        progress.say("publishing")
        with workspace.writing():
            published = publish(workspace)
        return dg.MaterializeResult(
            metadata={
                "tables": len(published.rows),
                "rows": sum(published.rows.values()),
                "bytes": published.bytes,
                "path": dg.MetadataValue.path(str(published.database)),
            }
        )

    return marts
