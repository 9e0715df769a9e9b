"""Google's libraries, as everything here uses them: one way to connect, and their errors in our words."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from orchestration.errors import ApportionError

if TYPE_CHECKING:
    from google.auth.credentials import Credentials
    from google.cloud.bigquery import Client, QueryJobConfig

OTHER_SIDE = ("google.", "requests.", "urllib3.")
"""Whose errors are about the service and the way to it, not about a defect of ours."""
DEFAULT_CREDENTIALS = (
    "give the process application default credentials: GOOGLE_APPLICATION_CREDENTIALS, an attached service account, or"
    " 'gcloud auth application-default login'"
)


def connect(
    project: str,
    *,
    location: str | None,
    endpoint: str | None = None,
    credentials: Credentials | None = None,
    defaults: QueryJobConfig | None = None,
) -> Client:
    """A client; without credentials, those that the environment offers."""
    from google.auth.credentials import AnonymousCredentials
    from google.cloud import bigquery

    return bigquery.Client(
        project=project,
        location=location,
        client_options={"api_endpoint": endpoint} if endpoint else None,
        credentials=AnonymousCredentials() if is_open_line(endpoint) else credentials,
        default_query_job_config=defaults,
    )


def is_open_line(endpoint: str | None) -> bool:
    """An emulator; credentials are never sent there."""
    return bool(endpoint) and endpoint.startswith("http://")


@contextmanager
def in_our_words(
    subject: str, failure: str, remedy: str | Callable[[Exception], str], no_access: str = DEFAULT_CREDENTIALS
) -> Iterator[None]:
    """What Google's libraries raise, as our error. What is said about credentials stays unsaid."""
    try:
        yield
    except ApportionError:
        raise
    except Exception as error:
        origin = type(error).__module__
        if origin.startswith("google.auth"):
            raise ApportionError(
                f"{subject}: no access to BigQuery ({type(error).__name__})",
                no_access,
            ) from None
        if origin.startswith(OTHER_SIDE):
            raise ApportionError(
                f"{subject}: {failure}: {said(error)}", remedy if isinstance(remedy, str) else remedy(error)
            ) from None
        raise


def said(error: Exception) -> str:
    """The first line of what the service said, without the address: that of an upload is as good as a key."""
    message = _first(error, "message") or getattr(error, "message", None) or type(error).__name__
    return re.sub(r"^(GET|POST|PUT|PATCH|DELETE) \S+: ", "", message.strip().splitlines()[0])


def reason(error: Exception) -> str:
    """The service's word for what went wrong, such as accessDenied; empty if it gave none."""
    return _first(error, "reason")


def _first(error: Exception, key: str) -> str:
    details = getattr(error, "errors", None) or [{}]
    return (details[0].get(key) or "") if isinstance(details[0], dict) else ""
