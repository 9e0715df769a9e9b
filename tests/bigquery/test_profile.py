"""The target `bigquery` of profiles.yml: as whom it connects, and what it may cost, by the environment alone."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

import pytest
from dbt.config.profile import Profile, read_profile
from dbt.config.renderer import ProfileRenderer
from dbt.flags import set_from_args
from dbt_common.context import set_invocation_context

from orchestration.workspace import PROJECT_ROOT

PREFIX = "APPORTION_BIGQUERY_"


def credentials(**settings: str) -> Any:
    set_from_args(Namespace(), {})
    set_invocation_context({PREFIX + name: value for name, value in {"PROJECT": "mine", **settings}.items()})
    profiles = read_profile(str(PROJECT_ROOT / "profiles"))
    return Profile.from_raw_profiles(profiles, "apportion", ProfileRenderer({}), target_override="bigquery").credentials


@pytest.mark.parametrize(
    ("settings", "method"),
    [
        ({}, "oauth"),
        ({"KEYFILE": "key.json"}, "service-account"),
        ({"ENDPOINT": "http://127.0.0.1:9050"}, "oauth-secrets"),
        ({"ENDPOINT": "https://bigquery.private.example"}, "oauth"),
    ],
)
def test_credentials_follow_the_environment(settings, method):
    found = credentials(**settings)
    assert str(found.method) == method
    assert (found.keyfile, found.api_endpoint) == (settings.get("KEYFILE"), settings.get("ENDPOINT"))
    assert (found.token is not None) == (method == "oauth-secrets")


def test_names_limits_and_impersonation_are_taken_over():
    found = credentials(DATASET="costs", LOCATION="EU", MAX_BYTES="1000000", IMPERSONATE="runner@mine.example")
    assert (found.database, found.schema, found.location) == ("mine", "costs", "EU")
    assert (found.maximum_bytes_billed, found.impersonate_service_account) == (1000000, "runner@mine.example")
    bare = credentials()
    assert (bare.schema, bare.location) == ("apportion", "US")
    assert (bare.maximum_bytes_billed, bare.impersonate_service_account) == (None, None)
