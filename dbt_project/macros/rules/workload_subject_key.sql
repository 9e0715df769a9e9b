{# The key under which `int_job_classes` knows how a job run describes itself; `prefix` goes in front of the columns. #}
{% macro workload_subject_key(prefix="") -%}
    {%- set columns = [] -%}
    {%- for column in ["cluster_id", "partition_name", "qos", "job_name", "labels", "gpu_units", "time_limit_ms"] -%}
        {%- do columns.append(prefix ~ column) -%}
    {%- endfor -%}
    {{ text_of(columns) }}
{%- endmacro %}
