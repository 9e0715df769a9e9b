"""Tables keep the columns of their contract, also where rows are put into a table that is there."""

from __future__ import annotations

import shutil
from pathlib import Path

import duckdb
import pytest

from orchestration import dbt
from orchestration.errors import ApportionError
from orchestration.workspace import Workspace
from tests.warehouses import GOLDEN

TABLE = "reporting.rpt_idle_daily"


def _build_again(golden: Workspace, folder: Path, change: str) -> None:
    warehouse = folder / golden.warehouse.name
    shutil.copy(golden.warehouse, warehouse)
    with duckdb.connect(str(warehouse)) as altered:
        altered.execute(change)
    dbt.build(golden, GOLDEN, select="fqn:*rpt_idle_daily", tests=False, warehouse=warehouse)
    with duckdb.connect(str(warehouse), read_only=True) as built:
        built.execute(f"attach '{golden.warehouse}' as first (read_only)")
        assert built.execute(f"from {TABLE} except all from first.{TABLE}").fetchall() == []
        assert built.execute(f"from first.{TABLE} except all from {TABLE}").fetchall() == []


@pytest.mark.parametrize(
    "change",
    [
        f"delete from {TABLE}",
        f"insert into {TABLE} from {TABLE}",
        f"drop table {TABLE}",
        f"drop table {TABLE}; create view {TABLE} as select 1 as one",
    ],
)
def test_whatever_rows_were_there_the_same_are_there_again(golden: Workspace, tmp_path: Path, change: str) -> None:
    _build_again(golden, tmp_path, change)


@pytest.mark.parametrize(
    "change", ["add column more int64", "drop column idle_cost", "alter column idle_cost type double"]
)
def test_a_table_with_other_columns_than_the_model_is_refused(golden: Workspace, tmp_path: Path, change: str) -> None:
    with pytest.raises(ApportionError, match="rpt_idle_daily was made by another version of the models"):
        _build_again(golden, tmp_path, f"alter table {TABLE} {change}")


@pytest.mark.parametrize("table", ["is there", "is not"])
def test_a_query_of_another_type_than_the_contract_is_refused(golden: Workspace, tmp_path: Path, table: str) -> None:
    change = "alter table core.fct_pool_days alter column gpu_model type int64 using 8"
    if table == "is not":
        change += f"; drop table {TABLE}"
    with pytest.raises(ApportionError, match=r"gpu_model +\| BIGINT +\| VARCHAR"):
        _build_again(golden, tmp_path, change)
