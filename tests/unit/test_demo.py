"""The demo company: the same bytes each time, and one story told by all its files."""

from __future__ import annotations

import csv
import gzip
import hashlib
import itertools
import json
import re
from collections import defaultdict
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from zoneinfo import ZoneInfo

import duckdb
import pytest

from orchestration.demo import MARKER, company, generate
from orchestration.demo.slurm_files import node_list
from orchestration.demo.world import URGENT_NUMBER
from orchestration.errors import ApportionError

SEEDS = Path(__file__).parents[2] / "seeds"
DAYS = 3


@pytest.fixture(scope="module")
def inbox(tmp_path_factory: pytest.TempPathFactory) -> Path:
    data = tmp_path_factory.mktemp("demo")
    generate(data, days=DAYS)
    return data / "inbox"


# ── readers of this test's own, so that a mistake of the writer is not repeated here ─────────────────
def expand(text: str) -> list[str]:
    """`a[1-2]n[01-03],b7` → every node name."""
    names = []
    for item in re.findall(r"(?:[^,\[]|\[[^\]]*\])+", text):
        pieces = []
        for piece in re.split(r"(\[[^\]]*\])", item):
            choices = [piece]
            if piece.startswith("["):
                choices = []
                for span in piece[1:-1].split(","):
                    first, _, last = span.partition("-")
                    numbers = range(int(first), int(last or first) + 1)
                    choices += [str(number).zfill(len(first)) for number in numbers]
            pieces.append(choices)
        names += ["".join(choice) for choice in itertools.product(*pieces)]
    return names


def slurm_time(cluster: str, text: str) -> int:
    if cluster == "cirrus":
        return int(text)
    return int(datetime.fromisoformat(text).replace(tzinfo=ZoneInfo("Europe/Zurich")).timestamp())


def utc(text: str) -> int:
    return int(datetime.fromisoformat(text).timestamp())


def holdings(inbox: Path) -> dict[tuple, dict]:
    """What the newest record of each job or pod says: where it was, when, and with how much per node."""
    found: dict[tuple, dict] = {}
    for cluster in ("alps", "cirrus"):
        for path in sorted((inbox / "slurm" / cluster).glob("sacct_*.psv")):
            dumped = int(datetime.strptime(path.stem[-16:], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC).timestamp())
            header, *lines = path.read_text().splitlines()
            for line in lines:
                row = dict(zip(header.split("|"), line.split("|"), strict=False))
                if line.count("|") != header.count("|") or "." in row["JobIDRaw"]:
                    continue
                if row["Start"] in ("Unknown", "None") or int(row["JobIDRaw"]) >= 9_000_000:
                    continue  # never started, or one of the broken rows
                nodes = expand(row["NodeList"])
                tres = dict(item.split("=") for item in row["AllocTRES"].split(","))
                gpus = tres.get("gres/gpu") or next((v for k, v in tres.items() if k.startswith("gres/gpu:")), 0)
                start = slurm_time(cluster, row["Start"])
                end = dumped if row["End"] == "Unknown" else slurm_time(cluster, row["End"])
                found[cluster, row["JobIDRaw"], start] = {
                    "nodes": nodes,
                    "end": end,
                    "gpus": int(gpus) / len(nodes),
                    "cores": int(tres["cpu"]) / len(nodes),
                    "gib": mebibytes(tres["mem"]) / 1024 / len(nodes),
                    "state": row["State"],
                }
    for path in sorted((inbox / "kubernetes" / "nimbus").glob("*.jsonl.gz")):
        dumped = int(datetime.strptime(path.name[16:32], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC).timestamp())
        for line in gzip.decompress(path.read_bytes()).decode().splitlines():
            try:
                pod = json.loads(line)
                start = utc(pod["start"])
            except ValueError:
                continue  # the broken rows
            asked = pod["requests"]
            cores, memory = asked.get("cpu", "0"), asked.get("memory", "0Gi")
            found["nimbus", f"{pod['namespace']}/{pod['pod']}", start] = {
                "nodes": [pod["node"]],
                "end": utc(pod["end"]) if pod["end"] else dumped,
                "gpus": int(asked.get("nvidia.com/gpu", 0)) + int(asked.get("nvidia.com/mig-1g.10gb", 0)) / 7,
                "cores": int(cores[:-1]) / 1000 if cores.endswith("m") else int(cores),
                "gib": int(memory[:-2]) / (1 if memory.endswith("Gi") else 1024),
                "state": pod["phase"],
            }
    return found


def mebibytes(text: str) -> float:
    unit = {"K": 1 / 1024, "M": 1, "G": 1024}
    return float(text[:-1]) * unit[text[-1]] if text[-1] in unit else float(text)


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as lines:
        return list(csv.DictReader(lines))


