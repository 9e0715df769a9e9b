{# The columns together name one row of a dimension, and none of them is ever absent. #}
{% test primary_key(model, columns) %}
    select
        {{ columns | join(', ') }},
        count(*) as row_count
    from {{ model }}
    group by {{ columns | join(', ') }}
    having
        count(*) > 1
        {%- for column in columns %}
        or {{ column }} is null
        {%- endfor %}
{% endtest %}
