"""The columns of sacct and sacctmgr: how they are spelled, and what a cell of each can look like.

sacct neither quotes nor escapes. A job's name may hold the delimiter or a line break, and then only the shape of the
other cells tells where the name ends.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

_SHAPES = {
    r"\d+(?:_(?:\d+|\[[^\]]*\]))?(?:\+\d+)?(?:\.[\w+-]+)?": "JobID JobIDRaw",
    r"|Unknown|None|N/A|\(null\)|\d[\d.]*|\d{4}[-/]\d\d[-/]\d\d[T ][^|\n]*": (
        "Submit Eligible Start End TimeStart TimeEnd StartTime EndTime"
    ),
    r"|[A-Za-z_+*]+(?: by \S+)?": "State",
    r"|\d+:\d+": "ExitCode DerivedExitCode",
    r"|[\d.]+[KMGTP]?": (
        "AllocCPUS AllocNodes AssocID CPUTimeRAW DBIndex ElapsedRaw GID NCPUS NNodes NTasks Priority QOSRAW ReqCPUS"
        " ReservationId Restarts StateRaw UID WCKeyID PlannedCPURAW ResvCPURAW"
    ),
    r"|[\d:.-]+|UNLIMITED|Partition_Limit|INVALID": (
        "CPUTime Duration Elapsed Planned PlannedCPU Reserved ResvCPU Suspended SystemCPU Timelimit TimelimitRaw"
        " TotalCPU UserCPU"
    ),
    r"|[^\s=,]+=[^\s,]*(?:,[^\s=,]+=[^\s,]*)*": (
        "AllocTRES ReqTRES TRES TRESUsageInAve TRESUsageInMax TRESUsageInMaxNode TRESUsageInMaxTask TRESUsageInMin"
        " TRESUsageInMinNode TRESUsageInMinTask TRESUsageInTot TRESUsageOutAve TRESUsageOutMax TRESUsageOutMaxNode"
        " TRESUsageOutMaxTask TRESUsageOutMin TRESUsageOutMinNode TRESUsageOutMinTask TRESUsageOutTot"
    ),
    r"\S*": "Account Cluster ParentName Partition QOS User",
    r"[^\n]*": (
        "AllocGRES AveCPU AveCPUFreq AveDiskRead AveDiskWrite AvePages AveRSS AveVMSize BlockID ConsumedEnergy"
        " ConsumedEnergyRaw Flags Group Layout MaxDiskRead MaxDiskReadNode MaxDiskReadTask MaxDiskWrite"
        " MaxDiskWriteNode MaxDiskWriteTask MaxPages MaxPagesNode MaxPagesTask MaxRSS MaxRSSNode MaxRSSTask MaxVMSize"
        " MaxVMSizeNode MaxVMSizeTask McsLabel MinCPU MinCPUNode MinCPUTask NodeList QOSREQ ReqCPUFreq ReqCPUFreqGov"
        " ReqCPUFreqMax ReqCPUFreqMin ReqGRES ReqMem ReqNodes Reservation ReqReservation SegmentSize SLUID"
        " ClusterNodes Event EventRaw NodeName NodeNames Share DefQOS DefaultQOS ID ParentID LFT RGT Descr Org Assocs"
        " UnusedWall GrpJobs GrpTRES GrpSubmit GrpWall GrpTRESMins GrpTRESRunMins GrpCPUs GrpCPUMins GrpNodes GrpMem"
        " MaxJobs MaxTRES MaxTRESPerNode MaxSubmit MaxWall MaxTRESMins MaxCPUs MaxCPUMins MaxNodes Name"
    ),
    r"(?s:.*)": (
        "AdminComment Comment Constraints Container Extra FailedNode JobName Licenses Reason StdErr StdIn StdOut"
        " SubmitLine SystemComment WCKey WorkDir"
    ),
}
"""Patterns, and the columns whose cells match them. Only those of the last line are text that anybody may choose."""

_LISTS = "AllocGRES AllocTRES NodeList NodeName NodeNames ReqGRES ReqNodes ReqTRES TRES"
"""Columns whose cells may be lists with commas."""
_ITEM = r"(?:billing|cpu|energy|mem|node|pages|vmem|(?:bb|fs|gres|ic|license)/[^=,\s]+)=[^=,\s]*"
_BRACKETS = r'(?:[^,\[\]"]*\[[\d,%-]+\])+[^,\[\]]*'
_WITH_COMMAS = re.compile(rf'(?<![^,])(?:{_ITEM}(?:,{_ITEM})+|{_BRACKETS}|"(?:[^"]|"")*")(?![^,])')
COMMA = "\ue000"
"""Stands for a comma inside a cell of a file in which commas separate the cells."""

_ALIASES = {"start": "timestart", "end": "timeend", "parname": "parentname", "parent": "parentname"}
"""What other versions and formats of sacctmgr print for the columns that its connectors read."""
_TELLING = 6
"""How many columns at the beginning of a line are looked at to tell whether a record begins there."""
MOST_SPARE = 100
"""Delimiters inside a record's free text beyond which it counts as broken."""


