"""How long a data engineer waits: commands on the demo company, and a month backfilled in Dagster."""

from __future__ import annotations

import sys
import time
from datetime import timedelta
from pathlib import Path

import duckdb

from orchestration.dbt import Window
from orchestration.demo import FIRST_DAY
from orchestration.workspace import Workspace
from tests.bench.measuring import HEADER, Measured, Section, measure_command
from tests.dagster.web_interface import WebInterface

APPORTION = Path(sys.executable).with_name("apportion")
DAYS = 30
MONTH = Window(FIRST_DAY, FIRST_DAY + timedelta(days=DAYS))
DAY = Window(FIRST_DAY + timedelta(days=14), FIRST_DAY + timedelta(days=15))


def bench_latency(folder: Path) -> Section:
    section = Section()
    workspace = Workspace.locate(data=folder / "demo")

    def apportion(name: str, *arguments: object) -> Measured:
        return measure_command(name, [APPORTION, *arguments], workspace.environment())

    def run(name: str, window: Window) -> Measured:
        return apportion(name, "run", "--from", window.start, "--to", window.end)

    print(HEADER)
    section.take("first", apportion(f"demo of {DAYS} days, first time", "demo", "--days", DAYS))
    section.take("demo", apportion(f"demo of {DAYS} days, again", "demo", "--days", DAYS))
    section.take("day", run("run one day", DAY))
    with duckdb.connect(str(workspace.warehouse), read_only=True) as warehouse:
        ((job,),) = warehouse.execute(
            "select job_key from core.fct_job_days where usage_date = ? order by job_key limit 1", [DAY.start]
        ).fetchall()
    section.take("explain job", apportion("explain job", "explain", "job", job))
    month = f"{FIRST_DAY:%Y-%m}"
    section.take("explain team", apportion("explain team, a month", "explain", "team", "nlp", "--month", month))
    variables = f"{{window_start: {DAY.start}, window_end: {DAY.end}}}"
    built = apportion("dbt build of one model", "dbt", "build", "--select", "int_node_hours", "--vars", variables)
    section.take("dbt build", built)
    whole = section.take("month", run(f"run {DAYS} days", MONTH))
    began = time.perf_counter()
    interface = WebInterface(workspace)
    try:
        interface.wait_until_it_answers()
        section.take("ui", Measured("Dagster's web interface answers", 0, time.perf_counter() - began, 0, 0))
        (carried,) = interface.backfill(MONTH)["runs"]
    finally:
        interface.end()
    if carried["status"] != "SUCCESS":
        section.broken.append(f"the backfill ended with {carried['status']}")
    duration = carried["endTime"] - carried["startTime"]
    section.take("backfill", Measured(f"backfill of {DAYS} days in Dagster, its one run", 0, duration, 0, 0))
    section.ratio(f"backfill of {DAYS} days / run of {DAYS} days, wall", duration / whole.wall, most=2)
    return section
