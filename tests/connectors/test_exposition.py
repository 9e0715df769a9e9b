"""Prometheus samples: every form gives the same samples, and what is broken is told apart from what is not."""

from __future__ import annotations

import math
import random
import shutil
import subprocess
from pathlib import Path

import duckdb
import pytest

from orchestration.connectors.exposition import Exposed, load_samples
from orchestration.errors import ApportionError
from orchestration.landing.deliveries import delivery
from tests.connectors.prometheus_files import DIALECTS, Sample, dump, open_metrics, query_range, text, untimed_text

NASTY = (
    'a"b',
    "back\\slash",
    "new\nline",
    "{x}",
    "} 5",
    ' # {y="z"} 1',
    "ü€😀",
    "a,b=c",
    "",
    "\\n",
    "tab\there",
    "a\a\x01\u200b",
    "\\x41\\t",
    "x" * 300,
)
VALUES = (0.0, -1.5, 1e-9, 12345678901234.0, 1.7976931348623157e308, math.nan, math.inf, -math.inf, 0.1)


def load(path: Path, metrics: dict[str, str]) -> tuple[Exposed, list[tuple]]:
    with duckdb.connect() as con:
        con.execute("set TimeZone = 'UTC'")
        exposed = load_samples(con, "t", {0: delivery(path, path.parent)}, metrics)
        rows = con.execute(
            "select metric, labels, value, epoch_ms(taken_at) from t_samples join t_series using (series) order by line"
        ).fetchall()
    return exposed, rows


def as_set(samples: list[tuple]) -> list[tuple]:
    return sorted((name, tuple(sorted(labels)), repr(value), ms) for name, labels, value, ms in samples)


def random_samples(rng: random.Random) -> list[Sample]:
    made = {}
    for _ in range(rng.randrange(1, 120)):
        keys = rng.sample(["pod", "namespace", "le", "quantile_", "l1"], rng.randrange(4))
        labels = tuple((key, rng.choice(NASTY)) for key in keys)
        name, ms = rng.choice(["up", "kube_pod_info", "a:b_total"]), 1767578400000 + rng.randrange(5) * 15_250
        made[name, labels, ms] = Sample(name, labels, rng.choice(VALUES), ms)
    return list(made.values())


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_form_gives_the_same_samples(tmp_path, dialect):
    rng = random.Random(f"forms {dialect}")
    for turn in range(12):
        samples = random_samples(rng)
        path = tmp_path / f"x{turn}.bin"
        path.write_bytes(DIALECTS[dialect](samples).encode())
        exposed, rows = load(path, {"up": "UP", "kube_pod_info": "info"})
        wanted = [s for s in samples if s.name != "a:b_total"]
        expected = [({"up": "UP"}.get(s.name, "info"), s.labels, s.value, s.ms) for s in wanted]
        assert as_set([(n, list(labels.items()), v, ms) for n, labels, v, ms in rows]) == as_set(expected)
        (file,) = exposed.files
        assert (file.count, file.unasked, exposed.rejects) == (len(samples), len(samples) - len(wanted), [])


def test_broken_lines_are_told_apart(tmp_path):
    good = 'up{a="b"} 1 1767578400000'
    bad = {
        'up{a="b} 1 1767578400000': "label that cannot be read",
        'up{a="b"': "not a sample",
        'up{a="b"}': "not a sample",
        "up": "not a sample",
        'up{a="b"} one': "value is not a number: one",
        'up{a="b"} 1 yesterday': "timestamp is not a time",
        'up{a="b"} 1 -5': "timestamp is not a time",
        'up{a="b"} 1 99999999999999999': "timestamp is not a time",
        'up{a="b"} 1 2 3': "not a sample",
        'up{a="b" c="d"} 1': "label that cannot be read",
        'up{a="b",a="c"} 1': "label is there twice: a",
        'up{9="b"} 1': "label that cannot be read",
        "<html>": "not a sample",
        '{x__name__="up",__name__="other"} 1': "the name of the series is not clear",
        'other{a="b': "not a sample",
    }
    path = tmp_path / "m.prom"
    path.write_text("\n".join(line for broken in bad for line in (good, broken)))
    exposed, rows = load(path, {"up": "up"})
    assert len(rows) == len(bad)
    assert exposed.files[0].count == 2 * len(bad)
    rejects = sorted(exposed.rejects, key=lambda reject: reject.line)
    assert [reject.line for reject in rejects] == [2 * n for n in range(1, len(bad) + 1)]
    for reject, (raw, reason) in zip(rejects, bad.items(), strict=True):
        assert reason in reject.reason, raw


