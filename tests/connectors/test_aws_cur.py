"""AWS bills: the same lines in every dialect, fees that add up, and every row accounted for."""

from __future__ import annotations

import csv
import io
import json
import random
import zipfile
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from orchestration.connectors.billing.aws_cur import DISCOUNTED
from orchestration.errors import ApportionError
from tests.connectors.readings import read_bill

NOVEMBER = {
    "bill_billing_period_start_date": "2018-11-01T00:00:00Z",
    "bill_billing_period_end_date": "2018-12-01T00:00:00Z",
}
LEGACY = {
    "identity_line_item_id": "identity/LineItemId",
    "identity_time_interval": "identity/TimeInterval",
    "bill_invoice_id": "bill/InvoiceId",
    "bill_bill_type": "bill/BillType",
    "bill_payer_account_id": "bill/PayerAccountId",
    "bill_billing_period_start_date": "bill/BillingPeriodStartDate",
    "bill_billing_period_end_date": "bill/BillingPeriodEndDate",
    "line_item_usage_account_id": "lineItem/UsageAccountId",
    "line_item_line_item_type": "lineItem/LineItemType",
    "line_item_usage_start_date": "lineItem/UsageStartDate",
    "line_item_usage_end_date": "lineItem/UsageEndDate",
    "line_item_product_code": "lineItem/ProductCode",
    "line_item_resource_id": "lineItem/ResourceId",
    "line_item_currency_code": "lineItem/CurrencyCode",
    "line_item_unblended_cost": "lineItem/UnblendedCost",
    "line_item_net_unblended_cost": "lineItem/NetUnblendedCost",
    "line_item_line_item_description": "lineItem/LineItemDescription",
    "product_product_name": "product/ProductName",
    "product_region": "product/region",
    "product_sku": "product/sku",
    "pricing_public_on_demand_cost": "pricing/publicOnDemandCost",
    "reservation_effective_cost": "reservation/EffectiveCost",
    "reservation_net_effective_cost": "reservation/NetEffectiveCost",
    "reservation_reservation_a_r_n": "reservation/ReservationARN",
    "reservation_unused_amortized_upfront_fee_for_billing_period": (
        "reservation/UnusedAmortizedUpfrontFeeForBillingPeriod"
    ),
    "reservation_unused_recurring_fee": "reservation/UnusedRecurringFee",
    "savings_plan_savings_plan_a_r_n": "savingsPlan/SavingsPlanARN",
    "savings_plan_savings_plan_effective_cost": "savingsPlan/SavingsPlanEffectiveCost",
    "savings_plan_total_commitment_to_date": "savingsPlan/TotalCommitmentToDate",
    "savings_plan_used_commitment": "savingsPlan/UsedCommitment",
    "split_line_item_parent_resource_id": "splitLineItem/ParentResourceId",
    "split_line_item_split_cost": "splitLineItem/SplitCost",
    "resource_tags_user_team": "resourceTags/user:team",
    "resource_tags_user_cost_center": "resourceTags/user:cost_center",
    "cost_category_unit": "costCategory/unit",
}
"""How a CSV file of the legacy report spells the columns that Athena and Parquet spell in snake case."""


def line(kind: str = "Usage", cost: str = "1", **more: str | None) -> dict[str, str | None]:
    start, end = "2018-11-05T03:00:00Z", "2018-11-05T04:00:00Z"
    return {
        **NOVEMBER,
        "line_item_line_item_type": kind,
        "line_item_usage_start_date": start,
        "line_item_usage_end_date": end,
        "line_item_currency_code": "USD",
        "line_item_unblended_cost": cost,
        **more,
    }


def columns_of(lines: list[dict]) -> list[str]:
    return list(dict.fromkeys(name for entry in lines for name in entry))


