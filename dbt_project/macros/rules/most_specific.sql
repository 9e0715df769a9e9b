{#
    The policy row that applies to each (usage_date, pool_id, <aspect>) of `cases`: the most specific of the rows
    valid on the day, where `*` stands for any pool or any value of the aspect and the pool counts more. `columns`
    are the policy's own columns to return.
#}
{% macro most_specific(cases, policies, aspect, columns) -%}
    select
        cases.usage_date,
        cases.pool_id,
        cases.{{ aspect }},
        {{ qualified("policies", columns) }}
    from {{ cases }} as cases
    inner join {{ policies }} as policies
        on
            policies.pool_id in (cases.pool_id, '*')
            and policies.{{ aspect }} in (cases.{{ aspect }}, '*')
            and {{ valid_on("policies", "cases.usage_date") }}
    qualify
        row_number() over (
            partition by cases.usage_date, cases.pool_id, cases.{{ aspect }}
            order by
                case when policies.pool_id = '*' then 1 else 0 end,
                case when policies.{{ aspect }} = '*' then 1 else 0 end
        ) = 1
{%- endmacro %}
