"""`apportion explain`: every amount of the books, worked out again from the facts, to the last decimal."""

from __future__ import annotations

import io
import json
import shutil
from collections import Counter
from dataclasses import replace
from datetime import date
from pathlib import Path

import duckdb
import pytest
from rich.console import Console
from typer.testing import CliRunner

from orchestration.cli import app
from orchestration.explain.answer import explain_job, explain_team
from orchestration.explain.books import opened, rows, work_out
from orchestration.explain.receipt import Receipt, read
from orchestration.explain.subjects import days_of, runs_of, team_in
from orchestration.workspace import Workspace
from tests.golden.company import make_workspace
from tests.warehouses import DEMO, GOLDEN, command

MARCH = date(2026, 3, 1)
LINE = ("pool_id", "component", "currency", "allocation_kind", "idle_cause")
WIDTH = 110


def ask(workspace: Workspace, *arguments: str, exit_code: int = 0) -> str:
    answer = CliRunner().invoke(app, command(workspace, "explain", *arguments)[1:])
    assert answer.exit_code == exit_code, answer.output
    return answer.output


def receipt_of_job(workspace: Workspace, job: str, hour: int | None = None) -> str:
    console = Console(file=io.StringIO(), width=WIDTH)
    explain_job(workspace, job, None, hour, False, console)
    return console.file.getvalue()


def receipt_of_team(workspace: Workspace, team: str, month: date, pool: str | None = None) -> str:
    console = Console(file=io.StringIO(), width=WIDTH)
    explain_team(workspace, team, month, None, pool, False, console)
    return console.file.getvalue()


def squeezed(text: str) -> str:
    """Without the columns: how the words and numbers follow each other."""
    return " ".join(text.split())


def worked_out(receipt: Receipt) -> Counter:
    found: Counter = Counter()
    for block in receipt.blocks:
        for line in block.lines:
            key = (block.pool_id, block.component, block.currency, line.allocation_kind, line.idle_cause)
            found[key] += line.recomputed
    return Counter({key: amount for key, amount in found.items() if amount})


def booked(warehouse: duckdb.DuckDBPyConnection, column: str, value: str) -> Counter:
    found = warehouse.execute(
        f"select {', '.join(LINE)}, sum(amount) from core.fct_cost_allocations where {column} = ? group by all", [value]
    ).fetchall()
    return Counter({tuple(key): amount for *key, amount in found if amount})


# --- every amount ------------------------------------------------------------------------------------------


def test_every_job_of_the_golden_company_comes_out_as_booked(golden: Workspace) -> None:
    with opened(golden) as warehouse:
        keys = [key for (key,) in warehouse.execute("select job_key from core.dim_jobs order by 1").fetchall()]
        assert len(keys) == 6
        for key in keys:
            (run,) = runs_of(warehouse, key)
            work_out(warehouse, days_of(warehouse, run), "job_key", key)
            receipt = read(warehouse, run, by_day=True, hour=None)
            assert receipt.agrees, key
            assert all(line.is_recomputed for block in receipt.blocks for line in block.lines)
            assert worked_out(receipt) == booked(warehouse, "job_key", key)


def test_every_team_of_the_golden_company_comes_out_as_booked(golden: Workspace) -> None:
    days = list(GOLDEN)
    with opened(golden) as warehouse:
        teams = [team for (team,) in warehouse.execute("select team_id from core.dim_teams").fetchall()]
        assert {"vision", "nlp", "speech", "platform", "unattributed"} == set(teams)
        for team in teams:
            work_out(warehouse, days, "team_id", team)
            receipt = read(warehouse, team_in(warehouse, team, days), by_day=False, hour=None)
            assert receipt.agrees, team
            assert worked_out(receipt) == booked(warehouse, "team_id", team)


