"""What the tools of file systems print: `mmrepquota -Y` and `mmlsquota -Y`, `lfs quota`, `rbh-report`, `du`.

None of them prints when it was run; the name of the file says that.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from duckdb import DuckDBPyConnection

from orchestration.connectors.base import Delivery, Found
from orchestration.connectors.sql import literal, quoted
from orchestration.connectors.storage.columns import UNITS
from orchestration.connectors.tables import PACKED, first_line
from orchestration.connectors.text import load_lines, numbered_lines, packing
from orchestration.errors import ApportionError
from orchestration.settings import StorageSource

KIB = 2**10
PREFERRED = ("user", "fileset", "group")
"""Of quotas that count the same bytes: people first, because payers are found by them."""


@dataclass(frozen=True)
class Report:
    """One way of printing: how it is known, which of its lines are no rows, and what its rows say.

    `rows` gives SQL over `lines` (file, line, raw) with filesystem, path, owner, account, size, factor, quota, skip and
    problem.
    """

    form: str
    variant: str
    begins: Callable[[str], bool]
    no_row: str
    rows: Callable[[StorageSource, Delivery, str], str]


def report_of(delivery: Delivery) -> Report | None:
    _, line = first_line(delivery)
    return next((report for report in REPORTS if report.begins(line)), None)


def load(
    con: DuckDBPyConnection, deliveries: Sequence[Delivery], source: StorageSource
) -> tuple[str, list[int], list[Found]]:
    """Reports into a temp table; SQL for what they say, the rows in each, and what each is."""
    load_lines(con, "report_lines", deliveries, header=False)
    reports = [report for delivery in deliveries if (report := report_of(delivery))]
    for file, report in enumerate(reports):
        con.execute(f"delete from report_lines where file = {file} and {report.no_row}")
    counts = dict(con.execute("select file, count(*) from report_lines group by file").fetchall())
    texts = " union all by name ".join(
        f"(select *, {literal(report.form)} as form from"
        f" ({report.rows(source, delivery, f'(from report_lines where file = {file})')}))"
        for file, (delivery, report) in enumerate(zip(deliveries, reports, strict=True))
    )
    found = [Found(f"{PACKED[packing(d.path)]}{report.variant}") for d, report in zip(deliveries, reports, strict=True)]
    return _one_kind_of_quota(source, texts), [counts.get(file, 0) for file in range(len(deliveries))], found


def _one_kind_of_quota(source: StorageSource, texts: str) -> str:
    """Quotas of users, groups and filesets each have all the bytes: only one kind of them counts."""
    preferred = dict.fromkeys([*([source.quotas_of] if source.quotas_of else []), *PREFERRED])
    kinds = f"[{quoted(preferred)}]"
    counts = f"{kinds}[min(list_position({kinds}, quota)) over (partition by file, filesystem)]"
    return f"""
        select * exclude (quota, skip), cast(null as varchar) as raw, cast(null as varchar) as date,
            coalesce(skip, case when quota <> {counts} then
            'the same bytes as in the quotas of the other kind (see quotas_of)' end) as skip
        from ({texts})
    """


# ── GPFS ─────────────────────────────────────────────────────────────────────────────────────────────
def _gpfs(source: StorageSource, delivery: Delivery, lines: str) -> str:
    names = _gpfs_header(delivery).split(":")

    def cell(name: str) -> str:
        return f"nullif(url_decode(cells[{names.index(name) + 1}]), '')" if name in names else "null"

    kind = cell("quotaType")
    return f"""
        select file, line, {cell("filesystemName")} as filesystem,
            case {kind} when 'USR' then 'user' when 'GRP' then 'group' when 'FILESET' then 'fileset' end as quota,
            case when quota = 'fileset' then {cell("name")} else {cell("filesetname")} end as path,
            case when quota = 'user' then {cell("name")} end as owner,
            case when quota = 'group' then {cell("name")} end as account,
            {cell("blockUsage")} as size, {KIB} as factor,
            case when len(cells) < {len(names) - 1} then 'has ' || len(cells) || ' fields instead of {len(names)}'
                when quota is null then 'quotaType is unknown: ' || coalesce({kind}, '') end as problem,
            cast(null as varchar) as skip
        from (select file, line, string_split(raw, ':') as cells from {lines})
    """


def _gpfs_header(delivery: Delivery) -> str:
    """The one header of a report, which repeats it for every file system."""
    headers = {
        line.as_py(): start + place
        for start, lines in numbered_lines(delivery.path)
        for place, line in enumerate(lines)
        if ":HEADER:" in line.as_py()
    }
    if len(headers) != 1:
        raise ApportionError(
            f"{delivery.path}: {len(headers)} different HEADER lines instead of one",
            "print with -Y, and put the output of different commands or releases into files of their own",
        )
    return next(iter(headers))


# ── Lustre ───────────────────────────────────────────────────────────────────────────────────────────
def _lustre(source: StorageSource, delivery: Delivery, lines: str) -> str:
    """A line with whose quota it is, a header, then a line per file system; long names have their figures below."""
    subject = r"'^Disk quotas for (usr|user|grp|group|prj|project)\s+(\S+)'"
    filesystem = literal(source.filesystem) if source.filesystem else "ltrim(mount, '/')"
    return f"""
        select file, line, {filesystem} as filesystem, quota, cast(null as varchar) as path,
            case when quota = 'user' then who end as owner,
            case when quota <> 'user' then who end as account,
            figure as size, {KIB} as factor, cast(null as varchar) as problem,
            case
                when is_subject then 'says whose the next lines are'
                when is_wrapped then 'goes on in the next line'
                when figure is null then 'not a figure of a file system'
            end as skip
        from (
            select file, line, is_subject,
                last_value(nullif(regexp_extract(raw, {subject}, 2), '') ignore nulls) over log as who,
                case last_value(nullif(regexp_extract(raw, {subject}, 1)[1:1], '') ignore nulls) over log
                    when 'u' then 'user' when 'g' then 'group' else 'fileset' end as quota,
                starts_with(cells[1], '/') and len(cells) = 1 as is_wrapped,
                case when starts_with(cells[1], '/') then cells[1] else lag(cells[1]) over log end as mount,
                regexp_replace(case
                    when starts_with(cells[1], '/') and len(cells) > 1 then cells[2]
                    when starts_with(lag(cells[1]) over log, '/') and lag(len(cells)) over log = 1 then cells[1]
                end, '[\\[\\]*]', '', 'g') as figure
            from (
                select *, regexp_split_to_array(trim(raw), '\\s+') as cells,
                    regexp_matches(raw, {subject}) as is_subject
                from {lines}
            )
            window log as (partition by file order by line)
        )
    """


def _robinhood(source: StorageSource, delivery: Delivery, lines: str) -> str:
    _, header = first_line(delivery)
    names = [name.strip().lower() for name in header.split(",")]

    def cell(*spellings: str) -> str:
        return next(
            (f"nullif(trim(cells[{names.index(name) + 1}]), '')" for name in spellings if name in names), "null"
        )

    return f"""
        select file, line, {_given_filesystem(source, delivery)} as filesystem, {cell("path")} as path,
            {cell("user")} as owner, {cell("group", "project")} as account, {cell("spc_used", "volume")} as size,
            1 as factor, cast(null as varchar) as quota,
            case when starts_with(ltrim(raw), 'Total:') then 'the total of the lines before it' end as skip,
            case when len(cells) <> {len(names)} and skip is null
                then 'has ' || len(cells) || ' fields instead of {len(names)}' end as problem
        from (select file, line, raw, string_split(raw, ',') as cells from {lines})
    """


# ── du ───────────────────────────────────────────────────────────────────────────────────────────────
def _du(source: StorageSource, delivery: Delivery, lines: str) -> str:
    return rf"""
        select file, line, {_given_filesystem(source, delivery)} as filesystem,
            nullif(regexp_extract(raw, '^\s*\S+\s+(.*)$', 1), '') as path,
            cast(null as varchar) as owner, cast(null as varchar) as account,
            regexp_extract(raw, '^\s*(\S+)', 1) as size, {UNITS[source.unit or "bytes"]} as factor,
            cast(null as varchar) as quota, cast(null as varchar) as problem, cast(null as varchar) as skip
        from {lines}
    """


def inner_sums(rows: str) -> str:
    """SQL for the bytes of the folders right inside each folder of `du`, by the line of the outer one.

    `du` counts what is in a folder in all the folders above it, too; without their inner sums they add up.
    """
    return f"""
        with recursive folders as (
            select file, line, rtrim(path, '/') as folder, stored_bytes from {rows}
            where form = 'du' and bad_reason is null
        ),

        ancestors as (
            select file, line, stored_bytes, regexp_replace(folder, '/?[^/]*$', '') as above, folder from folders
            where folder <> ''
            union all
            select file, line, stored_bytes, regexp_replace(above, '/?[^/]*$', ''), folder from ancestors
            where above <> ''
        ),

        nearest as (
            select ancestors.file, ancestors.line, ancestors.stored_bytes,
                max_by(folders.line, len(above)) as outer_line
            from ancestors join folders on ancestors.file = folders.file and ancestors.above = folders.folder
            group by all
        )

        select file, outer_line as line, cast(sum(stored_bytes) as bigint) as inner_bytes from nearest group by all
    """


def _given_filesystem(source: StorageSource, delivery: Delivery) -> str:
    if source.filesystem is None:
        raise ApportionError(
            f"{delivery.path}: the report does not say of which file system it is",
            "say it with 'filesystem' of the source",
        )
    return literal(source.filesystem)


REPORTS = (
    Report(
        "report",
        "GPFS quotas (-Y), KiB",
        lambda line: line.startswith(("mmrepquota:", "mmlsquota:", "*** Report for")),
        "(contains(raw, ':HEADER:') or starts_with(raw, '***'))",
        _gpfs,
    ),
    Report(
        "report",
        "Lustre quotas (lfs quota), KiB",
        lambda line: line.startswith("Disk quotas for"),
        r"regexp_matches(raw, '^\s*Filesystem\s+\S+\s+quota')",
        _lustre,
    ),
    Report(
        "report",
        "Robinhood report",
        lambda line: "spc_used" in [name.strip().lower() for name in line.split(",")],
        r"regexp_matches(raw, '(^|,)\s*spc_used\s*(,|$)')",
        _robinhood,
    ),
    Report("du", "folder sizes (du)", lambda line: _is_du(line), "false", _du),
)


def _is_du(line: str) -> bool:
    size, _, path = line.strip().partition("\t")
    return bool(path) and size.rstrip("KMGTP").replace(".", "", 1).isdigit()
