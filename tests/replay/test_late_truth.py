"""What arrives late changes exactly the days that it touches, and what vanishes upstream vanishes here.

A company small enough to see through: two nodes, a bill line per node and day, four jobs, three days in March. Each
test delivers one more file, asks which days it touches, runs those and looks at what became of all days. The tests
build on one another in the order in which they stand here, as deliveries do.
"""

from __future__ import annotations

import io
import shutil
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

import pytest
from rich.console import Console

from orchestration.landing.touched import Cursor, touched_days
from orchestration.partitions import windows_of
from orchestration.settings import load_sources
from orchestration.status import show_status
from orchestration.workspace import Workspace
from tests.golden.company import FILES as GOLDEN_FILES
from tests.warehouses import Tables, copy_of, day, land_and_build, tables_of, window

MARCH_10, MARCH_11, MARCH_12 = day("2026-03-10"), day("2026-03-11"), day("2026-03-12")
ALL = window("2026-03-10", "2026-03-13")

SOURCES = """\
sources:
  - {name: cloud, area: billing, kind: focus, path: "{data}/inbox/focus_*.csv"}
  - {name: hal, area: scheduler, kind: slurm, cluster: hal, jobs: "{data}/inbox/sacct_*.psv"}
  - {name: nodes, area: inventory, kind: node_inventory, path: "{data}/inbox/nodes.csv"}
"""
NODES = """\
cluster,node,resource_id,provider,instance_type,pool,gpu_model,gpus,cores,memory_gib,from,to
hal,g1,vm-1,Nebula,owned-4,gpu-owned,a100,4,32,256,2026-03-01T00:00:00Z,2026-03-12T00:00:00Z
hal,g2,vm-2,Nebula,owned-4,gpu-owned,a100,4,32,256,2026-03-01T00:00:00Z,2026-03-12T00:00:00Z
"""
BILL = (
    "ProviderName,ServiceName,ChargeCategory,ChargeFrequency,ResourceId,BillingCurrency,BilledCost,EffectiveCost,"
    "ChargePeriodStart,ChargePeriodEnd,BillingPeriodStart,BillingPeriodEnd"
)
DUMP = (
    "JobIDRaw|JobID|JobName|User|Account|Partition|QOS|State|Submit|Start|End|ElapsedRaw|Suspended|AllocTRES|NodeList"
    "|ExitCode|Comment"
)


def bill_line(node: int, on: date, cost: str) -> str:
    period = f"{on}T00:00:00Z,{date.fromordinal(on.toordinal() + 1)}T00:00:00Z"
    return (
        f"Nebula,Virtual Machines,Usage,Usage-Based,vm-{node},USD,{cost},{cost},{period},"
        "2026-03-01T00:00:00Z,2026-04-01T00:00:00Z"
    )


def job(number: int, account: str, start: int, hours: int, node: str = "g1") -> str:
    """A job of two GPUs that starts so many hours after the midnight of 10 March; this Slurm prints epoch seconds."""
    begins = 1_773_100_800 + start * 3600
    tres = "cpu=8,gres/gpu=2,mem=64G,node=1"
    return (
        f"{number}|{number}|train|ana|{account}|owned|normal|COMPLETED|{begins}|{begins}|{begins + hours * 3600}"
        f"|{hours * 3600}|00:00:00|{tres}|{node}|0:0|"
    )


MORNING, ACROSS_MIDNIGHT, NEXT_DAY, LAST_DAY = (
    job(1, "vision", 6, 4),
    job(2, "nlp", 20, 8, "g2"),
    job(3, "speech", 30, 5),
    job(4, "vision", 50, 3, "g9"),  # on a node that the inventory does not know
)


@dataclass
class Company:
    workspace: Workspace
    cursors: dict[str, Cursor] = field(default_factory=dict)

    def deliver(self, name: str, header: str, lines: Iterable[str] = ()) -> set[date]:
        """Puts a file into the inbox; returns the days that the sensor would request for it."""
        path = self.workspace.data / "inbox" / name
        path.write_text("\n".join([header, *lines, ""]), encoding="utf-8")
        return self.touched()

    def touched(self) -> set[date]:
        found: set[date] = set()
        for source in load_sources(self.workspace.sources_file, self.workspace.data):
            days, self.cursors[source.name] = touched_days(
                source, self.workspace.data, self.cursors.get(source.name, Cursor())
            )
            found |= days
        return found

    def run(self, days: Iterable[date]) -> tuple[Tables, Tables]:
        """Runs exactly these days; returns the tables before and after."""
        before = self.tables()
        for stretch in windows_of(days):
            land_and_build(self.workspace, stretch)
        return before, self.tables()

    def tables(self) -> Tables:
        return tables_of(self.workspace.warehouse)

    def status(self) -> str:
        console = Console(file=io.StringIO(), width=200)
        show_status(self.workspace, console)
        return console.file.getvalue()


