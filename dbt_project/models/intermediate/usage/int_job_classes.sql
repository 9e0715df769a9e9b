-- grain: one row per UTC day and way in which a job run describes itself: its workload class, and the rule that gives it
-- A job that no rule knows is `unclassified`.
{%- set fields = ['cluster_id', 'partition_name', 'qos', 'job_name'] %}
{%- set numbers = {'gpu_units': 'gpu_units', 'time_limit_ms': 'limit_ms'} %}
{%- set subject = fields + ['labels'] + numbers.keys() | list %}

with described_days as (
    select distinct
        usage_date,
        {{ subject | join(', ') }}
    from {{ ref('stg_scheduler__jobs') }}
),

subject_days as (
    select
        {{ text_of(subject) }} as subject_key,
        described_days.*
    from described_days
),

rules as (
    select * from {{ ref('stg_policy__workload_rules') }}
),

subjects as (
    select distinct
        subject_key,
        {{ subject | join(', ') }}
    from subject_days
),

matches as (
    {{ rule_matches('subjects', 'rules', fields, {'labels': 'label'}, numbers) }}
),

first_rules as (
    {{ first_rule_of_day('subject_days', 'matches', 'rules') }}
),

final as (
    select
        subject_days.usage_date,
        {{ qualified('subject_days', subject) }},
        coalesce(rules.workload_class, 'unclassified') as workload_class,
        rules.policy_row as workload_rule,
        coalesce(rules.is_self_declared, false) as is_class_self_declared
    from subject_days
    left join first_rules
        on subject_days.usage_date = first_rules.usage_date and subject_days.subject_key = first_rules.subject_key
    left join rules
        on first_rules.rule_order = rules.rule_order and {{ valid_on('rules', 'subject_days.usage_date') }}
)

select * from final
