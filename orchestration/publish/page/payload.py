"""The data that a page carries, as JSON. Amounts are rounded to cents by SQL for charts and tables; where a page shows
that the books are exact, they travel as text with all nine decimals."""

from __future__ import annotations

from typing import Any

from orchestration.publish.page.figures import WORST_JOBS, Figures
from orchestration.publish.page.names import Names

MOST_JOBS = 12_000
"""What keeps a year of fifty teams under eight megabytes. The dearest of each project come first."""
MOST_TRUE_UPS = 2_000
CAUSES = ("unscheduled", "reserved", "down", "stranded")
HOURS_OF_A_WEEK = 7 * 24

# Every query below is asked for one team or, with no team given, for all of them.
_OF_TEAM = "team_id = coalesce($team, team_id)"
_MONTH = "strftime(month_date, '%Y-%m')"


def report(figures: Figures) -> dict[str, Any]:
    """Everything."""
    shelf = Shelf(figures, None, Names())
    return {"variant": "report", **_common(shelf), **_company(shelf)}


def team(figures: Figures, team_id: str) -> dict[str, Any]:
    """One team's own money and hours. What the company has as a whole is left out, and so is everybody else's name."""
    known = figures.rows(
        """
        select team_id, team_name from marts.core.dim_teams
        union
        select team_id, team_name from marts.core.fct_team_days
        """
    )
    own = {name for pair in known if pair[0] == team_id for name in pair}
    names = Names(name for pair in known for name in pair if name not in own)
    shelf = Shelf(figures, team_id, names)
    return {"variant": "team", **_common(shelf), "held": _held(shelf)}


def payers(figures: Figures) -> list[str]:
    return [row[0] for row in figures.rows("select team_id from payers order by place")]


class Shelf:
    """One team's rows, or everybody's. Ids and names are carried once, in lists; rows say a place in them."""

    def __init__(self, figures: Figures, team_id: str | None, names: Names) -> None:
        self._figures = figures
        self.team_id = team_id
        self.names = names
        self.teams = self.rows(f"select team_id, team_name, is_built_in from payers where {_OF_TEAM} order by place")
        self.projects = self.rows(
            f"""
            select project_id, any_value(project_name)
            from (
                select project_id from costs where {_OF_TEAM}
                union
                select project_id from job_facts where {_OF_TEAM}
            ) left join (select project_id, project_name from marts.core.dim_projects) using (project_id)
            where project_id is not null
            group by project_id order by project_id
            """
        )
        self.pools = self.rows(
            f"""
            select pool_id, any_value(pool_name)
            from (
                select pool_id from costs where {_OF_TEAM}
                union
                select unnest(pool_ids) as pool_id from job_facts where {_OF_TEAM}
            ) left join marts.core.dim_pools using (pool_id)
            group by pool_id order by pool_id
            """
        )
        self.team_at = _places(self.teams)
        self.project_at = _places(self.projects)
        self.pool_at = _places(self.pools)

    def rows(self, query: str) -> list[tuple]:
        return self._figures.rows(query, **({"team": self.team_id} if "$team" in query else {}))

    def named(self, rows: list[tuple]) -> list[list]:
        """Id and name of each row as the page may show them; a thing without a name is called by its id."""
        return [
            [self.names.shown(row[0]), self.names.shown(row[1]) or self.names.shown(row[0]), *row[2:]] for row in rows
        ]


def _places(rows: list[tuple]) -> dict[str | None, int | None]:
    """Where each id stands in its list; nothing stands nowhere."""
    return {None: None, **{row[0]: place for place, row in enumerate(rows)}}


