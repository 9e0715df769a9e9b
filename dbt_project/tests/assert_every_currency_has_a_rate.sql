-- A currency without a rate would weigh nothing when overhead is shared by direct cost.
{{ config(meta={'dagster': {'ref': {'name': 'fct_billed_costs'}}}) }}

with billed as (
    select distinct
        usage_date,
        currency
    from {{ ref('fct_billed_costs') }}
    where {{ in_window('usage_date') }}
),

currencies as (
    select * from {{ ref('stg_reference__currencies') }}
)

select
    'reference/currencies.csv' as seed_file,
    billed.currency as seed_row,
    'there is no rate for ' || billed.currency || ' on ' || cast(min(billed.usage_date) as {{ dbt.type_string() }}) as problem,
    'add a row with its rate to {{ var("reporting_currency") }}' as remedy
from billed
left join currencies
    on billed.currency = currencies.currency and {{ valid_on('currencies', 'billed.usage_date') }}
where billed.currency <> '{{ var("reporting_currency") }}' and currencies.currency is null
group by billed.currency
