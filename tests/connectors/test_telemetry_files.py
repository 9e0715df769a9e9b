"""GPU samples in Parquet, delimited text and nvidia-smi's logs: what they say, and how much time each stands for."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest

from orchestration.connectors import feeds
from orchestration.errors import ApportionError
from orchestration.landing.deliveries import discover
from orchestration.landing.engine import session

ZURICH = ZoneInfo("Europe/Zurich")


def samples(day: str, hosts: list[str | None], *, minutes: int = 3, **extra: pa.Array) -> pa.Table:
    start = datetime.fromisoformat(day).replace(tzinfo=UTC)
    rows = [(start + timedelta(minutes=m), host, gpu) for host in hosts for gpu in range(2) for m in range(minutes)]
    columns = {
        "timestamp": pa.array([row[0] for row in rows], pa.timestamp("ms", tz="UTC")),
        "Hostname": pa.array([row[1] for row in rows]),
        "gpu": pa.array([row[2] for row in rows], pa.int8()),
        "hpc_job": pa.array(["7" if row[2] else None for row in rows]),
        "DCGM_FI_DEV_POWER_USAGE": pa.array([9223372036854775794.0 for _ in rows]),
    }
    return pa.table({**columns, **extra})


def telemetry(workspace, **more):
    settings = {"area": "telemetry", "kind": "files", "cluster": "c", "path": "{data}/inbox/**/*", "max_bad_share": 0.5}
    return workspace.source(**settings | more)


def found(workspace, source):
    [feed] = feeds(source)
    with session(workspace.data) as con:
        return feed.read(con, discover(feed.pattern, source="src", optional=False)).found


@pytest.mark.parametrize("interval", [60, None])
def test_samples_are_landed_as_they_are_and_broken_ones_kept_aside(workspace, interval):
    workspace.deliver("dcgm_2026-01-05.parquet", samples("2026-01-05", ["n1", None]))
    workspace.deliver("dcgm_2026-01-06.parquet", samples("2026-01-06", ["n1"]))
    report = workspace.land(telemetry(workspace, interval_seconds=interval), "2026-01-05", "2026-01-07")
    assert (report.rows, report.quarantined) == (12, 6)
    assert workspace.query(
        "select distinct cluster_id, node_name, part_id, interval_ms, power_watts, util_percent"
        " from {gpu_samples} order by 3"
    ) == [
        ("c", "n1", "7", 60000, 9.223372036854776e18, None),
        ("c", "n1", None, 60000, 9.223372036854776e18, None),
    ]
    assert workspace.quarantined()[0] == (7, "Hostname is missing")


def test_a_day_of_samples_is_the_newest_delivery_that_is_complete_for_it(workspace):
    workspace.deliver("dcgm_2026-01-05_20260106T000000Z.parquet", samples("2026-01-05", ["old", "gone"]))
    # A file that runs over midnight: the next day's file, not this one, speaks for the next day.
    over = pa.concat_tables([samples("2026-01-05", ["new"]), samples("2026-01-06", ["stray"])])
    workspace.deliver("dcgm_2026-01-05_20260107T000000Z.parquet", over)
    source = telemetry(workspace)
    workspace.land(source, "2026-01-05", "2026-01-07")
    assert workspace.query("select date::varchar, node_name, count(*) from {gpu_samples} group by 1, 2 order by 1") == [
        ("2026-01-05", "new", 6),
        ("2026-01-06", "stray", 6),
    ]
    workspace.deliver("dcgm_2026-01-06_20260107T000000Z.parquet", samples("2026-01-06", ["own"]))
    report = workspace.land(source, "2026-01-05", "2026-01-07")
    assert workspace.query("select node_name from {gpu_samples} where date = '2026-01-06' group by 1") == [("own",)]
    assert [str(day) for day in report.days_changed] == ["2026-01-06"]
    assert report.tables["gpu_samples"].superseded == 18


def test_pods_and_epoch_times_in_samples(workspace):
    epoch = pa.array([1767578400, 1767578400500, 1767578401000000, 1767578402000000000, None, -1])
    table = pa.table(
        {
            "timestamp": epoch,
            "Hostname": ["n1"] * 6,
            "gpu": ["0", "1", "0", "0", "2", "3"],
            "namespace": ["ml", None, "ml", "ml", "", "x"],
            "pod": ["w-0", "w-0", "w-0", "w-0", "", "y"],
            "DCGM_FI_DEV_GPU_UTIL": ["12.5", "n/a", None, None, None, None],
        }
    )
    workspace.deliver("dcgm_2026-01-05.parquet", table)
    workspace.land(telemetry(workspace, max_bad_share=1.0), "2026-01-05", "2026-01-06")
    assert workspace.query(
        "select part_id, util_percent, gpu_index, strftime(sampled_at, '%H:%M:%S') from {gpu_samples} order by 4"
    ) == [("ml/w-0", 12.5, 0, "02:00:00"), ("ml/w-0", None, 0, "02:00:01"), ("ml/w-0", None, 0, "02:00:02")]
    assert workspace.quarantined() == [
        (2, "DCGM_FI_DEV_GPU_UTIL is not a number"),
        (5, "timestamp is missing or not a time"),
        (6, "timestamp is missing or not a time"),
    ]


def test_brackets_in_the_name_of_a_folder_are_no_pattern(workspace):
    odd = type(workspace)(workspace.root / "a [1] folder")
    odd.data.mkdir(parents=True)
    odd.deliver("dcgm_2026-01-05.parquet", samples("2026-01-05", ["n1", None]))
    report = odd.land(telemetry(odd), "2026-01-05", "2026-01-06")
    assert (report.rows, report.quarantined) == (6, 6)


def test_a_file_that_is_no_parquet_is_named(workspace):
    workspace.deliver("dcgm_2026-01-05.parquet", "PAR1 but cut")
    with pytest.raises(ApportionError, match=r"dcgm_2026-01-05.parquet: not a readable Parquet file"):
        workspace.land(telemetry(workspace), "2026-01-05", "2026-01-06")


# ── the same samples, however they are written ───────────────────────────────────────────────────────
COLUMNS = {
    "timestamp": "when",
    "node": "host",
    "gpu": "device",
    "job": "slurm_job",
    "util_percent": {"column": "busy", "factor": 100},
    "power_watts": "watts",
    "energy_counter_mj": {"column": "joules", "factor": 1000},
}


def random_samples(seed: int) -> list[tuple[datetime, str, int, str | None, int, int, int]]:
    dice = random.Random(seed)
    rows = []
    for node in ("a", "b"):
        for gpu in range(2):
            at, counter = datetime(2026, 1, 5, 22, tzinfo=UTC), dice.randint(0, 10**6)
            for _ in range(200):
                at += timedelta(seconds=dice.choice([30, 30, 30, 30, 31, 60, 4000 if dice.random() < 0.02 else 29]))
                counter = 0 if dice.random() < 0.02 else counter + dice.randint(0, 20000)
                rows.append(
                    (at, node, gpu, dice.choice([None, "77"]), dice.randint(0, 100), dice.randint(50, 700), counter)
                )
    rows.sort(key=lambda row: (row[0], row[1:3]))
    return rows


def as_text(rows, delimiter: str, time) -> str:
    lines = [delimiter.join(("when", "host", "device", "slurm_job", "busy", "watts", "joules", "fan"))]
    for at, node, gpu, job, busy, watts, joules in rows:
        lines.append(delimiter.join(map(str, (time(at), node, gpu, job or "", busy / 100, watts, joules, 1))))
    return "\n".join(lines) + "\n"


def expected(rows) -> list[tuple]:
    """What should be landed, worked out by hand: intervals, and mean power where the counter ran on."""
    result = []
    for gpu in {row[1:3] for row in rows}:
        own = [row for row in rows if row[1:3] == gpu]
        gaps = [(b[0] - a[0]).total_seconds() for a, b in pairwise(own)]
        usual = sorted(gaps)[(len(gaps) + 1) // 2 - 1]
        for place, (at, node, index, job, busy, watts, joules) in enumerate(own):
            seconds, power = usual, float(watts)
            if place + 1 < len(own):
                seconds = min(gaps[place], 2 * usual)
                drawn = own[place + 1][6] - joules
                if drawn >= 0 and gaps[place] <= 2 * usual:
                    power = drawn / gaps[place]
            result.append((at, node, index, job, float(busy), round(power, 6), int(seconds * 1000)))
    return sorted(result, key=lambda row: row[:3])


def landed(workspace) -> list[tuple]:
    return workspace.query(
        "select sampled_at, node_name, gpu_index, part_id, round(util_percent, 6), round(power_watts, 6), interval_ms"
        " from {gpu_samples} order by sampled_at, node_name, gpu_index"
    )


FORMS = {
    "csv, ISO in UTC": (",", lambda at: at.strftime("%Y-%m-%dT%H:%M:%SZ"), {}),
    "tab, epoch": ("\t", lambda at: int(at.timestamp()), {}),
    "semicolon, ms": (";", lambda at: int(at.timestamp() * 1000), {}),
    "pipe, us": ("|", lambda at: int(at.timestamp() * 10**6), {}),
    "csv, ns": (",", lambda at: int(at.timestamp()) * 10**9, {}),
    "csv, local": (",", lambda at: at.astimezone(ZURICH).strftime("%Y-%m-%d %H:%M:%S"), {"timezone": "Europe/Zurich"}),
}


@pytest.mark.parametrize("form", FORMS)
def test_delimited_text_with_named_columns(workspace, form):
    rows = random_samples(3)
    delimiter, time, more = FORMS[form]
    workspace.deliver("log_2026-01-05_2026-01-07.csv.gz", as_text(rows, delimiter, time))
    source = telemetry(workspace, columns=COLUMNS, **more)
    report = workspace.land(source, "2026-01-05", "2026-01-07")
    assert (report.rows, report.quarantined) == (800, 0)
    assert landed(workspace) == expected(rows)
    [what] = found(workspace, source)
    assert (what.unknown_columns, what.doubts) == (("fan",), ())


def test_parquet_with_named_columns_says_the_same(workspace):
    rows = random_samples(3)
    names = ("when", "host", "device", "slurm_job", "busy", "watts", "joules")
    table = pa.table(dict(zip(names, zip(*rows, strict=True), strict=True)))
    table = table.set_column(4, "busy", pa.array([row[4] / 100 for row in rows]))
    workspace.deliver("log_2026-01-05_2026-01-07.parquet", table)
    workspace.land(telemetry(workspace, columns=COLUMNS), "2026-01-05", "2026-01-07")
    assert landed(workspace) == expected(rows)


def test_text_times_in_parquet_are_read_like_text(workspace):
    times = ["2026-01-05 10:00:00", "2026-01-05T09:01:00Z", "1767603720"]
    table = pa.table({"timestamp": times, "node": ["n"] * 3, "gpu": [0, 0, 0], "util_percent": [1.0, 2.0, 3.0]})
    workspace.deliver("log_2026-01-05.parquet", table)
    workspace.land(telemetry(workspace, timezone="Europe/Zurich"), "2026-01-05", "2026-01-06")
    assert workspace.query("select strftime(sampled_at, '%H:%M'), util_percent from {gpu_samples} order by 1") == [
        *(("09:00", 1.0), ("09:01", 2.0), ("09:02", 3.0)),
    ]


def test_energy_is_what_the_counter_measured(workspace):
    """Power times time, as the pipeline multiplies them, against the counter's own differences."""
    start = datetime(2026, 1, 5, tzinfo=UTC)
    counters = [1000, 31000, 91000, 91000, 500, 60500]  # mJ: 30 J, 60 J, none, then it began anew, 60 J
    lines = ["timestamp,node,gpu,power_watts,energy_counter_mj"]
    lines += [f"{start + timedelta(seconds=30 * n)},n,0,10,{c}" for n, c in enumerate(counters)]
    workspace.deliver("log_2026-01-05.csv", "\n".join(lines))
    workspace.land(telemetry(workspace), "2026-01-05", "2026-01-06")
    joules = workspace.query("select power_watts * interval_ms / 1000 from {gpu_samples} order by sampled_at")
    # Where the counter does not help (it began anew, there is no next) the power that was read does.
    assert [j for (j,) in joules] == [30, 60, 0, 300, 60, 300]


