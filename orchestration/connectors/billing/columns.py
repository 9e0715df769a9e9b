"""Columns that one vendor spells in several ways: found by their letters and digits alone."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from orchestration.connectors.base import Delivery
from orchestration.errors import ApportionError


def letters(name: str) -> str:
    """`Billing Period_Start` and `billingPeriodStart` as one: cases and signs change from export to export."""
    return re.sub(r"[^a-z0-9]", "", name.lower())


def find_columns(delivery: Delivery, header: Sequence[str], spellings: Mapping[str, Sequence[str]]) -> dict[str, int]:
    """Where a file has each of our columns, by the first spelling (in letters) that it uses."""
    plain = [letters(name) for name in header]
    places = {}
    for column, names in spellings.items():
        found = next((name for name in names if name in plain), None)
        if found is None:
            continue
        if plain.count(found) > 1:
            raise ApportionError(
                f"{delivery.path}, line 1: column {header[plain.index(found)]} is there more than once",
                "deliver the file with one column of that name: nobody can tell which of them counts",
            )
        places[column] = plain.index(found)
    return places
