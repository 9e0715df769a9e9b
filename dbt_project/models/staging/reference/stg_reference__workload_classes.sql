-- grain: one row per workload class
select
    workload_class,
    workload_class_name,
    description
from {{ ref('workload_classes') }}
