{#
    The policy row that applies to each case of `cases` (usage_date and the columns `keys`): the most specific of the rows
    valid on the day. `*` stands for any value of a key, and an earlier key counts more than a later one. `columns` are
    the policy's own columns to return.
#}
{% macro most_specific(cases, policies, keys, columns) -%}
    select
        cases.usage_date,
        {{ qualified("cases", keys) }},
        {{ qualified("policies", columns) }}
    from {{ cases }} as cases
    inner join {{ policies }} as policies
        on
            {%- for key in keys %}
            policies.{{ key }} in (cases.{{ key }}, '*') and
            {%- endfor %}
            {{ valid_on("policies", "cases.usage_date") }}
    qualify
        row_number() over (
            partition by cases.usage_date, {{ qualified("cases", keys) }}
            order by
                {%- for key in keys %}
                case when policies.{{ key }} = '*' then 1 else 0 end{{ "," if not loop.last }}
                {%- endfor %}
        ) = 1
{%- endmacro %}
