{# The column has no other values than these, on the days of the run's window. #}
{% test known_values(model, column_name, values) %}
    select
        {{ column_name }},
        count(*) as row_count
    from {{ model }}
    where
        {{ in_window('usage_date') }}
        and {{ column_name }} not in ({%- for value in values %}'{{ value }}'{{ ', ' if not loop.last }}{%- endfor %})
    group by {{ column_name }}
{% endtest %}
