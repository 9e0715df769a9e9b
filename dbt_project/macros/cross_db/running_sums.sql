{#
    The rows of `relation` with the running and the total sum of weights among the rows of a group (`by`), in the order of
    `order_by` (unique in a group, absent values first); what makes a group is never absent. `sums` names for each its `weight` and
    the columns `running` and, where it is asked for, `total` (`sums_of_weights` names them as usual). A negative weight counts
    as 0. For splits of many rows; of few rows `running_and_total` is as good.
#}
{% macro running_sums(relation, sums, by, order_by) -%}
    {{ return(adapter.dispatch("running_sums", "apportion")(relation, sums, by, order_by)) }}
{%- endmacro %}

{% macro default__running_sums(relation, sums, by, order_by) -%}
    select
        {%- for one in sums %}
        {{ running_and_total(one.weight, by, order_by, one.running, one.total) }},
        {%- endfor %}
        parts.*
    from {{ relation }} as parts
{%- endmacro %}

{#
    DuckDB finds a running sum of a group in a tree of sums, row by row, which takes three times as long as to sort the rows, add
    them up as they come, and subtract what the groups before came to. An empty OVER goes through the rows in their order
    and with one thread, whatever the settings are. Were the order lost, no split would add up to its amount.
#}
{% macro duckdb__running_sums(relation, sums, by, order_by) -%}
    select
        {%- for one in sums %}
        rows_so_far.{{ one.running }} - group_totals.{{ one.running }}_before as {{ one.running }},
        {%- if one.total %}
        group_totals.{{ one.running }}_group as {{ one.total }},
        {%- endif %}
        {%- endfor %}
        rows_so_far.* exclude ({{ sums | map(attribute="running") | join(", ") }})
    from (
        select
            {%- for one in sums %}
            sum(greatest({{ one.weight }}, 0)) over (rows between unbounded preceding and current row) as {{ one.running }},
            {%- endfor %}
            in_order.*
        from (
            select * from {{ relation }}
            order by {{ by | join(", ") }}, {{ order_by | join(" nulls first, ") }} nulls first
        ) as in_order
    ) as rows_so_far
    inner join (
        select
            {%- for one in sums %}
            sum(greatest({{ one.weight }}, 0)) as {{ one.running }}_group,
            coalesce(
                sum(sum(greatest({{ one.weight }}, 0))) over (
                    order by {{ by | join(", ") }} rows between unbounded preceding and 1 preceding
                ),
                0
            ) as {{ one.running }}_before,
            {%- endfor %}
            {{ by | join(", ") }}
        from {{ relation }}
        group by {{ by | join(", ") }}
    ) as group_totals on {{ equal_on("rows_so_far", "group_totals", by) }}
{%- endmacro %}
