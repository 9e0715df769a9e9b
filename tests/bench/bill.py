"""A month of an AWS bill (legacy CUR, CSV) of any length: hourly lines of many meters, the same for the same seed.

What makes real ones heavy is in it: line ids that repeat every hour, ten decimals, more than half of the lines free,
sentences with commas, tags, and a few lines that belong to the month as a whole.
"""

from __future__ import annotations

from pathlib import Path

import duckdb

HOURS = 744
MONTH = ("2026-01-01", "2026-02-01")
_ALPHABET = "abcdefghijklmnopqrstuvwxyz234567"
_PRODUCTS = {
    "AmazonEC2": ("Amazon Elastic Compute Cloud", "Compute Instance", "Hrs"),
    "AmazonS3": ("Amazon Simple Storage Service", "API Request", "Requests"),
    "AmazonEBS": ("Amazon Elastic Block Store", "Storage", "GB-Mo"),
    "AWSDataTransfer": ("AWS Data Transfer", "Data Transfer", "GB"),
    "AmazonCloudWatch": ("Amazon CloudWatch", "Metric", "Metrics"),
}
_INSTANCES = ("p5.48xlarge", "p4d.24xlarge", "g6.12xlarge", "c7i.8xlarge", "m7i.4xlarge", "r7i.2xlarge", "t3.medium")
_REGIONS = ("us-east-1", "us-west-2", "eu-central-1", "ap-northeast-1")
_TEAMS = ("research", "vision", "speech", "platform", "robotics", "search")


def write_bill(target: Path, lines: int, seed: int = 1) -> None:
    """Writes `lines` lines and a header; about 700 bytes each."""
    columns = ", ".join(f'{value} as "{name}"' for name, value in _COLUMNS.items())
    with duckdb.connect() as con:
        con.execute("set TimeZone = 'UTC'; set preserve_insertion_order = true; set enable_progress_bar = false")
        con.execute(
            f"copy (select {columns} from ({_facts(lines, seed)})) to '{target}' (format csv, header, delimiter ',')"
        )


def _one_of(values: tuple[str, ...], number: str) -> str:
    return f"[{', '.join(repr(value) for value in values)}][1 + {number} % {len(values)}]"


def _letters(number: str, count: int) -> str:
    """An id as AWS writes them: so many letters, the same for the same number."""
    digits = f"md5(cast({number} as varchar)) || md5({number} || 'b')"
    return f"translate(left({digits}, {count}), '0123456789', '{_ALPHABET[-16:-6]}')"


def _facts(lines: int, seed: int) -> str:
    """What a line is about. A meter has one line for each hour, in no order of time."""
    names, families, units = (tuple(product[place] for product in _PRODUCTS.values()) for place in range(3))
    return f"""
        select
            *,
            {_one_of(tuple(_PRODUCTS), "noise")} as product,
            {_one_of(names, "noise")} as product_name,
            {_one_of(families, "noise")} as family,
            {_one_of(units, "noise")} as unit,
            product = 'AmazonEC2' as is_instance,
            {_one_of(_INSTANCES, "(noise // 7)")} as instance,
            {_one_of(_REGIONS, "(noise // 49)")} as region,
            {_one_of(_TEAMS, "(noise // 343)")} as team,
            strftime(timestamp '{MONTH[0]}' + to_hours(hour), '%Y-%m-%dT%H:%M:%SZ') as starts,
            strftime(timestamp '{MONTH[0]}' + to_hours(hour + 1), '%Y-%m-%dT%H:%M:%SZ') as ends,
            cast((line_noise % 100000000000) / 1e10 as decimal(18, 10)) as amount,
            cast(case when line_noise % 100 < 56 then 0 else amount end as decimal(18, 10)) as cost,
            case
                when number % 5003 = 17 then 'RIFee'
                when number % 5003 = 2500 then 'Tax'
                when is_instance and noise % 11 = 0 then 'DiscountedUsage'
                else 'Usage'
            end as kind
        from (
            select
                range as number,
                range // {HOURS} as meter,
                range * 389 % {HOURS} as hour,
                cast(hash(meter + {seed}) // 16 as bigint) as noise,
                cast(hash(range + {seed}) // 16 as bigint) as line_noise
            from range({lines})
        )
    """


