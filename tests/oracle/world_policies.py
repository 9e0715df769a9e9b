"""The policy half of a random world: teams, rules, pools, prices.

Everything is valid on the world's day only. Around it lie decoys: rules
with a smaller order that end at the day's midnight or begin with the next one.
"""

from __future__ import annotations

from datetime import date, timedelta
from decimal import Decimal
from random import Random
from typing import Any

Row = dict[str, Any]

SEED_COLUMNS: dict[str, tuple[str, ...]] = {
    "teams": ("team_id", "team_name", "parent_team_id", "cost_centre", "headcount"),
    "projects": ("project_id", "project_name", "team_id"),
    "payer_rules": (
        *("rule_order", "cluster_id", "account", "user_name", "namespace", "label", "tag", "path"),
        *("team_id", "project_id"),
    ),
    "cost_rules": (
        *("rule_order", "provider", "charge_category", "service_name", "sku_id", "resource_id", "tag"),
        *("component", "pool_id", "driver", "has_owner", "spread"),
    ),
    "pools": (
        *("pool_id", "pool_name", "pool_kind", "cluster_id", "partition", "resource", "gpu_model"),
        *("purchase_class", "owner_team_id", "default_instance_type", "min_cores_per_gpu", "min_gib_per_gpu"),
    ),
    "allocation_policies": ("pool_id", "component", "method", "overhead_base"),
    "idle_policies": ("pool_id", "idle_cause", "policy", "idle_window"),
    "gpu_models": ("gpu_model", "vendor", "memory_gib", "mig_slices", "tdp_watts"),
    "instance_types": (
        *("instance_type", "provider", "gpu_model", "gpus", "cores", "memory_gib"),
        *("gpu_price_weight", "cpu_price_weight", "memory_price_weight"),
    ),
    "currencies": ("currency", "rate_to_reporting"),
    "components": ("component", "component_name", "cost_grain", "driver", "description"),
}
POLICY = ("teams", "projects", "payer_rules", "cost_rules", "pools", "allocation_policies", "idle_policies")
UNDATED = ("gpu_models", "components")
SEED_COLUMNS = {
    name: columns if name in UNDATED else (*columns, "valid_from", "valid_to", "reason")
    for name, columns in SEED_COLUMNS.items()
}

GPU_MODELS = [
    {"gpu_model": "H100", "vendor": "NVIDIA", "memory_gib": 80, "mig_slices": 7, "tdp_watts": 700},
    {"gpu_model": "L4", "vendor": "NVIDIA", "memory_gib": 24, "mig_slices": 1, "tdp_watts": 72},
]
_COMPONENT_DRIVERS = {
    "gpu": "gpu_seconds",
    "cpu": "cpu_core_seconds",
    "memory": "memory_gib_seconds",
    "energy": "kwh",
    "storage": "gib_hours_stored",
    "network": "bytes_out",
    "license": "seat_hours",
    "support": None,
    "other": None,
}
HOURLY = ("gpu", "cpu", "memory", "energy")
COMPONENTS = [
    {
        "component": name,
        "component_name": name.title(),
        "cost_grain": "hour" if name in HOURLY else "day",
        "driver": driver,
        "description": f"{name} cost",
    }
    for name, driver in _COMPONENT_DRIVERS.items()
]

SERVICES = {
    "compute": ("node",),
    "accelerators": ("gpu", "cpu", "memory"),
    "power": ("energy",),
    "files": ("storage",),
    "egress": ("network",),
    "seats": ("license",),
    "helpdesk": ("support",),
    "misc": ("other",),
}
"""What a bill calls it, and the components that a rule may give it."""
DRIVERS = (
    *("gib_hours_stored", "bytes_out", "seat_hours"),
    *("gpu_seconds", "cpu_core_seconds", "memory_gib_seconds", "kwh"),
)
NATURAL_DRIVERS = {"storage": "gib_hours_stored", "network": "bytes_out", "license": "seat_hours"}
LABEL_KEY = "cost.team/name"
"""A key that a naive JSON path would cut at the dot or the slash."""


