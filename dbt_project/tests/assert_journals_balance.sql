{{ config(meta={"dagster": {"ref": {"name": "rpt_journal_entries"}}}) }}
-- Each posting balances to exactly 0, in its own currency and in the reporting currency.
select
    posting_id,
    currency,
    sum(debit) - sum(credit) as difference,
    sum(reporting_debit) - sum(reporting_credit) as reporting_difference
from {{ ref('rpt_journal_entries') }}
group by posting_id, currency
having sum(debit) <> sum(credit) or sum(reporting_debit) <> sum(reporting_credit)
