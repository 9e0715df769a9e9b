"""Which sources a workspace has: `sources.yml`, validated.

A mistake here would show hours later as missing money, so nothing is guessed: unknown keys are errors, and
every error names the file, the source, the field and what to do.
"""

from __future__ import annotations

import difflib
import glob
import re
from pathlib import Path
from typing import Annotated, Any, Literal
from zoneinfo import ZoneInfo

import yaml
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, model_validator

from orchestration.errors import ApportionError

DATA_PLACEHOLDER = "{data}"


def _known_zone(zone: str | None) -> str | None:
    if zone is not None:
        try:
            ZoneInfo(zone)
        except (KeyError, ValueError, OSError) as error:
            raise ValueError(f"unknown time zone '{zone}'; use an IANA name such as Europe/Zurich") from error
    return zone


def _one_group(pattern: str | None) -> str | None:
    if pattern is not None:
        try:
            groups = re.compile(pattern).groups
        except re.error as error:
            raise ValueError(f"not a regular expression: {error}") from error
        if groups != 1:
            raise ValueError(f"needs exactly one group in brackets, the part that is the name, and has {groups}")
    return pattern


TimeZone = Annotated[str | None, AfterValidator(_known_zone)]
NamePattern = Annotated[str | None, AfterValidator(_one_group)]
"""A regular expression whose one group is the name that is looked for."""


class ColumnFrom(BaseModel):
    """Where a value comes from, if its unit is not ours."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    column: str
    factor: float = 1.0
    """What the file's number is multiplied with, such as 1000 for joules that should be millijoules."""


class _Source(BaseModel):
    """What every source has, whatever its kind."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Annotated[str, Field(pattern=r"^[a-z0-9_]+$")]
    max_bad_share: Annotated[float, Field(ge=0, le=1)] = 0.01
    """A run fails when more than this share of the rows it read is unreadable."""
    optional: bool = False
    """True: a path that matches no file is an empty source instead of an error."""


class _Bill(_Source):
    """What every provider's bill has."""

    area: Literal["billing"]
    path: str
    final_after_days: Annotated[int, Field(ge=0)] = 5
    """A bill delivered this many days after the end of its period counts as final."""
    replaces: Literal["billing_period", "nothing"] = "billing_period"
    """What older bills give way to a newer one: those of its billing periods, or none where each brings new lines."""


class FocusSource(_Bill):
    kind: Literal["focus"]
    currency: str | None = None
    provider: str | None = None
    """What files without BillingCurrency or ProviderName are about; such files are refused otherwise."""


class AwsCurSource(_Bill):
    kind: Literal["aws_cur"]
    cost: Literal["unblended", "net_unblended"] = "unblended"
    """What is billed: before or after private discounts. AWS lists those as lines of their own for the first."""
    split_lines: Literal["keep", "skip"] = "keep"
    """What to do with the lines of pods and tasks, which cost nothing and describe their instance's cost."""


class CostSheetSource(_Source):
    area: Literal["billing"]
    kind: Literal["cost_sheet"]
    path: str
    provider: str | None = None
    """Who the books say was paid; the source's name when absent."""


class AzureSource(_Bill):
    kind: Literal["azure_cost"]
    dataset: Literal["auto", "actual", "amortized", "pair"] = "auto"
    """What the exports hold. `pair`: both, delivered under one path. `auto`: either, as their own lines say."""
    amortized_files: str = "*amorti[sz]ed*"
    """Of a pair, the names (below the fixed part of the path, in any case) of the amortized exports."""
    billed_from: Literal["actual", "amortized"] = "actual"
    effective_from: Literal["actual", "amortized"] = "amortized"
    """Of a pair, which export gives which cost: the invoice agrees with the actual one."""


class GcpSource(_Bill):
    kind: Literal["gcp_export"]
    table: Annotated[str, Field(pattern=r"^[^.`\s]+\.[^.`\s]+\.[^.`\s]+$")] | None = None
    """The export's table in BigQuery, as project.dataset.table, instead of files."""
    path: str = ""
    location: str | None = None
    """Where the table's dataset is, if BigQuery cannot tell."""
    api_endpoint: str | None = None
    """Another address than Google's, such as that of an emulator."""
    first_month: Annotated[str, Field(pattern=r"^[0-9]{4}-(0[1-9]|1[0-2])$")] | None = None
    """The oldest invoice month to pull; all that the table has when absent."""
    pull_every_minutes: Annotated[int, Field(ge=0)] = 60
    """How often, at most, the table is asked for changes: each time costs a query."""
    resource_id: Literal["global_name", "name"] = "global_name"
    """Which name of a resource the inventory uses. Plain names may repeat from project to project."""

    @model_validator(mode="before")
    @classmethod
    def _files_or_table(cls, entry: Any) -> Any:
        """What is pulled from a table is read as files too."""
        if not isinstance(entry, dict):
            return entry
        if bool(entry.get("path")) == bool(entry.get("table")):
            raise ValueError("give either the files ('path') or a BigQuery table ('table')")
        return {"path": f"{DATA_PLACEHOLDER}/pulled/{entry.get('name')}/*.jsonl.gz", **entry}


