"""Closing a month from Dagster: the same code as `apportion close`."""

from datetime import date, datetime

import dagster as dg
from pydantic import Field

from orchestration import progress
from orchestration.defs.raw import WAREHOUSE_POOL
from orchestration.errors import ApportionError
from orchestration.ledger.close import close_month
from orchestration.runs import sign
from orchestration.workspace import Workspace


class MonthToClose(dg.Config):
    month: str = Field(description="The month, such as 2026-01.")
    override: str = Field(default="", description="Why to close although checks fail; stored with the close.")
    closed_by: str = Field(default="", description="Who closes it; else the user that Dagster runs as.")


def close_job(workspace: Workspace) -> dg.JobDefinition:
    @dg.op(name="close", pool=WAREHOUSE_POOL, description="Checks the month, appends it to the ledger, publishes it.")
    def close(context: dg.OpExecutionContext, config: MonthToClose) -> None:
        sign(context)
        progress.listen(context.log.info)
        closed = close_month(workspace, _month(config.month), override=config.override or None, by=config.closed_by)
        context.log_event(
            dg.AssetMaterialization(
                ["core", "fct_invoice_lines"],
                description=f"{config.month} is closed",
                metadata={
                    "close_number": closed.number,
                    "lines": len(closed.lines),
                    "content_hash": closed.content_hash,
                    "override": closed.header["override_reason"] or "",
                    "path": dg.MetadataValue.path(str(closed.folder)),
                },
            )
        )

    @dg.job(
        name="close_month",
        description="Closes a month for good, as `apportion close` does; fails with the list of what is in its way.",
        executor_def=dg.in_process_executor,
    )
    def close_month_job() -> None:
        close()

    return close_month_job


def _month(text: str) -> date:
    try:
        return datetime.strptime(text, "%Y-%m").date()
    except ValueError:
        raise ApportionError(f"'{text}' is no month", "write year and month, such as 2026-01") from None
