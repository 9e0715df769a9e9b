"""The rooms of the dbt project and the doors between them, read from `manifest.json` and the model files."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from orchestration.workspace import PROJECT_ROOT

MODELS = PROJECT_ROOT / "dbt_project" / "models"
Manifest = dict[str, Any]

MAY_READ = {
    "staging": {"source", "seed"},
    "intermediate": {"staging", "intermediate"},
    "core": {"intermediate", "core"},
    "reporting": {"core", "reporting"},
}
"""One way: raw → staging → intermediate → core → reporting. The star is a border that reports do not look behind."""

PUBLIC = ("core", "reporting")
KEY_TESTS = ("unique_key", "primary_key")


def layer(node: dict[str, Any]) -> str:
    """The folder below models/, or what kind of input it is."""
    return node["fqn"][1] if node["resource_type"] == "model" else node["resource_type"]


def models(manifest: Manifest) -> Iterator[dict[str, Any]]:
    return (node for node in manifest["nodes"].values() if node["resource_type"] == "model")


def public_models(manifest: Manifest) -> list[dict[str, Any]]:
    return [node for node in models(manifest) if layer(node) in PUBLIC]


def model_files() -> list[Path]:
    return sorted(MODELS.rglob("*.sql"))


def code(path: Path) -> str:
    """A model's text without SQL and Jinja comments."""
    return re.sub(r"\{#.*?#\}|--[^\n]*", "", path.read_text(), flags=re.DOTALL)


def lines_matching(pattern: str) -> list[str]:
    return [
        f"{path.relative_to(MODELS)}: {line.strip()}"
        for path in model_files()
        for line in code(path).splitlines()
        if re.search(pattern, line)
    ]


def test_every_model_reads_only_from_the_layer_before_it_or_its_own(manifest: Manifest) -> None:
    inputs = {**manifest["nodes"], **manifest["sources"]}
    trespasses = [
        f"{node['name']} ({layer(node)}) reads {inputs[parent]['name']} ({layer(inputs[parent])})"
        for node in models(manifest)
        for parent in node["depends_on"]["nodes"]
        if layer(inputs[parent]) not in MAY_READ[layer(node)]
    ]
    assert trespasses == []


def test_dimensions_and_facts_read_no_dimension(manifest: Manifest) -> None:
    """Facts come from the intermediate layer, and dimensions from it or from facts: a star has no second ring."""
    core = {node["unique_id"]: node for node in models(manifest) if layer(node) == "core"}
    second_ring = [
        (node["name"], core[parent]["name"])
        for node in core.values()
        for parent in node["depends_on"]["nodes"]
        if parent in core and "dimensions" in core[parent]["fqn"]
    ]
    assert second_ring == []


def test_every_exposure_reads_the_star_or_the_reports(manifest: Manifest) -> None:
    exposures = manifest["exposures"].values()
    assert {exposure["name"] for exposure in exposures} >= {"published_marts", "monthly_close", "job_receipts"}
    for exposure in exposures:
        assert {layer(manifest["nodes"][parent]) for parent in exposure["depends_on"]["nodes"]} <= set(PUBLIC)
        assert "@" in exposure["owner"]["email"]


def test_all_marts_are_published(manifest: Manifest) -> None:
    published = manifest["exposures"]["exposure.apportion.published_marts"]["depends_on"]["nodes"]
    assert set(published) == {node["unique_id"] for node in public_models(manifest)}


def test_every_mart_has_an_enforced_contract(manifest: Manifest) -> None:
    without = [node["name"] for node in public_models(manifest) if not node["contract"]["enforced"]]
    assert without == []


def test_every_mart_and_each_of_its_columns_is_described(manifest: Manifest) -> None:
    silent = [node["name"] for node in public_models(manifest) if not node["description"].strip()]
    silent += [
        f"{node['name']}.{column['name']}"
        for node in public_models(manifest)
        for column in node["columns"].values()
        if not column["description"].strip()
    ]
    assert silent == []