def test_all_books_of_the_demo_come_out_as_booked_whatever_the_policy(demo: Workspace) -> None:
    """Every payer of every day at once, with burst, lender and outcome credits, adjustments, ceilings and peaks."""
    key = (
        "usage_date, pool_id, component, currency, team_id, project_id, user_name, job_key, allocation_kind, idle_cause"
    )
    with opened(demo) as warehouse:
        work_out(warehouse, list(DEMO), "team_id", "nlp")
        kinds = rows(
            warehouse,
            f"""
            with both_sides as (
                select {key}, policy_row, amount, 1 as recomputed, is_recomputed from recomputed
                union all
                select {key}, policy_row, -amount, 0, null from core.fct_cost_allocations
            ),
            compared as (
                select
                    allocation_kind,
                    sum(amount) as difference,
                    max(recomputed) as recomputed,
                    bool_and(is_recomputed) as is_known
                from both_sides group by {key}, policy_row
            )
            select
                allocation_kind,
                count(*) filter (difference <> 0) as differing,
                count(*) filter (recomputed = 1) as found,
                count(*) filter (is_known) as known
            from compared group by allocation_kind
            """,
        )
    assert {row["allocation_kind"]: row["differing"] for row in kinds} == dict.fromkeys(
        ("direct", "idle", "shared", "unattributed", "burst", "outcome_credit", "adjustment"), 0
    )
    # What is taken from the books proves nothing: it must stay the exception.
    assert all(row["known"] > 0.9 * row["found"] > 0 for row in kinds)


def test_a_job_of_the_demo_with_every_kind_of_transfer_is_explained(demo: Workspace) -> None:
    with opened(demo) as warehouse:
        ((key, total),) = warehouse.execute(
            """
            select job_key, sum(amount) from core.fct_cost_allocations where job_key is not null group by 1
            order by count(distinct allocation_kind) desc, sum(abs(amount)) desc, 1 limit 1
            """
        ).fetchall()
    told = squeezed(receipt_of_job(demo, key))
    assert "GPU-h, entitled" in told
    assert "of the team's" in told
    assert "lost the last" in told
    assert "on the other side: platform" in told
    assert f"Total {total:,.9f}" in told
    assert "the books say the same, to the last decimal" in told


# --- how it reads ------------------------------------------------------------------------------------------


def test_the_receipt_of_a_job_leads_from_the_bill_to_its_total(golden: Workspace) -> None:
    told = receipt_of_job(golden, "105")
    lines = [squeezed(line) for line in told.splitlines()]
    # What the README of the golden day works out by hand.
    assert "run hal:105:1773135000, FAILED" in lines
    assert "payer speech / cleo [1]" in lines
    assert "billed GPU node 25.92 in 6 lines [2] 25.920000000 ✓" in lines
    assert "rate 10:00: cost 4.32 ÷ 2 GPU-h = 2.16 per GPU-h; used 2 GPU-h = 4.32" in lines
    text = squeezed(told)
    assert "10:00: used cost 4.32 × 3,600 ÷ 7,200 GPU-s = 2.160000000, and 2 more 5.400000000 ✓ hours" in text
    assert "of the hour's 3.24 × 1,800 ÷ 1,800 GPU-s = 3.240000000, and 2 more 7.167272728 ✓ hours" in text
    assert "direct [3] cost 11.00 × 9,000 ÷ 19,800 GPU-s 5.000000000 ✓" in lines
    assert (
        "Total 19.287272728 USD, worked out again from the facts: the books say the same, to the last decimal" in text
    )
    assert "[4] idle_policies/gpu-cloud/*@2026-01-01 policy proportional, idle_window hour" in lines
    assert "“Rented by the hour”" in lines


def test_an_hour_can_be_asked_for(golden: Workspace) -> None:
    told = squeezed(receipt_of_job(golden, "105", hour=9))
    assert "rate 09:00: cost 4.32 ÷ 2 GPU-h = 2.16 per GPU-h; used 0.5 GPU-h = 1.08" in told
    assert "direct [3] 09:00: used cost 1.08 × 1,800 ÷ 1,800 GPU-s = 1.080000000" in told


