"""What a landing did, in numbers that must add up."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal


@dataclass
class TableReport:
    """The rows of one table. read = landed + quarantined + skipped + superseded + outside."""

    read: int = 0
    """Rows in the files that were opened for the window."""
    landed: int = 0
    """Of them, those that are on at least one day of the window now."""
    quarantined: int = 0
    skipped: int = 0
    """Rows that are no records of their own, such as job steps."""
    superseded: int = 0
    """Rows that a newer delivery replaces."""
    outside: int = 0
    """Rows whose days are not in the window."""
    rows: int = 0
    """Rows written: a record is on every day that it overlaps."""
    bytes: int = 0


@dataclass
class LandingReport:
    source: str
    window_start: date
    window_end: date
    tables: dict[str, TableReport] = field(default_factory=dict)
    files_read: list[str] = field(default_factory=list)
    files_known: int = 0
    billed: dict[str, Decimal] = field(default_factory=dict)
    """Billed cost of the charges that are in the window, each once and whole, by currency."""
    days_written: list[date] = field(default_factory=list)
    """Days that have rows now."""
    days_changed: list[date] = field(default_factory=list)
    """Days whose content is another than before, also those that became empty."""
    notes: dict[str, int] = field(default_factory=dict)
    variants: Counter[str] = field(default_factory=Counter)
    """What the files that were read turned out to be, and how many of each."""

    @property
    def rows(self) -> int:
        return sum(table.rows for table in self.tables.values())

    @property
    def bytes(self) -> int:
        return sum(table.bytes for table in self.tables.values())

    @property
    def quarantined(self) -> int:
        return sum(table.quarantined for table in self.tables.values())

    @property
    def skipped(self) -> int:
        return sum(table.skipped for table in self.tables.values())

    def metadata(self) -> dict[str, object]:
        """Plain values, for whoever shows them."""
        shown: dict[str, object] = {
            "rows": self.rows,
            "bytes": self.bytes,
            "quarantined": self.quarantined,
            "skipped": self.skipped,
            "superseded": sum(table.superseded for table in self.tables.values()),
            "files_read": len(self.files_read),
            "files_known": self.files_known,
            "days_written": len(self.days_written),
            "days_changed": len(self.days_changed),
        }
        shown |= {f"rows_{name}": table.rows for name, table in self.tables.items() if len(self.tables) > 1}
        shown |= {f"billed_{currency.lower()}": str(amount) for currency, amount in sorted(self.billed.items())}
        shown |= {"formats": "; ".join(sorted(self.variants))} if self.variants else {}
        return shown | self.notes