def _common(shelf: Shelf) -> dict[str, Any]:
    days = [row[0] for row in shelf.rows("select cast(usage_date as varchar) from days order by 1")]
    return {
        "days": days,
        "teams": [[team_id, name, built_in] for team_id, name, built_in in shelf.teams],
        "projects": shelf.named(shelf.projects),
        "pools": shelf.named(shelf.pools),
        "components": _components(shelf),
        "months": _months(shelf),
        "daily": _daily(shelf, days),
        "kinds": _kinds(shelf),
        "hours": _hours(shelf),
        "byProject": _by_project(shelf),
        "byComponent": _by_component(shelf),
        "flow": _flow(shelf),
        "jobs": _jobs(shelf),
        "closes": _closes(shelf),
        "trueUps": _true_ups(shelf),
        "reporting": _reporting(shelf),
    }


def _company(shelf: Shelf) -> dict[str, Any]:
    """What only the page of everything has."""
    return {"idle": _idle(shelf), "bills": _bills(shelf), "reconciliation": _reconciliation(shelf)}


def _components(shelf: Shelf) -> list[list]:
    return [list(row) for row in shelf.rows("select component, component_name from marts.core.dim_components")]


def _months(shelf: Shelf) -> dict[str, Any]:
    """The key figures: text, to the cent, and the total also with all its decimals."""
    columns = ("month", "currency", "days", "daysInMonth", "exact", "total", "previous", "sameDays", "change",
               "percent", "forecast", "open")  # fmt: skip
    rows = shelf.rows(
        f"""
        select
            {_MONTH} as month,
            months.currency,
            months.day_count,
            months.days_in_month,
            cast(months.total_cost as varchar),
            cast(cast(months.total_cost as decimal(38, 2)) as varchar),
            cast(cast(months.previous_cost as decimal(38, 2)) as varchar),
            cast(cast(months.same_days_cost as decimal(38, 2)) as varchar),
            cast(cast(months.total_cost - months.same_days_cost as decimal(38, 2)) as varchar),
            round(months.change_percent, 1),
            cast(months.forecast_cost as varchar),
            cast(cast(open.open_cost as decimal(38, 2)) as varchar)
        from months
        left join (
            select month_date, currency, sum(open_cost) as open_cost
            from team_months where {_OF_TEAM} group by all
        ) as open using (month_date, currency)
        where months.scope is not distinct from $team
        order by month, sum(abs(months.total_cost)) over (partition by months.currency) desc, months.currency
        """
    )
    return _table(columns, rows)


def _daily(shelf: Shelf, days: list[str]) -> list[list]:
    """Per team and currency a list as long as the days."""
    at = {day: place for place, day in enumerate(days)}
    series: dict[tuple, list[float]] = {}
    for team_id, currency, day, cost in shelf.rows(
        f"""
        select team_id, currency, cast(usage_date as varchar), {_cents("total_cost")}
        from team_days where {_OF_TEAM} order by all
        """
    ):
        series.setdefault((shelf.team_at[team_id], currency), [0] * len(days))[at[day]] = _short(cost)
    return [[place, currency, values] for (place, currency), values in sorted(series.items())]


def _kinds(shelf: Shelf) -> dict[str, Any]:
    """Per team, and for all of them together (no team)."""
    kinds = ("direct", "idle", "shared", "burst", "outcome_credit", "adjustment", "unattributed")
    parts = [*kinds, *(f"idle_{cause}" for cause in CAUSES)]
    sums = ", ".join(_cents(f"sum({part}_cost)") for part in parts)
    rows = shelf.rows(
        f"""
        with waste as (
            select month_date, team_id, currency, sum(held_idle_cost) as held_idle_cost from project_jobs group by all
        )

        select {_MONTH}, team_id, currency, cast(sum(total_cost) as varchar), {_cents("sum(total_cost)")},
            {sums}, {_cents("sum(held_idle_cost)")}
        from team_months left join waste using (month_date, team_id, currency)
        where {_OF_TEAM}
        group by grouping sets ((month_date, team_id, currency), (month_date, currency))
        order by all
        """
    )
    # What no rule claims is a kind of cost and also a payer, whose name has no place on another team's page.
    shown = ["unclaimed" if part == "unattributed" else part for part in parts]
    return _table(
        ("month", "team", "currency", "exact", "total", *shown, "waste"),
        [(month, shelf.team_at[team_id], *rest) for month, team_id, *rest in rows],
    )


