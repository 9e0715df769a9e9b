"""A small company whose every policy is in use, and the means to spoil it."""

from __future__ import annotations

import shutil
from pathlib import Path

from orchestration.workspace import Workspace
from tests.golden import company as golden

ROWS = {
    # Robotics left Research in March, after which it may pay for what Research is let off. Maps paused in February and
    # ended in April, and whatever names it keeps to that.
    "policy/teams": """\
research,Research,,CC-9,1,2026-01-01,,Division
robotics,Robotics,research,CC-8,2,2026-01-01,2026-03-01,Part of Research
robotics,Robotics,,CC-8,2,2026-03-01,,On its own
maps,Maps,,CC-7,1,2026-01-01,2026-02-01,Trial
maps,Maps,,CC-7,1,2026-03-01,2026-04-01,Another trial
""",
    "policy/projects": """\
arm,Arm,robotics,2026-01-01,,Follows its team
atlas,Atlas,maps,2026-01-01,2026-02-01,First trial
""",
    # Support follows fixed shares: its own in January, those of `*` in February, its own again since March.
    "policy/allocation_policies": """\
support,*,direct,fixed,,,,,,,2026-01-01,,Agreed shares
gpu-owned,gpu,complexity,,marginal,0.25,sm,0.3,0.5,0.4,2026-01-01,,Everything at once
""",
    "policy/overhead_shares": """\
*,nlp,0.333333333,2026-02-01,,Agreed
*,vision,0.666666667,2026-02-01,,Agreed
support,nlp,1,2026-01-01,2026-02-01,In January
support,nlp,0.5,2026-03-01,,Halves
support,platform,0.5,2026-03-01,,Halves
""",
    "policy/idle_policies": "cpu-owned,*,entitlement,,2026-01-01,,By entitlement\n",
    "policy/workload_rules": """\
10,,,,pretrain-%,,8,,24,,training,true,2026-01-01,,Long and large
20,,cloud,,,,,,,4,serving,true,2026-01-01,2026-03-01,Short and rented
20,,cloud,,,,,2,,,serving,false,2026-03-01,,Small and rented
""",
    "policy/complexity_weights": "training,*,1.5,2026-01-01,,Hard on the network\n*,a100,0.9,2026-01-01,,Older\n",
    "policy/entitlements": """\
gpu-owned,nlp,2.5,2026-01-01,,Budget
gpu-owned,vision,0,2026-01-01,,Gave it away
gpu-owned,robotics,1,2026-01-01,,Within Research and on its own
gpu-owned,maps,1,2026-01-01,2026-02-01,For the trial
""",
    "policy/outcome_policies": """\
NODE_FAIL,*,platform,30,120,2026-01-01,,Not their fault
*,*,team,,,2026-01-01,,Theirs
""",
    "policy/adjustments": """\
relief,percent,-10,,research,,,,,robotics,CFO,2026-03-01,,Paid by a team that has left it
grant,amount,-500,USD,,llm,,,,platform,CFO,2026-03-01,2026-04-01,For the release
price,rate,2.5,EUR,vision,,training,gpu-cloud,gpu,all,CFO,2026-01-01,,Promised
start,percent,-100,,research,arm,,,,platform,CFO,2026-01-01,2026-03-01,Free while it is part of Research
""",
    "reference/price_presets": "ratio,per_unit,9,0.9,0.1,Published\n",
    "reference/instance_types": """\
bought,on-premises,a100,8,128,1000,,,,ratio,2026-01-01,,As published
leased,on-premises,a100,8,128,1000,,,,ratio,2026-01-01,2026-02-01,Given back
""",
    "reference/workload_classes": "training,Training,Makes models\nserving,Serving,Uses them\n",
}


def make_workspace(root: Path) -> Workspace:
    """The golden company with the rows above."""
    workspace = golden.make_workspace(root)
    write_seeds(workspace.seeds)
    return workspace


def write_seeds(seeds: Path) -> None:
    shutil.rmtree(seeds)
    shutil.copytree(golden.FILES / "seeds", seeds)
    for seed, rows in ROWS.items():
        add(seeds, seed, rows)


def add(seeds: Path, seed: str, rows: str) -> None:
    with (seeds / f"{seed}.csv").open("a", encoding="utf-8") as file:
        file.write(rows)


def replace(seeds: Path, seed: str, old: str, new: str) -> None:
    path = seeds / f"{seed}.csv"
    text = path.read_text(encoding="utf-8")
    assert text.count(old) == 1, f"{seed}: {old!r} is there {text.count(old)} times"
    path.write_text(text.replace(old, new), encoding="utf-8")
