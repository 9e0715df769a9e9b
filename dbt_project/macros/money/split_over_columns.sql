{#
    The split over the columns of one row instead of over rows: a column for each weight, named after it with the suffix, in
    order. Same arithmetic as `split`: neighbouring rounded running shares, so that the parts telescope to the amount. All
    parts are 0 where all weights are. `scale` is 9 for money and 0 for whole units.
#}
{% macro split_over_columns(amount, weights, scale=9, suffix="_cost") -%}
    {%- set total = "(" ~ weights | join(" + ") ~ ")" -%}
    {%- for weight in weights %}
        {%- set running = "(" ~ weights[: loop.index] | join(" + ") ~ ")" %}
        coalesce({{ share(amount, running, total, scale) }}, 0)
        {%- if not loop.first %}
        - coalesce({{ share(amount, "(" ~ weights[: loop.index0] | join(" + ") ~ ")", total, scale) }}, 0)
        {%- endif %} as {{ weight }}{{ suffix }}{{ "," if not loop.last }}
    {%- endfor %}
{%- endmacro %}
