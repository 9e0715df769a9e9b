{# BigQuery's load jobs, which fill its seeds, know NUMERIC and not numeric(38, 9), which is the same. #}
{% macro bigquery__load_csv_rows(model, agate_table) %}
    {%- set types = {} -%}
    {%- for column, kind in model["config"].get("column_types", {}).items() -%}
        {%- do types.update({column: "numeric" if kind.startswith("numeric") else kind}) -%}
    {%- endfor -%}
    {{ return(dbt.bigquery__load_csv_rows(dict(model, config=dict(model["config"], column_types=types)), agate_table)) }}
{% endmacro %}