@pytest.fixture(scope="module")
def company(tmp_path_factory: pytest.TempPathFactory) -> Company:
    root = tmp_path_factory.mktemp("late")
    (root / "data" / "inbox").mkdir(parents=True)
    (root / "sources.yml").write_text(SOURCES, encoding="utf-8")
    shutil.copytree(GOLDEN_FILES / "seeds", root / "seeds")
    made = Company(Workspace(root / "sources.yml", root / "seeds", root / "data"))
    (root / "data" / "inbox" / "nodes.csv").write_text(NODES, encoding="utf-8")
    made.deliver(
        "focus_2026-03-10_2026-03-13_20260313T060000Z.csv",
        BILL,
        [bill_line(node, on, "240.00") for on in (MARCH_10, MARCH_11, MARCH_12) for node in (1, 2)],
    )
    made.deliver("sacct_2026-03-10_20260311T001500Z.psv", DUMP, [MORNING, ACROSS_MIDNIGHT])
    made.deliver("sacct_2026-03-11_20260312T001500Z.psv", DUMP, [ACROSS_MIDNIGHT, NEXT_DAY])
    made.deliver("sacct_2026-03-12_20260313T001500Z.psv", DUMP, [LAST_DAY])
    land_and_build(made.workspace, ALL)
    return made


def test_a_restated_bill_changes_exactly_the_day_that_it_restates(company: Company) -> None:
    touched = company.deliver(
        "focus_2026-03-11_2026-03-12_20260320T060000Z.csv",
        BILL,
        [bill_line(1, MARCH_11, "240.00"), bill_line(2, MARCH_11, "199.999999999")],
    )
    assert touched == {MARCH_11}
    before, after = company.run(touched)
    assert before.days_that_differ(after) == {MARCH_11}


def test_a_job_that_is_gone_from_a_newer_dump_is_gone_from_its_days(company: Company) -> None:
    touched = company.deliver("sacct_2026-03-10_2026-03-12_20260321T001500Z.psv", DUMP, [MORNING, NEXT_DAY])
    assert touched == {MARCH_10, MARCH_11}
    before, after = company.run(touched)
    assert before.days_that_differ(after) == {MARCH_10, MARCH_11}
    assert "nlp" in before.by_name["fct_cost_allocations"]["team_id"].to_pylist()
    assert "nlp" not in after.by_name["fct_cost_allocations"]["team_id"].to_pylist()


def test_a_day_whose_records_all_vanish_is_empty_in_every_fact(company: Company) -> None:
    touched = company.deliver("focus_2026-03-12_2026-03-13_20260322T060000Z.csv", BILL)
    touched |= company.deliver("sacct_2026-03-12_20260322T001500Z.psv", DUMP)
    assert touched == {MARCH_12}
    before, after = company.run(touched)
    assert before.days_that_differ(after) == {MARCH_12}
    assert MARCH_12 in before.days("fct_cost_allocations")
    dated = {name for name, table in after.by_name.items() if "usage_date" in table.column_names}
    policy_of_the_day = {"fct_days", "dim_dates", "fct_team_days", "fct_project_days", "fct_pool_days"}
    assert {name for name in dated if MARCH_12 in after.days(name)} == policy_of_the_day


def test_nothing_is_touched_when_nothing_is_delivered(company: Company) -> None:
    assert company.touched() == set()
    assert "stale: none" in company.status()


def test_a_policy_changed_from_a_date_makes_exactly_the_days_from_that_date_stale(company: Company) -> None:
    before = company.tables()
    policies = company.workspace.seeds / "policy" / "idle_policies.csv"
    open_row = "*,*,proportional,day,2026-01-01,,Whoever used the pool on the day\n"
    text = policies.read_text(encoding="utf-8")
    assert open_row in text
    closed = open_row.replace("2026-01-01,,", "2026-01-01,2026-03-11,")
    changed = "*,*,platform,day,2026-03-11,,The platform pays since 11 March\n"
    policies.write_text(text.replace(open_row, closed + changed), encoding="utf-8")

    assert "stale (inputs or policy changed since): 2 days: 2026-03-11 up to 2026-03-13" in company.status()
    land_and_build(company.workspace, ALL)
    assert company.tables().days_that_differ(before) == {MARCH_11, MARCH_12}
    assert "stale: none" in company.status()


def test_after_all_that_a_rebuild_from_the_inbox_gives_the_same_tables(company: Company, tmp_path: Path) -> None:
    fresh = copy_of(company.workspace, tmp_path)
    land_and_build(fresh, ALL)
    assert tables_of(fresh.warehouse).differences(company.tables()) == []
