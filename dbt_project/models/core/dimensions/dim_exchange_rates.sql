-- grain: one row per currency and validity
select
    currency,
    rate_to_reporting,
    valid_from,
    valid_to
from {{ ref('int_exchange_rates') }}
