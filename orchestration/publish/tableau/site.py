"""One site of a Tableau Server or Tableau Cloud, signed in to: patient with it, and its errors in our words.

A request that fails for the moment (a broken line, a 5xx) is sent again after a growing pause. A sign-in that has
expired is renewed. Redirects are refused: the token goes to the address that somebody wrote down, and nowhere else.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, TypeVar
from xml.etree.ElementTree import ParseError

from orchestration.errors import ApportionError
from orchestration.publish.tableau.settings import VARIABLES, TableauSettings, is_loopback

if TYPE_CHECKING:
    from tableauserverclient import DatasourceItem, ProjectItem, Server

PAUSES = (1.0, 2.0, 4.0, 8.0, 16.0)
"""Seconds before each further try."""
TIMEOUT = (10, 600)
"""Seconds to connect, and to wait for an answer: a server reads a large extract before it answers."""
OLDEST_API = "3.6"
"""Of Tableau 2019.4: older ones know no personal access tokens."""
LISTED_PROJECTS = 20
UNFILTERABLE = ",&:[]*"
"""What the filters of the API take for their own; names with these are looked for in the whole list."""

T = TypeVar("T")


class Site:
    def __init__(self, settings: TableauSettings, pause: Callable[[float], None] = time.sleep) -> None:
        self.settings = settings
        self._pause = pause
        self.server = _server(settings)

    def __enter__(self) -> Site:
        with self.words():
            info = self.patiently(self.server.server_info.get, renews=False)
            if info is None or info.rest_api_version == "Unknown":
                raise ParseError("no server info")
            self.server.version = info.rest_api_version
            if not self.server.check_at_least_version(OLDEST_API):
                raise ApportionError(
                    f"{self.settings.place} is Tableau {info.product_version} with version {info.rest_api_version} of"
                    " the REST API, which has no personal access tokens",
                    f"publishing needs version {OLDEST_API} (Tableau 2019.4) or newer",
                )
            self._sign_in()
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(Exception):  # the session ends by itself; an error on the way here says more
            self.server.auth.sign_out()
        self.server.close()

    def patiently(self, request: Callable[[], T], renews: bool = True) -> T:
        """The answer to a request that can be sent twice. With `renews`, an expired sign-in is renewed once."""
        pauses = iter(PAUSES)
        while True:
            try:
                return request()
            except Exception as error:
                if renews and is_signed_out(error):
                    renews = False
                    self._sign_in()
                    continue
                seconds = next(pauses, None)
                if seconds is None or not is_transient(error):
                    raise
                self._pause(seconds)

    def project(self) -> ProjectItem:
        from tableauserverclient import Filter, Pager, RequestOptions

        wanted = self.settings.project
        options = RequestOptions(pagesize=1000)
        if not set(wanted) & set(UNFILTERABLE):
            options.filter.add(Filter(RequestOptions.Field.Name, RequestOptions.Operator.Equals, wanted))
        with self.words():
            named = [p for p in self.patiently(lambda: list(Pager(self.server.projects, options))) if p.name == wanted]
            if len(named) == 1:
                return named[0]
            everything = self.patiently(lambda: list(Pager(self.server.projects, RequestOptions(pagesize=1000))))
        by_id = [project for project in everything if project.id == wanted]
        if by_id:
            return by_id[0]
        if named:
            raise ApportionError(
                f"{self.settings.place} has {len(named)} projects named {wanted!r}",
                f"set {VARIABLES}PROJECT to the id of one: {', '.join(str(project.id) for project in named)}",
            )
        names = sorted({str(project.name) for project in everything})
        shown = ", ".join(names[:LISTED_PROJECTS]) + (", …" if len(names) > LISTED_PROJECTS else "")
        raise ApportionError(
            f"{self.settings.place} has no project {wanted!r} that {self.settings.token_name!r} may see",
            f"set {VARIABLES}PROJECT to one of: {shown}" if names else "ask for access to a project",
        )

    def has(self, datasource_id: str) -> bool:
        from tableauserverclient import ServerResponseError

        try:
            with self.words(but=lambda error: _code(error).startswith("404")):
                self.patiently(lambda: self.server.datasources.get_by_id(datasource_id))
        except ServerResponseError:
            return False
        return True

    def begin(self) -> str:
        with self.words():
            return self.patiently(self.server.fileuploads.initiate)

    def append(self, session: str, part: bytes) -> int | None:
        """Sends a part once; gives the size of the file on the server, in its own unit, if it says so.

        Not patient: whether a part arrived before the line broke is for the caller to find out.
        """
        from tableauserverclient.server import RequestFactory

        body, content_type = RequestFactory.Fileupload.chunk_req(part)
        item = self.server.fileuploads.append(session, body, content_type)
        try:
            return item.file_size
        except (TypeError, ValueError):
            return None

    def publish(self, session: str, name: str, kind: str, project_id: str, description: str) -> DatasourceItem:
        """Makes what was uploaded the data source of that name, in place of the one that is there."""
        from tableauserverclient import DatasourceItem
        from tableauserverclient.server import RequestFactory

        item = DatasourceItem(project_id, name=name)
        item.description = description
        endpoint = self.server.datasources
        url = f"{endpoint.baseurl}?uploadSessionId={session}&datasourceType={kind}&overwrite=true"

        def request() -> DatasourceItem:
            body, content_type = RequestFactory.Datasource.publish_req_chunked(item)
            answer = endpoint.post_request(url, body, content_type)
            return DatasourceItem.from_response(answer.content, self.server.namespace)[0]

        return self.patiently(request)

    def renew(self) -> None:
        with self.words():
            self._sign_in()

    def pause(self, attempt: int) -> None:
        self._pause(PAUSES[attempt])

    def _sign_in(self) -> None:
        from tableauserverclient import PersonalAccessTokenAuth

        settings = self.settings
        access = PersonalAccessTokenAuth(settings.token_name, settings.token, site_id=settings.site)
        self.patiently(lambda: self.server.auth.sign_in_with_personal_access_token(access), renews=False)

    @contextmanager
    def words(self, but: Callable[[Exception], bool] = lambda error: False) -> Iterator[None]:
        """What the client library raises, as our error. Its texts do not hold the token; it is cut out in any case."""
        try:
            yield
        except ApportionError:
            raise
        except Exception as error:
            if but(error):
                raise
            told = _told(error, self.settings)
            if told is None:
                raise
            message, remedy = told
            token = self.settings.token
            raise ApportionError(message.replace(token, "…") if token else message, remedy) from None


def _server(settings: TableauSettings) -> Server:
    import requests
    from tableauserverclient import Server

    # The library logs what it then raises; without a handler Python would print that to the terminal.
    logging.getLogger("TSC").addHandler(logging.NullHandler())

    def session() -> requests.Session:
        own = requests.Session()
        own.max_redirects = 0
        own.trust_env = not is_loopback(settings.server)  # a proxy would look for this machine elsewhere
        return own

    return Server(settings.server, http_options={"timeout": TIMEOUT, "verify": True}, session_factory=session)


def is_transient(error: Exception) -> bool:
    """Whether the same request may well succeed a little later."""
    import requests
    from tableauserverclient.server.endpoint.exceptions import InternalServerError

    if isinstance(error, requests.exceptions.SSLError):
        return False
    broken_line = (requests.ConnectionError, requests.Timeout, requests.exceptions.ChunkedEncodingError)
    return isinstance(error, (InternalServerError, *broken_line)) or _code(error).startswith("429")


def is_signed_out(error: Exception) -> bool:
    from tableauserverclient.server.endpoint.exceptions import FailedSignInError

    return isinstance(error, FailedSignInError)


def is_unknown(error: Exception) -> bool:
    """The server knows no such thing (any more)."""
    return _code(error).startswith("404")


def _code(error: Exception) -> str:
    """The six digits of Tableau's errors, of which the first three are those of HTTP."""
    return str(getattr(error, "code", "") or "")


