"""The dbt project as assets: one op for a whole range of days.

The op always builds everything that a window needs and reports what was asked for. Building a lone fact would
read the scratch tables of another window.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import dagster as dg
from dagster_dbt import DagsterDbtTranslator, DbtProject, dbt_assets
from dagster_dbt.asset_utils import get_asset_check_key_for_test

from orchestration import progress
from orchestration.connectors import feeds
from orchestration.dbt import SeedsRefused, Window, build_portions, check_seeds, failure, prepare
from orchestration.defs.raw import OWNERS, WAREHOUSE_POOL, raw_key
from orchestration.landing.days import forget_undeclared
from orchestration.ledger.landed import land_ledger
from orchestration.ledger.retroactive import RUN_TAG, require_reason
from orchestration.partitions import daily, window_of
from orchestration.runs import sign
from orchestration.settings import Source
from orchestration.warehouse.target import reading, receive
from orchestration.workspace import Workspace

REFERENCE_FOLDERS = ("staging.policy", "staging.reference", "intermediate.policy", "core.dimensions")


class Translator(DagsterDbtTranslator):
    """How a dbt node looks in Dagster: its group, owner, partitions, and which sources feed it."""

    def __init__(self, sources: Sequence[Source]) -> None:
        super().__init__()
        self._raw_keys: dict[str, list[dg.AssetKey]] = {}
        for source in sources:
            tables = {feed.table for feed in feeds(source)} | {"landings"}
            for table in sorted(tables):
                self._raw_keys.setdefault(table, []).append(raw_key(source))

    def get_asset_spec(self, manifest: Mapping[str, Any], unique_id: str, project: DbtProject | None) -> dg.AssetSpec:
        """A landing table is what several sources land: its readers depend on each of them.

        Facts also depend on the sources themselves. Dagster looks for the days of a backfill only along assets that
        have days, and without these edges it would land the sources, leave out the facts and call that a success.
        """
        spec = super().get_asset_spec(manifest, unique_id, project)
        deps = {dep.asset_key: dep for dep in spec.deps if dep.asset_key.path[0] != "landing"}
        tables = [dep.asset_key.path[-1] for dep in spec.deps if dep.asset_key.path[0] == "landing"]
        if spec.key.path[0] == "core" and is_kept_by_day(manifest["nodes"][unique_id]):
            tables += _landing_tables(manifest, unique_id)
        for table in tables:
            deps |= {key: dg.AssetDep(key) for key in self._raw_keys.get(table, [])}
        return spec.replace_attributes(deps=list(deps.values()), owners=OWNERS)

    def get_group_name(self, dbt_resource_props: Mapping[str, Any]) -> str:
        folder = ".".join(dbt_resource_props["fqn"][1:-1])
        if dbt_resource_props["resource_type"] == "seed" or folder.startswith(REFERENCE_FOLDERS):
            return "reference"
        return "reporting" if folder.startswith("reporting") else "daily"

    def get_partitions_def(self, dbt_resource_props: Mapping[str, Any]) -> dg.PartitionsDefinition | None:
        """Facts and daily reports keep their days. Everything between them is scratch of the last window."""
        return daily if is_kept_by_day(dbt_resource_props) else None


def _landing_tables(manifest: Mapping[str, Any], unique_id: str) -> list[str]:
    """The landing tables that a model is made of, at any distance."""
    seen: set[str] = set()
    waiting = [unique_id]
    while waiting:
        node = waiting.pop()
        if node not in seen:
            seen.add(node)
            waiting += manifest["parent_map"].get(node, [])
    return sorted(manifest["sources"][node]["name"] for node in seen if node in manifest["sources"])


def is_kept_by_day(dbt_resource_props: Mapping[str, Any]) -> bool:
    return "windowed" in dbt_resource_props.get("tags", [])


def model_assets(workspace: Workspace, sources: Sequence[Source]) -> dg.AssetsDefinition:
    manifest_path = prepare(workspace)
    manifest = json.loads(manifest_path.read_bytes())
    translator = Translator(sources)

    @dbt_assets(
        manifest=manifest,
        name="models",
        dagster_dbt_translator=translator,
        backfill_policy=dg.BackfillPolicy.single_run(),
        pool=WAREHOUSE_POOL,
    )
    def models(context: dg.AssetExecutionContext) -> Iterator[dg.MaterializeResult | dg.AssetCheckResult]:
        sign(context)
        window = window_of(context.run.tags)
        try:
            with workspace.writing():
                check_seeds(workspace, on_event=_watch("checking the policy"))
                forget_undeclared(workspace.data, [source.name for source in sources])
                land_ledger(workspace.data)
                if window:
                    require_reason(workspace, window, context.run.tags.get(RUN_TAG))
                    receive(workspace, window, progress.say)
                # Without days, nothing that keeps days was asked for: the project's own window is empty.
                watch = _watch("building models and checking laws")
                result, results = build_portions(workspace, window, on_event=watch)
                totals = _totals(workspace, manifest, window) if window and result.success else {}
        except SeedsRefused as refused:
            yield from reported(context, refused.tests, {})
            raise
        yield from reported(context, results, totals)
        if not result.success:
            raise failure(workspace, result, results)

    def reported(
        context: dg.AssetExecutionContext, results: Sequence[Any], totals: Mapping[str, Mapping[str, Any]]
    ) -> Iterator[dg.MaterializeResult | dg.AssetCheckResult]:
        """What dbt did, as far as the run asked for it."""
        for one in results:
            unique_id = one.node.unique_id
            if one.node.resource_type == "test":
                key = get_asset_check_key_for_test(manifest, translator, unique_id, None)
                if key and key in context.selected_asset_check_keys and str(one.status) in ("pass", "fail", "warn"):
                    yield dg.AssetCheckResult(
                        asset_key=key.asset_key,
                        check_name=key.name,
                        passed=str(one.status) == "pass",
                        metadata={"failing_rows": one.failures or 0},
                    )
            elif one.node.resource_type in ("model", "seed") and str(one.status) == "success":
                key = translator.get_asset_spec(manifest, unique_id, None).key
                if key in context.selected_asset_keys:
                    yield dg.MaterializeResult(
                        asset_key=key,
                        metadata={"seconds": round(one.execution_time, 3), **totals.get(one.node.name, {})},
                    )

    return models


def _watch(doing: str) -> Any:
    finished = 0

    def on_event(event: Any) -> None:
        nonlocal finished
        if event.info.name in ("LogModelResult", "LogTestResult", "LogSeedResult"):
            finished += 1
            progress.say(f"{doing} ({finished} done)")

    return on_event


def _totals(workspace: Workspace, manifest: Mapping[str, Any], window: Window) -> dict[str, dict[str, Any]]:
    """Rows and money of the window, shown on each fact: what was billed, what was allocated, and that they agree."""
    where = f"where usage_date >= date '{window.start}' and usage_date < date '{window.end}'"
    tables = {one["name"]: one["fqn"][1] for one in manifest["nodes"].values() if is_kept_by_day(one)}
    counts = " union all ".join(
        f"select '{name}' as name, count(*) as row_count from {layer}.{name} {where}" for name, layer in tables.items()
    )
    with reading(workspace) as ask:
        found: dict[str, dict[str, Any]] = {name: {"dagster/partition_row_count": rows} for name, rows in ask(counts)}
        money = ask(
            f"""
            select currency, sum(allocatable), sum(allocated)
            from (
                select currency, allocatable_cost as allocatable, 0 as allocated from core.fct_billed_costs {where}
                union all
                select currency, 0, amount from core.fct_cost_allocations {where}
            ) as sides
            group by currency order by currency
            """
        )
    for currency, allocatable, allocated in money:
        for table in ("fct_billed_costs", "fct_cost_allocations"):
            found[table] |= {
                f"allocatable_{currency}": f"{allocatable:f}",
                f"allocated_{currency}": f"{allocated:f}",
                f"difference_{currency}": f"{allocatable - allocated:f}",
            }
    return found
