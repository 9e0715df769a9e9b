{# No two rows of a seed have the same key, whenever they are valid. #}
{% test unique_rows(model, key) %}
    with seed_rows as (
        {{ named_seed_rows(model, key) }}
    )

    select
        seed_file,
        min(seed_row) as seed_row,
        {{ dbt.concat([as_text("count(*)"), "' rows have this " ~ key | join(", ") ~ "'"]) }} as problem,
        'give each row its own {{ key | join(", ") }}' as remedy
    from seed_rows
    group by seed_file, {{ key | join(', ') }}
    having count(*) > 1
{% endtest %}