_MONTH_LINE = "kind in ('RIFee', 'Tax')"
_COLUMNS = {
    "identity/LineItemId": _letters("noise", 52),
    "identity/TimeInterval": "starts || '/' || ends",
    "bill/InvoiceId": "'2026' || noise % 3",
    "bill/BillingEntity": "'AWS'",
    "bill/BillType": "'Anniversary'",
    "bill/PayerAccountId": "'111122223333'",
    "bill/BillingPeriodStartDate": f"'{MONTH[0]}T00:00:00Z'",
    "bill/BillingPeriodEndDate": f"'{MONTH[1]}T00:00:00Z'",
    "lineItem/UsageAccountId": "cast(444455550000 + noise % 40 as varchar)",
    "lineItem/LineItemType": "kind",
    "lineItem/UsageStartDate": f"case when {_MONTH_LINE} then '{MONTH[0]}T00:00:00Z' else starts end",
    "lineItem/UsageEndDate": f"case when {_MONTH_LINE} then '2026-01-31T23:59:59Z' else ends end",
    "lineItem/ProductCode": "product",
    "lineItem/UsageType": "upper(left(region, 2)) || '-BoxUsage:' || instance",
    "lineItem/Operation": "'RunInstances:' || lpad(cast(noise % 16 as varchar), 4, '0')",
    "lineItem/AvailabilityZone": "region || ['a', 'b', 'c'][1 + noise % 3]",
    "lineItem/ResourceId": "case when is_instance then 'i-0' || left(md5('i' || noise), 16)"
    " else 'arn:aws:s3:::bucket-' || noise % 5000 end",
    "lineItem/UsageAmount": "amount",
    "lineItem/NormalizationFactor": "case when is_instance then '64.0' end",
    "lineItem/NormalizedUsageAmount": "case when is_instance then amount * 64 end",
    "lineItem/CurrencyCode": "'USD'",
    "lineItem/UnblendedRate": "case when cost = 0 then '0.0000000000' else '1.0000000000' end",
    "lineItem/UnblendedCost": "case when kind = 'DiscountedUsage' then cast(0 as decimal(18, 10)) else cost end",
    "lineItem/BlendedRate": "case when cost = 0 then '0.0000000000' else '1.0000000000' end",
    "lineItem/BlendedCost": "case when kind = 'DiscountedUsage' then cast(0 as decimal(18, 10)) else cost end",
    "lineItem/LineItemDescription": "'$1.0000000000 per ' || unit || ' of ' || instance || ', ' || region",
    "lineItem/TaxType": "case when kind = 'Tax' then 'VAT' end",
    "lineItem/LegalEntity": "'Amazon Web Services, Inc.'",
    "product/ProductName": "product_name",
    "product/instanceType": "case when is_instance then instance end",
    "product/location": "region",
    "product/operatingSystem": "case when is_instance then 'Linux' end",
    "product/productFamily": "family",
    "product/region": "region",
    "product/servicecode": "product",
    "product/sku": "upper(left(md5(product || instance || region), 16))",
    "product/tenancy": "case when is_instance then 'Shared' end",
    "product/vcpu": "case when is_instance then '192' end",
    "pricing/LeaseContractLength": "case when kind in ('RIFee', 'DiscountedUsage') then '1yr' end",
    "pricing/publicOnDemandCost": f"case when not {_MONTH_LINE} then cost end",
    "pricing/publicOnDemandRate": f"case when not {_MONTH_LINE} then '1.0000000000' end",
    "pricing/term": "case when kind in ('RIFee', 'DiscountedUsage') then 'Reserved' else 'OnDemand' end",
    "pricing/unit": "unit",
    "reservation/EffectiveCost": "case when kind = 'DiscountedUsage' then amount end",
    "reservation/ReservationARN": "case when kind in ('RIFee', 'DiscountedUsage')"
    " then 'arn:aws:ec2:' || region || ':111122223333:reserved-instances/' || noise % 50 end",
    "reservation/UnusedAmortizedUpfrontFeeForBillingPeriod": "case when kind = 'RIFee' then 0 end",
    "reservation/UnusedRecurringFee": "case when kind = 'RIFee' then cost end",
    "resourceTags/user:Name": "case when is_instance then team || '-' || noise % 900 end",
    "resourceTags/user:team": "case when noise % 5 > 0 then team end",
    "resourceTags/user:project": "case when noise % 3 > 0 then 'project-' || noise % 70 end",
    "resourceTags/user:cost_center": "case when noise % 5 > 0 then cast(1000 + noise % 25 as varchar) end",
}
