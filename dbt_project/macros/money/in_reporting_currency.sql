{#
    The amounts of `relation` (columns usage_date, currency, amount and `keys`) in the reporting currency, at the rate of
    the day. The reporting currency needs no rate; another one without a rate weighs nothing.
#}
{% macro in_reporting_currency(relation, keys) -%}
    select
        {{ qualified("rated", keys) }},
        {{ times_rate("rated.amount", "rated.rate") }} as amount
    from (
        select
            {{ qualified("amounts", keys) }},
            amounts.amount,
            coalesce(
                currencies.rate_to_reporting,
                case
                    when amounts.currency = '{{ var("reporting_currency") }}' then cast(1 as numeric(38, 9))
                    else cast(0 as numeric(38, 9))
                end
            ) as rate
        from {{ relation }} as amounts
        left join {{ ref("stg_reference__currencies") }} as currencies
            on amounts.currency = currencies.currency and {{ valid_on("currencies", "amounts.usage_date") }}
    ) as rated
{%- endmacro %}
