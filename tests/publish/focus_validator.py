"""The FinOps Foundation's own checker (the package `focus-validator`), as far as it reaches.

It needs older libraries than we do, so it lives in a virtual environment of its own, made on first use. Its last
release knows FOCUS 0.5 and 1.0: it sees nothing of what 1.3 has added, and some of its rules name columns of 1.0 as
drafts spelled them.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from orchestration.workspace import PROJECT_ROOT

ENVIRONMENT = PROJECT_ROOT / ".venv-focus"
REQUIREMENTS = ("focus-validator==1.0.0", "multimethod<2")
"""With a newer multimethod its pandera cannot be imported."""
SPELLINGS = {
    "InvoiceIssuerName": "InvoiceIssuer",
    "ProviderName": "Provider",
    "PublisherName": "Publisher",
    "ResourceId": "ResourceID",
}
"""Columns of FOCUS 1.0 under the names that its rules look for."""
BROKEN = {"SkuPriceId_Nullable": "it asks for the column ChargeType, which FOCUS has not had since 0.5"}
RUN = """
import json, sys
import pandas as pd
from focus_validator.rules.spec_rules import SpecRules
from focus_validator.validator import DEFAULT_VERSION_SETS_PATH

file, numbers, spellings = sys.argv[1], json.loads(sys.argv[2]), json.loads(sys.argv[3])
header = pd.read_csv(file, nrows=0).columns
rows = pd.read_csv(file, dtype={name: float if name in numbers else str for name in header})
rules = SpecRules(None, DEFAULT_VERSION_SETS_PATH, "1.0", None)
rules.load()
result = rules.validate(rows.rename(columns=spellings))
print(json.dumps({name: rule.status.value for name, rule in result.checklist.items()}))
"""


def verdicts(file: Path, numbers: Sequence[str], spellings: Mapping[str, str] = SPELLINGS) -> dict[str, str]:
    """What each of its rules says of a CSV: passed or failed."""
    python = _installed()
    # It reads the list of currencies relative to where it runs.
    (package,) = (ENVIRONMENT / "lib").glob("python*/site-packages")
    arguments = [str(python), "-c", RUN, str(file), json.dumps(list(numbers)), json.dumps(dict(spellings))]
    run = subprocess.run(arguments, cwd=package, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


def _installed() -> Path:
    try:
        return install()
    except (OSError, subprocess.CalledProcessError) as error:
        why = f"focus-validator cannot be installed: {(getattr(error, 'stderr', None) or str(error)).strip()[-500:]}"
        if os.environ.get("CI") == "true":
            pytest.fail(why)
        pytest.skip(why)


def install() -> Path:
    """Once per list of requirements, and by one process at a time: the others wait and find it done."""
    ENVIRONMENT.mkdir(exist_ok=True)
    installed, wanted = ENVIRONMENT / "installed.txt", "\n".join(REQUIREMENTS)
    python = ENVIRONMENT / "bin" / "python"
    with (ENVIRONMENT / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (installed.exists() and installed.read_text() == wanted):
            has_uv = subprocess.run([sys.executable, "-m", "uv", "--version"], capture_output=True).returncode == 0
            uv = [sys.executable, "-m", "uv"] if has_uv else [shutil.which("uv") or "uv"]
            for command in (
                [*uv, "venv", "--quiet", "--allow-existing", "--python", sys.executable, str(ENVIRONMENT)],
                [*uv, "pip", "install", "--quiet", "--compile-bytecode", "--python", str(python), *REQUIREMENTS],
            ):
                subprocess.run(command, check=True, capture_output=True, text=True)
            installed.write_text(wanted)
    return python
