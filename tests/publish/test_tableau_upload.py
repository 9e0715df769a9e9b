"""An upload to Tableau arrives whole, once, whatever happens on the way; and says plainly what it cannot do."""

from __future__ import annotations

import json
import logging
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestration.errors import ApportionError
from orchestration.publish.tableau.settings import TableauSettings
from orchestration.publish.tableau.upload import Upload, upload
from orchestration.workspace import Workspace
from tests.publish import tableau_server as far
from tests.publish.tableau_server import Fault, Tableau, running

PART = 2 * far.MEGABYTE
PARTS = 4
SIZE = 7 * far.MEGABYTE + 123


@pytest.fixture
def tableau() -> Iterator[Tableau]:
    with running() as server:
        yield server


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    """Four parts of noise in place of a data source: what is inside is not the upload's business."""
    workspace = Workspace(tmp_path / "sources.yml", tmp_path / "seeds", tmp_path / "data")
    folder = workspace.published / "tableau"
    folder.mkdir(parents=True)
    (folder / "apportion_costs.tdsx").write_bytes(random.Random(7).randbytes(SIZE))
    return workspace


def settings(tableau: Tableau, **other: str) -> TableauSettings:
    environment = {
        "SERVER": tableau.address,
        "SITE": far.SITE,
        "TOKEN_NAME": far.TOKEN_NAME,
        "TOKEN": far.TOKEN,
        "PROJECT": "Cloud costs",
    }
    return TableauSettings.from_environment(
        {f"APPORTION_TABLEAU_{name}": value for name, value in (environment | other).items()}
    )


def send(workspace: Workspace, tableau: Tableau, **other: str) -> Upload:
    (done,) = upload(workspace, settings(tableau, **other), part_bytes=PART, pause=lambda seconds: None)
    return done


def content(workspace: Workspace) -> bytes:
    return (workspace.published / "tableau" / "apportion_costs.tdsx").read_bytes()


def arrived(tableau: Tableau) -> bytes:
    (datasource,) = tableau.published.values()
    return datasource["content"]


# --- what arrives --------------------------------------------------------------------------------------------


def test_a_file_arrives_in_parts_under_its_name_in_its_project(workspace: Workspace, tableau: Tableau) -> None:
    done = send(workspace, tableau)
    assert done == Upload("Apportion costs", "d-1", "Cloud costs", SIZE)
    assert tableau.published == {
        "d-1": {"name": "Apportion costs", "project": "p-2", "kind": "tdsx", "content": content(workspace)}
    }
    assert tableau.count("append") == PARTS
    assert tableau.signed_in == set()


def test_nothing_is_sent_twice_unless_it_changed_or_is_gone(workspace: Workspace, tableau: Tableau) -> None:
    send(workspace, tableau)
    again = send(workspace, tableau)
    assert (again.datasource_id, again.bytes_sent) == ("d-1", 0)
    assert (tableau.received, tableau.count("publish"), tableau.count("begin")) == (SIZE, 1, 1)

    assert send(workspace, tableau, PROJECT="Default").bytes_sent == SIZE  # another place is another matter
    assert {source["project"] for source in tableau.published.values()} == {"p-1", "p-2"}
    tableau.published.clear()
    assert send(workspace, tableau).bytes_sent == SIZE
    assert arrived(tableau) == content(workspace)

    (workspace.published / "tableau" / "apportion_costs.tdsx").write_bytes(b"newer")
    assert send(workspace, tableau).bytes_sent == len(b"newer")
    assert arrived(tableau) == b"newer"  # in place of the older one


def test_with_tables_each_extract_becomes_a_data_source_too(workspace: Workspace, tableau: Tableau) -> None:
    (workspace.published / "tableau" / "rpt_fairness.hyper").write_bytes(b"rows")
    done = upload(workspace, settings(tableau), tables=True)
    assert [each.name for each in done] == ["Apportion costs", "rpt_fairness"]
    assert [(source["name"], source["kind"]) for source in tableau.published.values()] == [
        ("Apportion costs", "tdsx"),
        ("rpt_fairness", "hyper"),
    ]