def as_csv(lines: list[dict], spell=lambda name: name, null: str = "", delimiter: str = ",") -> str:
    out, names = io.StringIO(), columns_of(lines)
    if delimiter == "\x01":
        rows = [[spell(n) for n in names], *([_text(entry.get(n), null) for n in names] for entry in lines)]
        return "".join(delimiter.join(row) + "\n" for row in rows)
    writer = csv.writer(out, lineterminator="\n", delimiter=delimiter)
    writer.writerow([spell(name) for name in names])
    writer.writerows([_text(entry.get(name), null) for name in names] for entry in lines)
    return out.getvalue()


def _text(value: str | None, null: str) -> str:
    return null if value is None else value


def cur(workspace, **more):
    settings = {"area": "billing", "kind": "aws_cur", "path": "{data}/inbox/*", "max_bad_share": 1.0}
    return workspace.source(**{**settings, **more})


def landed(workspace, lines: list[dict], **settings) -> dict[int, dict]:
    """The charge of each line, by the place of the line in the list."""
    workspace.deliver("cur.csv", as_csv(lines))
    workspace.land(cur(workspace, **settings), "2018-10-01", "2019-01-01")
    names = (
        "charge_category, charge_class, charge_frequency, billed_cost, effective_cost, list_cost, commitment_id,"
        " commitment_status, commitment_quantity, commitment_start_at, commitment_end_at, tags"
    )
    found = workspace.query(f"select distinct line, {names} from {{charges}} where line > 0 order by 1")
    keys = names.replace(" ", "").split(",")
    return {row[0] - 2: dict(zip(keys, row[1:], strict=True)) for row in found}


def test_the_real_november_lands_with_its_total_and_its_reservations_add_up(workspace, shared):
    path = shared / "aws_cur" / "Nov2018-WorkshopCUR-00001.snappy.parquet"
    report = workspace.land(cur(workspace, path=str(path), max_bad_share=0.0), "2018-11-01", "2018-12-01")
    assert report.variants == {"AWS CUR, Parquet": 1}
    charges = report.tables["charges"]
    assert (charges.read, charges.landed) == (124_340, 124_340)
    assert round(report.billed["USD"], 4) == Decimal("3505.3270")

    def sums(where: str) -> tuple[Decimal, Decimal]:
        distinct = "select distinct line, billed_cost, effective_cost from {charges} where " + where
        return workspace.query(f"select sum(billed_cost), sum(effective_cost) from ({distinct})")[0]

    # The fee pays for hours; what was paid up front, in another month, is part of the effective cost too.
    unused_upfront = Decimal("21.616438360")
    fee, unused = sums("charge_category = 'Purchase'")
    assert (fee, unused) == (Decimal("147.384"), Decimal("21.6") + unused_upfront)
    billed, used = sums("commitment_status = 'Used'")
    covered = pq.read_table(path, columns=["reservation_amortized_upfront_cost_for_usage"]).column(0).to_pylist()
    used_upfront = sum(Decimal(repr(amount)) for amount in covered)
    assert (billed, round(used - used_upfront, 3)) == (0, Decimal("125.784"))
    # One hour is shared by three lines, whose parts AWS rounds to eight decimals: they sum to 0.02600001.
    assert (used - used_upfront) + (unused - unused_upfront) - fee == Decimal("0.00000001")
    unblended = pq.read_table(path, columns=["line_item_unblended_cost"]).column(0).to_pylist()
    total = sum(Decimal(repr(amount)) for amount in unblended).quantize(Decimal("1e-9"), "ROUND_HALF_UP")
    assert report.billed["USD"] == total == Decimal("3505.326968127")
    assert sums("true")[1] == total - fee + used + unused
    ends = workspace.query(
        "select distinct charge_start_at, charge_end_at from {charges} where charge_category = 'Purchase'"
    )
    assert ends == [(datetime(2018, 11, 1, tzinfo=UTC), datetime(2018, 12, 1, tzinfo=UTC))]
    assert workspace.query('select count(*) from {charges} where tags like \'%"cost_center":"Cost006"%\'') != [(0,)]


