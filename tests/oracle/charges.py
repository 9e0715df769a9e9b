"""ALLOCATION §1: charges to days, hours, pools and components."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date

from .commitments import fee_parts, hours_since_1970, is_amortized, used_time
from .exact import (
    DAY,
    FOREVER,
    HOUR,
    Interval,
    Row,
    clip,
    first_payer,
    hour_interval,
    hours_touched,
    mapping,
    matches,
    nano,
    overlap,
    scaled,
    share,
    since_midnight,
    split,
    valid_on,
)

RESOURCES = {"gpu": "gpu_units", "cpu": "cpu_millicores", "memory": "memory_mib"}
HOURLY = ("gpu", "cpu", "memory", "energy")
WHOLE_PRICE = 1_000_000
Cell = tuple[str, str, int | None]
"""Pool, component, hour of the day (None for components that work by day)."""


@dataclass(frozen=True)
class Placement:
    """A node in a pool for a while, as the inventory says."""

    cluster_id: str
    node_name: str
    resource_id: str | None
    instance_type: str | None
    pool_id: str
    gpu_model: str | None
    interval: Interval
    amount: dict[str, int]


@dataclass(frozen=True)
class ChargePart:
    """What one bill line puts in one cell of the day, in nano-units."""

    charge_key: str
    currency: str
    pool_id: str
    component: str
    hour: int | None
    driver: str | None
    owner: tuple[str, str | None] | None
    list_cost: int
    billed_cost: int
    effective_cost: int


def placements(inventory: Iterable[Row], day: date) -> list[Placement]:
    """The inventory rows that overlap the day, earliest first."""
    found = []
    for row in inventory:
        start = since_midnight(row["valid_from_at"], day)
        end = FOREVER if row["valid_to_at"] is None else since_midnight(row["valid_to_at"], day)
        if row["pool_id"] and overlap((start, end), (0, DAY)) > 0:
            amount = {resource: row[column] or 0 for resource, column in RESOURCES.items()}
            found.append(
                Placement(
                    row["cluster_id"],
                    row["node_name"],
                    row["resource_id"],
                    row["instance_type"],
                    row["pool_id"],
                    row["gpu_model"],
                    (start, end),
                    amount,
                )
            )
    return sorted(found, key=lambda placement: placement.interval)


# --- which rule, which interval ----------------------------------------------------------------------------


def first_cost_rule(charge: Row, rules: Iterable[Row]) -> Row | None:
    fields = ("provider", "charge_category", "service_name", "sku_id", "resource_id")
    tags = mapping(charge["tags"])
    for rule in sorted(rules, key=lambda rule: rule["rule_order"]):
        if all(matches(rule[field], charge[field]) for field in fields) and matches(rule["tag"], tags):
            return rule
    return None


def charge_interval(charge: Row, rule: Row | None, day: date) -> Interval:
    """The time over which the charge is spread: its own, or its billing period.

    `rule` is the one valid on the first day of the billing period: a line has one spread, whatever day is looked at.
    """
    category = charge["charge_category"]
    one_time = category == "Purchase" and charge["charge_frequency"] == "One-Time"
    spread = rule["spread"] if rule else None
    if not spread:
        comes_with_use = charge["charge_frequency"] == "Usage-Based"
        over_period = one_time or (category in ("Credit", "Adjustment", "Tax") and not comes_with_use)
        spread = "billing_period" if over_period else "as_dated"
    if category == "Usage":
        spread = "as_dated"
    prefix = "billing_period" if spread == "billing_period" else "charge"
    start = since_midnight(charge[f"{prefix}_start_at"], day)
    return start, since_midnight(charge[f"{prefix}_end_at"], day)


def day_part(amount: int, interval: Interval) -> int:
    """The day's part of a charge over [s, e): a difference of running shares, so that days add up."""
    start, end = interval
    if start == end:
        return amount if 0 <= start < DAY else 0
    total = end - start
    upto_end, upto_start = clip(DAY, start, end) - start, clip(0, start, end) - start
    return share(amount, upto_end, total) - share(amount, upto_start, total)


# --- cells -------------------------------------------------------------------------------------------------


