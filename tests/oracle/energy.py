"""ALLOCATION §6, energy: whose watts they were, per node-hour, in microjoules."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from datetime import date
from fractions import Fraction

from .exact import DAY, HOUR, Row, round_half_away, since_midnight, split
from .usage import CAUSES, GPU_UNITS, NodeHour, Usage

BLANK = 2**31 - 16
COUNTER_BLANK = 2**47


@dataclass
class PowerDraw:
    """What was measured on a node during an hour."""

    covered_ms: int = 0
    by_part: dict[str | None, int] = field(default_factory=lambda: defaultdict(int))


@dataclass
class EnergyWeights:
    """How a pool's energy cost follows the jobs and the idle causes of a node-hour."""

    jobs: dict[str, int]
    causes: dict[str, int]
    is_energy: bool
    """False where the pool has no telemetry and the weights are resource-time instead."""


@dataclass
class Readings:
    """The samples of one GPU under one named part (or none) in an hour: (instant, milliseconds, value)."""

    power: list[tuple[int, int, int]] = field(default_factory=list)
    counter: list[tuple[int, int, int]] = field(default_factory=list)

    def energy(self) -> tuple[int, int]:
        """Milliseconds and microjoules: by the counter where it rose all the time and was read often enough."""
        counted = sorted(self.counter)
        values, covered = [value for _, _, value in counted], sum(ms for _, ms, _ in counted)
        if len(counted) > 1 and values[0] < values[-1] and values[0] == min(values) and values[-1] == max(values):
            span = counted[-1][0] - counted[0][0]
            if 0 < span <= covered:
                return covered, round_half_away((values[-1] - values[0]) * 1000 * covered, span)
        return sum(ms for _, ms, _ in self.power), sum(ms * milliwatts for _, ms, milliwatts in self.power)