def _told(error: Exception, settings: TableauSettings) -> tuple[str, str] | None:
    import requests
    from tableauserverclient.server.endpoint import exceptions
    from tableauserverclient.server.exceptions import EndpointUnavailableError, ServerInfoEndpointNotFoundError

    place = settings.place
    said = " ".join(f"{getattr(error, 'summary', '') or ''}: {getattr(error, 'detail', '') or ''}".split())
    if isinstance(error, exceptions.FailedSignInError):
        return (
            f"{place} refuses the token {settings.token_name!r} ({_code(error)} {said})",
            f"check {VARIABLES}TOKEN_NAME, {VARIABLES}TOKEN and {VARIABLES}SITE"
            f" ({settings.site!r}; empty is the default site); a token ends when it is not used for 15 days",
        )
    if isinstance(error, exceptions.ServerResponseError):
        if _code(error).startswith("403"):
            return (
                f"{place}: {settings.token_name!r} may not do this ({_code(error)} {said})",
                f"its owner needs the right to publish and to overwrite in the project {settings.project!r}",
            )
        return f"{place}: {_code(error)} {said}", "see Tableau's documentation of its REST API for this error"
    if isinstance(error, exceptions.InternalServerError):
        return (
            f"{place} failed with status {error.code}, {len(PAUSES) + 1} times",
            "publish again later: what was uploaded is kept, and the upload goes on from there",
        )
    if isinstance(error, (exceptions.RedirectError, requests.TooManyRedirects)):
        return (
            f"{settings.server} sends its callers to another address",
            f"set {VARIABLES}SERVER to the address at which the server itself answers",
        )
    if isinstance(error, requests.exceptions.SSLError):
        return (
            f"{settings.server} has a certificate that this machine does not trust",
            "name the file of your certificate authority in REQUESTS_CA_BUNDLE",
        )
    if isinstance(error, requests.RequestException):
        return (
            f"{settings.server} cannot be reached ({type(error).__name__})",
            f"check {VARIABLES}SERVER and the way there, then publish again: an upload goes on where it stopped",
        )
    strangers = (
        exceptions.NonXMLResponseError,
        ParseError,
        EndpointUnavailableError,
        ServerInfoEndpointNotFoundError,
    )
    if isinstance(error, strangers):
        return (
            f"{settings.server} does not answer as a Tableau Server of 2019.4 or newer does",
            f"set {VARIABLES}SERVER to the address of Tableau, without the path of a page",
        )
    return None
