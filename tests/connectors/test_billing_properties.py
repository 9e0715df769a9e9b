"""Any bill in any dialect reads back equal; a damaged one is read right, put aside or refused, and nothing is lost."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from decimal import Decimal, InvalidOperation

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from orchestration.connectors.tables import CUT_OFF
from orchestration.errors import ApportionError
from tests.connectors.bills import CARRIER, DIALECTS, MONTH, Charge, Dialect, bills, nine
from tests.connectors.readings import ReadBill, read_bill

QUICK = {
    "deadline": None,
    "derandomize": True,
    "phases": [Phase.generate],  # a bill is small enough to be looked at as it is
    "database": None,
    "suppress_health_check": [HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
}


def read(workspace, dialect: Dialect, content: bytes) -> ReadBill:
    inbox = workspace.data / "inbox"
    inbox.mkdir(exist_ok=True)
    (inbox / dialect.file).write_bytes(content)
    source = workspace.source(
        area="billing", kind=dialect.kind, path="{data}/inbox/" + dialect.file, **dict(dialect.settings)
    )
    return read_bill(source, workspace.data)


def said(charge: dict) -> tuple:
    names = ("charge_category", "charge_class", "billed_cost", "currency", "charge_start_at", "charge_end_at")
    names += ("charge_description", "resource_id")
    return (*(charge[name] for name in names), json.loads(charge["tags"]) if charge["tags"] else {})


def in_order(bill: ReadBill) -> list[tuple]:
    lines = sorted(bill.charges, key=lambda charge: charge["line"])
    return [said(charge) for charge in lines if charge["charge_description"] != CARRIER]


def counted(charges: Iterable[tuple]) -> Counter[tuple]:
    return Counter((*charge[:-1], frozenset(charge[-1].items())) for charge in charges)


@pytest.mark.parametrize("name", DIALECTS)
@settings(max_examples=3, **QUICK)
@given(bill=bills)
def test_any_bill_reads_back_equal_in_every_dialect(workspace, name: str, bill: Sequence[Charge]):
    dialect = DIALECTS[name]
    sayable = dialect.can_say(bill)
    found = read(workspace, dialect, dialect.write(sayable))
    assert found.bad == {}
    assert in_order(found) == [dialect.expected(charge) for charge in sayable]


def read_or_refused(workspace, dialect: Dialect, content: bytes) -> ReadBill | None:
    """What a damaged file is read as; None if it is refused, which must name the file."""
    try:
        return read(workspace, dialect, content)
    except ApportionError as error:
        refused = error
    assert dialect.file in refused.message
    return None


TEXTS = ["FOCUS 1.0 CSV", "CUR legacy CSV", "GCP JSON lines", "GCP concatenated", "Azure EA", "cost sheet"]
PACKED = ["FOCUS 1.1 gzip, NULL", "FOCUS 1.2 zip", "GCP indented gzip"]
PARQUETS = ["FOCUS 1.3 Parquet of text", "GCP Parquet", "Azure MCA Parquet"]
place = st.floats(0, 1, exclude_max=True)


@pytest.mark.parametrize("name", TEXTS)
@settings(max_examples=6, **QUICK)
@given(bill=bills, share=place)
def test_a_truncated_text_gives_all_that_is_whole_and_says_that_its_end_is_missing(workspace, name, bill, share):
    dialect = DIALECTS[name]
    sayable = dialect.can_say(bill)
    whole = dialect.write(sayable)
    cut = int(share * len(whole))
    ends = [len(dialect.write(sayable[: n + 1])) for n in range(len(sayable))]
    complete = sum(end <= cut for end in ends)
    found = read_or_refused(workspace, dialect, whole[:cut])
    if found is None:
        assert complete == 0
        return
    charges = in_order(found)
    assert charges[:complete] == [dialect.expected(charge) for charge in sayable[:complete]]
    if charges[complete:]:
        # A last row that has all its fields may have lost the end of the last one: only a doubt can tell.
        assert len(charges) == complete + 1
        assert CUT_OFF in found.found[0].doubts


@pytest.mark.parametrize("name", [*PACKED, *PARQUETS])
@settings(max_examples=4, **QUICK)
@given(bill=bills, share=place)
def test_a_truncated_archive_or_parquet_file_is_refused(workspace, name, bill, share):
    dialect = DIALECTS[name]
    whole = dialect.write(dialect.can_say(bill))
    assert read_or_refused(workspace, dialect, whole[: int(share * len(whole))]) is None


@pytest.mark.parametrize("name", [*TEXTS, *PACKED[:1], *PARQUETS[:1]])
@settings(max_examples=2, **QUICK)
@given(bill=bills)
def test_a_doubled_file_counts_once_or_twice_or_is_refused_and_says_which(workspace, name, bill):
    dialect = DIALECTS[name]
    sayable = dialect.can_say(bill)
    whole = dialect.write(sayable)
    once = [dialect.expected(charge) for charge in sayable]
    found = read_or_refused(workspace, dialect, whole + whole)
    if found is None:
        assert "CSV" in name or name in ("Azure EA", "cost sheet", *PACKED)  # the header is there again
    else:
        assert in_order(found) in (once, once + once)
        assert found.bad == {}


@pytest.mark.parametrize("name", ["FOCUS 1.0 CSV", "CUR legacy CSV", "GCP JSON lines", "Azure EA", "cost sheet"])
@settings(max_examples=3, **QUICK)
@given(bill=bills, random=st.randoms(use_true_random=False))
def test_shuffled_and_repeated_lines_are_the_same_charges(workspace, name, bill, random):
    dialect = DIALECTS[name]
    flat = [charge.on_one_line() for charge in dialect.can_say(bill)]
    lines = (dialect.write(flat).rstrip(b"\r\n") + b"\n").splitlines(keepends=True)
    header, rows = ([], lines) if dialect.kind == "gcp_export" else (lines[:1], lines[1:])
    rows = [row for row in rows for _ in range(2)]
    random.shuffle(rows)
    found = read(workspace, dialect, b"".join([*header, *rows]))
    times = 1 if dialect.kind == "aws_cur" else 2  # only there, a line has an identity
    assert len(found.bad) == (2 - times) * len(flat)
    assert counted(in_order(found)) == counted(dialect.expected(charge) for charge in flat for _ in range(times))


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("encoding", ["latin-1", "utf-16-le", "utf-16-be"])
@settings(max_examples=2, **QUICK)
@given(bill=bills)
def test_in_another_encoding_no_amount_is_lost(workspace, name, encoding, bill):
    dialect = DIALECTS[name]
    sayable = dialect.can_say(bill)
    text = dialect.write(sayable).decode("utf-8-sig")
    mark = "" if encoding == "latin-1" else "\ufeff"
    found = read(workspace, dialect, (mark + text).encode(encoding, errors="replace"))
    expected = [dialect.expected(charge) for charge in sayable]
    if mark:
        assert in_order(found) == expected
    else:
        assert [charge[:6] for charge in in_order(found)] == [charge[:6] for charge in expected]


@pytest.mark.parametrize("name", TEXTS)
@settings(max_examples=8, **QUICK)
@given(bill=bills, share=place, bit=st.integers(0, 7))
def test_a_flipped_bit_harms_its_own_record_and_no_other(workspace, name, bill, share, bit):
    dialect = DIALECTS[name]
    sayable = dialect.can_say(bill)
    raw = bytearray(dialect.write(sayable))
    first = 0 if dialect.kind == "gcp_export" else raw.index(b"\n") + 1
    raw[first + int(share * (len(raw) - first))] ^= 1 << bit
    found = read_or_refused(workspace, dialect, bytes(raw))
    if found is None:
        assert len(sayable) <= 2
        return
    before = counted(dialect.expected(charge) for charge in sayable)
    after = counted(in_order(found))
    # A line end that is lost takes the neighbour along, into quarantine; what is read otherwise is one record.
    assert (before - after).total() <= 2
    assert (after - before).total() <= 1


@settings(max_examples=25, **QUICK)
@given(bill=bills, share=place, bit=st.integers(0, 7))
def test_the_money_of_a_damaged_file_is_what_another_reader_sees_in_it(workspace, bill, share, bit):
    dialect = DIALECTS["FOCUS 1.0 CSV"]
    flat = [charge.on_one_line() for charge in dialect.can_say(bill)]
    raw = bytearray(dialect.write(flat))
    first = raw.index(b"\n") + 1
    raw[first + int(share * (len(raw) - first))] ^= 1 << bit
    found = read_or_refused(workspace, dialect, bytes(raw))
    lines = raw.decode(errors="replace").replace("\r", " ").split("\n")
    rows = list(csv.DictReader(io.StringIO("\n".join(lines)), strict=True)) if _is_csv(lines) else None
    if found is None or rows is None:
        return
    aside = [row for number, row in enumerate(rows, start=2) if (0, number) in found.bad]
    assert len(rows) == len(found.charges) + len(aside)
    assert found.total() + sum(map(_money, aside)) == sum(map(_money, rows))


def _is_csv(lines: Sequence[str]) -> bool:
    """Whether another reader takes each line for one row with all its fields."""
    try:
        rows = list(csv.reader(io.StringIO("\n".join(lines)), strict=True))
    except csv.Error:
        return False
    return len(rows) == len(lines) - 1 and {len(row) for row in rows} == {len(rows[0])}


def _money(row: dict[str, str]) -> Decimal:
    try:
        return nine(row["BilledCost"])
    except InvalidOperation:
        return Decimal()


@pytest.mark.parametrize("name", ["FOCUS 1.0 CSV", "Azure EA", "cost sheet"])  # in a CUR, any name may be a tag's
@settings(max_examples=8, **QUICK)
@given(bill=bills, share=place, bit=st.integers(0, 6))
def test_a_flipped_bit_in_the_header_is_refused_or_named(workspace, name, bill, share, bit):
    dialect = DIALECTS[name]
    sayable = dialect.can_say(bill)
    raw = bytearray(dialect.write(sayable))
    header = raw.index(b"\n")
    raw[int(share * header)] ^= 1 << bit
    found = read_or_refused(workspace, dialect, bytes(raw))
    if found is not None:
        assert found.found[0].unknown_columns or in_order(found) == [dialect.expected(charge) for charge in sayable]


@pytest.mark.parametrize("name", PACKED)
@settings(max_examples=6, **QUICK)
@given(bill=bills, share=place, bit=st.integers(0, 7))
def test_a_flipped_bit_in_an_archive_is_noticed(workspace, name, bill, share, bit):
    dialect = DIALECTS[name]
    sayable = dialect.can_say(bill)
    raw = bytearray(dialect.write(sayable))
    raw[int(share * len(raw))] ^= 1 << bit
    found = read_or_refused(workspace, dialect, bytes(raw))
    if found is not None and not found.bad:
        assert in_order(found) == [dialect.expected(charge) for charge in sayable]
    elif found is not None:
        assert in_order(found) == []  # its first bytes are hit, so it is no archive but one bad record


@pytest.mark.parametrize("name", PARQUETS)
@settings(max_examples=12, **QUICK)
@given(bill=bills, share=place, bit=st.integers(0, 7))
def test_a_flipped_bit_in_a_parquet_file_is_refused_or_every_row_is_accounted_for(workspace, name, bill, share, bit):
    dialect = DIALECTS[name]
    raw = bytearray(dialect.write(dialect.can_say(bill)))
    raw[int(share * len(raw))] ^= 1 << bit
    read_or_refused(workspace, dialect, bytes(raw))  # the reader of tests asserts that no row is lost


def test_a_carriage_return_inside_a_value_is_a_space_and_no_line(workspace):
    dialect = DIALECTS["FOCUS 1.0 CSV"]
    text = dialect.write([CHARGE, CHARGE]).replace(b"word", b"wo\rrd")
    assert [charge["charge_description"] for charge in read(workspace, dialect, text).charges] == ["wo rd"] * 2
    old_mac = dialect.write([CHARGE, CHARGE]).replace(b"\n", b"\r")
    assert [charge["charge_description"] for charge in read(workspace, dialect, old_mac).charges] == ["word"] * 2


CHARGE = Charge("Usage", "1", "USD", MONTH[0], "word", None, ())