def test_the_real_hive_text_is_read_whole(workspace, shared):
    path = shared / "aws_cur" / "BeforeCUR.gz"
    report = workspace.land(cur(workspace, path=str(path), max_bad_share=0.0), "2019-11-01", "2019-12-02")
    assert report.variants == {"AWS CUR, gzipped Hive text": 1}
    assert (report.tables["charges"].read, report.tables["charges"].landed) == (7850, 7850)
    assert round(report.billed["USD"], 4) == Decimal("89.1706")
    assert workspace.query("select count(*) from {charges} where region_id = '\\N' or tags like '%\\N%'") == [(0,)]


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("Usage", ("Usage", None, "Usage-Based")),
        ("DiscountedUsage", ("Usage", None, "Usage-Based")),
        ("SavingsPlanCoveredUsage", ("Usage", None, "Usage-Based")),
        ("SavingsPlanNegation", ("Usage", None, "Usage-Based")),
        ("EdpDiscount", ("Usage", None, "Usage-Based")),
        ("RIFee", ("Purchase", None, "Recurring")),
        ("SavingsPlanRecurringFee", ("Purchase", None, "Recurring")),
        ("SavingsPlanUpfrontFee", ("Purchase", None, "One-Time")),
        ("Fee", ("Purchase", None, "One-Time")),
        ("Tax", ("Tax", None, "One-Time")),
        ("Credit", ("Credit", None, "One-Time")),
        ("Refund", ("Adjustment", "Correction", "One-Time")),
    ],
)
def test_every_type_of_line_has_its_category_and_keeps_its_sign(workspace, kind, expected):
    (charge,) = landed(workspace, [line(kind, "-2.5")]).values()
    assert (charge["charge_category"], charge["charge_class"], charge["charge_frequency"]) == expected
    assert charge["billed_cost"] == Decimal("-2.5")


def test_a_savings_plan_costs_what_was_committed_whether_used_or_not(workspace):
    plan = {"savings_plan_savings_plan_a_r_n": "arn:plan"}
    lines = [
        line("SavingsPlanUpfrontFee", "240", **plan),
        line(
            "SavingsPlanRecurringFee",
            "5",
            savings_plan_total_commitment_to_date="10",
            savings_plan_used_commitment="7",
            **plan,
        ),
        line("SavingsPlanCoveredUsage", "9", savings_plan_savings_plan_effective_cost="7", **plan),
        line("SavingsPlanNegation", "-9", **plan),
    ]
    lines[2]["pricing_public_on_demand_cost"] = "9"
    charges = landed(workspace, lines)
    assert [charges[n]["effective_cost"] for n in range(4)] == [0, 3, 7, 0]
    assert [charges[n]["billed_cost"] for n in range(4)] == [240, 5, 9, -9]
    assert [charges[n]["list_cost"] for n in range(4)] == [0, 0, 9, 0]
    assert [charges[n]["commitment_status"] for n in range(4)] == [None, "Unused", "Used", None]
    assert {charge["commitment_id"] for charge in charges.values()} == {"arn:plan"}


def test_without_amounts_of_use_a_commitment_tells_what_it_reserves_and_covers(workspace):
    arn = {"reservation_reservation_a_r_n": "arn:ri"}
    lines = [
        line("RIFee", "30", **arn, line_item_usage_amount="720", line_item_normalized_usage_amount="2880"),
        line("Fee", "100", **arn, reservation_start_time="2018-11-01T00:00:00Z", reservation_end_time="1572566400"),
        line("DiscountedUsage", "0", **arn, line_item_usage_amount="1", line_item_normalized_usage_amount="4"),
        line("DiscountedUsage", "0", **arn, line_item_usage_amount="0.25"),
        line("SavingsPlanCoveredUsage", "9"),
        line("SavingsPlanNegation", "-9"),
    ]
    charges = landed(workspace, lines)
    # dbt amortizes what has a quantity or a term, and takes what was billed for the rest.
    assert [charges[n]["effective_cost"] for n in range(6)] == [None, None, None, None, None, -9]
    assert [charges[n]["commitment_quantity"] for n in range(6)] == [2880, None, 4, Decimal("0.25"), None, None]
    assert [str(charges[1][f"commitment_{bound}_at"])[:10] for bound in ("start", "end")] == [
        "2018-11-01",
        "2019-11-01",
    ]
    assert charges[0]["commitment_end_at"] is None


