"""Licences: seats and tokens in tables, FlexNet's logs, and snapshots of lmstat."""

from __future__ import annotations

import random
from collections import defaultdict
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest

from orchestration.connectors import feeds
from orchestration.errors import ApportionError
from orchestration.landing.deliveries import discover
from orchestration.landing.engine import session
from orchestration.landing.stage import register_deliveries

ZURICH = ZoneInfo("Europe/Zurich")


def licenses(workspace, **more):
    settings = {"area": "license", "kind": "seats", "path": "{data}/inbox/seats_*", "max_bad_share": 1.0}
    return workspace.source(**settings | more)


def found(workspace, source):
    [feed] = feeds(source)
    with session(workspace.data) as con:
        deliveries = discover(feed.pattern, source="src", optional=False)
        register_deliveries(con, deliveries, range(len(deliveries)), feed)
        return feed.read(con, deliveries).found


def seat_seconds(workspace) -> dict[tuple[str, str], int]:
    """As the driver counts them: seats times time, each record once."""
    return {
        (product, user): int(total)
        for product, user, total in workspace.query(
            "select product, user_name, sum(seats * (epoch(coalesce(checked_in_at, as_of_at)) - epoch(checked_out_at)))"
            " from (select distinct on (product, user_name, host_name, checked_out_at) * from {license_usage})"
            " group by 1, 2"
        )
    }


def test_an_open_seat_ends_when_its_file_was_delivered_until_it_comes_back(workspace):
    header = "product,user,account,host,seats,checked_out,checked_in\n"
    out = "cad,ann,nlp,ws1,2,2026-01-30T08:00:00Z,"
    other = "cad,ann,nlp,ws2,1,2026-01-30T08:00:00Z,2026-01-30T09:00:00Z\ncad,bob,nlp,ws2,two,2026-01-30T08:00:00Z,\n"
    workspace.deliver("seats_2026-01.csv", f"{header}{out}\n{other}", mtime="2026-02-01T00:10:00")
    source = licenses(workspace)
    workspace.land(source, "2026-01-01", "2026-02-04")
    assert workspace.query(
        "select date::varchar, sum(seats)::int, count(as_of_at) from {license_usage} group by 1 order by 1"
    ) == [
        *(("2026-01-30", 3, 1), ("2026-01-31", 2, 1), ("2026-02-01", 2, 1)),
    ]
    workspace.deliver("seats_2026-02.csv", f"{header}{out}2026-02-03T00:00:00Z\n", mtime="2026-03-01T00:10:00")
    workspace.land(source, "2026-01-01", "2026-02-04")
    assert workspace.query("select date::varchar, seats from {license_usage} where host_name = 'ws1' order by 1") == [
        *(("2026-01-30", 2), ("2026-01-31", 2), ("2026-02-01", 2), ("2026-02-02", 2)),
    ]
    assert workspace.query("select count(as_of_at) from {license_usage}") == [(0,)]


