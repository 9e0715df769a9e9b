-- grain: one row per row of a policy or effective-dated reference seed
-- Components are valid always; a price preset counts as part of the instance types that name it.
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
    'billing_modes': 'stg_policy__billing_modes',
    'currencies': 'stg_reference__currencies',
    'components': 'stg_reference__components',
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
union all
{% endfor %}
select
    'instance_types' as seed_name,
    instance_types.policy_row,
    {{ key_of(['instance_types.row_hash', 'presets.row_hash']) }} as row_hash,
    instance_types.valid_from,
    instance_types.valid_to,
    instance_types.reason
from {{ ref('stg_reference__instance_types') }} as instance_types
left join {{ ref('stg_reference__price_presets') }} as presets on instance_types.price_preset = presets.preset
