{#
    The columns together name one row, absent values counting as a value. Checked on the days of the run's window, or
    the months that it touches, where the model has any.
#}
{% test unique_key(model, columns) %}
    select
        {{ columns | join(', ') }},
        count(*) as row_count
    from {{ model }}
    {%- if 'usage_date' in columns or 'hour_at' in columns %}
    where {{ in_window('usage_date') }}
    {%- elif 'month_date' in columns %}
    where {{ in_months('month_date') }}
    {%- endif %}
    group by {{ columns | join(', ') }}
    having count(*) > 1
{% endtest %}