def test_running_shares_are_shown_where_the_last_decimal_depends_on_them(golden: Workspace) -> None:
    told = squeezed(receipt_of_team(golden, "speech", MARCH, pool="scratch"))
    assert "cost 10.00 × 24" in told
    assert "(running shares 6.666666667 − 3.333333333)" in told
    assert "3.333333334 ✓" in told


def test_the_receipt_of_a_team_shows_every_pool_and_works_out_the_largest(golden: Workspace) -> None:
    told = receipt_of_team(golden, "vision", MARCH)
    lines = [squeezed(line) for line in told.splitlines()]
    assert "days 2026-03-10" in lines
    assert "solver license 6.67 – – – 6.67 EUR ✓" in lines
    assert "support support – – – 2.81 2.81 USD ✓" in lines
    assert "2026-03-10 · gpu-owned · gpu · USD" in told
    assert "2026-03-10 · support · support · USD" not in told
    assert "Shown is the largest component of the 5 largest pools" in told
    assert "Total 6.666666667 EUR" in squeezed(told)
    support = squeezed(receipt_of_team(golden, "vision", MARCH, pool="support"))
    assert "overhead 10.00 × 91.473333… ÷ 325.64… USD of direct cost 2.809032469 ✓" in support


@pytest.mark.parametrize("width", [60, 80, 200])
def test_a_receipt_keeps_to_the_width_of_the_page(golden: Workspace, width: int) -> None:
    console = Console(file=io.StringIO(), width=width)
    explain_job(golden, "103", None, None, False, console)
    # The totals are one line for whoever searches for them.
    lines = [line for line in console.file.getvalue().splitlines() if not line.startswith("Total")]
    assert max(len(line) for line in lines) <= width


def test_json_holds_amounts_as_text_and_the_whole_arithmetic(golden: Workspace) -> None:
    answer = json.loads(ask(golden, "job", "105", "--json"))
    (run,) = answer["runs"]
    assert run["agrees"] is True
    amount = "19.287272728"
    assert run["totals"] == [{"currency": "USD", "recomputed": amount, "booked": amount, "as_booked": "0.000000000"}]
    block = run["blocks"][0]
    assert (block["pool_id"], block["component"], block["billed"]) == ("gpu-cloud", "gpu", "25.920000000")
    step = block["lines"][0]["steps"][0]
    assert (step["whole"], step["weight"], step["total"], step["amount"]) == (
        "4.320000000", 3_600 * 25_200_000, 7_200 * 25_200_000, "2.160000000"
    )  # fmt: skip
    assert "idle_policies/gpu-cloud/*@2026-01-01" in {policy["policy_row"] for policy in run["policies"]}
    team = json.loads(ask(golden, "team", "vision", "--month", "2026-03", "--json"))
    assert {total["currency"] for total in team["totals"]} == {"USD", "EUR"}


# --- when the books say something else ---------------------------------------------------------------------


@pytest.fixture
def edited(golden: Workspace, tmp_path: Path) -> Workspace:
    """A copy of the golden books, to be spoilt."""
    data = tmp_path / "data"
    data.mkdir()
    shutil.copy(golden.warehouse, data / "warehouse.duckdb")
    return replace(golden, data=data)


def spoil(workspace: Workspace, *statements: str) -> None:
    with duckdb.connect(str(workspace.warehouse)) as warehouse:
        for statement in statements:
            warehouse.execute(statement)


def test_an_amount_that_does_not_follow_from_the_facts_is_shown_with_both_figures(edited: Workspace) -> None:
    spoil(edited, "update core.fct_job_costs set gpu_cost = gpu_cost + 0.000000001 where job_key like 'hal:105:%'")
    told = squeezed(receipt_of_job(edited, "105"))
    assert "the books say 5.400000001; it differs on 2026-03-10" in told
    assert "Total 19.287272728 USD, worked out again from the facts; the books say 19.287272729" in told
    assert "The policy has changed" not in told


