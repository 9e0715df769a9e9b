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
    Division of 128-bit integers costs ten times as much as all else here. Floating point of an amount of up to fifteen digits
    is less than half a unit beside the share: its whole part is the share or one less, and multiplying back shows which.
    What has more digits is divided.
#}
{% macro duckdb__share(amount, running, total, scale) -%}
    {%- if scale == 9 -%}
    {%- set units = "cast(round(cast(abs" ~ amount ~ " as double) * 1e9) as int64)" -%}
    {%- set is_short = "abs" ~ amount ~ " < 1000000 and " ~ running ~ " <= " ~ total -%}
    {%- else -%}
    {%- set units = amount -%}
    {%- set is_short = amount ~ " >= 0 and cast(" ~ amount ~ " as double) * " ~ running ~ " < 5e14 * cast(" ~ total ~ " as double)" -%}
    {%- endif -%}
    {%- set whole = "cast(floor(cast(" ~ units ~ " as double) * cast(" ~ running ~ " as double) / cast(" ~ total ~ " as double)) as hugeint)" -%}
    {%- set guessed -%}
        case
            when {{ total }} > 0 and {{ total }} < 1000000000000000000 and {{ running }} >= 0 and {{ is_short }}
                then {{ whole }} + cast(
                    2 * (cast({{ units }} as hugeint) * {{ running }} - {{ whole }} * {{ total }}) >= {{ total }} as int64
                )
            else {{ divided_share(amount, running, total, scale) }}
        end
    {%- endset -%}
    {%- if scale == 9 -%}
    {{ nine_decimals("cast(sign" ~ amount ~ " as hugeint) * " ~ guessed) }}
    {%- else -%}
    {{ guessed }}
    {%- endif -%}
{%- endmacro %}

{# Units of the last of nine decimals as a number. #}
{% macro nine_decimals(units) -%}
    cast(cast({{ units }} as decimal(38, 0)) * 0.000000001 as decimal(38, 9))
{%- endmacro %}

{#
    The share, of a positive amount, in units of its last decimal, by division. Twice the amount times running must fit into 128
    bits. Beyond totals of 1e18 (complexity weights of large pools over a whole day) the amount is divided limb by limb, six
    digits at a time, as one divides by hand: good for totals up to 5e31, hundreds of times a day of 8,000 GPUs under the
    largest weights. A total that is written as a number is taken to be shorter.
#}
{% macro divided_share(amount, running, total, scale) -%}
    {%- set doubled = "cast(abs" ~ amount ~ " * 2000000000 as hugeint)" -%}
    {%- if scale == 9 and total.isdigit() -%}
    ({{ doubled }} * {{ running }} + {{ total }}) // {{ 2 * total | int }}
    {%- elif scale == 9 -%}
    {%- set divisor = "(2 * nullif(" ~ total ~ ", 0))" -%}
    {%- set first = "(" ~ doubled ~ " // 1000000000000 * " ~ running ~ ")" -%}
    {%- set second = "(" ~ first ~ " % " ~ divisor ~ " * 1000000 + " ~ doubled ~ " // 1000000 % 1000000 * " ~ running ~ ")" -%}
    {%- set third = "(" ~ second ~ " % " ~ divisor ~ " * 1000000 + " ~ doubled ~ " % 1000000 * " ~ running ~ " + " ~ total ~ ")" -%}
    case
        when {{ total }} < 1000000000000000000
            then ({{ doubled }} * {{ running }} + {{ total }}) // {{ divisor }}
        else
            {{ first }} // {{ divisor }} * 1000000000000
            + {{ second }} // {{ divisor }} * 1000000
            + {{ third }} // {{ divisor }}
    end
    {%- else -%}
    cast(
        (2 * cast({{ amount }} as hugeint) * {{ running }} + {{ total }}) // (2 * nullif({{ total }}, 0)) as hugeint
    )
    {%- endif -%}
{%- endmacro %}

{# Two whole numbers as a quotient with nine decimals, rounded half away; NULL for a denominator of 0. #}
{% macro quotient(numerator, denominator) -%}
    {{ return(adapter.dispatch("quotient", "apportion")(numerator, denominator)) }}
{%- endmacro %}

{% macro default__quotient(numerator, denominator) -%}
    {{ share("cast(1 as numeric(38, 9))", as_weight(numerator), as_weight(denominator)) }}
{%- endmacro %}

{#
    Whole numbers of 64 bits divide thirty times as fast as those of 128: the whole part first, then the decimals, at once where
    the denominator is known to be short, else five and four, as one divides by hand. Powers of ten only move the point. What is
    longer is divided in 128 bits, at once or, by more than 1e18, three and six decimals after each other. (Not by
    `divided_share`: operands are whole expressions, and each time that they are written DuckDB plans them again.)
#}
{% macro duckdb__quotient(numerator, denominator) -%}
    {%- set moved = {"1000": 6, "1000000": 3}.get(denominator) -%}
    {%- if moved -%}
    cast(cast({{ numerator }} as decimal(38, {{ moved }})) * {{ "0." ~ "0" * (8 - moved) ~ "1" }} as decimal(38, 9))
    {%- else -%}
    {{ divided_quotient(numerator, denominator) }}
    {%- endif -%}
{%- endmacro %}

{% macro divided_quotient(numerator, denominator) -%}
    {%- set is_short = denominator.isdigit() and 0 < denominator | int < 4000000000 -%}
    {%- set wide_top, wide_bottom = as_weight(numerator), as_weight(denominator) -%}
    {%- set top = "cast(" ~ wide_top ~ " as int64)" -%}
    {%- set bottom = denominator if is_short else "cast(" ~ wide_bottom ~ " as int64)" -%}
    {%- set rest = "(" ~ top ~ " % " ~ bottom ~ " * 100000)" -%}
    {%- set units -%}
        case
            when
                {{ wide_top }} >= 0 and {{ wide_top }} < 9000000000000000000
                {%- if not is_short %} and {{ wide_bottom }} > 0 and {{ wide_bottom }} < 90000000000000 {%- endif %}
                then
                    cast({{ top }} // {{ bottom }} as hugeint) * 1000000000
                    {%- if is_short %}
                    + ({{ top }} % {{ bottom }} * 2000000000 + {{ bottom }}) // (2 * cast({{ bottom }} as int64))
                    {%- else %}
                    + {{ rest }} // {{ bottom }} * 10000
                    + ({{ rest }} % {{ bottom }} * 20000 + {{ bottom }}) // (2 * {{ bottom }})
                    {%- endif %}
            {%- if is_short %}
            else (2000000000 * {{ wide_top }} + {{ bottom }}) // {{ 2 * denominator | int }}
            {%- else %}
            when {{ wide_bottom }} < 1000000000000000000
                then (2000000000 * {{ wide_top }} + {{ wide_bottom }}) // nullif(2 * {{ wide_bottom }}, 0)
            else
                2000 * {{ wide_top }} // (2 * {{ wide_bottom }}) * 1000000
                + (2000 * {{ wide_top }} % (2 * {{ wide_bottom }}) * 1000000 + {{ wide_bottom }}) // (2 * {{ wide_bottom }})
            {%- endif %}
        end
    {%- endset -%}
    {{ nine_decimals(units) }}
{%- endmacro %}
