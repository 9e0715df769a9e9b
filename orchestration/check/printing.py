"""A check's findings for people, and for programs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict

from rich.console import Console
from rich.markup import escape

from orchestration.check.files import FileCheck


def print_file(found: FileCheck, console: Console) -> None:
    """What a file is in one line, and below it everything that somebody should know."""

    def say(mark: str, text: str) -> None:
        console.print(f"    {mark} {escape(text)}", soft_wrap=True)

    mark = "[bold red]✗[/]" if found.has_failed else "[yellow]![/]" if found.has_remarks else "[green]✓[/]"
    console.print(f"{mark} {escape(f'{found.source}: {found.path.name}')}", soft_wrap=True)
    if found.problem:
        say("[red]✗[/]", found.problem)
        if found.remedy:
            say("→", found.remedy)
        return
    days = f"{found.first_day} to {found.last_day or 'open'}"
    counts = [f"{found.rows:,} rows", *([f"{found.skipped:,} skipped"] if found.skipped else [])]
    say(" ", f"{found.variant or found.kind} → {found.table}; {days}; {', '.join(counts)}")
    for total in found.totals:
        say(
            " ",
            f"{total.category:<10} {total.lines:>9,} lines  {total.billed:>20,.9f} billed"
            f"  {total.effective:>20,.9f} effective {total.currency}",
        )
    if found.bad:
        sign = "[red]✗[/]" if found.too_many_bad else "[yellow]![/]"
        say(sign, f"{found.bad:,} rows cannot be read" + (", more than 'max_bad_share'" if found.too_many_bad else ""))
        for row in found.bad_rows:
            say(" ", f"  line {row.line}: {row.reason}")
    if found.unknown_columns:
        say("[yellow]![/]", f"unknown columns, not read: {', '.join(found.unknown_columns)}")
    for doubt in found.doubts:
        say("[yellow]?[/]", doubt)
    if found.unmapped:
        say("[yellow]![/]", f"no rule knows {'; '.join(found.unmapped)}")
    for overlap in found.overlaps:
        say(" ", overlap)


def print_summary(found: Sequence[FileCheck], console: Console) -> None:
    failed = sum(one.has_failed for one in found)
    remarked = sum(one.has_remarks and not one.has_failed for one in found)
    console.print(
        f"{len(found)} files: {len(found) - failed - remarked} fine, {remarked} with remarks, {failed} refused"
    )


def as_json(found: Iterable[FileCheck]) -> str:
    return json.dumps([asdict(one) for one in found], default=str, ensure_ascii=False, indent=2)
