-- The arithmetic of docs/allocation.md, written down a second time: a receipt must not trust what it checks.

-- Payers stand in the order team, project, user, job, and absent values come first.
set default_null_order = 'nulls_first';

create or replace temp macro nano(amount) as cast(cast(amount as decimal(38, 9)) * 1000000000 as hugeint);

create or replace temp macro money(nanos) as cast(cast(nanos as decimal(38, 0)) * 0.000000001 as decimal(38, 9));

-- amount × running ÷ total with the amount doubled, so that half a unit can be added before the division. For large totals
-- six digits at a time, as one divides by hand: it stays below 128 bits.
create or replace temp macro first_digits(doubled, running) as doubled // 1000000000000 * running;

create or replace temp macro next_digits(doubled, running, total) as
    first_digits(doubled, running) % (2 * total) * 1000000 + doubled // 1000000 % 1000000 * running;

create or replace temp macro divided(doubled, running, total) as
    case
        when total < 1000000000000000000 then (doubled * running + total) // (2 * total)
        else
            first_digits(doubled, running) // (2 * total) * 1000000000000
            + next_digits(doubled, running, total) // (2 * total) * 1000000
            + (next_digits(doubled, running, total) % (2 * total) * 1000000 + doubled % 1000000 * running + total)
            // (2 * total)
    end;

-- amount × running ÷ total, rounded half away from zero to nine decimals; absent for a total of 0.
create or replace temp macro share(amount, running, total) as
    money(cast(sign(amount) as hugeint) * divided(2 * nano(abs(amount)), running, nullif(total, 0)));

-- The same in whole units, for amounts that are not negative.
create or replace temp macro whole_share(amount, running, total) as
    (2 * amount * running + total) // (2 * nullif(total, 0));

-- The split. `pots` are amounts to be divided (pot, whole), `claims` what is asked of them (pot, place, payer, weight).
-- Claims stand in the order of place and payer, and each gets the difference of neighbouring running shares.
create or replace temp macro split(pots, claims) as table
with running as materialized (
    select
        claims.* replace (greatest(cast(weight as hugeint), 0) as weight),
        sum(greatest(cast(weight as hugeint), 0)) over (
            partition by pot order by place, payer rows unbounded preceding
        ) as running
    from query_table(claims) as claims
),

totals as (
    select pot, nullif(sum(weight), 0) as total from running group by pot
),

-- Worked out once for each pot: it is the dearest part of the arithmetic.
doubled as (
    select pots.*, total, 2 * nano(abs(whole)) as doubled, cast(sign(whole) as hugeint) as sign_of_whole
    from query_table(pots) as pots
    inner join totals using (pot)
)

select
    * exclude (doubled, sign_of_whole),
    money(sign_of_whole * (divided(doubled, running, total) - divided(doubled, running - weight, total))) as amount
from running
inner join doubled using (pot);

create or replace temp macro is_valid(valid_from, valid_to, day) as
    coalesce(valid_from, date '0001-01-01') <= day and day < coalesce(valid_to, date '9999-12-31');

create or replace temp macro policy_name(seed, named, valid_from) as
    seed || '/' || named || '@' || coalesce(cast(valid_from as varchar), '');

create or replace temp macro gpu_units(gpus) as cast(round(gpus * 25200) as hugeint);
