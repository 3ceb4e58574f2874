"""Released CSV files: nothing that a spreadsheet would run, and everything as it was when it is read back."""

import csv
import hashlib
import io
import json
import re
import time
from datetime import date

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacy_assets.errors import InvalidTableError
from privacy_assets.release import released_csv
from privacy_assets.release.files import write_release
from privacy_assets.release.manifest import digest_of
from privacy_assets.release.released_csv import escape, read_csv, read_released_csv, unescape, write_csv
from privacy_assets.release.verification import verify_release
from privacy_assets.storage import coded_columns
from privacy_assets.storage.fingerprint import fingerprint
from privacy_assets.storage.table import StoredTable
from tests.examples import examples
from tests.release.test_files import RECORD, write

RUN_BY_SPREADSHEETS = (
    *("=1+1", "+1", "-1", "@SUM(A1)", "\tplain", "\rplain", " =1", "\u00a0=1", "\ufeff=1"),
    *(
        '"=1"',
        '" =1',
        "'=1",
        "=cmd|' /C calc'!A0",
        "\uff1d1",
        "\uff0b1",
        "\uff0d1",
        "\uff20x",
        "\x00=1",
        "\u200b=1",
        "\u22121",
    ),
)
HARMLESS = (
    *("a=b", "1-1", "0", "me@example.org", "x\ty", "", "it's", " a", '"a"', "missing", "[-5, 3)", "{a, b}"),
    *("a; b", "a;b=c", "one\n\ntwo\r\nthree", "a;;b", "a, =b", "tab\tbed", "a;1-1", "a -1", "a\n b = c"),
)
RUN_AFTER_SEPARATORS = {
    "a;=1+1": "a;'=1+1",
    "a\t=1+1": "a\t'=1+1",
    "a\n=1+1": "a\n'=1+1",
    "a\r\n=1+1": "a\r\n'=1+1",
    "a; +1": "a;' +1",
    "a;\u00a0-1": "a;'\u00a0-1",
    'a;"@x': "a;'\"@x",
    "a;\uff1d1": "a;'\uff1d1",
    "a\t\uff20x;\uff0b1": "a\t'\uff20x;'\uff0b1",
    "a;\u200b=1": "a;'\u200b=1",
    "a;\t =1": "a;\t' =1",
    ";=1;=2": ";'=1;'=2",
    "a,b;=cmd|' /C calc'!A0,c": "a,b;'=cmd|' /C calc'!A0,c",
    "a\x0b=1\x0c=2": "a\x0b'=1\x0c'=2",
    "a\x85=1\u2028=2": "a\x85'=1\u2028'=2",
    "\t=1": "'\t'=1",
    "=1;=2": "'=1;'=2",
    "a;'b": "a;''b",
    "a\t'": "a\t''",
}
BEGINS_A_CELL = set(";\t\n\x0b\x0c\r\x1c\x1d\x1e\x85\u2028\u2029")
IS_A_SIGN = set("=+-@\uff1d\uff0b\uff0d\uff20\ufe62\ufe63\ufe66\ufe6b\u2212")


INVISIBLE = set(
    "\u200b\u200c\u200d\u200e\u200f\u2060\u2061\u2062\u2063\u2064\ufeff\u202a\u202b\u202c\u202d\u202e\u202f"
)


def is_ignored(character):
    number = ord(character)
    return character.isspace() or number <= 0x20 or 0x7F <= number <= 0xA0 or character in {"'", '"', *INVISIBLE}


def escaped_slowly(text):
    """Escape a text one character after the other."""
    shown = ""
    for place in range(len(text) + 1):
        rest = text[place:]
        if place == 0:
            left = "".join(rest).lstrip("".join(filter(is_ignored, rest)))
            begins = rest[:1] in set("\t\r\n'") or left[:1] in IS_A_SIGN
        else:
            within = "".join(each for each in set(rest) if is_ignored(each) and each not in BEGINS_A_CELL)
            begins = text[place - 1] in BEGINS_A_CELL and (rest[:1] == "'" or rest.lstrip(within)[:1] in IS_A_SIGN)
        shown += ("'" if begins and rest else "") + rest[:1]
    return shown


