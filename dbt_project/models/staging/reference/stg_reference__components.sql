-- grain: one row per cost component
select
    component,
    component_name,
    cost_grain,
    driver,
    description,
    date '1970-01-01' as valid_from,
    date '9999-12-31' as valid_to,
    description as reason,
    {{ policy_row('components', ['component'], is_dated=false) }} as policy_row,
    {{ key_of(['component', 'cost_grain', 'driver']) }} as row_hash
from {{ ref('components') }}
