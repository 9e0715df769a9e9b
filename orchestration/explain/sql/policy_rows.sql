-- grain: one row per row of a policy seed, with what it sets and why
create or replace temp view policy_rows as
with settings as (
    select policy_name('allocation_policies', pool_id || '/' || component, valid_from) as policy_row, to_json(seed) as settings
    from seeds.allocation_policies as seed
    union all
    select policy_name('idle_policies', pool_id || '/' || idle_cause, valid_from), to_json(seed)
    from seeds.idle_policies as seed
    union all
    select policy_name('workload_rules', rule_order::varchar, valid_from), to_json(seed)
    from seeds.workload_rules as seed
    union all
    select policy_name('payer_rules', rule_order::varchar, valid_from), to_json(seed)
    from seeds.payer_rules as seed
    union all
    select policy_name('cost_rules', rule_order::varchar, valid_from), to_json(seed)
    from seeds.cost_rules as seed
    union all
    select policy_name('complexity_weights', workload_class || '/' || gpu_model, valid_from), to_json(seed)
    from seeds.complexity_weights as seed
    union all
    select policy_name('entitlements', pool_id || '/' || team_id, valid_from), to_json(seed)
    from seeds.entitlements as seed
    union all
    select policy_name('adjustments', adjustment_id, valid_from), to_json(seed)
    from seeds.adjustments as seed
    union all
    select policy_name('outcome_policies', state || '/' || workload_class, valid_from), to_json(seed)
    from seeds.outcome_policies as seed
    union all
    select policy_name('overhead_shares', pool_id || '/' || team_id, valid_from), to_json(seed)
    from seeds.overhead_shares as seed
)

select policies.policy_row, policies.reason, settings.settings
from core.dim_policies as policies
left join settings using (policy_row);
