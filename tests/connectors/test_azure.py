"""Azure exports: actual cost is what is billed, amortized cost is what it is worth, and each is complete."""

from __future__ import annotations

import csv
import io
import json
import zipfile
from collections import Counter
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from orchestration.connectors.base import Found
from orchestration.errors import ApportionError
from tests.connectors.readings import read_bill

HEADER = (
    "BillingAccountId,BillingPeriodStartDate,BillingPeriodEndDate,SubscriptionId,Date,Product,MeterId,MeterCategory,"
    "Quantity,Cost,UnitPrice,BillingCurrency,ResourceLocation,ResourceId,Tags,ReservationId,OfferId,ChargeType,"
    "Frequency,PayGPrice,PricingModel,benefitId"
)
EA = HEADER.split(",")
ACTUAL, AMORTIZED = "EA_ActualCost_Small.csv", "EA_AmortizedCost_Small.csv"


def azure(workspace, **more):
    settings = {"area": "billing", "kind": "azure_cost", "path": "{data}/inbox/azure*", "max_bad_share": 1.0}
    return workspace.source(**{**settings, **more})


def line(**more: str) -> dict[str, str]:
    return {
        **dict.fromkeys(EA, ""),
        "BillingAccountId": "8611537",
        "BillingPeriodStartDate": "01/01/2026",
        "BillingPeriodEndDate": "01/31/2026",
        "SubscriptionId": "s1",
        "Date": "01/05/2026",
        "Product": "NC24",
        "MeterId": "m1",
        "MeterCategory": "Virtual Machines",
        "Quantity": "24",
        "Cost": "48",
        "UnitPrice": "2",
        "PayGPrice": "2.5",
        "BillingCurrency": "USD",
        "ResourceId": "/Subscriptions/S1/vm1",
        "ChargeType": "Usage",
        "Frequency": "UsageBased",
        "PricingModel": "OnDemand",
        **more,
    }


def export(*rows: dict[str, str], end: str = "\r\n") -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator=end)
    writer.writeheader()
    writer.writerows(rows)
    return "\ufeff" + text.getvalue()


RESERVED = {"PricingModel": "Reservation", "benefitId": "/Order/R1", "ReservationId": "r1"}
PURCHASE = line(
    **RESERVED, ChargeType="Purchase", Frequency="OneTime", Cost="310", ResourceId="/Order/R1", Quantity="1"
)
ON_DEMAND = line(Cost="48")
COVERED = line(**RESERVED, ResourceId="/vm2")
UNUSED = line(**RESERVED, ChargeType="UnusedReservation", Cost="4", ResourceId="/Order/R1")


def sample(shared: Path, name: str) -> list[dict[str, str]]:
    with (shared / "azure" / name).open(encoding="utf-8-sig", newline="") as text:
        return list(csv.DictReader(text))


def total(rows: list[dict[str, str]]) -> Decimal:
    return sum((Decimal(r["Cost"]) for r in rows), Decimal()).quantize(Decimal("1e-9"), rounding="ROUND_HALF_UP")


def totals(workspace) -> tuple[Decimal, Decimal]:
    return workspace.query(
        "select sum(billed_cost), sum(coalesce(effective_cost, billed_cost))"
        " from (select distinct on (charge_key) * from {charges})"
    )[0]


@pytest.mark.parametrize(("name", "kind"), [(ACTUAL, "actual"), (AMORTIZED, "amortized")])
def test_the_published_exports_land_with_their_totals(workspace, shared: Path, name, kind):
    rows = sample(shared, name)
    source = azure(workspace, path=str(shared / "azure" / name), max_bad_share=0.0)
    report = workspace.land(source, "2023-09-01", "2023-10-01")
    assert (report.tables["charges"].read, report.tables["charges"].landed) == (len(rows), len(rows))
    assert report.variants == {f"Azure EA, CSV, {kind} cost": 1}
    assert read_bill(source, workspace.data).found == [Found(f"Azure EA, CSV, {kind} cost")]
    assert totals(workspace) == (total(rows), total(rows))
    tagged = workspace.query("select count(*) from {charges} where json_extract_string(tags, '$.org') = 'trey'")
    on_days = Counter("trey" in r["Tags"] and '"org": "trey"' in r["Tags"] for r in rows if r["ChargeType"] == "Usage")
    assert tagged == [(on_days[True],)]


