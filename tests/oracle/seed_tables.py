"""The seed tables as the tests know them: their columns, and the rows that are the same in every world."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

Row = dict[str, Any]

SEED_COLUMNS: dict[str, tuple[str, ...]] = {
    "teams": ("team_id", "team_name", "parent_team_id", "cost_centre", "headcount"),
    "projects": ("project_id", "project_name", "team_id"),
    "payer_rules": (
        *("rule_order", "cluster_id", "account", "user_name", "namespace", "label", "tag", "path"),
        *("team_id", "project_id"),
    ),
    "cost_rules": (
        *("rule_order", "provider", "charge_category", "service_name", "sku_id", "resource_id", "tag"),
        *("component", "pool_id", "driver", "has_owner", "spread"),
    ),
    "pools": (
        *("pool_id", "pool_name", "pool_kind", "cluster_id", "partition", "resource", "gpu_model"),
        *("purchase_class", "owner_team_id", "default_instance_type", "min_cores_per_gpu", "min_gib_per_gpu"),
    ),
    "workload_rules": (
        *("rule_order", "cluster_id", "partition", "qos", "job_name", "label"),
        *("min_gpus", "max_gpus", "min_hours", "max_hours", "workload_class", "self_declared"),
    ),
    "complexity_weights": ("workload_class", "gpu_model", "weight"),
    "allocation_policies": (
        *("pool_id", "component", "method", "overhead_base", "burst_policy", "lender_share"),
        *("intensity_metric", "intensity_floor", "intensity_min_coverage", "idle_ceiling"),
    ),
    "idle_policies": ("pool_id", "idle_cause", "policy", "idle_window"),
    "entitlements": ("pool_id", "team_id", "gpus"),
    "adjustments": (
        *("adjustment_id", "adjustment_kind", "value", "currency", "team_id", "project_id", "workload_class"),
        *("pool_id", "component", "funded_by", "approved_by"),
    ),
    "outcome_policies": ("state", "workload_class", "paid_by", "checkpoint_minutes", "max_lost_minutes"),
    "overhead_shares": ("pool_id", "team_id", "share"),
    "billing_modes": ("team_id", "billing_mode"),
    "closing_limits": ("limit_name", "max_share"),
    "invoice_totals": ("provider", "invoice_id", "currency", "total", "entered_by", "reason"),
    "journal_accounts": ("component", "expense_account", "clearing_account", "clearing_cost_centre"),
    "gpu_models": ("gpu_model", "vendor", "memory_gib", "mig_slices", "tdp_watts"),
    "instance_types": (
        *("instance_type", "provider", "gpu_model", "gpus", "cores", "memory_gib"),
        *("gpu_price_weight", "cpu_price_weight", "memory_price_weight", "price_preset"),
    ),
    "price_presets": ("preset", "basis", "gpu_weight", "cpu_weight", "memory_weight", "reason"),
    "workload_classes": ("workload_class", "workload_class_name", "description"),
    "currencies": ("currency", "rate_to_reporting"),
    "components": ("component", "component_name", "cost_grain", "driver", "description"),
}
POLICY = (
    *("teams", "projects", "payer_rules", "cost_rules", "pools", "workload_rules", "complexity_weights"),
    *("allocation_policies", "idle_policies", "entitlements", "adjustments", "outcome_policies", "overhead_shares"),
    *("billing_modes", "closing_limits", "invoice_totals", "journal_accounts"),
)
UNDATED = ("gpu_models", "components", "price_presets", "workload_classes", "invoice_totals")
SEED_COLUMNS = {
    name: columns if name in UNDATED else (*columns, "valid_from", "valid_to", "reason")
    for name, columns in SEED_COLUMNS.items()
}

GPU_MODELS = [
    {"gpu_model": "H100", "vendor": "NVIDIA", "memory_gib": 80, "mig_slices": 7, "tdp_watts": 700},
    {"gpu_model": "L4", "vendor": "NVIDIA", "memory_gib": 24, "mig_slices": 1, "tdp_watts": 72},
]
_COMPONENT_DRIVERS = {
    "gpu": "gpu_seconds",
    "cpu": "cpu_core_seconds",
    "memory": "memory_gib_seconds",
    "energy": "kwh",
    "storage": "gib_hours_stored",
    "network": "bytes_out",
    "license": "seat_hours",
    "support": None,
    "other": None,
}
HOURLY = ("gpu", "cpu", "memory", "energy")
COMPONENTS = [
    {
        "component": name,
        "component_name": name.title(),
        "cost_grain": "hour" if name in HOURLY else "day",
        "driver": driver,
        "description": f"{name} cost",
    }
    for name, driver in _COMPONENT_DRIVERS.items()
]
PRICE_PRESETS = [
    {
        "preset": preset,
        "basis": basis,
        "gpu_weight": Decimal(gpu),
        "cpu_weight": Decimal(cpu),
        "memory_weight": Decimal(memory),
        "reason": "test",
    }
    for preset, basis, gpu, cpu, memory in (
        ("aws", "per_unit", "9", "0.9", "0.1"),
        ("opencost", "per_unit", "0.95", "0.031611", "0.004237"),
        ("datadog", "per_node", "95", "3", "2"),
        ("rounded", "per_unit", "1.2345675", "0.0000005", "0.3333333"),
    )
]
WORKLOAD_CLASSES = [
    {"workload_class": name, "workload_class_name": name.title(), "description": f"{name} runs"}
    for name in ("pretraining", "training", "search", "evaluation")
]
CONSTANTS = {
    "gpu_models": GPU_MODELS,
    "components": COMPONENTS,
    "price_presets": PRICE_PRESETS,
    "workload_classes": WORKLOAD_CLASSES,
}
"""The undated tables; all worlds share them."""
