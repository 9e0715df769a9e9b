"""The tree of accounts: `sacctmgr show assoc` or `show account withassoc`, with the column ParentName, or their JSON.

A dump is complete. Whoever reads it wants to know which account is below which; associations of users say nothing
about that.
"""

from __future__ import annotations

from collections.abc import Sequence

from duckdb import DuckDBPyConnection

from orchestration.connectors.base import Delivery, Reading
from orchestration.connectors.scheduler.slurm_json import Record, text
from orchestration.connectors.scheduler.slurm_load import Shape, load_cells
from orchestration.connectors.scheduler.slurm_text import Asked
from orchestration.connectors.sql import first_reason, literal, missing
from orchestration.settings import SlurmSource

NEEDED = (("Account",), ("ParentName",))
COLUMNS = ("Cluster", "Account", "ParentName", "User")


def read_accounts(con: DuckDBPyConnection, deliveries: Sequence[Delivery], source: SlurmSource) -> Reading:
    asked = Asked("sacctmgr associations", ("Account",), source.delimiter)
    files = load_cells(con, "account_cells", deliveries, COLUMNS, asked, Shape("associations", _of_json))
    for delivery, file in zip(deliveries, files, strict=True):
        file.require(delivery, NEEDED)
    con.execute(f"create or replace temp table account_rows as {_select(source)}")
    return Reading(
        "from account_rows",
        [file.count for file in files],
        [reject for file in files for reject in file.rejects],
        found=[file.found() for file in files],
    )


def _of_json(record: Record) -> dict[str, str | None]:
    return {
        "Cluster": text(record.get("cluster")),
        "Account": text(record.get("account")),
        "ParentName": text(record.get("parent_account")),
        "User": text(record.get("user")),
    }


def _select(source: SlurmSource) -> str:
    cluster = literal(source.cluster)
    skip = first_reason(
        ('"User" is not null', literal("of a user, not of an account")),
        ("is_named and Cluster <> own_cluster", "'an account of cluster ' || Cluster"),
        ("place > 1 and ParentName is not distinct from first_parent", "'repeats line ' || first_line"),
    )
    reason = first_reason(
        ("skip_reason is not null", "null"),
        missing("Account", "Account"),
        (
            "Cluster <> own_cluster",
            "'of cluster ' || Cluster || ' in a file of ' || own_cluster || '; the source names neither'",
        ),
        ("place > 1", "'another parent than on line ' || first_line"),
        ("Account = ParentName", literal("an account that is its own parent")),
    )
    of_account = 'partition by c.file, c.Cluster, c.Account, c."User" is null order by c.line'
    return f"""
        with clusters as (
            select
                file,
                bool_or(Cluster = {cluster}) as is_named,
                case when is_named then {cluster} else mode(Cluster) end as own_cluster
            from account_cells group by file
        )

        select
            c.file,
            c.line,
            {cluster} as cluster_id,
            Account as account,
            ParentName as parent_account,
            date_trunc('day', d.delivered_at) as valid_from_at,
            cast(null as timestamptz) as valid_to_at,
            row_number() over ({of_account}) as place,
            first_value(c.ParentName) over ({of_account}) as first_parent,
            first_value(c.line) over ({of_account}) as first_line,
            {skip} as skip_reason,
            {reason} as bad_reason
        from account_cells as c
        join deliveries as d on d.file = c.file
        join clusters as k on k.file = c.file
    """
