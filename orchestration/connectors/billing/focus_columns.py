"""The columns of the FOCUS specification, version by version, and which of them a file has."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from orchestration.connectors.base import Delivery
from orchestration.connectors.billing.columns import find_columns, letters
from orchestration.connectors.tables import Layout, require
from orchestration.errors import ApportionError
from orchestration.settings import FocusSource

INTRODUCED = {
    # Newest first: a file is of the newest version that one of its columns needs.
    "1.3": (
        *("AllocatedMethodDetails", "AllocatedMethodId", "AllocatedResourceId", "AllocatedResourceName"),
        *("AllocatedTags", "ContractApplied", "HostProviderName", "ServiceProviderName"),
    ),
    "1.2": (
        *("InvoiceId", "PricingCurrency", "PricingCurrencyContractedUnitPrice", "PricingCurrencyEffectiveCost"),
        "PricingCurrencyListUnitPrice",
    ),
    "1.1": (
        *("CapacityReservationId", "CapacityReservationStatus", "CommitmentDiscountQuantity"),
        *("CommitmentDiscountUnit", "ServiceSubcategory", "SkuMeter", "SkuPriceDetails"),
    ),
    # What only drafts had; a file of 1.0 or later has none of these.
    "1.0-preview": (
        *("ChargeSubcategory", "UsageQuantity", "UsageUnit", "Region"),
        *("Provider", "Publisher", "InvoiceIssuer"),  # Oracle's reports have them to this day
    ),
    "0.5": ("AmortizedCost", "BilledCurrency", "ChargeType"),
}
SINCE_1_0 = (
    *("AvailabilityZone", "BilledCost", "BillingAccountId", "BillingAccountName", "BillingCurrency"),
    *("BillingPeriodEnd", "BillingPeriodStart", "ChargeCategory", "ChargeClass", "ChargeDescription"),
    *("ChargeFrequency", "ChargePeriodEnd", "ChargePeriodStart", "CommitmentDiscountCategory"),
    *("CommitmentDiscountId", "CommitmentDiscountName", "CommitmentDiscountStatus", "CommitmentDiscountType"),
    *("ConsumedQuantity", "ConsumedUnit", "ContractedCost", "ContractedUnitPrice", "EffectiveCost"),
    *("InvoiceIssuerName", "ListCost", "ListUnitPrice", "PricingCategory", "PricingQuantity", "PricingUnit"),
    *("ProviderName", "PublisherName", "RegionId", "RegionName", "ResourceId", "ResourceName", "ResourceType"),
    *("ServiceCategory", "ServiceName", "SkuId", "SkuPriceId", "SubAccountId", "SubAccountName", "Tags"),
    # Of 1.2, but Microsoft has had them since its 1.0, so they tell no version.
    *("BillingAccountType", "SubAccountType"),
)
KNOWN = {letters(name) for names in (SINCE_1_0, *INTRODUCED.values()) for name in names}
OWN_PREFIXES = ("x_", "oci_")
"""How columns begin that a vendor adds to the specification."""

REQUIRED = (
    "BilledCost",
    "BillingCurrency",
    "BillingPeriodStart",
    "BillingPeriodEnd",
    "ChargePeriodStart",
    "ChargePeriodEnd",
    "ChargeCategory",
)
OPTIONAL = (
    "ProviderName",
    "ServiceProviderName",  # its name from 1.3 on
    "InvoiceId",
    "x_InvoiceId",
    "BillingAccountId",
    "SubAccountId",
    "ChargeClass",
    "ChargeSubcategory",  # of drafts only
    "ChargeFrequency",
    "ChargeDescription",
    "ServiceCategory",
    "ServiceName",
    "SkuId",
    "RegionId",
    "ResourceId",
    "ResourceType",
    "CommitmentDiscountId",
    "CommitmentDiscountStatus",
    "CommitmentDiscountQuantity",
    "Tags",
    "ListCost",
    "EffectiveCost",
)
COLUMNS = (*REQUIRED, *OPTIONAL)
DRAFT_NAMES = {
    "BillingCurrency": ("BilledCurrency",),
    "ChargeCategory": ("ChargeType",),
    "RegionId": ("Region",),
    "EffectiveCost": ("AmortizedCost",),
    "ProviderName": ("Provider",),
}
SPELLINGS = {name: tuple(letters(one) for one in (name, *DRAFT_NAMES.get(name, ()))) for name in COLUMNS}
SETTINGS = {"BillingCurrency": "currency", "ProviderName": "provider"}
"""Columns that a setting of the source can stand in for."""


def understood_for(source: FocusSource) -> Callable[[Delivery, Sequence[str]], Layout]:
    def understand(delivery: Delivery, header: Sequence[str]) -> Layout:
        places = find_columns(delivery, header, SPELLINGS)
        require(delivery, places, [name for name in REQUIRED if name not in SETTINGS], header)
        for name, setting in SETTINGS.items():
            has_it = name in places or (name == "ProviderName" and "ServiceProviderName" in places)
            if not has_it and getattr(source, setting) is None:
                raise ApportionError(
                    f"{delivery.path}, line 1: missing column {name}",
                    f"deliver the file with it, or set '{setting}' of source '{source.name}' for files without it",
                )
        unknown = tuple(name for name in header if letters(name) not in KNOWN and not _is_own(name))
        return Layout(places, f"FOCUS {_version(header)}", unknown)

    return understand


def _version(header: Sequence[str]) -> str:
    plain = {letters(name) for name in header}
    return next((v for v, names in INTRODUCED.items() if plain & {letters(name) for name in names}), "1.0")


def _is_own(name: str) -> bool:
    return name.lower().startswith(OWN_PREFIXES)