def test_a_policy_that_changed_since_the_day_was_built_is_named_as_the_cause(edited: Workspace) -> None:
    spoil(
        edited,
        "update seeds.idle_policies set policy = 'platform', idle_window = null where pool_id = 'gpu-cloud'",
        "update intermediate.int_policy_rows set row_hash = 'x' where policy_row like 'idle_policies/gpu-cloud/%'",
    )
    told = squeezed(receipt_of_job(edited, "105"))
    assert "the books say 7.167272728; it differs on 2026-03-10" in told
    assert "The policy has changed since 2026-03-10 was built" in told


def test_what_the_facts_cannot_tell_is_shown_as_booked_and_says_so(edited: Workspace) -> None:
    """Who reserved a node is not in the facts, so idle that reserving teams pay cannot be worked out again."""
    spoil(edited, "update seeds.idle_policies set policy = 'owner' where idle_cause = 'reserved'")
    told = squeezed(receipt_of_team(edited, "speech", MARCH, pool="gpu-owned"))
    assert "as booked: the facts do not hold who reserved which node" in told
    assert "24.000000000 ·" in told
    assert "(32.000000001 of it shown as booked)" in told


# --- who is meant ------------------------------------------------------------------------------------------


def test_a_job_with_several_runs_is_explained_run_by_run(demo: Workspace) -> None:
    with opened(demo) as warehouse:
        ((job,),) = warehouse.execute(
            """
            select job_id from core.dim_jobs where array_job_id is null
            group by job_id having count(*) = 2 order by 1 limit 1
            """
        ).fetchall()
        keys = [run.job_key for run in runs_of(warehouse, job)]
    told = receipt_of_job(demo, job)
    assert len(keys) == 2
    assert all(f"run    {key}," in told for key in keys)


def test_the_tasks_of_an_array_are_listed(demo: Workspace) -> None:
    with opened(demo) as warehouse:
        array, tasks = warehouse.execute(
            """
            select array_job_id, count(*) from core.dim_jobs where array_job_id is not null
            group by 1 having count(*) > 3 order by 1 limit 1
            """
        ).fetchone()
    told = receipt_of_job(demo, array)
    assert f"{array} has {tasks} runs; explain one of them by its key:" in told


@pytest.mark.parametrize(
    ("arguments", "message", "remedy"),
    [
        (("job", "1055"), "no job has the id '1055'", "the nearest ids are 105"),
        (("job", "1773135000"), "no job has the id '1773135000'", "known under these job keys: hal:105:1773135000"),
        (("job", "105", "--day", "2026-03-11"), "it did not run on 2026-03-11", "hal:105:1773135000 from 2026-03-10"),
        (("job", "105", "--hour", "3"), "in the hour from 3:00", "--hour can be 9, 10, 11"),
        (("team", "visoin", "--month", "2026-03"), "there is no team 'visoin'", "the nearest are vision (Vision)"),
        (("team", "vision", "--month", "2026-04"), "no day of 2026-04 is built", "there are days of 2026-03"),
        (("team", "vision", "--month", "2026-03", "--day", "2026-03-12"), "2026-03-12 is not among", "2026-03-10"),
        (("team", "nlp", "--month", "2026-03", "--pool", "gpu-cloud"), "nothing of pool 'gpu-cloud'", "gpu-owned"),
    ],
)
def test_who_is_not_known_is_answered_with_who_is(
    golden: Workspace, arguments: tuple[str, ...], message: str, remedy: str
) -> None:
    told = squeezed(ask(golden, *arguments, exit_code=1))
    assert told.startswith("✗")
    assert message in told
    assert remedy in told.partition("→")[2]


@pytest.mark.parametrize("killed_early", [False, True], ids=["nothing was run", "the first run was killed early"])
def test_without_books_there_is_nothing_to_explain(tmp_path: Path, killed_early: bool) -> None:
    workspace = make_workspace(tmp_path)
    if killed_early:
        workspace.data.mkdir()
        duckdb.connect(str(workspace.warehouse)).close()
    told = ask(workspace, "team", "vision", "--month", "2026-03", exit_code=1)
    assert "nothing is built yet" in told
    assert "apportion run" in told.partition("→")[2]
