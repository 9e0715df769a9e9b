"""The policy half of a random world: teams, rules, pools, prices; `world_choices` draws how cost is shared.

Everything is valid on the world's day only, or a few days around it that no world is compared on. Around it lie
decoys: rules with a smaller order that end at the day's midnight or begin with the next one.
"""

from __future__ import annotations

from datetime import date, timedelta
from decimal import Decimal
from random import Random
from typing import Any

from .seed_tables import CONSTANTS, HOURLY, PRICE_PRESETS, SEED_COLUMNS, UNDATED, Row
from .world_choices import LABEL_KEY, make_choices

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


class PolicyMaker:
    """Draws the seed tables of one world; `name` prefixes every id with the world's index.

    In a dense world things meet: pools of one cluster, teams that are known by their accounts, nodes that are billed.
    """

    def __init__(self, rng: Random, index: int, day: date, dense: bool = False) -> None:
        self.rng, self.index, self.day, self.dense = rng, index, day, dense
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
        self._currencies()
        make_choices(self)
        self.seeds |= {name: [dict(row) for row in rows] for name, rows in CONSTANTS.items()}
        return self.seeds

    # --- who --------------------------------------------------------------------------------------------

    def _teams(self) -> None:
        stems = self.rng.sample(["vision", "Nlp", "speech", "zürich"], self.rng.randint(2 if self.dense else 1, 4))
        self.teams = [self.name(stem) for stem in stems]
        for number, team in enumerate(self.teams):
            parent = self.maybe(self.rng.choice(self.teams[:number]), 0.4) if number else None
            headcount = self.rng.choice([None, 0, number + 1, number + 1, number + 1])
            self.add("teams", team_id=team, team_name=team, parent_team_id=parent, headcount=headcount)
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
        for _ in range(self.rng.randint(0, 2 if self.dense else 7)):
            matchers = {name: makers[name]() for name in self.rng.sample(sorted(makers), self.rng.choice([1, 1, 2]))}
            if self.chance(0.2):
                matchers["cluster_id"] = self.rng.choice(self.clusters)
            self.ordered("payer_rules", **matchers, **self._payer())
        for number, account in enumerate(self.accounts if self.dense else ()):
            team = self.teams[number % len(self.teams)]
            own = [project for project, its_team in self.projects if its_team == team]
            self.ordered("payer_rules", account=account, team_id=team, project_id=self.rng.choice([None, *own]))
        if self.chance(0.3):
            self.ordered("payer_rules", **self._payer())

    def ordered(self, table: str, **values: Any) -> None:
        """A rule; now and then with a decoy before it that is valid the day before or after."""
        if self.chance(0.15):
            self.order += 1
            decoys = {
                "payer_rules": {"team_id": self.rng.choice(self.teams), "project_id": None},
                "cost_rules": {"pool_id": None},
                "workload_rules": {"workload_class": "evaluation"},
            }
            self.add(table, self.rng.choice([-1, 1]), rule_order=self.order, **{**values, **decoys[table]})
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
            self.name("preset"): (4, 48, 256),
            self.name("bare"): (0, 12, 100),
            self.name("old"): (1, 8, 64),
            self.name("mystery"): (2, 8, 64),
        }
        presets = [row["preset"] for row in PRICE_PRESETS]
        prices = {
            "big": (950_000, 30_000, 20_000, None),
            "odd": (333_333, 333_333, 333_334, None),
            "cpu": (0, 600_001, 399_999, None),
            "preset": (None, None, None, self.rng.choice(presets)),
            "bare": (None, None, None, self.rng.choice(presets)),
            "old": (1_000_000, 0, 0, None),
        }
        for stem, (gpu, cpu, memory, preset) in prices.items():
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
                price_preset=preset,
            )

    def _pools(self) -> None:
        stems = self.rng.sample(["zeta", "eta", "Theta", "iota"], self.rng.randint(2 if self.dense else 1, 4))
        self.compute_pools = [self.name(stem) for stem in stems]
        types = [self.name(stem) for stem in ("big", "odd", "cpu", "preset", "bare", "old")]
        for pool in self.compute_pools:
            self.add(
                "pools",
                pool_id=pool,
                pool_name=pool,
                pool_kind="compute",
                cluster_id=self.clusters[0] if self.dense else self.rng.choice(self.clusters),
                partition=self.maybe(self.rng.choice(self.partitions), 0.6),
                gpu_model="H100" if self.dense and self.chance(0.8) else self.rng.choice(["H100", "H100", "L4", None]),
                purchase_class=self.rng.choice(["reserved", "owned", "on_demand", "spot"]),
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
            if self.dense or self.chance(0.7):
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
        self.ordered(
            "cost_rules",
            **matchers,
            component=component,
            pool_id=pool,
            driver=driver,
            has_owner=self.rng.choice([True, False, None]),
            spread=self.rng.choice([None, None, "as_dated", "billing_period"]),
        )

    def _currencies(self) -> None:
        """The reporting currency may be listed with rate 1 or left out; the others always have a rate."""
        if self.chance(0.5):
            self.add("currencies", currency="USD", rate_to_reporting=Decimal(1))
        self.add("currencies", currency="EUR", rate_to_reporting=Decimal("1.083456789"))
        self.add("currencies", currency="JPY", rate_to_reporting=Decimal("0.006666667"))