def _hours(shelf: Shelf) -> dict[str, Any]:
    rows = shelf.rows(
        f"""
        select
            {_MONTH}, team_id,
            {_hour_sum("gpu_hours")}, {_hour_sum("sampled_gpu_hours")}, {_hour_sum("busy_gpu_hours")}
        from team_hours where {_OF_TEAM}
        group by grouping sets ((month_date, team_id), (month_date))
        having sum(gpu_hours) > 0
        order by all
        """
    )
    return _table(
        ("month", "team", "held", "sampled", "busy"),
        [(month, shelf.team_at[team_id], *rest) for month, team_id, *rest in rows],
    )


def _hour_sum(column: str) -> str:
    return f"cast(round(sum({column}), 1) as double)"


def _by_project(shelf: Shelf) -> dict[str, Any]:
    """A project's cost: on jobs, and the rest, which no job caused by itself."""
    rows = shelf.rows(
        f"""
        select
            {_MONTH}, team_id, project_id, currency, cast(total_cost as varchar),
            {_cents("total_cost")}, {_cents("on_jobs_cost")}, {_cents("rest_cost")}, job_count,
            {_cents("held_idle_cost")}
        from project_months where {_OF_TEAM} order by all
        """
    )
    return _table(
        ("month", "team", "project", "currency", "exact", "total", "onJobs", "rest", "jobCount", "waste"),
        [
            (month, shelf.team_at[team_id], shelf.project_at[project_id], *rest)
            for month, team_id, project_id, *rest in rows
        ],
    )


def _by_component(shelf: Shelf) -> dict[str, Any]:
    rows = shelf.rows(
        f"""
        select {_MONTH}, team_id, project_id, component, currency, {_cents("sum(total_cost)")}
        from costs where {_OF_TEAM} group by all order by all
        """
    )
    return _table(
        ("month", "team", "project", "component", "currency", "cost"),
        [
            (month, shelf.team_at[team_id], shelf.project_at[project_id], *rest)
            for month, team_id, project_id, *rest in rows
        ],
    )


def _flow(shelf: Shelf) -> dict[str, Any]:
    """From components to pools to teams; on a team's page to its projects."""
    receiver, places = ("team_id", shelf.team_at) if shelf.team_id is None else ("project_id", shelf.project_at)
    pools = shelf.rows(
        f"""
        select {_MONTH}, currency, component, pool_id, {_cents("sum(total_cost)")}
        from costs where {_OF_TEAM} group by all order by all
        """
    )
    receivers = shelf.rows(
        f"""
        select {_MONTH}, currency, pool_id, {receiver}, {_cents("sum(total_cost)")}
        from costs where {_OF_TEAM} group by all order by all
        """
    )
    return {
        "pools": _table(
            ("month", "currency", "from", "to", "cost"),
            [
                (month, currency, component, shelf.pool_at[pool], cost)
                for month, currency, component, pool, cost in pools
            ],
        ),
        "receivers": _table(
            ("month", "currency", "from", "to", "cost"),
            [(month, currency, shelf.pool_at[pool], places[to], cost) for month, currency, pool, to, cost in receivers],
        ),
    }


def _bills(shelf: Shelf) -> dict[str, Any]:
    return _table(
        ("month", "currency", "from", "to", "cost"),
        shelf.rows(
            f"""
            select {_MONTH}, currency, coalesce(provider, 'no provider'), component, {_cents("sum(allocatable_cost)")}
            from bills group by all order by all
            """
        ),
    )