def test_the_published_pair_ties_line_by_line_where_both_cover_the_same(workspace, shared: Path):
    actual, amortized = sample(shared, ACTUAL), sample(shared, AMORTIZED)
    source = azure(workspace, path=str(shared / "azure" / "*.csv"), dataset="pair", max_bad_share=0.0)
    report = workspace.land(source, "2023-09-01", "2023-10-01")
    assert report.variants == {"Azure EA, CSV, actual cost": 1, "Azure EA, CSV, amortized cost": 1}
    assert totals(workspace) == (total(actual), total(amortized))

    def same(row: dict[str, str]) -> tuple[str, ...]:
        return tuple(value for name, value in row.items() if name not in ("Cost", "EffectivePrice"))

    shared_lines = Counter(map(same, actual)) & Counter(map(same, amortized))
    joined = shared_lines.total()
    assert joined == 10
    ((charges, both, differing),) = workspace.query(
        """select count(distinct charge_key), count(*) filter (billed_cost <> 0 and effective_cost <> 0),
            count(*) filter (billed_cost <> 0 and effective_cost <> 0 and billed_cost <> effective_cost)
        from {charges} where line > 0"""
    )
    assert charges == len(actual) + len(amortized) - joined
    free = sum(n for row, n in shared_lines.items() if total([r for r in actual if same(r) == row]) == 0)
    assert (both, differing) == (joined - free, 0)
    # The fee is billed and has no effective cost of its own.
    assert workspace.query(
        "select distinct billed_cost, effective_cost, charge_frequency from {charges}"
        " where charge_category = 'Purchase'"
    ) == [(Decimal("3.25"), Decimal(0), "Recurring")]


def test_a_pair_gives_each_charge_both_costs_and_the_fee_equals_what_was_used_and_not_used(workspace):
    days = [f"01/{d:02}/2026" for d in range(1, 32)]
    workspace.deliver(
        "azure_actual_2026-01_20260203T060000Z.csv",
        export(PURCHASE, ON_DEMAND, *({**COVERED, "Cost": "0", "Date": day} for day in days)),
    )
    workspace.deliver(
        "azure_Amortized_2026-01_20260203T070000Z.csv",
        export(
            ON_DEMAND,
            *({**COVERED, "Cost": "6", "Date": day} for day in days),
            *({**UNUSED, "Date": day} for day in days),
        ),
    )
    report = workspace.land(azure(workspace, dataset="pair"), "2026-01-01", "2026-02-01")
    assert totals(workspace) == (Decimal(358), Decimal(358))
    assert workspace.query(
        """select charge_category, commitment_status, commitment_id, charge_description, count(distinct charge_key),
            sum(billed_cost), sum(effective_cost), sum(list_cost)
        from (select distinct on (charge_key) * from {charges}) group by all order by 1, 2 nulls first"""
    ) == [
        ("Purchase", None, "/order/r1", "NC24", 1, Decimal(310), Decimal(0), None),
        ("Usage", None, None, "NC24", 1, Decimal(48), Decimal(48), Decimal(60)),
        ("Usage", "Unused", "/order/r1", "NC24", 31, Decimal(0), Decimal(124), None),
        ("Usage", "Used", "/order/r1", "NC24", 31, Decimal(0), Decimal(186), Decimal(1860)),
    ]
    # 32 lines of the amortized export are part of a charge of the actual one.
    assert (report.tables["charges"].landed, report.tables["charges"].superseded) == (64, 32)


