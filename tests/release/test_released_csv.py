"""Released CSV files: nothing that a spreadsheet would run, and everything as it was when it is read back."""

import csv
import hashlib
import io
import json
from datetime import date

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacy_assets.errors import InvalidTableError
from privacy_assets.release.files import write_release
from privacy_assets.release.manifest import digest_of
from privacy_assets.release.released_csv import escape, read_csv, read_released_csv, unescape, write_csv
from privacy_assets.release.verification import verify_release
from privacy_assets.storage.fingerprint import fingerprint
from tests.examples import examples
from tests.release.test_files import RECORD, write

RUN_BY_SPREADSHEETS = (
    *("=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "\tplain", "\rplain", " =1", "\u00a0=1", "\ufeff=1"),
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
HARMLESS = ("a=b", "1-1", "0", "me@example.org", "x\ty", "", "it's", " a", '"a"', "missing", "[-5, 3)", "{a, b}")


def written(table):
    file = io.BytesIO()
    described = write_csv(file, table)
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


@given(st.text(), st.text())
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


@pytest.mark.parametrize("n_rows", [0, 1, 50_001])
def test_tables_of_no_row_and_of_several_chunks_read_back(tmp_path, n_rows):
    numbers = np.arange(n_rows)
    table = pd.DataFrame({"number": numbers, "text": [f"={number % 7}" for number in numbers], "empty": None})
    table["text"] = table["text"].astype("string")
    read, described = round_trip(table, tmp_path)
    assert fingerprint(read) == fingerprint(table)
    assert described["escaped_cells"] == ({"text": n_rows} if n_rows else {})


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
    assert verify_release(directory).verified


def test_a_csv_file_of_another_table_does_not_verify_though_its_hash_is_in_the_manifest(tmp_path):
    directory = write(tmp_path, pd.DataFrame({"age": [31, 42], "plan": ["free", None]}))
    (directory / "synthetic.csv").write_text("age,plan\n31,free\n43,\n")
    path = directory / "manifest.json"
    manifest = json.loads(path.read_text())
    own = directory / "synthetic.csv"
    sha256 = hashlib.sha256(own.read_bytes()).hexdigest()
    manifest["files"]["synthetic.csv"] = {"sha256": sha256, "bytes": own.stat().st_size}
    manifest["digest"] = digest_of(manifest)
    path.write_text(json.dumps(manifest))
    assert verify_release(directory).problems == ("the file 'synthetic.csv' is not the recorded table",)


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