def test_broken_json_loses_only_what_is_broken(tmp_path):
    samples = [Sample("up", (("n", str(n)),), n, 1767578400000 + ms) for n in range(5) for ms in (0, 15000)]
    whole = query_range(samples)
    cuts = [whole.index('{"metric"', 1 + whole.index(f'"n": "{n}"')) for n in range(4)]
    path = tmp_path / "m.json"
    path.write_text(whole[: cuts[1] + 30] + "\n" + whole[cuts[2] :])  # the third series is cut off after its beginning
    exposed, rows = load(path, {"up": "up"})
    assert [labels["n"] for _, labels, *_ in rows[::2]] == ["0", "1", "3", "4"]
    assert [(r.line, r.reason) for r in exposed.rejects] == [(3, "broken or cut off")]
    path.write_text(whole[: cuts[3] + 60])
    exposed, rows = load(path, {"up": "up"})
    assert (len(rows), [r.reason for r in exposed.rejects]) == (8, ["broken or cut off"])
    path.write_text('{"metric":{"__name__":"up"},"values":[1]}\n{"metric":{"__name__":"up"},"value":[1767578400,"7"]}')
    exposed, rows = load(path, {"up": "up"})
    assert ([row[2] for row in rows], [r.line for r in exposed.rejects]) == ([7.0], [1])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"status":"error","errorType":"bad_data","error":"1:5: parse \\"x\\""}', 'error: 1:5: parse "x"'),
        ('{"status":"success","data":["up","down"]}', None),
        ('{"data": 1}', "JSON without any series"),
        ("", "the file is empty"),
        ("# HELP up x\n", "holds no sample"),
        ("a,b,c\n" * 1500, "line 1: no sample, nor is any of the 1499 lines after it"),
        ("<html><body>502</body></html>", "line 1: neither Prometheus text"),
    ],
)
def test_files_that_hold_no_samples(tmp_path, content, message):
    path = tmp_path / "m"
    path.write_text(content)
    if message is None:
        assert load(path, {"up": "up"})[1] == []
        return
    with pytest.raises(ApportionError, match=message):
        load(path, {"up": "up"})


def test_samples_without_a_time_are_of_the_delivery(tmp_path):
    samples = [Sample("up", (("a", "b"),), 1.0, 0)]
    named = tmp_path / "up_20260105T101500Z.prom"
    named.write_text(untimed_text(samples))
    exposed, rows = load(named, {"up": "up"})
    assert rows[0][3] == 1767608100000
    assert exposed.files[0].doubts == []
    aged = tmp_path / "up.prom"
    aged.write_text(untimed_text(samples))
    exposed, rows = load(aged, {"up": "up"})
    assert rows[0][3] == int(aged.stat().st_mtime) * 1000
    assert "modification time" in exposed.files[0].doubts[0]


def test_what_was_found_is_said(tmp_path):
    path = tmp_path / "m"
    samples = [Sample("up", (("a", "b"),), 1.0, 1767578400000)]
    for content, variant, doubt in (
        (text(samples), "Prometheus text", None),
        (open_metrics(samples), "OpenMetrics", None),
        (open_metrics(samples).replace("# EOF\n", ""), "OpenMetrics", "EOF"),
        (dump(samples), "promtool dump", None),
        (query_range(samples), "Prometheus API JSON", None),
        (
            query_range(samples).replace('{"status"', '{"isPartial": true, "status"'),
            "Prometheus API JSON",
            "incomplete",
        ),
    ):
        path.write_text(content)
        (file,) = load(path, {"up": "up"})[0].files
        assert file.variant == variant
        assert [doubt in said for said in file.doubts] == ([True] if doubt else [])


@pytest.mark.skipif(not shutil.which("promtool"), reason="promtool is not installed")
def test_round_trip_through_a_real_database(tmp_path):
    rng = random.Random(42)
    made = {}
    for _ in range(400):
        labels = tuple((key, rng.choice(NASTY)) for key in ("pod", "node") if rng.random() < 0.7)
        labels = tuple(pair for pair in labels if pair[1])  # an empty label is the same as none
        s = Sample("up", labels, rng.choice(VALUES), 1767578400000 + rng.randrange(400) * 15_000)
        made[s.labels, s.ms] = s
    samples = sorted(made.values(), key=lambda s: (s.labels, s.ms))
    lines = open_metrics(samples).replace("# UNIT x seconds\n", "").replace("# TYPE x counter", "# TYPE up gauge")
    (tmp_path / "in.om").write_text("\n".join(line.split(" # {trace_id")[0] for line in lines.split("\n")))
    database = tmp_path / "db"
    subprocess.run(
        ["promtool", "tsdb", "create-blocks-from", "openmetrics", tmp_path / "in.om", database], check=True, timeout=60
    )
    (database / "wal").mkdir()  # without it, dump takes the folder for no database
    out = subprocess.run(["promtool", "tsdb", "dump", database], check=True, capture_output=True, timeout=60).stdout
    (tmp_path / "dump.txt").write_bytes(out)
    exposed, rows = load(tmp_path / "dump.txt", {"up": "up"})
    assert exposed.rejects == []
    assert as_set([(n, list(labels.items()), v, ms) for n, labels, v, ms in rows]) == as_set(
        [(s.name, s.labels, s.value, s.ms) for s in samples]
    )
