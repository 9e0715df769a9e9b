{#
    The rows of a seed make sense: one test for the whole seed, because each test costs more to start than to run. A
    failing row says which file, which row, what is wrong and the remedy.

    - `key` names a row. Of the rows of a dated seed with one key, at most one is valid on any day, and each is valid for
      at least a day; of an undated seed no two rows have the same key.
    - `required` cells are filled; `allowed` ones hold one of the listed words or nothing, `reserved` ones none of them;
      `at_least`, `at_most` and `more_than` bound numbers; `pairs` are matchers that read `key=value`.
    - `references` name what another seed holds, if both are dated on all days of the row: see `referred_days.sql`.
    - `rules` are what a single row must not be: see `checks.sql`.
#}
{% test sound_rows(
    model, key, required=[], allowed={}, reserved={}, at_least={}, at_most={}, more_than={}, pairs=[], references=[], rules=[]
) %}
    {%- set dated = is_dated(model.identifier) -%}
    {%- set checks =
        checks_of_cells(required, allowed, reserved, at_least, at_most, more_than)
        + checks_of_pairs(pairs)
        + checks_of_references(references)
        + rules
    %}
    with seed_rows as (
        {{ named_seed_rows(model, key) }}
    )

    {%- if dated %},

    -- Days are half-open, so a successor starts on the day that its predecessor names as valid_to.
    ordered as (
        select
            seed_rows.*,
            max(end_day) over (
                partition by {{ key | join(', ') }}
                order by first_day, end_day
                rows between unbounded preceding and 1 preceding
            ) as taken_until
        from seed_rows
    )

    {{ findings('ordered', {
        "wrong": "end_day <= first_day",
        "problem": "valid_to is not after valid_from",
        "remedy": "valid_to is the first day on which the row no longer counts: make it later than valid_from",
    }) }}
    union all
    select
        seed_file,
        seed_row,
        {{ dbt.concat(["'an earlier row with this " ~ key | join(", ") ~ " is valid until '", as_text("taken_until")]) }} as problem,
        'end the earlier row where this one begins: valid_to of the one = valid_from of the other' as remedy
    from ordered
    where first_day < taken_until
    {%- for reference in references if is_dated(reference.seed) %}
    union all
    {{ uncovered_days(reference) }}
    {%- for fit in reference.fits or [] %}
    union all
    {{ unfit_days(reference, fit) }}
    {%- endfor %}
    {%- endfor %}

    {%- else %}

    select
        seed_file,
        min(seed_row) as seed_row,
        {{ dbt.concat([as_text("count(*)"), "' rows have this " ~ key | join(", ") ~ "'"]) }} as problem,
        'give each row its own {{ key | join(", ") }}' as remedy
    from seed_rows
    group by seed_file, {{ key | join(', ') }}
    having count(*) > 1
    {%- endif %}

    {%- for check in checks %}
    union all
    {{ findings('seed_rows', check) }}
    {%- endfor %}
{% endtest %}
