"""What-ifs: a scenario is worked out beside the books, which stay as they are, and moves cost without making any."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

import duckdb
import pytest
from typer.testing import CliRunner

from orchestration.cli import app
from orchestration.dbt import SeedsRefused
from orchestration.errors import ApportionError
from orchestration.overlay import Row, overlay
from orchestration.scenarios import scenarios_of, schema_of, simulate
from orchestration.workspace import PROJECT_ROOT, Workspace
from tests.golden.company import make_workspace
from tests.warehouses import DEMO, MARTS, Tables, command, tables_of, window

SHIPPED = sorted(path.name for path in (PROJECT_ROOT / "seeds" / "scenarios").iterdir())
BY_COMMAND = "platform-pays-idle"
"""One of them is asked for as people do."""
NOTHING_NEW = "nothing-new"
"""Says in other files what the base says."""
REPEATED = ("policy/idle_policies", "policy/allocation_policies", "policy/adjustments", "policy/teams")
UNTOUCHED = (*MARTS, "seeds", "intermediate")

IDLE = "pool_id,idle_cause,policy,idle_window,valid_from,valid_to,reason"


def write(workspace: Workspace, scenario: str, seed: str, *rows: str) -> None:
    path = workspace.seeds / "scenarios" / scenario / f"{seed}.csv"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")


@pytest.fixture(scope="module")
def workspace(demo: Workspace, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    """The demo's first days on loan, whose dbt project is parsed already; they are given back as they were."""
    kept = tmp_path_factory.mktemp("kept")
    shutil.copy2(demo.warehouse, kept)
    shutil.copytree(demo.seeds, kept / "seeds")
    for seed in REPEATED:
        text = (demo.seeds / f"{seed}.csv").read_text(encoding="utf-8")
        write(demo, NOTHING_NEW, Path(seed).name, *text.splitlines())
    yield demo
    shutil.copy2(kept / demo.warehouse.name, demo.warehouse)
    shutil.rmtree(demo.seeds)
    shutil.copytree(kept / "seeds", demo.seeds)
    shutil.rmtree(demo.data / "scenario")


@dataclass(frozen=True)
class WorkedOut:
    """All scenarios, one after the other."""

    workspace: Workspace
    before: Tables
    printed: str

    def ask(self, sql: str) -> list[tuple]:
        with duckdb.connect(str(self.workspace.warehouse), read_only=True) as warehouse:
            return warehouse.execute(sql).fetchall()


@pytest.fixture(scope="module")
def worked_out(workspace: Workspace) -> WorkedOut:
    before = tables_of(workspace.warehouse, UNTOUCHED)
    for name in {*SHIPPED, NOTHING_NEW} - {BY_COMMAND}:
        assert simulate(workspace, name, DEMO) == schema_of(name)
    days = ("--from", str(DEMO.start), "--to", str(DEMO.end))
    answer = CliRunner().invoke(app, command(workspace, "simulate", "--scenario", BY_COMMAND, *days)[1:])
    assert answer.exit_code == 0, answer.output
    return WorkedOut(workspace, before, answer.output)


# --- what is left afterwards -------------------------------------------------------------------------------


def test_the_books_and_the_policy_are_bit_for_bit_what_they_were(worked_out: WorkedOut) -> None:
    assert {"fct_cost_allocations", "rpt_fairness", "idle_policies", "int_books"} <= worked_out.before.by_name.keys()
    assert tables_of(worked_out.workspace.warehouse, UNTOUCHED).differences(worked_out.before) == []


def test_a_scenario_leaves_its_result_and_none_of_the_steps_to_it(worked_out: WorkedOut) -> None:
    assert scenarios_of(worked_out.workspace) == sorted([*SHIPPED, NOTHING_NEW])
    left = worked_out.ask(
        "select table_schema, table_name from information_schema.tables where starts_with(table_schema, 'scenario')"
    )
    tables = ("scenario_costs", "rpt_scenario_deltas")
    assert set(left) == {(schema_of(name), table) for name in (*SHIPPED, NOTHING_NEW) for table in tables}