def written(table):
    file = io.BytesIO()
    described = write_csv(file.write, table)
    return file.getvalue(), json.loads(json.dumps(described))


def round_trip(table, tmp_path):
    content, described = written(table)
    (tmp_path / "table.csv").write_bytes(content)
    return read_csv(tmp_path / "table.csv", described), described


@pytest.mark.parametrize("text", RUN_BY_SPREADSHEETS)
def test_a_text_that_a_spreadsheet_would_run_gets_an_apostrophe_and_loses_it_again(text, tmp_path):
    table = pd.DataFrame({"note": [text, "plain"], text: [1, 2]})
    content, described = written(table)
    head, first, *_ = csv.reader(io.StringIO(content.decode(), newline=""))
    assert (first[0], head[1]) == ("'" + text, "'" + text)
    assert described["escaped_cells"] == {"note": 1}
    assert described["escaped_names"] == [text]
    read, _ = round_trip(table, tmp_path)
    assert read["note"].tolist() == [text, "plain"]
    assert list(read.columns) == ["note", text]


@pytest.mark.parametrize("text", HARMLESS)
def test_other_texts_are_written_as_they_are(text):
    assert escape(text) == text


@pytest.mark.parametrize(("text", "shown"), RUN_AFTER_SEPARATORS.items())
def test_a_formula_that_begins_after_another_separator_is_escaped_there(text, shown, tmp_path):
    assert escape(text) == shown
    assert unescape(shown) == text
    table = pd.DataFrame({"note": [text, "plain", None], text: ["", text, "x"]})
    read, described = round_trip(table, tmp_path)
    assert fingerprint(read) == fingerprint(table)
    assert list(read.columns) == ["note", text]
    assert described["escaped_cells"] == {"note": 1, text: 1}
    assert described["escaped_names"] == [text]


SEPARATED = st.text(st.sampled_from("=+-@\uff1d'\"\t\r\n\x0b\x85\u2028; ;\u200b,a1\x00"), max_size=12)


@given(SEPARATED)
def test_the_escape_is_that_of_one_character_after_the_other(text):
    shown = escape(text)
    assert shown == escaped_slowly(text)
    for separators in (";", "\t", ";\t", "\n\r;", "".join(BEGINS_A_CELL)):
        for cell in re.split(f"[{re.escape(separators)}]", shown):
            # Not even without what some programs leave out before they look for a formula.
            assert cell.strip(' \t\r\n\x0b\x85\u2028\u200b\x00"')[:1] not in IS_A_SIGN


def test_many_separators_are_escaped_in_no_time():
    n = 10**5
    for text in (
        "\t" * n,
        ";\t \n" * n,
        "'\n" * n,
        ";" + " " * n,
        "x" + "\u2028 " * n + "=",
        (";" + " " * 9 + '"') * n,
    ):
        started = time.process_time()
        assert unescape(escape(text)) == text
        assert time.process_time() - started < 5


@given(st.text() | SEPARATED, st.text() | SEPARATED)
def test_escaping_is_undone_exactly_and_no_two_texts_become_one(one, two):
    assert unescape(escape(one)) == one
    assert (escape(one) == escape(two)) == (one == two)
    assert escape(one)[:1] not in tuple("=+-@\t\r\n")