def test_a_newer_actual_export_replaces_the_older_one_and_leaves_the_amortized_one(workspace):
    source = azure(workspace, dataset="pair")
    workspace.deliver("azure_actual_2026-01_20260203T060000Z.csv", export(PURCHASE, ON_DEMAND))
    workspace.deliver("azure_amortized_2026-01_20260203T070000Z.csv", export(ON_DEMAND, UNUSED))
    workspace.deliver("azure_actual_2026-01_20260204T060000Z.csv", export(PURCHASE, line(Cost="50")))
    workspace.land(source, "2026-01-01", "2026-02-01")
    assert totals(workspace) == (Decimal(360), Decimal(52))
    _, cursor = workspace.touched(source)
    workspace.deliver("azure_amortized_2026-01_20260205T070000Z.csv", export(line(Cost="50"), UNUSED))
    assert len(workspace.touched(source, cursor)[0]) == 31
    workspace.land(source, "2026-01-01", "2026-02-01")
    assert totals(workspace) == (Decimal(360), Decimal(54))


def test_which_export_of_a_pair_gives_which_cost_is_a_setting(workspace):
    workspace.deliver("azure_a.csv", export(PURCHASE, ON_DEMAND))
    workspace.deliver("azure_b.csv", export(ON_DEMAND, UNUSED))
    source = azure(workspace, dataset="pair", amortized_files="*_b.csv", billed_from="amortized")
    workspace.land(source, "2026-01-01", "2026-02-01")
    assert totals(workspace) == (Decimal(52), Decimal(52))


def test_both_exports_without_being_a_pair_are_refused_because_usage_would_count_twice(workspace):
    workspace.deliver("azure_a.csv", export(PURCHASE, ON_DEMAND))
    workspace.deliver("azure_b.csv", export(ON_DEMAND, UNUSED))
    with pytest.raises(ApportionError, match="usage would count twice"):
        workspace.land(azure(workspace), "2026-01-01", "2026-02-01")


@pytest.mark.parametrize("rows", [(PURCHASE, ON_DEMAND), (UNUSED, COVERED)])
def test_an_export_that_is_not_what_the_source_says_is_refused(workspace, rows):
    workspace.deliver("azure.csv", export(*rows))
    wrong = "amortized" if rows[0] is PURCHASE else "actual"
    with pytest.raises(ApportionError, match=f"takes it for {wrong}"):
        workspace.land(azure(workspace, dataset=wrong), "2026-01-01", "2026-02-01")


def test_the_columns_of_a_customer_agreement_are_the_same_bill(workspace):
    row = {
        "invoiceId": "G1",
        "billingAccountId": "b",
        "billingPeriodStartDate": "2026-01-01T00:00:00Z",
        "billingPeriodEndDate": "2026-01-31",
        "SubscriptionId": "s1",
        "date": "2026-01-05",
        "chargeType": "Usage",
        "costInBillingCurrency": "-1.5e-1",
        "costInUsd": "99",
        "billingCurrency": "eur",
        "pricingCurrency": "USD",
        "payGPrice": "7",
        "quantity": "3",
        "paygCostInBillingCurrency": "2.25",
        "resourceId": "/VM",
        "tags": '{"team": "nlp"}',
    }
    workspace.deliver("azure.csv.gz", export(row))
    report = workspace.land(azure(workspace), "2026-01-01", "2026-02-01")
    assert report.variants == {"Azure MCA, gzipped CSV, actual cost": 1}
    assert workspace.query(
        "select invoice_id, billing_account_id, currency, billed_cost, effective_cost, list_cost, resource_id, tags,"
        " date::varchar, billing_period_end_at::date::varchar from {charges}"
    ) == [
        (
            *("G1", "b", "EUR", Decimal("-0.15"), None, Decimal("2.25"), "/vm", '{"team": "nlp"}'),
            *("2026-01-05", "2026-02-01"),
        )
    ]


