"""A newer bill replaces the older one of its billing period as a unit, and history keeps both."""

from __future__ import annotations

from decimal import Decimal

import pytest

from orchestration.errors import ApportionError

HEADER = (
    "ProviderName,BillingAccountId,ChargeCategory,BillingCurrency,BilledCost,EffectiveCost,"
    "ChargePeriodStart,ChargePeriodEnd,BillingPeriodStart,BillingPeriodEnd"
)


def line(cost: str, charged: str, month: str = "2026-01", category: str = "Usage") -> str:
    start = f"{charged}T00:00:00Z"
    next_day = f"{charged[:8]}{int(charged[8:]) + 1:02}T00:00:00Z"
    following = f"{month[:5]}{int(month[5:]) + 1:02}"
    return f"Nebula,a-1,{category},USD,{cost},{cost},{start},{next_day},{month}-01T00:00:00Z,{following}-01T00:00:00Z"


def bill(*lines: str) -> str:
    return "\n".join([HEADER, *lines]) + "\n"


@pytest.fixture
def focus(workspace):
    return workspace.source(area="billing", kind="focus", path="{data}/inbox/**/*.csv")


def costs(workspace) -> list[tuple[str, Decimal]]:
    return workspace.query(
        "select date::varchar, sum(billed_cost) from {charges} where charge_category = 'Usage' group by 1 order by 1"
    )


@pytest.mark.parametrize(
    "names",
    [
        ("run-1/report-00001.csv", "run-1/report-00002.csv", "run-1/report-00003.csv"),
        ("part_0_0001.csv", "part_1_0001.csv", "part_2_0001.csv"),
        ("export-000000000000.csv", "export-000000000001.csv", "export-000000000002.csv"),
    ],
)
def test_parts_of_one_export_stand_beside_each_other(workspace, focus, names):
    for minute, name in enumerate(names):
        workspace.deliver(name, bill(line("1.5", f"2026-01-0{minute + 1}")), mtime=f"2026-02-01T00:0{minute}:00")
    workspace.land(focus, "2026-01-01", "2026-02-01")
    assert costs(workspace) == [(f"2026-01-0{day}", Decimal("1.5")) for day in (1, 2, 3)]

    # The next run of the export, in a folder of its own, replaces all parts of the older one.
    workspace.deliver("run-2/report-00001.csv", bill(line("7", "2026-01-02")), mtime="2026-02-03T00:00:00")
    workspace.land(focus, "2026-01-01", "2026-02-01")
    assert costs(workspace) == [("2026-01-02", Decimal(7))]


def test_versions_with_small_numbers_are_no_parts(workspace, focus):
    workspace.deliver("bill-1.csv", bill(line("1", "2026-01-01")), mtime="2026-02-01T00:00:00")
    workspace.deliver("bill-2.csv", bill(line("2", "2026-01-01")), mtime="2026-02-02T00:00:00")
    workspace.land(focus, "2026-01-01", "2026-02-01")
    assert costs(workspace) == [("2026-01-01", Decimal(2))]


@pytest.mark.parametrize("run", ["20260101-20260201", "20260101-20260201/eb3c690f-eeaa-4781-b701-4fd32f8ab19f"])
def test_in_the_folders_of_aws_small_numbers_are_parts(workspace, run):
    source = workspace.source(area="billing", kind="focus", path="{data}/inbox/**/*.csv.gz")
    for part in (1, 2, 10):
        content = bill(line("1.5", f"2026-01-{part:02}"))
        workspace.deliver(f"{run}/hourly-{part}.csv.gz", content, mtime=f"2026-02-01T00:{part:02}:00")
    workspace.land(source, "2026-01-01", "2026-02-01")
    assert costs(workspace) == [(f"2026-01-{day:02}", Decimal("1.5")) for day in (1, 2, 10)]


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("20260101-20260201/20260110T120000Z", "20260101-20260201/20260203T060000Z"),
        ("BILLING_PERIOD=2026-01/2026-01-10T12:00:00.000Z-b7", "BILLING_PERIOD=2026-01/2026-02-03T06:00:00.123Z-a1"),
        ("daily/20260101-20260131/202601101200/b7", "daily/20260101-20260131/202602030600/a1"),
    ],
)
def test_the_folder_of_a_run_says_when_it_was_made_where_copies_have_lost_their_times(workspace, focus, older, newer):
    workspace.deliver(f"{newer}/part_0_0001.csv", bill(line("2", "2026-01-02")), mtime="2026-03-01T00:00:00")
    workspace.deliver(f"{newer}/part_1_0001.csv", bill(line("3", "2026-01-03")), mtime="2026-03-01T00:00:01")
    workspace.deliver(f"{older}/part_0_0001.csv", bill(line("1", "2026-01-02")), mtime="2026-03-01T00:00:02")
    workspace.land(focus, "2026-01-01", "2026-02-01")
    assert costs(workspace) == [("2026-01-02", Decimal(2)), ("2026-01-03", Decimal(3))]


