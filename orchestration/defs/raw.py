"""Raw assets: one per source of the workspace. They know partitions and metadata, and nothing of formats."""

from datetime import timedelta

import dagster as dg

from orchestration import progress
from orchestration.landing.loader import land
from orchestration.landing.report import LandingReport
from orchestration.partitions import daily
from orchestration.runs import sign
from orchestration.settings import Source
from orchestration.workspace import Workspace

WAREHOUSE_POOL = "warehouse"
OWNERS = ["team:data-platform"]


def raw_key(source: Source) -> dg.AssetKey:
    return dg.AssetKey(["raw", source.name])


def raw_asset(source: Source, workspace: Workspace) -> dg.AssetsDefinition:
    key = raw_key(source)

    @dg.asset(
        key=key,
        description=f"{source.area}: what the source `{source.name}` ({source.kind}) delivered, landed day by day.",
        partitions_def=daily,
        backfill_policy=dg.BackfillPolicy.single_run(),
        pool=WAREHOUSE_POOL,
        group_name="raw",
        owners=OWNERS,
        kinds={source.kind.replace("_", ""), "parquet"},
        freshness_policy=dg.FreshnessPolicy.time_window(fail_window=timedelta(hours=36)),
        check_specs=[
            dg.AssetCheckSpec("every_day_has_rows", asset=key, description="No day of the window is empty."),
            dg.AssetCheckSpec("nothing_quarantined", asset=key, description="No row had to be set aside."),
        ],
    )
    def land_source(context: dg.AssetExecutionContext) -> dg.MaterializeResult:
        window = context.partition_time_window
        sign(context)
        progress.say(f"landing {source.name}")
        with workspace.writing():
            report = land(source, window.start.date(), window.end.date(), workspace.data)
        return dg.MaterializeResult(metadata=report.metadata(), check_results=_checks(report))

    return land_source


def _checks(report: LandingReport) -> list[dg.AssetCheckResult]:
    """Both only warn: a quiet Sunday is no defect, and bad rows beyond the limit have failed the run already."""
    days = (report.window_end - report.window_start).days
    return [
        dg.AssetCheckResult(
            check_name="every_day_has_rows",
            passed=len(report.days_written) == days,
            severity=dg.AssetCheckSeverity.WARN,
            metadata={"days": days, "days_with_rows": len(report.days_written)},
        ),
        dg.AssetCheckResult(
            check_name="nothing_quarantined",
            passed=report.quarantined == 0,
            severity=dg.AssetCheckSeverity.WARN,
            metadata={"quarantined": report.quarantined},
        ),
    ]
