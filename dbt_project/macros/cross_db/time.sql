{# Time arithmetic is done in whole milliseconds since 1970 (UTC): integers mean the same on every engine. #}
{% macro milliseconds(timestamp_column) -%}
    {{ return(adapter.dispatch("milliseconds", "apportion")(timestamp_column)) }}
{%- endmacro %}

{% macro default__milliseconds(timestamp_column) -%} unix_millis({{ timestamp_column }}) {%- endmacro %}
{# Of an instant with a zone, `epoch_ms` asks the calendar; microseconds are what is stored. #}
{% macro duckdb__milliseconds(timestamp_column) -%} (epoch_us({{ timestamp_column }}) // 1000) {%- endmacro %}

{# As it is stored, for what is asked of every sample: a division less. #}
{% macro microseconds(timestamp_column) -%}
    {{ return(adapter.dispatch("microseconds", "apportion")(timestamp_column)) }}
{%- endmacro %}

{% macro default__microseconds(timestamp_column) -%} unix_micros({{ timestamp_column }}) {%- endmacro %}
{% macro duckdb__microseconds(timestamp_column) -%} epoch_us({{ timestamp_column }}) {%- endmacro %}

{% macro timestamp_of(milliseconds_column) -%}
    {{ return(adapter.dispatch("timestamp_of", "apportion")(milliseconds_column)) }}
{%- endmacro %}

{% macro default__timestamp_of(milliseconds_column) -%} timestamp_millis({{ milliseconds_column }}) {%- endmacro %}
{% macro duckdb__timestamp_of(milliseconds_column) -%} make_timestamp(({{ milliseconds_column }}) * 1000) {%- endmacro %}

{# The UTC day of an instant in milliseconds, and the first millisecond of a UTC day. #}
{% macro date_of(milliseconds_column) -%}
    {{ return(adapter.dispatch("date_of", "apportion")(milliseconds_column)) }}
{%- endmacro %}

{% macro default__date_of(milliseconds_column) -%}
    date(timestamp_millis({{ milliseconds_column }}))
{%- endmacro %}
{% macro duckdb__date_of(milliseconds_column) -%}
    cast(make_timestamp(({{ milliseconds_column }}) * 1000) as date)
{%- endmacro %}

{% macro day_start_ms(date_column) -%}
    {{ return(adapter.dispatch("day_start_ms", "apportion")(date_column)) }}
{%- endmacro %}

{% macro default__day_start_ms(date_column) -%} unix_date({{ date_column }}) * 86400000 {%- endmacro %}
{% macro duckdb__day_start_ms(date_column) -%} epoch_ms({{ date_column }}) {%- endmacro %}

{# The first millisecond of the hour that holds an instant. #}
{% macro hour_start_ms(milliseconds_column) -%}
    {{ return(adapter.dispatch("hour_start_ms", "apportion")(milliseconds_column)) }}
{%- endmacro %}

{% macro default__hour_start_ms(milliseconds_column) -%}
    div({{ milliseconds_column }}, 3600000) * 3600000
{%- endmacro %}
{% macro duckdb__hour_start_ms(milliseconds_column) -%}
    ({{ milliseconds_column }}) // 3600000 * 3600000
{%- endmacro %}

{# Landed times carry a zone; inside the warehouse a timestamp is UTC and nothing else. #}
{% macro utc_timestamp(column) -%}
    {{ return(adapter.dispatch("utc_timestamp", "apportion")(column)) }}
{%- endmacro %}

{% macro default__utc_timestamp(column) -%} {{ column }} {%- endmacro %}
{# `timezone` asks the calendar for each instant, which takes twenty times as long. #}
{% macro duckdb__utc_timestamp(column) -%} make_timestamp(epoch_us({{ column }})) {%- endmacro %}
