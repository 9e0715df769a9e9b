{{ config(meta={"dagster": {"ref": {"name": "fct_invoice_lines"}}}) }}
-- The cents of a closed month are its exact total, rounded once: no line is a plug for the others.
select
    close_number,
    currency,
    sum(invoiced_amount) as invoiced_cost,
    sum(amount) as exact_cost
from {{ ref('fct_invoice_lines') }}
group by close_number, currency
having sum(invoiced_amount) <> round(sum(amount), 2)
