{#
    The split: divide amounts over rows by integer weights, exactly. Nothing else in the project divides money.

    Rows of `relation` are grouped by `by` and ordered by `order_by` (absent values first). Each part is the
    difference of two neighbouring rounded running shares, so the parts of a group telescope to its amount
    whatever the weights are. `relation` must hold the group's amount on each of its rows, and `order_by` must
    be unique inside a group. The result is the relation plus a column `<amount>_part` for each amount (and the
    helpers `running_weight`, `total_weight`). A group whose weights add up to 0 gets NULL parts: the caller's
    fallback decides who pays. A negative weight counts as 0.

    `scale` is 9 for money and 0 for whole units (GPU units over nodes, microjoules over jobs).
#}
{% macro split(relation, amounts, weight, by, order_by, scale=9) -%}
    {%- set weighted -%}
    select
        parts.*,
        sum(greatest(parts.{{ weight }}, 0)) over (
            partition by {{ qualified("parts", by) }}
            order by {{ qualified("parts", order_by, " nulls first") }}
            rows between unbounded preceding and current row
        ) as running_weight,
        sum(greatest(parts.{{ weight }}, 0)) over (partition by {{ qualified("parts", by) }}) as total_weight
    from {{ relation }} as parts
    {%- endset -%}
    {{ return(adapter.dispatch("parts_of_each", "apportion")(weighted, amounts, weight, scale)) }}
{%- endmacro %}

{# What a weight gets of an amount: the difference of two neighbouring rounded running shares. #}
{% macro part_of(amount, weight, running, total, scale=9) -%}
    {{ share(amount, running, total, scale) }}
    - {{ share(amount, "(" ~ running ~ " - greatest(" ~ weight ~ ", 0))", total, scale) }}
{%- endmacro %}

{# The relation `weighted`, which has running and total weights, plus the part of each amount. #}
{% macro default__parts_of_each(weighted, amounts, weight, scale) -%}
    select
        weighted.*,
        {%- for amount in amounts %}
        {{ part_of("weighted." ~ amount, "weighted." ~ weight, "weighted.running_weight", "weighted.total_weight", scale) }}
            as {{ amount }}_part{{ "," if not loop.last }}
        {%- endfor %}
    from ({{ weighted }}) as weighted
{%- endmacro %}

{#
    Division of 128-bit integers costs ten times as much as all else that a part needs. Of an amount below 1e15 units a share
    has at most fifteen digits: floating point is then at most one beside it, and multiplying back shows by how much. Each
    step is a query of its own, because DuckDB would work out an expression again wherever it is written.
#}
{% macro duckdb__parts_of_each(weighted, amounts, weight, scale) -%}
    {%- set ends = ["running", "before"] -%}
    select
        * exclude (
            before_weight
            {%- for amount in amounts %}, {{ amount }}_units
            {%- for end in ends %}, {{ amount }}_{{ end }}, {{ amount }}_{{ end }}_rest{% endfor %}
            {%- endfor %}
        ),
        {%- for amount in amounts %}
        case
            when {{ amount }}_units is null
                then {{ part_of(amount, weight, "running_weight", "total_weight", scale) }}
            {%- set part %}
            {%- for end in ends %}
                {{ "- (" if loop.last }}{{ amount }}_{{ end }}
                + cast({{ amount }}_{{ end }}_rest >= total_weight as integer)
                - cast({{ amount }}_{{ end }}_rest < -total_weight as integer){{ ")" if loop.last }}
            {%- endfor %}
            {%- endset %}
            {%- if scale == 9 %}
            else cast(cast(sign({{ amount }}) * ({{ part }}) as decimal(38, 0)) * 0.000000001 as decimal(38, 9))
            {%- else %}
            else cast({{ part }} as hugeint)
            {%- endif %}
        end as {{ amount }}_part{{ "," if not loop.last }}
        {%- endfor %}
    from (
        select
            *
            {%- for amount in amounts %}
            {%- for end in ends %},
            2 * ({{ amount }}_units * {{ end }}_weight - {{ amount }}_{{ end }} * total_weight) as {{ amount }}_{{ end }}_rest
            {%- endfor %}
            {%- endfor %}
        from (
            select
                *
                {%- for amount in amounts %}
                {%- for end in ends %},
                cast(
                    round(cast({{ amount }}_units as double) * cast({{ end }}_weight as double) / cast(total_weight as double))
                    as hugeint
                ) as {{ amount }}_{{ end }}
                {%- endfor %}
                {%- endfor %}
            from (
                select
                    *,
                    running_weight - greatest({{ weight }}, 0) as before_weight
                    {%- for amount in amounts %},
                    case
                        when total_weight <= 0 or total_weight >= 1000000000000000000 then null
                        {%- if scale == 9 %}
                        when abs({{ amount }}) < 1000000 then cast(round(cast(abs({{ amount }}) as double) * 1e9) as hugeint)
                        {%- else %}
                        when {{ amount }} >= 0 and {{ amount }} < 1000000000000000 then cast({{ amount }} as hugeint)
                        {%- endif %}
                    end as {{ amount }}_units
                    {%- endfor %}
                from ({{ weighted }})
            )
        )
    )
{%- endmacro %}
