{#
    The split: divide amounts over rows by integer weights, exactly. Nothing else in the project divides money.

    Rows of `relation` are grouped by `by` and ordered by `order_by` (absent values first). Each part is the
    difference of two neighbouring rounded running shares, so the parts of a group telescope to its amount
    whatever the weights are. `relation` must hold the group's amount on each of its rows, and `order_by` must
    be unique inside a group. The result is the relation plus a column `<amount>_part` for each amount (and the
    helpers `running_weight`, `total_weight`). A group whose weights add up to 0 gets NULL parts: the caller's
    fallback decides who pays. A negative weight counts as 0.

    `scale` is 9 for money and 0 for whole units (GPU units over nodes, microjoules over jobs).
#}
{% macro split(relation, amounts, weight, by, order_by, scale=9) -%}
    select
        weighted.*,
        {%- for amount in amounts %}
        {{ part_of("weighted." ~ amount, "weighted." ~ weight, "weighted.running_weight", "weighted.total_weight", scale) }}
            as {{ amount }}_part{{ "," if not loop.last }}
        {%- endfor %}
    from (
        select
            parts.*,
            sum(greatest(parts.{{ weight }}, 0)) over (
                partition by {{ qualified("parts", by) }}
                order by {{ qualified("parts", order_by, " nulls first") }}
                rows between unbounded preceding and current row
            ) as running_weight,
            sum(greatest(parts.{{ weight }}, 0)) over (partition by {{ qualified("parts", by) }}) as total_weight
        from {{ relation }} as parts
    ) as weighted
{%- endmacro %}

{# What a weight gets of an amount: the difference of two neighbouring rounded running shares. #}
{% macro part_of(amount, weight, running, total, scale=9) -%}
    {{ share(amount, running, total, scale) }}
    - {{ share(amount, "(" ~ running ~ " - greatest(" ~ weight ~ ", 0))", total, scale) }}
{%- endmacro %}
