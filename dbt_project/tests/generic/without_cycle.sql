{# Following the parent from row to row ends at the top: checked on the newest row of each member, which reports use. #}
{% test without_cycle(model, member, parent) %}
    with recursive seed_rows as (
        {{ named_seed_rows(model, [member]) }}
    ),

    members as (
        select
            seed_file,
            seed_row,
            {{ member }} as member,
            {{ parent }} as parent
        from seed_rows
        qualify row_number() over (partition by {{ member }} order by coalesce(valid_from, date '1970-01-01') desc) = 1
    ),

    -- 20 levels are as many as the hierarchy of reports follows.
    ancestors as (
        select
            member,
            parent as ancestor,
            1 as steps
        from members
        where parent is not null
        union all
        select
            ancestors.member,
            members.parent as ancestor,
            ancestors.steps + 1 as steps
        from ancestors
        inner join members on ancestors.ancestor = members.member
        where members.parent is not null and ancestors.steps < 20 and ancestors.ancestor <> ancestors.member
    )

    select
        members.seed_file,
        members.seed_row,
        {{ dbt.concat(["members.member", "' is above itself, or 20 levels deep, by way of '", "members.parent"]) }} as problem,
        'change {{ parent }} so that the chain ends at a row without one' as remedy
    from members
    inner join ancestors on members.member = ancestors.member
    where ancestors.ancestor = ancestors.member or ancestors.steps >= 20
{% endtest %}
