"""The cloud bill as FOCUS 1.0 files: January, the first days of February, and one week delivered again.

Two days of January are corrected once more, in a file that waits until the month is closed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

from .bill_lines import Line, bill_lines
from .clock import DAY, at, iso, month_bounds
from .company import CLOUD, NANO
from .files import write_csv
from .world import World

FEBRUARY = at("2026-02-01")
RESTATED = at("2026-01-12"), at("2026-01-19")
CORRECTED = at("2026-01-27"), at("2026-01-29")
WAITING = Path("waiting")
"""Below the inbox, where no source looks: what the provider sends after the close."""

_FOCUS_1_0 = """
AvailabilityZone BilledCost BillingAccountId BillingAccountName BillingCurrency BillingPeriodEnd
BillingPeriodStart ChargeCategory ChargeClass ChargeDescription ChargeFrequency ChargePeriodEnd
ChargePeriodStart CommitmentDiscountCategory CommitmentDiscountId CommitmentDiscountName
CommitmentDiscountStatus CommitmentDiscountType ConsumedQuantity ConsumedUnit ContractedCost
ContractedUnitPrice EffectiveCost InvoiceIssuerName ListCost ListUnitPrice PricingCategory PricingQuantity
PricingUnit ProviderName PublisherName RegionId RegionName ResourceId ResourceName ResourceType
ServiceCategory ServiceName SkuId SkuPriceId SubAccountId SubAccountName Tags
"""
COLUMNS = [*_FOCUS_1_0.split(), "x_Discount"]


def write_billing(inbox: Path, world: World) -> dict[str, int]:
    folder = inbox / "billing" / "focus"
    lines = bill_lines(world)
    january = [line for line in lines if (line.billing_month or line.start) < FEBRUARY]
    february = [line for line in lines if (line.billing_month or line.start) >= FEBRUARY]
    deliveries = [("2026-01", at("2026-02-03T06:00"), [*_rows(january, iso), *_broken()])]
    if february:
        deliveries.append(("2026-02", at("2026-02-05T06:00"), list(_rows(february, _spaced))))
    if world.end >= RESTATED[1]:
        restated = list(_rows(_restated(january), iso))
        deliveries.append(("2026-01-12_2026-01-19", at("2026-02-10T06:00"), restated))
    for window, delivered, rows in deliveries:
        _deliver(folder, window, delivered, rows)
    if world.end >= FEBRUARY:
        _deliver(
            inbox / WAITING, "2026-01-27_2026-01-29", at("2026-02-17T06:00"), list(_rows(_corrected(january), iso))
        )
    return {"bill lines": sum(len(rows) for _, _, rows in deliveries)}


def _deliver(folder: Path, window: str, delivered: int, rows: list[list[str]]) -> None:
    name = f"focus_{window}_{iso(delivered).replace('-', '').replace(':', '')}.csv.gz"
    write_csv(folder / name, ",".join(COLUMNS), rows, delivered)


def deliver_waiting(inbox: Path) -> list[Path]:
    """The provider corrects a month that is closed already; returns the files that arrived."""
    arrived = []
    for file in sorted((inbox / WAITING).glob("*")):
        arrived.append(file.rename(inbox / "billing" / "focus" / file.name))
    return arrived


@cache
def _spaced(second: int) -> str:
    """`2026-02-01 00:00:00`: another spelling of UTC that providers use."""
    return iso(second).replace("T", " ").removesuffix("Z")


def _money(nano: int) -> str:
    """Billionths as a decimal number, tiny ones in scientific notation as some providers print them."""
    if 0 < abs(nano) < 1_000:
        return f"{nano}E-9"
    sign, whole, part = "-" if nano < 0 else "", abs(nano) // NANO, abs(nano) % NANO
    return f"{sign}{whole}" + (f".{part:09d}".rstrip("0") if part else "")


def _rows(lines: Iterable[Line], time: Callable[[int], str]) -> Iterator[list[str]]:
    fixed = {
        "BillingAccountId": "str-001",
        "BillingAccountName": "Demo Company",
        "BillingCurrency": "USD",
        "InvoiceIssuerName": CLOUD,
        "ProviderName": CLOUD,
        "PublisherName": CLOUD,
        "RegionId": "eu-central",
        "RegionName": "Europe (Central)",
    }
    template = [fixed.get(column, "") for column in COLUMNS]
    places = {column: position for position, column in enumerate(COLUMNS)}
    for line in lines:
        period_start, period_end = month_bounds(line.billing_month or line.start)
        committed = bool(line.commitment)
        quantity = str(line.quantity) if line.quantity else ""
        row = template.copy()
        for column, value in (
            ("BilledCost", _money(line.billed)),
            ("BillingPeriodEnd", time(period_end)),
            ("BillingPeriodStart", time(period_start)),
            ("ChargeCategory", line.category),
            ("ChargeClass", line.charge_class or "NULL"),
            ("ChargeDescription", line.description),
            ("ChargeFrequency", line.frequency),
            ("ChargePeriodEnd", time(line.end)),
            ("ChargePeriodStart", time(line.start)),
            ("CommitmentDiscountCategory", "Usage" if committed else "NULL"),
            ("CommitmentDiscountId", line.commitment or "NULL"),
            ("CommitmentDiscountStatus", line.status or "NULL"),
            ("CommitmentDiscountType", "Reserved" if committed else "NULL"),
            ("ConsumedQuantity", quantity),
            ("ConsumedUnit", line.unit),
            ("ContractedCost", _money(line.effective or line.billed)),
            ("EffectiveCost", _money(line.effective)),
            ("ListCost", _money(line.list_cost)),
            ("PricingCategory", line.pricing),
            ("PricingQuantity", quantity),
            ("PricingUnit", line.unit),
            ("ResourceId", line.resource_id or "NULL"),
            ("ResourceType", line.resource_type),
            ("ServiceCategory", line.service_category),
            ("ServiceName", line.service),
            ("SkuId", line.sku),
            ("SubAccountId", line.account),
            ("Tags", json.dumps(line.tags, separators=(",", ":")) if line.tags else ""),
        ):
            row[places[column]] = value
        yield row


def _restated(lines: list[Line]) -> Iterator[Line]:
    """The usage of one week again: spot got cheaper on two days, some lines are gone, one is new."""
    first, last = RESTATED
    week = [line for line in lines if first <= line.start and line.end <= last and line.category == "Usage"]
    cheaper = range(at("2026-01-14"), at("2026-01-16"))
    charged_in_error = next(line.resource_id for line in week if line.sku == "h100-8-on-demand")
    for line in week:
        if line.resource_id == charged_in_error or (line.sku == "egress-cirrus" and line.start == at("2026-01-16")):
            continue
        if line.sku.endswith("-spot") and line.start in cheaper:
            cost = line.billed * 97 // 100
            line = replace(line, billed=cost, effective=cost)
        yield line
    yield Line(
        at("2026-01-17"),
        at("2026-01-18"),
        "Object Storage",
        "storage-retrieval",
        *[81_220_000_003] * 3,
        description="Archive retrieval, reported late",
        service_category="Storage",
        resource_id="speech-corpora",
        tags={"team": "speech"},
    )


def _corrected(lines: list[Line]) -> Iterator[Line]:
    """The usage of two days again: the provider makes up for an outage, and finds egress that it had not billed."""
    first, last = CORRECTED
    for line in lines:
        if first <= line.start and line.end <= last and line.category == "Usage":
            if line.sku == "h100-8-on-demand":
                cost = line.billed * 90 // 100
                line = replace(line, billed=cost, effective=cost)
            yield line
    yield Line(
        first,
        first + DAY,
        "Data Transfer",
        "egress-cirrus",
        *[412_370_000_007] * 3,
        description="Egress, reported late",
        service_category="Networking",
        resource_id="nat-cirrus",
        tags={"team": "vision"},
    )


def _broken() -> Iterator[list[str]]:
    """Three rows that no reader should trust: a cost that is no number, no end, an end before the start."""
    day = at("2026-01-03")
    good = _paid_line(day)
    for column, value in (
        ("BilledCost", "12,5O"),
        ("ChargePeriodEnd", ""),
        ("ChargePeriodEnd", iso(day - DAY)),
    ):
        (row,) = _rows([good], iso)
        row[COLUMNS.index(column)] = value
        yield row


def _paid_line(day: int) -> Line:
    cost = 12_500_000_000
    return Line(day, day + DAY, "Object Storage", "storage-standard", cost, cost, cost, description="Broken row")
