{#
    The split of one amount by each of several weights side by side, for comparisons: `<weight>_cost` for each weight. Same
    arithmetic and same conditions as `split`.
#}
{% macro split_by_each(relation, amount, weights, by, order_by) -%}
    {%- set pieces = [] -%}
    {%- for weight in weights -%}
        {%- do pieces.append(dict(part=weight ~ "_cost", amount=amount, weight=weight)) -%}
    {%- endfor -%}
    {{ return(split_side_by_side(relation, pieces, by, order_by)) }}
{%- endmacro %}

{#
    Splits side by side over the same rows: each piece has the name of its `part`, its `amount` and its `weight`. Same
    arithmetic and same conditions as `split`.
#}
{% macro split_side_by_side(relation, pieces, by, order_by) -%}
    {%- set summed = [] -%}
    {%- set weighted -%}
    select
        parts.*
        {%- for piece in pieces %},
        {{ running_and_total(piece.weight, by, order_by, piece.part ~ "_running_weight", piece.part ~ "_total_weight") }}
        {%- do summed.append(dict(piece, running=piece.part ~ "_running_weight", total=piece.part ~ "_total_weight")) -%}
        {%- endfor %}
    from {{ relation }} as parts
    {%- endset -%}
    {{ return(parts_of_each(weighted, summed)) }}
{%- endmacro %}
