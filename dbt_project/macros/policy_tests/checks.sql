{#
    Checks of single rows, for `sound_rows`. Each is a mapping: `wrong` (SQL that is true for a row at fault), `problem`
    and `remedy` in words, and `shows`, SQL whose value the problem begins with (`gpus = -1 is less than 0`), or nothing.
#}
{% macro checks_of_cells(required, allowed, reserved, at_least, at_most, more_than) -%}
    {%- set checks = [] -%}
    {%- for column in required -%}
        {%- do checks.append({"shows": column, "wrong": column ~ " is null", "problem": "is required", "remedy": "fill in the cell"}) -%}
    {%- endfor -%}
    {%- for column, words in allowed.items() -%}
        {%- do checks.append({
            "shows": column,
            "wrong": column ~ " not in ('" ~ words | join("', '") ~ "')",
            "problem": "is none of the known words",
            "remedy": "use one of: " ~ words | join(", "),
        }) -%}
    {%- endfor -%}
    {%- for column, words in reserved.items() -%}
        {%- do checks.append({
            "shows": column,
            "wrong": column ~ " in ('" ~ words | join("', '") ~ "')",
            "problem": "has a meaning of its own",
            "remedy": "choose another name than: " ~ words | join(", "),
        }) -%}
    {%- endfor -%}
    {%- for column, number in at_least.items() -%}
        {%- do checks.append({
            "shows": column,
            "wrong": column ~ " < " ~ number,
            "problem": "is less than " ~ number,
            "remedy": "make it " ~ number ~ " or more",
        }) -%}
    {%- endfor -%}
    {%- for column, number in at_most.items() -%}
        {%- do checks.append({
            "shows": column,
            "wrong": column ~ " > " ~ number,
            "problem": "is more than " ~ number,
            "remedy": "make it " ~ number ~ " or less",
        }) -%}
    {%- endfor -%}
    {%- for column, number in more_than.items() -%}
        {%- do checks.append({
            "shows": column,
            "wrong": column ~ " <= " ~ number,
            "problem": "is not more than " ~ number,
            "remedy": "make it more than " ~ number,
        }) -%}
    {%- endfor -%}
    {{ return(checks) }}
{%- endmacro %}

{# Matchers on labels and tags read `key=value`; without a key they would never match anything. #}
{% macro checks_of_pairs(pairs) -%}
    {%- set checks = [] -%}
    {%- for column in pairs -%}
        {%- do checks.append({
            "shows": column,
            "wrong": column ~ " not like '_%=%'",
            "problem": "is no key=value pair",
            "remedy": "write key=value; the value may hold % as a wildcard, the key may not",
        }) -%}
    {%- endfor -%}
    {{ return(checks) }}
{%- endmacro %}

{#
    What a row names exists. Each reference tells the column, the seed and field that hold the known names, and in
    `also` the words that are allowed besides them. An empty cell refers to nothing and is fine.
#}
{% macro checks_of_references(references) -%}
    {%- set checks = [] -%}
    {%- for reference in references -%}
        {%- set also = " and " ~ reference.column ~ " not in ('" ~ reference.also | join("', '") ~ "')" if reference.also else "" -%}
        {%- do checks.append({
            "shows": reference.column,
            "wrong": reference.column ~ " is not null and " ~ reference.column ~ " not in (" ~ names_of(reference) ~ ")" ~ also,
            "problem": "is not in " ~ seed_file(reference.seed),
            "remedy": "correct the name, or add it to " ~ seed_file(reference.seed) ~ " first",
        }) -%}
    {%- endfor -%}
    {{ return(checks) }}
{%- endmacro %}

{% macro names_of(reference) -%}
    select {{ reference.field }} from {{ ref(reference.seed) }} where {{ reference.field }} is not null
{%- endmacro %}

{# The rows of a relation that a check finds at fault, in the columns that every policy test returns. #}
{% macro findings(relation, check) -%}
    {%- set problem = "'" ~ dbt.escape_single_quotes(check.problem) ~ "'" -%}
    {%- if check.shows -%}
        {%- set value = "coalesce(" ~ as_text(check.shows) ~ ", '(empty)')" -%}
        {%- set problem = dbt.concat(["'" ~ dbt.escape_single_quotes(check.shows) ~ " = '", value, "' '", problem]) -%}
    {%- endif -%}
    select
        seed_file,
        seed_row,
        {{ problem }} as problem,
        '{{ dbt.escape_single_quotes(check.remedy) }}' as remedy
    from {{ relation }}
    where {{ check.wrong }}
{%- endmacro %}
