"""A Tableau Server of one's own: the REST calls that publishing uses, on loopback, with faults on demand."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit
from xml.etree import ElementTree as xml

MEGABYTE = 1 << 20
TOKEN_NAME, TOKEN, SITE, SITE_ID = "publisher", "s3cr3t+of/the=token", "finance", "11111111-0000-0000-0000-000000000000"
NAMESPACE = "http://tableau.com/api"

BREAK_BEFORE, BREAK_AFTER = "the line breaks while the request is sent", "the line breaks before the answer"
FAIL_BEFORE, FAIL_AFTER = "a 500 instead of the work", "a 500 after the work"
SIGNED_OUT, FORBIDDEN, FORGOTTEN = "the sign-in has expired", "forbidden", "the upload session is forgotten"


@dataclass
class Fault:
    """What goes wrong with the requests of a kind, from the first to be met (counted from 0) and how many times."""

    kind: str
    request: str
    first: int = 0
    times: int = 1
    met: int = 0

    def strikes(self, request: str) -> bool:
        if request != self.request:
            return False
        self.met += 1
        return self.first < self.met <= self.first + self.times


@dataclass
class Tableau:
    address: str = ""
    version: str = "3.22"
    page: str | None = None
    """What it answers to everything, where it is no Tableau at all."""
    elsewhere: str | None = None
    """Where it sends everybody, where it is only a signpost."""
    projects: list[tuple[str, str]] = field(default_factory=lambda: [("p-1", "Default"), ("p-2", "Cloud costs")])
    uploads: dict[str, bytes] = field(default_factory=dict)
    published: dict[str, dict[str, object]] = field(default_factory=dict)
    """The data sources by id: name, project, kind and content."""
    signed_in: set[str] = field(default_factory=set)
    faults: list[Fault] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    """The kind of each request that reached it."""
    received: int = 0
    """Bytes of files that it took in."""

    def count(self, request: str) -> int:
        return self.requests.count(request)


@contextmanager
def running() -> Iterator[Tableau]:
    tableau = Tableau()
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(tableau))
    server.daemon_threads = True
    tableau.address = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield tableau
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class Refusal(Exception):
    def __init__(self, code: str, summary: str, detail: str) -> None:
        super().__init__(summary)
        self.status, self.code, self.summary, self.detail = int(code[:3]), code, summary, detail


def _handler(tableau: Tableau) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def log_message(self, *_: object) -> None:
            pass

        def do_GET(self) -> None:
            self._serve()

        do_POST = do_PUT = do_GET

        def _serve(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            url = urlsplit(self.path)
            request, work = self._routed(url.path)
            tableau.requests.append(request)
            if tableau.elsewhere:
                self.send_response(302)
                self.send_header("Location", tableau.elsewhere + self.path)
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            kind = next((fault.kind for fault in tableau.faults if fault.strikes(request)), None)
            if kind == BREAK_BEFORE:
                self.rfile.read(length // 2)
                self._hang_up()
                return
            body = self.rfile.read(length)
            if tableau.page is not None:
                self._answer(200, tableau.page.encode(), "text/html")
                return
            try:
                self._refuse(kind)
                is_open = request in ("server info", "sign in")
                if not is_open and self.headers.get("x-tableau-auth") not in tableau.signed_in:
                    raise Refusal("401002", "Unauthorized Access", "Invalid authentication credentials.")
                answer = work(body, parse_qs(url.query))
                if kind == BREAK_AFTER:
                    self._hang_up()
                elif kind == FAIL_AFTER:
                    self._answer(500, b"<html>oops</html>", "text/html")
                else:
                    self._answer(200, _response(answer))
            except Refusal as refusal:
                error = f"<summary>{refusal.summary}</summary><detail>{refusal.detail}</detail>"
                self._answer(refusal.status, _response(f'<error code="{refusal.code}">{error}</error>'))

        def _refuse(self, kind: str | None) -> None:
            if kind == FAIL_BEFORE:
                raise Refusal("500000", "Internal Server Error", "Something is broken.")
            if kind == SIGNED_OUT:
                tableau.signed_in.clear()
            if kind == FORBIDDEN:
                raise Refusal("403004", "Forbidden", "The user cannot publish to this project.")
            if kind == FORGOTTEN:
                tableau.uploads.clear()

        def _routed(self, path: str) -> tuple[str, Callable[[bytes, dict[str, list[str]]], str]]:
            site = rf"/api/[\d.]+/sites/{SITE_ID}"
            routes = {
                ("GET", r"/api/[\d.]+/serverInfo"): ("server info", self._server_info),
                ("POST", r"/api/[\d.]+/auth/signin"): ("sign in", self._sign_in),
                ("POST", r"/api/[\d.]+/auth/signout"): ("sign out", self._sign_out),
                ("GET", rf"{site}/projects"): ("projects", self._projects),
                ("POST", rf"{site}/fileUploads"): ("begin", self._begin),
                ("PUT", rf"{site}/fileUploads/(.+)"): ("append", self._append),
                ("POST", rf"{site}/datasources"): ("publish", self._publish),
                ("GET", rf"{site}/datasources/(.+)"): ("data source", self._datasource),
            }
            for (method, pattern), (name, work) in routes.items():
                match = re.fullmatch(pattern, path)
                if match and method == self.command:
                    return name, partial(work, *match.groups())
            return f"{self.command} {path}", self._unknown

        def _unknown(self, body: bytes, query: dict[str, list[str]]) -> str:
            raise Refusal("404000", "Not Found", "No such resource.")

        def _server_info(self, body: bytes, query: dict[str, list[str]]) -> str:
            return (
                '<serverInfo><productVersion build="20241.1">2024.1.0</productVersion>'
                f"<restApiVersion>{tableau.version}</restApiVersion></serverInfo>"
            )

        def _sign_in(self, body: bytes, query: dict[str, list[str]]) -> str:
            credentials = xml.fromstring(body).find("credentials")
            given = (
                credentials.get("personalAccessTokenName"),
                credentials.get("personalAccessTokenSecret"),
                credentials.find("site").get("contentUrl"),
            )
            if given != (TOKEN_NAME, TOKEN, SITE):
                # As unkind as a server can be: it repeats what it was told.
                raise Refusal("401001", "Signin Error", f"Error signing in with {given[1]}")
            key = f"session-{tableau.count('sign in')}"
            tableau.signed_in.add(key)
            return (
                f'<credentials token="{key}"><site id="{SITE_ID}" contentUrl="{SITE}"/><user id="u-1"/></credentials>'
            )

        def _sign_out(self, body: bytes, query: dict[str, list[str]]) -> str:
            tableau.signed_in.discard(self.headers["x-tableau-auth"])
            return ""

        def _projects(self, body: bytes, query: dict[str, list[str]]) -> str:
            wanted = next(iter(query.get("filter", [])), "").removeprefix("name:eq:")
            found = [(key, name) for key, name in tableau.projects if wanted in ("", name)]
            items = "".join(f'<project id="{key}" name="{name}"/>' for key, name in found)
            pages = f'<pagination pageNumber="1" pageSize="1000" totalAvailable="{len(found)}"/>'
            return f"{pages}<projects>{items}</projects>"

        def _begin(self, body: bytes, query: dict[str, list[str]]) -> str:
            key = f"upload-{tableau.count('begin')}"
            tableau.uploads[key] = b""
            return f'<fileUpload uploadSessionId="{key}"/>'

        def _append(self, key: str, body: bytes, query: dict[str, list[str]]) -> str:
            if key not in tableau.uploads:
                raise Refusal("404000", "Resource Not Found", "Upload session could not be found.")
            part = _parts(self.headers["Content-Type"], body)["tableau_file"]
            tableau.uploads[key] += part
            tableau.received += len(part)
            return f'<fileUpload uploadSessionId="{key}" fileSize="{len(tableau.uploads[key]) // MEGABYTE}"/>'

        def _publish(self, body: bytes, query: dict[str, list[str]]) -> str:
            (key,) = query["uploadSessionId"]
            if key not in tableau.uploads:
                raise Refusal("404000", "Resource Not Found", "Upload session could not be found.")
            assert query["overwrite"] == ["true"]
            asked = xml.fromstring(_parts(self.headers["Content-Type"], body)["request_payload"]).find("datasource")
            name, project = asked.get("name"), asked.find("project").get("id")
            same = (k for k, d in tableau.published.items() if (d["name"], d["project"]) == (name, project))
            identity = next(same, f"d-{len(tableau.published) + 1}")
            tableau.published[identity] = {
                "name": name,
                "project": project,
                "kind": query["datasourceType"][0],
                "content": tableau.uploads.pop(key),
            }
            return f'<datasource id="{identity}" name="{name}"><project id="{project}"/></datasource>'

        def _datasource(self, key: str, body: bytes, query: dict[str, list[str]]) -> str:
            if key not in tableau.published:
                raise Refusal("404004", "Resource Not Found", "Datasource could not be found.")
            return f'<datasource id="{key}" name="{tableau.published[key]["name"]}"/>'

        def _answer(self, status: int, body: bytes, content_type: str = "application/xml") -> None:
            self.send_response(status)
            self.send_header("Content-Type", content_type)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def _hang_up(self) -> None:
            self.close_connection = True
            self.connection.close()

    return Handler


def _response(content: str) -> bytes:
    return f"<?xml version='1.0' encoding='UTF-8'?><tsResponse xmlns=\"{NAMESPACE}\">{content}</tsResponse>".encode()


def _parts(content_type: str, body: bytes) -> dict[str, bytes]:
    """The parts of a multipart message by name, binary ones untouched."""
    boundary = re.search(r'boundary="?([^";]+)', content_type)[1].encode()
    parts = {}
    for part in body.split(b"--" + boundary)[1:-1]:
        head, _, content = part.partition(b"\r\n\r\n")
        parts[re.search(rb'name="([^"]+)"', head)[1].decode()] = content.removesuffix(b"\r\n")
    return parts
