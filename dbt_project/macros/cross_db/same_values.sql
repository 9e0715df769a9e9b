{#
    Whether the rows of a join say the same in all of `columns`, absent values included. `left` and `right` go in front of each
    column. DuckDB looks such rows up; where it is not known that an engine does, one text stands for the columns.
#}
{% macro same_values(left, right, columns) -%}
    {%- set of_left = [] -%}
    {%- set of_right = [] -%}
    {%- for column in columns -%}
        {%- do of_left.append(left ~ column) -%}
        {%- do of_right.append(right ~ column) -%}
    {%- endfor -%}
    {{ return(adapter.dispatch("same_values", "apportion")(of_left, of_right)) }}
{%- endmacro %}

{% macro default__same_values(of_left, of_right) -%} {{ text_of(of_left) }} = {{ text_of(of_right) }} {%- endmacro %}

{% macro duckdb__same_values(of_left, of_right) -%}
    {%- for column in of_left -%}
    {{ column }} is not distinct from {{ of_right[loop.index0] }}{{ " and " if not loop.last }}
    {%- endfor -%}
{%- endmacro %}