NEW_EA = (
    "InvoiceSectionName,AccountName,AccountOwnerId,SubscriptionId,SubscriptionName,ResourceGroup,ResourceLocation,Date,"
    "ProductName,MeterCategory,MeterSubCategory,MeterId,MeterName,MeterRegion,UnitOfMeasure,Quantity,EffectivePrice,"
    "CostInBillingCurrency,CostCenter,ConsumedService,ResourceId,Tags,OfferId,AdditionalInfo,ServiceInfo1,ServiceInfo2,"
    "ResourceName,ReservationId,ReservationName,UnitPrice,ProductOrderId,ProductOrderName,Term,PublisherType,"
    "PublisherName,ChargeType,Frequency,PricingModel,AvailabilityZone,BillingAccountId,BillingAccountName,"
    "BillingCurrencyCode,BillingPeriodStartDate,BillingPeriodEndDate,BillingProfileId,BillingProfileName,"
    "InvoiceSectionId,IsAzureCreditEligible,PartNumber,PayGPrice,PlanName,ServiceFamily,CostAllocationRuleName,"
    "benefitId,benefitName"
)
MCA = (
    "invoiceId,previousInvoiceId,billingAccountId,billingAccountName,billingProfileId,billingProfileName,"
    "invoiceSectionId,invoiceSectionName,resellerName,resellerMpnId,costCenter,billingPeriodEndDate,"
    "billingPeriodStartDate,servicePeriodEndDate,servicePeriodStartDate,date,serviceFamily,productOrderId,"
    "productOrderName,consumedService,meterId,meterName,meterCategory,meterSubCategory,meterRegion,ProductId,"
    "ProductName,SubscriptionId,subscriptionName,publisherType,publisherId,publisherName,resourceGroupName,ResourceId,"
    "resourceLocation,location,effectivePrice,quantity,unitOfMeasure,chargeType,billingCurrency,pricingCurrency,"
    "costInBillingCurrency,costInPricingCurrency,costInUsd,paygCostInBillingCurrency,paygCostInUsd,"
    "exchangeRatePricingToBilling,exchangeRateDate,isAzureCreditEligible,serviceInfo1,serviceInfo2,additionalInfo,"
    "tags,PayGPrice,frequency,term,reservationId,reservationName,pricingModel,unitPrice,costAllocationRuleName,"
    "benefitId,benefitName,provider"
)
PARTNER = (
    ",partnerTenantId,partnerName,customerTenantId,customerName,partnerEarnedCreditRate,partnerEarnedCreditApplied"
)
DAILY_RATED = (
    "PartnerId,PartnerName,CustomerId,CustomerName,CustomerDomainName,CustomerCountry,MpnId,InvoiceNumber,ProductId,"
    "SkuId,AvailabilityId,SkuName,ProductName,PublisherName,PublisherId,SubscriptionDescription,SubscriptionId,"
    "ChargeStartDate,ChargeEndDate,UsageDate,MeterType,MeterCategory,MeterId,MeterSubCategory,MeterName,MeterRegion,"
    "UnitOfMeasure,ResourceLocation,ConsumedService,ResourceGroup,ResourceURI,ChargeType,UnitPrice,Quantity,UnitType,"
    "BillingPreTaxTotal,BillingCurrency,PricingPreTaxTotal,PricingCurrency,ServiceInfo1,ServiceInfo2,Tags,"
    "AdditionalInfo,EffectiveUnitPrice,PCToBCExchangeRate,PCToBCExchangeRateDate,EntitlementId,EntitlementDescription,"
    "PartnerEarnedCreditPercentage,CreditPercentage,CreditType,BenefitOrderId,BenefitId,BenefitType"
)
PAY_AS_YOU_GO = (
    "SubscriptionGuid,ResourceGroup,ResourceLocation,UsageDateTime,MeterCategory,MeterSubcategory,MeterId,MeterName,"
    "MeterRegion,UsageQuantity,ResourceRate,PreTaxCost,ConsumedService,ResourceType,InstanceId,Tags,OfferId,"
    "AdditionalInfo,ServiceInfo1,ServiceInfo2,ServiceName,ServiceTier,Currency,UnitOfMeasure"
)


