-- grain: one row per hour, pool, team and self-declared workload rule (none where the class was not self-declared)
{%- set components = ['gpu', 'cpu', 'memory'] %}
{%- set number = 'numeric(38, 9)' %}
{%- set weights = {'direct': 'int64', 'time': 'int64', 'complexity': number, 'charged': number} %}

select
    usage_date,
    {{ timestamp_of('hour_ms') }} as hour_at,
    pool_id,
    team_id,
    self_declared_rule,
    {{ quotient('gpu_direct_weight', '25200000') }} as gpu_seconds,
    {{ quotient('cpu_direct_weight', '1000000') }} as cpu_core_seconds,
    {%- for component in components %}
    {%- for weight, type in weights.items() %}
    cast({{ component }}_{{ weight }}_weight as {{ type }}) as {{ component }}_{{ weight }}_weight,
    {%- endfor %}
    {%- endfor %}
    {{ quotient('memory_direct_weight', '1024000') }} as memory_gib_seconds
from {{ ref('int_team_hours') }}