# ── tokens ───────────────────────────────────────────────────────────────────────────────────────────
def test_tokens_count_as_seat_hours_whatever_time_they_took(workspace):
    """Random uses of both kinds; the seat-hours of each user and day are the tokens, those of a span by its time."""
    dice = random.Random(2)
    start = datetime(2026, 1, 5, tzinfo=UTC)
    at, span = ["product;user;account;tokens;at"], ["product,user,host,tokens,from,to"]
    expected = defaultdict(float)
    for _ in range(300):
        user, tokens = dice.choice("abc"), dice.randint(0, 100_000)
        when = start + timedelta(seconds=dice.randint(0, 86399) // 600 * 600)
        at.append(f"llm;{user};nlp;{tokens};{when:%Y-%m-%dT%H:%M:%SZ}")
        expected[user, 5] += tokens
    for _ in range(100):
        user, tokens = dice.choice("abc"), dice.randint(1, 10_000)
        since = start + timedelta(seconds=dice.randint(0, 86399))
        until = since + timedelta(seconds=dice.randint(1, 100_000))
        span.append(f"llm,{user},h,{tokens}.5,{since:%Y-%m-%dT%H:%M:%SZ},{until:%Y-%m-%dT%H:%M:%SZ}")
        for n in range(3):
            low, high = start + timedelta(days=n), start + timedelta(days=n + 1)
            inside = max(timedelta(), min(until, high) - max(since, low))
            expected[user, 5 + n] += (tokens + 0.5) * (inside / (until - since))
    workspace.deliver("seats_at.csv", "\n".join(at))
    workspace.deliver("seats_span.csv.gz", "\n".join(span))
    source = licenses(workspace)
    report = workspace.land(source, "2026-01-05", "2026-01-09")
    assert report.quarantined == 0
    assert report.tables["license_usage"].superseded == 0
    assert not workspace.query("select 1 from {license_usage} where checked_in_at::date > date + 1")
    days = workspace.query(
        "select user_name, day(date), sum(seats * (epoch(checked_in_at) - epoch(checked_out_at))) / 3600"
        " from {license_usage} group by 1, 2"
    )
    assert {(user, int(day)): pytest.approx(hours, abs=0.05) for user, day, hours in days} == {
        key: amount for key, amount in expected.items() if amount
    }
    [(total,)] = workspace.query("select sum(seats)::bigint from {license_usage}")
    assert total == round(sum(expected.values()) * 3600)
    assert [what.variant for what in found(workspace, source)] == [
        "licence tokens, text separated by ;",
        "licence tokens, gzipped CSV",
    ]


def test_broken_tokens_are_kept_aside(workspace):
    workspace.deliver(
        "seats_1.csv",
        "product,user,tokens,at\nllm,ann,5,2026-01-05T10:00:00Z\nllm,ann,-5,2026-01-05T10:00:00Z\n"
        "llm,ann,few,2026-01-05T10:00:00Z\nllm,,5,2026-01-05T10:00:00Z\nllm,ann,5,noon\nllm,ann,5,\n",
    )
    report = workspace.land(licenses(workspace), "2026-01-05", "2026-01-06")
    assert (report.rows, report.quarantined) == (1, 5)
    assert workspace.query("select seats from {license_usage}") == [(5 * 3600,)]


# ── FlexNet ──────────────────────────────────────────────────────────────────────────────────────────
FLEX = """10:00:00 (lmgrd) FlexNet Licensing (v11.16.2.0 build 242186 x64_lsb) started on lic1 (linux) (1/5/2026)
10:00:01 (acme) Server started on lic1 for:\tsolver\tmesher
10:15:00 (acme) OUT: "solver" ann@ws1
10:15:00 (acme) OUT: "solver" ann@ws1  [J3_7f]
10:30:00 (acme) OUT: "mesher" bob.b@site@ws2  (3 licenses)
10:45:00 (acme) DENIED: "solver" eve@ws3  (Licensed number of users already reached. (-4,342))
11:00:00 (acme) IN: "solver" ann@ws1
11:30:00 (acme) IN: "mesher" bob.b@site@ws2  (3 licenses) (USER DISCONNECTED)
16:00:00 (lmgrd) TIMESTAMP 1/5/2026
 1:00:00 (acme) IN: "solver" ann@ws1
 2:00:00 (acme) OUT: "solver" John Doe@ws4
 3:00:00 (acme) OUT solver by somebody
 3:00:01 (acme) OUT: solver by somebody
 4:00:00 (acme) Server started on lic1 for:\tsolver\tmesher
 5:00:00 (acme) OUT: "mesher" ann@ws1
 6:00:00 (acme) TIMESTAMP 1/6/2026
"""


def test_a_flexnet_log_is_followed_from_event_to_event(workspace):
    workspace.deliver("seats_flex.log", FLEX, mtime="2026-01-06T12:00:00")
    source = licenses(workspace, timezone="Europe/Zurich")
    report = workspace.land(source, "2026-01-05", "2026-01-08")
    assert workspace.query(
        "select distinct on (line) product, user_name, host_name, seats, strftime(checked_out_at, '%d %H:%M'),"
        " strftime(coalesce(checked_in_at, as_of_at), '%d %H:%M'), checked_in_at is null"
        " from {license_usage} order by line"
    ) == [
        ("solver", "ann", "ws1", 2, "05 09:15", "05 10:00", False),
        ("mesher", "bob.b@site", "ws2", 3, "05 09:30", "05 10:30", False),
        ("solver", "ann", "ws1", 1, "05 10:00", "06 00:00", False),
        ("solver", "John Doe", "ws4", 1, "06 01:00", "06 03:00", False),  # the restart took it back
        ("mesher", "ann", "ws1", 1, "06 04:00", "06 05:00", True),  # out at the end of the log
    ]
    assert workspace.quarantined() == [(13, "a check-out or check-in that cannot be read")]
    assert report.tables["license_usage"].superseded == 1  # the first of two in one second
    [what] = found(workspace, source)
    assert (what.variant, what.doubts) == ("FlexNet debug log, times of Europe/Zurich", ())


def test_random_sessions_through_a_repeated_hour_add_up_in_whole_and_in_rotated_logs(workspace):
    """Sessions of many users over three days in October, against the plain sum of their lengths."""
    dice = random.Random(4)
    begin = datetime(2025, 10, 25, 8, tzinfo=UTC)
    events, expected = [], defaultdict(int)
    for _ in range(400):
        user, feature, count = dice.choice("abcdef"), dice.choice(["x", "y"]), dice.choice([1, 1, 1, 4])
        out = begin + timedelta(seconds=dice.randint(0, 150_000))
        back = out + timedelta(seconds=dice.choice([0, 1, 600, 40_000]))
        what = f'"{feature}" {user}@h{f" ({count} licenses)" if count > 1 else ""}'
        events += [(out, 0, f"OUT: {what}"), (back, 1, f"IN: {what}")]
        expected[feature, user] += count * int((back - out).total_seconds())
    events += [(begin + timedelta(hours=h), -1, None) for h in range(-1, 60, 4)]
    events.sort(key=lambda event: event[:2])
    lines = []
    for at, _, message in events:
        local = at.astimezone(ZURICH)
        lines.append(f"{local.hour}:{local:%M:%S} (v) {message or f'TIMESTAMP {local.month}/{local.day}/{local.year}'}")
    source = licenses(workspace, timezone="Europe/Zurich")
    path = workspace.deliver("seats_whole.log", "\n".join(lines))
    workspace.land(source, "2025-10-25", "2025-10-29")
    assert seat_seconds(workspace) == {key: seconds for key, seconds in expected.items() if seconds}
    path.unlink()
    # Cut at a line with a date, as lmswitch and a nightly rotation do: what is out there is known on both sides.
    cut = next(n for n, line in enumerate(lines) if "TIMESTAMP" in line and n > len(lines) // 2)
    workspace.deliver("seats_1.log", "\n".join(lines[: cut + 1]), mtime="2025-10-26T20:00:00")
    workspace.deliver("seats_2.log", "\n".join(lines[cut:]), mtime="2025-10-28T20:00:00")
    workspace.land(source, "2025-10-25", "2025-10-29")
    assert seat_seconds(workspace) == {key: seconds for key, seconds in expected.items() if seconds}
    assert "had seats out when the log began" in found(workspace, source)[1].doubts[-1]


LMSTAT = """lmutil - Copyright (c) 1989-2023 Flexera. All Rights Reserved.
Flexible License Manager status on Mon 1/5/2026 10:20
License server status: 27000@lic1
Users of solver:  (Total of 5 licenses issued;  Total of 4 licenses in use)
  "solver" v2026.0, vendor: acme, expiry: permanent
    ann ws1 /dev/pts/1 (v2026.0) (lic1/27000 101), start Mon 1/5 10:15
    ann ws1 /dev/pts/2 (v2026.0) (lic1/27000 102), start Mon 1/5 10:15, 2 licenses
    bob ws2 ws2 (v2026.0) (lic1/27000 103), start Wed 12/31 23:50, PID: 12
    eve ws3 (v2026.0) start soon, start Mon
Users of mesher:  (Total of 1 license issued;  Total of 0 licenses in use)
Flexible License Manager status on Mon 1/5/2026 11:20
Users of solver:  (Total of 5 licenses issued;  Total of 1 license in use)
    bob ws2 ws2 (v2026.0) (lic1/27000 103), start Wed 12/31 23:50
"""


def test_snapshots_of_lmstat_follow_seats_while_they_are_seen(workspace):
    workspace.deliver("seats_2026-01-05.txt", LMSTAT, mtime="2026-01-05T12:00:00")
    # Beside a table, so that the files of one form are not the first of all.
    workspace.deliver("seats_0.csv", "product,user,seats,checked_out,checked_in\n", mtime="2026-01-01T12:00:00")
    source = licenses(workspace, timezone="Europe/Zurich")
    report = workspace.land(source, "2025-12-31", "2026-01-07")
    assert workspace.query(
        "select distinct user_name, host_name, seats, strftime(checked_out_at, '%Y-%m-%d %H:%M'),"
        " strftime(as_of_at, '%d %H:%M'), checked_in_at from {license_usage} order by 1"
    ) == [
        ("ann", "ws1", 3, "2026-01-05 09:15", "05 09:20", None),
        ("bob", "ws2", 1, "2025-12-31 22:50", "05 10:20", None),
    ]
    assert workspace.quarantined() == [(9, "a seat that cannot be read")]
    assert report.tables["license_usage"].superseded == 1


@pytest.mark.parametrize(
    ("text", "more", "message"),
    [
        (FLEX, {}, "prints local times without a zone"),
        (LMSTAT, {}, "prints local times without a zone"),
        ('10:15:00 (acme) OUT: "x" a@b\n', {"timezone": "UTC"}, "no TIMESTAMP line"),
        ("product,user,tokens\n", {}, r"missing column at \(or from and to\)"),
        ("product,user\n", {}, "missing column seats"),
    ],
)
def test_a_file_that_cannot_be_understood_is_refused(workspace, text, more, message):
    workspace.deliver("seats_x", text)
    with pytest.raises(ApportionError, match=message):
        workspace.land(licenses(workspace, **more), "2026-01-05", "2026-01-06")


def test_a_log_without_dates_has_its_first_day_in_its_name(workspace):
    workspace.deliver("seats_2026-01-05.log", '23:00:00 (acme) OUT: "x" a@b\n 1:00:00 (acme) IN: "x" a@b\n')
    workspace.land(licenses(workspace, timezone="UTC"), "2026-01-05", "2026-01-07")
    assert seat_seconds(workspace) == {("x", "a"): 7200}
    assert workspace.days("license_usage") == ["2026-01-05", "2026-01-06"]


def test_seats_in_parquet(workspace):
    start = datetime(2026, 1, 5, 8, tzinfo=UTC)
    table = pa.table(
        {
            "product": ["cad"],
            "user": ["ann"],
            "seats": [2],
            "checked_out": [start],
            "checked_in": [start + timedelta(hours=1)],
        }
    )
    workspace.deliver("seats_2026-01-05.parquet", table)
    workspace.land(licenses(workspace), "2026-01-05", "2026-01-06")
    assert seat_seconds(workspace) == {("cad", "ann"): 7200}
