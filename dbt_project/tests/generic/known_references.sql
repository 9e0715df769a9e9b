{#
    What a seed's row names exists. `references` lists, per column, the seed and column that hold the known names, and
    `also` the words that are allowed besides them. An empty cell refers to nothing and is fine.
#}
{% test known_references(model, key, references) %}
    with seed_rows as (
        {{ named_seed_rows(model, key) }}
    )
    {% for reference in references %}
    select
        seed_rows.seed_file,
        seed_rows.seed_row,
        {{ dbt.concat([
            "'" ~ reference.column ~ " = '", "seed_rows." ~ reference.column, "' is not in " ~ seed_file(reference.seed) ~ "'"
        ]) }} as problem,
        'correct the name, or add it to {{ seed_file(reference.seed) }} first' as remedy
    from seed_rows
    left join (select distinct {{ reference.field }} from {{ ref(reference.seed) }}) as known
        on seed_rows.{{ reference.column }} = known.{{ reference.field }}
    where
        seed_rows.{{ reference.column }} is not null
        and known.{{ reference.field }} is null
        {%- if reference.also %}
        and seed_rows.{{ reference.column }} not in ('{{ reference.also | join("', '") }}')
        {%- endif %}
    {% if not loop.last %}union all{% endif %}
    {% endfor %}
{% endtest %}
