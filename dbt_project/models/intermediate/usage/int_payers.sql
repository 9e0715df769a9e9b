-- grain: one row per payer subject and UTC day that a payer rule claims
-- Whoever is missing here is `unattributed` (jobs) or has no owner (bill lines).
{%- set fields = ['cluster_id', 'account', 'user_name', 'namespace', 'path'] %}
{%- set pairs = {'labels': 'label', 'tags': 'tag'} %}

with subject_days as (
    select * from {{ ref('int_payer_subjects') }}
),

rules as (
    select * from {{ ref('stg_policy__payer_rules') }}
),

subjects as (
    select distinct
        subject_key,
        cluster_id,
        account,
        user_name,
        namespace,
        path,
        labels,
        tags
    from subject_days
),

-- Tag rules are for bill lines and for nothing else, so that a catch-all rule for jobs does not own the bill.
bill_rules as (
    select * from rules
    where tag is not null
),

usage_rules as (
    select * from rules
    where tag is null
),

bill_subjects as (
    select * from subjects
    where tags is not null
),

usage_subjects as (
    select * from subjects
    where tags is null
),

matches as (
    {{ rule_matches('bill_subjects', 'bill_rules', fields, pairs) }}
    union all
    {{ rule_matches('usage_subjects', 'usage_rules', fields, pairs) }}
),

first_rules as (
    {{ first_rule_of_day('subject_days', 'matches', 'rules') }}
),

final as (
    select
        first_rules.subject_key,
        first_rules.usage_date,
        rules.team_id,
        rules.project_id,
        rules.policy_row as payer_rule
    from first_rules
    inner join rules
        on first_rules.rule_order = rules.rule_order and {{ valid_on('rules', 'first_rules.usage_date') }}
)

select * from final
