"""Landed days in BigQuery: through Google's client into an emulator, as a run does it."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from email import message_from_bytes
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote
from uuid import uuid4

import pytest
from google.api_core.exceptions import Forbidden, ServiceUnavailable
from google.cloud.bigquery import SchemaField, Table

from orchestration.errors import ApportionError
from orchestration.landing.days import forget_undeclared
from orchestration.landing.schemas import WHOLE_TABLES
from orchestration.warehouse import bigquery, upload
from orchestration.warehouse.bigquery import load_days
from orchestration.warehouse.settings import BigQuerySettings, client
from orchestration.warehouse.tables import CLUSTERED_BY, LANDINGS, LARGE, SCHEMAS, _definition
from orchestration.workspace import Workspace
from tests.bigquery.emulator import Emulator
from tests.bigquery.landed import DAY, SMALL, differing, land_again, land_company, rows_there, small_copy

STORAGE = "inbox/storage/usage_2026-03-10.csv"


@pytest.fixture(scope="module")
def company(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    return land_company(tmp_path_factory.mktemp("company"))


@pytest.fixture
def workspace(company: Workspace, tmp_path: Path) -> Workspace:
    """The test's own copy of what is landed."""
    return small_copy(company, tmp_path / "company")


@pytest.fixture
def settings(emulator: Emulator) -> BigQuerySettings:
    """Datasets of the test's own."""
    return emulator.settings(f"loading_{uuid4().hex[:8]}")


def jobs(settings: BigQuerySettings) -> list[str]:
    """What BigQuery was asked to do in this test: loads, and the first words of statements."""
    found = []
    for job in client(settings).list_jobs(all_users=True):
        if job.job_type == "load":
            found += ["load"] if job.destination.dataset_id in settings.landing else []
        elif settings.landing in job.query:
            found.append(job.query.split()[0])
    return found


def edit(workspace: Workspace, file: str, keep) -> None:
    path = workspace.sources_file.parent / file
    header, *lines = path.read_text().splitlines()
    path.write_text("\n".join([header, *filter(keep, lines)]) + "\n")


# --- days --------------------------------------------------------------------------------------------------


def test_a_landed_day_is_the_same_in_bigquery_row_by_row(company, settings):
    report = load_days(company.data, [DAY], settings)
    assert differing(company, settings, [DAY], [*SCHEMAS]) == []
    assert (report.loaded, report.skipped) == ([DAY], [])
    assert report.rows["gpu_samples"] == 180
    assert {name for name, rows in report.rows.items() if not rows} == {"account_tree"}


def test_tables_have_a_partition_per_day_and_large_ones_ask_for_a_filter(workspace, settings):
    load_days(workspace.data, [], settings)
    for name, schema in SCHEMAS.items():
        table = client(settings).get_table(f"{settings.landing}.{name}")
        assert [field.name for field in table.schema] == schema.names
        assert (table.time_partitioning is None) == (name in WHOLE_TABLES)
        assert table.clustering_fields == CLUSTERED_BY.get(name)
        # The emulator forgets this one.
        assert bool(_definition(settings, name).require_partition_filter) == (name in LARGE)


def test_what_is_there_already_is_not_loaded_again(workspace, settings):
    load_days(workspace.data, [DAY], settings)
    before = jobs(settings)
    report = load_days(workspace.data, [DAY], settings)
    assert (report.loaded, report.skipped, report.rows) == ([], [DAY], {})
    looks = ["select", *("select" for _ in WHOLE_TABLES)]  # at what is landed there, and at each history
    assert sorted(jobs(settings)) == sorted([*before, *looks])
    assert {table.table_id for table in client(settings).list_tables(settings.landing)} == set(SCHEMAS)


def test_a_restated_day_is_replaced_and_what_vanished_vanishes(workspace, settings):
    load_days(workspace.data, [DAY], settings)
    edit(workspace, STORAGE, lambda line: "nlp" not in line)
    land_again(workspace, "scratch_usage")
    report = load_days(workspace.data, [DAY], settings)
    assert set(report.rows) == {"storage_usage", LANDINGS, "deliveries"}
    assert report.rows["storage_usage"] == 2
    assert differing(workspace, settings, [DAY]) == []