class PolicyMaker:
    """Draws the seed tables of one world; `names` prefixes every id with the world's index."""

    def __init__(self, rng: Random, index: int, day: date) -> None:
        self.rng, self.index, self.day = rng, index, day
        self.order = index * 1000
        self.seeds: dict[str, list[Row]] = {name: [] for name in SEED_COLUMNS}

    def name(self, text: str) -> str:
        return f"w{self.index}-{text}"

    def add(self, table: str, offset: int = 0, **values: Any) -> Row:
        """A row valid on the world's day, or on the neighbouring day `offset`."""
        row = dict.fromkeys(SEED_COLUMNS[table]) | values
        if table not in UNDATED:
            start = self.day + timedelta(days=offset)
            row |= {"valid_from": start, "valid_to": start + timedelta(days=1), "reason": "random world"}
        self.seeds[table].append(row)
        return row

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    def maybe(self, value: Any, probability: float = 0.5) -> Any:
        return value if self.chance(probability) else None

    def make(self) -> dict[str, list[Row]]:
        self.clusters = [self.name("alpha"), self.name("beta")][: self.rng.randint(1, 2)]
        self.partitions = [self.name("batch"), self.name("long")]
        self._teams()
        self._instance_types()
        self._pools()
        self._payer_rules()
        self._cost_rules()
        self._policies()
        self._currencies()
        self.seeds["gpu_models"] = [dict(row) for row in GPU_MODELS]
        self.seeds["components"] = [dict(row) for row in COMPONENTS]
        return self.seeds

    # --- who --------------------------------------------------------------------------------------------

    def _teams(self) -> None:
        stems = self.rng.sample(["vision", "Nlp", "speech", "zürich"], self.rng.randint(1, 4))
        self.teams = [self.name(stem) for stem in stems]
        for number, team in enumerate(self.teams):
            parent = self.maybe(self.teams[0], 0.3) if number else None
            self.add("teams", team_id=team, team_name=team, parent_team_id=parent, headcount=number + 1)
        self.projects = []
        for number in range(self.rng.randint(0, 3)):
            project, team = self.name(f"project{number}"), self.rng.choice(self.teams)
            self.projects.append((project, team))
            self.add("projects", project_id=project, project_name=project, team_id=team)
        self.users = [self.name(stem) for stem in ("ann", "Bob", "cy")]
        self.accounts = [self.name(stem) for stem in ("lab", "Ops", "guests")]
        self.namespaces = [self.name(stem) for stem in ("train", "serve")]
        self.labels = [self.name(stem) for stem in ("blue", "green")]

    def _payer(self) -> Row:
        if self.projects and self.chance(0.5):
            project, team = self.rng.choice(self.projects)
            return {"team_id": team, "project_id": project}
        return {
            "team_id": "platform" if self.chance(0.05) else self.rng.choice(self.teams),
            "project_id": None,
        }

    def _payer_rules(self) -> None:
        makers = {
            "account": lambda: self.rng.choice([*self.accounts, self.name("l%"), self.name("_ps")]),
            "user_name": lambda: self.rng.choice([*self.users, self.name("%")]),
            "namespace": lambda: self.rng.choice(self.namespaces),
            "label": lambda: f"{LABEL_KEY}={self.rng.choice([*self.labels, self.name('%')])}",
            "path": lambda: self.rng.choice(["/data/%", "/data/ann/%", "/scratch"]),
            "tag": lambda: f"{LABEL_KEY}={self.rng.choice([*self.labels, self.name('b%')])}",
        }
        for _ in range(self.rng.randint(0, 7)):
            matchers = {name: makers[name]() for name in self.rng.sample(sorted(makers), self.rng.choice([1, 1, 2]))}
            if self.chance(0.2):
                matchers["cluster_id"] = self.rng.choice(self.clusters)
            self._ordered("payer_rules", **matchers, **self._payer())
        if self.chance(0.3):
            self._ordered("payer_rules", **self._payer())

    def _ordered(self, table: str, **values: Any) -> None:
        """A rule; now and then with a decoy before it that is valid the day before or after."""
        if self.chance(0.15):
            self.order += 1
            decoy = {**values, "team_id": self.rng.choice(self.teams), "project_id": None}
            values_then = decoy if table == "payer_rules" else {**values, "pool_id": None}
            self.add(table, self.rng.choice([-1, 1]), rule_order=self.order, **values_then)
        self.order += 1
        rule = self.add(table, rule_order=self.order, **values)
        if table == "cost_rules" and self.chance(0.5):
            # Valid since before the billing period began, whose first day decides over the spread of a line. Cost
            # rules match the providers of their own world alone, so they disturb no other.
            rule["valid_from"] -= timedelta(days=40)

    # --- what ------------------------------------------------------------------------------------------

    def _instance_types(self) -> None:
        """Name → (gpus, cores, GiB); the last two names have no weights on this day."""
        self.types = {
            self.name("big"): (4, 64, 512),
            self.name("odd"): (2, 7, 33),
            self.name("cpu"): (0, 16, 64),
            self.name("old"): (1, 8, 64),
            self.name("mystery"): (2, 8, 64),
        }
        prices = {
            "big": (950_000, 30_000, 20_000),
            "odd": (333_333, 333_333, 333_334),
            "cpu": (0, 600_001, 399_999),
            "old": (1_000_000, 0, 0),
        }
        for stem, (gpu, cpu, memory) in prices.items():
            gpus, cores, gib = self.types[self.name(stem)]
            self.add(
                "instance_types",
                -1 if stem == "old" else 0,
                instance_type=self.name(stem),
                provider="cloud",
                gpu_model="H100" if gpus else None,
                gpus=gpus,
                cores=cores,
                memory_gib=gib,
                gpu_price_weight=gpu,
                cpu_price_weight=cpu,
                memory_price_weight=memory,
            )

    def _pools(self) -> None:
        stems = self.rng.sample(["zeta", "eta", "Theta"], self.rng.randint(1, 3))
        self.compute_pools = [self.name(stem) for stem in stems]
        types = [self.name(stem) for stem in ("big", "odd", "cpu", "old")]
        for pool in self.compute_pools:
            self.add(
                "pools",
                pool_id=pool,
                pool_name=pool,
                pool_kind="compute",
                cluster_id=self.rng.choice(self.clusters),
                partition=self.maybe(self.rng.choice(self.partitions), 0.6),
                gpu_model=self.maybe("H100", 0.6),
                purchase_class="reserved",
                owner_team_id=self.maybe(self.rng.choice(self.teams)),
                default_instance_type=self.maybe(self.rng.choice(types), 0.8),
                min_cores_per_gpu=self.maybe(self.rng.choice([2, 3, 8]), 0.4),
                min_gib_per_gpu=self.maybe(self.rng.choice([1, 7, 64]), 0.4),
            )
        self.other_pools: list[str] = []
        self.filesystem, self.product = self.name("fs"), self.name("solver")
        for kind, resource in (
            ("storage", self.filesystem),
            ("network", None),
            ("license", self.maybe(self.product, 0.8)),
            ("overhead", None),
        ):
            if self.chance(0.8):
                pool, cluster = self.name(f"{kind}-pool"), self.maybe(self.rng.choice(self.clusters))
                self.other_pools.append(pool)
                self.add(
                    "pools",
                    pool_id=pool,
                    pool_name=pool,
                    pool_kind=kind,
                    resource=resource,
                    cluster_id=cluster,
                    partition=self.maybe(self.rng.choice(self.partitions)) if cluster else None,
                )

    def _cost_rules(self) -> None:
        for service, components in SERVICES.items():
            for _ in range(self.rng.choice([0, 1, 1, 2])):
                matchers = {
                    "provider": self.name("cloud" if self.chance(0.2) else "%"),
                    "charge_category": self.maybe(self.rng.choice(["Usage", "C%", "Tax"]), 0.2),
                    "sku_id": self.maybe(self.rng.choice(["sku-a", "sku-_", "%"]), 0.2),
                    "resource_id": self.maybe(self.name("r%"), 0.1),
                    "tag": self.maybe(f"{LABEL_KEY}={self.name('b%')}", 0.1),
                }
                self._cost_rule(self.rng.choice(components), service_name=service[:4] + "%", **matchers)
            if self.chance(0.7):
                self._cost_rule(self.rng.choice(components), service_name=service, provider=self.name("%"))
        if self.chance(0.3):
            self._cost_rule("other", provider=self.name("%"))

    def _cost_rule(self, component: str, **matchers: str | None) -> None:
        hourly = component == "node" or component in HOURLY
        natural = self.name(f"{component}-pool")
        pools = self.compute_pools if hourly else [*self.compute_pools, *self.other_pools]
        pool = self.maybe(self.rng.choice(pools), 0.75)
        if natural in self.other_pools and self.chance(0.7):
            pool = natural
        driver = None if hourly else self.maybe(self.rng.choice(DRIVERS), 0.4)
        if component in NATURAL_DRIVERS and self.chance(0.7):
            driver = NATURAL_DRIVERS[component]
        self._ordered(
            "cost_rules",
            **matchers,
            component=component,
            pool_id=pool,
            driver=driver,
            has_owner=self.rng.choice([True, False, None]),
            spread=self.rng.choice([None, None, "as_dated", "billing_period"]),
        )

    # --- how --------------------------------------------------------------------------------------------

    def _policies(self) -> None:
        bases = ["direct_cost", "direct_cost", "gpu_hours", None]
        pools = [*self.compute_pools, *self.other_pools, "*"]
        keys = {(self.rng.choice(pools), self.rng.choice(["*", "support", "other", "network"])) for _ in range(3)}
        if self.chance(0.7):
            keys.add(("*", "*"))
        for pool, component in sorted(keys):
            base = self.rng.choice(bases)
            self.add("allocation_policies", pool_id=pool, component=component, method="direct", overhead_base=base)

        causes = ["down", "reserved", "stranded", "unscheduled", "*"]
        pools = [*self.compute_pools, "*"]
        keys = {(self.rng.choice(pools), self.rng.choice(causes)) for _ in range(self.rng.randint(0, 4))} | {("*", "*")}
        for pool, cause in sorted(keys):
            policy = self.rng.choice(["proportional", "proportional", "proportional", "platform"])
            window = self.rng.choice(["day", "hour", "hour"])
            self.add("idle_policies", pool_id=pool, idle_cause=cause, policy=policy, idle_window=window)
            if self.chance(0.1):
                self.add("idle_policies", 1, pool_id=pool, idle_cause=cause, policy="platform", idle_window="day")

    def _currencies(self) -> None:
        """The reporting currency may be listed with rate 1 or left out; the others always have a rate."""
        if self.chance(0.5):
            self.add("currencies", currency="USD", rate_to_reporting=Decimal(1))
        self.add("currencies", currency="EUR", rate_to_reporting=Decimal("1.083456789"))
        self.add("currencies", currency="JPY", rate_to_reporting=Decimal("0.006666667"))
