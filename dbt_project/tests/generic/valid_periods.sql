{#
    Each row of an effective-dated seed is valid for at least a day, and of the rows with one key at most one is valid
    on any day. Days are half-open, so a successor starts on the day that its predecessor names as valid_to.
#}
{% test valid_periods(model, key) %}
    with seed_rows as (
        {{ named_seed_rows(model, key) }}
    ),

    dated as (
        select
            seed_rows.*,
            coalesce(valid_from, date '1970-01-01') as first_day,
            coalesce(valid_to, date '9999-12-31') as last_day
        from seed_rows
    ),

    ordered as (
        select
            dated.*,
            max(last_day) over (
                partition by {{ key | join(', ') }}
                order by first_day, last_day
                rows between unbounded preceding and 1 preceding
            ) as taken_until
        from dated
    )

    select
        seed_file,
        seed_row,
        'valid_to is not after valid_from' as problem,
        'valid_to is the first day on which the row no longer counts: make it later than valid_from' as remedy
    from dated
    where last_day <= first_day
    union all
    select
        seed_file,
        seed_row,
        {{ dbt.concat(["'an earlier row with this " ~ key | join(", ") ~ " is valid until '", as_text("taken_until")]) }} as problem,
        'end the earlier row where this one begins: valid_to of the one = valid_from of the other' as remedy
    from ordered
    where first_day < taken_until
{% endtest %}