def test_an_hour_that_comes_twice_is_told_apart_by_the_order(workspace):
    """Half-hourly samples through the night in which Zurich's clocks go back."""
    instants = [datetime(2025, 10, 25, 23, tzinfo=UTC) + timedelta(minutes=20 * n) for n in range(12)]
    lines = ["timestamp,node,gpu,util_percent"]
    for at in instants:
        lines += [f"{at.astimezone(ZURICH):%Y-%m-%d %H:%M:%S},n,{gpu},50" for gpu in (0, 1)]
    workspace.deliver("log_1.csv", "\n".join([*lines, ""]))
    source = telemetry(workspace, timezone="Europe/Zurich")
    workspace.land(source, "2025-10-25", "2025-10-27")
    assert [
        at for (at,) in workspace.query("select sampled_at from {gpu_samples} where gpu_index = 1 order by 1")
    ] == instants
    [what] = found(workspace, source)
    assert what.doubts == ("12 local times came twice that day and were told apart by their order in the file",)


def test_broken_text_is_kept_aside_and_a_missing_zone_doubted(workspace):
    workspace.deliver(
        "log_2026-01-05.csv",
        "timestamp;Hostname;gpu;DCGM_FI_DEV_GPU_UTIL\n2026-01-05 10:00:00;n1;0;12\n2026-01-05 10:01:00;n1;0\n"
        "soon;n1;0;1\n2026-01-05 10:02:00;;0;1\n2026-01-05 10:02:00;n1;-1;1\n2026-01-05 10:02:00;n1;0;lots\n",
    )
    source = telemetry(workspace, max_bad_share=1.0)
    report = workspace.land(source, "2026-01-05", "2026-01-06")
    assert (report.rows, report.quarantined) == (1, 5)
    assert workspace.quarantined() == [
        (3, "has 3 fields instead of 4"),
        (4, "timestamp is missing or not a time"),
        (5, "node is missing"),
        (6, "gpu is not the number of a GPU"),
        (7, "util_percent is not a number: lots"),
    ]
    [what] = found(workspace, source)
    assert what.doubts == (
        "1 times name no zone and are taken as UTC (see 'timezone')",
        "one sample per GPU does not tell how much time it stands for (see 'interval_seconds')",
    )


