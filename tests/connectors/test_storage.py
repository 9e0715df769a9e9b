"""Who stores how much: tables, JSON, listings of objects and reports of file systems, with every byte accounted for."""

from __future__ import annotations

import csv
import io
import json
import random
from collections import Counter

import pyarrow as pa
import pytest

from orchestration.connectors import feeds
from orchestration.errors import ApportionError
from orchestration.landing.deliveries import discover
from orchestration.landing.engine import session

GIB = 2**30


def storage(workspace, **more):
    settings = {"area": "storage", "kind": "storage_usage", "path": "{data}/inbox/usage_*", "max_bad_share": 1.0}
    return workspace.source(**settings | more)


def landed(workspace) -> list[tuple]:
    return workspace.query("select filesystem, path, owner, account, stored_bytes from {storage_usage} order by line")


def found(workspace, source):
    [feed] = feeds(source)
    with session(workspace.data) as con:
        deliveries = discover(feed.pattern, source="src", optional=False)
        return feed.read(con, deliveries).found


def test_storage_readings_are_valid_for_their_day(workspace):
    workspace.deliver(
        "usage_2026-01-05.csv",
        'filesystem,path,owner,group,bytes,date\nscratch,"/a, b",ann,nlp,123,2026-01-05\n'
        "scratch,/c,ann,nlp,n/a,2026-01-05\nscratch,/d,,,-1,2026-01-05\nscratch,/e,,,1.5,2026-01-05\n"
        "scratch,,,,1,2026-01-05\nscratch,/f,,,1,\nscratch,/g,,,99999999999999999999,2026-01-05\n",
    )
    report = workspace.land(storage(workspace), "2026-01-04", "2026-01-07")
    assert (report.rows, report.quarantined) == (1, 6)
    assert workspace.query(
        "select date::varchar, path, owner, account, stored_bytes,"
        " valid_to_at - valid_from_at = interval 1 day from {storage_usage}"
    ) == [("2026-01-05", "/a, b", "ann", "nlp", 123, True)]
    assert workspace.quarantined()[3:] == [
        (6, "path is missing"),
        (7, "date is missing"),
        (8, "bytes is not a whole number: 99999999999999999999"),
    ]


def test_a_time_stands_for_its_utc_day(workspace):
    times = ("2026-01-05", "2026-01-04T23:30:00-05:00", "2026-01-06 00:30:00+01", "2026-01-05T12:00:00Z", "2026/01/05")
    lines = "".join(f"scratch,/p{n},{at},1\n" for n, at in enumerate(times))
    workspace.deliver("usage_all.csv", f"filesystem,path,date,bytes\n{lines}")
    workspace.land(storage(workspace), "2026-01-01", "2026-01-10")
    days = workspace.query("select date::varchar, count(*) from {storage_usage} group by all")
    assert days == [("2026-01-05", len(times))]


ROWS = [("scratch", f"/p{n}", f"u{n % 3}", "g", n * 1024 * 1000003) for n in range(50)]
NAMES = ("filesystem", "path", "owner", "group", "bytes", "date")


