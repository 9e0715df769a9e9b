"""Which BigQuery, as whom, and what it may cost: from the environment, because it differs between machines."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from orchestration.errors import ApportionError
from orchestration.warehouse.access import DEFAULT_CREDENTIALS, connect, in_our_words, is_open_line

if TYPE_CHECKING:
    from google.auth.credentials import Credentials
    from google.cloud.bigquery import Client

VARIABLES = "APPORTION_BIGQUERY_"
SCOPE = "https://www.googleapis.com/auth/cloud-platform"

NO_ACCESS = f"{DEFAULT_CREDENTIALS}; or name the key of a service account in {VARIABLES}KEYFILE"

FORMS = {
    "PROJECT": (r"[A-Za-z0-9.:-]+", "a project id such as my-project-1"),
    "DATASET": (r"[A-Za-z][A-Za-z0-9_]*", "letters, digits and underscores"),
    "LOCATION": (r"[A-Za-z0-9-]+", "a location such as US, EU or europe-west1"),
    "IMPERSONATE": (r"[^@\s]+@[^@\s]+", "the address of a service account"),
    "MAX_BYTES": (r"[1-9][0-9]*", "a whole number of bytes"),
    "ENDPOINT": (r"https?://\S+", "an address that begins with http:// or https://"),
    "BUCKET": (r"gs://[a-z0-9._-]+(/.*)?", "gs://bucket or gs://bucket/folder"),
}
"""What a value looks like. Names become part of SQL, so this is also what keeps SQL out of them."""


@dataclass(frozen=True)
class BigQuerySettings:
    project: str
    dataset: str = "apportion"
    """What the names of all datasets begin with."""
    location: str = "US"
    keyfile: Path | None = None
    impersonate: str | None = None
    max_bytes: int | None = None
    """The most that one query may be billed for."""
    endpoint: str | None = None
    bucket: str | None = None
    """Where files wait to be loaded; without it they are uploaded to BigQuery itself."""

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> BigQuerySettings:
        def read(name: str) -> str | None:
            value = environment.get(VARIABLES + name, "").strip() or None
            form, meaning = FORMS.get(name, (".*", ""))
            if value and not re.fullmatch(form, value):
                raise ApportionError(f"{VARIABLES}{name} is {value!r}", f"set it to {meaning}, or unset it")
            return value

        project, keyfile, max_bytes = read("PROJECT"), read("KEYFILE"), read("MAX_BYTES")
        if not project:
            raise ApportionError(
                f"the target is BigQuery, and {VARIABLES}PROJECT does not say in which project",
                f"export {VARIABLES}PROJECT=<project id>",
            )
        return cls(
            project=project,
            dataset=read("DATASET") or cls.dataset,
            location=read("LOCATION") or cls.location,
            keyfile=Path(keyfile).expanduser() if keyfile else None,
            impersonate=read("IMPERSONATE"),
            max_bytes=int(max_bytes) if max_bytes else None,
            endpoint=read("ENDPOINT"),
            bucket=(read("BUCKET") or "").rstrip("/") or None,
        )

    @property
    def landing(self) -> str:
        """The dataset of the landing tables, with its project."""
        return f"{self.project}.{self.dataset}_landing"


def client(settings: BigQuerySettings) -> Client:
    from google.cloud.bigquery import QueryJobConfig

    with in_our_words(settings.project, "BigQuery cannot be used", NO_ACCESS, NO_ACCESS):
        return connect(
            settings.project,
            location=settings.location,
            endpoint=settings.endpoint,
            credentials=credentials(settings),
            defaults=QueryJobConfig(maximum_bytes_billed=settings.max_bytes) if settings.max_bytes else None,
        )


def credentials(settings: BigQuerySettings) -> Credentials | None:
    """None: what the environment offers (application default credentials)."""
    if is_open_line(settings.endpoint):
        return None
    own = _of_keyfile(settings.keyfile) if settings.keyfile else None
    if not settings.impersonate:
        return own
    import google.auth
    from google.auth import impersonated_credentials

    return impersonated_credentials.Credentials(
        source_credentials=own or google.auth.default(scopes=[SCOPE])[0],
        target_principal=settings.impersonate,
        target_scopes=[SCOPE],
    )


def _of_keyfile(keyfile: Path) -> Credentials:
    from google.oauth2 import service_account

    try:
        return service_account.Credentials.from_service_account_file(str(keyfile), scopes=[SCOPE])
    except (OSError, ValueError) as error:  # what it says may quote the key
        raise ApportionError(
            f"{VARIABLES}KEYFILE: {keyfile} is not the key of a service account ({type(error).__name__})",
            "name the JSON file that Google gave out for the account, or unset it to use application default"
            " credentials",
        ) from None
