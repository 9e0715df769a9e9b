{#
    amount * running / total, rounded half away from zero to `scale` decimals (9: money, 0: whole units); NULL for
    total 0. `running` and `total` are integers. Exact on every engine: DuckDB has no decimal division, so it works in
    128-bit integers of the last decimal; GoogleSQL has one, which rounds half away.
#}
{% macro share(amount, running, total, scale=9) -%}
    {{ return(adapter.dispatch("share", "apportion")("(" ~ amount ~ ")", "(" ~ running ~ ")", "(" ~ total ~ ")", scale)) }}
{%- endmacro %}

{#
    Products of NUMERIC end at 1e29, so the amount is divided as BIGNUMERIC. Its quotient has 38 decimals, and rounding it again
    changes nothing while the total is below 1e28: no other quotient comes that near to the middle between two results.
#}
{% macro default__share(amount, running, total, scale) -%}
    {%- set rounded = "round(cast(" ~ amount ~ " as bignumeric) * " ~ running ~ " / nullif(" ~ total ~ ", 0), " ~ scale ~ ")" -%}
    {{ "cast(" ~ rounded ~ " as numeric(38, 9))" if scale == 9 else rounded }}
{%- endmacro %}

{#
    Twice the amount times running must fit into 128 bits. Beyond totals of 1e18 (complexity weights of large pools over a
    whole day) the amount is divided limb by limb, six digits at a time, as one divides by hand: good for totals up to 5e31,
    hundreds of times a day of 8,000 GPUs under the largest weights.
#}
{% macro duckdb__share(amount, running, total, scale) -%}
    {%- if scale == 9 -%}
    {%- set doubled = "cast(abs" ~ amount ~ " * 2000000000 as hugeint)" -%}
    {%- set divisor = "(2 * nullif(" ~ total ~ ", 0))" -%}
    {%- set first = "(" ~ doubled ~ " // 1000000000000 * " ~ running ~ ")" -%}
    {%- set second = "(" ~ first ~ " % " ~ divisor ~ " * 1000000 + " ~ doubled ~ " // 1000000 % 1000000 * " ~ running ~ ")" -%}
    {%- set third = "(" ~ second ~ " % " ~ divisor ~ " * 1000000 + " ~ doubled ~ " % 1000000 * " ~ running ~ " + " ~ total ~ ")" -%}
    cast(
        cast(
            cast(sign({{ amount }}) as hugeint) * case
                when {{ total }} < 1000000000000000000
                    then ({{ doubled }} * {{ running }} + {{ total }}) // {{ divisor }}
                else
                    {{ first }} // {{ divisor }} * 1000000000000
                    + {{ second }} // {{ divisor }} * 1000000
                    + {{ third }} // {{ divisor }}
            end as decimal(38, 0)
        ) * 0.000000001 as decimal(38, 9)
    )
    {%- else -%}
    cast(
        (2 * cast({{ amount }} as hugeint) * {{ running }} + {{ total }}) // (2 * nullif({{ total }}, 0)) as hugeint
    )
    {%- endif -%}
{%- endmacro %}
