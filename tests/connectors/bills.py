"""Any bill, and how every vendor writes it: writers that share nothing with the readers that they test."""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal, localcontext

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import strategies as st

from tests.connectors import test_aws_cur as cur

MONTH = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 2, 1, tzinfo=UTC)
CORRECTION = "Correction"


@dataclass(frozen=True)
class Charge:
    category: str
    amount: str
    """As the vendor prints it."""
    currency: str
    start: datetime
    description: str
    resource: str | None
    tags: tuple[tuple[str, str], ...]

    @property
    def is_correction(self) -> bool:
        return self.category == CORRECTION

    @property
    def end(self) -> datetime:
        return self.start + timedelta(hours=1)

    def on_one_line(self) -> Charge:
        def flat(text: str) -> str:
            return text.replace("\n", " ")

        return replace(
            self,
            description=flat(self.description),
            resource=self.resource and flat(self.resource),
            tags=tuple((key, flat(value)) for key, value in self.tags),
        )


def nine(text: str) -> Decimal:
    with localcontext(prec=80):
        return Decimal(text).quantize(Decimal("1e-9"), rounding=ROUND_HALF_UP)


def binary(text: str) -> Decimal:
    """What is left of an amount that went through a binary fraction."""
    return nine(repr(float(text)))


_nothing = {"", "NULL", "null", "\\N"}
_words = st.sampled_from(['a "quoted", one', "it's; here|there", "zürich ☃ 🙂", "back\\slash", "{brace}", "tab\there"])
_lines = st.sampled_from(["two\nlines", 'a "quote\nover" lines,\n\nthree'])
_plain = st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]), min_size=1, max_size=12)
words = st.one_of(_words, _lines, _plain).filter(lambda text: text not in _nothing)
amounts = st.one_of(
    st.decimals(-1000, 1000, places=9, allow_nan=False).map(lambda d: f"{d:f}"),
    st.decimals(-10, 10, places=14, allow_nan=False).map(lambda d: f"{d:f}"),
    st.decimals(-(10**14), 10**14, places=9, allow_nan=False).map(lambda d: f"{d:f}"),
    st.floats(-1e6, 1e6, allow_nan=False).map(repr),
    st.builds("{:f}e{}".format, st.decimals(-9, 9, places=12, allow_nan=False), st.integers(-15, 5)),
    st.sampled_from(["0", "-0", "0.0000000005", "-0.0000000005", "2.5E-9", "1E+3", "1e-30"]),
)
categories = st.sampled_from(["Usage"] * 4 + ["Purchase", "Tax", "Credit", "Adjustment", CORRECTION])
charges = st.builds(
    Charge,
    categories,
    amounts,
    st.sampled_from(["USD", "EUR", "CHF"]),
    st.integers(0, 31 * 24 - 1).map(lambda hour: MONTH[0] + timedelta(hours=hour)),
    words,
    st.one_of(st.none(), words),
    st.dictionaries(st.sampled_from(["team", "cost_center"]), words).map(lambda tags: tuple(sorted(tags.items()))),
)
bills = st.lists(charges, min_size=1, max_size=30)


@dataclass(frozen=True)
class Dialect:
    """One way to write a bill, and what of a charge it can say."""

    kind: str
    file: str
    write: Callable[[Sequence[Charge]], bytes]
    amount: Callable[[str], Decimal] = nine
    settings: tuple[tuple[str, str], ...] = ()
    says: Callable[[Charge], tuple[str, str | None]] = lambda charge: (
        ("Adjustment", CORRECTION) if charge.is_correction else (charge.category, None)
    )
    by_day: bool = False
    one_line: bool = False
    """Values may not span lines."""
    lower_resource: bool = False
    fee_name: str = ""
    """How the description of a purchase begins where only that tells it."""
    only_usage: bool = False

    def can_say(self, bill: Sequence[Charge]) -> list[Charge]:
        """The bill as far as this dialect can express it."""
        return [self._adapted(charge) for charge in bill]

    def _adapted(self, charge: Charge) -> Charge:
        charge = charge.on_one_line() if self.one_line else charge
        resource = charge.resource
        return replace(
            charge,
            category="Usage" if self.only_usage else charge.category,
            start=charge.start.replace(hour=0) if self.by_day else charge.start,
            description=(self.fee_name if charge.category == "Purchase" else "") + charge.description,
            resource=resource.lower() if resource and self.lower_resource else resource,
        )

    def expected(self, charge: Charge) -> tuple:
        end = charge.start + timedelta(days=1) if self.by_day else charge.end
        said = (charge.start, end, charge.description, charge.resource, dict(charge.tags))
        return (*self.says(charge), self.amount(charge.amount), charge.currency, *said)


