select
    month_lines.team_id,
    month_lines.currency,
    month_lines.corrected_period_date,
    month_lines.cause,
    coalesce(components.component_name, month_lines.component) as component_name,
    month_lines.project_id,
    any_value(month_lines.project_name) as project_name,
    sum(month_lines.amount) as amount,
    sum(month_lines.invoiced_amount) as invoiced_amount
from month_lines
left join marts.core.dim_components as components on month_lines.component = components.component
where month_lines.allocation_kind = 'true_up'
group by
    month_lines.team_id, month_lines.currency, month_lines.corrected_period_date, month_lines.cause, components.component_name,
    month_lines.component, month_lines.project_id
order by
    month_lines.team_id, month_lines.currency desc, month_lines.corrected_period_date, abs(sum(month_lines.amount)) desc, month_lines.component,
    month_lines.project_id
