-- grain: one row per cost component
select
    component,
    component_name,
    cost_grain,
    driver,
    description
from {{ ref('int_components') }}