@pytest.mark.parametrize("name", [*SHIPPED, NOTHING_NEW])
def test_the_books_stand_beside_the_scenario_and_both_sum_to_the_same(worked_out: WorkedOut, name: str) -> None:
    deltas = f"{schema_of(name)}.rpt_scenario_deltas"
    assert worked_out.ask(f"select distinct scenario_name, first_date, end_date from {deltas}") == [
        (name, DEMO.start, DEMO.end)
    ]
    for side, table in {
        "actual_cost": "core.fct_cost_allocations",
        "scenario_cost": f"{schema_of(name)}.scenario_costs",
    }.items():
        told = worked_out.ask(
            f"""
            select month_date, team_id, component, currency, {side} from {deltas} where {side} <> 0 order by all
            """
        )
        assert told
        assert told == worked_out.ask(
            f"""
            select date_trunc('month', usage_date)::date, team_id, component, currency, sum(amount) from {table}
            group by all having sum(amount) <> 0 order by all
            """
        )
    assert worked_out.ask(f"select count(*) from {deltas} where change_cost <> scenario_cost - actual_cost") == [(0,)]
    sums = worked_out.ask(f"select currency, sum(actual_cost), sum(scenario_cost) from {deltas} group by all")
    assert {currency for currency, *_ in sums} == {"USD", "CHF"}
    assert all(actual == scenario for _, actual, scenario in sums)


@pytest.mark.parametrize("name", [*SHIPPED, NOTHING_NEW])
def test_cost_moves_between_teams_and_never_between_days_pools_and_components(worked_out: WorkedOut, name: str) -> None:
    compared, differing = worked_out.ask(
        f"""
        with sides as (
            select usage_date, pool_id, component, currency, amount as books, 0 as scenario
            from core.fct_cost_allocations
            union all
            select usage_date, pool_id, component, currency, 0, amount from {schema_of(name)}.scenario_costs
        ),
        sums as (
            select sum(books) - sum(scenario) as difference from sides group by usage_date, pool_id, component, currency
        )
        select count(*), count(*) filter (difference <> 0) from sums
        """
    )[0]
    assert compared > 50
    assert differing == 0


# --- what scenarios say ------------------------------------------------------------------------------------


def test_a_scenario_that_says_what_the_base_says_changes_nothing(worked_out: WorkedOut) -> None:
    deltas = f"{schema_of(NOTHING_NEW)}.rpt_scenario_deltas"
    rows, changed = worked_out.ask(f"select count(*), count(*) filter (change_cost <> 0) from {deltas}")[0]
    assert rows > 50
    assert changed == 0


@pytest.mark.parametrize("name", SHIPPED)
def test_the_shipped_scenarios_change_something(worked_out: WorkedOut, name: str) -> None:
    teams = worked_out.ask(
        f"""
        select team_id from {schema_of(name)}.rpt_scenario_deltas
        group by team_id having sum(abs(change_cost)) > 1
        """
    )
    assert len(teams) > 2


def idle_and_direct(worked_out: WorkedOut, table: str) -> tuple[Decimal, list[tuple]]:
    """What teams pay as idle, and what each pays directly."""
    ((idle,),) = worked_out.ask(
        f"select coalesce(sum(abs(amount)), 0) from {table} where allocation_kind = 'idle' and team_id <> 'platform'"
    )
    return idle, worked_out.ask(
        f"""
        select usage_date, team_id, component, currency, sum(amount) from {table} where allocation_kind = 'direct'
        group by all order by all
        """
    )


def test_where_the_platform_pays_for_idle_no_team_does(worked_out: WorkedOut) -> None:
    books_idle, books_direct = idle_and_direct(worked_out, "core.fct_cost_allocations")
    idle, direct = idle_and_direct(worked_out, "scenario_platform_pays_idle.scenario_costs")
    assert books_idle > 0
    assert idle == 0
    assert direct == books_direct, "what is used stays as it is"


def test_without_weights_and_marginal_prices_nothing_is_moved_for_bursts(worked_out: WorkedOut) -> None:
    burst = "select count(*) from {} where allocation_kind = 'burst' and pool_id like 'cirrus-h100-%'"
    assert worked_out.ask(burst.format("core.fct_cost_allocations")) > [(0,)]
    assert worked_out.ask(burst.format("scenario_everything_direct.scenario_costs")) == [(0,)]


