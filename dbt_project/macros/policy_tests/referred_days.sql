{#
    What `sound_rows` finds wrong with the days of a reference. Both macros read a CTE `seed_rows` and expect a reference as
    in `checks.sql`, to a dated seed.

    A row counts only on days on which what it names does: rows that follow each other without a gap cover them together,
    and a row without an end needs what it names to have none. Found is the first day that is not covered.
#}
{% macro uncovered_days(reference) -%}
    {%- set file = seed_file(reference.seed) -%}
    {%- set day = "coalesce(stretches.end_day, seed_rows.first_day)" -%}
    select
        seed_rows.seed_file,
        seed_rows.seed_row,
        {{ dbt.concat([
            "'" ~ reference.column ~ " = '", "seed_rows." ~ reference.column,
            "' is in " ~ file ~ ", but not valid on '", as_text(day)
        ]) }} as problem,
        'keep to the days on which it is valid there (empty = open), or add a row for the others to {{ file }}' as remedy
    from seed_rows
    left join ({{ stretches(named_seed_rows(ref(reference.seed), [reference.field]), [reference.field]) }}) as stretches
        on
            seed_rows.{{ reference.column }} = stretches.{{ reference.field }}
            and seed_rows.first_day >= stretches.first_day
            and seed_rows.first_day < stretches.end_day
    where seed_rows.{{ reference.column }} in ({{ names_of(reference) }}) and {{ day }} < seed_rows.end_day
{%- endmacro %}

{#
    A `fit` of a reference: rows for which `when` holds may only name what `is` holds for, on all of their days; `problem`
    and `remedy` as in `checks.sql`. The words in `also` are no rows of the other seed and never fit, besides `*`.
#}
{% macro unfit_days(reference, fit) -%}
    select
        seed_rows.seed_file,
        seed_rows.seed_row,
        {{ dbt.concat([
            "'" ~ reference.column ~ " = '", "seed_rows." ~ reference.column,
            "' " ~ dbt.escape_single_quotes(fit.problem) ~ " on '", as_text("min(greatest(seed_rows.first_day, unfit.first_day))")
        ]) }} as problem,
        '{{ dbt.escape_single_quotes(fit.remedy) }}' as remedy
    from (select * from seed_rows where {{ fit.when }}) as seed_rows
    inner join (
        select {{ reference.field }} as unfit_name, first_day, end_day
        from ({{ named_seed_rows(ref(reference.seed), [reference.field]) }}) as referred
        where not coalesce({{ fit.is }}, false)
        {%- for word in reference.also or [] if word != "*" %}
        union all
        select '{{ word }}' as unfit_name, date '1970-01-01' as first_day, date '9999-12-31' as end_day
        {%- endfor %}
    ) as unfit
        on
            seed_rows.{{ reference.column }} = unfit.unfit_name
            and seed_rows.first_day < unfit.end_day
            and unfit.first_day < seed_rows.end_day
    group by seed_rows.seed_file, seed_rows.seed_row, seed_rows.{{ reference.column }}
{%- endmacro %}

{# The days [first_day, end_day) of a query's rows, those without a gap between them as one, per value of the columns. #}
{% macro stretches(query, columns) -%}
    {%- set names = columns | join(", ") -%}
    select {{ names }}, min(first_day) as first_day, max(end_day) as end_day
    from (
        select
            periods.*,
            sum(case when first_day <= covered_until then 0 else 1 end) over (
                partition by {{ names }}
                order by first_day, end_day
                rows between unbounded preceding and current row
            ) as stretch
        from (
            select
                {{ names }},
                first_day,
                end_day,
                max(end_day) over (
                    partition by {{ names }}
                    order by first_day, end_day
                    rows between unbounded preceding and 1 preceding
                ) as covered_until
            from ({{ query }}) as dated
            where first_day < end_day
        ) as periods
    ) as numbered
    group by {{ names }}, stretch
{%- endmacro %}
