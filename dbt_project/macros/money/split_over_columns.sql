{#
    The split over the columns of one row instead of over rows: `<weight>_cost` for each weight, in order. Same
    arithmetic as `split`: neighbouring rounded running shares, so that the parts telescope to the amount. All
    parts are 0 where all weights are.
#}
{% macro split_over_columns(amount, weights) -%}
    {%- set total = "(" ~ weights | join(" + ") ~ ")" -%}
    {%- for weight in weights %}
        {%- set running = "(" ~ weights[: loop.index] | join(" + ") ~ ")" %}
        coalesce({{ share(amount, running, total) }}, 0)
        {%- if not loop.first %}
        - coalesce({{ share(amount, "(" ~ weights[: loop.index0] | join(" + ") ~ ")", total) }}, 0)
        {%- endif %} as {{ weight }}_cost{{ "," if not loop.last }}
    {%- endfor %}
{%- endmacro %}
