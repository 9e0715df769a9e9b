-- grain: one row per row of a policy or effective-dated reference seed
{%- set seeds = {
    'teams': 'stg_policy__teams',
    'projects': 'stg_policy__projects',
    'payer_rules': 'stg_policy__payer_rules',
    'cost_rules': 'stg_policy__cost_rules',
    'pools': 'stg_policy__pools',
    'allocation_policies': 'stg_policy__allocation_policies',
    'idle_policies': 'stg_policy__idle_policies',
    'workload_rules': 'stg_policy__workload_rules',
    'complexity_weights': 'stg_policy__complexity_weights',
    'entitlements': 'stg_policy__entitlements',
    'adjustments': 'stg_policy__adjustments',
    'outcome_policies': 'stg_policy__outcome_policies',
    'overhead_shares': 'stg_policy__overhead_shares',
    'instance_types': 'stg_reference__instance_types',
    'price_presets': 'stg_reference__price_presets',
    'currencies': 'stg_reference__currencies',
} %}
{% for seed, model in seeds.items() %}
select
    '{{ seed }}' as seed_name,
    policy_row,
    row_hash,
    valid_from,
    valid_to,
    reason
from {{ ref(model) }}
{% if not loop.last %}union all{% endif %}
{% endfor %}