def test_every_model_seed_and_source_is_described_and_has_an_owner(manifest: Manifest) -> None:
    nodes = [*models(manifest), *manifest["sources"].values()]
    nodes += [node for node in manifest["nodes"].values() if node["resource_type"] == "seed"]
    assert [node["name"] for node in nodes if not node["description"].strip()] == []
    assert [node["name"] for node in models(manifest) if not node["config"]["group"]] == []


def test_every_mart_is_tested_for_its_key(manifest: Manifest) -> None:
    tested = {
        node["attached_node"]
        for node in manifest["nodes"].values()
        if node["resource_type"] == "test" and (node.get("test_metadata") or {}).get("name") in KEY_TESTS
    }
    assert {node["unique_id"] for node in public_models(manifest)} <= tested


def test_every_law_is_an_asset_check_of_a_model(manifest: Manifest) -> None:
    """A singular test becomes an asset check only if it names a model that it reads, the one that it guards."""
    laws = [
        node
        for node in manifest["nodes"].values()
        if node["resource_type"] == "test" and node["name"].startswith("assert_")
    ]
    assert len(laws) >= 10
    for law in laws:
        read = {manifest["nodes"][parent]["name"] for parent in law["depends_on"]["nodes"]}
        assert law["config"]["meta"]["dagster"]["ref"]["name"] in read, law["name"]
        assert law["config"]["severity"].lower() == "error"
        assert law["config"]["enabled"]


@pytest.mark.parametrize("path", model_files(), ids=lambda path: path.stem)
def test_every_model_starts_with_its_grain(path: Path) -> None:
    assert path.read_text().startswith("-- grain: one row per ")


def test_no_model_knows_which_engine_runs() -> None:
    assert lines_matching(r"\btarget\s*\.|adapter\s*\.\s*(type|dispatch)") == []
    assert [path for path in MODELS.rglob("*.yml") if "target.type" in path.read_text()] == []


def test_no_model_divides_outside_the_macros() -> None:
    """Only the split, shares and quotients divide, and they do it exactly. A slash alone in quotes is a separator."""
    assert lines_matching(r"[\w)\]}]\s*//?\s*[\w({]|\b(div|safe_divide|avg)\s*\(") == []


def test_no_model_uses_floating_point() -> None:
    assert lines_matching(r"(?i)\b(float\d*|double|real|float64)\b") == []


def test_no_model_asks_the_clock_or_branches_on_the_kind_of_run() -> None:
    """A day run twice gives the same tables, and a first build runs the same SQL as a replay."""
    assert lines_matching(r"(?i)\b(now|current_date|current_timestamp|today|random|uuid)\s*\(|is_incremental") == []


# --- adding an idle policy: a branch of one model and a word in one list ------------------------------------

WEIGHTS = "int_idle_weights"
BY_HOUR = {"proportional", "owner"}
"""Which policies share out single hours too, `owner` those of reservations. The model that chooses the rule says so."""
CHOOSES = "int_idle_costs"
PLATFORM = "platform"
"""The payer of what no rule shares out, named all over the books; it needs no weights."""


def allowed_policies(manifest: Manifest) -> set[str]:
    """The words that the seed may hold, as its test lists them."""
    test = next(node for node in manifest["nodes"].values() if node["name"] == "idle_policies_sound_rows")
    return set(test["test_metadata"]["kwargs"]["allowed"]["policy"])


def test_every_idle_policy_that_the_seed_allows_has_its_weights_and_no_other_has(manifest: Manifest) -> None:
    shared_out = allowed_policies(manifest) - {PLATFORM}
    (weights,) = (path for path in model_files() if path.stem == WEIGHTS)
    rules = set(re.findall(r"'(\w+ by (?:day|hour))'", code(weights)))
    assert rules == {f"{policy} by day" for policy in shared_out} | {f"{policy} by hour" for policy in BY_HOUR}


def test_no_other_model_names_an_idle_policy(manifest: Manifest) -> None:
    words = "|".join(sorted(allowed_policies(manifest) - {PLATFORM}))
    named = {
        (path.stem, word)
        for path in model_files()
        if path.stem != WEIGHTS
        for word in re.findall(rf"'({words})(?:'| by )", code(path))
    }
    assert named == {(CHOOSES, policy) for policy in BY_HOUR}