# ── nvidia-smi ───────────────────────────────────────────────────────────────────────────────────────
SMI_HEADER = "timestamp, index, uuid, name, utilization.gpu [%], power.draw [W], memory.used [MiB], mig.mode.current"
SMI = """2026/01/05 10:15:00.123, 0, GPU-aa, NVIDIA H100, 35 %, 70.12 W, 1234 MiB, Disabled
2026/01/05 10:15:00.456, 1, GPU-bb, NVIDIA H100, 0 %, 350.00 W, 80 MiB, Enabled
2026/01/05 10:16:00.123, 0, GPU-aa, NVIDIA H100, [Not Supported], [N/A], 1 MiB, Disabled
2026/01/05 10:16:00.456, 1, GPU-bb, NVIDIA H100, [N/A], [Unknown Error], [N/A], Enabled
"""
SMI_ROWS = [
    ("09:15:00.123", "n7", 0, 35.0, 70.12, 1234.0),
    ("09:15:00.456", "n7", 1, None, 350.0, 80.0),
    ("09:16:00.123", "n7", 0, None, None, 1.0),
    ("09:16:00.456", "n7", 1, None, None, None),
]
SMI_SETTINGS = {"timezone": "Europe/Zurich", "node_from_path": "/smi_([a-z0-9]+)_"}


