{#
    Which ordered rules match which subjects, whatever the day: one row per subject_key and rule (its policy_row).

    An empty matcher matches anything; otherwise it is a LIKE pattern, and a subject without the field does not
    match. `pairs` names JSON columns of the subjects (labels, tags) and the rule column that reads a `key=value`
    pair of them. `ranges` names numbers of the subjects and the suffix of the rule's `min_` and `max_` columns, which
    are half-open. The caller picks the first match among the rules valid on a day (`first_rule_of_day`).

    No row comes twice. That they are said to be distinct keeps DuckDB 2.0 from reordering these joins together with
    those of the caller, where it sometimes took the left one for an inner one and lost what no pair is asked of.
#}
{% macro rule_matches(subjects, rules, fields, pairs, ranges={}) -%}
    select distinct
        subjects.subject_key,
        rules.policy_row
    from {{ subjects }} as subjects
    inner join {{ rules }} as rules
        on
            {%- for field in fields %}
            (rules.{{ field }} is null or {{ fits('subjects.' ~ field, 'rules.' ~ field) }}){{ " and" if not loop.last }}
            {%- endfor %}
            {%- for number, suffix in ranges.items() %}
            and (rules.min_{{ suffix }} is null or subjects.{{ number }} >= rules.min_{{ suffix }})
            and (rules.max_{{ suffix }} is null or subjects.{{ number }} < rules.max_{{ suffix }})
            {%- endfor %}
    {%- for json_column, rule_column in pairs.items() %}
    left join (
        select distinct
            pairs.{{ json_column }},
            rules.policy_row
        from (
            {{ json_pairs(
                "(select distinct " ~ json_column ~ " from " ~ subjects ~ " where " ~ json_column ~ " is not null)", json_column
            ) }}
        ) as pairs
        inner join {{ rules }} as rules
            on
                pairs.pair_key = rules.{{ rule_column }}_key
                and {{ fits('pairs.pair_value', 'rules.' ~ rule_column ~ '_value') }}
    ) as {{ rule_column }}_matches
        on
            subjects.{{ json_column }} = {{ rule_column }}_matches.{{ json_column }}
            and rules.policy_row = {{ rule_column }}_matches.policy_row
    {%- endfor %}
    where
        {%- for json_column, rule_column in pairs.items() %}
        (rules.{{ rule_column }} is null or {{ rule_column }}_matches.policy_row is not null){{ " and" if not loop.last }}
        {%- endfor %}
{%- endmacro %}

{#
    The first of the matching rules that is valid on the day: one row per subject_key and usage_date. Orders are unique on
    each day, so the order and the day name the rule.
#}
{% macro first_rule_of_day(subject_days, matches, rules) -%}
    select
        subject_days.subject_key,
        subject_days.usage_date,
        min(rules.rule_order) as rule_order
    from {{ subject_days }} as subject_days
    inner join {{ matches }} as matches on subject_days.subject_key = matches.subject_key
    inner join {{ rules }} as rules
        on matches.policy_row = rules.policy_row and {{ valid_on("rules", "subject_days.usage_date") }}
    group by subject_days.subject_key, subject_days.usage_date
{%- endmacro %}

{# One text key for a combination of columns. #}
{% macro key_of(columns) -%} {{ dbt.hash(text_of(columns)) }} {%- endmacro %}

{#
    A combination of columns as one text. Each value goes in with its length, so that no two combinations meet. What is only
    compared within a run has no need of a hash, which costs as much as all the rest of a key.
#}
{% macro text_of(columns) -%}
    {%- set parts = [] -%}
    {%- for column in columns -%}
        {%- set text = "cast(" ~ column ~ " as " ~ dbt.type_string() ~ ")" -%}
        {%- do parts.append("coalesce(cast(length(" ~ text ~ ") as " ~ dbt.type_string() ~ ") || ':' || " ~ text ~ ", '-')") -%}
    {%- endfor -%}
    {{ dbt.concat(parts) }}
{%- endmacro %}

{# The two halves of a `key=value` matcher. #}
{% macro pair_key(column) -%} substr({{ column }}, 1, strpos({{ column }}, '=') - 1) {%- endmacro %}
{% macro pair_value(column) -%} substr({{ column }}, strpos({{ column }}, '=') + 1) {%- endmacro %}
