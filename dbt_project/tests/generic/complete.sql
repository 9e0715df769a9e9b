{#
    None of the columns is ever absent: one query for the whole model, because each test costs more to start than to
    run. `missing` names the columns at fault. Checked on the days of the run's window,
    or the months that it touches, where the model has any.
#}
{% test complete(model, columns) %}
    {%- set names = [] -%}
    {%- for column in columns -%}
        {%- do names.append("case when " ~ column ~ " is null then '" ~ column ~ " ' else '' end") -%}
    {%- endfor %}
    select
        {{ dbt.concat(names) }} as missing,
        incomplete.*
    from {{ model }} as incomplete
    where
        {%- if 'usage_date' in columns %}
        {{ in_window('usage_date') }} and
        {%- elif 'month_date' in columns %}
        {{ in_months('month_date') }} and
        {%- endif %}
        ({%- for column in columns %}{{ column }} is null{{ ' or ' if not loop.last }}{%- endfor %})
{% endtest %}