def test_numbers_dates_and_times_are_as_pandas_writes_them_and_negative_ones_are_not_escaped():
    table = pd.DataFrame(
        {
            "number": [-1.5, np.nan],
            "narrow": np.array([-0.1, 1e20], np.float32),
            "whole": pd.array([-3, None], dtype="Int64"),
            "flag": pd.array([True, None], dtype="boolean"),
            "day": pd.to_datetime(["2020-02-29", None]),
            "moment": pd.to_datetime(["2020-02-29 01:02:03.5", None]),
            "zoned": pd.to_datetime(["2020-07-01", None]).tz_localize("Europe/Berlin"),
            "span": pd.to_timedelta(["-1 days +02:03:04", None]),
            "born": [date(1920, 1, 2), None],
        }
    )
    content, described = written(table)
    assert content.decode() == (
        "number,narrow,whole,flag,day,moment,zoned,span,born\n"
        "-1.5,-0.1,-3,True,2020-02-29,2020-02-29 01:02:03.5,2020-07-01 00:00:00+02:00,-1 days +02:03:04,1920-01-02\n"
        ",1e+20,,,,,,,\n"
    )
    assert described["escaped_cells"] == {}


def test_an_empty_text_and_a_missing_one_are_told_apart(tmp_path):
    table = pd.DataFrame({"both": ["", None, "a"], "empty": ["", "b", "c"], "missing": [None, "d", "e"]})
    content, described = written(table)
    assert content == b"both,empty,missing\n',,\n,b,d\na,c,e\n"
    assert described["empty_is_text"] == ["empty"]
    assert described["escaped_cells"] == {"both": 1}
    read, _ = round_trip(table, tmp_path)
    assert read.isna().to_numpy().tolist() == table.isna().to_numpy().tolist()
    assert fingerprint(read) == fingerprint(table)


TEXTS = st.one_of(
    st.none(),
    st.text(),
    st.text(st.sampled_from("=+-@'\"\t\r\n, ;a\x00\x85\u2028\ufeff")),
    st.sampled_from(RUN_BY_SPREADSHEETS),
)
MOMENTS = st.one_of(st.just(pd.NaT), st.datetimes(pd.Timestamp("1700-01-01"), pd.Timestamp("2200-01-01")))
COLUMNS = {
    "text": st.builds(pd.array, st.lists(TEXTS, min_size=3, max_size=3), dtype=st.just("string")),
    "category": st.builds(pd.Categorical, st.lists(TEXTS, min_size=3, max_size=3)),
    "float": st.builds(np.array, st.lists(st.floats(), min_size=3, max_size=3)),
    "narrow": st.builds(np.array, st.lists(st.floats(width=32), min_size=3, max_size=3), st.just("float32")),
    "half": st.builds(np.array, st.lists(st.floats(width=16), min_size=3, max_size=3), st.just("float16")),
    "whole": st.builds(
        pd.array, st.lists(st.none() | st.integers(-(2**63), 2**63 - 1), min_size=3, max_size=3), dtype=st.just("Int64")
    ),
    "unsigned": st.builds(
        pd.array, st.lists(st.none() | st.integers(0, 2**64 - 1), min_size=3, max_size=3), dtype=st.just("UInt64")
    ),
    "flag": st.builds(pd.array, st.lists(st.none() | st.booleans(), min_size=3, max_size=3), dtype=st.just("boolean")),
    "moment": st.builds(pd.to_datetime, st.lists(MOMENTS, min_size=3, max_size=3)),
    "day": st.builds(lambda own: pd.to_datetime(own).normalize(), st.lists(MOMENTS, min_size=3, max_size=3)),
    "zoned": st.builds(
        lambda own, zone: pd.to_datetime(own).tz_localize("UTC").tz_convert(zone),
        st.lists(MOMENTS, min_size=3, max_size=3),
        st.sampled_from(["UTC", "Europe/Amsterdam", "Asia/Kathmandu", "+03:30"]),
    ),
    "span": st.builds(
        pd.to_timedelta, st.lists(st.integers(-(2**62), 2**62), min_size=3, max_size=3).map(lambda own: np.array(own))
    ),
    "date": st.lists(st.none() | st.dates(), min_size=3, max_size=3),
    "nothing": st.just([None, None, None]),
}


