{#
    What a weight gets of an amount where weights can be negative: a team that is credited more than it is charged has a
    negative share of what the others pay. The difference of two neighbouring running shares telescopes whatever the signs
    are; `total` must be positive, so a caller with a negative total turns all signs around.
#}
{% macro signed_part_of(amount, weight, running, total) -%}
    cast(
        {{ signed_share(amount, running, total) }}
        - {{ signed_share(amount, "(" ~ running ~ " - " ~ weight ~ ")", total) }}
        as numeric(38, 9)
    )
{%- endmacro %}

{# `share` is told no negative number: engines differ in how they round those. #}
{% macro signed_share(amount, running, total) -%}
    case
        when {{ running }} < 0 then -{{ share(amount, "-" ~ running, total) }}
        else {{ share(amount, running, total) }}
    end
{%- endmacro %}

{# Signed weights in the order of `order_by` with their running and total sums, turned so that the total is positive. #}
{% macro signed_weights(relation, weight, by, order_by) -%}
    select
        turned.*,
        sum(turned.turned_weight) over (
            partition by {{ qualified("turned", by) }}
            order by {{ qualified("turned", order_by, " nulls first") }}
            rows between unbounded preceding and current row
        ) as running_weight,
        sum(turned.turned_weight) over (partition by {{ qualified("turned", by) }}) as total_weight
    from (
        select
            parts.*,
            case
                when sum(parts.{{ weight }}) over (partition by {{ qualified("parts", by) }}) < 0 then -parts.{{ weight }}
                else parts.{{ weight }}
            end as turned_weight
        from {{ relation }} as parts
    ) as turned
{%- endmacro %}