def text_table(rows: Sequence[dict], *, null: str = "", delimiter: str = ",", end: str = "\n") -> str:
    out = io.StringIO()
    writer = csv.writer(out, delimiter=delimiter, lineterminator=end)
    writer.writerow(rows[0])
    writer.writerows([null if value is None else value for value in row.values()] for row in rows)
    return out.getvalue()


def parquet(rows: Sequence[dict], money: Sequence[str] = (), times: Sequence[str] = ()) -> bytes:
    columns = {}
    for name in rows[0]:
        values = [row[name] for row in rows]
        if name in money:
            columns[name] = pa.array([None if value is None else float(value) for value in values], pa.float64())
        elif name in times:
            columns[name] = pa.array([datetime.fromisoformat(v).replace(tzinfo=None) for v in values])
        elif any(isinstance(value, dict) for value in values):
            pairs = [None if value is None else list(value.items()) for value in values]
            columns[name] = pa.array(pairs, pa.map_(pa.string(), pa.string()))
        else:
            columns[name] = pa.array(values)
    return parquet_bytes(pa.table(columns))


def parquet_bytes(table: pa.Table) -> bytes:
    out = io.BytesIO()
    pq.write_table(table, out)
    return out.getvalue()


def zipped(text: str) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("bill.csv", text)
    return out.getvalue()


def _iso(at: datetime) -> str:
    return f"{at:%Y-%m-%dT%H:%M:%SZ}"


# FOCUS

FOCUS_TIMES = ("BillingPeriodStart", "BillingPeriodEnd", "ChargePeriodStart", "ChargePeriodEnd")


def focus_rows(bill: Sequence[Charge], version: str = "1.0") -> list[dict]:
    def row(charge: Charge) -> dict:
        named = {
            "BilledCost": charge.amount,
            "BillingCurrency": charge.currency,
            "BillingPeriodStart": _iso(MONTH[0]),
            "BillingPeriodEnd": _iso(MONTH[1]),
            "ChargeCategory": "Adjustment" if charge.is_correction else charge.category,
            "ChargeClass": CORRECTION if charge.is_correction else None,
            "ChargeDescription": charge.description,
            "ChargePeriodStart": _iso(charge.start),
            "ChargePeriodEnd": _iso(charge.end),
            "EffectiveCost": charge.amount,
            "ListCost": None,
            "ProviderName": "Acme",
            "ResourceId": charge.resource,
            "Tags": json.dumps(dict(charge.tags), ensure_ascii=False) if charge.tags else None,
        }
        if version >= "1.1":
            named["SkuMeter"] = "meter"
        if version >= "1.2":
            named["InvoiceId"] = "INV-1"
        if version >= "1.3":
            named["ServiceProviderName"] = named.pop("ProviderName")
        return named

    return [row(charge) for charge in bill]


def draft_rows(bill: Sequence[Charge]) -> list[dict]:
    rows = focus_rows(bill)
    for row, charge in zip(rows, bill, strict=True):
        del row["ChargeClass"]
        row["ChargeType"] = row.pop("ChargeCategory").replace("Credit", "Adjustment")
        row["AmortizedCost"] = row.pop("EffectiveCost")
        row["ChargeSubcategory"] = {CORRECTION: "Refund", "Credit": "Credit"}.get(charge.category)
    return rows


def snake(rows: Sequence[dict]) -> list[dict]:
    return [{re.sub("(?<!^)([A-Z])", r"_\1", name).lower(): value for name, value in row.items()} for row in rows]


def with_maps(rows: Sequence[dict]) -> list[dict]:
    return [{**row, "Tags": json.loads(row["Tags"]) if row["Tags"] else {}} for row in rows]


# AWS

CUR_TYPES = {"Purchase": "Fee", CORRECTION: "Refund"}


def cur_rows(bill: Sequence[Charge]) -> list[dict]:
    return [
        {
            "identity_line_item_id": "same",
            "identity_time_interval": f"interval {number}",
            "bill_billing_period_start_date": _iso(MONTH[0]),
            "bill_billing_period_end_date": _iso(MONTH[1]),
            "line_item_line_item_type": CUR_TYPES.get(charge.category, charge.category),
            "line_item_usage_start_date": _iso(charge.start),
            "line_item_usage_end_date": _iso(charge.end),
            "line_item_currency_code": charge.currency,
            "line_item_unblended_cost": charge.amount,
            "line_item_line_item_description": charge.description,
            "line_item_resource_id": charge.resource,
            "resource_tags_user_team": dict(charge.tags).get("team"),
            "resource_tags_user_cost_center": dict(charge.tags).get("cost_center"),
        }
        for number, charge in enumerate(bill)
    ]


