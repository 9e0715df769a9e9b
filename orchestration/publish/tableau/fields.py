"""What Tableau shows of the `costs` table: names, folders, drill paths, formats, and how a measure adds up.

Tableau would guess all of this from the column names. What is written here is what nobody should have to set up again
in every workbook.
"""

from __future__ import annotations

from dataclasses import dataclass

MONEY = "n#,##0.00;-#,##0.00"
HOURS = "n#,##0.0;-#,##0.0"
SHARE = "p0.0%"
DAY = "*yyyy-MM-dd"

TIME, PAYER, PLACE, REASON, MEASURES = "Time", "Who pays", "Where", "What for", "Measures"
FOLDERS = (TIME, PAYER, PLACE, REASON, MEASURES)


@dataclass(frozen=True)
class Field:
    name: str
    caption: str
    folder: str | None = None
    """None for the levels of a drill path, which Tableau shows together, and for what is hidden."""
    aggregation: str | None = None
    """How a measure adds up; None for a dimension."""
    format: str | None = None
    description: str | None = None
    """For what only this table has. Everything else is described as the marts describe it."""
    described_by: tuple[str, str] | None = None
    """The mart and the column whose description fits."""
    hidden: bool = False


@dataclass(frozen=True)
class Calculation:
    name: str
    caption: str
    formula: str
    format: str
    description: str
    folder: str = MEASURES


def _hidden(name: str, table: str = "fct_cost_allocations") -> Field:
    """A key: needed to join or to tell namesakes apart, of no use in a chart."""
    return Field(name, name, described_by=(table, name), hidden=True)


ALLOCATIONS, TEAMS, POOLS, JOBS = "fct_cost_allocations", "fct_team_days", "fct_pool_days", "fct_job_days"
IN_A_PATH = "Text, because Tableau opens a date inside a hierarchy at its year; `Date` is the date itself."

FIELDS = (
    Field("usage_date", "Date", TIME, format=DAY, described_by=(ALLOCATIONS, "usage_date")),
    Field("usage_year", "Year", description=f"Year of the UTC day. {IN_A_PATH}"),
    Field("usage_month", "Month", description=f"Month of the UTC day, such as 2026-01. {IN_A_PATH}"),
    Field("usage_day", "Day", description=f"The UTC day, such as 2026-01-05. {IN_A_PATH}"),
    Field("organisation", "Organisation", description="The team at the top of the hierarchy, as it was on the day."),
    Field("team_name", "Team", described_by=(ALLOCATIONS, "team_id")),
    Field("team_path", "Team path", PAYER, described_by=(TEAMS, "team_path")),
    Field("cost_centre", "Cost centre", PAYER, described_by=(TEAMS, "cost_centre")),
    Field("billing_mode", "Billing mode", PAYER, described_by=(TEAMS, "billing_mode")),
    Field("project_name", "Project", description="The project that pays; (no project) where only the team is known."),
    Field("user_name", "User", description="The person behind the cost, as the scheduler names them; or (nobody)."),
    Field(
        "job", "Job", description="One run of a job: its name and its key, by which `apportion explain job` finds it."
    ),
    Field("job_name", "Job name", PAYER, described_by=(JOBS, "job_name")),
    Field("job_id", "Job id", PAYER, described_by=(JOBS, "job_id")),
    Field("workload_class", "Workload class", PAYER, described_by=(JOBS, "workload_class")),
    Field("pool_name", "Pool", PLACE, described_by=(ALLOCATIONS, "pool_id")),
    Field("pool_kind", "Pool kind", PLACE, described_by=(POOLS, "pool_kind")),
    Field("cluster_id", "Cluster", PLACE, described_by=(POOLS, "cluster_id")),
    Field("gpu_model", "GPU model", PLACE, described_by=(POOLS, "gpu_model")),
    Field("purchase_class", "Purchase class", PLACE, described_by=(POOLS, "purchase_class")),
    Field("component", "Component", REASON, described_by=(ALLOCATIONS, "component")),
    Field("allocation_kind", "Kind", REASON, described_by=(ALLOCATIONS, "allocation_kind")),
    Field("idle_cause", "Idle cause", REASON, described_by=(ALLOCATIONS, "idle_cause")),
    Field("cost_status", "Cost status", REASON, described_by=(ALLOCATIONS, "cost_status")),
    Field("currency", "Currency", MEASURES, described_by=(ALLOCATIONS, "currency")),
    Field("cost", "Cost", MEASURES, "Sum", MONEY, described_by=(ALLOCATIONS, "amount")),
    Field("gpu_hours", "GPU-hours", MEASURES, "Sum", HOURS, described_by=("rpt_job_receipts", "gpu_hours")),
    _hidden("team_id"),
    _hidden("root_team_id", TEAMS),
    _hidden("project_id"),
    _hidden("job_key"),
    _hidden("pool_id"),
)

ONE_CURRENCY = "MIN([currency]) = MAX([currency])"

CALCULATIONS = (
    Calculation(
        "one_currency_cost",
        "Cost (one currency)",
        f"IF {ONE_CURRENCY} THEN SUM([cost]) END",
        MONEY,
        "The cost, empty wherever several currencies would be added. Filter or split by Currency to see it.",
    ),
    Calculation(
        "idle_share",
        "Idle share",
        f"IF {ONE_CURRENCY} THEN ZN(SUM(IF [allocation_kind] = 'idle' THEN [cost] END)) / SUM([cost]) END",
        SHARE,
        "Which part of the cost is for capacity that nobody used. Empty wherever several currencies would be added.",
    ),
)

DRILL_PATHS = {
    "Payer": ("organisation", "team_name", "project_name", "user_name", "job"),
    "Calendar": ("usage_year", "usage_month", "usage_day"),
}
