"""Files that stay as they are when they are made again: equal figures give equal bytes, and no needless writing.

Whoever archives, signs or imports a file must be able to compare it with the one of yesterday.
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterable, Sequence
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import xlsxwriter
from xlsxwriter.worksheet import Worksheet

MOST_WIDE = 60
"""Letters of a spreadsheet's column; longer text is cut on the screen, not in the cell."""


def put(path: Path, content: bytes) -> bool:
    """Leaves the file alone if it says this already, else replaces it whole. Returns whether it was written."""
    if path.exists() and path.read_bytes() == content:
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f"{path.name}.tmp-{os.getpid()}")
    beside.write_bytes(content)
    beside.replace(path)
    return True


def csv_bytes(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> bytes:
    """UTF-8, comma, one header line, `\\n`; a value has one spelling, and none is the empty field."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([_text(value) for value in row] for row in rows)
    return text.getvalue().encode()


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, datetime):
        return value.isoformat(timespec="microseconds")
    return str(value)


class Book:
    """A workbook in memory. XlsxWriter stamps what is inside of the file with a fixed day; so is its own date here."""

    def __init__(self, title: str, made_at: datetime) -> None:
        self._bytes = io.BytesIO()
        # A name that starts with = or looks like an address or a number is a name.
        plain = {"strings_to_formulas": False, "strings_to_urls": False, "strings_to_numbers": False}
        self.workbook = xlsxwriter.Workbook(self._bytes, {"in_memory": True, **plain})
        self.workbook.set_properties({"title": title, "author": "Apportion", "created": made_at.replace(microsecond=0)})
        self.formats = {
            "title": self.workbook.add_format({"bold": True, "font_size": 15}),
            "soft": self.workbook.add_format({"font_color": "#566072"}),
            "bold": self.workbook.add_format({"bold": True}),
            "head": self.workbook.add_format({"bold": True, "bottom": 1, "text_wrap": True, "valign": "top"}),
            "cents": self.workbook.add_format({"num_format": "#,##0.00"}),
            "total": self.workbook.add_format({"num_format": "#,##0.00", "bold": True, "top": 1}),
            "exact": self.workbook.add_format({"num_format": "#,##0.000000000"}),
            "rate": self.workbook.add_format({"num_format": "#,##0.000000"}),
            "hours": self.workbook.add_format({"num_format": "#,##0.0"}),
            "share": self.workbook.add_format({"num_format": "0.0%"}),
            "date": self.workbook.add_format({"num_format": "yyyy-mm-dd"}),
            "text": self.workbook.add_format({}),
        }

    def sheet(self, name: str, columns: Sequence[tuple[str, str]], rows: Iterable[Sequence[Any]]) -> Worksheet:
        """A table from the first row on: (column, format) and the rows below."""
        sheet = self.workbook.add_worksheet(name)
        self.table(sheet, 0, columns, rows)
        sheet.freeze_panes(1, 0)
        return sheet

    def table(
        self, sheet: Worksheet, top: int, columns: Sequence[tuple[str, str]], rows: Iterable[Sequence[Any]]
    ) -> int:
        """Returns the row below the table. Numbers become a spreadsheet's floating-point numbers: fifteen digits."""
        widths = [len(name) for name, _ in columns]
        for place, (name, _) in enumerate(columns):
            sheet.write_string(top, place, name, self.formats["head"])
        below = top + 1
        for row in rows:
            for place, value in enumerate(row):
                if value is None:
                    continue
                shape = self.formats[columns[place][1]]
                if isinstance(value, int | float | Decimal):
                    sheet.write_number(below, place, float(value), shape)
                elif isinstance(value, date):
                    sheet.write_datetime(below, place, value, shape)
                else:
                    sheet.write_string(below, place, str(value), shape)
                widths[place] = max(widths[place], 14 if not isinstance(value, str) else len(value))
            below += 1
        for place, width in enumerate(widths):
            sheet.set_column(place, place, min(width + 2, MOST_WIDE))
        return below

    def finished(self) -> bytes:
        self.workbook.close()
        return self._bytes.getvalue()


def remove_leftovers(folder: Path) -> None:
    """What a killed process left beside its files."""
    for leftover in folder.glob("**/*.tmp-*"):
        leftover.unlink()
