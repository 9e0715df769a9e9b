"""The worked example of the allocation rules, as a world: one pool, two nodes, three jobs, three hours."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

from orchestration.landing.schemas import TABLES

from .seed_tables import CONSTANTS, SEED_COLUMNS, UNDATED, Row
from .worlds import World, row

POOL = "h100-reserved"


def seed_row(table: str, /, **values: Any) -> Row:
    """A seed row that is always valid unless said otherwise."""
    unknown = values.keys() - set(SEED_COLUMNS[table])
    if unknown:
        raise ValueError(f"{table} has no column {sorted(unknown)}")
    return dict.fromkeys(SEED_COLUMNS[table]) | ({} if table in UNDATED else {"reason": "example"}) | values


def gpus(count: float) -> int:
    return int(count * 25_200)


class Example:
    """A small company to add to: hour offsets instead of timestamps, whole GPUs, cores and GiB."""

    def __init__(self, day: date = date(2026, 1, 5)) -> None:
        self.day = day
        self.world = World(0, day, {}, {name: [] for name in SEED_COLUMNS} | CONSTANTS)

    def at(self, hour: float) -> datetime:
        return datetime.combine(self.day, time(), UTC) + timedelta(hours=hour)

    def add(self, table: str, **values: Any) -> None:
        rows = self.world.tables.setdefault(table, [])
        provenance = {"source": "test", "delivery": "example", "line": len(rows) + 1}
        rows.append(row(table, **provenance, delivered_at=self.at(240), **values))

    def policy(self, table: str, **values: Any) -> None:
        self.world.seeds[table].append(seed_row(table, **values))

    def node(self, name: str, start: float, end: float, pool: str = POOL, **values: Any) -> None:
        size = {"gpu_units": gpus(8), "cpu_millicores": 96_000, "memory_mib": 1024 * 1024}
        place = {"cluster_id": "c", "node_name": name, "resource_id": f"i-{name}", "pool_id": pool}
        times = {"valid_from_at": self.at(start), "valid_to_at": self.at(end)}
        self.add("node_inventory", **({**place, **size, **times, "instance_type": "h100.8x"} | values))

    def job(
        self,
        key: str,
        team: str | None,
        node: str | None,
        holds: tuple[float, int, int],
        start: float,
        end: float,
        **values: Any,
    ) -> None:
        """A job that holds so many GPUs, cores and GiB."""
        gpu, cores, gib = holds
        names = {"cluster_id": "c", "job_key": f"c:{key}", "part_id": key, "job_id": key, "node_names": node}
        size = {"gpu_units": gpus(gpu), "cpu_millicores": cores * 1000, "memory_mib": gib * 1024}
        times = {
            "start_at": self.at(start),
            "end_at": self.at(end),
            "as_of_at": self.at(48),
            "suspended_ms": 0,
        }
        self.add(
            "jobs",
            **({**names, **size, **times, "account": team, "user_name": "u", "partition": "p"} | values),
        )

    def charge(self, key: str, service: str, amount: str, start: float, end: float, **values: Any) -> None:
        month = {"billing_period_start_at": self.at(0), "billing_period_end_at": self.at(24)}
        times = {"charge_start_at": self.at(start), "charge_end_at": self.at(end)}
        kind = {"charge_key": key, "service_name": service, "charge_category": "Usage", "currency": "USD"}
        names = {"provider": "cloud", "invoice_id": "cloud-2026-01", "is_final": True}
        self.add("charges", **({**names, **month, **times, **kind, "billed_cost": Decimal(amount)} | values))

    def done(self) -> World:
        for table in TABLES:
            self.world.tables.setdefault(table, [])
        return self.world


def company(day: date = date(2026, 1, 5), **pool: Any) -> Example:
    """Teams, rules and the pool of the worked example, without nodes, jobs and charges."""
    example = Example(day)
    for order, team in enumerate(("vision", "nlp", "speech"), start=1):
        example.policy("teams", team_id=team, team_name=team)
        example.policy("payer_rules", rule_order=order, account=team, team_id=team)
    example.policy("cost_rules", rule_order=100, service_name="compute", component="node", pool_id=POOL)
    example.policy("pools", **({"pool_id": POOL, "pool_name": POOL, "pool_kind": "compute", "cluster_id": "c"} | pool))
    example.policy(
        "instance_types",
        instance_type="h100.8x",
        gpu_model="H100",
        gpus=8,
        cores=96,
        memory_gib=1024,
        gpu_price_weight=950_000,
        cpu_price_weight=30_000,
        memory_price_weight=20_000,
    )
    return example


def moving_company(day: date) -> World:
    """ann moves from vision to nlp on the day after. A run of hers lasts from noon to noon, alone on a node of 24."""
    example = company(day)
    moves = day + timedelta(days=1)
    for order, team, validity in ((1, "vision", {"valid_to": moves}), (2, "nlp", {"valid_from": moves})):
        example.policy("payer_rules", rule_order=order - 10, user_name="ann", team_id=team, **validity)
    example.node("n1", -24, 72)
    example.charge("n1", "compute", "48", 0, 48, resource_id="i-n1")
    example.job("a", None, "n1", (8, 96, 1024), 12, 36, user_name="ann")
    return example.done()


WORKED_EXAMPLE: dict[str, tuple[str, str, str, str]] = {
    "hour": ("218.812121212", "321.751515152", "59.436363636", "0"),
    "day": ("217.636363636", "326.454545455", "55.909090909", "0"),
    "complexity": ("183.275084175", "388.251515152", "28.473400673", "0"),
    "time": ("265.832323232", "211.781818182", "122.385858586", "0"),
    "mixed": ("230.3125", "230.5625", "39.125", "100"),
    "even": ("208.083333333", "258.083333333", "133.833333333", "0"),
    "entitlement": ("175", "375", "25.75", "24.25"),
}
"""What vision, nlp, speech and the platform pay of the 600.00 under each policy of the documentation's table.

