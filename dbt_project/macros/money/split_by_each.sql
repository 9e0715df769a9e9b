{#
    The split of one amount by each of several weights side by side, for comparisons: `<weight>_cost` for each weight. Same
    arithmetic and same conditions as `split`.
#}
{% macro split_by_each(relation, amount, weights, by, order_by) -%}
    {%- set pieces = [] -%}
    {%- for weight in weights -%}
        {%- do pieces.append(dict(
            part=weight ~ "_cost", amount=amount, weight=weight,
            running=weight ~ "_running_weight", total=weight ~ "_total_weight",
        )) -%}
    {%- endfor -%}
    {{ return(parts_of_each(running_sums(relation, pieces, by, order_by), pieces)) }}
{%- endmacro %}
