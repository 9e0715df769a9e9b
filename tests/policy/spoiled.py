"""Rows that make no sense, each with what has to be said of it: file, row, problem and remedy.

By chapter, because all rows of a chapter are spoiled at once and one message lists twenty of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tests.policy.company import add, replace


@dataclass(frozen=True)
class Spoiled:
    """A row that is added to a seed, or put in the place of another text, and what is said of it."""

    what: str
    seed: str
    row: str
    found: dict[str, str]
    """The problems, by the row that is named."""
    remedy: str
    instead_of: str = ""

    def spoil(self, seeds: Path) -> None:
        if self.instead_of:
            replace(seeds, self.seed, self.instead_of, self.row)
        else:
            add(seeds, self.seed, self.row + "\n")


def unknown(what: str, seed: str, row: str, name: str, problem: str, file: str) -> Spoiled:
    return Spoiled(what, seed, row, {name: f"{problem} is not in {file}"}, f"add it to {file} first")


def uncovered(what: str, seed: str, row: str, name: str, problem: str, file: str, day: str) -> Spoiled:
    found = {name: f"{problem} is in {file}, but not valid on {day}"}
    return Spoiled(what, seed, row, found, f"or add a row for the others to {file}")


def reserved(seed: str, column: str, rows: dict[str, str]) -> Spoiled:
    """Rows by the name that each is given."""
    table = seed.partition("/")[2]
    start = "" if seed.startswith("reference/") else "@2026-01-01"
    found = {f"{table}/{name}{start}": f"{column} = {name} has a meaning of its own" for name in rows}
    return Spoiled(f"reserved {column}", seed, "\n".join(rows.values()), found, "choose another name than: ")


TEAMS, POOLS, CLASSES = "seeds/policy/teams.csv", "seeds/policy/pools.csv", "seeds/reference/workload_classes.csv"

PERIODS = [
    Spoiled(
        "overlap",
        "policy/entitlements",
        "gpu-owned,nlp,3,2026-03-01,,More",
        {
            "entitlements/gpu-owned/nlp@2026-03-01": "an earlier row with this pool_id, team_id is valid"
            " until 9999-12-31"
        },
        "valid_to of the one = valid_from of the other",
    ),
    Spoiled(
        "overlap of rows that end",
        "policy/complexity_weights",
        "serving,*,1,2026-01-01,2026-02-02,One\nserving,*,2,2026-02-01,2026-03-01,Two",
        {
            "complexity_weights/serving/*@2026-02-01": "an earlier row with this workload_class, gpu_model is valid"
            " until 2026-02-02"
        },
        "end the earlier row where this one begins",
    ),
    Spoiled(
        "no day",
        "policy/outcome_policies",
        "TIMEOUT,*,team,,,2026-05-01,2026-05-01,Never",
        {"outcome_policies/TIMEOUT/*@2026-05-01": "valid_to is not after valid_from"},
        "make it later than valid_from",
    ),
    Spoiled(
        "gap after the default",
        "policy/idle_policies",
        "*,*,proportional,day,2026-01-01,2026-06-01,Whoever",
        {"idle_policies/*/*@2026-01-01": "nothing follows this row on 2026-06-01"},
        "leave valid_to empty, or add the row that takes over on that day",
        instead_of="*,*,proportional,day,2026-01-01,,Whoever",
    ),
    Spoiled(
        "gap before the default",
        "policy/allocation_policies",
        "*,*,direct,direct_cost,,,,,,,2026-02-01,,Overhead",
        {"allocation_policies/*/*": "no row with * for pool_id and component is valid on 2026-01-01"},
        "add a row that applies where no other does, from that day on",
        instead_of="*,*,direct,direct_cost,,,,,,,2026-01-01,,Overhead",
    ),
    Spoiled(
        "shares below one, from the day that one ends",
        "policy/overhead_shares",
        "buckets,nlp,0.4,2026-01-01,,A\nbuckets,vision,0.6,2026-01-01,2026-02-01,B\nbuckets,vision,0.5,2026-02-01,,C",
        {"overhead_shares/buckets/nlp@2026-01-01": "the shares of pool buckets sum to 0.900000000 on 2026-02-01"},
        "change the shares of the pool so that those of each day sum to 1",
    ),
    Spoiled(
        "shares above one by the ninth decimal",
        "policy/overhead_shares",
        "*,nlp,0.333333334,2026-02-01",
        {"overhead_shares/*/nlp@2026-02-01": "the shares of pool * sum to 1.000000001 on 2026-02-01"},
        "sum to 1",
        instead_of="*,nlp,0.333333333,2026-02-01",
    ),
    Spoiled(
        "fixed base without shares",
        "policy/allocation_policies",
        "solver,license,direct,fixed,,,,,,,2026-01-01,,Before there were any",
        {
            "allocation_policies/solver/license@2026-01-01": "overhead_base = fixed, but pool solver has no shares"
            " on 2026-01-01"
        },
        "to seeds/policy/overhead_shares.csv, or choose another overhead_base",
    ),
    Spoiled(
        "cycle on days that are past",
        "policy/teams",
        "a,A,b,,1,2026-01-01,2026-03-01,Odd\na,A,,,1,2026-03-01,,Mended\n"
        "b,B,,,1,2026-01-01,2026-02-01,Fine\nb,B,c,,1,2026-02-01,2026-04-01,Odd\nb,B,,,1,2026-04-01,,Mended\n"
        "c,C,a,,1,2026-01-01,,Fine since March",
        {
            "teams/a@2026-01-01": "a is above itself, or 20 levels deep, on 2026-02-01 by way of b",
            "teams/b@2026-02-01": "b is above itself, or 20 levels deep, on 2026-02-01 by way of c",
            "teams/c@2026-01-01": "c is above itself, or 20 levels deep, on 2026-02-01 by way of a",
        },
        "change parent_team_id so that the chain ends at a row without one",
    ),
    Spoiled(
        "two rules of one order",
        "policy/workload_rules",
        "20,,,high,,,,,,,serving,,2026-02-01,2026-03-01,Twice",
        {"workload_rules/20@2026-02-01": "an earlier row with this rule_order is valid until 2026-03-01"},
        "end the earlier row where this one begins",
    ),
    Spoiled(
        "two presets of one name",
        "reference/price_presets",
        "ratio,per_node,95,3,2,Twice",
        {"price_presets/ratio": "2 rows have this preset"},
        "give each row its own preset",
    ),
    uncovered(
        "entitlement beyond the team's end",
        "policy/entitlements",
        "gpu-owned,maps,1,2026-03-01,,X",
        "entitlements/gpu-owned/maps@2026-03-01",
        "team_id = maps",
        TEAMS,
        "2026-04-01",
    ),
    uncovered(
        "entitlement while the team was away",
        "policy/entitlements",
        "cpu-owned,maps,1,2026-01-15,2026-03-15,X",
        "entitlements/cpu-owned/maps@2026-01-15",
        "team_id = maps",
        TEAMS,
        "2026-02-01",
    ),
    uncovered(
        "entitlement since ever",
        "policy/entitlements",
        "gpu-cloud,platform,1,,2026-05-01,X",
        "entitlements/gpu-cloud/platform@",
        "pool_id = gpu-cloud",
        POOLS,
        "1970-01-01",
    ),
    uncovered(
        "parent that ended",
        "policy/teams",
        "x,X,maps,,1,2026-03-01,,X",
        "teams/x@2026-03-01",
        "parent_team_id = maps",
        TEAMS,
        "2026-04-01",
    ),
    uncovered(
        "share of a team that ended",
        "policy/overhead_shares",
        "scratch,maps,1,2026-03-15,,X",
        "overhead_shares/scratch/maps@2026-03-15",
        "team_id = maps",
        TEAMS,
        "2026-04-01",
    ),
    uncovered(
        "payer's project that ended",
        "policy/payer_rules",
        "70,,x,,,,,,nlp,atlas,2026-01-01,,X",
        "payer_rules/70@2026-01-01",
        "project_id = atlas",
        "seeds/policy/projects.csv",
        "2026-02-01",
    ),
    uncovered(
        "machine that was given back",
        "policy/pools",
        "x,X,compute,hal,x,,a100,owned,,leased,,,2026-01-15,,X",
        "pools/x@2026-01-15",
        "default_instance_type = leased",
        "seeds/reference/instance_types.csv",
        "2026-02-01",
    ),
]

NAMES = [
    unknown(
        "parent", "policy/teams", "x,X,ghost,,1,2026-01-01,,X", "teams/x@2026-01-01", "parent_team_id = ghost", TEAMS
    ),
    unknown(
        "project's team",
        "policy/projects",
        "x,X,ghost,2026-01-01,,X",
        "projects/x@2026-01-01",
        "team_id = ghost",
        TEAMS,
    ),
    unknown(
        "payer's team",
        "policy/payer_rules",
        "70,,x,,,,,,ghost,,2026-01-01,,X",
        "payer_rules/70@2026-01-01",
        "team_id = ghost",
        TEAMS,
    ),
    unknown(
        "entitled team",
        "policy/entitlements",
        "gpu-owned,ghost,1,2026-01-01,,X",
        "entitlements/gpu-owned/ghost@2026-01-01",
        "team_id = ghost",
        TEAMS,
    ),
    unknown(
        "entitled pool",
        "policy/entitlements",
        "*,nlp,1,2026-01-01,,X",
        "entitlements/*/nlp@2026-01-01",
        "pool_id = *",
        POOLS,
    ),
    unknown(
        "sharing team",
        "policy/overhead_shares",
        "solver,ghost,1,2026-01-01,,X",
        "overhead_shares/solver/ghost@2026-01-01",
        "team_id = ghost",
        TEAMS,
    ),
    unknown(
        "pool of a policy",
        "policy/allocation_policies",
        "ghost,*,direct,,,,,,,,2026-01-01,,X",
        "allocation_policies/ghost/*@2026-01-01",
        "pool_id = ghost",
        POOLS,
    ),
    unknown(
        "component",
        "policy/allocation_policies",
        "*,gppu,direct,,,,,,,,2026-01-01,,X",
        "allocation_policies/*/gppu@2026-01-01",
        "component = gppu",
        "seeds/reference/components.csv",
    ),
    unknown(
        "GPU model",
        "policy/complexity_weights",
        "*,b200,1,2026-01-01,,X",
        "complexity_weights/*/b200@2026-01-01",
        "gpu_model = b200",
        "seeds/reference/gpu_models.csv",
    ),
    unknown(
        "weighed class",
        "policy/complexity_weights",
        "ghost,*,1,2026-01-01,,X",
        "complexity_weights/ghost/*@2026-01-01",
        "workload_class = ghost",
        CLASSES,
    ),
    unknown(
        "class of a rule",
        "policy/workload_rules",
        "70,,,,,,,,,,ghost,,2026-01-01,,X",
        "workload_rules/70@2026-01-01",
        "workload_class = ghost",
        CLASSES,
    ),
    unknown(
        "class of an outcome",
        "policy/outcome_policies",
        "FAILED,ghost,team,,,2026-01-01,,X",
        "outcome_policies/FAILED/ghost@2026-01-01",
        "workload_class = ghost",
        CLASSES,
    ),
    unknown(
        "price preset",
        "reference/instance_types",
        "x,X,a100,1,1,1,,,,ghost,2026-01-01,,X",
        "instance_types/x@2026-01-01",
        "price_preset = ghost",
        "seeds/reference/price_presets.csv",
    ),
    unknown(
        "currency",
        "policy/adjustments",
        "x,percent,1,XYZ,nlp,,,,,platform,CFO,2026-01-01,,X",
        "adjustments/x@2026-01-01",
        "currency = XYZ",
        "seeds/reference/currencies.csv",
    ),
    unknown(
        "funder",
        "policy/adjustments",
        "y,percent,1,,nlp,,,,,nobody,CFO,2026-01-01,,X",
        "adjustments/y@2026-01-01",
        "funded_by = nobody",
        TEAMS,
    ),
    unknown(
        "project in scope",
        "policy/adjustments",
        "z,percent,1,,,ghost,,,,platform,CFO,2026-01-01,,X",
        "adjustments/z@2026-01-01",
        "project_id = ghost",
        "seeds/policy/projects.csv",
    ),
    reserved(
        "policy/teams",
        "team_id",
        {name: f"{name},X,,,1,2026-01-01,,X" for name in ("platform", "unattributed", "all", "*")},
    ),
]


def words(what: str, seed: str, row: str, name: str, problem: str, listed: str) -> Spoiled:
    return Spoiled(what, seed, row, {name: f"{problem} is none of the known words"}, f"use one of: {listed}")


CELLS = [
    words(
        "method",
        "policy/allocation_policies",
        "solver,*,fair,,,,,,,,2026-01-01,,X",
        "allocation_policies/solver/*@2026-01-01",
        "method = fair",
        "direct, time, complexity",
    ),
    words(
        "overhead base",
        "policy/allocation_policies",
        "solver,cpu,direct,revenue,,,,,,,2026-01-01,,X",
        "allocation_policies/solver/cpu@2026-01-01",
        "overhead_base = revenue",
        "direct_cost, gpu_hours, headcount, fixed",
    ),
    words(
        "burst policy",
        "policy/allocation_policies",
        "solver,gpu,direct,,mixed,,,,,,2026-01-01,,X",
        "allocation_policies/solver/gpu@2026-01-01",
        "burst_policy = mixed",
        "blended, marginal",
    ),
    words(
        "intensity metric",
        "policy/allocation_policies",
        "solver,memory,complexity,,,,dram,,,,2026-01-01,,X",
        "allocation_policies/solver/memory@2026-01-01",
        "intensity_metric = dram",
        "sm, tensor",
    ),
    words(
        "idle policy",
        "policy/idle_policies",
        "gpu-owned,down,lottery,,2026-01-01,,X",
        "idle_policies/gpu-owned/down@2026-01-01",
        "policy = lottery",
        "proportional, even, entitlement, owner, platform, peak",
    ),
    words(
        "paid by",
        "policy/outcome_policies",
        "FAILED,*,user,,,2026-01-01,,X",
        "outcome_policies/FAILED/*@2026-01-01",
        "paid_by = user",
        "platform, team",
    ),
    words(
        "basis",
        "reference/price_presets",
        "x,per_rack,1,1,1,X",
        "price_presets/x",
        "basis = per_rack",
        "per_unit, per_node",
    ),
    Spoiled(
        "lender share above one",
        "policy/allocation_policies",
        "gpu-owned,*,direct,,,1.5,,,,,2026-01-01,,X",
        {"allocation_policies/gpu-owned/*@2026-01-01": "lender_share = 1.500000000 is more than 1"},
        "make it 1 or less",
    ),
    Spoiled(
        "negative floor",
        "policy/allocation_policies",
        "buckets,cpu,complexity,,,,sm,-0.1,,,2026-01-01,,X",
        {"allocation_policies/buckets/cpu@2026-01-01": "intensity_floor = -0.100000000 is less than 0"},
        "make it 0 or more",
    ),
    Spoiled(
        "coverage above one",
        "policy/allocation_policies",
        "buckets,memory,complexity,,,,sm,,50,,2026-01-01,,X",
        {"allocation_policies/buckets/memory@2026-01-01": "intensity_min_coverage = 50.000000000 is more than 1"},
        "make it 1 or less",
    ),
    Spoiled(
        "ceiling above one",
        "policy/allocation_policies",
        "buckets,energy,direct,,,,,,,1.01,2026-01-01,,X",
        {"allocation_policies/buckets/energy@2026-01-01": "idle_ceiling = 1.010000000 is more than 1"},
        "make it 1 or less",
    ),
    Spoiled(
        "weight of nothing",
        "policy/complexity_weights",
        "serving,*,0,2026-01-01,,X",
        {"complexity_weights/serving/*@2026-01-01": "weight = 0.000000000 is less than 0.001"},
        "make it 0.001 or more",
    ),
    Spoiled(
        "negative weight",
        "policy/complexity_weights",
        "serving,a100,-1,2026-01-01,,X",
        {"complexity_weights/serving/a100@2026-01-01": "weight = -1.000000000 is less than 0.001"},
        "make it 0.001 or more",
    ),
    Spoiled(
        "negative entitlement",
        "policy/entitlements",
        "gpu-owned,speech,-1,2026-01-01,,X",
        {"entitlements/gpu-owned/speech@2026-01-01": "gpus = -1.000000000 is less than 0"},
        "make it 0 or more",
    ),
    Spoiled(
        "negative share, though they sum to one",
        "policy/overhead_shares",
        "buckets,nlp,-0.5,2026-01-01,,X\nbuckets,vision,1,2026-01-01,,X\nbuckets,speech,0.5,2026-01-01,,X",
        {"overhead_shares/buckets/nlp@2026-01-01": "share = -0.500000000 is less than 0"},
        "make it 0 or more",
    ),
    Spoiled(
        "checkpoints at all times",
        "policy/outcome_policies",
        "PREEMPTED,*,platform,0,,2026-01-01,,X",
        {"outcome_policies/PREEMPTED/*@2026-01-01": "checkpoint_minutes = 0.000000000 is not more than 0"},
        "make it more than 0",
    ),
    Spoiled(
        "state in small letters",
        "policy/outcome_policies",
        "timeout,*,team,,,2026-01-01,,X",
        {"outcome_policies/timeout/*@2026-01-01": "state = timeout is not in capitals, so no job has it"},
        "write it in capitals",
    ),
    Spoiled(
        "no reason",
        "policy/entitlements",
        "gpu-cloud,nlp,1,2026-01-01,,",
        {"entitlements/gpu-cloud/nlp@2026-01-01": "reason = (empty) is required"},
        "fill in the cell",
    ),
    Spoiled(
        "rate without a pool's GPUs",
        "policy/adjustments",
        "x,rate,5,USD,nlp,,,unmapped,,platform,CFO,2026-01-01,,X",
        {"adjustments/x@2026-01-01": "pool_id = unmapped is no compute pool and has no GPU-hours on 2026-01-01"},
        "name a pool whose pool_kind is compute",
    ),
]

UNLENT = "pool_id = {} is neither reserved nor owned, so nobody can lend it, on {}"
UNMARKED = "the rule reads job_name, label or hours, which users choose themselves, but does not say so"

RULES = [
    Spoiled(
        "no number of GPUs",
        "policy/workload_rules",
        "70,,,,,,8,8,,,training,,2026-01-01,,X",
        {"workload_rules/70@2026-01-01": "max_gpus = 8.000000000 is not more than min_gpus, so no job matches"},
        "make it more than min_gpus",
    ),
    Spoiled(
        "no time limit",
        "policy/workload_rules",
        "71,,,,,,,,24,4,training,true,2026-01-01,,X",
        {"workload_rules/71@2026-01-01": "max_hours = 4.000000000 is not more than min_hours, so no job matches"},
        "make it more than min_hours",
    ),
    Spoiled(
        "the user's word, unmarked",
        "policy/workload_rules",
        "72,,,,train-%,,,,,,training,false,2026-01-01,,X",
        {"workload_rules/72@2026-01-01": UNMARKED},
        "set self_declared to true",
    ),
    Spoiled(
        "the user's label, unmarked",
        "policy/workload_rules",
        "73,,,,,kind=train,,,,,training,,2026-01-01,,X",
        {"workload_rules/73@2026-01-01": UNMARKED},
        "set self_declared to true",
    ),
    Spoiled(
        "the user's time limit, unmarked",
        "policy/workload_rules",
        "75,,,,,,,,24,,training,,2026-01-01,,X",
        {"workload_rules/75@2026-01-01": UNMARKED},
        "set self_declared to true",
    ),
    Spoiled(
        "label without a key",
        "policy/workload_rules",
        "74,,,,,train,,,,,training,true,2026-01-01,,X",
        {"workload_rules/74@2026-01-01": "label = train is no key=value pair"},
        "write key=value",
    ),
    Spoiled(
        "preset and own weights",
        "reference/instance_types",
        "x,X,a100,1,1,1,900000,50000,50000,ratio,2026-01-01,,X",
        {"instance_types/x@2026-01-01": "price_preset = ratio gives the price weights, but own ones are filled in too"},
        "leave the three price weights empty, or price_preset",
    ),
    Spoiled(
        "neither preset nor own weights",
        "reference/instance_types",
        "y,X,a100,1,1,1,900000,100000,,,2026-01-01,,X",
        {"instance_types/y@2026-01-01": "nothing says how the price is cut"},
        "fill in all three price weights, or name a price_preset",
    ),
    Spoiled(
        "own weights that are no whole",
        "reference/instance_types",
        "z,X,a100,1,1,1,900000,50000,40000,,2026-01-01,,X",
        {
            "instance_types/z@2026-01-01": "gpu_price_weight + cpu_price_weight + memory_price_weight = 990000"
            " is not 1000000"
        },
        "change the weights so that they add up to 1000000",
    ),
    Spoiled(
        "preset for a machine of unknown size",
        "reference/instance_types",
        "w,X,,,64,256,,,,ratio,2026-01-01,,X",
        {
            "instance_types/w@2026-01-01": "price_preset = ratio weighs what the machine has,"
            " but gpus, cores or memory_gib is empty"
        },
        "fill in all three, with 0 where there is none",
    ),
    Spoiled(
        "preset for GPUs only",
        "reference/price_presets",
        "gpus,per_unit,1,0,0,X",
        {
            "price_presets/gpus": "cpu_weight + memory_weight = 0.000000000"
            " leaves machines without GPUs nothing to cut their price by"
        },
        "make cpu_weight or memory_weight at least",
    ),
    Spoiled(
        "intensity that another method does not read",
        "policy/allocation_policies",
        "gpu-cloud,gpu,time,,,,sm,,,,2026-01-01,,X",
        {"allocation_policies/gpu-cloud/gpu@2026-01-01": "intensity_metric = sm counts under method complexity only"},
        "make the method complexity",
    ),
    Spoiled(
        "marginal price of what cannot burst",
        "policy/allocation_policies",
        "gpu-cloud,cpu,direct,,marginal,,,,,,2026-01-01,,X",
        {"allocation_policies/gpu-cloud/cpu@2026-01-01": "component = cpu has no burst, but burst_policy is marginal"},
        "make the component gpu or *",
    ),
    Spoiled(
        "lender share of what cannot be lent",
        "policy/allocation_policies",
        "gpu-owned,cpu,direct,,,0.1,,,,,2026-01-01,,X",
        {"allocation_policies/gpu-owned/cpu@2026-01-01": "component = cpu cannot be lent, but there is a lender_share"},
        "make the component gpu or *",
    ),
    Spoiled(
        "lender share of rented GPUs",
        "policy/allocation_policies",
        "gpu-cloud,*,direct,,,0.1,,,,,2026-02-01,,X",
        {"allocation_policies/gpu-cloud/*@2026-02-01": UNLENT.format("gpu-cloud", "2026-02-01")},
        "name a pool whose purchase_class is reserved or owned",
    ),
    reserved(
        "policy/pools",
        "pool_id",
        {name: f"{name},X,storage,,,,,,,,,,2026-01-01,,X" for name in ("unmapped", "none", "*")},
    ),
    reserved(
        "reference/workload_classes",
        "workload_class",
        {name: f"{name},X,X" for name in ("unclassified", "*")},
    ),
]


def adjustment(what: str, row: str, problem: str, remedy: str) -> Spoiled:
    """Each row begins with its id."""
    start, name = row.split(",")[-3], row.split(",")[0]
    return Spoiled(what, "policy/adjustments", row, {f"adjustments/{name}@{start}": problem}, remedy)


OWN = "funded_by = {} pays for its own adjustment: it belongs to {}, which is in scope"

ADJUSTMENTS = [
    adjustment(
        "for everybody",
        "a,percent,-5,,,,,gpu-owned,gpu,platform,CFO,2026-01-01,,X",
        "the adjustment is for everybody",
        "name at least one of team_id, project_id and workload_class",
    ),
    adjustment(
        "amount without an end",
        "b,amount,-5,USD,nlp,,,,,platform,CFO,2026-01-01,,X",
        "an amount is spread over its days, but valid_from or valid_to is empty",
        "fill in both days",
    ),
    adjustment(
        "amount without a currency",
        "c,amount,-5,,nlp,,,,,platform,CFO,2026-01-01,2026-02-01,X",
        "adjustment_kind = amount is money, but currency is empty",
        "name the currency",
    ),
    adjustment(
        "amount in a pool",
        "d,amount,-5,USD,nlp,,,gpu-owned,,platform,CFO,2026-01-01,2026-02-01,X",
        "an amount belongs to no pool or component, but one is given",
        "leave pool_id and component empty",
    ),
    adjustment(
        "amount in a component",
        "e,amount,-5,USD,nlp,,,,gpu,platform,CFO,2026-01-01,2026-02-01,X",
        "an amount belongs to no pool or component, but one is given",
        "leave pool_id and component empty",
    ),
    adjustment(
        "amount for a class of a team",
        "f,amount,-5,USD,nlp,,training,,,platform,CFO,2026-01-01,2026-02-01,X",
        "an amount goes to a team, a project or a class, but several are given",
        "leave workload_class empty, or team_id and project_id",
    ),
    adjustment(
        "rate without a pool",
        "g,rate,5,USD,nlp,,,,,platform,CFO,2026-01-01,,X",
        "a rate is the price of a pool's GPU-hour, but pool_id is empty",
        "name the pool",
    ),
    adjustment(
        "rate without a currency",
        "h,rate,5,,nlp,,,gpu-owned,,platform,CFO,2026-01-01,,X",
        "adjustment_kind = rate is money, but currency is empty",
        "name the currency",
    ),
    adjustment(
        "rate of a component without GPU-hours",
        "i,rate,5,USD,nlp,,,gpu-owned,cpu,platform,CFO,2026-01-01,,X",
        "component = cpu has no price per GPU-hour",
        "leave component empty, or write gpu",
    ),
    adjustment(
        "negative rate",
        "j,rate,-5,USD,nlp,,,gpu-owned,,platform,CFO,2026-01-01,,X",
        "value = -5.000000000 is a negative price per GPU-hour",
        "make it 0 or more",
    ),
    adjustment(
        "not approved",
        "k,percent,-5,,nlp,,,,,platform,,2026-01-01,,X",
        "approved_by = (empty) is required",
        "fill in the cell",
    ),
    adjustment(
        "kind",
        "l,discount,-5,,nlp,,,,,platform,CFO,2026-01-01,,X",
        "adjustment_kind = discount is none of the known words",
        "use one of: percent, amount, rate",
    ),
    adjustment(
        "funded by itself",
        "m,percent,-5,,nlp,,,,,nlp,CFO,2026-01-01,,X",
        OWN.format("nlp", "nlp"),
        "name another team, platform or all in funded_by",
    ),
    adjustment(
        "funded by a team that was below it on one of the days",
        "n,percent,-5,,research,,,,,robotics,CFO,2026-02-28,,X",
        OWN.format("robotics", "research"),
        "name another team, platform or all in funded_by",
    ),
    adjustment(
        "funded by the project's team",
        "o,percent,-5,,,llm,,,,nlp,CFO,2026-01-01,,X",
        OWN.format("nlp", "nlp"),
        "name another team, platform or all in funded_by",
    ),
    adjustment(
        "funded by a team that ends",
        "p,percent,-5,,nlp,,,,,maps,CFO,2026-03-01,,X",
        f"funded_by = maps is in {TEAMS}, but not valid on 2026-04-01",
        f"or add a row for the others to {TEAMS}",
    ),
    adjustment(
        "for a team that is away",
        "q,percent,-5,,maps,,,,,platform,CFO,2026-01-01,2026-02-15,X",
        f"team_id = maps is in {TEAMS}, but not valid on 2026-02-01",
        f"or add a row for the others to {TEAMS}",
    ),
    adjustment(
        "more than all of it",
        "r,percent,-100.5,,nlp,,,,,platform,CFO,2026-01-01,,X",
        "value = -100.500000000 takes off more than all of the cost",
        "make it -100 or more",
    ),
    adjustment(
        "project that leaves the team",
        "s,percent,-5,,research,arm,,,,platform,CFO,2026-01-01,,X",
        "project_id = arm belongs to robotics on 2026-03-01, which is not research nor below it",
        "leave team_id or project_id empty, or name the team of the project",
    ),
    adjustment(
        "rate where there are no GPUs",
        "t,rate,5,USD,nlp,,,buckets,,platform,CFO,2026-01-01,,X",
        "pool_id = buckets is no compute pool and has no GPU-hours on 2026-01-01",
        "name a pool whose pool_kind is compute",
    ),
]

CHAPTERS = {"periods": PERIODS, "names": NAMES, "cells": CELLS, "rules": RULES, "adjustments": ADJUSTMENTS}
