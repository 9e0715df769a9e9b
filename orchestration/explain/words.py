"""How the arithmetic of a line reads: formatting alone, every number comes from the warehouse."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal

from orchestration.explain.receipt import Block, Line, Policy, Step, Weighing

QUANTITY = {"gpu": "GPU-h", "cpu": "core-h", "memory": "GiB-h", "energy": "kWh"}
IN_THE_NAME = {
    "pool_id", "component", "idle_cause", "workload_class", "gpu_model", "rule_order", "adjustment_id", "state",
}  # fmt: skip
"""Columns that the name of a policy row says already, where they are its key."""
NOT_SETTINGS = {"valid_from", "valid_to", "reason", "approved_by"}
NOT_RECOMPUTED = {
    "idle": "as booked: the facts do not hold who reserved which node, or the energy behind these weights",
    "outcome_credit": "as booked: the facts do not hold when within an hour a run was there",
    "direct": "as booked: the facts do not hold what this driver measured to the last digit",
}


def money(amount: Decimal) -> str:
    return f"{amount:,.9f}"


def short(amount: Decimal) -> str:
    """All of its digits, but no zeros at the end beyond cents."""
    whole, _, decimals = f"{amount:,.9f}".partition(".")
    return f"{whole}.{decimals.rstrip('0').ljust(2, '0')}"


def number(value: Decimal | int) -> str:
    """Up to six decimals; dots say that there are more."""
    rounded = round(Decimal(value), 6)
    text = f"{rounded:,.6f}".rstrip("0").rstrip(".")
    return text if rounded == value else f"{text}…"


def clock(moment: datetime) -> str:
    return f"{moment:%H:%M}"


def duration(seconds: Decimal) -> str:
    minutes, rest = divmod(seconds, 60)
    hours, minutes = divmod(int(minutes), 60)
    parts = [(hours, "h"), (minutes, "min"), (rest.normalize() if rest else 0, "s")]
    return " ".join(f"{amount:f} {unit}" if unit == "s" else f"{amount} {unit}" for amount, unit in parts if amount)


def label(line: Line) -> str:
    kind = line.allocation_kind.replace("_", " ")
    return f"{kind}, {line.idle_cause}" if line.idle_cause else kind


def sentences(line: Line, block: Block, with_reasons: bool) -> list[str]:
    """The steps of a line, each with its example and how many there are, and who is on the other side of a transfer."""
    told = [_sentence(step, line, block) for step in line.steps]
    if not told or (with_reasons and line.allocation_kind == "idle"):
        told += line.reasons
    if not line.is_recomputed:
        part = "partly " if line.steps else ""
        told.append(part + NOT_RECOMPUTED.get(line.allocation_kind, "as booked"))
    if line.counterparties:
        told.append(f"on the other side: {', '.join(line.counterparties)}")
    return told


def _sentence(step: Step, line: Line, block: Block) -> str:
    text = f"{_when(step, block)}{_arithmetic(step)}"
    if step.count > 1:
        others = step.count - 1
        return f"{text} = {money(step.amount)}, and {others} more {_noun(step)}{'s' if others > 1 else ''}"
    # The amount of a single step stands at the end of the line already.
    return text if step.amount == line.recomputed else f"{text} = {money(step.amount)}"


def _when(step: Step, block: Block) -> str:
    day = "" if block.usage_date else f"{step.usage_date} "
    if step.hour_at:
        return f"{day}{clock(step.hour_at)}: "
    return f"{day.strip()}: " if day else ""


def _noun(step: Step) -> str:
    if step.hour_at:
        return "hour"
    return "step" if step.rule == "peak/day" else "day"


def _arithmetic(step: Step) -> str:
    fraction = _fraction(step)
    match step.step:
        case "direct":
            return f"used cost {fraction}"
        case "owned":
            return f"{short(step.whole)}: the bill names the owner"
        case "driver":
            return f"cost {fraction}"
        case "idle":
            return _idle(step, fraction)
        case "ceiling":
            return (
                f"at most {number(step.value * 100)} % of the pool's {short(step.base)}, so {fraction} charged without"
                " the ceiling"
            )
        case "shared":
            return f"overhead {fraction}" if step.rule else f"{short(step.whole)}"
        case "due":
            return (
                f"the team used {number(step.used_hours)} GPU-h, entitled {number(step.entitled_hours)};"
                f" due {fraction} of {step.rule} use, less {short(step.less)} charged"
            )
        case "carried":
            return f"of the team's {fraction}"
        case "borrowed" | "lent":
            side = "above" if step.step == "borrowed" else "below"
            return (
                f"{short(step.base)} × {number(step.used_hours)} lent ÷ {number(step.entitled_hours)} GPU-h × lender"
                f" share {number(step.value)} = {short(step.whole)}; of that {fraction} {side} entitlement"
            )
        case "lost":
            return f"lost the last {duration(step.value)}; cost {fraction} of the hour"
        case "percent":
            return f"{number(step.value)} % of {short(step.base)} in scope; of that {fraction}"
        case "rate":
            return (
                f"{short(step.value)} per GPU-h × {number(step.used_hours)} GPU-h in scope; of that {fraction},"
                f" less its cost {short(step.less)}"
            )
        case "amount":
            return f"its part of {short(step.value)} on this day" + (
                f", {fraction}" if step.weight != step.total else ""
            )
        case _:
            return f"carries what the others were given, {fraction}"


def _idle(step: Step, fraction: str) -> str:
    match step.rule:
        case "proportional/day":
            return f"of the day's {fraction}"
        case "proportional/hour":
            return f"of the hour's {fraction}"
        case "even/day":
            return f"of the day's {fraction} that used the pool"
        case "entitlement/day":
            return f"of the day's {fraction}"
        case "owner/day":
            return f"the day's {short(step.whole)}: owner of the pool"
        case "peak/day" if step.used_hours is not None:
            reach = f"{number(step.used_hours)} {step.reach_unit}"
            return f"of the step up to {reach} in the highest hour, {fraction} that reach it"
        case _:
            return f"the day's {short(step.whole)}"


def _fraction(step: Step) -> str:
    """`whole × weight ÷ total unit`, and the running shares where their difference shows in the last decimal."""
    weight, total = Decimal(step.weight) / step.per_unit, Decimal(step.total) / step.per_unit
    text = f"{short(step.whole)} × {number(weight)} ÷ {number(total)} {step.unit or ''}".rstrip()
    part = step.share_up_to - step.share_before if step.share_up_to is not None else None
    if part is not None and part != step.quotient:
        text += f" (running shares {short(step.share_up_to)} − {short(step.share_before)})"
    return text


def weighing(weighed: Weighing, block: Block) -> str:
    classes = " and ".join(number(weight) for weight in weighed.class_weights)
    text = (
        f"{_at(weighed, block)}{number(weighed.held)} {weighed.held_unit} held × {classes} for the class"
        f" {weighed.workload_class}"
    )
    return text if weighed.activity is None else f"{text} × {number(weighed.activity)} activity"


def _at(weighed: Weighing, block: Block) -> str:
    day = "" if block.usage_date else f"{weighed.usage_date} "
    return f"{day}{clock(weighed.hour_at)}: "


def settings(policy: Policy) -> str:
    """What a policy row sets, without what its name says already."""
    seed = policy.policy_row.partition("/")[0]
    named = IN_THE_NAME | ({"team_id"} if seed in ("entitlements", "overhead_shares") else set())
    if seed == "workload_rules":
        named -= {"workload_class"}
    if seed == "adjustments":
        named -= {"pool_id", "component", "workload_class"}
    if seed == "cost_rules":
        named -= {"pool_id", "component"}
    told = []
    for name, value in policy.settings.items():
        if value is None or value is False or name in named | NOT_SETTINGS:
            continue
        shown = number(Decimal(str(value))) if isinstance(value, float) else value
        told.append(name if value is True else f"{name} {shown}")
    return ", ".join(told)