def test_net_costs_are_a_choice(workspace):
    lines = [
        line("Usage", "10", line_item_net_unblended_cost="8"),
        line("EdpDiscount", "-2", line_item_net_unblended_cost="0"),
        line("DiscountedUsage", "0", reservation_effective_cost="5", reservation_net_effective_cost="4"),
    ]
    plain = landed(workspace, lines)
    assert [(plain[n]["billed_cost"], plain[n]["effective_cost"]) for n in range(3)] == [(10, 10), (-2, -2), (0, 5)]
    net = landed(workspace, lines, cost="net_unblended")
    assert [(net[n]["billed_cost"], net[n]["effective_cost"]) for n in range(3)] == [(8, 8), (0, 0), (0, 4)]


def test_a_savings_plan_costs_what_is_paid_for_it_after_discounts(workspace):
    plan = {"savings_plan_savings_plan_a_r_n": "arn:plan"}
    used = {"savings_plan_savings_plan_effective_cost": "700", "savings_plan_net_savings_plan_effective_cost": "630"}
    committed = {
        "savings_plan_total_commitment_to_date": "744",
        "savings_plan_used_commitment": "700",
        "savings_plan_amortized_upfront_commitment_for_billing_period": "244",
        "savings_plan_recurring_commitment_for_billing_period": "500",
    }
    net = {
        "savings_plan_net_amortized_upfront_commitment_for_billing_period": "219.6",
        "savings_plan_net_recurring_commitment_for_billing_period": "450",
    }
    lines = [
        line("SavingsPlanCoveredUsage", "900", **plan, **used),
        line("SavingsPlanNegation", "-900", **plan),
        line("SavingsPlanRecurringFee", "500", line_item_net_unblended_cost="450", **plan, **committed, **net),
    ]
    plain = landed(workspace, lines)
    assert [plain[n]["effective_cost"] for n in range(3)] == [700, 0, 44]
    after = landed(workspace, lines, cost="net_unblended")
    assert [after[n]["effective_cost"] for n in range(3)] == [630, 0, Decimal("39.6")]
    assert sum(charge["billed_cost"] for charge in after.values()) == 450
    # Without the net commitment, what AWS does say counts.
    lines[2] = line("SavingsPlanRecurringFee", "500", line_item_net_unblended_cost="450", **plan, **committed)
    assert landed(workspace, lines, cost="net_unblended")[2]["effective_cost"] == 44


def test_discounts_that_are_no_lines_are_doubted(workspace):
    """CUR 2.0 has discounts in a column, unless it was asked for lines: its unblended costs are not the invoice."""

    def doubts(*lines, **settings) -> tuple[str, ...]:
        workspace.deliver("cur.csv", as_csv(list(lines)))
        return read_bill(cur(workspace, **settings), workspace.data).found[0].doubts

    dear, cheap = (
        line(cost="10", line_item_net_unblended_cost="8"),
        line("Tax", "1", line_item_net_unblended_cost="1.0"),
    )
    assert doubts(dear, cheap) == (f"1 rows have {DISCOUNTED}",)
    assert doubts(dear, cheap, cost="net_unblended") == ()
    for net in ("0", None):
        assert doubts(dear, cheap, line("EdpDiscount", "-2", line_item_net_unblended_cost=net)) == ()
    assert doubts(line(cost="10")) == ()