def test_a_flat_rate_is_what_its_teams_pay(worked_out: WorkedOut) -> None:
    """7.20 per GPU-hour of each H100 pool, per division, day and pool; each payer's part is rounded once."""
    sums = worked_out.ask(
        """
        with teams as (
            select usage_date, team_id, root_team_id from core.fct_team_days
            where root_team_id in ('research', 'product')
        ),
        paid as (
            select usage_date, pool_id, root_team_id, sum(amount) as amount
            from scenario_flat_h100_rate.scenario_costs
            inner join teams using (usage_date, team_id)
            where component = 'gpu' and currency = 'USD' and pool_id like 'cirrus-h100-%'
            group by all
        ),
        held as (
            select usage_date, pool_id, root_team_id, sum(gpu_seconds) as gpu_seconds
            from core.fct_job_usage_hourly
            inner join teams using (usage_date, team_id)
            group by all
        )
        select amount, gpu_seconds from paid inner join held using (usage_date, pool_id, root_team_id)
        """
    )
    assert len(sums) > 10
    for amount, gpu_seconds in sums:
        assert abs(amount - gpu_seconds * Decimal("7.2") / 3600) <= Decimal("1e-9")


def test_the_command_shows_per_team_what_would_change(worked_out: WorkedOut) -> None:
    assert "the books have not changed" in worked_out.printed
    assert "USD: the books and the scenario" in worked_out.printed
    assert "CHF: the books and the scenario" in worked_out.printed
    assert "per month, team and component: scenario_platform_pays_idle.rpt_scenario_deltas" in worked_out.printed
    (speech, *_) = (line.split() for line in worked_out.printed.splitlines() if line.split()[:1] == ["Speech"])
    actual, scenario, change = (Decimal(cell.replace(",", "")) for cell in speech[1:4])
    assert scenario < actual
    assert abs(scenario - actual - change) <= Decimal("0.01")
    (everybody, *_) = (line.split() for line in worked_out.printed.splitlines() if line.split()[:1] == ["all"])
    assert everybody[1] == everybody[2]
    assert everybody[3:] == ["+0.00", "+0.0"]


# --- what is refused ---------------------------------------------------------------------------------------


@dataclass
class Refused:
    """A workspace with scenarios that make no sense, whose warehouse must not change by them."""

    workspace: Workspace

    def asked(self, name: str = "odd", start: str = str(DEMO.start), end: str = str(DEMO.end)) -> ApportionError:
        with pytest.raises(ApportionError) as refusal:
            simulate(self.workspace, name, window(start, end))
        return refusal.value


@pytest.fixture
def refused(worked_out: WorkedOut) -> Iterator[Refused]:
    """After the others are worked out: what is refused must not change their results either."""
    before = worked_out.workspace.warehouse.read_bytes()
    yield Refused(worked_out.workspace)
    assert worked_out.workspace.warehouse.read_bytes() == before
    shutil.rmtree(worked_out.workspace.seeds / "scenarios" / "odd", ignore_errors=True)


def test_an_unknown_scenario_is_refused_with_the_known_ones(refused: Refused) -> None:
    error = refused.asked("platform-pays-nothing")
    assert "there is no scenario 'platform-pays-nothing' in" in error.message
    assert f"(there are: {', '.join(sorted([*SHIPPED, NOTHING_NEW]))})" in error.message


def test_a_name_that_cannot_be_a_schema_is_refused(refused: Refused) -> None:
    folder = refused.workspace.seeds / "scenarios" / "Pays Idle"
    folder.mkdir()
    error = refused.asked(folder.name)
    folder.rmdir()
    assert error.message == "the name of the scenario 'Pays Idle' cannot become a schema's"
    assert "small letters and digits" in str(error.remedy)


def test_a_file_that_is_no_seed_is_refused_with_the_seeds(refused: Refused) -> None:
    write(refused.workspace, "odd", "idle_policy", IDLE)
    error = refused.asked()
    assert error.message == "seeds/scenarios/odd/idle_policy.csv: there is no seed of that name"
    assert "idle_policies" in str(error.remedy)


def test_a_scenario_without_files_is_refused(refused: Refused) -> None:
    (refused.workspace.seeds / "scenarios" / "odd").mkdir()
    assert "there is no CSV in" in refused.asked().message


