{#
    The pairs of the flat JSON objects in a text column: one row per object and key, with the columns `pair_key` and
    `pair_value`. Keys are whatever people type into job comments and tags, quotes and asterisks included, so they
    never become a JSON path.
#}
{% macro json_pairs(objects, column) -%}
    {{ return(adapter.dispatch("json_pairs", "apportion")(objects, column)) }}
{%- endmacro %}

{# JSON_KEYS puts keys with other signs than letters into quotes, as a JSON string would be. #}
{% macro default__json_pairs(objects, column) -%}
    {%- set plain_key = "if(starts_with(json_key, '\"'), json_value(parse_json(json_key)), json_key)" %}
    select
        objects.{{ column }},
        {{ plain_key }} as pair_key,
        json_value(parse_json(objects.{{ column }})[{{ plain_key }}]) as pair_value
    from {{ objects }} as objects
    cross join unnest(json_keys(parse_json(objects.{{ column }}), 1)) as json_key
{%- endmacro %}

{% macro duckdb__json_pairs(objects, column) -%}
    select
        objects.{{ column }},
        pairs.key as pair_key,
        json_extract_string(pairs.value, '$') as pair_value
    from {{ objects }} as objects
    cross join json_each(objects.{{ column }}) as pairs
{%- endmacro %}