def power_draws(samples: list[Row], usage: Usage, day: date) -> dict[tuple[str, str, str, int], PowerDraw]:
    """Valid samples by the node-hour whose inventory interval contains them; the others are dropped."""
    readings: dict[tuple, Readings] = defaultdict(Readings)
    for sample in samples:
        at = since_midnight(sample["sampled_at"], day)
        if not 0 <= at < DAY or sample["gpu_instance"] is not None:
            continue
        node = sample["cluster_id"], sample["node_name"]
        for placement in usage.placements.get(node, ()):
            if placement.interval[0] <= at < placement.interval[1]:
                key = (*node, placement.pool_id, at // HOUR, sample["gpu_index"], sample["part_id"])
                _note(readings[key], sample, at)
    draws: dict[tuple[str, str, str, int], PowerDraw] = defaultdict(PowerDraw)
    for (*node_hour, _, part_id), found in readings.items():
        covered_ms, microjoules = found.energy()
        if covered_ms:
            draw = draws[tuple(node_hour)]
            draw.covered_ms += covered_ms
            draw.by_part[part_id] += microjoules
    return draws


def _note(readings: Readings, sample: Row, at: int) -> None:
    watts, counter = sample["power_watts"], sample["energy_counter_mj"]
    if watts is not None and 0 <= watts < BLANK:
        exact = Fraction(watts) * 1000
        milliwatts = round_half_away(exact.numerator, exact.denominator)
        readings.power.append((at, sample["interval_ms"], milliwatts))
    if counter is not None and 0 <= counter < COUNTER_BLANK:
        exact = Fraction(counter)
        readings.counter.append((at, sample["interval_ms"], round_half_away(exact.numerator, exact.denominator)))


def measured(node_hour: NodeHour, draw: PowerDraw, jobs_of_part: dict[str, set[str]]) -> EnergyWeights:
    """A covered node-hour: labelled energy is the job's, the rest follows held and idle GPU time."""
    held = {job: time for job, time in sorted(node_hour.held["gpu"].items()) if time > 0}
    energy: dict[str, int] = defaultdict(int)
    labelled: set[str] = set()
    rest = 0
    for part_id, microjoules in draw.by_part.items():
        jobs = [job for job in held if part_id is not None and job in jobs_of_part.get(part_id, ())]
        if not jobs:
            rest += microjoules
            continue
        labelled.update(jobs)
        for job, part in zip(jobs, split(microjoules, [held[job] for job in jobs]), strict=True):
            energy[job] += part

    idle = node_hour.idle["gpu"]
    idle_time = sum(idle.values())
    takers = [job for job in held if job not in labelled]
    weights = [held[job] for job in takers] + [idle_time]
    if not any(weights):
        takers = list(held)
        weights = [held[job] for job in takers] + [0 if takers else 1]
    *to_jobs, to_idle = split(rest, weights)
    for job, part in zip(takers, to_jobs, strict=True):
        energy[job] += part

    cause_weights = [idle[cause] for cause in CAUSES]
    if not any(cause_weights):
        cause_weights = [int(cause == "unscheduled") for cause in CAUSES]
    return EnergyWeights(dict(energy), dict(zip(CAUSES, split(to_idle, cause_weights), strict=True)), True)


def energy_weights(
    usage: Usage, samples: list[Row], day: date, minimum_coverage: int
) -> dict[tuple[str, str, str, int], EnergyWeights]:
    draws = power_draws(samples, usage, day)
    jobs_of_part: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for part in usage.parts:
        jobs_of_part[part.cluster_id][part.part_id].add(part.job_key)

    by_pool: dict[str, list[tuple[str, str, str, int]]] = defaultdict(list)
    for key in usage.node_hours:
        by_pool[key[2]].append(key)
    weights: dict[tuple[str, str, str, int], EnergyWeights] = {}
    for keys in by_pool.values():
        covered: dict[tuple[str, str, str, int], EnergyWeights] = {}
        for key in keys:
            node_hour, draw = usage.node_hours[key], draws.get(key, PowerDraw())
            capacity = node_hour.inventory["gpu"]
            if capacity > 0 and draw.covered_ms * GPU_UNITS * 1000 >= minimum_coverage * capacity:
                covered[key] = measured(node_hour, draw, jobs_of_part[key[0]])
        weights |= pool_day({key: usage.node_hours[key] for key in keys}, covered)
    return weights


def pool_day(
    node_hours: dict[tuple[str, str, str, int], NodeHour],
    covered: dict[tuple[str, str, str, int], EnergyWeights],
) -> dict[tuple[str, str, str, int], EnergyWeights]:
    """All node-hours of a pool: measured where covered, else by the day's mean draw, else by time."""
    held_energy = sum(sum(weights.jobs.values()) for weights in covered.values())
    idle_energy = sum(sum(weights.causes.values()) for weights in covered.values())
    held_time = sum(node_hours[key].used("gpu") for key in covered)
    idle_time = sum(sum(node_hours[key].idle["gpu"].values()) for key in covered)

    if held_time + idle_time == 0 or held_energy + idle_energy == 0:
        has_gpus = any(node_hour.capacity("gpu") > 0 for node_hour in node_hours.values())
        resource = "gpu" if has_gpus else "cpu"
        return {
            key: EnergyWeights(dict(node_hour.held[resource]), dict(node_hour.idle[resource]), False)
            for key, node_hour in node_hours.items()
        }

    everything = (held_energy + idle_energy, held_time + idle_time)
    per_held = (held_energy, held_time) if held_time else everything
    per_idle = (idle_energy, idle_time) if idle_time else everything
    weights = dict(covered)
    for key in node_hours.keys() - covered.keys():
        node_hour = node_hours[key]
        weights[key] = EnergyWeights(
            {job: round_half_away(time * per_held[0], per_held[1]) for job, time in node_hour.held["gpu"].items()},
            {cause: round_half_away(time * per_idle[0], per_idle[1]) for cause, time in node_hour.idle["gpu"].items()},
            True,
        )
    return weights