def test_a_late_line_of_the_next_bill_outlives_a_new_version_of_the_month_it_charges(workspace, focus):
    workspace.deliver("focus_2026-01_20260203T000000Z.csv", bill(line("10", "2026-01-30")))
    february = bill(line("3", "2026-01-30", month="2026-02"), line("20", "2026-02-02", month="2026-02"))
    workspace.deliver("focus_2026-02_20260303T000000Z.csv", february)
    workspace.land(focus, "2026-01-01", "2026-03-01")
    assert costs(workspace) == [("2026-01-30", Decimal(13)), ("2026-02-02", Decimal(20))]

    workspace.deliver("focus_2026-01_20260310T000000Z.csv", bill(line("11", "2026-01-30")))
    workspace.land(focus, "2026-01-01", "2026-03-01")
    assert costs(workspace) == [("2026-01-30", Decimal(14)), ("2026-02-02", Decimal(20))]


def test_bills_that_add_up_replace_nothing(workspace):
    daily = workspace.source(area="billing", kind="focus", path="{data}/inbox/*.csv", replaces="nothing")
    for day in (1, 2):
        workspace.deliver(f"reports_{day}.csv", bill(line("5", f"2026-01-0{day}")), mtime=f"2026-01-1{day}T00:00:00")
    workspace.land(daily, "2026-01-01", "2026-02-01")
    assert costs(workspace) == [("2026-01-01", Decimal(5)), ("2026-01-02", Decimal(5))]


def test_history_keeps_every_delivery_with_its_hash_period_rows_and_total(workspace, focus):
    first = workspace.deliver(
        "focus_2026-01_20260203T000000Z.csv", bill(line("10", "2026-01-30"), line("x", "2026-01-30"))
    )
    generous = focus.model_copy(update={"max_bad_share": 0.5})
    workspace.land(generous, "2026-01-01", "2026-02-01")
    first.unlink()
    workspace.deliver("focus_2026-01_20260207T000000Z.csv", bill(line("12.5", "2026-01-30"), line("-1", "2026-01-29")))
    for _ in range(2):
        workspace.land(generous, "2026-01-01", "2026-02-01")
    found = workspace.query(
        "select delivery, length(content_hash), rows, quarantined, period_start_date::varchar,"
        " period_end_date::varchar, currency, billed_cost, replaces, variant from {deliveries} order by delivered_at"
    )
    period = ("2026-01-01", "2026-02-01", "USD")
    assert found == [
        ("focus_2026-01_20260203T000000Z.csv", 64, 1, 1, *period, Decimal(10), "billing_period", found[0][-1]),
        ("focus_2026-01_20260207T000000Z.csv", 64, 2, 0, *period, Decimal("11.5"), "billing_period", found[0][-1]),
    ]
    assert found[0][-1].startswith("FOCUS")


LOCAL = "2026-03-01T00:00:00+01:00,2026-04-01T00:00:00+02:00"
MARCH_LINE = "Nebula,a-1,Usage,USD,10,10,2026-03-05T00:00:00Z,2026-03-06T00:00:00Z"


@pytest.mark.parametrize(
    "names",
    [
        ("a.csv", "b.csv"),
        ("a_2026-03_20260402T000000Z.csv", "a_2026-03_20260403T000000Z.csv"),
        ("a.csv", "a_2026-03_20260403T000000Z.csv"),
    ],
)
def test_a_month_that_begins_at_local_midnight_is_replaced_like_any_other(workspace, focus, names):
    for day, name in enumerate(names, start=1):
        workspace.deliver(name, bill(f"{MARCH_LINE},{LOCAL}"), mtime=f"2026-04-0{day}T00:00:00")
    workspace.land(focus, "2026-03-01", "2026-04-01")
    assert costs(workspace) == [("2026-03-05", Decimal(10))]