@pytest.mark.parametrize(
    ("agreement", "header", "cost", "currency", "day"),
    [
        ("EA", NEW_EA, "CostInBillingCurrency", "BillingCurrencyCode", "Date"),
        ("EA", NEW_EA[0].lower() + NEW_EA[1:], "CostInBillingCurrency", "BillingCurrencyCode", "Date"),
        ("MCA", MCA, "costInBillingCurrency", "billingCurrency", "date"),
        ("CSP", MCA + PARTNER, "costInBillingCurrency", "billingCurrency", "date"),
        ("CSP", DAILY_RATED, "BillingPreTaxTotal", "BillingCurrency", "UsageDate"),
        ("legacy", PAY_AS_YOU_GO, "PreTaxCost", "Currency", "UsageDateTime"),
    ],
)
@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_every_agreement_is_told_by_its_documented_columns(workspace, agreement, header, cost, currency, day, encoding):
    row = dict.fromkeys(header.split(","), "") | {cost: "1.5", currency: "EUR", day: "2026-01-05"}
    kind = next((name for name in row if name.lower() == "chargetype"), None)
    row |= {kind: "Usage"} if kind else {}
    workspace.deliver("azure.csv", export(row, end="\n").removeprefix("\ufeff").encode(encoding))
    bill = read_bill(azure(workspace), workspace.data)
    assert bill.found == [Found(f"Azure {agreement}, CSV, actual cost")]
    assert [(charge["billed_cost"], charge["currency"]) for charge in bill.charges] == [(Decimal("1.5"), "EUR")]


def test_days_before_months_are_refused_and_what_could_be_either_is_said(workspace):
    plain = {"BillingPeriodStartDate": "", "BillingPeriodEndDate": ""}
    european = [line(**plain, Date="05/01/2026"), line(**plain, Date="13/01/2026")]
    workspace.deliver("azure.csv", export(*european).replace(",", ";"))
    with pytest.raises(ApportionError, match=r"azure.csv, line 3: 13/01/2026 puts the day before the month"):
        workspace.land(azure(workspace), "2026-01-01", "2026-02-01")
    workspace.deliver("azure.csv", export(european[0]).replace(",", ";"))
    (found,) = read_bill(azure(workspace), workspace.data).found
    assert (found.variant, found.doubts) == (
        "Azure EA, text separated by ;, actual cost",
        ("1 rows have only dates such as 01/05/2026, taken as month/day/year",),
    )


def test_the_manifest_next_to_the_parts_of_an_export_is_no_bill(workspace):
    manifest = {"manifestVersion": "2024-04-01", "blobCount": 2, "blobs": [{"blobName": "part_0_0001.csv"}]}
    workspace.deliver("azure/a_manifest.json", json.dumps(manifest))
    workspace.deliver("azure/part_0_0001.csv", export(ON_DEMAND))
    workspace.deliver("azure/part_1_0001.csv", export(PURCHASE) + "1,2\r\n")
    report = workspace.land(azure(workspace, path="{data}/inbox/azure/*"), "2026-01-01", "2026-02-01")
    assert report.billed == {"USD": Decimal(358)}
    assert report.notes == {"manifests of exports, skipped": 1}
    assert report.variants == {"manifest of an Azure export, no bill": 1, "Azure EA, CSV, actual cost": 2}
    assert [(line, reason) for line, reason in workspace.quarantined()] == [(3, "has 2 fields instead of 22")]


def test_text_zip_and_parquet_are_the_same_bill(workspace):
    rows = [
        ON_DEMAND,
        line(Cost="0.0000000072922557592391990000", Tags='"org": ""'),
        {**PURCHASE, "Date": "2026-01-09"},
    ]
    text = export(*rows)
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("part_0.csv", text)
    parquet = pa.table({name.upper(): pa.array([row[name] or None for row in rows]) for name in EA})
    found = []
    for name, content in {"azure.csv": text, "azure.zip": packed.getvalue(), "azure.parquet": parquet}.items():
        path = workspace.deliver(name, content)
        workspace.land(azure(workspace), "2026-01-01", "2026-02-01")
        found.append(workspace.query("select * exclude (delivery, line, delivered_at) from {charges} order by all"))
        path.unlink()
    assert found[1] == found[0]
    assert found[2] == found[0]
    assert workspace.query("select count(*), sum(billed_cost) from {charges} where charge_category = 'Usage'") == [
        (2, Decimal("48.000000007"))
    ]