class SlurmSource(_Source):
    area: Literal["scheduler"]
    kind: Literal["slurm"]
    cluster: str
    jobs: str
    events: str | None = None
    reservations: str | None = None
    accounts: str | None = None
    """Dumps of the tree of accounts: a payer rule for an account also covers those below it."""
    timezone: TimeZone = None
    """The zone of printed local times. Not needed where Slurm prints epoch seconds."""
    delimiter: Annotated[str, Field(min_length=1)] | None = None
    """What separates the cells of text. Found out from the file where it is not given."""
    columns: Annotated[list[str], Field(min_length=1)] | None = None
    """The columns of job files without a header, as they were given to `sacct --format`."""
    shards_per_gpu: Annotated[int, Field(gt=0)] | None = None
    """How many shards a GPU is cut into; without it, jobs on shards hold no GPU."""


class KubernetesSource(_Source):
    area: Literal["scheduler"]
    kind: Literal["kubernetes"]
    cluster: str
    path: str
    gpu_replicas: Annotated[int, Field(gt=0)] | None = None
    """Into how many a GPU whose time is shared is divided, on nodes whose labels do not say it."""


class OpenCostSource(_Source):
    area: Literal["scheduler"]
    kind: Literal["opencost"]
    path: str
    cluster: str | None = None
    """What the inventory calls the cluster; what the allocations themselves say when absent."""


SampleColumn = Literal[
    "timestamp",
    "node",
    "gpu",
    "gpu_instance",
    "job",
    "util_percent",
    "sm_active",
    "tensor_active",
    "power_watts",
    "energy_counter_mj",
    "memory_used_mib",
]


class TelemetrySource(_Source):
    area: Literal["telemetry"]
    kind: Literal["files"]
    cluster: str
    path: str
    interval_seconds: Annotated[int | None, Field(gt=0)] = None
    """How much time one sample stands for. Absent: worked out, as the time until the next sample of its GPU."""
    columns: dict[SampleColumn, str | ColumnFrom] = {}
    """What the files call our columns, where it is neither dcgm-exporter's name nor ours."""
    header: str | None = None
    """The column names of files without a header line, as `nvidia-smi --query-gpu` was given them."""
    timezone: TimeZone = None
    """The zone of times that name none."""
    node: str | None = None
    node_from_path: NamePattern = None
    """Of which node a file speaks that does not say it."""


StorageColumn = Literal["filesystem", "path", "owner", "group", "bytes", "date"]


class DcgmSource(_Source):
    area: Literal["telemetry"]
    kind: Literal["dcgm"]
    cluster: str
    path: str
    interval_seconds: Annotated[int, Field(gt=0)] | None = None
    """The usual time between two samples; worked out from the samples when absent."""
    node_label: str = "Hostname"
    """The label that names the node as the inventory does. In a container the host's name may be the container's."""


class StorageSource(_Source):
    area: Literal["storage"]
    kind: Literal["storage_usage"]
    path: str
    filesystem: str | None = None
    """What is measured, where the file does not say it."""
    columns: dict[StorageColumn, str | ColumnFrom] = {}
    """What the files call our columns, where that is not known."""
    header: str | None = None
    """The column names of tables without a header line, such as the `fileSchema` of an S3 inventory."""
    unit: Literal["bytes", "KiB", "MiB", "GiB"] | None = None
    """What sizes are in, where neither the format nor the name of the column says it."""
    prefix_depth: Annotated[int, Field(ge=0)] = 1
    """How many levels of their keys tell objects of a bucket apart; the rest is summed."""
    owner_from_path: NamePattern = None
    """Who owns a path that the file names no owner of."""
    quotas_of: Literal["user", "group", "fileset"] | None = None
    """Which quotas count, where a report has several kinds: each of them has all the bytes."""


class SeatsSource(_Source):
    area: Literal["license"]
    kind: Literal["seats"]
    path: str
    timezone: TimeZone = None
    """The zone of the licence server's clock, for logs and status reports."""


class InventorySource(_Source):
    area: Literal["inventory"]
    kind: Literal["node_inventory"]
    path: str


