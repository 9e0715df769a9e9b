{# Matchers on labels and tags read `key=value`; without a key they would never match anything. #}
{% test key_value_matchers(model, key, columns) %}
    with seed_rows as (
        {{ named_seed_rows(model, key) }}
    )
    {% for column in columns %}
    select
        seed_file,
        seed_row,
        {{ dbt.concat(["'" ~ column ~ " = '", column, "' is no key=value pair'"]) }} as problem,
        'write key=value; the value may hold % as a wildcard, the key may not' as remedy
    from seed_rows
    where {{ column }} is not null and {{ column }} not like '_%=%'
    {% if not loop.last %}union all{% endif %}
    {% endfor %}
{% endtest %}