def test_tags_that_differ_in_their_case_alone_are_two(workspace):
    def tagged(**tags: str) -> list[dict]:
        named = {f"resourceTags/user:{key}": value for key, value in tags.items()}
        return [line(**named, **{f"costCategory/{key}": value for key, value in tags.items()})]

    workspace.deliver("a.csv", as_csv(tagged(Team="vision", team="nlp")))
    # Another month, in which the same column is spelled otherwise.
    december = {"bill_billing_period_start_date": "2018-12-01", "bill_billing_period_end_date": "2019-01-01"}
    workspace.deliver("b.csv", as_csv([entry | december for entry in tagged(TEAM="speech")]))
    workspace.land(cur(workspace), "2018-11-01", "2019-01-01")
    found = workspace.query("select tags from {charges} order by billing_period_start_at")
    assert [json.loads(tags) for (tags,) in found] == [
        {"Team": "vision", "team": "nlp", "cost_category/Team": "vision", "cost_category/team": "nlp"},
        {"TEAM": "speech", "cost_category/TEAM": "speech"},
    ]


def test_the_column_of_all_tags_stands_in_for_that_of_resource_tags(workspace):
    everything = {
        "resourceTags/user:CostCenter": "7",
        "resourceTags/aws:eks:namespace": "nlp",
        "resourceTags/aws:createdBy": "somebody",
        "costCategory/unit": "lab",
        "accountTag/team": "vision",
    }
    expected = {"CostCenter": "7", "aws:eks:namespace": "nlp", "cost_category/unit": "lab", "accountTag/team": "vision"}
    lines = [line(tags=json.dumps(everything)), line(tags="{}"), line(tags="no map")]
    charges = landed(workspace, lines)
    assert json.loads(charges[0]["tags"]) == expected
    assert charges[1]["tags"] is None
    assert workspace.quarantined() == [(4, "tags is not a JSON object")]
    # With both, the shorter keys count, and not the same tag under two names.
    both = landed(workspace, [line(tags=json.dumps(everything), resource_tags='{"user_cost_center": "7"}')])
    assert json.loads(both[0]["tags"]) == {"cost_center": "7"}


def test_lines_of_pods_describe_and_never_add(workspace):
    pod = line(
        "Usage",
        "0",
        line_item_resource_id="arn:pod",
        pricing_public_on_demand_cost="0.3",
        split_line_item_parent_resource_id="i-1",
        split_line_item_split_cost="0.25",
        resource_tags_aws_eks_namespace="nlp",
        resource_tags_aws_created_by="somebody",
    )
    charges = landed(workspace, [line("Usage", "1"), pod])
    assert (charges[1]["billed_cost"], charges[1]["effective_cost"], charges[1]["list_cost"]) == (0, 0, None)
    assert json.loads(charges[1]["tags"]) == {
        "aws:eks:namespace": "nlp",
        "aws:split_parent_resource_id": "i-1",
        "aws:split_cost": "0.25",
    }
    assert charges[0]["tags"] is None
    report = workspace.land(cur(workspace, split_lines="skip"), "2018-11-01", "2018-12-01")
    assert (report.tables["charges"].landed, report.tables["charges"].skipped) == (1, 1)
    assert report.notes["lines of pods and tasks (split cost), skipped"] == 1


