{#
    The cells of a seed make sense one by one: `required` ones are filled, `allowed` ones hold one of the listed words
    (or nothing), `at_least` ones are no smaller than a number, `more_than` ones are larger.
#}
{% test sound_values(model, key, required=[], allowed={}, at_least={}, more_than={}) %}
    with seed_rows as (
        {{ named_seed_rows(model, key) }}
    )

    {%- set checks = [] -%}
    {%- for column in required -%}
        {%- do checks.append((column, column ~ " is null", "is required", "fill in the cell")) -%}
    {%- endfor -%}
    {%- for column, words in allowed.items() -%}
        {%- set listed = words | join(", ") -%}
        {%- do checks.append((
            column, column ~ " not in ('" ~ words | join("', '") ~ "')", "is none of the known words", "use one of: " ~ listed
        )) -%}
    {%- endfor -%}
    {%- for column, number in at_least.items() -%}
        {%- do checks.append((column, column ~ " < " ~ number, "is less than " ~ number, "make it " ~ number ~ " or more")) -%}
    {%- endfor -%}
    {%- for column, number in more_than.items() -%}
        {%- do checks.append((column, column ~ " <= " ~ number, "is not more than " ~ number, "make it more than " ~ number)) -%}
    {%- endfor %}
    {% for column, is_wrong, problem, remedy in checks %}
    select
        seed_file,
        seed_row,
        {{ dbt.concat(["'" ~ column ~ " = '", "coalesce(" ~ as_text(column) ~ ", '(empty)')", "' " ~ problem ~ "'"]) }} as problem,
        '{{ remedy }}' as remedy
    from seed_rows
    where {{ is_wrong }}
    {% if not loop.last %}union all{% endif %}
    {% endfor %}
{% endtest %}