def test_columns_and_cells_that_cannot_be_read_are_named(refused: Refused) -> None:
    write(refused.workspace, "odd", "idle_policies", IDLE.replace("idle_window", "window"), "*,*,platform,,,,What if")
    missing, unknown = refused.asked().message.splitlines()[1:]
    assert "seeds/scenarios/odd/idle_policies.csv, line 1: the column idle_window is missing" in missing
    assert "seeds/scenarios/odd/idle_policies.csv, line 1: there is no column window" in unknown
    write(refused.workspace, "odd", "idle_policies", IDLE, "", "*,*,platform,,soon,,What if", "*,down,platform")
    day, short = refused.asked().message.splitlines()[1:]
    assert "seeds/scenarios/odd/idle_policies.csv, line 3, column valid_from: 'soon' is no day" in day
    assert "seeds/scenarios/odd/idle_policies.csv, line 4: 3 cells under 7 columns" in short


def test_rows_that_cannot_be_laid_over_the_base_are_named_all_at_once(refused: Refused) -> None:
    write(
        refused.workspace,
        "odd",
        "idle_policies",
        IDLE,
        ",down,platform,,2025-01-01,,What if",
        "alps-a100,down,platform,,2025-02-01,2025-01-01,What if",
        "alps-a100,stranded,,,2025-01-01,,",
        "alps-a100,unscheduled,,,2020-01-01,2025-01-01,",
    )
    error = refused.asked()
    empty, backwards, absent, too_early = error.message.splitlines()[1:]
    file = "seeds/scenarios/odd/idle_policies.csv, row idle_policies"
    assert empty.strip().startswith(f"{file}//down@2025-01-01: pool_id is empty")
    assert backwards.strip().startswith(f"{file}/alps-a100/down@2025-02-01: valid_to is not after valid_from")
    assert absent.strip().startswith(f"{file}/alps-a100/stranded@2025-01-01: it takes away what is not there")
    assert too_early.strip().startswith(f"{file}/alps-a100/unscheduled@2020-01-01: it takes away what is not there")
    assert error.remedy == "mend the rows that are named and run again"


def test_a_policy_that_makes_no_sense_is_refused_with_the_scenarios_own_file(refused: Refused) -> None:
    """Also rows of the base that no longer agree with it, by the base's file."""
    write(
        refused.workspace,
        "odd",
        "idle_policies",
        IDLE,
        "*,*,charity,,2025-01-01,,What if",
        "alps-a100,down,owner,,2025-01-01,,One",
        "alps-a100,down,peak,,2025-06-01,,Another",
    )
    write(
        refused.workspace,
        "odd",
        "teams",
        "team_id,team_name,parent_team_id,cost_centre,headcount,valid_from,valid_to,reason",
        "speech,,,,,,,",
    )
    error = refused.asked()
    assert isinstance(error, SeedsRefused)
    lines = error.message.splitlines()
    assert lines[0] == "the policy of the scenario 'odd' is refused, and no table has changed:"
    own = "  seeds/scenarios/odd/idle_policies.csv, row idle_policies"
    word = lines.index(f"{own}/*/*@2025-01-01: policy = charity is none of the known words")
    assert lines[word + 1].strip().startswith("→ use one of: proportional, even")
    assert any(line.startswith(f"{own}/alps-a100/down@2025-06-01: an earlier row") for line in lines)
    assert any(
        line.startswith("  seeds/policy/") and line.endswith("team_id = speech is not in seeds/policy/teams.csv")
        for line in lines
    )
    assert "or the rows of the scenario that they no longer agree with" in str(error.remedy)


def test_days_that_are_not_built_cannot_be_compared(refused: Refused) -> None:
    error = refused.asked(NOTHING_NEW, "2026-01-03", "2026-01-06")
    assert error.message == "the books do not hold 2 of the 3 days, the first is 2026-01-04"
    assert "run those days first" in str(error.remedy)


def test_books_that_are_stale_cannot_be_compared(refused: Refused) -> None:
    """The scenario would be blamed for what somebody has changed since."""
    policy = refused.workspace.seeds / "policy" / "idle_policies.csv"
    text = policy.read_text(encoding="utf-8")
    policy.write_text(text + "nimbus-l4-spot,down,platform,,2026-01-02,2026-01-03,Somebody has changed it\n")
    error = refused.asked(NOTHING_NEW)
    policy.write_text(text, encoding="utf-8")
    assert error.message == "inputs or policy of 1 of the 3 days changed since they were run, the first is 2026-01-02"
    assert "run those days again first" in str(error.remedy)


