"""What kind of work a job is, what that weighs, and how busy it kept its GPUs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from datetime import date
from fractions import Fraction

from .exact import DAY, HOUR, Row, mapping, matches, most_specific, round_half_away, scaled, since_midnight
from .usage import GPU_UNITS, Usage, first_parts

UNCLASSIFIED = "unclassified"
WHOLE = 1_000_000
METRICS = {"sm": "sm_active", "tensor": "tensor_active"}


# --- classes -----------------------------------------------------------------------------------------------


def job_classes(jobs: Iterable[Row], rules: list[Row]) -> dict[str, str]:
    """The workload class of each job, by the first rule that its first part matches."""
    ordered = sorted(rules, key=lambda rule: rule["rule_order"])
    return {
        job_key: next((rule["workload_class"] for rule in ordered if is_of(job, rule)), UNCLASSIFIED)
        for job_key, job in first_parts(jobs).items()
    }


def is_of(job: Row, rule: Row) -> bool:
    return (
        all(matches(rule[field], job[field]) for field in ("cluster_id", "partition", "qos", "job_name"))
        and matches(rule["label"], mapping(job["labels"]))
        and between(job["gpu_units"] or 0, rule["min_gpus"], rule["max_gpus"], GPU_UNITS)
        and between(job["time_limit_ms"], rule["min_hours"], rule["max_hours"], HOUR)
    )


def between(value: int | None, low: Row | None, high: Row | None, factor: int) -> bool:
    """Half-open, in whole units; an absent value is in no range that has a bound."""
    if low is None and high is None:
        return True
    if value is None:
        return False
    return (low is None or value >= scaled(low, factor)) and (high is None or value < scaled(high, factor))


def complexity_weight(weights: list[Row], workload_class: str, gpu_model: str | None) -> int:
    """In thousandths; what no row weighs counts once."""
    row = most_specific(weights, workload_class=workload_class, gpu_model=gpu_model)
    return scaled(row["weight"], 1000) if row else 1000


# --- activity ----------------------------------------------------------------------------------------------


class Activity:
    """Samples of one metric per job, pool and hour: gauge (1/100,000) times milliseconds, and milliseconds."""

    def __init__(self, metric: str, samples: Iterable[Row], usage: Usage, day: date) -> None:
        self.sums: dict[tuple[str, str, int], list[int]] = defaultdict(lambda: [0, 0])
        for sample in samples:
            value, at = sample[METRICS[metric]], since_midnight(sample["sampled_at"], day)
            if value is None or not 0 <= value <= 1 or not 0 <= at < DAY:
                continue
            exact = Fraction(value) * 100_000
            gauge = round_half_away(exact.numerator, exact.denominator)
            node = sample["cluster_id"], sample["node_name"]
            for stay in usage.placements.get(node, ()):
                if stay.interval[0] <= at < stay.interval[1]:
                    here = usage.node_hours[*node, stay.pool_id, at // HOUR].parts
                    running = {
                        (part.job_key, part.part_id)
                        for part in usage.parts
                        if part.cluster_id == sample["cluster_id"] and part.interval[0] <= at < part.interval[1]
                    }
                    for job_key, _ in {one for one in running & set(here) if one[1] == sample["part_id"]}:
                        sums = self.sums[job_key, stay.pool_id, at // HOUR]
                        sums[0] += gauge * sample["interval_ms"]
                        sums[1] += sample["interval_ms"]

    def factor(self, job_key: str, pool_id: str, hour: int, device_time: int, floor: int, minimum: int) -> int:
        """In millionths: between the floor and one by mean activity; one where too little was sampled."""
        total, covered = self.sums.get((job_key, pool_id, hour), (0, 0))
        if covered == 0 or device_time == 0 or covered * 1000 < minimum * device_time:
            return WHOLE
        return floor * 1000 + (1000 - floor) * round_half_away(total, covered * 100)
