-- grain: one row per payer subject and UTC day that a payer rule claims
-- Whoever is missing here is `unattributed` (jobs) or has no owner (bill lines, which are known by their tags alone).
{%- set fields = ['cluster_id', 'account', 'user_name', 'namespace', 'path'] %}
{%- set pairs = {'labels': 'label', 'tags': 'tag'} %}

with subject_days as (
    select * from {{ ref('int_payer_subjects') }}
),

account_ancestors as (
    select * from {{ ref('int_account_ancestors') }}
),

rules as (
    select * from {{ ref('stg_policy__payer_rules') }}
),

-- What a subject goes by on a day: its own name, and the same name with each account above its own.
named_days as (
    select
        subject_key as own_key,
        0 as steps,
        subject_days.*
    from subject_days
    union all
    select
        subject_days.subject_key as own_key,
        account_ancestors.steps,
        {{ payer_subject_key(
            'subject_days.cluster_id', 'account_ancestors.ancestor_account', 'subject_days.user_name',
            'subject_days.namespace', 'subject_days.path', 'subject_days.labels', 'subject_days.tags'
        ) }} as subject_key,
        subject_days.usage_date,
        subject_days.cluster_id,
        account_ancestors.ancestor_account as account,
        subject_days.user_name,
        subject_days.namespace,
        subject_days.path,
        subject_days.labels,
        subject_days.tags
    from subject_days
    inner join account_ancestors
        on
            subject_days.usage_date = account_ancestors.usage_date
            and subject_days.cluster_id = account_ancestors.cluster_id
            and subject_days.account = account_ancestors.account
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
    from named_days
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

-- Of the rules that name an account, those for the account itself or else for the nearest one above it apply.
valid_matches as (
    select
        named_days.own_key,
        named_days.usage_date,
        rules.rule_order,
        case when rules.account is not null then named_days.steps end as account_steps
    from named_days
    inner join matches on named_days.subject_key = matches.subject_key
    inner join rules
        on matches.policy_row = rules.policy_row and {{ valid_on('rules', 'named_days.usage_date') }}
    where named_days.steps = 0 or rules.account is not null
),

nearest_matches as (
    select
        valid_matches.*,
        min(account_steps) over (partition by own_key, usage_date) as nearest_steps
    from valid_matches
),

first_rules as (
    select
        own_key as subject_key,
        usage_date,
        min(rule_order) as rule_order
    from nearest_matches
    where account_steps is null or account_steps = nearest_steps
    group by own_key, usage_date
),

final as (
    select
        subject_days.subject_key,
        subject_days.usage_date,
        {{ qualified('subject_days', fields) }},
        subject_days.labels,
        subject_days.tags,
        rules.team_id,
        rules.project_id,
        rules.policy_row as payer_rule
    from first_rules
    inner join subject_days
        on first_rules.subject_key = subject_days.subject_key and first_rules.usage_date = subject_days.usage_date
    inner join rules
        on first_rules.rule_order = rules.rule_order and {{ valid_on('rules', 'first_rules.usage_date') }}
)

select * from final
