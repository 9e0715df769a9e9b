"""The columns of Azure's cost exports, as each kind of agreement calls them."""

from __future__ import annotations

from collections.abc import Sequence

from orchestration.connectors.base import Delivery
from orchestration.connectors.billing.columns import find_columns, letters
from orchestration.connectors.tables import Layout, require
from orchestration.errors import ApportionError

SPELLINGS = {
    # Column here: how exports of enterprise (EA), customer (MCA) and older agreements call it, the best first.
    "cost": ("costinbillingcurrency", "cost", "pretaxcost", "extendedcost", "billingpretaxtotal", "pretaxtotal"),
    "currency": ("billingcurrency", "billingcurrencycode", "currency", "currencycode"),
    "date": ("date", "usagedate", "usagedatetime"),
    "charge_type": ("chargetype",),
    "period_start": ("billingperiodstartdate", "billingperiodstart"),
    "period_end": ("billingperiodenddate", "billingperiodend"),
    "account": ("billingaccountid", "accountid"),
    "subscription": ("subscriptionid", "subscriptionguid"),
    "invoice": ("invoiceid",),
    "frequency": ("frequency",),
    "pricing_model": ("pricingmodel",),
    "product": ("product", "productname"),
    "meter_name": ("metername",),
    "meter_id": ("meterid",),
    "family": ("servicefamily",),
    "service": ("metercategory",),
    "location": ("resourcelocation", "resourcelocationnormalized", "location"),
    "resource": ("resourceid", "instanceid", "resourceuri"),
    "consumed": ("consumedservice",),
    "benefit": ("benefitid",),
    "reservation": ("reservationid",),
    "term": ("term",),
    "tags": ("tags",),
    "quantity": ("quantity", "usagequantity", "consumedquantity"),
    "unit_price": ("unitprice",),
    "payg_price": ("paygprice",),
    "payg_cost": ("paygcostinbillingcurrency",),
    "pricing_currency": ("pricingcurrency", "pricingcurrencycode"),
}
REQUIRED = ("cost", "currency", "date")
DOCUMENTED = """
    AccountId AccountName AccountOwnerEmail AccountOwnerId AdditionalInfo AvailabilityId AvailabilityZone BenefitName
    BenefitOrderId BenefitType BillingAccountName BillingPeriod BillingProfileId BillingProfileName ChargeEndDate
    ChargeStartDate ChargesBilledSeparately ConsumedServiceId CostAllocationRuleName CostCenter CostInPricingCurrency
    CostInUsd CreditPercentage CreditType CustomerCountry CustomerDomainName CustomerId CustomerName CustomerTenantId
    Day DepartmentId DepartmentName EffectivePrice EffectiveUnitPrice EntitlementDescription EntitlementId
    ExchangeRate ExchangeRateDate ExchangeRatePricingToBilling InvoiceNumber InvoiceSection InvoiceSectionId
    InvoiceSectionName IsAzureCreditEligible MeterRegion MeterSubCategory MeterType Month MpnId OfferId PartNumber
    PartnerEarnedCreditApplied PartnerEarnedCreditPercentage PartnerEarnedCreditRate PartnerId PartnerName
    PartnerTenantId PaygCostInUsd PCToBCExchangeRate PCToBCExchangeRateDate PlanName PreviousInvoiceId
    PricingPreTaxTotal ProductId ProductOrderId ProductOrderName Provider PublisherId PublisherName PublisherType
    ResellerMpnId ResellerName ReservationName ResourceGroup ResourceGroupName ResourceGuid ResourceLocationId
    ResourceName ResourceRate ResourceType RoundingAdjustment ServiceAdministratorId ServiceInfo1 ServiceInfo2
    ServiceName ServicePeriodEndDate ServicePeriodStartDate ServiceTier SkuId SkuName StoreServiceIdentifier
    SubscriptionDescription SubscriptionName Term UnitOfMeasure UnitType Year
"""
"""What Microsoft documents for enterprise, customer and partner agreements and pay-as-you-go, and no charge needs."""
KNOWN = {spelling for spellings in SPELLINGS.values() for spelling in spellings} | set(map(letters, DOCUMENTED.split()))
AGREEMENTS = {
    # Only these have one of the columns; the first that fits.
    "CSP": {"partnertenantid", "partnername", "partnerid", "customertenantid"},
    "MCA": {"exchangeratepricingtobilling", "paygcostinbillingcurrency", "costinpricingcurrency", "previousinvoiceid"},
    "EA": {"accountownerid", "offerid", "billingaccountid"},
}


def understand(delivery: Delivery, header: Sequence[str]) -> Layout:
    plain = [letters(name) for name in header]
    if {"billedcost", "chargeperiodstart"} <= set(plain):
        raise ApportionError(
            f"{delivery.path}, line 1: this is a FOCUS export", "read it with a source of kind 'focus' instead"
        )
    places = find_columns(delivery, header, SPELLINGS)
    require(delivery, places, REQUIRED, header)
    unknown = tuple(name for name, known_as in zip(header, plain, strict=True) if known_as not in KNOWN)
    return Layout(places, f"Azure {_agreement(set(plain))}", unknown)


def _agreement(plain: set[str]) -> str:
    if not plain & {"cost", "costinbillingcurrency", "billingpretaxtotal", "pretaxtotal"}:
        return "legacy"
    return next((name for name, own in AGREEMENTS.items() if plain & own), "legacy")
