{# Is a row of the books, or of what was held, in the scope of an adjustment? Scopes list the teams that they cover. #}
{% macro adjustment_covers(adjustments, rows) -%}
    {{ adjustments }}.usage_date = {{ rows }}.usage_date
    and ({{ adjustments }}.team_id is null or {{ adjustments }}.covered_team_id = {{ rows }}.team_id)
    and ({{ adjustments }}.project_id is null or {{ adjustments }}.project_id = {{ rows }}.project_id)
    and ({{ adjustments }}.workload_class is null or {{ adjustments }}.workload_class = {{ rows }}.workload_class)
    and ({{ adjustments }}.pool_id is null or {{ adjustments }}.pool_id = {{ rows }}.pool_id)
{%- endmacro %}
