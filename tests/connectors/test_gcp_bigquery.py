"""A billing export in BigQuery: changed months become files, once, and nothing of the credentials is ever said."""

from __future__ import annotations

import json
import os
import re
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from orchestration.connectors.billing import bigquery
from orchestration.errors import ApportionError
from tests.connectors.test_gcp import line, sums

TABLE = "billing-project.export.gcp_billing_export_resource_v1"
PAGE = 2


class FakeBigQuery:
    """The few REST calls that the client makes: insert a query job, ask for it, page through its rows."""

    def __init__(self) -> None:
        self.rows: list[dict] = []
        self.jobs: dict[str, tuple[dict, list[list[str]]]] = {}
        self.queries: list[str] = []
        self.loses_rows = self.fails = False
        fake = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                self._answer(*fake.insert(body))

            def do_GET(self) -> None:
                self._answer(200, fake.get(self.path))

            def _answer(self, status: int, body: dict) -> None:
                raw = json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(raw)))
                self.end_headers()
                self.wfile.write(raw)

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}"

    def insert(self, body: dict) -> tuple[int, dict]:
        if self.fails:
            return 403, {
                "error": {"code": 403, "message": "Access Denied: Table", "errors": [{"reason": "accessDenied"}]}
            }
        query = body["configuration"]["query"]
        self.queries.append(query["query"])
        assert f"`{TABLE}`" in query["query"]
        if "group by 1" in query["query"]:
            found, names = self._months(), ("month", "row_count:INTEGER", "exported_at")
        else:
            values = query["queryParameters"][0]["parameterValue"]["arrayValues"]
            found = self._records({value["value"] for value in values})
            names = ("month", "exported_at", "record")
        if self.loses_rows and "record" in names:
            found = found[1:]
        schema = {
            "fields": [
                {"name": name.split(":")[0], "type": [*name.split(":"), "STRING"][1], "mode": "NULLABLE"}
                for name in names
            ]
        }
        job = body["jobReference"]["jobId"]
        self.jobs[job] = (schema, found)
        return 200, self._job(job, body["configuration"])

    def get(self, path: str) -> dict:
        job = re.search(r"/(?:queries|jobs)/([^/?]+)", path)[1]
        if "/jobs/" in path:
            return self._job(job, {"query": {"query": ""}, "jobType": "QUERY"})
        schema, found = self.jobs[job]
        at = int((re.search(r"pageToken=(\d+)", path) or [0, 0])[1])
        page = [] if "maxResults=0" in path else found[at : at + PAGE]
        answer = {
            "jobReference": {"projectId": "billing-project", "jobId": job},
            "jobComplete": True,
            "schema": schema,
            "totalRows": str(len(found)),
        }
        if page:
            answer["rows"] = [{"f": [{"v": value} for value in row]} for row in page]
        return answer | ({"pageToken": str(at + PAGE)} if page and at + PAGE < len(found) else {})

    def _job(self, job: str, configuration: dict) -> dict:
        answers = {"projectId": "billing-project", "datasetId": "_anonymous", "tableId": job}
        return {
            "jobReference": {"projectId": "billing-project", "jobId": job, "location": "EU"},
            "configuration": {"jobType": "QUERY", "query": configuration["query"] | {"destinationTable": answers}},
            "status": {"state": "DONE"},
            "statistics": {"query": {"statementType": "SELECT"}},
        }

    def _months(self) -> list[list]:
        months = sorted({row["invoice"]["month"] for row in self.rows})
        of = {month: [row["export_time"] for row in self.rows if row["invoice"]["month"] == month] for month in months}
        return [[month, str(len(times)), max(times)] for month, times in of.items()]

    def _records(self, months: set[str]) -> list[list]:
        chosen = [row for row in self.rows if row["invoice"]["month"] in months]
        return [[row["invoice"]["month"], row["export_time"], json.dumps(row)] for row in chosen]


@pytest.fixture
def fake() -> Iterator[FakeBigQuery]:
    pytest.importorskip("google.cloud.bigquery", reason="google-cloud-bigquery is not installed")
    made = FakeBigQuery()
    yield made
    made.server.shutdown()


@pytest.fixture
def clock(monkeypatch):
    """Each look at the clock is a minute later, so that no two pulls have one name."""

    class Clock(datetime):
        current = datetime(2026, 2, 1, tzinfo=UTC)

        @classmethod
        def now(cls, tz=None):
            cls.current += timedelta(minutes=1)
            return cls.current

    monkeypatch.setattr(bigquery, "datetime", Clock)
    return Clock


def billed(month: str, cost: float, day: str = "05", exported: str = "2026-01-06 00:00:00+00") -> dict:
    start = f"{month[:4]}-{month[4:]}-{day} 03:00:00 UTC"
    return line(
        cost=cost,
        invoice={"month": month},
        usage_start_time=start,
        usage_end_time=start.replace("03:", "04:"),
        export_time=exported,
        credits=[{"name": "promo", "type": "PROMOTION", "amount": -cost / 2}],
    )


def table(workspace, fake: FakeBigQuery, **more):
    settings = {"area": "billing", "kind": "gcp_export", "table": TABLE, "api_endpoint": fake.endpoint}
    return workspace.source(**{**settings, "pull_every_minutes": 0, **more})


def files(workspace) -> list[str]:
    return sorted(path.name for path in (workspace.data / "pulled" / "src").glob("*.gz"))


