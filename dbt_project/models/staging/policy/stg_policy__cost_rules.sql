-- grain: one row per row of seeds/policy/cost_rules.csv
select
    rule_order,
    provider,
    charge_category,
    service_name,
    sku_id,
    resource_id,
    tag,
    component,
    pool_id,
    driver,
    coalesce(has_owner, false) as has_owner,
    spread,
    {{ pair_key('tag') }} as tag_key,
    {{ pair_value('tag') }} as tag_value,
    coalesce(valid_from, date '1970-01-01') as valid_from,
    coalesce(valid_to, date '9999-12-31') as valid_to,
    reason,
    {{ policy_row('cost_rules', ['rule_order']) }} as policy_row,
    {{ key_of([
        'rule_order', 'provider', 'charge_category', 'service_name', 'sku_id', 'resource_id', 'tag', 'component',
        'pool_id', 'driver', 'has_owner', 'spread', 'valid_from', 'reason'
    ]) }} as row_hash
from {{ ref('cost_rules') }}
