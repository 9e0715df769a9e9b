{# Following the parent from row to row ends at the top, on every day. #}
{% test without_cycle(model, member, parent) %}
    with recursive {{ hierarchy_and_ancestors(model, member, parent) }},

    seed_rows as (
        {{ named_seed_rows(model, [member]) }}
    ),

    endless as (
        select
            member,
            min(first_day) as first_day
        from ancestors
        where ancestor = member or steps >= 20
        group by member
    )

    select
        seed_rows.seed_file,
        seed_rows.seed_row,
        {{ dbt.concat([
            "endless.member", "' is above itself, or 20 levels deep, on '", as_text("endless.first_day"),
            "' by way of '", "seed_rows." ~ parent
        ]) }} as problem,
        'change {{ parent }} so that the chain ends at a row without one' as remedy
    from endless
    inner join seed_rows
        on
            endless.member = seed_rows.{{ member }}
            and endless.first_day >= seed_rows.first_day
            and endless.first_day < seed_rows.end_day
{% endtest %}
