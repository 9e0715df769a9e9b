"""The worked example of the allocation rules, as a world: one pool, two nodes, three jobs, three hours."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

from orchestration.landing.schemas import TABLES

from .world_policies import COMPONENTS, GPU_MODELS, SEED_COLUMNS, UNDATED, Row
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
        self.world = World(0, day, {}, {name: [] for name in SEED_COLUMNS})
        self.world.seeds["components"] = COMPONENTS
        self.world.seeds["gpu_models"] = GPU_MODELS

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


def worked_example(window: str, day: date = date(2026, 1, 5)) -> World:
    """Two nodes for three hours at 300.00 each; every idle cause proportional, by hour or by day."""
    example = company(day)
    example.policy("idle_policies", pool_id="*", idle_cause="*", policy="proportional", idle_window=window)
    for name in ("n1", "n2"):
        example.node(name, 0, 3)
        example.charge(name, "compute", "300", 0, 3, resource_id=f"i-{name}")
    example.job("a1", "vision", "n1", (4, 48, 512), 0, 2)
    example.job("b1", "nlp", "n2", (8, 96, 1024), 0.5, 2)
    example.job("c1", "speech", "n1", (2, 48, 256), 0, 1)
    event = {"cluster_id": "c", "node_name": "n2", "state": "DOWN", "as_of_at": example.at(24)}
    example.add("node_events", **event, start_at=example.at(2), end_at=example.at(3))
    hold = {"cluster_id": "c", "reservation_name": "r", "node_names": "n1", "accounts": "vision"}
    example.add("reservations", **hold, start_at=example.at(2), end_at=example.at(3))
    return example.done()
