{#
    The `*` row that catches everything else is valid on every day from the first day that `needed_by` (a seed with
    valid_from) or any other row of this seed is, and has no end: otherwise somebody's cost falls through.
#}
{% test default_row(model, key, needed_by) %}
    with seed_rows as (
        {{ named_seed_rows(model, key) }}
    ),

    first_days as (
        select min(coalesce(valid_from, date '1970-01-01')) as first_day
        from (
            select valid_from from seed_rows
            union all
            select valid_from from {{ ref(needed_by) }}
        ) as dated
    ),

    default_rows as (
        select
            seed_file,
            seed_row,
            coalesce(valid_from, date '1970-01-01') as valid_from,
            valid_to,
            lead(valid_from) over (order by valid_from) as next_valid_from
        from seed_rows
        where {% for column in key %}{{ column }} = '*'{{ ' and ' if not loop.last }}{% endfor %}
    )

    select
        '{{ seed_file(model.identifier) }}' as seed_file,
        '{{ model.identifier }}/{{ (['*'] * (key | length)) | join("/") }}' as seed_row,
        {{ dbt.concat(["'no row with * for " ~ key | join(" and ") ~ " is valid on '", as_text("first_days.first_day")]) }} as problem,
        'add a row that applies where no other does, from that day on' as remedy
    from first_days
    left join (select min(valid_from) as valid_from from default_rows) as earliest on true
    where earliest.valid_from is null or earliest.valid_from > first_days.first_day
    union all
    select
        seed_file,
        seed_row,
        {{ dbt.concat(["'nothing follows this row on '", as_text("valid_to")]) }} as problem,
        'leave valid_to empty, or add the row that takes over on that day' as remedy
    from default_rows
    where valid_to is not null and (next_valid_from is null or next_valid_from > valid_to)
{% endtest %}