def test_a_day_that_became_empty_is_emptied(workspace, settings):
    load_days(workspace.data, [DAY], settings)
    edit(workspace, STORAGE, lambda line: False)
    land_again(workspace, "scratch_usage")
    load_days(workspace.data, [DAY], settings)
    assert rows_there(settings, "storage_usage") == []
    assert differing(workspace, settings, [DAY]) == []


def test_what_an_undeclared_source_left_vanishes(workspace, settings):
    load_days(workspace.data, [DAY], settings)
    forget_undeclared(workspace.data, SMALL[1:])
    load_days(workspace.data, [DAY], settings)
    assert rows_there(settings, "storage_usage") == []
    assert differing(workspace, settings, [DAY]) == []


def test_a_day_on_which_nothing_is_landed_any_more_is_emptied(workspace, settings):
    load_days(workspace.data, [DAY], settings)
    forget_undeclared(workspace.data, [])
    load_days(workspace.data, [DAY], settings)
    assert [rows_there(settings, table) for table in ("storage_usage", "node_inventory", LANDINGS)] == [[], [], []]


# --- killed ------------------------------------------------------------------------------------------------


class Killed(BaseException):
    """Nothing catches it, as nothing catches a kill."""


@contextmanager
def killed_at(table: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    merge = bigquery._merge

    def until(load, name, *arguments):
        if name == table:
            raise Killed
        return merge(load, name, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(bigquery, "_merge", until)
        try:
            yield
        except Killed:
            return
    pytest.fail("it was not killed")


@pytest.mark.parametrize("table", ["storage_usage", "node_inventory", LANDINGS])
def test_a_load_that_was_killed_is_simply_done_again(workspace, settings, monkeypatch, table):
    with killed_at(table, monkeypatch):
        load_days(workspace.data, [DAY], settings)
    assert rows_there(settings, LANDINGS) == []
    load_days(workspace.data, [DAY], settings)
    assert differing(workspace, settings, [DAY]) == []
    assert not list((workspace.data / "outbox").iterdir())


def test_a_day_that_went_back_to_what_it_was_after_a_kill_goes_back_there_too(workspace, settings, monkeypatch):
    """What was known of the day is forgotten before it changes, or the day would look as if it had never changed."""
    load_days(workspace.data, [DAY], settings)
    original = (workspace.sources_file.parent / STORAGE).read_text()
    edit(workspace, STORAGE, lambda line: "nlp" not in line)
    land_again(workspace, "scratch_usage")
    with killed_at(LANDINGS, monkeypatch):
        load_days(workspace.data, [DAY], settings)
    (workspace.sources_file.parent / STORAGE).write_text(original)
    land_again(workspace, "scratch_usage")
    load_days(workspace.data, [DAY], settings)
    assert differing(workspace, settings, [DAY]) == []


def test_a_table_that_was_dropped_is_made_and_filled_again(workspace, settings):
    load_days(workspace.data, [DAY], settings)
    client(settings).delete_table(f"{settings.landing}.node_inventory")
    load_days(workspace.data, [DAY], settings)
    assert differing(workspace, settings, [DAY]) == []


def test_what_fails_for_the_moment_is_tried_again(settings, tmp_path, monkeypatch):
    monkeypatch.setattr(upload, "FIRST_RETRY_SECONDS", 0.01)
    rates = Forbidden("too many", errors=[{"reason": "rateLimitExceeded"}])
    answers = iter(
        [ServiceUnavailable("at the start"), None, ServiceUnavailable("of the job"), None, rates, None, None]
    )

    class Flaky:
        def load_table_from_file(self, *_: object, **__: object) -> Flaky:
            return self.result()

        def result(self) -> Flaky:
            if error := next(answers):
                raise error
            return self

    (tmp_path / "file").touch()
    with upload.filled(Flaky(), settings, "charges", tmp_path / "file", "p.d.t") as wait:
        wait()
    assert list(answers) == []


# --- by way of a bucket ------------------------------------------------------------------------------------


@contextmanager
def serving(handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


class Answering(BaseHTTPRequestHandler):
    def body(self) -> bytes:
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def answer(self, status: int, body: dict) -> None:
        raw = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    def log_message(self, *_: object) -> None:
        pass


def storage(root: Path, uploaded: list[str]) -> type[Answering]:
    """The two calls of Cloud Storage that a load makes, with the folder that the emulator takes for buckets."""

    class Storage(Answering):
        def do_POST(self) -> None:
            kind = f"Content-Type: {self.headers['Content-Type']}\n\n"
            parts = message_from_bytes(kind.encode() + self.body())
            about, content = (part.get_payload(decode=True) for part in parts.get_payload())
            name = json.loads(about)["name"]
            bucket = self.path.split("/b/")[1].split("/")[0]
            file = root / bucket / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
            uploaded.append(f"gs://{bucket}/{name}")
            self.answer(200, {"name": name, "bucket": bucket})

        def do_DELETE(self) -> None:
            bucket, _, name = self.path.split("/b/")[1].split("?")[0].partition("/o/")
            (root / bucket / unquote(name)).unlink()
            self.answer(200, {})

    return Storage


def test_days_can_go_by_way_of_a_bucket_which_is_left_empty(workspace, emulator, monkeypatch):
    settings = emulator.settings("by_bucket", bucket="gs://parcels/apportion")
    uploaded: list[str] = []
    with serving(storage(emulator.buckets, uploaded)) as address:
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", address)
        load_days(workspace.data, [DAY], settings)
    assert len(uploaded) == 4
    assert all(name.startswith("gs://parcels/apportion/") for name in uploaded)
    assert differing(workspace, settings, [DAY]) == []
    assert not [path for path in emulator.buckets.rglob("*") if path.is_file()]


# --- refused -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda fields: [f for f in fields if f.name != "provider"], "column 'provider' .* is missing, .* be STRING"),
        (lambda fields: [*fields, SchemaField("mine", "STRING")], "column 'mine' .* is STRING, .* be absent"),
        (
            lambda fields: [SchemaField(f.name, "FLOAT64") if f.name == "billed_cost" else f for f in fields],
            "column 'billed_cost' .* is FLOAT64, and should be NUMERIC",
        ),
    ],
)
def test_a_table_of_other_columns_is_refused_by_name(workspace, settings, change, message):
    load_days(workspace.data, [], settings)
    name = f"{settings.landing}.charges"
    found = client(settings).get_table(name).schema
    client(settings).delete_table(name)
    client(settings).create_table(Table(name, schema=change(found)))
    with pytest.raises(ApportionError, match=message) as refused:
        load_days(workspace.data, [DAY], settings)
    assert "drop it, and push" in refused.value.remedy


def test_a_dataset_elsewhere_is_refused(workspace, emulator):
    load_days(workspace.data, [], emulator.settings("elsewhere", location="EU"))
    with pytest.raises(ApportionError, match="elsewhere_landing is in EU, and APPORTION_BIGQUERY_LOCATION is US"):
        load_days(workspace.data, [DAY], emulator.settings("elsewhere"))


def test_files_that_are_not_as_their_landing_says_are_refused(workspace, settings):
    file = workspace.data / "landing" / "storage_usage" / f"date={DAY}" / "scratch_usage.parquet"
    file.write_bytes(b"PAR1")
    with pytest.raises(ApportionError, match=f"landed files of storage_usage from date={DAY} .* cannot be read"):
        load_days(workspace.data, [DAY], settings)
    file.unlink()
    with pytest.raises(ApportionError, match=f"storage_usage of {DAY} hold 0 rows, and their landing says 3"):
        load_days(workspace.data, [DAY], settings)
    assert rows_there(settings, LANDINGS) == []


def refusing(status: int, reason: str, message: str) -> type[Answering]:
    class Refusing(Answering):
        def do_GET(self) -> None:
            self.body()
            self.answer(status, {"error": {"code": status, "message": message, "errors": [error]}})

        do_POST = do_PUT = do_GET

    error = {"reason": reason, "message": message}
    return Refusing


@pytest.mark.parametrize(
    ("status", "reason", "message", "remedy"),
    [
        (403, "accessDenied", "Access Denied: Dataset p:apportion_landing", "BigQuery Data Editor"),
        (403, "billingNotEnabled", "Billing has not been enabled for this project", "enable billing"),
        (403, "quotaExceeded", "Quota exceeded: Your table exceeded quota for loads", "quota or wait"),
        (400, "invalid", "Provided Schema does not match Table", "drop it and push"),
    ],
)
def test_what_the_service_refuses_is_said_with_a_remedy(workspace, status, reason, message, remedy):
    with serving(refusing(status, reason, message)) as endpoint, pytest.raises(ApportionError) as refused:
        load_days(workspace.data, [DAY], BigQuerySettings("p", endpoint=endpoint))
    assert refused.value.message == f"p.apportion_landing: the landing tables cannot be made: {message}"
    assert remedy in refused.value.remedy


def test_an_error_of_a_table_names_the_table_and_the_day_and_no_address(workspace, settings, monkeypatch):
    def refuse(*_: object, **__: object) -> None:
        raise Forbidden("PUT http://host/upload?upload_id=hush: Access Denied", errors=[])

    load_days(workspace.data, [], settings)
    monkeypatch.setattr("google.cloud.bigquery.Client.load_table_from_file", refuse)
    with pytest.raises(ApportionError) as refused:
        load_days(workspace.data, [DAY], settings)
    assert refused.value.message.endswith(f": storage_usage of {DAY} cannot be loaded: Access Denied")
    assert refused.value.__suppress_context__


# --- settings ----------------------------------------------------------------------------------------------


def test_settings_come_from_the_environment():
    given = {
        "PROJECT": "my-project",
        "DATASET": "costs",
        "LOCATION": "EU",
        "KEYFILE": "~/key.json",
        "IMPERSONATE": "loader@my-project.iam.gserviceaccount.com",
        "MAX_BYTES": "1000000",
        "ENDPOINT": "http://127.0.0.1:9050",
        "BUCKET": "gs://parcels/apportion/",
    }
    found = BigQuerySettings.from_environment({f"APPORTION_BIGQUERY_{name}": value for name, value in given.items()})
    assert (found.landing, found.location) == ("my-project.costs_landing", "EU")
    assert (found.max_bytes, found.bucket) == (1_000_000, "gs://parcels/apportion")
    assert found.keyfile == Path(os.path.expanduser("~/key.json"))
    assert client(found)._default_query_job_config.maximum_bytes_billed == 1_000_000
    assert BigQuerySettings.from_environment({"APPORTION_BIGQUERY_PROJECT": "p"}) == BigQuerySettings("p")


@pytest.mark.parametrize(
    ("name", "value"),
    [("PROJECT", ""), ("PROJECT", "a`b"), ("DATASET", "a.b"), ("MAX_BYTES", "1e9"), ("BUCKET", "s3://x")],
)
def test_a_setting_that_cannot_be_is_refused_by_name(name, value):
    given = {"APPORTION_BIGQUERY_PROJECT": "p", f"APPORTION_BIGQUERY_{name}": value}
    with pytest.raises(ApportionError, match=f"APPORTION_BIGQUERY_{name}"):
        BigQuerySettings.from_environment(given)


def test_nothing_of_a_key_is_ever_said(tmp_path, monkeypatch):
    key = tmp_path / "key.json"
    key.write_text('{"type": "service_account", "private_key": "hush", "client_email": "a@b", "token_uri": "x"}')
    with pytest.raises(ApportionError, match=r"APPORTION_BIGQUERY_KEYFILE: .*key\.json is not the key") as refused:
        client(BigQuerySettings("p", keyfile=key))
    assert "hush" not in str(refused.value)
    assert refused.value.__suppress_context__
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(key))
    with pytest.raises(ApportionError, match="no access to BigQuery") as refused:
        client(BigQuerySettings("p"))
    assert "hush" not in str(refused.value)
    assert "APPORTION_BIGQUERY_KEYFILE" in refused.value.remedy