def smi_rows(workspace) -> list[tuple]:
    return workspace.query(
        "select strftime(sampled_at, '%H:%M:%S.%g'), node_name, gpu_index, util_percent, power_watts, memory_used_mib"
        " from {gpu_samples} order by 1"
    )


@pytest.mark.parametrize(
    ("text", "more", "variant"),
    [
        (f"{SMI_HEADER}\n{SMI}", {}, "nvidia-smi query log, 8 columns"),
        (
            SMI,
            {"header": "timestamp,index,uuid,name,utilization.gpu,power.draw,memory.used,mig.mode.current"},
            "nvidia-smi query log without header, 8 columns",
        ),
        (
            f"{SMI_HEADER}\n{SMI}".replace(" %,", ",").replace(" W,", ",").replace(" MiB,", ","),
            {},
            "nvidia-smi query log, 8 columns",
        ),
    ],
)
def test_nvidia_smi_logs_with_and_without_header_and_units(workspace, text, more, variant):
    workspace.deliver("smi_n7_2026-01-05.csv", text)
    source = telemetry(workspace, **SMI_SETTINGS, **more)
    report = workspace.land(source, "2026-01-05", "2026-01-06")
    assert (report.rows, report.quarantined) == (4, 0)
    assert smi_rows(workspace) == SMI_ROWS
    assert workspace.query("select distinct interval_ms from {gpu_samples}") == [(60000,)]
    assert [what.variant for what in found(workspace, source)] == [variant]


