{#
    On each day on which a pool has fixed shares of overhead, they sum to one; and it has some, its own or those of `*`, for
    as long as a row of `policies` says that its overhead follows them. Shares change only where a row begins or ends, so
    only those days are looked at.
#}
{% test shares_add_up(model, key, policies, policy_key) %}
    with seed_rows as (
        {{ named_seed_rows(model, key) }}
    ),

    policy_rows as (
        {{ named_seed_rows(ref(policies), policy_key) }}
    ),

    changes as (
        select
            pool_id,
            first_day as change_day
        from seed_rows
        union distinct
        select
            pool_id,
            end_day as change_day
        from seed_rows
    ),

    sums as (
        select
            seed_rows.seed_file,
            min(seed_rows.seed_row) as seed_row,
            changes.pool_id,
            changes.change_day,
            sum(seed_rows.share) as share_sum
        from changes
        inner join seed_rows
            on
                changes.pool_id = seed_rows.pool_id
                and changes.change_day >= seed_rows.first_day
                and changes.change_day < seed_rows.end_day
        group by seed_rows.seed_file, changes.pool_id, changes.change_day
    ),

    followed as (
        select
            seed_file,
            seed_row,
            pool_id,
            first_day,
            end_day
        from policy_rows
        where overhead_base = 'fixed'
    ),

    days_to_cover as (
        select
            seed_file,
            seed_row,
            pool_id,
            first_day as change_day
        from followed
        union distinct
        select
            followed.seed_file,
            followed.seed_row,
            followed.pool_id,
            changes.change_day
        from followed
        inner join changes
            on
                changes.pool_id in (followed.pool_id, '*')
                and changes.change_day >= followed.first_day
                and changes.change_day < followed.end_day
    ),

    uncovered as (
        select
            days_to_cover.seed_file,
            days_to_cover.seed_row,
            days_to_cover.pool_id,
            days_to_cover.change_day
        from days_to_cover
        left join seed_rows
            on
                seed_rows.pool_id in (days_to_cover.pool_id, '*')
                and days_to_cover.change_day >= seed_rows.first_day
                and days_to_cover.change_day < seed_rows.end_day
        where seed_rows.seed_row is null
    )

    select
        seed_file,
        seed_row,
        {{ dbt.concat([
            "'the shares of pool '", "pool_id", "' sum to '", as_text("share_sum"), "' on '", as_text("change_day")
        ]) }} as problem,
        'change the shares of the pool so that those of each day sum to 1' as remedy
    from sums
    where share_sum <> 1
    union all
    select
        seed_file,
        seed_row,
        {{ dbt.concat([
            "'overhead_base = fixed, but pool '", "pool_id", "' has no shares on '", as_text("change_day")
        ]) }} as problem,
        'add rows for the pool or for * that sum to 1 to {{ seed_file(model.identifier) }}, or choose another overhead_base' as remedy
    from uncovered
{% endtest %}