def _idle(shelf: Shelf) -> dict[str, Any]:
    """Per month and cause a week of hours, Monday 0:00 first, in money and in GPU-hours."""
    cost = _weeks(
        shelf.rows(f"select {_MONTH}, currency, idle_cause, weekday, hour, {_cents('idle_cost')} from idle_costs")
    )
    hours = _weeks(
        shelf.rows(
            f"select {_MONTH}, idle_cause, weekday, hour, cast(round(idle_hours, 1) as double) from idle_gpu_hours"
        )
    )
    capacity = _weeks(
        shelf.rows(
            f"select distinct {_MONTH}, weekday, hour, cast(round(capacity_hours, 1) as double) from idle_gpu_hours"
        )
    )
    # No cause stands for all of them.
    totals = shelf.rows(
        f"""
        select {_MONTH}, currency, idle_cause, cast(sum(idle_cost) as varchar), {_cents("sum(idle_cost)")},
            {_cents("any_value(cost)")}
        from idle_costs inner join pool_costs using (month_date, currency)
        group by grouping sets ((month_date, currency, idle_cause), (month_date, currency)) order by all
        """
    )
    return {
        "cost": cost,
        "hours": hours,
        "capacity": capacity,
        "totals": _table(("month", "currency", "cause", "exact", "cost", "poolCost"), totals),
    }


def _held(shelf: Shelf) -> dict[str, Any]:
    """When the GPUs that a team held were not busy, where telemetry tells."""

    def week(column: str) -> list[list]:
        return _weeks(
            shelf.rows(
                f"select {_MONTH}, weekday, hour, cast(round({column}, 1) as double) from held_hours where {_OF_TEAM}"
            )
        )

    return {"hours": week("gpu_hours"), "idle": week("held_idle_gpu_hours")}


def _weeks(rows: list[tuple]) -> list[list]:
    """(…key, weekday from 1, hour, value) as one list of a week's hours per key."""
    found: dict[tuple, list[float]] = {}
    for *key, weekday, hour, value in rows:
        found.setdefault(tuple(key), [0] * HOURS_OF_A_WEEK)[(weekday - 1) * 24 + hour] = _short(value)
    return [[*key, values] for key, values in sorted(found.items())]


def _jobs(shelf: Shelf) -> dict[str, Any]:
    """Receipts, with every decimal: the parts of one add up to its total."""
    parts = ("gpu", "cpu", "memory", "energy", "other_direct", "idle", "burst", "outcome_credit", "adjustment", "total",
             "held_idle")  # fmt: skip
    rank = "waste_rank" if shelf.team_id is None else "team_waste_rank"
    rows = shelf.rows(
        f"""
        select
            {_MONTH}, team_id, project_id, currency, job_key, job_name, user_name, pool_ids,
            workload_class, state, cluster_id,
            strftime(start_at, '%Y-%m-%d %H:%M'), strftime(end_at, '%Y-%m-%d %H:%M'),
            cast(round(gpu_hours, 2) as double), cast(round(core_hours, 1) as double),
            cast(round(memory_gib_hours, 1) as double), cast(round(energy_kwh, 2) as double),
            round(busy_share, 4),
            if({rank} <= {WORST_JOBS}, {rank}, null) as worst,
            {", ".join(f"if({part}_cost = 0, '0', cast({part}_cost as varchar))" for part in parts)}
        from receipts
        where {_OF_TEAM}
        order by worst nulls last, cost_rank, total_cost desc, job_key
        limit {MOST_JOBS}
        """
    )
    shown, is_clean = shelf.names.shown, shelf.names.is_clean
    return _table(
        ("month", "team", "project", "currency", "key", "name", "user", "pools", "class", "state", "cluster",
         "start", "end", "gpuHours", "coreHours", "memoryHours", "energyKwh", "busy", "worst", *parts),
        [
            (
                month, shelf.team_at[team_id], shelf.project_at[project_id], currency,
                # A key is to be typed: half of one helps nobody.
                key if is_clean(key) else None, shown(name) or shown(key), shown(user),
                [shelf.pool_at[pool] for pool in pools], *rest,
            )
            for month, team_id, project_id, currency, key, name, user, pools, *rest in rows
        ],
    )  # fmt: skip


