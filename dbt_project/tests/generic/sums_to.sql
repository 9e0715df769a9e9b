{# The columns of each row of a seed add up to a fixed number: shares are integer parts of a whole. #}
{% test sums_to(model, key, columns, total) %}
    with seed_rows as (
        {{ named_seed_rows(model, key) }}
    )

    select
        seed_file,
        seed_row,
        {{ dbt.concat(["'" ~ columns | join(" + ") ~ " = '", as_text(columns | join(" + "))]) }} as problem,
        'change the weights so that they add up to {{ total }}' as remedy
    from seed_rows
    where {{ columns | join(" + ") }} <> {{ total }}
{% endtest %}
