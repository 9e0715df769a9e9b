{# A column list with its relation in front: `jobs.usage_date, jobs.hour_ms`. #}
{% macro qualified(relation, columns, suffix="") -%}
    {%- for column in columns -%}{{ relation }}.{{ column }}{{ suffix }}{{ ", " if not loop.last }}{%- endfor -%}
{%- endmacro %}
