"""What Slurm tells besides jobs: node events, reservations and the tree of accounts, in every form."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from orchestration.errors import ApportionError
from tests.connectors.slurm_reading import Outcome, read

EMPTY = "JobIDRaw|State|Start|End|AllocTRES|NodeList\n"


def read_text(tmp_path: Path, kind: str, content: str, **settings: Any) -> Outcome:
    path = tmp_path / f"{kind}_20260301T000000Z"
    path.write_text(content)
    return read(path, kind, **settings)


# --- events ------------------------------------------------------------------------------------------------


def test_real_events_leave_the_cluster_out(shared: Path) -> None:
    outcome = read(shared / "slurm_live" / "sacctmgr-event.psv", "events", timezone="UTC")
    assert [reason for _, reason in outcome.skipped] == ["about the cluster, not a node"] * 2
    lasted = [(row["node_name"], row["state"], (row["end_at"] - row["start_at"]).seconds) for row in outcome.good]
    assert lasted == [("a2", "DOWN", 7777), ("a2", "DOWN", 0), ("a2", "DRAIN", 98), ("a2", "DRAIN", 284)]


@pytest.mark.parametrize(
    ("header", "line", "delimiter"),
    [
        ("NodeName|TimeStart|TimeEnd|State|Reason", "n[1-2]|{start}|{end}|DOWN*|fan|noise", None),
        ("Node Name;Start;End;State", "n[1-2];{start};{end};IDLE+DRAIN", None),
        ("state<>end<>start<>nodename<>", "DRAIN<>{end}<>{start}<>n1,n2<>", "<>"),
    ],
)
def test_events_of_any_columns_and_delimiter(tmp_path: Path, header: str, line: str, delimiter: str | None) -> None:
    text = f"{header}\n{line.format(start=1767578400, end='Unknown')}\n"
    outcome = read_text(tmp_path, "events", text, delimiter=delimiter, timezone=None)
    assert [(row["node_name"], row["end_at"]) for row in outcome.good] == [("n1", None), ("n2", None)]
    assert outcome.bad == []


def test_a_node_that_took_jobs_was_not_down(tmp_path: Path) -> None:
    rows = "".join(f"n{n}|1767578400|1767582000|{state}\n" for n, state in enumerate(["IDLE~", "MIXED", "DRAIN", ""]))
    outcome = read_text(tmp_path, "events", f"NodeName|TimeStart|TimeEnd|State\n{rows}")
    assert outcome.skipped == [(2, "the node took jobs: IDLE~"), (3, "the node took jobs: MIXED")]
    assert [row["node_name"] for row in outcome.good] == ["n2", "n3"]


def test_events_of_several_clusters(tmp_path: Path) -> None:
    """sacctmgr lists all clusters of its database, and their nodes may have the same names."""
    rows = "".join(f"{name}|n1|17675784{second:02}|1767582000|DOWN\n" for second, name in enumerate(["c", "d", "d"]))
    text = f"Cluster|NodeName|TimeStart|TimeEnd|State\n{rows}"
    outcome = read_text(tmp_path, "events", text)
    assert [int(row["start_at"].timestamp()) for row in outcome.good] == [1767578400]
    assert outcome.skipped == [(3, "an event of cluster d"), (4, "an event of cluster d")]
    outcome = read_text(tmp_path, "events", text, cluster="elsewhere")
    assert outcome.bad == [(2, "of cluster c in a file of d; the source names neither")]
    assert len(outcome.good) == 2


def test_events_without_their_header_or_as_json_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ApportionError, match="line 1: not the header line of sacctmgr events"):
        read_text(tmp_path, "events", "c||n1|1767578400|Unknown|DOWN\n")
    with pytest.raises(ApportionError, match="JSON instead of sacctmgr events"):
        read_text(tmp_path, "events", "{}")
    with pytest.raises(ApportionError, match="line 1: missing column TimeEnd"):
        read_text(tmp_path, "events", "NodeName|TimeStart|State\n")


# --- reservations ------------------------------------------------------------------------------------------

BLOCK = (
    "ReservationName=paper StartTime=2026-01-05T08:00:00 EndTime=2026-01-05T09:00:00 Duration=01:00:00\n"
    "   Nodes=n[1-2] NodeCnt=2 Features=(null) PartitionName=(null) Flags=SPEC_NODES\n"
    "   Users=(null) Groups=(null) Accounts=nlp,vision Licenses=(null) State=ACTIVE\n"
)
RESERVED = [("paper", "n1,n2", "nlp,vision", None, 1767600000, 1767603600)]


def _reserved(outcome: Outcome) -> list[tuple]:
    return [
        (
            *(row[name] for name in ("reservation_name", "node_names", "accounts", "users")),
            *(int(row[name].timestamp()) for name in ("start_at", "end_at")),
        )
        for row in outcome.good
    ]


@pytest.mark.parametrize("wrap", [lambda n: n, lambda n: {"set": True, "infinite": False, "number": n}])
def test_reservations_are_the_same_in_blocks_on_one_line_and_in_json(tmp_path: Path, wrap) -> None:
    one_line = BLOCK.replace("\n   ", " ")
    record = {"name": "paper", "accounts": "nlp,vision", "users": "", "node_list": "n[1-2]", "flags": ["SPEC_NODES"]}
    record |= {"start_time": wrap(1767600000), "end_time": wrap(1767603600)}
    for text in (BLOCK, one_line, json.dumps({"reservations": [record]})):
        outcome = read_text(tmp_path, "reservations", text)
        assert _reserved(outcome) == RESERVED
        assert outcome.bad == []


def test_no_reservations_is_an_answer(tmp_path: Path, shared: Path) -> None:
    assert read_text(tmp_path, "reservations", "No reservations in the system\n").reading.counts == [0]
    outcome = read(shared / "slurm_live" / "scontrol-res.txt", "reservations")
    assert outcome.skipped == [(1, "held for nobody but root")]


def test_a_block_that_lost_its_name_spoils_no_other(tmp_path: Path) -> None:
    outcome = read_text(tmp_path, "reservations", BLOCK + "\n" + BLOCK.replace("ReservationName", "ReservationNam\x00"))
    assert _reserved(outcome) == RESERVED
    assert outcome.bad == [(5, "ReservationName is missing")]


def test_the_history_of_sacctmgr_names_only_associations(tmp_path: Path) -> None:
    header = "Cluster|Name|TRES|TimeStart|TimeEnd|UnusedWall|NodeNames|Assocs"
    text = f"{header}\nc|paper|cpu=2|1767600000|1767603600|0|n1|,7,9,\n"
    outcome = read_text(tmp_path, "reservations", text)
    assert [reason for _, reason in outcome.skipped] == [
        "names only the ids of associations, not the accounts or users that it is for"
    ]
    assert "1 reservations are left out" in outcome.found.doubts[0]


# --- accounts ----------------------------------------------------------------------------------------------

TREE = {
    "root": None,
    "research": "root",
    "nlp": "research",
    "vision": "research",
    "product": "root",
    "search": "product",
}


def _tree(outcome: Outcome) -> dict[str, str | None]:
    return {row["account"]: row["parent_account"] for row in outcome.good}


def test_the_tree_of_a_real_cluster(shared: Path) -> None:
    outcome = read(shared / "slurm_live" / "sacctmgr-account.psv", "accounts")
    assert _tree(outcome) == TREE
    assert {reason for _, reason in outcome.skipped} == {"of a user, not of an account"}
    with pytest.raises(ApportionError, match="line 1: missing column ParentName"):
        read(shared / "slurm_live" / "sacctmgr-assoc.psv", "accounts")


def test_the_tree_in_other_forms(tmp_path: Path) -> None:
    lines = [f"c|  {account}||{parent or ''}|1|" for account, parent in TREE.items()] + ["c|nlp|ann||1|"]
    assert _tree(read_text(tmp_path, "accounts", "\n".join(["Cluster|Account|User|Par Name|Share|", *lines]))) == TREE
    records = [
        {"account": name, "cluster": "c", "parent_account": parent or "", "user": ""} for name, parent in TREE.items()
    ]
    assert _tree(read_text(tmp_path, "accounts", json.dumps({"associations": records}))) == TREE


def test_accounts_that_contradict_each_other_are_bad(tmp_path: Path) -> None:
    text = "Cluster,Account,ParentName\nc,nlp,research\nc,nlp,research\nc,nlp,product\nc,loop,loop\nd,nlp,root\n"
    outcome = read_text(tmp_path, "accounts", text)
    assert outcome.skipped == [(3, "repeats line 2"), (6, "an account of cluster d")]
    assert outcome.bad == [(4, "another parent than on line 2"), (5, "an account that is its own parent")]


def test_each_day_has_the_tree_that_was_in_force(workspace) -> None:
    """The newest dump that was there by the end of the day, and before the first one the first."""

    def deliver(day: str, parent: str) -> None:
        text = f"Cluster|Account|ParentName|User\nc|nlp|{parent}|\nc|nlp||ann\n"
        workspace.deliver(f"assoc_{day}T120000Z.psv", text)

    workspace.deliver("sacct.psv", EMPTY)
    source = workspace.source(
        **{"area": "scheduler", "kind": "slurm", "cluster": "c", "jobs": "{data}/inbox/sacct.psv"},
        accounts="{data}/inbox/assoc_*.psv",
    )
    query = "select strftime(date, '%d'), parent_account from {account_tree} where date < date '9000-01-01' order by 1"

    deliver("20260103", "research")
    deliver("20260105", "product")
    report = workspace.land(source, "2026-01-01", "2026-01-07")
    expected = [*((f"0{day}", "research") for day in (1, 2, 3, 4)), ("05", "product"), ("06", "product")]
    assert workspace.query(query) == expected
    assert (report.tables["account_tree"].landed, report.tables["account_tree"].skipped) == (2, 2)
    _, cursor = workspace.touched(source)

    # Days one by one, and in another order, are the same days.
    for day in (6, 2, 4, 1):
        workspace.land(source, f"2026-01-0{day}", f"2026-01-0{day + 1}")
    assert workspace.query(query) == expected

    deliver("20260106", "labs")
    days, cursor = workspace.touched(source, cursor)
    assert days == ["2026-01-06"]
    deliver("20260102", "first")
    days, cursor = workspace.touched(source, cursor)
    assert days == [f"2026-01-0{day}" for day in range(1, 7)]
    workspace.land(source, "2026-01-01", "2026-01-07")
    assert [parent for _, parent in workspace.query(query)] == [
        "first",
        "first",
        "research",
        "research",
        "product",
        "labs",
    ]