@settings(max_examples=examples(100), deadline=None)
@given(data=st.data())
def test_a_table_reads_back_with_its_fingerprint(data, tmp_path_factory):
    kinds = data.draw(st.lists(st.sampled_from(sorted(COLUMNS)), min_size=1, max_size=4))
    names = data.draw(st.lists(st.text(max_size=5), min_size=len(kinds), max_size=len(kinds), unique=True))
    table = pd.DataFrame({name: data.draw(COLUMNS[kind]) for name, kind in zip(names, kinds, strict=True)})
    read, described = round_trip(table, tmp_path_factory.mktemp("csv"))
    assert fingerprint(read) == fingerprint(table)
    for name, kind in zip(names, kinds, strict=True):
        if kind in ("text", "category"):
            assert [None if pd.isna(cell) else cell for cell in read[name]] == [
                None if pd.isna(cell) else cell for cell in table[name]
            ]
    # Any reader of CSV sees the same cells, and no spreadsheet one that it would run.
    rows = list(csv.reader(io.StringIO(written(table)[0].decode(), newline="")))
    assert {len(row) for row in rows} == {len(names)}
    texts = [name in described["types"] and described["types"][name] == "text" for name in names]
    cells = [*rows[0], *(cell for row in rows[1:] for cell, is_text in zip(row, texts, strict=True) if is_text)]
    assert not any(cell.startswith(("=", "+", "-", "@", "\t", "\r")) for cell in cells)


@pytest.mark.parametrize("name", ["", "c", "\ufeff", "\0"])
@pytest.mark.parametrize(
    "cells", [["\ufeff", None], ["\ufeff", "\ufeff\ufeff"], ["\ufeffa", "b"], ["\ufeff,\n", "\ufeff"]]
)
def test_a_byte_order_mark_in_the_first_cell_is_a_character_like_any_other(name, cells, tmp_path):
    for table in (pd.DataFrame({name: cells}), pd.DataFrame({name: cells, "other": [1, 2]})):
        read, _ = round_trip(table, tmp_path)
        assert read[name].astype(object).where(read[name].notna(), None).tolist() == cells


def written_cell_by_cell(table):
    """Write a table as the format is defined, one cell after the other."""
    columns = []
    for name in table.columns:
        column = table[name]
        cells = ["" if pd.isna(cell) else shown(cell, column) for cell in column]
        is_text = any(isinstance(cell, str) for cell in column)
        if is_text and column.isna().any() and any(isinstance(cell, str) and cell == "" for cell in column):
            cells = [
                "'" if isinstance(cell, str) and cell == "" else own for cell, own in zip(column, cells, strict=True)
            ]
        columns.append([escape(name), *cells])
    lines = [",".join(quoted(cell) for cell in row) for row in zip(*columns, strict=True)]
    return "".join((line or '""') + "\n" for line in lines).encode()


def quoted(cell):
    return '"' + cell.replace('"', '""') + '"' if set(cell) & set('",\r\n') else cell


def shown(cell, column):
    if isinstance(cell, str):
        return escape(cell)
    if isinstance(cell, pd.Timestamp):
        fraction = f"{cell.microsecond:06}{cell.nanosecond:03}".rstrip("0")
        text = f"{cell:%H:%M:%S}" + ("." + fraction if fraction else "")
        is_of_days = cell.tzinfo is None and (column.dropna().dt.normalize() == column.dropna()).all()
        # Before there were standard times, offsets had seconds.
        zone = re.sub(r"(\d\d)(?=\d)", r"\1:", f"{cell:%z}")
        return f"{cell:%Y-%m-%d}" + ("" if is_of_days else f" {text}") + zone
    # The shortest decimal of a narrow float is a different one than that of the same number as a wide float.
    return str(column.dtype.type(cell) if column.dtype in ("float16", "float32") else cell)