def test_months_are_pulled_page_by_page_and_again_only_when_they_changed(workspace, fake, clock):
    fake.rows = [billed("202601", n + 1) for n in range(7)] + [billed("202602", 100)]
    source = table(workspace, fake)
    report = workspace.land(source, "2026-01-01", "2026-03-01")
    assert sums(workspace) == (Decimal(128), Decimal(-64))
    assert report.variants == {"Google Cloud standard export, gzipped JSON": 2}
    first = files(workspace)
    assert [name[:7] for name in first] == ["2026-01", "2026-02"]

    asked = len(fake.queries)
    assert workspace.touched(source)[0] == [f"2026-01-{d:02}" for d in range(1, 32)] + [
        f"2026-02-{d:02}" for d in range(1, 29)
    ]
    assert (len(fake.queries) - asked, files(workspace)) == (1, first)

    _, cursor = workspace.touched(source)
    fake.rows.append(billed("202602", 1, exported="2026-02-06 00:00:00+00"))
    days, _ = workspace.touched(source, cursor)
    assert {day[:7] for day in days} == {"2026-02"}
    report = workspace.land(source, "2026-01-01", "2026-03-01")
    assert sums(workspace) == (Decimal(129), Decimal("-64.5"))
    assert (len(files(workspace)), report.tables["charges"].superseded) == (3, 1)


def test_a_month_is_pulled_once_more_when_it_becomes_final(workspace, fake, clock):
    fake.rows = [billed("202601", 1)]
    source = table(workspace, fake)
    final = "select bool_and(is_final) from {charges}"
    workspace.land(source, "2026-01-01", "2026-02-01")
    assert workspace.query(final) == [(False,)]
    for _ in range(2):
        clock.current = datetime(2026, 2, 7, tzinfo=UTC)
        workspace.land(source, "2026-01-01", "2026-02-01")
        assert workspace.query(final) == [(True,)]
        assert len(files(workspace)) == 2


def test_the_table_is_asked_no_more_often_than_set_and_not_for_old_months(workspace, fake):
    fake.rows = [billed("202512", 1), billed("202601", 1)]
    source = table(workspace, fake, pull_every_minutes=60, first_month="2026-01")
    for _ in range(3):
        workspace.land(source, "2026-01-01", "2026-02-01")
    assert len(fake.queries) == 2
    assert [name[:7] for name in files(workspace)] == ["2026-01"]


def test_what_expired_stays_and_what_shrank_is_refused(workspace, fake, clock):
    fake.rows = [billed("202601", 1), billed("202601", 2)]
    source = table(workspace, fake)
    workspace.land(source, "2026-01-01", "2026-02-01")
    fake.rows.pop(0)
    workspace.land(source, "2026-01-01", "2026-02-01")
    assert sums(workspace)[0] == 3
    fake.rows[0]["export_time"] = "2026-03-01 00:00:00+00"
    with pytest.raises(ApportionError, match="has 1 rows, fewer than the 2 that were pulled before"):
        workspace.land(source, "2026-01-01", "2026-02-01")
    fake.rows = []
    workspace.land(source, "2026-01-01", "2026-02-01")
    assert sums(workspace)[0] == 3


def test_replaced_files_go_after_a_day_and_months_that_only_a_file_has_stay(workspace, fake, clock):
    fake.rows = [billed("202512", 1), billed("202601", 2)]
    source = table(workspace, fake)
    workspace.land(source, "2025-12-01", "2026-02-01")
    old = files(workspace)
    (workspace.data / "pulled" / "src" / "pulled.json").unlink()
    fake.rows.pop(0)
    for name in old:
        os.utime(workspace.data / "pulled" / "src" / name, (0, 0))
    workspace.land(source, "2025-12-01", "2026-02-01")
    assert sums(workspace)[0] == 3
    assert [name[:7] for name in files(workspace)] == ["2025-12", "2026-01"]
    assert old[0] in files(workspace)
    with pytest.raises(ApportionError, match="holds what was pulled from"):
        workspace.land(table(workspace, fake, table="a.b.c"), "2025-12-01", "2026-02-01")


def test_a_pull_that_lost_rows_on_the_way_leaves_no_file(workspace, fake):
    fake.rows, fake.loses_rows = [billed("202601", 1), billed("202601", 2), billed("202602", 2)], True
    with pytest.raises(ApportionError, match="gave 1 of 2 rows of 202601"):
        workspace.land(table(workspace, fake), "2026-01-01", "2026-02-01")
    assert list((workspace.data / "pulled" / "src").iterdir()) == []


def test_no_access_is_said_in_our_words_and_without_credentials(workspace, fake, monkeypatch, tmp_path):
    fake.fails = True
    with pytest.raises(ApportionError, match=f"{TABLE} cannot be read from BigQuery: .*Access Denied"):
        workspace.land(table(workspace, fake), "2026-01-01", "2026-02-01")
    secret = tmp_path / "key.json"
    secret.write_text('{"type": "service_account", "private_key": "hush"}')
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(secret))
    with pytest.raises(ApportionError, match="no access to BigQuery") as refused:
        workspace.land(table(workspace, fake, api_endpoint=None), "2026-01-01", "2026-02-01")
    assert "hush" not in str(refused.value) + refused.value.message
    assert refused.value.__cause__ is None


def test_a_row_without_an_invoice_month_is_named(workspace, fake):
    fake.rows = [billed("202601", 1) | {"invoice": {"month": ""}}]
    with pytest.raises(ApportionError, match=r"1 rows of .* have the invoice month ''"):
        workspace.land(table(workspace, fake), "2026-01-01", "2026-02-01")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"table": TABLE, "path": "x"}, "give either the files"),
        ({}, "give either the files"),
        ({"table": "two.parts"}, "field 'table'"),
        ({"table": "a.b.c`; drop"}, "field 'table'"),
    ],
)
def test_a_source_is_files_or_a_table(workspace, settings, message):
    with pytest.raises(ApportionError, match=message):
        workspace.source(area="billing", kind="gcp_export", **settings)
