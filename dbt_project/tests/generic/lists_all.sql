{# A seed holds a row for each of the names that the models rely on. #}
{% test lists_all(model, column, names) %}
    {% for name in names %}
    select
        '{{ seed_file(model.identifier) }}' as seed_file,
        '{{ model.identifier }}/{{ name }}' as seed_row,
        'there is no row for {{ name }}' as problem,
        'put the row back: the models name it' as remedy
    from (select count(*) as row_count from {{ model }} where {{ column }} = '{{ name }}') as found
    where found.row_count = 0
    {% if not loop.last %}union all{% endif %}
    {% endfor %}
{% endtest %}
