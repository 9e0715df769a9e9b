"""The fact half of a random world: nodes, jobs, events, telemetry and charges around one UTC day."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from decimal import Decimal
from random import Random
from typing import Any

from orchestration.landing.schemas import GPU_UNITS_PER_GPU, TABLES

from .seed_tables import Row
from .world_choices import END_STATES, JOB_NAMES, LABEL_KEY, QUALITIES
from .world_policies import SERVICES, PolicyMaker

BLANK_POWER = 9223372036854775794.0


@dataclass(frozen=True)
class Sizes:
    """How much of everything a world has."""

    nodes: int = 3
    jobs: int = 5
    charges: int = 6
    events: int = 1
    reservations: int = 1
    sampled: int = 2
    readings: int = 2
    seats: int = 2


def row(table: str, /, **values: Any) -> Row:
    """A landing row; the columns that are not given are NULL."""
    schema = TABLES[table].schema
    unknown = values.keys() - set(schema.names)
    if unknown:
        raise ValueError(f"{table} has no column {sorted(unknown)}")
    return dict.fromkeys(schema.names) | values


class Counters:
    """The energy counters of a node's GPUs, in whole or half millijoules: they begin again, stand still, are blank."""

    def __init__(self, rng: Random) -> None:
        self.rng, self.values = rng, {}
        self.there, self.calm = rng.random() < 0.6, rng.random() < 0.5

    def read(self, gpu: int) -> float | None:
        if not self.there:
            return None
        event = "none" if self.calm else self.rng.choice(["none"] * 6 + ["reset", "still", "blank"])
        if event == "blank":
            return self.rng.choice([None, BLANK_POWER, 2.0**47, -1.0])
        before = self.values.setdefault(gpu, self.rng.randrange(10**12))
        added = 0 if event == "still" else self.rng.randrange(10**9)
        self.values[gpu] = added if event == "reset" else before + added
        return self.values[gpu] + self.rng.choice([0.0, 0.5])


