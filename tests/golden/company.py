"""The golden company as a workspace: the files beside this one, and telemetry written from its plan."""

from __future__ import annotations

import csv
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from orchestration.workspace import Workspace

FILES = Path(__file__).parent / "workspace"
DAY = datetime(2026, 3, 10, tzinfo=UTC)


def make_workspace(root: Path) -> Workspace:
    shutil.copytree(FILES, root, dirs_exist_ok=True)
    write_telemetry(root / "telemetry.csv", root / "inbox" / "telemetry" / "dcgm_2026-03-10.parquet")
    return Workspace(root / "sources.yml", root / "seeds", root / "data")


def write_telemetry(plan: Path, target: Path) -> None:
    """Samples as the DCGM exporter's, one per GPU in the middle of each hour, from the few lines of the plan."""
    samples = []
    with plan.open(encoding="utf-8") as lines:
        for line in csv.DictReader(lines):
            first, last = (int(gpu) for gpu in line["gpus"].split("-"))
            for hour in range(int(line["from_hour"]), int(line["to_hour"])):
                samples += [
                    {
                        "timestamp": DAY + timedelta(hours=hour, minutes=30),
                        "Hostname": line["node"],
                        "gpu": gpu,
                        "GPU_I_ID": None,
                        "hpc_job": line["job"] or None,
                        "DCGM_FI_DEV_GPU_UTIL": 90 if line["job"] else 0,
                        "DCGM_FI_PROF_SM_ACTIVE": 0.75 if line["job"] else 0.0,
                        "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE": 0.5 if line["job"] else 0.0,
                        "DCGM_FI_DEV_POWER_USAGE": float(line["watts"]),
                        "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION": 9223372036854775794,
                        "DCGM_FI_DEV_FB_USED": 40_000 if line["job"] else 0,
                    }
                    for gpu in range(first, last + 1)
                ]
    schema = pa.schema(
        [
            ("timestamp", pa.timestamp("us", tz="UTC")),
            ("Hostname", pa.string()),
            ("gpu", pa.int8()),
            ("GPU_I_ID", pa.string()),
            ("hpc_job", pa.string()),
            ("DCGM_FI_DEV_GPU_UTIL", pa.int64()),
            ("DCGM_FI_PROF_SM_ACTIVE", pa.float32()),
            ("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", pa.float32()),
            ("DCGM_FI_DEV_POWER_USAGE", pa.float32()),
            ("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", pa.int64()),
            ("DCGM_FI_DEV_FB_USED", pa.int64()),
        ]
    )
    target.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(samples, schema), target)
