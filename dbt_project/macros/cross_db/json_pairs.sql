{#
    Joins each row with the pairs of a flat JSON object held as text, as columns `pair_key` and `pair_value`. Keys are
    whatever people type into job comments and tags, quotes and asterisks included, so they never become a JSON path.
#}
{% macro cross_join_json_pairs(json_text) -%}
    {{ return(adapter.dispatch("cross_join_json_pairs", "apportion")(json_text)) }}
{%- endmacro %}

{% macro default__cross_join_json_pairs(json_text) -%}
    cross join unnest(
        array(
            select as struct pair_key, json_value(parse_json({{ json_text }})[pair_key]) as pair_value
            from unnest(json_keys(parse_json({{ json_text }}), 1)) as pair_key
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