The cells are the ideal; the exact split may move the last digits (`CLOSE_ENOUGH`), the sum never.
"""
CLOSE_ENOUGH = Decimal("0.000000003")


def worked_example(policy: str = "hour", day: date = date(2026, 1, 5)) -> World:
    """Two nodes for three hours at 300.00 each, under one of the policies of `WORKED_EXAMPLE`."""
    example = company(day)
    _idle_policies(example, policy)
    if policy in ("complexity", "time"):
        example.policy("allocation_policies", pool_id="*", component="gpu", method=policy)
    if policy == "entitlement":
        half = {"method": "direct", "idle_ceiling": Decimal("0.5")}
        example.policy("allocation_policies", pool_id="*", component="*", **half)
    for team, entitled in (("vision", 4), ("nlp", 12)):
        example.policy("entitlements", pool_id=POOL, team_id=team, gpus=Decimal(entitled))
    for order, workload_class in enumerate(("training", "pretraining", "search"), start=1):
        rule = {"qos": workload_class, "workload_class": workload_class, "self_declared": False}
        example.policy("workload_rules", rule_order=order, **rule)
    for workload_class, weight in (("pretraining", "1.5"), ("search", "0.5")):
        example.policy("complexity_weights", workload_class=workload_class, gpu_model="*", weight=Decimal(weight))

    for name in ("n1", "n2"):
        example.node(name, 0, 3)
        example.charge(name, "compute", "300", 0, 3, resource_id=f"i-{name}")
    example.job("a1", "vision", "n1", (4, 48, 512), 0, 2, qos="training")
    example.job("b1", "nlp", "n2", (8, 96, 1024), 0.5, 2, qos="pretraining")
    example.job("c1", "speech", "n1", (2, 48, 256), 0, 1, qos="search")
    event = {"cluster_id": "c", "node_name": "n2", "state": "DOWN", "as_of_at": example.at(24)}
    example.add("node_events", **event, start_at=example.at(2), end_at=example.at(3))
    hold = {"cluster_id": "c", "reservation_name": "r", "node_names": "n1", "accounts": "vision"}
    example.add("reservations", **hold, start_at=example.at(2), end_at=example.at(3))
    return example.done()


def _idle_policies(example: Example, policy: str) -> None:
    """Proportional by hour unless the policy is about idle capacity itself."""
    whole = policy if policy in ("even", "entitlement") else "proportional"
    window = "day" if policy == "day" else "hour"
    example.policy("idle_policies", pool_id="*", idle_cause="*", policy=whole, idle_window=window)
    if policy == "mixed":
        for cause, rule in (("down", "platform"), ("reserved", "owner"), ("unscheduled", "peak")):
            example.policy("idle_policies", pool_id="*", idle_cause=cause, policy=rule)


def gpu_shop(idle: str = "platform", hours: int = 1, **policy: Any) -> Example:
    """Node n1 with eight GPUs that cost 80 an hour and nothing else; one rule for every idle cause.

    `proportional by hour` is the rule with its window.
    """
    example = company(cluster_id="c", gpu_model="H100", purchase_class="reserved")
    rule, _, window = idle.partition(" by ")
    example.policy("idle_policies", pool_id="*", idle_cause="*", policy=rule, idle_window=window or None)
    example.policy("allocation_policies", **({"pool_id": "*", "component": "*", "method": "direct"} | policy))
    example.policy("cost_rules", rule_order=1, service_name="cards", component="gpu")
    example.node("n1", 0, hours)
    example.charge("n1", "cards", str(80 * hours), 0, hours, resource_id="i-n1")
    return example
