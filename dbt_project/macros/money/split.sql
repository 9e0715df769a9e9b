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
        {{ running_and_total(weight, by, order_by) }}
    from {{ relation }} as parts
    {%- endset -%}
    {%- set pieces = [] -%}
    {%- for amount in amounts -%}
        {%- do pieces.append(dict(
            part=amount ~ "_part", amount=amount, weight=weight, running="running_weight", total="total_weight"
        )) -%}
    {%- endfor -%}
    {{ return(parts_of_each(weighted, pieces, scale)) }}
{%- endmacro %}

{# The running and, if it has a name, the total sum of a weight of `parts`; a negative weight counts as 0. #}
{% macro running_and_total(weight, by, order_by, running="running_weight", total="total_weight") -%}
    sum(greatest(parts.{{ weight }}, 0)) over (
        partition by {{ qualified("parts", by) }}
        order by {{ qualified("parts", order_by, " nulls first") }}
        rows between unbounded preceding and current row
    ) as {{ running }}{% if total %},
    sum(greatest(parts.{{ weight }}, 0)) over (partition by {{ qualified("parts", by) }}) as {{ total }}{% endif %}
{%- endmacro %}

{# What a weight gets of an amount: the difference of two neighbouring rounded running shares. #}
{% macro part_of(amount, weight, running, total, scale=9) -%}
    {{ share(amount, running, total, scale) }}
    - {{ share(amount, "(" ~ running ~ " - greatest(" ~ weight ~ ", 0))", total, scale) }}
{%- endmacro %}

{#
    The relation `weighted` (a query) plus a column for each piece: the name of the `part` and the columns that hold its
    `amount`, its `weight`, and the `running` and `total` sum of the weights.
#}
{% macro parts_of_each(weighted, pieces, scale=9) -%}
    {{ return(adapter.dispatch("parts_of_each", "apportion")(weighted, pieces, scale)) }}
{%- endmacro %}

{% macro default__parts_of_each(weighted, pieces, scale) -%}
    select
        weighted.*,
        {%- for piece in pieces %}
        {{ part_of(
            "weighted." ~ piece.amount, "weighted." ~ piece.weight, "weighted." ~ piece.running, "weighted." ~ piece.total, scale
        ) }} as {{ piece.part }}{{ "," if not loop.last }}
        {%- endfor %}
    from ({{ weighted }}) as weighted
{%- endmacro %}

{#
    Division of 128-bit integers costs ten times as much as all else that a part needs. Of an amount below 1e15 units a share
    has at most fifteen digits: floating point is then at most one beside it, and multiplying back shows by how much. Each
    step is a query of its own, because DuckDB would work out an expression again wherever it is written.
#}
{% macro duckdb__parts_of_each(weighted, pieces, scale) -%}
    {%- set ends = ["running", "before"] -%}
    select
        * exclude (
            {%- for piece in pieces %}
            {%- set p = piece.part %}
            {{ p }}_units, {{ p }}_before_weight
            {%- for end in ends %}, {{ p }}_{{ end }}, {{ p }}_{{ end }}_rest{% endfor %}{{ "," if not loop.last }}
            {%- endfor %}
        ),
        {%- for piece in pieces %}
        {%- set p = piece.part %}
        case
            when {{ p }}_units is null
                then {{ divided_part(piece.amount, piece.running, p ~ "_before_weight", piece.total, scale) }}
            {%- set part %}
            {%- for end in ends %}
                {{ "- (" if loop.last }}{{ p }}_{{ end }}
                + cast({{ p }}_{{ end }}_rest >= {{ piece.total }} as integer)
                - cast({{ p }}_{{ end }}_rest < -{{ piece.total }} as integer){{ ")" if loop.last }}
            {%- endfor %}
            {%- endset %}
            {%- if scale == 9 %}
            else cast(cast(sign({{ piece.amount }}) * ({{ part }}) as decimal(38, 0)) * 0.000000001 as decimal(38, 9))
            {%- else %}
            else cast({{ part }} as hugeint)
            {%- endif %}
        end as {{ p }}{{ "," if not loop.last }}
        {%- endfor %}
    from (
        select
            *
            {%- for piece in pieces %}
            {%- set p = piece.part %},
            2 * ({{ p }}_units * {{ piece.running }} - {{ p }}_running * {{ piece.total }}) as {{ p }}_running_rest,
            2 * ({{ p }}_units * {{ p }}_before_weight - {{ p }}_before * {{ piece.total }}) as {{ p }}_before_rest
            {%- endfor %}
        from (
            select
                *
                {%- for piece in pieces %}
                {%- for end, weight in {"running": piece.running, "before": piece.part ~ "_before_weight"}.items() %},
                cast(
                    round(
                        cast({{ piece.part }}_units as double) * cast({{ weight }} as double)
                        / cast({{ piece.total }} as double)
                    ) as hugeint
                ) as {{ piece.part }}_{{ end }}
                {%- endfor %}
                {%- endfor %}
            from (
                select
                    *
                    {%- for piece in pieces %},
                    {{ piece.running }} - greatest({{ piece.weight }}, 0) as {{ piece.part }}_before_weight,
                    case
                        when {{ piece.total }} <= 0 or {{ piece.total }} >= 1000000000000000000 then null
                        {%- if scale == 9 %}
                        when abs({{ piece.amount }}) < 1000000
                            then cast(round(cast(abs({{ piece.amount }}) as double) * 1e9) as hugeint)
                        {%- else %}
                        when {{ piece.amount }} >= 0 and {{ piece.amount }} < 1000000000000000 then cast({{ piece.amount }} as hugeint)
                        {%- endif %}
                    end as {{ piece.part }}_units
                    {%- endfor %}
                from ({{ weighted }})
            )
        )
    )
{%- endmacro %}

{# A part that cannot be guessed: the difference of two divided shares. #}
{% macro divided_part(amount, running, before, total, scale) -%}
    {%- set after_less_before = "(" ~ divided_share("(" ~ amount ~ ")", running, total, scale) ~ ") - ("
        ~ divided_share("(" ~ amount ~ ")", before, total, scale) ~ ")" -%}
    {%- if scale == 9 -%}
    {{ nine_decimals("cast(sign(" ~ amount ~ ") as hugeint) * (" ~ after_less_before ~ ")") }}
    {%- else -%}
    {{ after_less_before }}
    {%- endif -%}
{%- endmacro %}
