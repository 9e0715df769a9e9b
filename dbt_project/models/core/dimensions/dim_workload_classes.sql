-- grain: one row per workload class
select
    workload_class,
    workload_class_name,
    description
from {{ ref('int_workload_classes') }}
