"""Cost sheets: what finance writes down is usage of its own period."""

from __future__ import annotations

from decimal import Decimal


def test_cost_sheet_lines_are_usage_of_their_own_period(workspace):
    workspace.deliver(
        "sheet_2026.csv",
        "cost_id,description,cost_type,resource_id,pool,period_start,period_end,amount,currency,tags\n"
        'a,"Racks, two",colocation,,p1,2026-01-15,2026-02-15,-100.1234567895,CHF,"{""team"": ""x""}"\n'
        "b,Fans,other,r1,,2026-01-01,2026-02-01,12k,CHF,\n"
        "c,Fans,magic,r1,,2026-01-01,2026-02-01,12,CHF,\n"
        "d,Fans,other,r1,,2026-01-01,2026-01-01,12,CHF,\n",
    )
    source = workspace.source(
        area="billing", kind="cost_sheet", path="{data}/inbox/sheet_*.csv", provider="us", max_bad_share=1.0
    )
    report = workspace.land(source, "2026-01-01", "2026-03-01")
    assert (report.rows, report.quarantined) == (31, 3)
    assert workspace.query(
        """select distinct provider, invoice_id, billing_period_start_at::date::varchar, service_name, sku_id,
        billing_period_end_at::date::varchar, billed_cost = list_cost and billed_cost = effective_cost,
        billed_cost,
        charge_category, charge_frequency, is_final from {charges}"""
    ) == [
        (
            *("us", "us-2026-01", "2026-01-01", "colocation", "p1", "2026-03-01", True),
            *(Decimal("-100.123456790"), "Usage", "Recurring", True),
        )
    ]


def test_a_currency_is_one_however_it_is_typed(workspace):
    rows = "".join(f"{n},power,2026-01-01,2026-02-01,1.10,{typed}\n" for n, typed in enumerate(("CHF", "chf", " Chf ")))
    workspace.deliver("sheet_2026.csv", f"cost_id,cost_type,period_start,period_end,amount,currency\n{rows}")
    source = workspace.source(area="billing", kind="cost_sheet", path="{data}/inbox/sheet_*.csv")
    assert workspace.land(source, "2026-01-01", "2026-02-01").billed == {"CHF": Decimal("3.3")}


def test_rows_that_a_spreadsheet_left_empty_are_no_mistakes(workspace):
    rows = (
        "cost_id;cost_type;period_start;period_end;amount;currency\na;power;2026-01-01;2026-02-01;1;CHF\n;;;;;\n;;;;;\n"
    )
    workspace.deliver("sheet_2026.csv", rows + ";;;;5;\n")
    source = workspace.source(area="billing", kind="cost_sheet", path="{data}/inbox/sheet_*.csv", max_bad_share=1.0)
    charges = workspace.land(source, "2026-01-01", "2026-02-01").tables["charges"]
    assert (charges.landed, charges.skipped, charges.quarantined) == (1, 2, 1)
    assert workspace.quarantined() == [(5, "cost_id is missing")]
