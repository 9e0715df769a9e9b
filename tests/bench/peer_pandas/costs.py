"""Bill lines to components, pools and hours; their used and idle parts to jobs; the rest to teams."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from tests.bench.peer_pandas.reading import COMPONENTS, HOUR_MS, RESOURCES, cost_rules, price_shares, tag_owners

POOL_DAY = ["usage_date", "pool_id"]
POOL_HOUR = [*POOL_DAY, "hour"]
PAYER = ["team_id", "user_name", "job_key"]
LEAST = 1e-9
"""What is less costs nothing."""
AMOUNTS = ["list_cost", "billed_cost", "effective_cost"]


def _long(table: pd.DataFrame, keys: list[str], value: str) -> pd.DataFrame:
    return table.melt(id_vars=keys, value_vars=COMPONENTS, var_name="component", value_name=value)


def lines(charges: pd.DataFrame, nodes: pd.DataFrame, seeds: Path) -> pd.DataFrame:
    """Bill lines by component: those of nodes are cut by the price weights of their type."""
    lines = charges.merge(cost_rules(seeds), on="service_name").merge(
        nodes[["usage_date", "resource_id", "pool_id"]], on=["usage_date", "resource_id"], how="left"
    )
    lines["pool_id"] = lines["pool_id"].fillna(lines["rule_pool_id"])
    lines["line_billed_cost"] = lines["billed_cost"]
    is_tagged = lines["component"] == "storage"
    tags = "team=" + lines.loc[is_tagged, "tags"].str.extract(r'"team": *"([^"]*)"', expand=False)
    lines["owner_team_id"] = tags.map(tag_owners(seeds)).fillna("unattributed")
    of_nodes = lines[lines["component"] == "node"]
    parts = [lines[lines["component"] != "node"]]
    for component, share in price_shares(seeds).items():
        parts.append(of_nodes.assign(component=component, **{name: of_nodes[name] * share for name in AMOUNTS}))
    return pd.concat(parts, ignore_index=True)


def node_costs(lines: pd.DataFrame) -> pd.DataFrame:
    of_nodes = lines[lines["component"].isin(COMPONENTS)]
    costs = of_nodes.groupby([*POOL_HOUR, "component"], as_index=False)["effective_cost"].sum()
    return costs.rename(columns={"effective_cost": "cost"})


def pool_job_hours(usage: pd.DataFrame) -> pd.DataFrame:
    return usage.groupby([*POOL_HOUR, *PAYER], as_index=False)[[*COMPONENTS, "present_seconds"]].sum()


def pool_hours(costs: pd.DataFrame, pool_job_hours: pd.DataFrame, nodes: pd.DataFrame) -> pd.DataFrame:
    """What each hour of a pool cost, used and idle."""
    held = _long(pool_job_hours.groupby(POOL_HOUR, as_index=False)[COMPONENTS].sum(), POOL_HOUR, "held")
    sizes = nodes.rename(columns={amount: name for name, amount in RESOURCES.items()})
    capacity = _long(sizes.groupby(POOL_DAY, as_index=False)[COMPONENTS].sum(), POOL_DAY, "capacity")
    hours = costs.merge(capacity, on=[*POOL_DAY, "component"]).merge(held, on=[*POOL_HOUR, "component"], how="left")
    hours["held"] = hours["held"].fillna(0)
    hours["capacity"] *= HOUR_MS
    hours["used_cost"] = hours["cost"] * hours["held"] / hours["capacity"]
    hours["idle_cost"] = hours["cost"] - hours["used_cost"]
    return hours


def direct(pool_job_hours: pd.DataFrame, pool_hours: pd.DataFrame) -> pd.DataFrame:
    weights = _long(pool_job_hours, [*POOL_HOUR, *PAYER], "quantity")
    parts = weights.merge(pool_hours, on=[*POOL_HOUR, "component"])
    parts["amount"] = parts["used_cost"] * parts["quantity"] / parts["held"]
    return parts.groupby([*POOL_DAY, "component", *PAYER], as_index=False)[["amount", "quantity"]].sum()


def idle(pool_job_hours: pd.DataFrame, pool_hours: pd.DataFrame) -> pd.DataFrame:
    """The idle cost of a pool's day, in proportion to use of the day."""
    payer = [*POOL_DAY, *PAYER]
    weights = _long(pool_job_hours.groupby(payer, as_index=False)[COMPONENTS].sum(), payer, "weight")
    pool_day = [*POOL_DAY, "component"]
    days = pool_hours.groupby(pool_day, as_index=False)[["idle_cost", "held"]].sum()
    parts = weights.merge(days[days["idle_cost"] >= LEAST], on=pool_day)
    parts["amount"] = parts["idle_cost"] * parts["weight"] / parts["held"]
    return parts[[*payer, "component", "amount"]]


def tagged(lines: pd.DataFrame) -> pd.DataFrame:
    owned = lines[lines["component"] == "storage"].rename(
        columns={"owner_team_id": "team_id", "effective_cost": "amount"}
    )
    return owned.groupby([*POOL_DAY, "component", "team_id"], as_index=False)["amount"].sum()


def shared(lines: pd.DataFrame, direct: pd.DataFrame, tagged: pd.DataFrame) -> pd.DataFrame:
    """What belongs to nobody, by what each team pays directly on the day."""
    weights = pd.concat([direct, tagged]).groupby(["usage_date", "team_id"], as_index=False)["amount"].sum()
    network = lines[lines["component"] == "network"]
    costs = network.groupby([*POOL_DAY, "component"], as_index=False)["effective_cost"].sum()
    parts = weights.merge(costs, on="usage_date")
    parts["amount"] *= parts["effective_cost"] / parts.groupby("usage_date")["amount"].transform("sum")
    return parts[[*POOL_DAY, "component", "team_id", "amount"]]