def digest(folder: Path) -> dict[str, tuple[str, float]]:
    return {
        str(path.relative_to(folder)): (hashlib.sha256(path.read_bytes()).hexdigest(), path.stat().st_mtime)
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


# ── tests ────────────────────────────────────────────────────────────────────────────────────────────
def test_the_same_seed_gives_the_same_bytes_and_replaces_an_older_inbox(inbox: Path, tmp_path: Path) -> None:
    (tmp_path / "inbox").mkdir()
    (tmp_path / "inbox" / MARKER).touch()
    (tmp_path / "inbox" / "older.csv").write_text("gone")
    (tmp_path / "inbox.new").mkdir()  # left by a generation that was killed
    (tmp_path / "inbox.new" / "half.csv").write_text("gone")
    generate(tmp_path, days=DAYS)
    assert digest(tmp_path / "inbox") == digest(inbox)
    assert [path.name for path in tmp_path.iterdir()] == ["inbox"]


def test_an_inbox_with_files_of_somebody_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "inbox").mkdir()
    (tmp_path / "inbox" / "bill.csv").write_text("real")
    with pytest.raises(ApportionError, match="holds files that the demo did not generate"):
        generate(tmp_path, days=1)
    assert (tmp_path / "inbox" / "bill.csv").read_text() == "real"


def test_no_node_is_held_beyond_its_capacity_but_for_the_one_urgent_job(inbox: Path) -> None:
    capacity = {
        (row["cluster"], row["node"]): tuple(float(row[key]) for key in ("gpus", "cores", "memory_gib"))
        for row in rows(inbox / "inventory" / "nodes.csv")
        if row["gpus"].isdigit()
    }
    changes = defaultdict(list)
    unlisted = ("cirrus", "cir-spot-99")  # an instance that nobody entered in the inventory
    capacity[unlisted] = capacity["cirrus", "cir-r01"]
    for (cluster, part, start), held in holdings(inbox).items():
        amount = (held["gpus"], held["cores"], held["gib"])
        for node in held["nodes"]:
            changes[cluster, node].append((start, 1, amount, part))
            changes[cluster, node].append((held["end"], 0, tuple(-value for value in amount), part))
    over = set()
    for node, events in changes.items():
        level = [0.0, 0.0, 0.0]
        for _, _, amount, part in sorted(events):
            level = [now + value for now, value in zip(level, amount, strict=True)]
            if any(now > limit + 1e-6 for now, limit in zip(level, capacity[node], strict=True)):
                over.add(part)
    assert over == {str(URGENT_NUMBER)}
    assert len(changes) > 60


def test_telemetry_labels_exactly_the_gpus_that_jobs_hold(inbox: Path) -> None:
    held = duckdb.connect()
    held.execute("set TimeZone = 'UTC'")
    held.execute("create table holdings (cluster text, part text, node text, s bigint, e bigint, gpus double)")
    held.executemany(
        "insert into holdings values (?, ?, ?, ?, ?, ?)",
        [
            (cluster, part, node, start, what["end"], what["gpus"])
            for (cluster, part, start), what in holdings(inbox).items()
            for node in what["nodes"]
            if what["gpus"]
        ],
    )
    for cluster in company.ALL_CLUSTERS:
        label = "namespace || '/' || pod" if cluster == "nimbus" else "hpc_job"
        held.execute(
            f"""
            create or replace view samples as
            select Hostname as node, epoch(timestamp)::bigint as t, {label} as part,
                sum(case when GPU_I_ID is null then 1 else 1 / 7 end) as gpus
            from '{inbox}/telemetry/{cluster}/*.parquet'
            where Hostname is not null and timestamp is not null
            group by all
            """
        )
        wrong, labelled = held.execute(
            """
            select count(*) filter (where abs(coalesce(holdings.gpus, 0) - samples.gpus) > 1e-6), count(*)
            from samples left join holdings
                on holdings.cluster = ? and holdings.node = samples.node and holdings.part = samples.part
                and samples.t >= holdings.s and samples.t < holdings.e
            where samples.part is not null
            """,
            [cluster],
        ).fetchone()
        assert labelled > 10_000
        assert wrong == 0, f"{wrong} node-minutes of {cluster} are labelled with a job that does not hold the GPUs"
        missing = held.execute(
            """
            select count(*)
            from holdings
            join (select distinct node, t from samples) seen
                on seen.node = holdings.node and seen.t >= holdings.s and seen.t < holdings.e
            left join samples
                on samples.node = seen.node and samples.t = seen.t and samples.part = holdings.part
            where holdings.cluster = ? and samples.part is null
            """,
            [cluster],
        ).fetchone()[0]
        # only the job that was suspended for the urgent one holds GPUs that show another label
        assert missing == (40 if cluster == "alps" else 0)