def cur_csv(bill: Sequence[Charge], **more) -> str:
    return cur.as_csv(cur_rows(bill), **more)


# Google

FEE = "Commitment v1: "
CARRIER = "line of a credit"


def gcp_rows(bill: Sequence[Charge]) -> list[dict]:
    def row(charge: Charge) -> dict:
        is_credit = charge.category == "Credit"
        kinds = {"Tax": "tax", "Adjustment": "adjustment", CORRECTION: "adjustment"}
        return {
            "billing_account_id": "0",
            "sku": {"id": "s", "description": CARRIER if is_credit else charge.description},
            "usage_start_time": f"{charge.start:%Y-%m-%d %H:%M:%S} UTC",
            "usage_end_time": f"{charge.end:%Y-%m-%d %H:%M:%S} UTC",
            "cost": "0" if is_credit else charge.amount,
            "currency": charge.currency,
            "invoice": {"month": f"{MONTH[0]:%Y%m}"},
            "cost_type": kinds.get(charge.category, "regular"),
            "credits": [{"full_name": charge.description, "amount": charge.amount}] if is_credit else [],
            "adjustment_info": {"id": "why" if charge.is_correction else None},
            "labels": [{"key": key, "value": value} for key, value in charge.tags],
            "resource": {"name": charge.resource},
        }

    return [row(charge) for charge in bill]


def gcp_json(bill: Sequence[Charge], joint: str, **more) -> str:
    """Amounts as bare numbers, with all their digits, wherever JSON has such a number."""
    texts = (json.dumps(row, ensure_ascii=False, **more) for row in gcp_rows(bill))
    number = r'"(cost|amount)": "(-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?)"'
    return joint.join(re.sub(number, r'"\1": \2', text) for text in texts)


def gcp_parquet(bill: Sequence[Charge]) -> bytes:
    rows = gcp_rows(bill)
    for row in rows:
        row["cost"] = float(row["cost"])
        for credit in row["credits"]:
            credit["amount"] = float(credit["amount"])
    kinds = {"credits": pa.list_(pa.struct([("full_name", pa.string()), ("amount", pa.float64())]))}
    kinds |= {"labels": pa.list_(pa.struct([("key", pa.string()), ("value", pa.string())]))}
    kinds |= {"resource": pa.struct([("name", pa.string())]), "adjustment_info": pa.struct([("id", pa.string())])}
    return parquet_bytes(pa.table({n: pa.array([row[n] for row in rows], kinds.get(n)) for n in rows[0]}))


# Azure


def azure_rows(bill: Sequence[Charge], agreement: str) -> list[dict]:
    def row(charge: Charge) -> dict:
        tags = json.dumps(dict(charge.tags), ensure_ascii=False) if charge.tags else ""
        ea = {
            "BillingPeriodStartDate": f"{MONTH[0]:%m/%d/%Y}",
            "BillingPeriodEndDate": "01/31/2026",
            "Date": f"{charge.start:%m/%d/%Y}",
            "Product": charge.description,
            "Cost": charge.amount,
            "BillingCurrency": charge.currency,
            "ResourceId": charge.resource,
            "ChargeType": "Refund" if charge.is_correction else charge.category,
            "OfferId": "",
            "Tags": tags[1:-1],
        }
        if agreement == "EA":
            return ea
        renamed = {"Product": "productName", "Cost": "costInBillingCurrency", "OfferId": "exchangeRatePricingToBilling"}
        mca = {renamed.get(name, name[0].lower() + name[1:]): value for name, value in ea.items()}
        return mca | {"date": f"{charge.start:%Y-%m-%d}", "tags": tags}

    return [row(charge) for charge in bill]


def _azure_says(charge: Charge) -> tuple[str, str | None]:
    return ("Purchase", CORRECTION) if charge.is_correction else (charge.category, None)


# Cost sheets


def sheet_rows(bill: Sequence[Charge]) -> list[dict]:
    return [
        {
            "cost_id": str(number),
            "description": charge.description,
            "cost_type": "other",
            "resource_id": charge.resource,
            "period_start": f"{charge.start:%Y-%m-%d}",
            "period_end": f"{charge.start + timedelta(days=1):%Y-%m-%d}",
            "amount": charge.amount,
            "currency": charge.currency,
            "tags": json.dumps(dict(charge.tags)) if charge.tags else None,
        }
        for number, charge in enumerate(bill)
    ]


