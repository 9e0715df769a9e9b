-- grain: one row per cost component
select
    component,
    component_name,
    cost_grain,
    driver,
    description
from {{ ref('stg_reference__components') }}