def test_ugly_lines_are_kept_aside_with_their_reason(workspace):
    known = {"identity_line_item_id": "a", "identity_time_interval": "x/y"}
    lines = [
        line(cost="1.2345678905E-3", resource_tags='{"user_team":"n,lp","aws_created_by":"me"}', **known),
        line(cost="twelve"),
        line(cost="NULL"),
        line("Gift"),
        line(line_item_usage_end_date="soon"),
        line(line_item_usage_end_date="2018-11-05T02:00:00Z"),
        line(line_item_usage_start_date="\\N"),
        line(line_item_currency_code=None),
        line(reservation_effective_cost="much"),
        line(resource_tags="[1"),
        line(bill_billing_period_end_date="2018-11-01T00:00:00Z"),
        line(cost="1.2345678905E-3", resource_tags='{"user_team":"n,lp","aws_created_by":"me"}', **known),
        line(cost="7", **known),
        line("Tax", "3", line_item_usage_start_date=None, line_item_usage_end_date=None),
    ]
    text = "\ufeff" + as_csv(lines).replace("\n", "\r\n") + "cut,off\r\n"
    workspace.deliver("cur.csv", text)
    report = workspace.land(cur(workspace), "2018-11-01", "2018-12-01")
    assert workspace.quarantined() == [
        (3, "line_item_unblended_cost is not a number: twelve"),
        (4, "line_item_unblended_cost is missing"),
        (5, "line_item_line_item_type is unknown: Gift"),
        (6, "line_item_usage_end_date is not a time: soon"),
        (7, "ends before it starts"),
        (8, "line_item_usage_start_date is missing"),
        (9, "line_item_currency_code is missing"),
        (10, "reservation_effective_cost is not a number: much"),
        (11, "resource_tags is not a JSON object"),
        (12, "the billing period is empty"),
        (13, "is the same line as line 2"),
        (16, "has 2 fields instead of 11"),
    ]
    assert report.billed == {"USD": Decimal("10.001234568")}
    assert workspace.query("select tags from {charges} where line = 2") == [('{"team":"n,lp"}',)]


def test_columns_come_and_go_and_each_file_says_what_it_is(workspace):
    workspace.deliver("a.csv", as_csv([line(cost="1", resource_tags_user_team="a")], legacy_name))
    workspace.deliver("b.csv", as_csv([line(cost="2", resource_tags_user_other="b", product='{"sku":"S"}')]))
    workspace.deliver("c.parquet", pa.table({k: [v] for k, v in line(cost="4").items()}))
    workspace.deliver("d.csv.gz", as_csv([line(cost="8")], delimiter="\x01", null="\\N"))
    report = workspace.land(cur(workspace), "2018-11-01", "2018-12-01")
    assert report.billed == {"USD": Decimal(15)}
    assert report.variants == {
        "AWS CUR, CSV": 1,
        "AWS CUR 2.0, CSV": 1,
        "AWS CUR, Parquet": 1,
        "AWS CUR, gzipped Hive text": 1,
    }
    assert workspace.query("select billed_cost::int, tags, sku_id from {charges} order by 1") == [
        (1, '{"team":"a"}', None),
        (2, '{"other":"b"}', "S"),
        (4, None, None),
        (8, None, None),
    ]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("cur.csv", "a,b\n1,2\n", "missing column bill_billing_period_start_date"),
        ("cur.csv", "", "not even a header line"),
        ("cur.csv", "BilledCost,BillingCurrency\n1,USD\n", "this is a FOCUS file"),
        ("cur.parquet", b"PAR1 and then nothing", "not a readable Parquet file"),
        ("cur.zip", b"PK\x03\x04 and then nothing", "cannot be read"),
    ],
)
def test_what_is_no_bill_is_refused_by_name(workspace, name, content, message):
    workspace.deliver(name, content)
    with pytest.raises(ApportionError, match=message) as error:
        workspace.land(cur(workspace), "2018-11-01", "2018-12-01")
    assert name in error.value.message


def legacy_name(name: str) -> str:
    return LEGACY.get(name, name)


