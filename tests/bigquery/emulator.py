"""A BigQuery emulator (the package `bqemulator`), as far as tests need one: it proves the plumbing, not the SQL.

It pins libraries that we need in other versions, so it lives in a virtual environment of its own, made on first use.
It ignores partition filters, expiry and the most a query may cost, and refuses `table$20260101`.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from orchestration.warehouse.settings import BigQuerySettings
from orchestration.workspace import PROJECT_ROOT

ENVIRONMENT = PROJECT_ROOT / ".venv-emulator"
REQUIREMENTS = ("bqemulator==1.4.0", "duckdb==1.5.5", "duckdb-extension-spatial==1.5.5", "numpy", "pytz")
"""It loads the spatial extension when it starts; the package brings the file, so that nothing is downloaded then."""
INSTALL_SPATIAL = """
import duckdb, duckdb_extension_spatial, pathlib
(package,) = duckdb_extension_spatial.__path__
(extension,) = pathlib.Path(package).rglob("spatial.duckdb_extension")
duckdb.execute(f"install '{extension}'")
"""
PROJECT = "emulated"
START_SECONDS = 60


@dataclass(frozen=True)
class Emulator:
    endpoint: str
    buckets: Path
    """The folder whose subfolders it takes for buckets (gs://name/…)."""

    def settings(self, dataset: str, **more: object) -> BigQuerySettings:
        return BigQuerySettings(PROJECT, dataset=dataset, endpoint=self.endpoint, **more)  # type: ignore[arg-type]


@pytest.fixture(scope="session")
def emulator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Emulator]:
    """One for all tests of a process; each test has datasets of its own."""
    try:
        install()
    except (OSError, subprocess.CalledProcessError) as error:
        why = (getattr(error, "stderr", None) or str(error)).strip()[-500:]
        _unavailable(f"the BigQuery emulator cannot be installed: {why}")
    with running(tmp_path_factory.mktemp("emulator")) as found:
        yield found


def _unavailable(why: str) -> None:
    if os.environ.get("CI") == "true":
        pytest.fail(why)
    pytest.skip(why)


def install() -> None:
    """Once per list of requirements, and by one process at a time: the others wait and find it done."""
    ENVIRONMENT.mkdir(exist_ok=True)
    installed, wanted = ENVIRONMENT / "installed.txt", "\n".join(REQUIREMENTS)
    with (ENVIRONMENT / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if installed.exists() and installed.read_text() == wanted:
            return
        uv = [sys.executable, "-m", "uv"] if _has_uv() else [shutil.which("uv") or "uv"]
        python = str(ENVIRONMENT / "bin" / "python")
        for command, environment in (
            ([*uv, "venv", "--quiet", "--allow-existing", "--python", sys.executable, str(ENVIRONMENT)], None),
            ([*uv, "pip", "install", "--quiet", "--compile-bytecode", "--python", python, *REQUIREMENTS], None),
            ([python, "-c", INSTALL_SPATIAL], _environment()),
        ):
            subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
        installed.write_text(wanted)


def _has_uv() -> bool:
    return subprocess.run([sys.executable, "-m", "uv", "--version"], capture_output=True).returncode == 0


def _environment() -> dict[str, str]:
    """With a home of its own, because that is where DuckDB keeps its extensions."""
    home = ENVIRONMENT / "home"
    home.mkdir(exist_ok=True)
    return {**os.environ, "HOME": str(home)}


@contextmanager
def running(folder: Path) -> Iterator[Emulator]:
    """An emulator with nothing in it, on ports that it chooses itself; its log and its buckets are in `folder`."""
    log, buckets = folder / "log.txt", folder / "buckets"
    environment = {
        **_environment(),
        "BQEMU_ENABLE_FORMAT_EXTENSIONS": "false",  # Avro, which would be downloaded
        "BQEMU_QUERY_CACHE_TTL_SECONDS": "0",
        "BQEMU_GCS_LOCAL_ROOT": str(buckets),
    }
    command = ["start", "--ephemeral", "--rest-port", "0", "--grpc-port", "0", "--project", PROJECT]
    with log.open("w") as output:
        process = subprocess.Popen(
            [str(ENVIRONMENT / "bin" / "bqemulator"), *command],
            env=environment,
            cwd=folder,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        yield Emulator(_ready(process, log), buckets)
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _ready(process: subprocess.Popen[bytes], log: Path) -> str:
    deadline = time.monotonic() + START_SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        found = re.search(r'"port": (\d+), "event": "rest\.listen"', log.read_text())
        if found:
            endpoint = f"http://127.0.0.1:{found[1]}"
            with urllib.request.urlopen(f"{endpoint}/readyz", timeout=START_SECONDS):
                return endpoint
        time.sleep(0.1)
    raise AssertionError(f"the BigQuery emulator did not start:\n{log.read_text()[-2000:]}")
