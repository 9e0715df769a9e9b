-- grain: one row per closed invoice line
select * from {{ ref('stg_ledger__lines') }}
