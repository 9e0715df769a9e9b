-- grain: one row per job run and UTC day that it overlaps: its workload class, and the rule that gives it
-- The first part of a job speaks for it, as it does for the payer. A job that no rule knows is `unclassified`.
{%- set fields = ['cluster_id', 'partition_name', 'qos', 'job_name'] %}
{%- set numbers = {'gpu_units': 'gpu_units', 'time_limit_ms': 'limit_ms'} %}
{%- set subject = fields + ['labels'] + numbers.keys() | list %}

with first_parts as (
    select
        jobs.*,
        {{ key_of(subject) }} as subject_key
    from {{ ref('stg_scheduler__jobs') }} as jobs
    qualify row_number() over (partition by usage_date, job_key order by start_ms, part_id) = 1
),

rules as (
    select * from {{ ref('stg_policy__workload_rules') }}
),

subject_days as (
    select distinct
        subject_key,
        usage_date
    from first_parts
),

subjects as (
    select distinct
        subject_key,
        {{ subject | join(', ') }}
    from first_parts
),

matches as (
    {{ rule_matches('subjects', 'rules', fields, {'labels': 'label'}, numbers) }}
),

first_rules as (
    {{ first_rule_of_day('subject_days', 'matches', 'rules') }}
),

final as (
    select
        first_parts.usage_date,
        first_parts.job_key,
        coalesce(rules.workload_class, 'unclassified') as workload_class,
        rules.policy_row as workload_rule,
        coalesce(rules.is_self_declared, false) as is_class_self_declared,
        first_parts.checkpoint_interval_ms
    from first_parts
    left join first_rules
        on first_parts.usage_date = first_rules.usage_date and first_parts.subject_key = first_rules.subject_key
    left join rules
        on first_rules.rule_order = rules.rule_order and {{ valid_on('rules', 'first_parts.usage_date') }}
)

select * from final