@settings(max_examples=examples(40), deadline=None)
@given(data=st.data())
def test_the_file_is_that_of_the_cells_one_by_one(tmp_path_factory, data):
    kinds = data.draw(st.lists(st.sampled_from(sorted(COLUMNS)), min_size=1, max_size=4))
    names = data.draw(st.lists(st.text(max_size=5), min_size=len(kinds), max_size=len(kinds), unique=True))
    table = pd.DataFrame({name: data.draw(COLUMNS[kind]) for name, kind in zip(names, kinds, strict=True)})
    # Whole numbers that repeat are written once.
    n_times = data.draw(st.sampled_from([1, 3]))
    table = pd.concat([table, table.iloc[::-1]] * n_times, ignore_index=True)
    assert written(table)[0] == written_cell_by_cell(table)
    if len(table):
        path, n_rows = tmp_path_factory.getbasetemp() / "cells.parquet", data.draw(st.integers(1, len(table)))
        table.to_parquet(path, index=False, row_group_size=n_rows)
        stored = StoredTable([path.open("rb")])
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(coded_columns, "FEWEST_REPEATED", 0)
            assert written(stored) == written(stored.frame())


def test_whole_numbers_that_repeat_are_written_as_others():
    columns = {
        "unsigned": pd.array([2**64 - 1, 5, None] * 6, dtype="UInt64"),
        "whole": pd.array([-(2**63), 2**63 - 1, None] * 6, dtype="Int64"),
        "different": np.arange(18),
    }
    for table in (pd.DataFrame(columns), *(pd.DataFrame({name: own}) for name, own in columns.items())):
        assert written(table)[0] == written_cell_by_cell(table)


@pytest.mark.parametrize(("n_values", "width"), [(255, 8), (256, 16), (65_535, 16), (65_536, 32)])
def test_cells_that_repeat_are_places_of_the_smallest_type_which_holds_one_more(n_values, width):
    # In a line with one cell, quotes are one more than what is written of the column.
    rows = np.append(np.repeat(np.arange(n_values), 5), -1)
    texts = pd.Series(pd.Categorical.from_codes(rows, [str(number) for number in range(n_values)]))
    numbers = pd.Series(np.where(rows < 0, 0, rows))
    for column in (texts, numbers):
        cells = released_csv._written_column(pd.DataFrame({"a": column}), "a").cells
        assert cells.places.type.bit_width == width
        assert written(pd.DataFrame({"a": column}))[0].count(b"\n") == len(rows) + 1
    assert released_csv._written_column(pd.DataFrame({"a": np.arange(n_values)}), "a").cells.places is None


PLAIN = pd.DataFrame(
    {
        "whole": pd.array([1, -2, None, 2**53 + 1], dtype="Int64"),
        "number": [0.1, -1e-300, np.nan, 1e300],
        "as whole": [1.0, 2.0, 3.0, 4.0],
        "flag": [True, False, True, False],
        "day": pd.to_datetime(["2020-02-29", None, "1920-01-02", "2020-02-29"]),
        "moment": pd.to_datetime(["2020-02-29 01:02:03.5", None, "1920-01-02", "2020-02-29"], format="ISO8601"),
        "text, quoted": ['say "x"', "a,b", "two\nlines", None],
        "kind": pd.Categorical(["é", "[1, 2)", "é", None]),
    }
)


def require_plain(read):
    """Compare the columns as another program read them, with missing values as None or NaN."""
    assert list(read.columns) == list(PLAIN.columns)
    for name in PLAIN.columns:
        found = [None if pd.isna(cell) else cell for cell in read[name]]
        expected = [None if pd.isna(cell) else cell for cell in PLAIN[name]]
        if name in ("day", "moment"):
            found, expected = ([cell and pd.Timestamp(cell) for cell in own] for own in (found, expected))
        assert found == expected, name


def test_pandas_reads_the_file_with_its_own_defaults():
    read = pd.read_csv(io.BytesIO(written(PLAIN)[0]), dtype={"whole": "Int64"})
    assert [str(read[name].dtype) for name in ("number", "as whole", "flag")] == ["float64", "float64", "bool"]
    require_plain(read)


