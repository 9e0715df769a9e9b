{#
    The split of one amount by each of several weights side by side, for comparisons: `<weight>_cost` for each weight. Same
    arithmetic and same conditions as `split`.
#}
{% macro split_by_each(relation, amount, weights, by, order_by) -%}
    select
        weighted.*
        {%- for weight in weights %},
        {{ part_of(
            "weighted." ~ amount, "weighted." ~ weight, "weighted." ~ weight ~ "_running", "weighted." ~ weight ~ "_total"
        ) }} as {{ weight }}_cost
        {%- endfor %}
    from (
        select
            parts.*
            {%- for weight in weights %},
            sum(greatest(parts.{{ weight }}, 0)) over (
                partition by {{ qualified("parts", by) }}
                order by {{ qualified("parts", order_by, " nulls first") }}
                rows between unbounded preceding and current row
            ) as {{ weight }}_running,
            sum(greatest(parts.{{ weight }}, 0)) over (partition by {{ qualified("parts", by) }}) as {{ weight }}_total
            {%- endfor %}
        from {{ relation }} as parts
    ) as weighted
{%- endmacro %}