# --- what goes wrong on the way ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fault", "begun"),
    [
        *((Fault(far.FAIL_BEFORE, request), 1) for request in ("server info", "sign in", "projects", "publish")),
        (Fault(far.FAIL_BEFORE, "begin"), 2),
        (Fault(far.FAIL_BEFORE, "append", first=1, times=3), 1),
        (Fault(far.BREAK_BEFORE, "append", first=2), 1),
        # The part arrived, and nobody said so: sent again it is there twice, which its size gives away.
        (Fault(far.BREAK_AFTER, "append", first=2), 2),
        (Fault(far.FAIL_AFTER, "append"), 2),
        # The last part is too small to show in the size: it is not sent twice into the same session.
        (Fault(far.BREAK_BEFORE, "append", first=PARTS - 1), 2),
        (Fault(far.BREAK_AFTER, "append", first=PARTS - 1), 2),
        (Fault(far.SIGNED_OUT, "append", first=3), 1),
        (Fault(far.SIGNED_OUT, "publish"), 1),
        (Fault(far.FORGOTTEN, "append", first=3), 2),
        (Fault(far.FORGOTTEN, "publish"), 2),
    ],
    ids=lambda value: f"{value.kind}, {value.request} {value.first + 1}" if isinstance(value, Fault) else None,
)
def test_the_file_arrives_whole_although(fault: Fault, begun: int, workspace: Workspace, tableau: Tableau) -> None:
    tableau.faults = [fault]
    done = send(workspace, tableau)
    assert fault.met > fault.first
    assert tableau.count("begin") == begun
    assert arrived(tableau) == content(workspace)
    assert send(workspace, tableau).datasource_id == done.datasource_id


def test_an_upload_goes_on_where_the_last_attempt_stopped(workspace: Workspace, tableau: Tableau) -> None:
    tableau.faults = [Fault(far.FAIL_BEFORE, "append", first=2, times=99)]
    with pytest.raises(ApportionError, match="failed with status 500, 6 times") as stopped:
        send(workspace, tableau)
    assert "the upload goes on from there" in str(stopped.value)
    assert tableau.published == {}

    tableau.faults.clear()
    done = send(workspace, tableau)
    assert (done.resumed_at, done.bytes_sent) == (2 * PART, SIZE - 2 * PART)
    assert (tableau.count("begin"), tableau.received) == (1, SIZE)
    assert arrived(tableau) == content(workspace)


class Killed(BaseException):
    pass


def test_a_kill_between_the_servers_work_and_its_answer_spoils_nothing(workspace: Workspace, tableau: Tableau) -> None:
    def killed(seconds: float) -> None:
        raise Killed

    tableau.faults = [Fault(far.BREAK_AFTER, "append", first=1)]
    with pytest.raises(Killed):
        upload(workspace, settings(tableau), part_bytes=PART, pause=killed)
    (session,) = json.loads((workspace.published / "tableau" / ".uploads.json").read_text())["sessions"].values()
    assert session == {"id": "upload-1", "offset": PART, "in_flight": True}
    assert len(tableau.uploads["upload-1"]) == 2 * PART

    send(workspace, tableau)
    assert tableau.count("begin") == 2
    assert arrived(tableau) == content(workspace)


@pytest.mark.parametrize("forgotten", ["the server", "we", "both, and the file is another"])
def test_an_interrupted_upload_begins_anew_when_somebody_forgot_it(
    forgotten: str, workspace: Workspace, tableau: Tableau
) -> None:
    tableau.faults = [Fault(far.FAIL_BEFORE, "publish", times=99)]
    with pytest.raises(ApportionError, match="status 500"):
        send(workspace, tableau)
    tableau.faults.clear()
    folder = workspace.published / "tableau"
    if forgotten != "we":
        tableau.uploads.clear()
    if forgotten != "the server":
        (folder / ".uploads.json").write_text("{ half a fi")
    if forgotten.startswith("both"):
        (folder / "apportion_costs.tdsx").write_bytes(b"another")
    send(workspace, tableau)
    assert arrived(tableau) == content(workspace)
    assert json.loads((folder / ".uploads.json").read_text())["sessions"] == {}


def test_a_server_that_loses_every_upload_is_not_asked_for_ever(workspace: Workspace, tableau: Tableau) -> None:
    tableau.faults = [Fault(far.FORGOTTEN, "append", times=99)]
    with pytest.raises(ApportionError, match=r"lost the upload of apportion_costs\.tdsx 3 times"):
        send(workspace, tableau)
    assert tableau.count("begin") == 3


