"""Google's commitments for resources: which use each of them covers, as far as a bill tells, as SQL.

A fee is metered for the cores, the memory or the devices of a machine series in a region, and the use that it covers
carries a credit for the covered part of its own cost. The bill does not say which fee a credit comes from; Google lets
all commitments of an account, region, series and resource work together, and so does the name that is made here.

Commitments to spend have no quantity, and bills since 2025 give the used part back on the fee itself: both stay as
billed.
"""

from __future__ import annotations

from orchestration.connectors.sql import money

_SKU = "regexp_replace(lower(sku_name), '(^|[^a-z])v[0-9]+', '')"
"""Without the `v1` of `Commitment v1`, which looks like a series of machines."""
RESOURCE = f"regexp_extract({_SKU}, '(^|[^a-z])(ram|core|cpu|gpu|tpu|ssd)s?([^a-z]|$)', 2)"
"""What of a machine a line is about: `N2 Instance Core running in …`, `Commitment v1: Ram in Americas for 3 Year`."""
_SERIES = f"regexp_extract({_SKU}, '(^|[^a-z0-9])([a-z][0-9]+[a-z]?)([^a-z0-9]|$)', 2)"
# The first machines had no series in their names, and their commitments still have none.
COMMITMENT = (
    f"coalesce(account, '') || '/' || coalesce(region, '') || '/' || coalesce(nullif({_SERIES}, ''), 'n1')"
    f" || '/' || replace({RESOURCE}, 'core', 'cpu')"
)


def credited() -> str:
    """What the credits of a line take off for commitments, as a positive amount."""
    amount = money("json_extract_string(c, '$.amount')")
    is_commitment = (
        "coalesce(json_extract_string(c, '$.type'), json_extract_string(c, '$.name'))"
        " similar to '(COMMITTED_USAGE_DISCOUNT|Committed [Uu]s(e|age) [Dd]iscount.*)'"
    )
    return f"-list_sum(list_transform(list_filter(credit_list, lambda c: {is_commitment}), lambda c: {amount}))"


def is_shared_out() -> str:
    """Whether a fee can be given to what it covers: it is for a resource, and not given back on its own line."""
    types = "list_transform(credit_list, lambda c: json_extract_string(c, '$.type'))"
    return (
        f"own_category = 'Purchase' and not contains(lower(sku_name), 'dollar') and {RESOURCE} <> ''"
        f" and not list_contains({types}, 'FEE_UTILIZATION_OFFSET') and {quantity()} > 0"
    )


def quantity() -> str:
    """How much a line uses or reserves, in the unit in which it is priced."""
    return f"coalesce({money('pricing_amount')}, {money('usage_amount')})"


def covered() -> str:
    """The part of a line's quantity that its credits pay for. Only its proportion to other lines matters."""
    share = f"cast({quantity()} as double) * cast(credited as double) / cast({money('cost')} as double)"
    return f"case when {money('cost')} > 0 and credited > 0 then cast(round({share}, 9) as decimal(38, 9)) end"
