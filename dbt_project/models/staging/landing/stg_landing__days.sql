-- grain: one row per source, landing table and UTC day
select
    date as usage_date,
    source as source_name,
    table_name,
    {{ adapter.quote('rows') }} as row_count,
    quarantined as quarantined_count,
    content_hash
from {{ landed('landings') }}
where {{ in_window('date') }}