def test_broken_lines_are_kept_aside_with_their_reason(workspace):
    rows = [
        line(Cost="1"),
        line(Cost="twelve"),
        line(Cost=""),
        line(Date="21/09/2026"),
        line(Date=""),
        line(ChargeType="Gift"),
        line(ChargeType=""),
        line(Tags='"team": "nlp'),
        line(BillingCurrency=""),
        line(BillingPeriodEndDate="12/01/2025"),
        line(ChargeType="Refund", Cost="-3"),
        line(ChargeType="RoundingAdjustment", Cost="0.01"),
        line(ChargeType="Tax", Cost="0.5"),
    ]
    workspace.deliver("azure.csv", export(*rows) + "1,2\r\n")
    report = workspace.land(azure(workspace), "2026-01-01", "2026-02-01")
    assert report.billed == {"USD": Decimal("-1.49")}
    assert [reason for _, reason in workspace.quarantined()] == [
        "the cost is not a number: twelve",
        "the cost is missing",
        "Date is not a date (month/day/year or ISO): 21/09/2026",
        "Date is missing",
        "ChargeType is unknown: Gift",
        "ChargeType is missing",
        "Tags is not a JSON object, with or without braces",
        "the billing currency is missing",
        "the billing period is empty",
        "has 2 fields instead of 22",
    ]
    assert workspace.query(
        "select distinct charge_category, charge_class from {charges} where line > 10 order by 1"
    ) == [("Adjustment", None), ("Purchase", "Correction"), ("Tax", None)]


def test_a_focus_export_is_sent_to_its_own_kind(workspace):
    workspace.deliver("azure.csv", "BilledCost,ChargePeriodStart\n1,2026-01-01\n")
    with pytest.raises(ApportionError, match="this is a FOCUS export"):
        workspace.land(azure(workspace), "2026-01-01", "2026-02-01")


def test_a_missing_column_is_named(workspace):
    workspace.deliver("azure.csv", "Cost,Date\n1,2026-01-01\n")
    with pytest.raises(ApportionError, match="line 1: missing column currency"):
        workspace.land(azure(workspace), "2026-01-01", "2026-02-01")


def test_without_an_amortized_export_a_fee_tells_what_it_reserves_and_for_how_long(workspace):
    fee = {"ChargeType": "Purchase", "PricingModel": "Reservation", "ReservationId": "R-1", "Quantity": "2"}
    used = {
        "ChargeType": "Usage",
        "PricingModel": "Reservation",
        "ReservationId": "r-1",
        "Cost": "0",
        "Quantity": "1.5",
    }
    day = {"Date": "01/05/2026", "BillingCurrencyCode": "USD"}
    rows = [
        {**day, **fee, "Cost": "240", "Frequency": "OneTime", "Term": "12"},
        {**day, **fee, "Cost": "20", "Frequency": "Recurring", "Term": "36"},
        {**day, **used, "Cost": "0", "Frequency": "UsageBased", "Term": ""},
    ]
    workspace.deliver("azure.csv", export(*rows))
    workspace.land(azure(workspace), "2026-01-01", "2026-02-01")
    assert workspace.query(
        "select distinct line, effective_cost, commitment_id, commitment_quantity, commitment_end_at::date::varchar"
        " from {charges} order by line"
    ) == [
        (2, None, "r-1", Decimal(2 * 24 * 365), "2027-01-05"),
        (3, None, "r-1", Decimal(2 * 24 * 31), "2026-02-05"),
        (4, None, "r-1", Decimal("1.5"), None),
    ]


@pytest.mark.parametrize(
    ("term", "ends"),
    [("12", "2027-03-10"), ("36 Months", "2029-03-10"), ("P1Y", "2027-03-10"), ("3 Years", "2029-03-10")]
    + [(term, None) for term in ("", "999999999999", "-5", "0", "soon", "5000")],
)
def test_the_term_of_a_fee_is_read_in_each_notation_or_doubted(workspace, term, ends):
    workspace.deliver(
        "azure.csv",
        "ChargeType,PricingModel,ReservationId,Quantity,Frequency,Term,Cost,Date,BillingCurrency\n"
        f"Purchase,Reservation,R,1,OneTime,{term},10,03/10/2026,USD\n",
    )
    source = workspace.source(area="billing", kind="azure_cost", path="{data}/inbox/*")
    workspace.land(source, "2026-03-10", "2026-03-11")
    assert workspace.query("select commitment_end_at::date::varchar from {charges}") == [(ends,)]
    doubts = read_bill(source, workspace.data).found[0].doubts
    assert any("Term that is not said" in doubt for doubt in doubts) == (ends is None)