# --- what is said --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ({"TOKEN": "wrong-secret"}, ["refuses the token 'publisher'", "APPORTION_TABLEAU_TOKEN and", "401001"]),
        ({"SITE": "marketing"}, ["APPORTION_TABLEAU_SITE ('marketing'"]),
        ({"PROJECT": "Cloudy"}, ["no project 'Cloudy'", "one of: Cloud costs, Default"]),
        ({"PROJECT": "A: b, c"}, ["no project 'A: b, c'"]),
    ],
)
def test_what_the_environment_got_wrong_is_named(
    other: dict[str, str], said: list[str], workspace: Workspace, tableau: Tableau
) -> None:
    with pytest.raises(ApportionError) as refused:
        send(workspace, tableau, **other)
    for words in said:
        assert words in str(refused.value)
    assert other.get("TOKEN", far.TOKEN) not in str(refused.value)
    assert tableau.received == 0


def test_projects_of_the_same_name_are_told_apart_by_id(workspace: Workspace, tableau: Tableau) -> None:
    tableau.projects.append(("p-3", "Cloud costs"))
    with pytest.raises(ApportionError, match="2 projects named 'Cloud costs'") as refused:
        send(workspace, tableau)
    assert "p-2, p-3" in str(refused.value)
    assert send(workspace, tableau, PROJECT="p-3").project == "Cloud costs"
    assert [source["project"] for source in tableau.published.values()] == ["p-3"]


def test_who_may_not_publish_is_told_which_right_is_missing(workspace: Workspace, tableau: Tableau) -> None:
    tableau.faults = [Fault(far.FORBIDDEN, "publish")]
    with pytest.raises(ApportionError, match=r"'publisher' may not do this \(403004") as refused:
        send(workspace, tableau)
    assert "right to publish and to overwrite in the project 'Cloud costs'" in str(refused.value)


def test_what_is_no_tableau_or_too_old_a_one_never_sees_the_token(workspace: Workspace, tableau: Tableau) -> None:
    tableau.version = "3.5"
    with pytest.raises(ApportionError, match=r"version 3\.5 of the REST API"):
        send(workspace, tableau)
    tableau.page = "<html><body>Welcome"
    with pytest.raises(ApportionError, match="does not answer as a Tableau Server"):
        send(workspace, tableau)
    tableau.elsewhere = "http://127.0.0.1:9"
    with pytest.raises(ApportionError, match="sends its callers to another address"):
        send(workspace, tableau)
    assert "sign in" not in tableau.requests
    with pytest.raises(ApportionError, match="cannot be reached"):
        send(workspace, tableau, SERVER="http://127.0.0.1:9")


def test_the_token_is_in_no_log_and_in_no_text(
    workspace: Workspace, tableau: Tableau, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    tableau.faults = [Fault(far.BREAK_BEFORE, "append"), Fault(far.SIGNED_OUT, "publish")]
    send(workspace, tableau)
    with pytest.raises(ApportionError) as refused:
        send(workspace, tableau, TOKEN_NAME="somebody")  # the far side repeats the token in its refusal
    told = [caplog.text, *capfd.readouterr(), str(refused.value), repr(settings(tableau)), str(settings(tableau))]
    told += [file.read_text(errors="replace") for file in (workspace.published / "tableau").glob(".*")]
    assert "signing in with …" in str(refused.value)
    assert [text for text in told if far.TOKEN in text] == []
    assert "Uploading a chunk" in caplog.text  # something was logged


def test_every_missing_variable_is_named_at_once() -> None:
    with pytest.raises(ApportionError) as refused:
        TableauSettings.from_environment({"APPORTION_TABLEAU_TOKEN_NAME": "x", "APPORTION_TABLEAU_TOKEN": " "})
    for name in ("SERVER", "TOKEN", "PROJECT"):
        assert f"APPORTION_TABLEAU_{name}:" in str(refused.value)
    assert "TOKEN_NAME" not in str(refused.value)


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("http://tableau.example.com", "unencrypted"),
        ("tableau.example.com", "not an address"),
        ("https://me:hunter2@tableau.example.com", "holds a name or a password"),
    ],
)
def test_a_token_is_not_sent_in_clear_or_to_nowhere(address: str, said: str, tableau: Tableau) -> None:
    with pytest.raises(ApportionError, match=said) as refused:
        settings(tableau, SERVER=address)
    assert "hunter2" not in str(refused.value)


def test_without_extracts_it_says_how_to_write_them(tableau: Tableau, tmp_path: Path) -> None:
    empty = Workspace(tmp_path, tmp_path, tmp_path)
    with pytest.raises(ApportionError, match="publish --tableau"):
        upload(empty, settings(tableau))
    assert tableau.requests == []
