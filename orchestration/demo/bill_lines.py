"""The cloud provider's charges as such: what was charged, for when, at which list, billed and effective cost.

Amounts are whole billionths of a dollar. Committed nodes cost nothing when billed by the hour; their fee is a
purchase row, and its amortized share is the effective cost of the hours that it covers (or of nobody).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from .clock import DAY, HOUR, PERIOD_START, at, dice, month_bounds
from .company import CLOUD, COMMITMENTS, CONTRACT_DISCOUNT_PERCENT, LIST_PRICE, NANO, RESERVED_PRICE
from .fleet import Stay
from .world import World, mix


@dataclass(slots=True)
class Line:
    """One row of the bill."""

    start: int
    end: int
    service: str
    sku: str
    list_cost: int = 0
    billed: int = 0
    effective: int = 0
    category: str = "Usage"
    frequency: str = "Usage-Based"
    charge_class: str = ""
    description: str = ""
    service_category: str = "Compute"
    account: str = "ml-platform"
    resource_id: str = ""
    resource_type: str = ""
    pricing: str = "Standard"
    commitment: str = ""
    status: str = ""
    quantity: float = 0
    unit: str = ""
    tags: dict[str, str] = field(default_factory=dict)
    billing_month: int = 0
    """Any second of the billing period; 0: that of the charge."""


def bill_lines(world: World) -> list[Line]:
    """Every line of the period, in order of charge start."""
    lines = [
        *_compute(world),
        *_storage(world),
        *_network(world),
        *_small_change(world),
        *_monthly(world),
        *_one_offs(),
    ]
    kept = [line for line in lines if line.start < world.end]
    return sorted(kept, key=lambda line: (line.start, line.end, line.service, line.sku, line.resource_id))


def _compute(world: World) -> Iterator[Line]:
    """An hourly line per node, and one per hour in which a commitment was not fully used."""
    rng = dice(world.seed, "spot prices")
    spot = {hour: int(rng.integers(310, 450)) for hour in range(PERIOD_START, at("2026-02-05"), HOUR)}
    covered: dict[tuple[str, int], int] = defaultdict(int)
    for stay in world.fleet.stays:
        if stay.provider != CLOUD:
            continue
        first = max(stay.start, PERIOD_START)
        last = world.end if stay.end is None else min(stay.end, world.end)
        for hour in range(first // HOUR * HOUR, last, HOUR):
            line = _node_hour(stay, max(hour, first), min(hour + HOUR, last), spot[hour])
            if line.commitment:
                covered[stay.machine.name, hour] += line.effective
            yield line
    for machine, (commitment, units) in COMMITMENTS.items():
        for hour in range(PERIOD_START, world.end, HOUR):
            unused = units * RESERVED_PRICE[machine] - covered[machine, hour]
            if unused > 0:
                yield Line(
                    hour,
                    hour + HOUR,
                    "Virtual Machines",
                    f"{machine}-reserved",
                    effective=unused,
                    description=f"Unused commitment {machine}",
                    resource_id=commitment,
                    resource_type="Commitment",
                    pricing="Committed",
                    commitment=commitment,
                    status="Unused",
                )


def _node_hour(stay: Stay, start: int, end: int, spot_permille: int) -> Line:
    machine, seconds = stay.machine.name, end - start
    list_cost = LIST_PRICE[machine] * seconds // HOUR
    commitment = status = ""
    if stay.pool.endswith("reserved"):
        billed, effective = 0, RESERVED_PRICE[machine] * seconds // HOUR
        purchase, pricing, status = "reserved", "Committed", "Used"
        commitment = COMMITMENTS[machine][0]
    elif stay.pool.endswith("spot"):
        billed = effective = list_cost * spot_permille // 1000
        purchase, pricing = "spot", "Dynamic"
    else:
        billed = effective = list_cost * (100 - CONTRACT_DISCOUNT_PERCENT) // 100
        purchase, pricing = "on-demand", "Standard"
    hour = start // HOUR * HOUR
    return Line(
        hour,
        hour + HOUR,
        "Virtual Machines",
        f"{machine}-{purchase}",
        list_cost,
        billed,
        effective,
        description=f"{machine}, {purchase}",
        resource_id=stay.resource_id,
        resource_type="Virtual Machine",
        pricing=pricing,
        commitment=commitment,
        status=status,
        quantity=round(seconds / HOUR, 6),
        unit="Hours",
        tags={"cluster": stay.cluster},
    )


BUCKETS: dict[str, tuple[int, dict[str, str]]] = {
    "vision-datasets": (410, {"team": "vision", "project": "vision-detect"}),
    "nlp-checkpoints": (620, {"team": "nlp", "project": "nlp-foundation"}),
    "speech-corpora": (96, {"team": "speech"}),
    "search-index": (150, {"team": "search-eng"}),  # a tag that no payer rule knows
    "corp-datasets": (830, {}),  # shared, measured per path
    "legacy-dumps": (75, {}),  # nobody knows whose
}
"""Bucket → TiB at the start, tags."""
_PRICE_PER_TIB_DAY = 756_164_384
"""About 23 dollars a month."""


def _storage(world: World) -> Iterator[Line]:
    for day in world.days:
        for bucket, (tib, tags) in BUCKETS.items():
            size = tib * 1000 + (day - PERIOD_START) // DAY * (tib % 7 + 1) * 40  # thousandths of a TiB
            cost = size * _PRICE_PER_TIB_DAY // 1000
            resource = {
                "resource_id": bucket,
                "resource_type": "Bucket",
                "service_category": "Storage",
                "tags": tags,
            }
            yield _paid(day, DAY, "Object Storage", "storage-standard", cost, "Standard storage", **resource)
            requests = 320 + mix(bucket, day) % 5_000  # some hundred billionths of a dollar
            yield _paid(day, DAY, "Object Storage", "storage-requests", requests, "Requests", **resource)


def _paid(start: int, seconds: int, service: str, sku: str, cost: int, text: str, **more: object) -> Line:
    """A line whose billed and effective cost are the same, at list price."""
    return Line(start, start + seconds, service, sku, cost, cost, cost, description=text, **more)


def _network(world: World) -> Iterator[Line]:
    """Egress per gateway and day. Part of it is tagged by the team that asked for an own gateway."""
    gateways = (
        ("nat-nimbus", "egress-nimbus", 61, {}),
        ("nat-nimbus-chat", "egress-nimbus", 84, {"team": "assistant", "project": "assistant-serving"}),
        ("nat-cirrus", "egress-cirrus", 47, {}),
        ("nat-cirrus-mirror", "egress-cirrus", 12, {"project": "nlp-foundation"}),
    )
    for day in world.days:
        for gateway, sku, dollars, tags in gateways:
            cost = dollars * NANO + mix(gateway, day) * 7
            more = {"resource_id": gateway, "resource_type": "NAT Gateway", "service_category": "Networking"}
            yield _paid(day, DAY, "Data Transfer", sku, cost, "Data transfer out", tags=tags, **more)


def _small_change(world: World) -> Iterator[Line]:
    """Lines that cost nothing are most of a real bill."""
    for day in world.days:
        for what in ("metrics", "logs", "audit", "dns", "keys"):
            yield Line(
                day,
                day + DAY,
                "Monitoring",
                f"free-{what}",
                description=f"{what}, free tier",
                service_category="Management and Governance",
            )


def _monthly(world: World) -> Iterator[Line]:
    """Fees of a whole month, billed at its start even when the month has only begun."""
    month = PERIOD_START
    while month < world.end:
        start, end = month_bounds(month)
        hours = (end - start) // HOUR
        commitment, units = COMMITMENTS["h100-8"]
        yield Line(
            start,
            end,
            "Virtual Machines",
            "h100-8-commitment",
            list_cost=units * LIST_PRICE["h100-8"] * hours,
            billed=units * RESERVED_PRICE["h100-8"] * hours,
            category="Purchase",
            frequency="Recurring",
            description="Commitment fee, 14 × h100-8, three years, nothing upfront",
            resource_id=commitment,
            resource_type="Commitment",
            pricing="Committed",
            commitment=commitment,
        )
        support = {"category": "Purchase", "frequency": "Recurring", "service_category": "Other"}
        yield _paid(
            start,
            end - start,
            "Support",
            "support-enterprise",
            18_500 * NANO,
            "Enterprise support",
            **support,
        )
        if end <= at("2026-02-01"):  # what is settled when a month is over
            yield from _settlement(start, end)
        month = end


def _settlement(start: int, end: int) -> Iterator[Line]:
    length = end - start
    credit = {"category": "Credit", "frequency": "One-Time", "service_category": "Other"}
    yield replace(
        _paid(start, length, "Virtual Machines", "credit-growth", -12_000 * NANO, "Growth programme", **credit),
        list_cost=0,
    )
    yield replace(
        _paid(start, length, "Virtual Machines", "credit-l4-sla", -450_250_000_000, "SLA credit, L4", **credit),
        list_cost=0,
    )
    tax = {"category": "Tax", "frequency": "One-Time", "service_category": "Other"}
    yield _paid(start, length, "Tax", "vat", 2_913_371_845_113, "VAT on support and storage", **tax)
    rounding = {"category": "Adjustment", "frequency": "One-Time", "service_category": "Other"}
    yield _paid(start, length, "Billing", "rounding", -123, "Rounding", **rounding)


def _one_offs() -> Iterator[Line]:
    commitment, units = COMMITMENTS["l4-8"]
    yield Line(
        PERIOD_START,
        PERIOD_START + DAY,
        "Virtual Machines",
        "l4-8-commitment",
        list_cost=units * LIST_PRICE["l4-8"] * 365 * 24,
        billed=units * RESERVED_PRICE["l4-8"] * 365 * 24,
        category="Purchase",
        frequency="One-Time",
        description="Commitment 6 × l4-8, one year, all upfront",
        resource_id=commitment,
        resource_type="Commitment",
        pricing="Committed",
        commitment=commitment,
    )
    # a correction that belongs to a day before the period, billed in January
    yield Line(
        at("2025-12-20"),
        at("2025-12-21"),
        "Virtual Machines",
        "h100-8-on-demand",
        billed=-911_405_000_000,
        effective=-911_405_000_000,
        charge_class="Correction",
        description="Refund, instance was not reachable",
        resource_id="i-9999deadbeef",
        billing_month=PERIOD_START,
    )
    yield Line(
        at("2026-01-07T09:00"),
        at("2026-01-07T17:00"),
        "Virtual Machines",
        "a100-8-on-demand",
        billed=-38_098_380_001,
        effective=-38_098_380_001,
        charge_class="Correction",
        description="Refund, disk errors",
        resource_id="vm-refund-a100",
    )
    yield _paid(at("2026-01-09T14:00"), 0, "Object Storage", "data-import", 120 * NANO, "Import device", tags={})
    for day in (at("2026-01-02"), at("2026-01-12")):
        tags = {"owner": "unknown"}
        yield _paid(day, DAY, "Quantum Sandbox", "qpu-minutes", 412_500_000_001, "QPU minutes", tags=tags)
