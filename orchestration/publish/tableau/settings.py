"""Which Tableau, as whom, and into which project: from the environment, because it differs between machines."""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from orchestration.errors import ApportionError

VARIABLES = "APPORTION_TABLEAU_"
MEANINGS = {
    "SERVER": "the address of the server, such as https://tableau.example.com",
    "TOKEN_NAME": "the name of a personal access token",
    "TOKEN": "the secret of that token",
    "PROJECT": "the project to publish into: its name, or its id where several have that name",
}
"""What must be set. SITE may be missing: the default site of a server has no name."""


@dataclass(frozen=True)
class TableauSettings:
    server: str
    token_name: str
    token: str = field(repr=False)
    project: str
    site: str = ""
    """As in the address of its pages, `/site/<this>/`; empty for the default site."""

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> TableauSettings:
        values = {name: environment.get(VARIABLES + name, "").strip() for name in (*MEANINGS, "SITE")}
        missing = [name for name in MEANINGS if not values[name]]
        if missing:
            names = ", ".join(VARIABLES + name for name in missing)
            raise ApportionError(
                f"publishing to Tableau needs {names}",
                "; ".join(f"{VARIABLES}{name}: {MEANINGS[name]}" for name in missing),
            )
        return cls(
            server=_address(values["SERVER"]),
            token_name=values["TOKEN_NAME"],
            token=values["TOKEN"],
            project=values["PROJECT"],
            site=values["SITE"],
        )

    def __post_init__(self) -> None:
        _address(self.server)

    @property
    def place(self) -> str:
        return f"{self.server} (site {self.site})" if self.site else self.server


def _address(text: str) -> str:
    """A token must not travel in clear, so http is for a server on this machine only."""
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise ApportionError(f"{VARIABLES}SERVER is not an address of a server", f"set it to {MEANINGS['SERVER']}")
    if parts.username or parts.password:  # not repeated: it may hold a password
        raise ApportionError(
            f"{VARIABLES}SERVER holds a name or a password",
            f"set it to the address alone; access is by {VARIABLES}TOKEN_NAME and {VARIABLES}TOKEN",
        )
    if parts.scheme == "http" and not is_loopback(text):
        raise ApportionError(
            f"{VARIABLES}SERVER is {text}: the token would travel unencrypted", "use the https:// address of the server"
        )
    return text.rstrip("/")


def is_loopback(address: str) -> bool:
    host = urlsplit(address).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
