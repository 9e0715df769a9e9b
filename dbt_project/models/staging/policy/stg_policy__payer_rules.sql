-- grain: one row per row of seeds/policy/payer_rules.csv
select
    rule_order,
    cluster_id,
    account,
    user_name,
    namespace,
    label,
    tag,
    path,
    team_id,
    project_id,
    {{ pair_key('label') }} as label_key,
    {{ pair_value('label') }} as label_value,
    {{ pair_key('tag') }} as tag_key,
    {{ pair_value('tag') }} as tag_value,
    coalesce(valid_from, date '1970-01-01') as valid_from,
    coalesce(valid_to, date '9999-12-31') as valid_to,
    reason,
    {{ policy_row('payer_rules', ['rule_order']) }} as policy_row,
    {{ key_of([
        'rule_order', 'cluster_id', 'account', 'user_name', 'namespace', 'label', 'tag', 'path', 'team_id',
        'project_id', 'valid_from', 'reason'
    ]) }} as row_hash
from {{ ref('payer_rules') }}
