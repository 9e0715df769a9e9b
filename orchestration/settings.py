"""Which sources a workspace has: `sources.yml`, validated.

A mistake here would show hours later as missing money, so nothing is guessed: unknown keys are errors, and
every error names the file, the source, the field and what to do.
"""

from __future__ import annotations

import difflib
import glob
from pathlib import Path
from typing import Annotated, Any, Literal
from zoneinfo import ZoneInfo

import yaml
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, field_validator

from orchestration.errors import ApportionError

DATA_PLACEHOLDER = "{data}"


class _Source(BaseModel):
    """What every source has, whatever its kind."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Annotated[str, Field(pattern=r"^[a-z0-9_]+$")]
    max_bad_share: Annotated[float, Field(ge=0, le=1)] = 0.01
    """A run fails when more than this share of the rows it read is unreadable."""
    optional: bool = False
    """True: a path that matches no file is an empty source instead of an error."""


class FocusSource(_Source):
    area: Literal["billing"]
    kind: Literal["focus"]
    path: str
    final_after_days: Annotated[int, Field(ge=0)] = 5
    """A bill delivered this many days after the end of its period counts as final."""


class CostSheetSource(_Source):
    area: Literal["billing"]
    kind: Literal["cost_sheet"]
    path: str
    provider: str | None = None
    """Who the books say was paid; the source's name when absent."""


class SlurmSource(_Source):
    area: Literal["scheduler"]
    kind: Literal["slurm"]
    cluster: str
    jobs: str
    events: str | None = None
    reservations: str | None = None
    timezone: str | None = None
    """The zone of printed local times. Not needed where Slurm prints epoch seconds."""
    delimiter: Annotated[str, Field(min_length=1)] = "|"

    @field_validator("timezone")
    @classmethod
    def _known_zone(cls, zone: str | None) -> str | None:
        if zone is not None:
            try:
                ZoneInfo(zone)
            except (KeyError, ValueError, OSError) as error:
                raise ValueError(f"unknown time zone '{zone}'; use an IANA name such as Europe/Zurich") from error
        return zone


class KubernetesSource(_Source):
    area: Literal["scheduler"]
    kind: Literal["kubernetes"]
    cluster: str
    path: str


class TelemetrySource(_Source):
    area: Literal["telemetry"]
    kind: Literal["files"]
    cluster: str
    path: str
    interval_seconds: Annotated[int, Field(gt=0)] = 60
    """How much time one sample stands for."""


class StorageSource(_Source):
    area: Literal["storage"]
    kind: Literal["storage_usage"]
    path: str


class SeatsSource(_Source):
    area: Literal["license"]
    kind: Literal["seats"]
    path: str


class InventorySource(_Source):
    area: Literal["inventory"]
    kind: Literal["node_inventory"]
    path: str


Source = (
    FocusSource
    | CostSheetSource
    | SlurmSource
    | KubernetesSource
    | TelemetrySource
    | StorageSource
    | SeatsSource
    | InventorySource
)

PATH_FIELDS = ("path", "jobs", "events", "reservations")

_source = TypeAdapter(Annotated[Source, Field(discriminator="kind")])
_KINDS = {
    "focus": "billing",
    "cost_sheet": "billing",
    "slurm": "scheduler",
    "kubernetes": "scheduler",
    "files": "telemetry",
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
