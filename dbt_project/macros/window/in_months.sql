{# True for the UTC days of the months that the run's window touches. Plain dates, so that engines read those months alone. #}
{% macro in_months(column) -%}
    {%- set last = modules.datetime.date.fromisoformat(var("window_end")) - modules.datetime.timedelta(days=1) -%}
    {%- set following = (last.replace(day=28) + modules.datetime.timedelta(days=4)).replace(day=1) -%}
    ({{ column }} >= date '{{ var("window_start")[:8] }}01' and {{ column }} < date '{{ following.isoformat() }}')
{%- endmacro %}
