"""Bill lines to components, pools and hours; their used and idle parts to jobs; the rest to teams."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from tests.bench.peer_polars.reading import COMPONENTS, HOUR_MS, RESOURCES, cost_rules, price_shares, tag_owners

POOL_DAY = ["usage_date", "pool_id"]
POOL_HOUR = [*POOL_DAY, "hour"]
PAYER = ["team_id", "user_name", "job_key"]
LEAST = 1e-9
"""What is less costs nothing."""
AMOUNTS = ["list_cost", "billed_cost", "effective_cost"]


def lines(charges: pl.LazyFrame, nodes: pl.LazyFrame, seeds: Path) -> pl.LazyFrame:
    """Bill lines by component: those of nodes are cut by the price weights of their type."""
    is_node, is_owned = pl.col("component") == "node", pl.col("component") == "storage"
    tag = pl.lit("team=") + pl.col("tags").str.json_path_match("$.team")
    owner = pl.col("owner_team_id").fill_null("unattributed")
    lines = (
        charges.join(cost_rules(seeds), on="service_name")
        .join(nodes.select("usage_date", "resource_id", "pool_id"), on=["usage_date", "resource_id"], how="left")
        .with_columns(
            pl.coalesce("pool_id", "rule_pool_id").alias("pool_id"),
            pl.col("billed_cost").alias("line_billed_cost"),
            pl.when(is_owned).then(tag).alias("tag"),
        )
        .join(tag_owners(seeds), on="tag", how="left")
        .with_columns(pl.when(is_owned).then(owner).alias("owner_team_id"))
        .drop("rule_pool_id", "tag")
    )
    parts = [
        lines.filter(is_node).with_columns(pl.col(AMOUNTS) * share, component=pl.lit(component))
        for component, share in price_shares(seeds).items()
    ]
    return pl.concat([lines.filter(~is_node), *parts])


def node_costs(lines: pl.LazyFrame) -> pl.LazyFrame:
    """One column per component."""
    return (
        lines.filter(pl.col("component").is_in(COMPONENTS))
        .group_by(POOL_HOUR)
        .agg(
            pl.col("effective_cost").filter(pl.col("component") == name).sum().alias(f"{name}_cost")
            for name in COMPONENTS
        )
    )


def pool_job_hours(usage: pl.LazyFrame) -> pl.LazyFrame:
    return usage.group_by(*POOL_HOUR, *PAYER).agg(pl.col(*COMPONENTS, "present_seconds").sum())


def pool_hours(costs: pl.LazyFrame, pool_job_hours: pl.LazyFrame, nodes: pl.LazyFrame) -> pl.LazyFrame:
    """What each hour of a pool cost, used and idle, and what was held of it."""
    capacity = nodes.group_by(POOL_DAY).agg(
        pl.col(amount).sum().mul(HOUR_MS).alias(f"{name}_capacity") for name, amount in RESOURCES.items()
    )
    held = pool_job_hours.group_by(POOL_HOUR).agg(pl.col(name).sum().alias(f"{name}_held") for name in COMPONENTS)
    hours = costs.join(capacity, on=POOL_DAY).join(held, on=POOL_HOUR, how="left")
    for name in COMPONENTS:
        cost, used = pl.col(f"{name}_cost"), pl.col(f"{name}_held").fill_null(0) / pl.col(f"{name}_capacity")
        hours = hours.with_columns((cost * used).alias(f"{name}_used"), (cost - cost * used).alias(f"{name}_idle"))
    return hours


def direct(pool_job_hours: pl.LazyFrame, pool_hours: pl.LazyFrame) -> pl.LazyFrame:
    """What each job pays for its use, and what it used, one column per component."""
    parts = pool_job_hours.join(pool_hours, on=POOL_HOUR)
    return parts.group_by(*POOL_DAY, *PAYER).agg(
        *((pl.col(f"{name}_used") * pl.col(name) / pl.col(f"{name}_held")).sum().alias(name) for name in COMPONENTS),
        *(pl.col(name).sum().alias(f"{name}_quantity") for name in COMPONENTS),
    )


def idle(pool_job_hours: pl.LazyFrame, pool_hours: pl.LazyFrame) -> pl.LazyFrame:
    """The idle cost of a pool's day, in proportion to use of the day."""
    payer = [*POOL_DAY, *PAYER]
    amounts = [f"{name}_{measure}" for name in COMPONENTS for measure in ("idle", "held")]
    return (
        pool_job_hours.group_by(payer)
        .agg(pl.col(COMPONENTS).sum())
        .join(pool_hours.group_by(POOL_DAY).agg(pl.col(amounts).sum()), on=POOL_DAY)
        .select(
            *payer,
            *(
                pl.when(pl.col(f"{name}_idle") >= LEAST)
                .then(pl.col(f"{name}_idle") * pl.col(name) / pl.col(f"{name}_held"))
                .alias(name)
                for name in COMPONENTS
            ),
        )
    )


def tagged(lines: pl.LazyFrame) -> pl.LazyFrame:
    return (
        lines.filter(pl.col("component") == "storage")
        .group_by(*POOL_DAY, "component", pl.col("owner_team_id").alias("team_id"))
        .agg(pl.col("effective_cost").sum().alias("amount"))
    )


def shared(lines: pl.LazyFrame, direct: pl.LazyFrame, tagged: pl.LazyFrame) -> pl.LazyFrame:
    """What belongs to nobody, by what each team pays directly on the day."""
    of_jobs = direct.select("usage_date", "team_id", pl.sum_horizontal(COMPONENTS).alias("amount"))
    weights = (
        pl.concat([of_jobs, tagged.select("usage_date", "team_id", "amount")])
        .group_by("usage_date", "team_id")
        .agg(pl.col("amount").sum().alias("weight"))
    )
    totals = weights.group_by("usage_date").agg(pl.col("weight").sum().alias("total"))
    costs = (
        lines.filter(pl.col("component") == "network")
        .group_by(*POOL_DAY, "component")
        .agg(pl.col("effective_cost").sum().alias("cost"))
    )
    amount = pl.col("cost") * pl.col("weight") / pl.col("total")
    return weights.join(costs.join(totals, on="usage_date"), on="usage_date").select(
        *POOL_DAY, "component", "team_id", amount.alias("amount")
    )
