{# Where a layer's tables are. A DuckDB file is ours alone; a BigQuery project is not, so datasets there carry a prefix. #}
{% macro layer_schema(layer) -%}
    {{ return(adapter.dispatch("layer_schema", "apportion")(layer)) }}
{%- endmacro %}

{% macro default__layer_schema(layer) -%} {{ return(target.schema ~ "_" ~ layer) }} {%- endmacro %}
{% macro duckdb__layer_schema(layer) -%} {{ return(layer) }} {%- endmacro %}