def guarded(text: str, delimiter: str) -> str:
    """A line in which the commas of lists, and of cells that another tool quoted, are no delimiters."""
    if delimiter != ",":
        return text

    def guard(found: re.Match[str]) -> str:
        cell = found[0][1:-1].replace('""', '"') if found[0].startswith('"') else found[0]
        return cell.replace(",", COMMA)

    return _WITH_COMMAS.sub(guard, text)


def unguarded(text: str) -> str:
    return text.replace(COMMA, ",")


def letters(name: str) -> str:
    """How names are compared: `Node Name`, `nodename` and `NodeName` are one."""
    return re.sub(r"[^a-z0-9]", "", name.lower())


@dataclass(frozen=True)
class Column:
    name: str
    """Its letters, as `letters` gives them."""
    shape: re.Pattern[str]
    is_free: bool
    """Whether a delimiter or a line break may be part of a cell."""
    is_known: bool
    is_list: bool = False

    def fits(self, cell: str) -> bool:
        return bool(self.shape.fullmatch(cell.strip(" \t\r")))

    def may_hold(self, delimiter: str) -> bool:
        return self.is_free or (self.is_list and delimiter == ",")


_FREE = re.compile(r"(?s:.*)")
_KNOWN = {
    letters(name): Column(letters(name), re.compile(shape), shape == _FREE.pattern, True, name in _LISTS.split())
    for shape, names in _SHAPES.items()
    for name in names.split()
}


def column(name: str) -> Column:
    """A column of a file; of one that Slurm does not have, a cell may be anything."""
    found = _KNOWN.get(letters(name))
    return found or Column(letters(name), _FREE, True, False)


def is_known(name: str) -> bool:
    return letters(name) in _KNOWN or letters(name) in _ALIASES


def place_of(name: str, header: Sequence[Column]) -> int | None:
    """Where a file has a column, under its own name or another version's."""
    wanted = letters(name)
    for place, found in enumerate(header):
        if wanted in (found.name, _ALIASES.get(found.name)):
            return place
    return None


def misspelled(name: str, delimiter: str) -> str | None:
    """What an unknown name said before a bit of it was damaged: a column that differs in one letter, or two with the
    delimiter between them."""
    plain = name.strip().lower()
    for place in range(1, len(name)):
        pair = name[:place], name[place + len(delimiter) :]
        if all(letters(part) in _KNOWN for part in pair):
            return delimiter.join(pair)
    for known in (known for names in _SHAPES.values() for known in names.split()):
        if len(known) == len(plain) and sum(a != b for a, b in zip(known.lower(), plain, strict=True)) == 1:
            return known
    return None


def begins_record(cells: Sequence[str], header: Sequence[Column]) -> bool:
    """Whether a line that is no whole record begins like one, so that it cannot be the rest of the one before it."""
    head = [(cell, of) for cell, of in zip(cells[:_TELLING], header, strict=False) if not of.is_free]
    tells = any(cell.strip() and not of.fits("text") for cell, of in head)
    return tells and all(of.fits(cell) for cell, of in head)


def fit(pieces: Sequence[str], delimiter: str, header: Sequence[Column]) -> list[str | None] | None:
    """The cells of a record whose free text holds delimiters or line breaks, so that every other cell has its shape.

    Where the record can be cut in several ways, the cells on which they agree are certain and the others are None.
    Without any way, or if more than free text is uncertain, there is no answer.
    """
    spare = len(pieces) - len(header)
    if not 0 <= spare <= MOST_SPARE:
        return None
    spread = range(spare + 1)

    def cell(place: int, used: int, more: int) -> str:
        return delimiter.join(pieces[place + used : place + used + more + 1])

    def choices(place: int, used: int) -> list[int]:
        most = spare - used if header[place].may_hold(delimiter) else 0
        return [more for more in range(most + 1) if header[place].fits(cell(place, used, more))]

    width = len(header)
    takes = [[choices(place, used) for used in spread] for place in range(width)]
    reached = [{0}]
    for place in range(width):
        reached.append({used + more for used in reached[place] for more in takes[place][used]})
    leads = {spare} & reached[width]
    cells: list[str | None] = [None] * width
    for place in reversed(range(width)):
        ways = [(used, more) for used in reached[place] for more in takes[place][used] if used + more in leads]
        found = {cell(place, used, more) for used, more in ways}
        if not found or (len(found) > 1 and not header[place].is_free):
            return None
        cells[place] = found.pop() if len(found) == 1 else None
        leads = {used for used, _ in ways}
    return cells