def hour_weights(interval: Interval, within: Interval = (-FOREVER, FOREVER)) -> dict[int, int]:
    """Milliseconds of the interval in each hour of the day; an instant counts as one."""
    start, end = interval
    if start == end:
        here = 0 <= start < DAY and within[0] <= start < within[1]
        return {start // HOUR: 1} if here else {}
    seen = max(start, within[0]), min(end, within[1])
    return {hour: overlap(seen, hour_interval(hour)) for hour in hours_touched(seen)}


def price_weights(instance_type: Row | None, presets: dict[str, Row], has_gpus: bool) -> dict[str, int]:
    """What part of a node's price is GPU, CPU and memory; without a known type all is its main resource."""
    weights = {}
    if instance_type is not None and instance_type["price_preset"]:
        weights = preset_weights(instance_type, presets[instance_type["price_preset"]])
    elif instance_type is not None:
        weights = {component: instance_type[f"{component}_price_weight"] or 0 for component in RESOURCES}
    return weights if any(weights.values()) else {"gpu" if has_gpus else "cpu": WHOLE_PRICE}


def preset_weights(instance_type: Row, preset: Row) -> dict[str, int]:
    """A preset prices a GPU, a core and a GiB, or the three parts of any node."""
    counts = {"gpu": instance_type["gpus"], "cpu": instance_type["cores"], "memory": instance_type["memory_gib"]}
    if preset["basis"] == "per_node":
        counts = {"gpu": int(counts["gpu"] > 0), "cpu": 1, "memory": 1}
    return {name: counts[name] * scaled(preset[f"{name}_weight"], WHOLE_PRICE) for name in RESOURCES}


def cell_weights(
    charge: Row,
    interval: Interval,
    rule: Row | None,
    nodes: Iterable[Placement],
    pools: dict[str, Row],
    instance_types: dict[str, Row],
    presets: dict[str, Row],
) -> dict[Cell, int]:
    """The cells over which the day's part of a charge is split, with their weights."""
    is_daily = rule is not None and rule["component"] != "node" and rule["component"] not in HOURLY
    if charge["commitment_status"] == "Unused" and not is_daily:
        return {("commitments", "other", None): 1}
    if rule is None:
        return {("unmapped", "other", None): 1}
    component, pool_id = rule["component"], rule["pool_id"]
    if is_daily:
        return {(pool_id or "unmapped", component, None): 1}

    weights: dict[Cell, int] = defaultdict(int)
    for node in nodes:
        if charge["resource_id"] is None or node.resource_id != charge["resource_id"]:
            continue
        prices = {component: 1}
        if component == "node":
            prices = price_weights(instance_types.get(node.instance_type), presets, node.amount["gpu"] > 0)
        for hour, milliseconds in hour_weights(interval, node.interval).items():
            for priced, price in prices.items():
                weights[node.pool_id, priced, hour] += milliseconds * price
    if weights:
        return weights

    if not pool_id:
        return {("unmapped", "other", None): 1}
    prices = {component: 1}
    if component == "node":
        pool = pools.get(pool_id, {})
        default = instance_types.get(pool.get("default_instance_type"))
        prices = price_weights(default, presets, bool(pool.get("gpu_model")))
    for hour, milliseconds in hour_weights(interval).items():
        for priced, price in prices.items():
            weights[pool_id, priced, hour] += milliseconds * price
    return weights


def charge_parts(tables: dict[str, list[Row]], seeds: dict[str, list[Row]], day: date) -> list[ChargePart]:
    """Every bill line of the day, cut into its cells."""
    cost_rules = valid_on(seeds["cost_rules"], day)
    owner_rules = [rule for rule in valid_on(seeds["payer_rules"], day) if rule["tag"]]
    pools = {row["pool_id"]: row for row in valid_on(seeds["pools"], day)}
    instance_types = {row["instance_type"]: row for row in valid_on(seeds["instance_types"], day)}
    presets = {row["preset"]: row for row in seeds["price_presets"]}
    nodes = placements(tables["node_inventory"], day)

    def cells(charge: Row, interval: Interval, rule: Row | None, costs: list[int], key: str) -> list[ChargePart]:
        weights = cell_weights(charge, interval, rule, nodes, pools, instance_types, presets)
        ordered = sorted(weights, key=lambda cell: (cell[0], cell[1], -1 if cell[2] is None else cell[2]))
        columns = [split(cost, [weights[cell] for cell in ordered]) for cost in costs]
        has_owner = rule is not None and rule["has_owner"]
        owner = first_payer(owner_rules, {"tag": mapping(charge["tags"])}) if has_owner else None
        driver = (rule["driver"] or None) if rule else None
        return [
            ChargePart(key, charge["currency"], pool_id, component, hour, driver, owner, *amounts)
            for (pool_id, component, hour), *amounts in zip(ordered, *columns, strict=True)
        ]

    parts = []
    for charge in tables["charges"]:
        rule = first_cost_rule(charge, cost_rules)
        first_day = charge["billing_period_start_at"].date()
        interval = charge_interval(charge, first_cost_rule(charge, valid_on(seeds["cost_rules"], first_day)), day)
        on_the_day = overlap(interval, (0, DAY)) > 0 or (interval[0] == interval[1] and 0 <= interval[0] < DAY)
        if not on_the_day:
            continue
        billed = nano(charge["billed_cost"]) or 0
        listed, effective = nano(charge["list_cost"]), 0 if is_amortized(charge) else nano(charge["effective_cost"])
        costs = [billed if cost is None else cost for cost in (listed, billed, effective)]
        parts += cells(charge, interval, rule, [day_part(cost, interval) for cost in costs], charge["charge_key"])

    unused: dict[str, int] = defaultdict(int)
    currencies: dict[str, str] = {}
    for fee, covered, hour, cost in fee_parts(tables["charges"], day):
        if covered is None:
            unused[fee["charge_key"]] += cost
            currencies[fee["charge_key"]] = fee["currency"]
            continue
        key = f"{fee['charge_key']} > {covered['charge_key']} @ {hours_since_1970(day, hour)}"
        start, end = used_time(covered, day)
        time = max(start, hour_interval(hour)[0]), min(end, hour_interval(hour)[1])
        parts += cells(covered, time, first_cost_rule(covered, cost_rules), [0, 0, cost], key)
    for fee_key, cost in unused.items():
        if cost:
            place = ("commitments", "other", None, None, None)
            parts.append(ChargePart(f"{fee_key} > unused", currencies[fee_key], *place, 0, 0, cost))
    return parts