@pytest.mark.parametrize("killed_early", [False, True], ids=["nothing was run", "the first run was killed early"])
def test_without_books_there_is_nothing_to_compare_with(tmp_path: Path, killed_early: bool) -> None:
    workspace = make_workspace(tmp_path)
    write(workspace, "odd", "idle_policies", IDLE)
    if killed_early:
        workspace.data.mkdir(exist_ok=True)
        duckdb.connect(str(workspace.warehouse)).close()
    assert "the books do not hold 3 of the 3 days" in Refused(workspace).asked().message


# --- rows laid over rows -----------------------------------------------------------------------------------

KEY = ("pool_id", "idle_cause")


def row(policy: str, valid_from: str = "", valid_to: str = "", pool_id: str = "h100") -> Row:
    reason = "Because" if policy else ""
    return dict(zip(IDLE.split(","), (pool_id, "down", policy, "", valid_from, valid_to, reason), strict=True))


OPEN = row("even", "2026-01-01")
ENDED = row("even", "2026-01-01", "2026-02-01")


@pytest.mark.parametrize(
    ("base", "changes", "merged"),
    [
        pytest.param([OPEN], [], [OPEN], id="nothing"),
        pytest.param([], [OPEN], [OPEN], id="a new row"),
        pytest.param([OPEN], [row("peak", "2026-01-01")], [row("peak", "2026-01-01")], id="the same days"),
        pytest.param([OPEN], [row("peak")], [row("peak")], id="more days"),
        pytest.param([row("even")], [row("peak")], [row("peak")], id="for ever"),
        pytest.param(
            [OPEN],
            [row("peak", "2026-03-01")],
            [ENDED | {"valid_to": "2026-03-01"}, row("peak", "2026-03-01")],
            id="later days",
        ),
        pytest.param(
            [OPEN],
            [row("peak", "2025-01-01", "2026-03-01")],
            [row("even", "2026-03-01"), row("peak", "2025-01-01", "2026-03-01")],
            id="earlier days",
        ),
        pytest.param(
            [row("even")],
            [row("peak", "2026-03-01", "2026-04-01")],
            [row("even", "", "2026-03-01"), row("even", "2026-04-01"), row("peak", "2026-03-01", "2026-04-01")],
            id="days in the middle",
        ),
        pytest.param([ENDED], [row("peak", "2026-02-01")], [ENDED, row("peak", "2026-02-01")], id="days after it"),
        pytest.param(
            [ENDED], [row("peak", "", "2026-01-01")], [ENDED, row("peak", "", "2026-01-01")], id="days before it"
        ),
        pytest.param(
            [ENDED, row("owner", "2026-02-01", "2026-03-01"), row("platform", "2026-03-01")],
            [row("peak", "2026-01-15", "2026-03-15")],
            [
                row("even", "2026-01-01", "2026-01-15"),
                row("platform", "2026-03-15"),
                row("peak", "2026-01-15", "2026-03-15"),
            ],
            id="days of several rows",
        ),
        pytest.param([OPEN], [row("peak", pool_id="a100")], [OPEN, row("peak", pool_id="a100")], id="another key"),
        pytest.param([OPEN], [row("")], [], id="taken away"),
        pytest.param([OPEN], [row("", "2026-02-01")], [ENDED], id="taken away from a day on"),
        pytest.param(
            [OPEN],
            [row("peak", "2026-02-01", "2026-03-01"), row("owner", "2026-03-01")],
            [ENDED, row("peak", "2026-02-01", "2026-03-01"), row("owner", "2026-03-01")],
            id="one change after the other",
        ),
        pytest.param(
            [OPEN],
            [row("peak"), row("owner")],
            [row("peak"), row("owner")],
            id="changes that contradict each other stay",
        ),
    ],
)
def test_changes_take_the_place_of_the_base_for_their_key_and_their_days(
    base: list[Row], changes: list[Row], merged: list[Row]
) -> None:
    assert overlay(base, changes, KEY) == merged


def test_of_a_seed_without_days_a_change_replaces_the_whole_row() -> None:
    base = [{"preset": "aws", "gpu_weight": "9"}, {"preset": "own", "gpu_weight": "5"}]
    assert overlay(base, [{"preset": "own", "gpu_weight": "7"}], ["preset"]) == [
        base[0],
        {"preset": "own", "gpu_weight": "7"},
    ]
    assert overlay(base, [{"preset": "aws", "gpu_weight": ""}], ["preset"]) == [base[1]]
