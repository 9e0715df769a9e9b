"""What the tests of exports share."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestration.workspace import Workspace
from tests.publish.closed import Books, closed

__all__ = ["books", "closed"]


@pytest.fixture
def books(closed: Workspace, tmp_path: Path) -> Books:
    """The closed company's published marts, to be changed."""
    return Books(closed, tmp_path)