def test_duckdb_reads_the_file_with_its_own_defaults(tmp_path):
    duckdb = pytest.importorskip("duckdb", reason="DuckDB is in the extra sql")
    (tmp_path / "table.csv").write_bytes(written(PLAIN)[0])
    found = duckdb.connect().execute("SELECT * FROM read_csv(?)", [str(tmp_path / "table.csv")])
    names, rows = [each[0] for each in found.description], found.fetchall()
    require_plain(
        pd.DataFrame({name: pd.Series([row[i] for row in rows], dtype=object) for i, name in enumerate(names)})
    )


def read_as_r_does(text):
    """Split a file by the rules of ``read.csv``: ``sep = ","``, ``quote = '"'``, and a doubled quote in quotes is one.

    R describes them in the help pages of ``scan`` and ``read.table``: a quote counts only at the beginning of a field,
    and fields in quotes may contain separators and line ends.
    """
    rows, row, cell, is_quoted, begins = [], [], "", False, True
    place = 0
    while place < len(text):
        here = text[place]
        if is_quoted and text[place : place + 2] == '""':
            cell, place = cell + '"', place + 1
        elif here == '"' and (is_quoted or begins):
            is_quoted = not is_quoted
        elif is_quoted or here not in ",\n":
            cell += here
        else:
            row.append(cell)
            cell = ""
            if here == "\n":
                rows.append(row)
                row = []
        begins = not is_quoted and here in ",\n"
        place += 1
    assert not row
    assert not cell
    return rows


def test_r_splits_the_file_as_python_does():
    text = written(PLAIN)[0].decode()
    assert read_as_r_does(text) == list(csv.reader(io.StringIO(text, newline="")))
    names, *rows = read_as_r_does(text)
    assert names == list(PLAIN.columns)
    assert [row[6] for row in rows] == ['say "x"', "a,b", "two\nlines", ""]


@pytest.mark.parametrize(
    "content",
    [
        b'age,plan\n31,"free"\n',
        b'"age","plan"\n"31",free\n',
        b"age,plan\n031,free\n",
        b"age,plan\n31,free,\n",
        b"age,plan\n31\n",
        b"age,plan\n31,free\n\n",
        b"age,other\n31,free\n",
        b'age,plan\n31,a"b\n',
        b'age,plan\n31,"a"b\n',
        b"age,plan\r\n31,free\r\n",
        b"age,plan\n31,free",
        b"age,plan\n\n31,free\n",
        b"\xef\xbb\xbfage,plan\n31,free\n",
        b"age,plan\n31,\xff\n",
    ],
)
def test_what_other_readers_forgive_is_refused(tmp_path, content):
    _, described = written(pd.DataFrame({"age": [31], "plan": ["free"]}))
    (tmp_path / "table.csv").write_bytes(content)
    with pytest.raises(InvalidTableError, match="not the CSV file"):
        read_csv(tmp_path / "table.csv", described)


def test_a_name_that_begins_like_a_mark_of_byte_order_stays(tmp_path):
    read, _ = round_trip(pd.DataFrame({"\ufeffage": [31], "plan": ["free"]}), tmp_path)
    assert list(read.columns) == ["\ufeffage", "plan"]


@pytest.mark.parametrize("n_rows", [0, 1, 50_001])
def test_tables_of_no_row_and_of_several_chunks_read_back(tmp_path, n_rows):
    numbers = np.arange(n_rows)
    table = pd.DataFrame({"number": numbers, "text": [f"={number % 7}" for number in numbers], "empty": None})
    table["text"] = table["text"].astype("string")
    read, described = round_trip(table, tmp_path)
    assert fingerprint(read) == fingerprint(table)
    assert described["escaped_cells"] == ({"text": n_rows} if n_rows else {})


def test_a_file_of_many_blocks_reads_back(tmp_path, monkeypatch):
    monkeypatch.setattr(released_csv, "MOST_BLOCK_BYTES", 1 << 12)
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"number": rng.normal(size=3000), "text": rng.choice(["a,b", 'c"d', "e\nf", "g"], 3000)})
    read, described = round_trip(table, tmp_path)
    assert fingerprint(read) == fingerprint(table)
    # A cell that is changed in the last block, to one that occurs before.
    content = (tmp_path / "table.csv").read_bytes()
    (tmp_path / "table.csv").write_bytes(content.rstrip() + b"g\n")
    assert fingerprint(read_csv(tmp_path / "table.csv", described)) != fingerprint(table)


