"""ALLOCATION §3: what a job weighs in a pool's component and hour, under the policy's method."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from datetime import date
from functools import cache, partial

from .charges import RESOURCES
from .energy import EnergyWeights
from .exact import Row, most_specific, scaled, united, valid_on
from .usage import Payer, Usage
from .workloads import Activity, complexity_weight

NodeHourKey = tuple[str, str, str, int]


@dataclass
class Weights:
    """A pool's component in one hour, jobs by payer."""

    held: dict[Payer, int] = field(default_factory=lambda: defaultdict(int))
    """The driver quantity, which divides the cost of the hour into used and idle."""
    causes: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    """Idle quantity by cause."""
    jobs: dict[Payer, int] = field(default_factory=dict)
    """What the used cost follows."""


PoolWeights = dict[tuple[str, str], dict[int, Weights]]
"""By pool and component, then by hour."""

DEFAULT_POLICY: Row = dict.fromkeys(
    (
        *("overhead_base", "burst_policy", "lender_share", "intensity_metric", "intensity_floor"),
        *("intensity_min_coverage", "idle_ceiling"),
    )
) | {"method": "direct"}


def allocation_policy(policies: list[Row], pool_id: str, component: str) -> Row:
    """The most specific row gives all of its columns; without any, everyone pays for what they hold."""
    return most_specific(policies, pool_id=pool_id, component=component) or DEFAULT_POLICY


class Weigher:
    """Weighs the jobs of a day."""

    def __init__(
        self,
        tables: dict[str, list[Row]],
        seeds: dict[str, list[Row]],
        day: date,
        usage: Usage,
        energy: dict[NodeHourKey, EnergyWeights],
        classes: dict[str, str],
    ) -> None:
        self.usage, self.classes = usage, classes
        self.policies = valid_on(seeds["allocation_policies"], day)
        self.class_weight = cache(partial(complexity_weight, valid_on(seeds["complexity_weights"], day)))
        self.activity = {
            metric: Activity(metric, tables["gpu_samples"], usage, day)
            for metric in {row["intensity_metric"] for row in self.policies} - {None, ""}
        }
        self.quantities: dict[tuple[str, str, int], dict[str, dict[NodeHourKey, int]]] = defaultdict(
            lambda: defaultdict(dict)
        )
        """Per pool, component and hour: what each job held on each node."""
        self.found: PoolWeights = defaultdict(lambda: defaultdict(Weights))
        for key, node_hour in usage.node_hours.items():
            _, _, pool_id, hour = key
            sources = {resource: (node_hour.held[resource], node_hour.idle[resource]) for resource in RESOURCES}
            sources["energy"] = (energy[key].jobs, energy[key].causes)
            for component, (jobs, causes) in sources.items():
                total = self.found[pool_id, component][hour]
                for job_key, quantity in jobs.items():
                    total.held[usage.payers[job_key]] += quantity
                    self.quantities[pool_id, component, hour][job_key][key] = quantity
                for cause, quantity in causes.items():
                    total.causes[cause] += quantity

    def weigh(self) -> PoolWeights:
        for (pool_id, component), hours in self.found.items():
            policy = allocation_policy(self.policies, pool_id, component)
            for hour, total in hours.items():
                held = {payer: quantity for payer, quantity in total.held.items() if quantity > 0}
                weighed = {payer: self.weight(policy, pool_id, component, hour, payer) for payer in held}
                total.jobs = weighed if any(weighed.values()) else held
        return self.found

    def weight(self, policy: Row, pool_id: str, component: str, hour: int, payer: Payer) -> int:
        job_key = payer[3] or ""
        if policy["method"] == "time":
            return sum(end - start for start, end in united(self.usage.present[pool_id, hour, job_key]))
        if policy["method"] == "complexity":
            return self.complex_weight(policy, pool_id, component, hour, payer)
        return self.found[pool_id, component][hour].held[payer]

    def complex_weight(self, policy: Row, pool_id: str, component: str, hour: int, payer: Payer) -> int:
        job_key = payer[3] or ""
        weight = sum(
            quantity * self.class_weight(self.classes[job_key], self.usage.node_hours[node_hour].gpu_model)
            for node_hour, quantity in self.quantities[pool_id, component, hour][job_key].items()
        )
        if not policy["intensity_metric"]:
            return weight
        device_time = sum(
            self.usage.node_hours[key].device_time[job_key] for key in self.quantities[pool_id, "gpu", hour][job_key]
        )
        floor = scaled(policy["intensity_floor"], 1000)
        minimum = scaled(policy["intensity_min_coverage"], 1000, default=500)
        activity = self.activity[policy["intensity_metric"]]
        return weight * activity.factor(job_key, pool_id, hour, device_time, floor, minimum)
