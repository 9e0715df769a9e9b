-- grain: one row per distinct way of naming a payer in the day's records, and UTC day
with jobs as (
    select * from {{ ref('stg_scheduler__jobs') }}
),

reservations as (
    select * from {{ ref('stg_scheduler__reservations') }}
),

storage_usage as (
    select * from {{ ref('stg_storage__usage') }}
),

seats as (
    select * from {{ ref('stg_license__seats') }}
),

charges as (
    select * from {{ ref('stg_billing__charges') }}
),

named as (
    select
        usage_date,
        cluster_id,
        account,
        user_name,
        namespace,
        null as path,
        labels,
        null as tags
    from jobs
    union all
    select
        usage_date,
        cluster_id,
        account,
        null as user_name,
        null as namespace,
        null as path,
        null as labels,
        null as tags
    from reservations
    {{ cross_join_items('reservations.accounts', 'account') }}
    union all
    select
        usage_date,
        cluster_id,
        null as account,
        user_name,
        null as namespace,
        null as path,
        null as labels,
        null as tags
    from reservations
    {{ cross_join_items('reservations.users', 'user_name') }}
    union all
    select
        usage_date,
        null as cluster_id,
        account,
        user_name,
        null as namespace,
        path,
        null as labels,
        null as tags
    from storage_usage
    union all
    select
        usage_date,
        null as cluster_id,
        account,
        user_name,
        null as namespace,
        null as path,
        null as labels,
        null as tags
    from seats
    union all
    select
        usage_date,
        null as cluster_id,
        null as account,
        null as user_name,
        null as namespace,
        null as path,
        null as labels,
        tags
    from charges
    where tags is not null
),

subjects as (
    select distinct
        usage_date,
        cluster_id,
        account,
        user_name,
        namespace,
        path,
        labels,
        tags
    from named
),

final as (
    select
        {{ payer_subject_key('cluster_id', 'account', 'user_name', 'namespace', 'path', 'labels', 'tags') }} as subject_key,
        subjects.*
    from subjects
)

select * from final