def generated(seed: int) -> list[dict]:
    """A bill with every type of line, whose values are hard to write."""
    dice = random.Random(seed)
    kinds = ["Usage"] * 5 + ["DiscountedUsage", "RIFee", "SavingsPlanCoveredUsage", "SavingsPlanNegation"]
    kinds += ["SavingsPlanRecurringFee", "Fee", "Tax", "Credit", "Refund", "EdpDiscount"]

    def amount() -> str:
        value = dice.choice([0.0, dice.uniform(-5, 5), dice.uniform(0, 1e-7), dice.uniform(0, 1e6)])
        return repr(round(value, 12))

    lines = []
    for number in range(150):
        start = datetime(2018, 11, 1, tzinfo=UTC) + timedelta(hours=dice.randrange(700))
        end = start + timedelta(hours=1)
        entry = dict.fromkeys(LEGACY)
        entry |= line(dice.choice(kinds), amount())
        entry |= {
            "identity_line_item_id": f"id{number % 7}",
            "identity_time_interval": f"{start:%Y-%m-%dT%H:%M:%SZ}/{end:%Y-%m-%dT%H:%M:%SZ}#{number}",
            "line_item_usage_start_date": f"{start:%Y-%m-%dT%H:%M:%SZ}",
            "line_item_usage_end_date": f"{end:%Y-%m-%dT%H:%M:%SZ}",
            "line_item_usage_account_id": f"{dice.randrange(10**11):012}",
        }
        for name in LEGACY:
            if name.endswith(("_cost", "_fee", "_date", "_commitment")) and entry[name] is None and dice.random() < 0.5:
                entry[name] = amount()
        for name in ("line_item_resource_id", "line_item_line_item_description", "product_product_name"):
            entry[name] = dice.choice([None, "plain", 'a "quoted", one', "zürich ☃", "it's"])
        for name in ("resource_tags_user_team", "resource_tags_user_cost_center", "cost_category_unit", "product_sku"):
            entry[name] = dice.choice([None, "nlp", 'x "y"', "ä,b"])
        entry["reservation_reservation_a_r_n"] = dice.choice([None, "arn:ri"])
        lines.append(entry)
    return lines


def epochs(lines: list[dict]) -> list[dict]:
    def shown(name: str, value: str | None) -> str | None:
        if not name.endswith("_date") or not value or "T" not in value:
            return value
        return str(int(datetime.fromisoformat(value).timestamp() * 1000))

    return [{name: shown(name, value) for name, value in entry.items()} for entry in lines]


def folded(lines: list[dict]) -> list[dict]:
    """The lines as CUR 2.0 has them: tags, cost categories and product attributes in maps."""
    result = []
    for entry in lines:
        maps: dict[str, dict] = {"resource_tags": {}, "cost_category": {}, "product": {}, "discount": {}}
        flat = {}
        for name, value in entry.items():
            if name.startswith("resource_tags_"):
                maps["resource_tags"][name.removeprefix("resource_tags_")] = value
            elif name.startswith("cost_category_"):
                maps["cost_category"][name.removeprefix("cost_category_")] = value
            elif name in ("product_product_name", "product_region"):
                maps["product"][name.removeprefix("product_")] = value
            else:
                flat[name] = value
        result.append(flat | {name: {k: v for k, v in found.items() if v} for name, found in maps.items()})
    return result


def json_maps(lines: list[dict]) -> list[dict]:
    return [{k: json.dumps(v) if isinstance(v, dict) else v for k, v in entry.items()} for entry in lines]


def as_parquet(lines: list[dict], typed: bool) -> pa.Table:
    columns = {}
    for name in columns_of(lines):
        values = [entry.get(name) for entry in lines]
        if isinstance(values[0], dict):
            columns[name] = pa.array([list(v.items()) for v in values], pa.map_(pa.string(), pa.string()))
        elif typed and name.endswith(("_cost", "_fee", "_commitment")):
            columns[name] = pa.array([None if v is None else float(v) for v in values], pa.float64())
        elif typed and name in NOVEMBER | {"line_item_usage_start_date": 0, "line_item_usage_end_date": 0}:
            columns[name] = pa.array([datetime.fromisoformat(v).replace(tzinfo=None) for v in values])
        else:
            columns[name] = pa.array(values, pa.string())
    return pa.table(columns)


def zipped(text: str) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("cur.csv", text)
    return out.getvalue()


