-- grain: one row per row of the instance types and component of its price: the weight by which the price is cut
-- Weights are ratios. A preset gives a weight per unit of the resource, or per node whatever it holds.
{%- set amounts = {'gpu': 'gpus', 'cpu': 'cores', 'memory': 'memory_gib'} %}

with instance_types as (
    select * from {{ ref('stg_reference__instance_types') }}
),

presets as (
    select * from {{ ref('stg_reference__price_presets') }}
),

prices as (
    {%- for component, amount in amounts.items() %}
    select
        instance_types.instance_type,
        instance_types.valid_from,
        instance_types.valid_to,
        instance_types.policy_row,
        '{{ component }}' as component,
        case
            when presets.preset is null then instance_types.{{ component }}_price_weight
            when presets.basis = 'per_unit' then instance_types.{{ amount }} * presets.{{ component }}_weight_millionths
            when instance_types.{{ amount }} > 0 then presets.{{ component }}_weight_millionths
            else 0
        end as price_weight
    from instance_types
    left join presets on instance_types.price_preset = presets.preset
    {% if not loop.last %}union all{% endif %}
    {%- endfor %}
),

final as (
    select
        prices.*,
        sum(price_weight) over (partition by instance_type, valid_from) as total_weight
    from prices
)

select * from final
