"""When things run: every night, again for the days that bills still restate, and when a file arrives."""

import json
from collections.abc import Iterator, Sequence
from datetime import date, timedelta

import dagster as dg

from orchestration.dbt import Window
from orchestration.landing.days import landed_days
from orchestration.landing.touched import Cursor, touched_days
from orchestration.partitions import FIRST_DAY, daily, range_tags, windows_of
from orchestration.runs import reap_dead_runs
from orchestration.settings import Source
from orchestration.workspace import Workspace

RESTATED_DAYS = 35
"""How far back the trailing schedule goes: providers restate the running month, and finish it days after its end."""

EXPORTS = dg.AssetSelection.groups("exports")
"""What people fetch once a day or a month: no run of a day waits for it."""

pipeline = dg.define_asset_job(
    "pipeline",
    selection=dg.AssetSelection.all() - EXPORTS,
    description="Lands, builds, checks and publishes the requested days.",
    executor_def=dg.in_process_executor,
)

exports = dg.define_asset_job(
    "exports",
    selection=EXPORTS,
    description="Writes statements, journals and Tableau extracts from what is published.",
    executor_def=dg.in_process_executor,
)


@dg.schedule(
    job=exports,
    cron_schedule="0 4 * * *",
    execution_timezone="UTC",
    description="Statements, journals and Tableau extracts, an hour after the night's run began.",
)
def nightly_exports(context: dg.ScheduleEvaluationContext) -> dg.RunRequest:
    return dg.RunRequest(run_key=f"exports-{context.scheduled_execution_time.date()}")


@dg.schedule(
    job=pipeline,
    cron_schedule="0 3 * * *",
    execution_timezone="UTC",
    description="Yesterday, at three in the morning UTC, when the day's last dumps are in.",
)
def nightly(context: dg.ScheduleEvaluationContext) -> dg.RunRequest:
    day = context.scheduled_execution_time.date() - timedelta(days=1)
    return dg.RunRequest(run_key=f"nightly-{day}", tags=range_tags(Window(day, day + timedelta(days=1))))


@dg.schedule(
    job=pipeline,
    cron_schedule="0 5 * * 0",
    execution_timezone="UTC",
    description=f"The last {RESTATED_DAYS} days again, every Sunday, for what providers and schedulers restated.",
)
def restatements(context: dg.ScheduleEvaluationContext) -> dg.RunRequest:
    end = context.scheduled_execution_time.date()
    start = max(end - timedelta(days=RESTATED_DAYS), date.fromisoformat(FIRST_DAY))
    return dg.RunRequest(run_key=f"restatements-{end}", tags=range_tags(Window(start, end)))


def inbox_sensor(workspace: Workspace, sources: Sequence[Source]) -> dg.SensorDefinition:
    @dg.sensor(
        name="inbox",
        job=pipeline,
        minimum_interval_seconds=60,
        description="Notices new, changed and removed files and requests exactly the days that they touch.",
    )
    def inbox(context: dg.SensorEvaluationContext) -> dg.SensorResult:
        reap_dead_runs(context.instance)
        before = json.loads(context.cursor or "{}")
        after: dict[str, str] = {}
        days: set[date] = set()
        inventory_days: set[date] = set()
        for source in sources:
            touched, cursor = touched_days(source, workspace.data, Cursor.loads(before.get(source.name)))
            after[source.name] = cursor.dumps()
            if source.name not in before:
                # The first look: what earlier runs have landed needs no second run.
                touched -= landed_days(workspace.data, source.name)
            if source.area == "inventory":
                inventory_days |= touched
            else:
                days |= touched
        # That a node exists is no reason to run a day of which nothing else is known.
        days |= inventory_days & landed_days(workspace.data)
        return dg.SensorResult(run_requests=list(_requests(days)), cursor=json.dumps(after))

    return inbox


def _requests(days: set[date]) -> Iterator[dg.RunRequest]:
    """One run per stretch of neighbouring days, of those that can be requested at all."""
    known = {date.fromisoformat(key) for key in daily.get_partition_keys()}
    for window in windows_of(days & known):
        yield dg.RunRequest(tags=range_tags(window))