def test_a_third_of_the_jobs_does_not_complete_and_a_few_take_most_of_the_gpu_time(inbox: Path) -> None:
    jobs = holdings(inbox)
    completed = sum(what["state"] in ("COMPLETED", "Succeeded") for what in jobs.values())
    assert 0.6 < completed / len(jobs) < 0.72
    times = sorted(what["gpus"] * len(what["nodes"]) * (what["end"] - key[2]) for key, what in jobs.items())
    assert sum(times[-len(times) // 20 :]) > 0.5 * sum(times)


def test_dumps_say_how_long_jobs_may_take_and_how_often_they_save(inbox: Path) -> None:
    limits = {"alps": defaultdict(int), "cirrus": defaultdict(int)}
    saves, states = set(), set()
    for cluster, column in (("alps", "Timelimit"), ("cirrus", "TimelimitRaw")):
        for path in (inbox / "slurm" / cluster).glob("sacct_*.psv"):
            header, *lines = path.read_text().splitlines()
            for line in lines:
                row = dict(zip(header.split("|"), line.split("|"), strict=False))
                if line.count("|") == header.count("|") and "." not in row["JobIDRaw"]:
                    limits[cluster][row[column]] += 1
                    states.add(row["State"])
                    saves |= set(re.findall(r"checkpoint_minutes=(\S+)", row["Comment"]))
    assert {"00:30:00", "10:00:00", "2-00:00:00", "UNLIMITED"} <= limits["alps"].keys()
    assert {"30", "540", "2880", "Partition_Limit"} <= limits["cirrus"].keys()
    assert saves == {"30", "45", "60", "90", "auto"}
    assert {"PREEMPTED", "BOOT_FAIL"} <= states
    pods = [
        json.loads(line)["labels"]
        for path in (inbox / "kubernetes" / "nimbus").glob("*.jsonl.gz")
        for line in gzip.decompress(path.read_bytes()).decode().splitlines()
        if line.endswith("}")
    ]
    assert {labels.get("workload") for labels in pods} == {"serving", None}
    assert {labels.get("checkpoint_minutes") for labels in pods} >= {"30", "45", "60", "90", None}


def test_telemetry_has_the_activity_that_intensity_is_measured_by(inbox: Path) -> None:
    for cluster in company.ALL_CLUSTERS:
        ((lowest, highest, busy),) = duckdb.sql(
            f"""
            select min(DCGM_FI_PROF_PIPE_TENSOR_ACTIVE), max(DCGM_FI_PROF_SM_ACTIVE),
                avg(cast(DCGM_FI_PROF_SM_ACTIVE > DCGM_FI_PROF_PIPE_TENSOR_ACTIVE as int))
            from '{inbox}/telemetry/{cluster}/*.parquet'
            """
        ).fetchall()
        assert 0 <= lowest < highest <= 1
        assert busy > 0.2, f"the GPUs of {cluster} are hardly ever active"


def test_used_and_unused_commitment_add_up_to_its_hourly_price(inbox: Path) -> None:
    (path,) = (inbox / "billing" / "focus").glob("focus_2026-01_*.csv.gz")
    with gzip.open(path, "rt", newline="") as text:
        lines = list(csv.DictReader(text))
    per_hour = defaultdict(Decimal)
    for line in lines:
        if line["ChargeCategory"] == "Usage" and line["CommitmentDiscountId"] == company.COMMITMENTS["h100-8"][0]:
            per_hour[line["ChargePeriodStart"]] += Decimal(line["EffectiveCost"])
    price = Decimal(company.RESERVED_PRICE["h100-8"] * company.COMMITMENTS["h100-8"][1]) / company.NANO
    assert len(per_hour) == DAYS * 24
    assert set(per_hour.values()) == {price}


def test_seeds_know_every_pool_machine_team_and_person_of_the_company(inbox: Path) -> None:
    nodes = [row for row in rows(inbox / "inventory" / "nodes.csv") if row["gpus"].isdigit()]
    pools = {row["pool_id"] for row in rows(SEEDS / "policy" / "pools.csv")}
    machines = {row["instance_type"] for row in rows(SEEDS / "reference" / "instance_types.csv")}
    assert {row["pool"] for row in nodes} <= pools
    assert {row["instance_type"] for row in nodes} <= machines
    rules = rows(SEEDS / "policy" / "payer_rules.csv")
    teams = {row["team_id"] for row in rows(SEEDS / "policy" / "teams.csv")} | {"platform"}
    assert {rule["team_id"] for rule in rules} <= teams
    for day in ("2026-01-14", company.MOVED_AT):
        for user in itertools.chain(*company.MEMBERS.values()):
            payers = [
                rule["team_id"]
                for rule in rules
                if (rule["account"], rule["user_name"]) == (company.PERSONAL_ACCOUNT, user)
                and rule["valid_from"] <= day
                and (not rule["valid_to"] or day < rule["valid_to"])
            ]
            assert payers == [company.team_of(user, day)]
    known = {rule["account"] for rule in rules} | {rule["namespace"] for rule in rules}
    assert not known & {*company.UNKNOWN_ACCOUNTS, *company.UNKNOWN_NAMESPACES}


@pytest.mark.parametrize(
    ("names", "text"),
    [
        (["cir-r01"], "cir-r01"),
        (["cir-r01", "cir-r02", "cir-r07"], "cir-r[01-02,07]"),
        (["alps-r1n01", "alps-r1n02", "alps-r2n01", "alps-r2n02"], "alps-r[1-2]n[01-02]"),
        (["alps-r1n01", "alps-r1n02", "alps-r3n08"], "alps-r1n[01-02],alps-r3n08"),
    ],
)
def test_node_lists_are_spelled_as_slurm_does(names: list[str], text: str) -> None:
    assert node_list(names) == text
    assert expand(text) == names