Source = (
    FocusSource
    | AwsCurSource
    | CostSheetSource
    | AzureSource
    | GcpSource
    | SlurmSource
    | KubernetesSource
    | OpenCostSource
    | TelemetrySource
    | DcgmSource
    | StorageSource
    | SeatsSource
    | InventorySource
)

PATH_FIELDS = ("path", "jobs", "events", "reservations", "accounts")

_source = TypeAdapter(Annotated[Source, Field(discriminator="kind")])
_KINDS = {
    "focus": "billing",
    "aws_cur": "billing",
    "cost_sheet": "billing",
    "azure_cost": "billing",
    "gcp_export": "billing",
    "slurm": "scheduler",
    "kubernetes": "scheduler",
    "opencost": "scheduler",
    "files": "telemetry",
    "dcgm": "telemetry",
    "storage_usage": "storage",
    "seats": "license",
    "node_inventory": "inventory",
}


def load_sources(path: Path, data_dir: Path) -> list[Source]:
    """Read and validate a sources file; paths in the result are absolute patterns.

    All mistakes of the file are reported at once, so that nobody has to fix them one run at a time.
    """
    entries = _entries(path)
    problems: list[str] = []
    sources: list[Source] = []
    seen: set[str] = set()
    for position, entry in enumerate(entries, start=1):
        label = _label(entry, position)
        try:
            source = _source.validate_python(entry)
        except ValidationError as error:
            problems += [f"{label}, {_explain(problem, entry)}" for problem in error.errors()]
            continue
        if source.name in seen:
            problems.append(f"{label}, field 'name': used twice; give each source its own name")
        seen.add(source.name)
        sources.append(_with_paths(source, path, data_dir))
    if problems:
        raise ApportionError(
            f"{path}: " + ("\n".join(["not valid:", *(f"  {p}" for p in problems)]) if problems[1:] else problems[0]),
            "correct the entry and run again; docs/sources.md describes every field",
        )
    return sources


def _entries(path: Path) -> list[Any]:
    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise ApportionError(
            f"{path}: there is no sources file", "create it, or point --sources / APPORTION_SOURCES at yours"
        ) from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        where = getattr(error, "problem_mark", None)
        line = f", line {where.line + 1}" if where else ""
        reason = getattr(error, "problem", None) or str(error)
        raise ApportionError(f"{path}{line}: not readable as YAML: {reason}", "correct the syntax") from error
    entries = document.get("sources") if isinstance(document, dict) else None
    unknown = [key for key in document if key != "sources"] if isinstance(document, dict) else []
    if not isinstance(entries, list) or not entries or unknown:
        what = f"unknown key '{unknown[0]}'" if unknown else "no list of sources"
        raise ApportionError(f"{path}: {what}", "the file has one key, 'sources:', with a list of entries")
    return entries


def _label(entry: Any, position: int) -> str:
    name = entry.get("name") if isinstance(entry, dict) else None
    return f"source '{name}'" if name else f"source number {position}"


def _explain(problem: Any, entry: Any) -> str:
    """One pydantic problem as a sentence with the field and a way out."""
    kind = problem["type"]
    place = [str(part) for part in problem["loc"] if part not in _KINDS]
    field = ".".join(place) or "kind"
    if kind in ("union_tag_invalid", "union_tag_not_found"):
        given = entry.get("kind") if isinstance(entry, dict) else None
        near = difflib.get_close_matches(str(given), _KINDS, n=1)
        hint = f"did you mean '{near[0]}'? " if near else ""
        return f"field 'kind': {given!r} is not a kind; {hint}known kinds: {', '.join(_KINDS)}"
    if kind == "extra_forbidden":
        return f"field '{field}': unknown; remove it or correct its spelling"
    if kind == "missing":
        return f"field '{field}': missing; add it"
    if field == "area":
        right = f"kind '{entry['kind']}' belongs to area '{_KINDS[entry['kind']]}'"
        return f"field 'area': {problem['input']!r} does not fit; {right}"
    if field == "name":
        return f"field 'name': {problem['input']!r} is not a name; use lower-case letters, digits and _"
    return f"field '{field}': {problem['msg'].removeprefix('Value error, ')}"


def _with_paths(source: Source, path: Path, data_dir: Path) -> Source:
    # Wildcards are the source's own; brackets in the name of a folder above it are just letters.
    base, data = (glob.escape(str(folder.resolve())) for folder in (path.parent, data_dir))
    resolved = {
        field: str(Path(base) / value.replace(DATA_PLACEHOLDER, data))
        for field in PATH_FIELDS
        if (value := getattr(source, field, None)) is not None
    }
    return source.model_copy(update=resolved)