AZURE = {"by_day": True, "lower_resource": True, "says": _azure_says}
SHEET = {"by_day": True, "only_usage": True}
FOCUS_MONEY = ("BilledCost", "EffectiveCost")

DIALECTS = {
    "FOCUS 1.0 CSV": Dialect("focus", "b.csv", lambda b: text_table(focus_rows(b)).encode()),
    "FOCUS 1.1 gzip, NULL": Dialect(
        "focus", "b.csv.gz", lambda b: gzip.compress(text_table(focus_rows(b, "1.1"), null="NULL").encode())
    ),
    "FOCUS 1.2 zip": Dialect("focus", "b.zip", lambda b: zipped(text_table(focus_rows(b, "1.2")))),
    "FOCUS 1.3 tabs": Dialect(
        "focus", "b.tsv", lambda b: text_table(focus_rows(b, "1.3"), delimiter="\t", null="\\N").encode()
    ),
    "FOCUS draft semicolons": Dialect(
        "focus", "b.csv", lambda b: text_table(draft_rows(b), delimiter=";", null="null").encode()
    ),
    "FOCUS 1.2 UTF-16": Dialect("focus", "b.csv", lambda b: text_table(focus_rows(b, "1.2")).encode("utf-16")),
    "FOCUS 1.3 Parquet of text": Dialect("focus", "b.parquet", lambda b: parquet(focus_rows(b, "1.3"))),
    "FOCUS 1.1 Parquet of types, maps": Dialect(
        "focus",
        "b.parquet",
        lambda b: parquet(with_maps(focus_rows(b, "1.1")), FOCUS_MONEY, FOCUS_TIMES),
        amount=binary,
    ),
    "FOCUS 1.0 snake case": Dialect("focus", "b.csv", lambda b: text_table(snake(focus_rows(b))).encode()),
    "CUR legacy CSV": Dialect("aws_cur", "b.csv", lambda b: cur_csv(b, spell=cur.legacy_name).encode()),
    "CUR legacy gzip, NULL": Dialect(
        "aws_cur", "b.csv.gz", lambda b: gzip.compress(cur_csv(b, spell=cur.legacy_name, null="NULL").encode())
    ),
    "CUR Hive": Dialect("aws_cur", "b", lambda b: cur_csv(b, null="\\N", delimiter="\x01").encode(), one_line=True),
    "CUR Parquet of types": Dialect(
        "aws_cur", "b.parquet", lambda b: parquet_bytes(cur.as_parquet(cur_rows(b), typed=True)), amount=binary
    ),
    "CUR 2.0 CSV": Dialect("aws_cur", "b.csv", lambda b: cur.as_csv(cur.json_maps(cur.folded(cur_rows(b)))).encode()),
    "CUR 2.0 Parquet": Dialect(
        "aws_cur",
        "b.parquet",
        lambda b: parquet_bytes(cur.as_parquet(cur.folded(cur_rows(b)), typed=False)),
    ),
    "GCP JSON lines": Dialect("gcp_export", "b.jsonl", lambda b: gcp_json(b, "\n").encode(), fee_name=FEE),
    "GCP concatenated": Dialect("gcp_export", "b.json", lambda b: gcp_json(b, "").encode(), fee_name=FEE),
    "GCP indented gzip": Dialect(
        "gcp_export", "b.json.gz", lambda b: gzip.compress(gcp_json(b, "\n", indent=2).encode()), fee_name=FEE
    ),
    "GCP array": Dialect("gcp_export", "b.json", lambda b: f"[{gcp_json(b, ', ')}]".encode(), fee_name=FEE),
    "GCP Parquet": Dialect("gcp_export", "b.parquet", gcp_parquet, amount=binary, fee_name=FEE),
    "Azure EA": Dialect(
        "azure_cost", "b.csv", lambda b: text_table(azure_rows(b, "EA"), end="\r\n").encode("utf-8-sig"), **AZURE
    ),
    "Azure MCA gzip": Dialect(
        "azure_cost", "b.csv.gz", lambda b: gzip.compress(text_table(azure_rows(b, "MCA")).encode()), **AZURE
    ),
    "Azure MCA Parquet": Dialect("azure_cost", "b.parquet", lambda b: parquet(azure_rows(b, "MCA")), **AZURE),
    "cost sheet": Dialect("cost_sheet", "b.csv", lambda b: text_table(sheet_rows(b)).encode(), **SHEET),
    "cost sheet semicolons": Dialect(
        "cost_sheet", "b.csv", lambda b: text_table(sheet_rows(b), delimiter=";").encode(), **SHEET
    ),
}