def _closes(shelf: Shelf) -> dict[str, Any]:
    rows = shelf.rows(
        f"""
        select
            close_number, strftime(period_date, '%Y-%m'), strftime(max(closed_at), '%Y-%m-%d %H:%M'), max(closed_by),
            max(override_reason), left(max(content_hash), 12), currency, sum(invoice_count),
            cast(cast(sum(invoiced_amount) as decimal(38, 2)) as varchar),
            cast(cast(coalesce(sum(true_up_amount), 0) as decimal(38, 2)) as varchar)
        from closes where {_OF_TEAM}
        group by close_number, period_date, currency order by close_number desc, currency
        """
    )
    shown = shelf.names.shown
    return _table(
        ("close", "month", "at", "by", "override", "hash", "currency", "invoices", "amount", "trueUps"),
        [
            (close, month, at, shown(by), shown(override), *rest)
            for close, month, at, by, override, *rest in rows
        ],
    )  # fmt: skip


def _true_ups(shelf: Shelf) -> dict[str, Any]:
    rows = shelf.rows(
        f"""
        select
            is_open, strftime(period_date, '%Y-%m'), strftime(corrected_period_date, '%Y-%m'), team_id, cause, currency,
            cast(amount as varchar), cast(cast(invoiced_amount as decimal(38, 2)) as varchar), line_count
        from true_ups where {_OF_TEAM}
        order by is_open desc, period_date desc, abs(amount) desc, team_id, cause
        limit {MOST_TRUE_UPS}
        """
    )
    return _table(
        ("open", "month", "corrects", "team", "cause", "currency", "exact", "amount", "lines"),
        [
            (is_open, month, corrects, shelf.team_at[team_id], shelf.names.shown(cause), *rest)
            for is_open, month, corrects, team_id, cause, *rest in rows
        ],
    )


def _reporting(shelf: Shelf) -> dict[str, Any]:
    return _table(
        ("month", "currency", "total"),
        shelf.rows(
            f"""
            select {_MONTH}, reporting_currency, cast(cast(sum(reporting_amount) as decimal(38, 2)) as varchar)
            from reporting_months where {_OF_TEAM} group by all order by all
            """
        ),
    )


def _reconciliation(shelf: Shelf) -> dict[str, Any]:
    amounts = ("billed_cost", "allocatable_cost", "paid_ahead_cost", "released_cost", "outside_cost", "restated_cost",
               "billed_difference", "allocated_difference", "previous_billed_cost")  # fmt: skip
    rows = shelf.rows(
        f"""
        select
            provider, invoice_id, currency, strftime(billing_period_date, '%Y-%m'), cost_status, delivery_count,
            strftime(delivered_at, '%Y-%m-%d'), line_count,
            billed_difference = 0 and allocated_difference = 0,
            {", ".join(f"cast({amount} as varchar)" for amount in amounts)}
        from marts.reporting.rpt_reconciliation
        where billing_period_date >= (select min(month_date) from days)
        order by billing_period_date desc, provider, currency, invoice_id
        """
    )
    return _table(
        ("provider", "invoice", "currency", "period", "status", "deliveries", "delivered", "lines", "ties", "billed",
         "allocatable", "paidAhead", "released", "outside", "restated", "difference", "allocatedDifference",
         "previous"),
        rows,
    )  # fmt: skip


def _cents(amount: str) -> str:
    """For charts and tables: rounded by SQL, so that the number prints as the exact cents."""
    return f"cast(round({amount}, 2) as double)"


def _table(columns: tuple[str, ...], rows: list) -> dict[str, Any]:
    return {"columns": columns, "rows": rows}


def _short(value: float | None) -> float | int | None:
    """12.0 as 12: a zero has one letter, and most of a heat map's corners are zeros."""
    return int(value) if value is not None and value == int(value) else value
