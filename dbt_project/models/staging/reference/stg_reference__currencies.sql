-- grain: one row per row of seeds/reference/currencies.csv
select
    currency,
    rate_to_reporting,
    coalesce(valid_from, date '1970-01-01') as valid_from,
    coalesce(valid_to, date '9999-12-31') as valid_to,
    reason,
    {{ policy_row('currencies', ['currency']) }} as policy_row,
    {{ key_of(['currency', number_as_text('rate_to_reporting'), 'valid_from', 'reason']) }} as row_hash
from {{ ref('currencies') }}
