"""Text files: every line exactly once, with its number, whatever is broken around it."""

from __future__ import annotations

import csv
import gzip
import io
import random

import duckdb
import pytest

from orchestration.connectors import text
from orchestration.connectors.tables import by_name, load_table
from orchestration.connectors.text import load_lines, raw_lines
from orchestration.errors import ApportionError
from orchestration.landing.deliveries import delivery
from orchestration.landing.engine import session


def read_csv(tmp_path, content: bytes, columns=("a", "b", "c")):
    path = tmp_path / "file.csv"
    path.write_bytes(content)
    with session(tmp_path) as con:
        loaded = load_table(con, "found", [delivery(path, tmp_path)], columns, by_name(columns, (), "a table"))
        rows = con.execute("select * exclude (file) from found order by line").fetchall()
    assert loaded.counts == [len(rows) + len(loaded.rejects)]
    return rows, [(reject.line, reject.reason) for reject in loaded.rejects]


def test_a_quote_that_never_closes_costs_only_its_own_line(tmp_path):
    rows, rejects = read_csv(
        tmp_path,
        b'a,b,c\n1,2,3\n4,"cut\n5,"q, r",6\n\n7,8\n9,"two\nlines",10\n11,12,13,14\n15,"16","1""7"\n18,"x',
    )
    assert rows == [
        (2, "1", "2", "3"),
        (4, "5", "q, r", "6"),
        (7, "9", "two\nlines", "10"),
        (10, "15", "16", '1"7'),
    ]
    assert rejects == [
        (3, "a quote is never closed"),
        (6, "has 2 fields instead of 3"),
        (9, "has 4 fields instead of 3"),
        (11, "a quote is never closed"),
    ]


def test_byte_order_mark_windows_line_ends_nulls_and_bad_letters(tmp_path):
    rows, rejects = read_csv(tmp_path, b'\xef\xbb\xbfa,x,b,c\r\nNULL,0,,\\N\r\nM\xfcller,0,"","NULL"\r\n')
    assert rows == [(2, None, None, None), (3, "M\ufffdller", None, None)]
    assert rejects == []


def test_blocks_of_any_size_give_the_same_rows(tmp_path, monkeypatch):
    dice = random.Random(5)
    words = ["", "x", "a b", 'say "hi"', "one\ntwo", "ü", "1,5", "long " * 30]
    table = [["a", "b", "c"]] + [[dice.choice(words) for _ in range(3)] for _ in range(400)]
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerows(table)
    expected = [tuple(value or None for value in row) for row in table[1:] if any(row)]
    for size in (50, 333, 4 << 20):
        monkeypatch.setattr(text, "BLOCK_BYTES", size)
        rows, rejects = read_csv(tmp_path, buffer.getvalue().encode())
        assert [row[1:] for row in rows if any(row[1:])] == expected
        assert rejects == []
    lines = buffer.getvalue().split("\n")
    assert all(row[1] in lines[row[0] - 1] for row in rows if row[1] and "\n" not in row[1] and '"' not in row[1])


def test_lines_keep_their_numbers_across_files_and_blocks(tmp_path, monkeypatch):
    monkeypatch.setattr(text, "BLOCK_BYTES", 7)
    first, second = tmp_path / "1.txt", tmp_path / "2.txt"
    first.write_bytes(b"head\none\n\nthree")
    second.write_bytes(gzip.compress(b"head\nfour\n"))
    with duckdb.connect() as con:
        found = [delivery(path, tmp_path) for path in (first, second)]
        assert load_lines(con, "found", found, header=True) == (["head", "head"], [2, 1])
        assert con.execute("from found").fetchall() == [(0, 2, "one"), (0, 4, "three"), (1, 2, "four")]
    assert raw_lines(first, {1, 4}) == {1: "head", 4: "three"}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (gzip.compress(b"a,b,c\n1,2,3\n" * 1000)[:-20], "cannot be read"),
        (b"", "the file is empty"),
        (b"a,b\n1,2\n", "line 1: missing column c"),
    ],
    ids=["truncated archive", "empty", "other columns"],
)
def test_a_file_that_cannot_be_trusted_as_a_whole_is_refused(tmp_path, content, message):
    with pytest.raises(ApportionError, match=message):
        read_csv(tmp_path, content)