class FactMaker:
    """Draws the landing tables of one world; the policies are drawn before, so that facts can meet them."""

    def __init__(self, seed: int, policies: PolicyMaker, sizes: Sizes) -> None:
        self.seed, self.policies, self.sizes, self.day = seed, policies, sizes, policies.day
        self.midnight = datetime.combine(self.day, time(), UTC)
        self.tables: dict[str, list[Row]] = {name: [] for name in TABLES}
        self.rng = Random(seed)
        self.rush_hour = self.rng.randrange(0, 22)
        self.dense = policies.dense
        self.ghosts = [self.name("ghost1"), self.name("ghost2")]

    def make(self) -> dict[str, list[Row]]:
        # A generator of its own for each table: changing one size leaves the other tables as they are.
        steps = (
            *((self._nodes, self.sizes.nodes), (self._jobs, self.sizes.jobs)),
            *((self._events, self.sizes.events), (self._reservations, self.sizes.reservations)),
            *((self._samples, self.sizes.sampled), (self._readings, self.sizes.readings)),
            *((self._seats, self.sizes.seats), (self._charges, self.sizes.charges)),
        )
        for step, count in steps:
            self.rng = self.policies.rng = Random(f"{self.seed}{step.__name__}")
            for number in range(count):
                step(number)
        return self.tables

    def add(self, table: str, **values: Any) -> Row:
        record = row(
            table,
            source="test",
            delivery="test.csv",
            line=len(self.tables[table]) + 1,
            delivered_at=self.midnight + timedelta(days=10),
            **values,
        )
        self.tables[table].append(record)
        return record

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    def name(self, text: str) -> str:
        return self.policies.name(text)

    def moment(self, low: float = 0, high: float = 24) -> datetime:
        """A time between two hours of the day: on the hour, the minute, the second or in between.

        Most fall around the world's rush hour, so that jobs, charges, events and samples meet.
        """
        if self.chance(0.6):
            low, high = max(low, self.rush_hour - 1), min(high, self.rush_hour + 2)
            low, high = min(low, high), max(low, high)
        grain = self.rng.choice([3_600_000, 3_600_000, 1_800_000, 60_000, 1000, 1])
        offset = int(self.rng.uniform(low, high) * 3_600_000) // grain * grain
        return self.midnight + timedelta(milliseconds=offset)

    def after(self, start: datetime) -> datetime:
        """An end: the same instant, moments later, hours later or beyond the day."""
        longest = self.rng.choice([0, 1000, 1_800_000, 7_200_000, 14_400_000, 14_400_000, 40_000_000, 200_000_000])
        grain = self.rng.choice([1, 1000, 60_000, 1_800_000])
        return start + timedelta(milliseconds=self.rng.randint(0, longest) // grain * grain)

    # --- capacity ------------------------------------------------------------------------------------------

    def _nodes(self, number: int) -> None:
        """One node: one to three stays, with or without gaps, in any of the pools."""
        cluster = self._cluster()
        node = self.name(f"n{number}")
        resource = self.name(f"r{number if self.chance(0.95) else 0}") if self.chance(0.95) else None
        model = self.rng.choice(["H100", "H100", "L4", None])
        start = self.midnight - timedelta(days=30) if self.chance(0.7) else self.moment(-5, 20)
        stays = self.rng.choice([1, 1, 1, 1, 1, 2] if self.dense else [1, 1, 1, 2, 3])
        for stay in range(stays):
            last = stay == stays - 1
            end = (
                None
                if last and self.chance(0.5)
                else max(start, self.midnight)
                + timedelta(milliseconds=self.rng.choice([3_600_000, 5_000_123, 20_000_000, 50_000_000, 90_000_000]))
            )
            kind = self.rng.choice(sorted(self.policies.types))
            gpus, cores, gib = self.policies.types[kind]
            if self.chance(0.1):
                gpus, cores = self.rng.choice([0, 1, 3]), self.rng.choice([0, 5, 100])
            self.add(
                "node_inventory",
                cluster_id=cluster,
                node_name=node,
                resource_id=resource,
                provider="cloud",
                instance_type=kind,
                pool_id=self._pool(number + stay),
                gpu_model=model,
                gpu_units=gpus * GPU_UNITS_PER_GPU,
                cpu_millicores=cores * 1000,
                memory_mib=gib * 1024,
                valid_from_at=start,
                valid_to_at=end,
            )
            if end is None:
                break
            start = end + timedelta(milliseconds=self.rng.choice([0, 0, 600_000, 3_000_017, 7_200_000]))

    def _cluster(self) -> str:
        return self.policies.clusters[0] if self.dense else self.rng.choice(self.policies.clusters)

    def _pool(self, number: int) -> str:
        pools = self.policies.compute_pools
        return pools[number % len(pools)] if self.dense else self.rng.choice(pools)

    def _known_nodes(self) -> list[tuple[str, str]]:
        return sorted({(node["cluster_id"], node["node_name"]) for node in self.tables["node_inventory"]})

    def _pick_nodes(self, cluster: str, at_least: int = 0) -> str | None:
        """Mostly nodes of the cluster, sometimes ones the inventory lacks, sometimes none."""
        known = [node for at, node in self._known_nodes() if at == cluster]
        wanted = max(at_least, self.rng.choice([1, 1, 2] if self.dense else [0, 1, 1, 1, 1, 1, 2, 3]))
        choices = known if known and self.chance(0.95 if self.dense else 0.8) else [*known, *self.ghosts]
        return ",".join(self.rng.sample(choices, min(wanted, len(choices)))) or None

    def _events(self, number: int) -> None:
        known = self._known_nodes()
        if not known:
            return
        cluster, node = self.rng.choice(known)
        start = self.moment(-3, 23)
        self.add(
            "node_events",
            cluster_id=cluster,
            node_name=node,
            state=self.rng.choice(["DOWN", "DRAIN", "IDLE+DRAIN", "DOWN*"]),
            reason="test",
            start_at=start + timedelta(milliseconds=number),  # part of the key
            end_at=None if self.chance(0.3) else self.after(start) + timedelta(milliseconds=number),
            as_of_at=max(start, self.moment(12, 30)) + timedelta(milliseconds=number),
        )

    def _reservations(self, number: int) -> None:
        known = [cluster for cluster, _ in self._known_nodes()]
        cluster = self.rng.choice([*known, *known, *self.policies.clusters])
        start = self.moment(-3, 23)
        self.add(
            "reservations",
            cluster_id=cluster,
            reservation_name=self.name(f"hold{number}"),
            node_names=self._pick_nodes(cluster, at_least=1),
            accounts=self._some([*self.policies.accounts, self.name("strangers")]),
            users=self._some([*self.policies.users, self.name("nobody")]),
            start_at=start,
            end_at=self.after(start),
        )

    def _some(self, choices: list[str]) -> str | None:
        return ",".join(self.rng.sample(choices, self.rng.choice([0, 1, 1, 2]))) or None

    # --- use -----------------------------------------------------------------------------------------------

    def _jobs(self, number: int) -> None:
        """A job of one part, of several pods, or a requeue that has the part id of an earlier one."""
        known = [cluster for cluster, _ in self._known_nodes()]
        cluster = self.rng.choice([*known, *known, *self.policies.clusters])
        parts = self.rng.choice([1, 1, 1, 2, 3])
        shared = {
            "cluster_id": cluster,
            "scheduler": self.rng.choice(["slurm", "kubernetes"]),
            "job_key": f"{cluster}:{self.rng.choice('abz')}{number}",
            "job_id": f"{number}",
            "namespace": self.rng.choice([None, *self.policies.namespaces]),
            "partition": self.rng.choice([None, *self.policies.partitions, *self.policies.partitions]),
        }
        described = self._description()
        for part in range(parts):
            part_id = f"{number}" if parts == 1 else f"{shared['namespace']}/{number}.{part}"
            earlier = [job["part_id"] for job in self.tables["jobs"]]
            if parts == 1 and earlier and self.chance(0.15):
                part_id = self.rng.choice(earlier)
            start = self.moment(-8, 23.9)
            end = self.after(start)
            if self.dense and self.chance(0.8):
                start = self.moment(self.rush_hour - 1, self.rush_hour + 0.5)
                end = max(end, start + timedelta(minutes=self.rng.choice([30, 60, 200])))
            running = self.chance(0.15)
            if self.chance(0.2):  # pods of one job may differ; the first speaks for all
                described = self._description()
            life = (end - start) // timedelta(milliseconds=1)
            suspended = self.rng.choice([0, 0, 0, 0, None, life // 3, life, life + 5000])
            self.add(
                "jobs",
                **shared,
                **described,
                part_id=part_id,
                state="RUNNING" if running else self._end_state(),
                submit_at=start,
                start_at=start,
                end_at=None if running else end,
                as_of_at=self.moment(0, 30) if running else self.midnight + timedelta(days=2),
                suspended_ms=suspended,
                node_names=self._pick_nodes(cluster),
                **self._requests(),
            )

    def _description(self) -> Row:
        """What payer and workload rules read, and how the job says that it can be resumed."""
        return {
            "user_name": self.rng.choice([None, *self.policies.users, *self.policies.users]),
            "account": self.rng.choice([*self.policies.accounts, self.policies.accounts[0] if self.dense else None]),
            "labels": self._mapping(),
            "job_name": self.rng.choice([None, *JOB_NAMES]),
            "qos": self.rng.choice([None, *QUALITIES]),
            "time_limit_ms": self.rng.choice([None, 0, 1_800_000, 3_600_000, 3_600_001, 14_400_000, 90_000_000]),
            "checkpoint_interval_ms": self.rng.choice([None, None, None, 0, 600_000, 1_234_567]),
        }

    def _end_state(self) -> str:
        state = self.rng.choice(["COMPLETED", "TIMEOUT", *END_STATES])
        return state.lower() if self.chance(0.1) else state

    def _requests(self) -> Row:
        whole = [25_200, 25_200, 25_200, 50_400, 50_400, 100_800]
        gpu = self.rng.choice([3600, *whole] if self.dense else [None, 0, 7, 3600, 12_600, *whole])
        return {
            "gpu_units": gpu,
            "cpu_millicores": self.rng.choice([None, 0, 333, 1000, 4000, 8000, 64_000]),
            "memory_mib": self.rng.choice([None, 0, 1, 1024, 65_536, 524_288]),
            "measured_cpu_millicores": self.rng.choice([None, 0, 1234]),
            "measured_memory_mib": self.rng.choice([None, 4321]),
            "bytes_out": self.rng.choice([None, 0, 1, 10**6 + 1, 10**12]),
        }

    def _mapping(self) -> str | None:
        """Labels or tags: none, something else, a known value or an unknown one."""
        value = self.rng.choice([*self.policies.labels, *self.policies.labels, self.name("pink")])
        choices: list[Row | None] = [
            None,
            {},
            {"app": "x"},
            {LABEL_KEY: value},
            {"app": "x", LABEL_KEY: value},
            {'see "this"': "x", "*": "y", "": "z", LABEL_KEY: value},
        ]
        chosen = self.rng.choice(choices)
        return None if chosen is None else json.dumps(chosen)

    def _samples(self, number: int) -> None:
        """Telemetry of one node over a few hours: labelled or not, with blanks and gaps."""
        nodes = [node for node in self.tables["node_inventory"] if node["gpu_units"]] or self.tables["node_inventory"]
        if not nodes:
            return
        node = self.rng.choice(nodes)
        gpus = max(1, node["gpu_units"] // GPU_UNITS_PER_GPU)
        interval = self.rng.choice([600_000, 900_000, 1_200_000])
        first = max(self.moment(0, 22), min(node["valid_from_at"], self.midnight + timedelta(hours=20)))
        jobs = [job for job in self.tables["jobs"] if node["node_name"] in (job["node_names"] or "")]
        labels = [job["part_id"] for job in jobs if job["cluster_id"] == node["cluster_id"]]
        labels += [job["part_id"] for job in self.tables["jobs"]][:1]
        still = self.chance(0.15)
        counters = Counters(Random(f"{self.seed}counters{number}"))
        complete, labelled = self.chance(0.6), self.chance(0.9 if self.dense else 0.6)
        for step in range(self.rng.choice([3, 6, 12])):
            sampled_at = first + timedelta(milliseconds=step * interval + number)
            for gpu in range(gpus):
                if sampled_at >= self.midnight + timedelta(days=1) or not (complete or self.chance(0.5)):
                    continue
                self.add(
                    "gpu_samples",
                    cluster_id=node["cluster_id"],
                    node_name=node["node_name"],
                    gpu_index=gpu,
                    part_id=self.rng.choice([*labels, *labels, None, "stranger"]) if labelled else None,
                    sampled_at=sampled_at,
                    interval_ms=interval,
                    util_percent=50.0,
                    power_watts=self._power(),
                    energy_counter_mj=counters.read(gpu),
                    sm_active=0.0 if still else self._activity(),
                    tensor_active=0.0 if still else self._activity(),
                )

    def _power(self) -> float | None:
        """Whole milliwatts, or sixteenths of a watt (halves of a milliwatt): exact in binary arithmetic."""
        if self.chance(0.15):
            return self.rng.choice([None, BLANK_POWER, 1e15, -1.0, 0.0])
        return self.rng.randint(0, 11_200) / 16 if self.chance(0.5) else self.rng.randint(0, 700_000) / 1000

    def _activity(self) -> float | None:
        """A share: blank, out of range, at a bound, or a number whose hundred-thousandths are exact or half."""
        if self.chance(0.25):
            return self.rng.choice([None, BLANK_POWER, 1e15, -0.5, 1.5, 0.0, 0.0, 1.0])
        return self.rng.randint(0, 64) / 64

    def _readings(self, number: int) -> None:
        whole_day = self.chance(0.6)
        start = self.midnight if whole_day else self.moment(-20, 23)
        self.add(
            "storage_usage",
            filesystem=self.policies.filesystem if self.chance(0.85) else self.name("elsewhere"),
            path=self.rng.choice(["/data/ann/x", "/data/bob", "/scratch"]) + ("" if self.chance(0.5) else f"/{number}"),
            owner=self.rng.choice([None, *self.policies.users]),
            account=self.rng.choice([None, *self.policies.accounts]),
            stored_bytes=self.rng.choice([0, 1, 524_288, 524_287, 10**12 + 1, 5 * 10**14]),
            valid_from_at=start,
            valid_to_at=self.midnight + timedelta(days=1) if whole_day else self.after(start),
        )

    def _seats(self, number: int) -> None:
        start = self.moment(-10, 23) + timedelta(milliseconds=number)
        self.add(
            "license_usage",
            product=self.policies.product if self.chance(0.85) else self.name("editor"),
            user_name=self.rng.choice([None, *self.policies.users]),
            account=self.rng.choice([None, *self.policies.accounts]),
            seats=self.rng.choice([0, 1, 1, 5]),
            checked_out_at=start,
            checked_in_at=None if self.chance(0.3) else self.after(start),
            as_of_at=start + timedelta(hours=self.rng.choice([0, 3, 40])),
        )

    # --- charges -------------------------------------------------------------------------------------------

    def _charges(self, number: int) -> None:
        category = self.rng.choice(["Usage", "Usage", "Usage", "Purchase", "Purchase", "Tax", "Credit", "Adjustment"])
        start, end = self._charge_period()
        period_start, period_end = self._billing_period()
        resources = sorted({node["resource_id"] or "" for node in self.tables["node_inventory"]} - {""})
        common = ["compute"] * (9 if self.dense else 4) + ["accelerators", "power"] * 2
        service = self.rng.choice([*common, *SERVICES, "unheard-of"])
        billed = self._amount()
        self.add(
            "charges",
            charge_key=self.name(f"line{number}"),
            provider=self.name(self.rng.choice(["cloud", "cloud", "owned"])),
            invoice_id=self.name("invoice"),
            billing_account_id="1",
            billing_period_start_at=period_start,
            billing_period_end_at=period_end,
            charge_start_at=start,
            charge_end_at=end,
            charge_category=category,
            charge_frequency=self.rng.choice(["One-Time", "Recurring", "Usage-Based"]),
            service_name=service,
            sku_id=self.rng.choice([None, "sku-a", "sku-b"]),
            resource_id=self.rng.choice([*resources, *resources, *resources, self.name("r-lost"), None]),
            tags=self._mapping(),
            currency=self.rng.choice(["USD", "USD", "USD", "EUR", "JPY"]),
            list_cost=None if self.chance(0.3) else self._amount(),
            billed_cost=billed,
            effective_cost=self.rng.choice([None, billed, self._amount()]),
            is_final=self.chance(0.5),
        )
        if category in ("Usage", "Purchase") and self.chance(0.5):
            self.tables["charges"][-1] |= self._commitment()

    def _commitment(self) -> dict[str, object]:
        """What a line says of a commitment: as a fee its term and what it buys, as use what of it is covered."""
        term = self.rng.choice([(None, None), self._charge_period(), self._billing_period()])
        return {
            "provider": self.name("cloud"),
            "currency": "USD",
            "effective_cost": None if self.chance(0.7) else self._amount(),
            "commitment_id": self.name(self.rng.choice(["c1", "c1", "c2"])),
            "commitment_status": self.rng.choice([None, "Used", "Unused"]),
            "commitment_quantity": self.rng.choice(
                [None, Decimal(0), Decimal(24), Decimal("7.123456789"), Decimal("1E-9")]
            ),
            "commitment_start_at": term[0],
            "commitment_end_at": term[1],
        }

    def _charge_period(self) -> tuple[datetime, datetime]:
        day = timedelta(days=1)
        odd = self.moment(-10, 23.9)
        rush = self.rush_hour + self.rng.randrange(2)
        hour = self.midnight + timedelta(hours=rush if self.chance(0.6) else self.rng.randrange(24))
        return self.rng.choice(
            [
                (self.midnight, self.midnight + day),
                (self.midnight, self.midnight + day),
                (hour, hour + timedelta(hours=1)),
                (hour, hour + timedelta(hours=1)),
                (self.midnight - 3 * day, self.midnight + 4 * day),
                (odd, self.after(odd)),
                (odd, odd + timedelta(milliseconds=self.rng.choice([0, 1, 7, 3_599_999]))),
            ]
        )

    def _billing_period(self) -> tuple[datetime, datetime]:
        first = self.midnight.replace(day=1)
        return self.rng.choice(
            [
                (first, (first + timedelta(days=32)).replace(day=1)),
                (first, (first + timedelta(days=32)).replace(day=1)),
                (self.midnight, self.midnight + timedelta(days=1)),
                (self.midnight - timedelta(hours=30, milliseconds=7), self.midnight + timedelta(hours=15)),
            ]
        )

    def _amount(self) -> Decimal:
        kind = self.rng.choice(["cents", "cents", "cents", "nano", "nano", "nano", "tiny", "tiny", "zero", "large"])
        sign = -1 if self.chance(0.2) else 1
        if kind == "cents":
            return Decimal(sign * self.rng.randint(1, 100_000)).scaleb(-2)
        if kind == "nano":
            return Decimal(sign * self.rng.randint(1, 10**12)).scaleb(-9)
        if kind == "tiny":
            return Decimal(sign * self.rng.randint(1, 9)).scaleb(-9)
        return Decimal(0) if kind == "zero" else Decimal(sign * self.rng.randint(10**15, 10**17)).scaleb(-9)
