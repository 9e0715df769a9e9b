{#
    Two CTEs of a `with recursive`: `hierarchy`, a dated seed's rows as member and parent, and `ancestors`, everything
    above a member with the days [first_day, end_day) on which the whole chain up to there is valid. Carrying the days
    along looks at every day without listing any.

    20 levels are as many as the hierarchy of reports follows. A chain stops where it comes back to its member.
#}
{% macro hierarchy_and_ancestors(model, member, parent) -%}
    hierarchy as (
        select
            {{ member }} as member,
            {{ parent }} as parent,
            coalesce(valid_from, date '1970-01-01') as first_day,
            coalesce(valid_to, date '9999-12-31') as end_day
        from {{ model }}
    ),

    ancestors as (
        select
            member,
            parent as ancestor,
            1 as steps,
            first_day,
            end_day
        from hierarchy
        where parent is not null
        union all
        select
            ancestors.member,
            hierarchy.parent as ancestor,
            ancestors.steps + 1 as steps,
            greatest(ancestors.first_day, hierarchy.first_day) as first_day,
            least(ancestors.end_day, hierarchy.end_day) as end_day
        from ancestors
        inner join hierarchy
            on
                ancestors.ancestor = hierarchy.member
                and ancestors.first_day < hierarchy.end_day
                and hierarchy.first_day < ancestors.end_day
        where hierarchy.parent is not null and ancestors.steps < 20 and ancestors.ancestor <> ancestors.member
    )
{%- endmacro %}
