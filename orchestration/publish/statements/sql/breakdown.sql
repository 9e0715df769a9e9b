-- The same cents three times: by component, by project and by kind.
with sides as (
    select team_id, currency, component, project_id, project_name, allocation_kind, amount, invoiced_amount,
        reporting_amount, 0 as before_amount
    from month_lines
    union all
    select team_id, currency, component, project_id, project_name, allocation_kind, 0, 0, 0, invoiced_amount
    from lines_before
    where team_id in (select team_id from month_lines)
),

sums as (
    select
        team_id,
        currency,
        case
            when grouping(component) = 0 then 'component'
            when grouping(allocation_kind) = 0 then 'kind'
            else 'project'
        end as dimension,
        case
            when grouping(component) = 0 then component
            when grouping(allocation_kind) = 0 then allocation_kind
            else project_id
        end as part,
        max(project_name) as project_name,
        sum(amount) as amount,
        sum(invoiced_amount) as invoiced_amount,
        sum(reporting_amount) as reporting_amount,
        sum(before_amount) as before_amount
    from sides
    group by grouping sets (
        (team_id, currency, component), (team_id, currency, project_id), (team_id, currency, allocation_kind)
    )
)

select
    sums.team_id,
    sums.currency,
    sums.dimension,
    sums.part,
    case sums.dimension
        when 'component' then coalesce(components.component_name, sums.part)
        when 'project' then coalesce(sums.project_name, sums.part)
        else sums.part
    end as part_name,
    sums.amount,
    sums.invoiced_amount,
    sums.reporting_amount,
    if((select count(*) > 0 from lines_before), sums.before_amount, null) as before_amount,
    if((select count(*) > 0 from lines_before), sums.invoiced_amount - sums.before_amount, null) as change_amount,
    round(
        100 * cast(sums.invoiced_amount as double)
        / nullif(cast(sum(sums.invoiced_amount) over (partition by team_id, currency, dimension) as double), 0), 1
    ) as percent,
    round(
        100 * abs(cast(sums.invoiced_amount as double))
        / nullif(max(abs(cast(sums.invoiced_amount as double))) over (partition by team_id, currency, dimension), 0), 1
    ) as bar
from sums
left join marts.core.dim_components as components on sums.dimension = 'component' and sums.part = components.component
order by sums.team_id, sums.dimension, sums.currency desc, sums.invoiced_amount desc, sums.part nulls last
