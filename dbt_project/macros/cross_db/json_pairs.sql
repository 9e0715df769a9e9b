{#
    Joins each row with the pairs of a flat JSON object held as text, as columns `pair_key` and `pair_value`. Keys are
    whatever people type into job comments and tags, quotes and asterisks included, so they never become a JSON path.
#}
{% macro cross_join_json_pairs(json_text) -%}
    {{ return(adapter.dispatch("cross_join_json_pairs", "apportion")(json_text)) }}
{%- endmacro %}

{# JSON_KEYS puts keys with other signs than letters into quotes, as a JSON string would be. #}
{% macro default__cross_join_json_pairs(json_text) -%}
    cross join unnest(
        array(
            select as struct
                plain_key as pair_key,
                json_value(parse_json({{ json_text }})[plain_key]) as pair_value
            from (
                select if(starts_with(json_key, '"'), json_value(parse_json(json_key)), json_key) as plain_key
                from unnest(json_keys(parse_json({{ json_text }}), 1)) as json_key
            )
        )
    )
{%- endmacro %}

{% macro duckdb__cross_join_json_pairs(json_text) -%}
    cross join (
        select
            pairs.key as pair_key,
            json_extract_string(pairs.value, '$') as pair_value
        from json_each({{ json_text }}) as pairs
    ) as json_pairs
{%- endmacro %}
