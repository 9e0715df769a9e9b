"""A receipt on a terminal, or in a pipe: one block per pool and component, and the policies that it names as notes."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from orchestration.explain import words
from orchestration.explain.receipt import SHOWN_BILLS, Block, Line, Policy, Receipt, policy_rows_of
from orchestration.explain.subjects import Run, Team
from orchestration.explain.words import money, number, short

SHOWN_POOLS = 5


class Notes:
    """The policies that the printed part of a receipt names, numbered in the order in which it does."""

    def __init__(self, receipt: Receipt, blocks: Sequence[Block]) -> None:
        named = policy_rows_of(receipt.subject, blocks)
        self.policies = [receipt.policies[name] for name in named]
        self._numbers = {name: number for number, name in enumerate(named, start=1)}

    def mark(self, *names: str | None) -> str:
        numbers = sorted({self._numbers[name] for name in names if name in self._numbers})
        return f" [{', '.join(str(number) for number in numbers)}]" if numbers else ""


EQUAL, DIFFERENT, AS_BOOKED = Text("✓", "green"), Text("≠", "bold red"), Text("·", "yellow")


def print_run(receipt: Receipt, console: Console) -> None:
    run: Run = receipt.subject
    end = "UTC, still running" if run.is_running else f"to {run.end_at:%Y-%m-%d %H:%M:%S} UTC"
    notes = Notes(receipt, receipt.blocks)
    _title(console, f"Job {run.job_id or run.job_key}", run.job_name)
    _fact(console, "run", f"{run.job_key}, {run.state or 'of unknown state'}")
    _fact(console, "time", f"{run.start_at:%Y-%m-%d %H:%M:%S} {end}, {_counted(run.gpus, 'GPU')}")
    payer = " / ".join(part for part in (run.team_id, run.project_id, run.user_name) if part)
    _fact(console, "payer", payer + notes.mark(run.payer_rule))
    _fact(console, "class", run.workload_class + notes.mark(run.workload_rule))
    for block in receipt.blocks:
        _print_block(block, notes, console)
    _print_end(receipt, "run", console)
    _print_policies(notes.policies, console)


def print_team(receipt: Receipt, month_days: int, pool: str | None, console: Console) -> None:
    team: Team = receipt.subject
    _title(console, f"Team {team.team_name}", team.team_id)
    days = receipt.days
    span = str(days[0]) if len(days) == 1 else f"{days[0]} to {days[-1]}"
    built = f", {len(days)} of the month's {month_days} days are built" if len(days) not in (1, month_days) else ""
    _fact(console, "days", span + built)
    details = [team.team_path, f"cost centre {team.cost_centre}" if team.cost_centre else None]
    if team.teams_below:
        details.append(f"without the teams below it: {', '.join(team.teams_below)}")
    _fact(console, "team", ", ".join(detail for detail in details if detail))
    _print_overview(receipt, console)
    worked = [block for block in receipt.blocks if block.pool_id == pool] if pool else _largest(receipt)
    notes = Notes(receipt, worked)
    for block in worked:
        _print_block(block, notes, console, with_reasons=team.is_built_in)
    if len(worked) < len(receipt.blocks) and not pool:
        console.print(
            f"\nShown is the largest component of the {len(worked)} largest pools; --pool shows all of a pool."
            " Every row of the table was worked out."
        )
    _print_end(receipt, "team", console)
    _print_policies(notes.policies, console)


def print_runs(runs: Sequence[Run], name: str, console: Console) -> None:
    console.print(Text(f"{name} has {len(runs)} runs; explain one of them by its key:"))
    table = Table(box=SIMPLE_HEAD)
    for column in ("key", "id", "state", "start", "GPUs"):
        table.add_column(column, justify="right" if column == "GPUs" else "left", overflow="fold")
    for run in runs:
        cells = (run.job_key, run.job_id or "", run.state or "", f"{run.start_at:%Y-%m-%d %H:%M}", number(run.gpus))
        table.add_row(*(Text(cell) for cell in cells))
    console.print(table)


# --- parts -------------------------------------------------------------------------------------------------


def _print_overview(receipt: Receipt, console: Console) -> None:
    """Per pool and component, what each kind of cost comes to; every row is worked out again."""
    table = Table(box=SIMPLE_HEAD)
    table.add_column("pool", overflow="fold")
    table.add_column("component", no_wrap=True)
    for column in ("direct", "idle", "transfers", "shared", "total"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    for row in receipt.overview:
        amounts = (row.direct, row.idle, row.transfers, row.shared)
        table.add_row(
            Text(row.pool_id),
            row.component,
            *(f"{amount:,.2f}" if amount else "–" for amount in amounts),
            f"{row.total:,.2f} {row.currency}",
            EQUAL if row.agrees else DIFFERENT,
        )
    console.print(table)


def _largest(receipt: Receipt) -> list[Block]:
    """The largest component of each pool, of the pools where most is paid."""
    largest: dict[str, Block] = {}
    for block in receipt.blocks:
        known = largest.get(block.pool_id)
        if known is None or abs(block.booked) > abs(known.booked):
            largest[block.pool_id] = block
    return sorted(largest.values(), key=lambda block: abs(block.booked), reverse=True)[:SHOWN_POOLS]


def _print_block(block: Block, notes: Notes, console: Console, with_reasons: bool = False) -> None:
    where = [str(block.usage_date)] if block.usage_date else []
    console.print()
    console.print(Rule(Text(" · ".join([*where, block.pool_id, block.component, block.currency])), align="left"))
    table = Table.grid(padding=(0, 1), expand=True)
    table.add_column(style="bold", max_width=24, overflow="fold")
    table.add_column(ratio=1, overflow="fold")
    table.add_column(justify="right", no_wrap=True)
    table.add_column(no_wrap=True)
    if block.bills:
        # Only where capacity was bought does the bill have hours to compare with.
        ties = block.hours is None or block.hours.cost == block.billed
        table.add_row("billed", Text(_bills(block, notes)), money(block.billed), EQUAL if ties else DIFFERENT)
    if block.hours:
        table.add_row("pool-hours", _spent(block), money(block.hours.cost), "")
    if block.example:
        table.add_row("rate", _rate(block), "", "")
    if block.weighing:
        marks = notes.mark(*block.weighing.weight_rows)
        table.add_row("weight", Text(words.weighing(block.weighing, block) + marks), "", "")
    for line in block.lines:
        label, told, amount, mark = _line(block, line, notes, with_reasons)
        table.add_row(Text(label), Text(told), amount, mark)
    if len(block.lines) > 1:
        table.add_row("sum", "", Text(money(block.recomputed), "bold"), EQUAL if block.agrees else DIFFERENT)
    console.print(table)


def _line(block: Block, line: Line, notes: Notes, with_reasons: bool) -> tuple[str, str, str, Text]:
    label = words.label(line) + notes.mark(*line.policy_rows, *(row for step in line.steps for row in step.weight_rows))
    told = words.sentences(line, block, with_reasons)
    mark = EQUAL if line.is_recomputed else AS_BOOKED
    if not line.agrees:
        days = ", ".join(str(day) for day in sorted(line.differing_days)[:3])
        told.append(f"the books say {money(line.booked)}; it differs on {days}")
        mark = DIFFERENT
    return label, "\n".join(told), money(line.recomputed), mark


def _bills(block: Block, notes: Notes) -> str:
    shown = [
        f"{bill.description} {short(bill.cost)}"
        + (f" in {bill.line_count:,} lines" if bill.line_count > 1 else "")
        + notes.mark(bill.cost_rule)
        for bill in block.bills[:SHOWN_BILLS]
    ]
    more = len(block.bills) - len(shown)
    return "; ".join(shown) + (f"; and {more} more" if more else "")


def _spent(block: Block) -> str:
    parts = []
    for cause, cost in block.hours.costs.items():
        quantity = block.hours.quantities[cause]
        if cost or quantity:
            held = f"{number(round(quantity, 3))} {words.QUANTITY[block.component]} = " if quantity is not None else ""
            parts.append(f"{cause} {held}{short(cost)}")
    return f"{_counted(block.hours.hour_count, 'hour')}: " + (", ".join(parts) or "no capacity is known")


def _rate(block: Block) -> str:
    example, unit = block.example, words.QUANTITY[block.component]
    day = "" if block.usage_date else f"{example['hour_at']:%Y-%m-%d} "
    text = f"{day}{words.clock(example['hour_at'])}: cost {short(example['cost'])}"
    if not example["capacity_hours"]:
        return f"{text}, of which used {short(example['used_cost'])}"
    return (
        f"{text} ÷ {number(example['capacity_hours'])} {unit} = {short(example['rate'])} per {unit};"
        f" used {number(example['used_hours'])} {unit} = {short(example['used_cost'])}"
    )


def _print_end(receipt: Receipt, what: str, console: Console) -> None:
    console.print()
    if not receipt.blocks:
        console.print(f"Nothing is charged to this {what} on these days.")
    for total in receipt.totals:
        shown = f" ({money(total.as_booked)} of it shown as booked)" if total.as_booked else ""
        # The totals can agree by chance while lines do not.
        if receipt.agrees:
            tail, style = "worked out again from the facts: the books say the same, to the last decimal", "green"
        else:
            tail, style = f"worked out again from the facts; the books say {money(total.booked)}", "bold red"
        line = Text(f"Total {money(total.recomputed)} {total.currency}", "bold")
        console.print(line.append(f", {tail}{shown}", style), soft_wrap=True)
    if not all(line.is_recomputed for block in receipt.blocks for line in block.lines):
        console.print("· marks what is shown as booked: the facts do not hold all that its rule looked at.")
    if receipt.stale_days:
        first, last = receipt.stale_days[0], receipt.stale_days[-1]
        days = str(first) if first == last else f"{len(receipt.stale_days)} days from {first} to {last}"
        console.print(
            f"The policy has changed since {days} {'was' if first == last else 'were'} built:"
            " run again (apportion status lists such days) or read the amounts as those of the old policy.",
            style="bold red" if not receipt.agrees else "yellow",
        )


def _print_policies(policies: Sequence[Policy], console: Console) -> None:
    if not policies:
        return
    table = Table.grid(padding=(0, 1))
    table.add_column(justify="right", no_wrap=True)
    table.add_column(overflow="fold")
    for place, policy in enumerate(policies, start=1):
        text = Text(policy.policy_row, "bold")
        sets = words.settings(policy)
        text.append(f"  {sets}" if sets else "", "not bold")
        text.append(f"\n“{policy.reason}”" if policy.reason else "\nno longer among the policies", "not bold italic")
        table.add_row(Text(f"[{place}]"), text)
    console.print()
    console.print(Rule(Text("policies"), align="left"))
    console.print(table)


def _counted(count: Decimal | int, what: str) -> str:
    return f"{number(count)} {what}{'' if count == 1 else 's'}"


def _title(console: Console, title: str, name: str | None) -> None:
    text = Text(title, "bold")
    console.print(text.append(f"  {name}" if name else "", "not bold dim"))


def _fact(console: Console, name: str, value: str) -> None:
    console.print(Text(f"  {name:<6} ", "dim").append(value, "not dim"))
