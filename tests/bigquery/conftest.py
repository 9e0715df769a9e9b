"""What the tests of the BigQuery target share."""

from __future__ import annotations

from tests.bigquery.emulator import emulator

__all__ = ["emulator"]
