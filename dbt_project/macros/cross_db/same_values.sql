{#
    Whether the rows of a join say the same in all of `columns`, absent values included. `left` and `right` go in front of each
    column. DuckDB looks such rows up; where it is not known that an engine does, one text stands for the columns.
#}
{% macro same_values(left, right, columns) -%}
    {{ return(adapter.dispatch("same_values", "apportion")(left, right, columns)) }}
{%- endmacro %}

{% macro default__same_values(left, right, columns) -%}
    {%- set sides = [] -%}
    {%- for side in [left, right] -%}
        {%- set of_side = [] -%}
        {%- for column in columns -%} {%- do of_side.append(side ~ column) -%} {%- endfor -%}
        {%- do sides.append(text_of(of_side)) -%}
    {%- endfor -%}
    {{ sides | join(" = ") }}
{%- endmacro %}

{% macro duckdb__same_values(left, right, columns) -%}
    {%- for column in columns -%}
    {{ left }}{{ column }} is not distinct from {{ right }}{{ column }}{{ " and " if not loop.last }}
    {%- endfor -%}
{%- endmacro %}