def delimited(delimiter: str, names=NAMES, divisor: int = 1) -> str:
    out = io.StringIO()
    writer = csv.writer(out, delimiter=delimiter)
    writer.writerow(names)
    writer.writerows((*row[:4], row[4] // divisor, "2026-01-05") for row in ROWS)
    return out.getvalue()


def objects(names=NAMES) -> list[dict]:
    return [dict(zip(names, (*row, "2026-01-05T23:00:00Z"), strict=True)) for row in ROWS]


FORMS = {
    "comma": delimited(","),
    "semicolon": delimited(";"),
    "tab, other names": delimited("\t", ("volume", "directory", "user_name", "project", "used_bytes", "day")),
    "KiB": delimited("|", ("fs", "path", "user", "account", "blocks_kib", "date"), 1024),
    "array": json.dumps(objects(), indent=2),
    "lines.gz": "\n".join(map(json.dumps, objects(("bucket_name", "prefix", "owner", "group", "size_bytes", "date")))),
    "one after the other": "".join(map(json.dumps, objects())),
    "parquet": pa.Table.from_pylist(objects()),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_says_the_same(workspace, form):
    workspace.deliver(f"usage_2026-01-05_{form}", FORMS[form])
    report = workspace.land(storage(workspace), "2026-01-05", "2026-01-06")
    assert (report.rows, report.quarantined) == (50, 0)
    assert sorted(landed(workspace)) == sorted(ROWS)
    [what] = found(workspace, storage(workspace))
    assert (what.unknown_columns, what.doubts) == ((), ())


def test_named_columns_with_a_factor_and_volumes_of_pods(workspace):
    source = storage(workspace, filesystem="ceph", columns={"bytes": {"column": "Size (GB)", "factor": 1e9}})
    workspace.deliver("usage_2026-01-05.csv", "namespace,pvc,Size (GB)\nml,data-0,1.5\nweb,data-0,0.25\n")
    workspace.land(source, "2026-01-05", "2026-01-06")
    assert landed(workspace) == [
        ("ceph", "ml/data-0", None, "ml", 1_500_000_000),
        ("ceph", "web/data-0", None, "web", 250_000_000),
    ]


def test_objects_are_summed_by_folder_and_no_byte_is_lost(workspace):
    """An S3 inventory: no header, quoted, keys encoded, a bucket named as its column; against a plain sum."""
    dice = random.Random(5)
    expected, lines, markers = Counter(), [], 0
    for _ in range(5000):
        team = dice.choice(["nlp", "vision art", ""])
        key = "/".join(filter(None, [team, dice.choice(["", "raw"]), f"o{dice.randint(0, 10**9)}"]))
        if dice.random() < 0.01:
            lines.append(f'"bucket","{key}","","2026-01-01T00:00:00.000Z"')
            markers += 1
            continue
        size = dice.randint(0, 5 * GIB)
        folder = key.rsplit("/", 1)[0].split("/")[0] if "/" in key else ""
        expected["bucket/" + folder if folder else "bucket"] += size
        lines.append(f'"bucket","{key.replace(" ", "%20")}","{size}","2026-01-01T00:00:00.000Z"')
    source = storage(workspace, header="Bucket, Key, Size, LastModifiedDate", owner_from_path="^bucket/(\\w+)")
    workspace.deliver("usage_2026-01-05_part1.csv.gz", "\n".join(lines[:2000]))
    workspace.deliver("usage_2026-01-05_part2.csv.gz", "\n".join(lines[2000:]))
    report = workspace.land(source, "2026-01-05", "2026-01-06")
    totals = workspace.query("select path, sum(stored_bytes)::bigint from {storage_usage} group by 1")
    assert dict(totals) == dict(expected)
    table = report.tables["storage_usage"]
    assert (table.read, table.landed, table.skipped) == (5000, 2 * len(expected), 5000 - 2 * len(expected))
    assert workspace.query("select distinct path, owner from {storage_usage} order by 1") == [
        *(("bucket", None), ("bucket/nlp", "nlp"), ("bucket/raw", "raw"), ("bucket/vision art", "vision")),
    ]
    assert markers
    [what, _] = found(workspace, source)
    assert what.variant == "listing of objects, gzipped CSV"


GPFS = """*** Report for USR GRP FILESET quotas on project
mmrepquota::HEADER:version:reserved:reserved:filesystemName:quotaType:id:name:blockUsage:blockQuota:fid:filesetname:
mmrepquota::0:1:::project:USR:1001:ann:1000:0:2:home:
mmrepquota::0:1:::project:USR:1002:bob%3A2:24:0:2:home:
mmrepquota::0:1:::project:GRP:200:nlp:1024:0:2:home:
mmrepquota::0:1:::project:FILESET:2:home:1024:0:::
*** Report for FILESET quotas on scratch
mmrepquota::HEADER:version:reserved:reserved:filesystemName:quotaType:id:name:blockUsage:blockQuota:fid:filesetname:
mmrepquota::0:1:::scratch:FILESET:7:data:77:0:::
mmrepquota::0:1:::scratch:FILESET:8:more:lots:0:::
mmrepquota::0:1
"""


def test_gpfs_quotas_count_every_byte_once(workspace):
    workspace.deliver("usage_2026-01-05.txt", GPFS)
    report = workspace.land(storage(workspace), "2026-01-05", "2026-01-06")
    assert (report.rows, report.skipped, report.quarantined) == (3, 2, 2)
    assert landed(workspace) == [
        ("project", "home", "ann", None, 1000 * 1024),
        ("project", "home", "bob:2", None, 24 * 1024),
        ("scratch", "data", None, None, 77 * 1024),
    ]
    workspace.land(storage(workspace, quotas_of="group"), "2026-01-05", "2026-01-06")
    assert landed(workspace) == [
        ("project", "home", None, "nlp", 1024 * 1024),
        ("scratch", "data", None, None, 77 * 1024),  # has no other kind
    ]


LUSTRE = """Disk quotas for usr ann (uid 1001):
     Filesystem  kbytes   quota   limit   grace   files   quota   limit   grace
       /scratch    2048*      0    1000       -      12       0       0       -
Disk quotas for usr bob (uid 1002):
     Filesystem  kbytes   quota   limit   grace   files   quota   limit   grace
/a/very/long/mount/point
                   [4]       0       0       -       1       0       0       -
Disk quotas for grp nlp (gid 200):
     Filesystem  kbytes   quota   limit   grace   files   quota   limit   grace
       /scratch    2048       0       0       -      12       0       0       -
"""


def test_lustre_quotas(workspace):
    workspace.deliver("usage_2026-01-05.txt", LUSTRE)
    report = workspace.land(storage(workspace), "2026-01-05", "2026-01-06")
    assert (report.rows, report.quarantined) == (2, 0)
    assert landed(workspace) == [
        ("scratch", None, "ann", None, 2048 * 1024),
        ("a/very/long/mount/point", None, "bob", None, 4 * 1024),
    ]


def test_robinhood_reports_plain_and_rounded(workspace):
    text = "user , type,  count,  spc_used,  avg_size\n"
    text += "foo  ,  dir,  75450, 320970137,   4250\nfoo  , file, 116396,  11.14 TB, 100.34 MB\n"
    text += "bar, file, 1\n\nTotal: 191846 entries, 12248033808384 bytes used (11.14 TB)\n"
    workspace.deliver("usage_2026-01-05.csv", text)
    source = storage(workspace, filesystem="scratch")
    report = workspace.land(source, "2026-01-05", "2026-01-06")
    assert (report.rows, report.skipped, report.quarantined) == (2, 1, 1)
    assert landed(workspace) == [
        ("scratch", None, "foo", None, 320970137),
        ("scratch", None, "foo", None, round(11.14 * 2**40)),
    ]
    [what] = found(workspace, source)
    assert what.doubts == ("1 sizes are rounded for people; let the tool print plain numbers",)


def test_folders_of_du_have_what_is_their_own_and_add_up_to_the_whole(workspace):
    """A random tree, listed as du lists it: every folder with all that is in it."""
    dice = random.Random(11)
    own = {"/s": 5}
    for _ in range(60):
        own[f"{dice.choice(list(own))}/d{dice.randint(0, 99)}"] = dice.randint(0, 10**12)
    total = {path: sum(size for p, size in own.items() if p == path or p.startswith(path + "/")) for path in own}
    lines = [f"{total[path]}\t{path}" for path in sorted(own, reverse=True)]
    workspace.deliver("usage_2026-01.txt", "\n".join([*lines, f"1\t{lines[0].partition(chr(9))[2]}"]))
    source = storage(workspace, filesystem="s", owner_from_path="^/s/([^/]+)")
    report = workspace.land(source, "2026-01-30", "2026-02-02")
    assert workspace.quarantined() == [(len(own) + 1, "the path is there twice")]
    # A month in the name: the reading stands for all its days.
    assert [str(day) for day in report.days_written] == ["2026-01-30", "2026-01-31"]
    rows = workspace.query("select path, stored_bytes from {storage_usage} where date = '2026-01-30'")
    assert dict(rows) == own
    [what] = found(workspace, source)
    assert what.doubts == ("sizes are taken as bytes, as du -b prints them; without it du prints KiB (see 'unit')",)


def test_a_folder_smaller_than_what_is_in_it_is_kept_aside(workspace):
    workspace.deliver("usage_2026-01-05.txt", "4\t/\n10\t/a\n3\t/a/b\n")
    workspace.land(storage(workspace, filesystem="s", unit="KiB"), "2026-01-05", "2026-01-06")
    assert landed(workspace) == [("s", "/a", None, None, 7 * 1024), ("s", "/a/b", None, None, 3 * 1024)]
    assert workspace.quarantined() == [(1, "smaller than the folders in it")]


def test_broken_objects_are_kept_aside_with_their_text(workspace):
    workspace.deliver(
        "usage_x.json",
        '[{"bucket": "b", "path": "p", "bytes": 1},\n {"bucket": "b", "path": "q", "bytes": "many"},\n {"bucket": "b',
        mtime="2026-01-06T05:00:00",
    )
    source = storage(workspace)
    report = workspace.land(source, "2026-01-05", "2026-01-08")
    assert (report.rows, report.quarantined) == (1, 2)
    assert workspace.quarantined() == [
        (2, "bytes is not a whole number: many"),
        (3, "not a JSON object: truncated or broken"),
    ]
    assert workspace.days("storage_usage") == ["2026-01-06"]
    [what] = found(workspace, source)
    assert what.doubts == ("neither the file nor its name has a date: it stands for the day of its delivery",)


@pytest.mark.parametrize(
    ("text", "more", "message"),
    [
        ("path,bytes\n", {}, "missing column filesystem"),
        ("filesystem,path,size_kb\n", {}, "missing column bytes"),
        ("filesystem,path,bytes\n", {"columns": {"owner": "who"}}, "missing column who"),
        ("12\t/a\n", {}, "does not say of which file system"),
        (GPFS.replace("fid:filesetname:", "fid:", 1), {}, "2 different HEADER lines"),
        ("[]", {}, "the file has no record"),
    ],
)
def test_a_file_that_cannot_be_understood_is_refused(workspace, text, more, message):
    workspace.deliver("usage_2026-01-05.csv", text)
    with pytest.raises(ApportionError, match=message):
        workspace.land(storage(workspace, **more), "2026-01-05", "2026-01-06")