DIALECTS = {
    "legacy names": ("cur.csv", lambda bill: as_csv(bill, legacy_name)),
    "legacy names, gzip, NULL": ("cur.csv.gz", lambda bill: as_csv(bill, legacy_name, "NULL")),
    "legacy names, zip": ("cur.zip", lambda bill: zipped(as_csv(bill, legacy_name))),
    "snake names, epoch ms": ("cur.csv", lambda bill: as_csv(epochs(bill))),
    "tabs": ("cur.tsv", lambda bill: as_csv(bill, delimiter="\t")),
    "Hive": ("cur", lambda bill: as_csv(bill, null="\\N", delimiter="\x01")),
    "Parquet of text": ("cur.parquet", lambda bill: as_parquet(bill, typed=False)),
    "Parquet of types": ("cur.snappy.parquet", lambda bill: as_parquet(bill, typed=True)),
    "CUR 2.0 CSV": ("cur.csv.gz", lambda bill: as_csv(json_maps(folded(bill)))),
    "CUR 2.0 Parquet": ("cur.parquet", lambda bill: as_parquet(folded(bill), typed=True)),
}


@pytest.mark.parametrize("seed", [1, 2])
def test_one_bill_reads_the_same_in_every_dialect(workspace, seed):
    bill = generated(seed)
    readings = {}
    for dialect, (name, write) in DIALECTS.items():
        path = workspace.deliver(name, write(bill))
        report = workspace.land(cur(workspace), "2018-11-01", "2018-12-01")
        assert report.tables["charges"].landed == len(bill), (dialect, workspace.quarantined()[:3])
        total = sum(Decimal(entry["line_item_unblended_cost"]) for entry in bill)
        assert report.billed["USD"] == total.quantize(Decimal("1e-9"), "ROUND_HALF_UP")
        rows = workspace.query(
            "select * exclude (date, source, delivery, line, delivered_at, charge_key, is_final, tags),"
            " line - (delivery not like '%parquet')::int as place, date, tags from {charges}"
            " where line > 0 order by place, date"
        )
        readings[dialect] = [(*row[:-1], json.loads(row[-1]) if row[-1] else None) for row in rows]
        path.unlink()
    first = readings["legacy names"]
    for dialect, rows in readings.items():
        assert rows == first, dialect


@pytest.mark.parametrize("seed", range(6))
def test_a_damaged_bill_is_read_or_put_aside_and_never_lost(workspace, seed):
    # That rows read = rows landed + quarantined is asserted by the workspace on every landing.
    dice = random.Random(seed)
    whole = as_csv(generated(seed)[:60], legacy_name)
    damage = ["truncated", "doubled", "shuffled", "flipped", "latin", "doubled"][seed]
    header, *rest = whole.splitlines(keepends=True)
    if damage == "truncated":
        raw = whole.encode()[: len(whole) * 2 // 3]
    elif damage == "doubled":
        raw = (whole + (whole if seed == 1 else "".join(rest))).encode()
    elif damage == "shuffled":
        dice.shuffle(rest)
        raw = (header + "".join(rest)).encode()
    elif damage == "latin":
        raw = whole.encode("latin-1", errors="replace")
    else:
        cells = bytearray(whole.encode())
        for _ in range(20):
            cells[dice.randrange(len(header), len(cells))] ^= 1 << dice.randrange(7)
        raw = bytes(cells)
    workspace.deliver("cur.csv", raw)
    if seed == 1:
        with pytest.raises(ApportionError, match=r"line 62: the header of line 1 is there again"):
            workspace.land(cur(workspace), "2018-11-01", "2018-12-01")
        return
    report = workspace.land(cur(workspace), "2018-11-01", "2018-12-01")
    charges = report.tables["charges"]
    if damage == "doubled":
        assert (charges.landed, charges.quarantined) == (60, 60)
    elif damage in ("shuffled", "latin"):
        assert (charges.landed, charges.quarantined) == (60, 0)
    elif damage == "truncated":
        assert (charges.landed, charges.quarantined) == (charges.read - 1, 1)
    else:
        assert charges.landed >= 40
