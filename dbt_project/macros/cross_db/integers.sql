{# Whole-number division, rounded down; for non-negative operands. #}
{% macro floor_divide(numerator, denominator) -%}
    {{ return(adapter.dispatch("floor_divide", "apportion")(numerator, denominator)) }}
{%- endmacro %}

{% macro default__floor_divide(numerator, denominator) -%} div(({{ numerator }}), ({{ denominator }})) {%- endmacro %}
{% macro duckdb__floor_divide(numerator, denominator) -%}
    (({{ numerator }}) // ({{ denominator }}))
{%- endmacro %}

{# The type of weights and of sums of weights: integers wide enough for 8,000 GPUs' milliseconds times weights. #}
{% macro as_weight(expression) -%}
    {{ return(adapter.dispatch("as_weight", "apportion")(expression)) }}
{%- endmacro %}

{% macro default__as_weight(expression) -%} cast({{ expression }} as bignumeric) {%- endmacro %}
{% macro duckdb__as_weight(expression) -%} cast({{ expression }} as hugeint) {%- endmacro %}

{# A gauge as a whole number: thousandths of a percent, milliwatts. Rounds half away from zero. #}
{% macro whole(expression) -%} cast(round({{ expression }}) as int64) {%- endmacro %}