@pytest.mark.parametrize("window", ["2026-02", "2026-02-01_2026-02-28", "2026-01_2026-02", "2026-01-01-2026-02-28"])
def test_a_bill_with_late_lines_of_the_month_before_is_replaced_as_a_whole(workspace, focus, window):
    """Also where its name says one month, days with the last one included, or several months."""
    old = bill(line("5", "2026-01-30"), line("20", "2026-02-02", month="2026-02"))
    new = bill(line("5", "2026-01-30"), line("21", "2026-02-02", month="2026-02"))
    workspace.deliver(f"focus_{window}_20260303T000000Z.csv", old)
    _, seen = workspace.touched(focus)
    workspace.land(focus, "2026-01-01", "2026-03-01")
    assert costs(workspace) == [("2026-01-30", Decimal(5)), ("2026-02-02", Decimal(20))]

    workspace.deliver(f"focus_{window}_20260310T000000Z.csv", new)
    workspace.land(focus, "2026-01-01", "2026-03-01")
    assert costs(workspace) == [("2026-01-30", Decimal(5)), ("2026-02-02", Decimal(21))]
    assert {"2026-01-30", "2026-02-02"} <= set(workspace.touched(focus, seen)[0])


@pytest.mark.parametrize(
    "names", [("a.csv", "b.csv"), ("a.csv", "a.csv.gz"), ("bill_2026-02-03.csv", "bill_2026-02-04.csv")]
)
def test_the_same_bill_under_two_names_is_refused_where_both_would_count(workspace, names):
    source = workspace.source(area="billing", kind="focus", path="{data}/inbox/*.csv*")
    for name in names:
        workspace.deliver(name, bill(line("10", "2026-01-30"), line("2", "2026-01-29")))
    with pytest.raises(ApportionError, match=f"{names[1]}: says line for line the same as .*{names[0]}"):
        workspace.land(source, "2026-01-01", "2026-02-01")
    # A copy that is newer just takes the place of the first.
    workspace.deliver("z.csv", bill(line("10", "2026-01-30"), line("2", "2026-01-29")), mtime="2026-03-02T00:00:00")
    if names[0][0] == "a":
        workspace.land(source, "2026-01-01", "2026-02-01")
        assert costs(workspace) == [("2026-01-29", Decimal(2)), ("2026-01-30", Decimal(10))]


def test_amounts_beyond_reason_are_put_aside_and_do_not_stop_the_rest(workspace, focus):
    huge = [line("99999999999999999999", "2026-01-30")] * 3
    workspace.deliver("a.csv", bill(line("10", "2026-01-30"), *huge))
    workspace.land(focus.model_copy(update={"max_bad_share": 1}), "2026-01-01", "2026-02-01")
    assert costs(workspace) == [("2026-01-30", Decimal(10))]
    assert [number for number, _ in workspace.quarantined()] == [3, 4, 5]


def test_history_knows_a_delivery_by_name_and_time(workspace, focus):
    """A file that is touched comes again; one that is corrected in its place is the same delivery."""
    workspace.deliver("a.csv", bill(line("10", "2026-01-30")), mtime="2026-02-03T00:00:00")
    workspace.land(focus, "2026-01-01", "2026-02-01")
    workspace.deliver("a.csv", bill(line("11", "2026-01-30"), line("1", "2026-01-29")), mtime="2026-02-03T00:00:00")
    workspace.land(focus, "2026-01-01", "2026-02-01")
    found = "select delivered_at::date::varchar, sum(billed_cost) from {deliveries} group by 1 order by 1"
    assert workspace.query(found) == [("2026-02-03", Decimal(12))]
    workspace.deliver("a.csv", bill(line("11", "2026-01-30"), line("1", "2026-01-29")), mtime="2026-02-04T00:00:00")
    workspace.land(focus, "2026-01-01", "2026-02-01")
    assert workspace.query(found) == [("2026-02-03", Decimal(12)), ("2026-02-04", Decimal(12))]
