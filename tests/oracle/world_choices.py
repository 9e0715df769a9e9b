"""How a random world shares its cost: methods, weights, idle rules, entitlements, outcomes and adjustments."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import TYPE_CHECKING

from .seed_tables import GPU_MODELS, HOURLY, WORKLOAD_CLASSES, Row

if TYPE_CHECKING:
    from .world_policies import PolicyMaker

CLASSES = [row["workload_class"] for row in WORKLOAD_CLASSES]
MODELS = [row["gpu_model"] for row in GPU_MODELS]
METHODS = ("direct", "direct", "time", "complexity", "complexity", "complexity")
BASES = ("direct_cost", "gpu_hours", "headcount", "fixed", None)
IDLE_POLICIES = ("proportional", "proportional", "even", "entitlement", "owner", "owner", "peak", "peak", "platform")
CAUSES = ("down", "reserved", "stranded", "unscheduled")
END_STATES = ("COMPLETED", "FAILED", "NODE_FAIL", "PREEMPTED", "BOOT_FAIL", "CANCELLED")
JOB_NAMES = ("train-a", "train-b", "eval-1", "sweep")
QUALITIES = ("normal", "high", "preempt")
LABEL_KEY = "cost.team/name"
"""A key that a naive JSON path would cut at the dot or the slash."""
LONGEST_REACH = 2
"""Days before and after its own on which a row of a world may be valid."""


def some(*texts: str) -> list[Decimal]:
    return [Decimal(text) for text in texts]


def make_choices(maker: PolicyMaker) -> None:
    _workload_rules(maker)
    _complexity_weights(maker)
    _allocation_policies(maker)
    _idle_policies(maker)
    _entitlements(maker)
    _overhead_shares(maker)
    _outcome_policies(maker)
    for number in range(maker.rng.choice([0, 1, 2, 3, 4] if maker.dense else [0, 0, 1, 1, 2])):
        _adjustment(maker, number)


# --- what work weighs --------------------------------------------------------------------------------------


def _workload_rules(maker: PolicyMaker) -> None:
    rng = maker.rng
    makers = {
        "cluster_id": lambda: {"cluster_id": rng.choice([*maker.clusters, maker.name("%")])},
        "partition": lambda: {"partition": rng.choice([*maker.partitions, maker.name("b%")])},
        "qos": lambda: {"qos": rng.choice(["high", "pre%", "n_rmal"])},
        "job_name": lambda: {"job_name": rng.choice(["train%", "train-_", "sweep", "%"])},
        "label": lambda: {"label": f"{LABEL_KEY}={rng.choice([*maker.labels, maker.name('%')])}"},
        "gpus": lambda: _range(maker, "gpus", some("0", "0.5", "1", "1.00002", "2", "4")),
        "hours": lambda: _range(maker, "hours", some("0", "0.5", "1", "1.0000002", "4", "24")),
    }
    for _ in range(rng.randint(0, 4)):
        matchers: Row = {}
        for name in rng.sample(sorted(makers), rng.choice([1, 1, 2])):
            matchers |= makers[name]()
        matchers |= {"workload_class": rng.choice(CLASSES), "self_declared": maker.chance(0.5)}
        maker.ordered("workload_rules", **matchers)
    if maker.chance(0.6 if maker.dense else 0.3):
        maker.ordered("workload_rules", workload_class=rng.choice(CLASSES), self_declared=False)


def _range(maker: PolicyMaker, what: str, bounds: list[Decimal]) -> Row:
    low, high = sorted(maker.rng.sample(bounds, 2))
    open_ended = maker.rng.choice(["low", "high", None])
    return {
        f"min_{what}": None if open_ended == "low" else low,
        f"max_{what}": None if open_ended == "high" else high,
    }


def _complexity_weights(maker: PolicyMaker) -> None:
    rng = maker.rng
    keys = {(rng.choice([*CLASSES, "*"]), rng.choice([*MODELS, "*"])) for _ in range(rng.randint(0, 6))}
    for workload_class, model in sorted(keys):
        weight = rng.choice(some("0.5", "1.5", "2", "0.3335", "0.0005", "1.2345", "10"))
        maker.add("complexity_weights", workload_class=workload_class, gpu_model=model, weight=weight)
        if maker.chance(0.1):
            maker.add("complexity_weights", 1, workload_class=workload_class, gpu_model=model, weight=Decimal(7))


# --- who pays ----------------------------------------------------------------------------------------------


def _allocation_policies(maker: PolicyMaker) -> None:
    rng = maker.rng
    pools = [*maker.compute_pools, "*", "*"]
    keys = {(rng.choice(pools), rng.choice([*HOURLY, "gpu", "*"])) for _ in range(rng.randint(1, 4))}
    pools = [*maker.compute_pools, *maker.other_pools, "*"]
    keys |= {(rng.choice(pools), rng.choice(["*", "support", "other", "network"])) for _ in range(3)}
    if maker.chance(0.7):
        keys.add(("*", "*"))
    burst = rng.choice([None, "marginal", "marginal"])  # mostly the same in all pools, so that they form groups
    for pool, component in sorted(keys):
        method = rng.choice(METHODS)
        maker.add(
            "allocation_policies",
            pool_id=pool,
            component=component,
            method=method,
            overhead_base=rng.choice(BASES),
            burst_policy=burst if maker.chance(0.8) else rng.choice([None, "blended", "marginal"]),
            lender_share=maker.maybe(rng.choice(some("0", "0.25", "1", "0.333333333")), 0.6),
            idle_ceiling=maker.maybe(rng.choice(some("0", "0.05", "0.2", "0.333333333", "1")), 0.25),
            **(_intensity(maker) if method == "complexity" and maker.chance(0.6) else {}),
        )


def _intensity(maker: PolicyMaker) -> Row:
    return {
        "intensity_metric": maker.rng.choice(["sm", "tensor"]),
        "intensity_floor": maker.rng.choice([None, *some("0", "0.2", "0.3335", "1")]),
        "intensity_min_coverage": maker.rng.choice([None, *some("0", "0.1", "0.5", "0.8")]),
    }


def _idle_policies(maker: PolicyMaker) -> None:
    rng = maker.rng
    pools = [*maker.compute_pools, "*"]
    keys = {(rng.choice(pools), rng.choice([*CAUSES, "*"])) for _ in range(rng.randint(0, 5))}
    if maker.chance(0.9):
        keys.add(("*", "*"))
    for pool, cause in sorted(keys):
        window = rng.choice([None, "day", "hour", "hour"])
        policy = rng.choice(IDLE_POLICIES)
        maker.add("idle_policies", pool_id=pool, idle_cause=cause, policy=policy, idle_window=window)
        if maker.chance(0.1):
            maker.add("idle_policies", 1, pool_id=pool, idle_cause=cause, policy="platform", idle_window="day")


def _entitlements(maker: PolicyMaker) -> None:
    for pool in maker.compute_pools:
        if maker.chance(0.7):
            for team in maker.rng.sample(maker.teams, maker.rng.randint(1, len(maker.teams))):
                gpus = maker.rng.choice(some("0.5", "1", "2", "4", "1.333333333", "0.00002", "12"))
                maker.add("entitlements", pool_id=pool, team_id=team, gpus=gpus)
                if maker.chance(0.1):
                    maker.add("entitlements", -1, pool_id=pool, team_id=team, gpus=Decimal(100))


def _overhead_shares(maker: PolicyMaker) -> None:
    thirds = "0.333333333", "0.333333334", "0.333333333"
    splits = {1: ["1"], 2: ["0.7", "0.3"], 3: thirds, 4: ["0.1", "0.2", "0.3", "0.4"]}
    for pool in ["*", *maker.compute_pools[:1], *maker.other_pools]:
        if maker.chance(0.6 if pool == "*" else 0.2):
            teams = maker.rng.sample(maker.teams, maker.rng.randint(1, len(maker.teams)))
            for team, share in zip(teams, some(*splits[len(teams)]), strict=True):
                maker.add("overhead_shares", pool_id=pool, team_id=team, share=share)


# --- what is moved afterwards ------------------------------------------------------------------------------


def _outcome_policies(maker: PolicyMaker) -> None:
    rng = maker.rng
    keys = {(rng.choice([*END_STATES, "*"]), rng.choice([*CLASSES, "*", "*"])) for _ in range(rng.choice([0, 1, 3, 5]))}
    for state, workload_class in sorted(keys):
        maker.add(
            "outcome_policies",
            state=state,
            workload_class=workload_class,
            paid_by=rng.choice(["platform", "platform", "platform", "team"]),
            checkpoint_minutes=rng.choice([None, 7, 30, 60]),
            max_lost_minutes=rng.choice([None, None, 15, 60, 240]),
        )


def _adjustment(maker: PolicyMaker, number: int) -> None:
    """A row that validation accepts: its funder is outside of its scope, a sum has an end and a currency, a rate a
    pool and a currency."""
    rng = maker.rng
    kind = rng.choice(["percent", "percent", "amount", "rate"])
    scope = _scope(maker, alone=kind == "amount")
    values = {
        "percent": some("-20", "10", "-100", "33.333333333", "-150", "0.000000001"),
        "amount": some("-100", "50", "-0.000000001", "333.333333333"),
        "rate": some("0", "2.5", "0.000000007", "1.234567891"),
    }
    where: Row = {}
    if kind == "rate":
        where = {"pool_id": rng.choice(maker.compute_pools), "component": maker.maybe("gpu")}
    elif kind == "percent":
        where = {
            "pool_id": maker.maybe(rng.choice([*maker.compute_pools, *maker.other_pools]), 0.3),
            "component": maker.maybe(rng.choice(["gpu", "cpu", "energy", "support", "storage"]), 0.3),
        }
    row = maker.add(
        "adjustments",
        adjustment_id=maker.name(f"adjustment{number}"),
        adjustment_kind=kind,
        value=rng.choice(values[kind]),
        currency=rng.choice(["USD", "USD", "EUR"]) if kind != "percent" or maker.chance(0.2) else None,
        funded_by=rng.choice(["platform", "all", "all", *_funders(maker, scope)]),
        approved_by="the board",
        **scope,
        **where,
    )
    row["valid_from"] = maker.day - timedelta(days=rng.randint(0, LONGEST_REACH))
    row["valid_to"] = maker.day + timedelta(days=1 + rng.randint(0, LONGEST_REACH))


def _scope(maker: PolicyMaker, alone: bool) -> Row:
    """At least one of team, project and class; just one where the kind wants that."""
    known = [row["workload_class"] for row in maker.seeds["workload_rules"]]
    choices: Row = {"team_id": maker.rng.choice(maker.teams), "workload_class": maker.rng.choice(known or CLASSES)}
    if maker.projects:
        choices["project_id"] = maker.rng.choice(maker.projects)[0]
    wanted = maker.rng.sample(sorted(choices), 1 if alone else min(len(choices), maker.rng.choice([1, 1, 1, 2])))
    return {name: choices[name] for name in wanted}


def _funders(maker: PolicyMaker, scope: Row) -> list[str]:
    """The teams outside of the scope's teams and all below them."""
    inside = {scope.get("team_id"), dict(maker.projects).get(scope.get("project_id"))}
    for row in maker.seeds["teams"]:  # parents come before their children
        if row["parent_team_id"] in inside - {None}:
            inside.add(row["team_id"])
    return [team for team in maker.teams if team not in inside]