def test_a_log_that_goes_on_after_a_restart_and_one_with_an_error_in_it(workspace):
    lines = SMI.splitlines()
    error = "Unable to determine the device handle for GPU0000:3B:00.0: Unknown Error"
    text = "\n".join([SMI_HEADER, *lines[:2], error, SMI_HEADER, *lines[2:]])
    workspace.deliver("smi_n7_2026-01-05.csv.gz", text)
    report = workspace.land(telemetry(workspace, **SMI_SETTINGS), "2026-01-05", "2026-01-06")
    assert (report.rows, report.tables["gpu_samples"].read) == (4, 5)
    assert smi_rows(workspace) == SMI_ROWS
    assert workspace.quarantined() == [(4, "has 1 fields instead of 8")]
    workspace.deliver("smi_n7_2026-01-05.csv.gz", f"{text}\ntimestamp, index, power.draw [W]\n")
    with pytest.raises(ApportionError, match="line 8: another header than in line 1"):
        workspace.land(telemetry(workspace, **SMI_SETTINGS), "2026-01-05", "2026-01-06")


def test_dmon_logs_beside_parquet_and_text_in_one_source(workspace):
    head = "#Date     Time      gpu  pwr  gtemp  sm  mem    fb\n#YYYYMMDD HH:MM:SS  Idx    W      C   %    %    MB\n"
    body = " 20260105 10:15:00    0   70     30  35    1  1234\n 20260105 10:15:00    1    -     30   -    1    80\n"
    workspace.deliver("smi_n7_2026-01-05.log", head + body + head + body.replace("10:15", "10:16"))
    workspace.deliver("dcgm_n8_2026-01-05.parquet", samples("2026-01-05", ["ignored"]))
    workspace.deliver("csv_n9_2026-01-05.txt", "timestamp|gpu|util_percent\n2026-01-05T00:00:00Z|0|5\n")
    source = telemetry(workspace, timezone="Europe/Zurich", node_from_path="_(n[0-9])_", interval_seconds=60)
    report = workspace.land(source, "2026-01-05", "2026-01-06")
    assert (report.rows, report.quarantined) == (11, 0)
    assert workspace.query(
        "select node_name, count(*), sum(power_watts) filter (power_watts < 1e15) from {gpu_samples}"
        " group by 1 order by 1"
    ) == [
        *(("n7", 4, 140.0), ("n8", 6, None), ("n9", 1, None)),
    ]
    assert workspace.query(
        "select strftime(sampled_at, '%H:%M'), util_percent from {gpu_samples}"
        " where node_name = 'n7' and gpu_index = 0 order by 1"
    ) == [
        *(("09:15", 35.0), ("09:16", 35.0)),
    ]


@pytest.mark.parametrize(
    ("text", "more", "message"),
    [
        (f"{SMI_HEADER}\n{SMI}", {"timezone": None}, "prints local times without a zone"),
        (f"{SMI_HEADER}\n{SMI}", {"node_from_path": None}, "does not say of which node"),
        (f"{SMI_HEADER}\n{SMI}", {"node_from_path": "/host_([a-z]+)"}, "finds no node in this path"),
        ("timestamp, utilization.gpu [%]\n", {}, "missing column index"),
        ("# gpu    pwr\n", {}, "no GPU samples with their date and time"),
        ("#Date Time gpu pid type sm\n", {}, "no GPU samples with their date and time"),
        ("timestamp,node,gpu\n", {"columns": {"util_percent": "busy"}}, "missing column busy"),
        ("time,node,gpu\n", {}, "missing column timestamp"),
    ],
)
def test_a_file_that_cannot_be_understood_is_refused_with_a_way_out(workspace, text, more, message):
    workspace.deliver("smi_n7_2026-01-05.csv", text)
    with pytest.raises(ApportionError, match=message):
        workspace.land(telemetry(workspace, **SMI_SETTINGS | more), "2026-01-05", "2026-01-06")


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"node_from_path": "n7"}, "needs exactly one group in brackets"),
        ({"node_from_path": "("}, "not a regular expression"),
        ({"columns": {"watt": "x"}}, "columns.watt"),
        ({"interval_seconds": 0}, "greater than 0"),
    ],
)
def test_settings_that_cannot_work_are_refused(workspace, more, message):
    with pytest.raises(ApportionError) as error:
        telemetry(workspace, **more)
    assert message in error.value.message