def test_a_release_says_what_was_escaped_and_its_csv_file_is_verified_with_the_table(tmp_path):
    table = pd.DataFrame({"age": [31, 42], "plan": ["=HYPERLINK(0)", None]})
    directory = write(tmp_path, table)
    manifest = json.loads((directory / "manifest.json").read_text())
    assert manifest["csv"] == {
        "escape": "'",
        "escaped_cells": {"plan": 1},
        "escaped_names": [],
        "empty_is_text": [],
        "types": {"age": "int64", "plan": "text"},
    }
    assert (directory / "synthetic.csv").read_text() == "age,plan\n31,'=HYPERLINK(0)\n42,\n"
    assert fingerprint(read_released_csv(tmp_path / "latest")) == fingerprint(table)
    assert verify_release(directory, max_bytes=None).verified


def replace_csv(directory, content):
    """Replace the CSV file of a release, as somebody would who can write the manifest, too."""
    own, path = directory / "synthetic.csv", directory / "manifest.json"
    own.write_text(content)
    manifest = json.loads(path.read_text())
    sha256 = hashlib.sha256(own.read_bytes()).hexdigest()
    manifest["files"]["synthetic.csv"] = {"sha256": sha256, "bytes": own.stat().st_size}
    manifest["digest"] = digest_of(manifest)
    path.write_text(json.dumps(manifest))


def test_a_csv_file_of_another_table_does_not_verify_though_its_hash_is_in_the_manifest(tmp_path):
    directory = write(tmp_path, pd.DataFrame({"age": [31, 42], "plan": ["free", None]}))
    replace_csv(directory, "age,plan\n31,free\n43,\n")
    assert verify_release(directory, max_bytes=None).problems == ("the file 'synthetic.csv' is not the recorded table",)


def test_a_csv_file_that_is_written_otherwise_is_not_the_recorded_table(tmp_path):
    directory = write(tmp_path, pd.DataFrame({"age": [0.5, 1.25], "plan": ["free", None]}))
    assert verify_release(directory, max_bytes=None).verified
    for content in ("age,plan\n0.50,free\n1.25,\n", "age,plan\n0.51,free\n1.25,\n"):
        replace_csv(directory, content)
        assert verify_release(directory, max_bytes=None).problems == (
            "the file 'synthetic.csv' is not the recorded table",
        )


@pytest.mark.parametrize(
    "content",
    ["", "age,plan", "age\n31\n", "age,plan\n31\n", 'age,plan\n31,"SENTINEL\n', "age,plan\nSENTINEL,x\n", "a,b\n"],
)
def test_a_file_that_is_not_as_described_is_refused_without_a_cell(tmp_path, content):
    (tmp_path / "table.csv").write_text(content)
    _, described = written(pd.DataFrame({"age": [31], "plan": ["free"]}))
    with pytest.raises(
        InvalidTableError, match=r"'table.csv' is not the CSV file that its manifest describes"
    ) as error:
        read_csv(tmp_path / "table.csv", described)
    assert "SENTINEL" not in str(error.value)


def test_a_release_without_csv_has_none_to_read(tmp_path):
    table = pd.DataFrame({"age": [31, 42], "plan": ["free", None]})
    directory = write_release(tmp_path, table, fingerprint(table), RECORD)
    assert "csv" not in json.loads((directory / "manifest.json").read_text())
    with pytest.raises(InvalidTableError, match="no CSV file with a manifest that describes it"):
        read_released_csv(directory)


def test_cells_of_a_megabyte_read_back(tmp_path):
    table = pd.DataFrame({"text": ["=" + "x" * 1_000_000, '"' * 1_000_000, "\n" * 1_000_000, None]})
    read, _ = round_trip(table, tmp_path)
    assert fingerprint(read) == fingerprint(table)
