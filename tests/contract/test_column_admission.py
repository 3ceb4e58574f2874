"""A file that is admitted a few columns at a time is the frame, with all that is said of it."""

import datetime as dt
from contextlib import contextmanager
from unittest import mock

import numpy as np
import pandas as pd
import pandera.pandas as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pandas.testing import assert_frame_equal

from privacy_assets.contract import column_admission
from privacy_assets.contract.column_admission import needs_frame
from privacy_assets.contract.contract import TableContract
from privacy_assets.disclosure.column_examination import examine_columns
from privacy_assets.disclosure.declared_unit import examine_unit
from privacy_assets.errors import ContractError, InvalidTableError, PrivacyAssetsError
from privacy_assets.orchestration.settings.sources import TableFile
from privacy_assets.orchestration.shown.metadata import table_metadata
from privacy_assets.storage import column_files, parquet_dataset
from privacy_assets.storage.fingerprint import fingerprint
from privacy_assets.storage.table import fingerprint_of

SENTINEL = "Zyxwvut"
# Of each kind: values, what they may be declared as, and values that are refused now and then.
COLUMNS = {
    "integer": ([0, 7, -5, 2**53 + 1, 2**62], [{"type": "integer"}, {"type": "text"}, {"type": "integer", "max": 9}]),
    "holes": ([1, None, 2**53, 2**53 + 1], [{"type": "integer", "nullable": True}, {"type": "integer"}]),
    "float": ([0.5, -0.0, 0.0, 1e300, 39.0, None], [{"type": "float", "nullable": True}, {"type": "integer"}]),
    "text": (["a", "bb", "7", "007", f"{SENTINEL}", "é", None, "NA"], [{"type": "text", "nullable": True}]),
    "label": (["low", "high", "mid", None], [{"type": "category", "nullable": True}, {"type": "category"}]),
    "listed": (
        ["low", "high", "mid", f"{SENTINEL}"],
        [
            {"type": "category", "categories": ["low", "high", "mid", f"{SENTINEL}"]},
            {"type": "category", "categories": ["low", "mid"]},
        ],
    ),
    "flag": ([True, False], [{"type": "boolean"}, {"type": "category"}]),
    "day": (
        [dt.datetime(2020, 1, 1), dt.datetime(2021, 5, 5, 10, 30), None],
        [{"type": "datetime", "nullable": True}, {"type": "datetime"}],
    ),
    "mixed": (
        ["1", "2.5", "x", "2020-01-01", "2020-01-01T00:00Z", "True", None],
        [{"type": "text", "nullable": True}, {"type": "float"}, {"type": "datetime", "nullable": True}],
    ),
    "number": (
        ["1", "2", "2.5", "1e3", str(2**53 + 1), None],
        [{"type": "float", "nullable": True}, {"type": "integer", "nullable": True}],
    ),
}
PEOPLE = ["P1", "p1 ", "P2", f"{SENTINEL}", "04", "4"]


@st.composite
def tables(draw):
    """A table, and a contract that it may break."""
    n_rows = draw(st.integers(0, 12))
    names = draw(st.lists(st.sampled_from(sorted(COLUMNS)), min_size=1, max_size=6, unique=True))
    table, columns = {}, {}
    for name in names:
        pool, declared = COLUMNS[name]
        pool = draw(st.lists(st.sampled_from(pool), min_size=1, unique_by=repr))
        values = draw(st.lists(st.sampled_from(pool), min_size=n_rows, max_size=n_rows))
        dtype = {"holes": "Int64", "integer": "int64", "float": "float64", "day": "datetime64[us]", "flag": "bool"}
        table[name] = pd.Series(values, dtype=dtype.get(name, "str"))
        columns[name] = draw(st.sampled_from(declared)) | {"role": "quasi_identifier"}
    keys = draw(st.sampled_from([0, 1, 2]))
    for place in range(keys):
        table[f"key {place}"] = pd.Series(
            draw(st.lists(st.sampled_from(PEOPLE), min_size=n_rows, max_size=n_rows)), dtype="str"
        )
        role = draw(st.sampled_from(["direct_identifier", "quasi_identifier"]))
        columns[f"key {place}"] = {"type": "text", "role": role, "person": True}
    if draw(st.integers(0, 9)) == 0:
        table["unknown"] = pd.Series(range(n_rows), dtype="int64")
    if draw(st.integers(0, 9)) == 0:
        columns["absent"] = {"type": "text", "role": "other"}
    order = draw(st.permutations(sorted(table)))
    rules = {}
    if "integer" in columns and columns["integer"]["type"] == "integer":
        rules = draw(st.sampled_from([{}, {"small": {"expect": "integer < 8"}}]))
    mapping = {"columns": columns, "one_row_per_person": not keys} | ({"rules": rules} if rules else {})
    return pd.DataFrame(table)[order], TableContract.from_mapping(mapping)


@contextmanager
def in_pieces(rows, cells):
    """Read and write so many rows, and so many cells of columns, at once."""
    with (
        mock.patch.object(column_files, "ROWS_PER_BATCH", rows),
        mock.patch.object(column_files, "MOST_CELLS_AT_ONCE", cells),
        mock.patch.object(parquet_dataset, "ROWS_PER_BATCH", rows),
    ):
        yield


def outcome(admit):
    """Return what is admitted, or what is said."""
    try:
        return admit()
    except PrivacyAssetsError as error:
        return type(error), str(error), getattr(error, "failures", None)


def of_frame(file, contract):
    checked = contract.check(file.read(None))
    return contract.with_people(checked), checked


def assert_same(file, contract, directory):
    """Compare the way by columns with that by the frame."""
    expected, found = (
        outcome(lambda: of_frame(file, contract)),
        outcome(lambda: file.admit(contract, None, directory)),
    )
    assert type(expected) is type(found) or not isinstance(expected[0], type), (expected, found)
    if isinstance(expected[0], type):
        assert found == expected
        assert SENTINEL not in found[1]
        return
    table, checked = found
    assert_frame_equal(table.frame(), stored_as_frame(expected[0], directory))
    assert table_metadata(table, "", {}) == table_metadata(expected[0], "", {})
    assert table.fingerprint == fingerprint(expected[0])
    assert_frame_equal(checked[list(checked.columns)], expected[1])
    assert list(checked.columns) == list(expected[1].columns)
    assert examine_unit(checked, contract) == examine_unit(expected[1], contract)
    roles = dict.fromkeys(contract.released_columns, "other")
    assert examine_columns(table, roles, contract.person) == examine_columns(expected[0], roles, contract.person)


def stored_as_frame(table, directory):
    """What a later stage reads of a frame that was stored."""
    table.to_parquet(directory / "frame.parquet", index=False)
    assert pq.read_schema(directory / "frame.parquet").names == list(table.columns)
    return pd.read_parquet(directory / "frame.parquet")


@settings(deadline=None, max_examples=60)
@given(
    drawn=tables(), rows=st.integers(1, 13), cells=st.integers(1, 40), suffix=st.sampled_from(["csv", "parquet", ""])
)
def test_a_table_by_columns_is_the_frame(tmp_path_factory, drawn, rows, cells, suffix):
    table, contract = drawn
    directory = tmp_path_factory.mktemp("drawn")
    path = directory / f"people.{suffix or 'd'}"
    if suffix == "csv":
        table.to_csv(path, index=False)
    elif suffix == "parquet":
        table.to_parquet(path, index=False, row_group_size=rows)
    else:
        path.mkdir()
        for part, begin in enumerate(range(0, max(len(table), 1), rows)):
            table.iloc[begin : begin + rows].to_parquet(path / f"part-{part:02}.parquet", index=False)
    assert not needs_frame(contract, list(table.columns))
    with in_pieces(rows, cells):
        assert_same(TableFile(str(path), format="csv" if suffix == "csv" else "parquet"), contract, directory)


def contract_of(table, **columns):
    given = {name: {"type": "text", "role": "other", "nullable": True} for name in table.columns}
    return TableContract.from_mapping({"columns": given | columns, "one_row_per_person": True})


def test_directories_of_parts_are_columns(tmp_path):
    for region in ("north", "south"):
        (tmp_path / "d" / f"region={region}").mkdir(parents=True)
        pd.DataFrame({"n": [1, 2]}).to_parquet(tmp_path / "d" / f"region={region}" / "part.parquet", index=False)
    contract = contract_of(pd.DataFrame({"region": []}), n={"type": "integer", "role": "other"})
    with in_pieces(1, 1):
        assert_same(TableFile(str(tmp_path / "d"), format="parquet"), contract, tmp_path)


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_many_columns_and_many_texts(tmp_path, suffix):
    # The columns of the contract are checked one by one, in either way.
    wide = pd.DataFrame(np.arange(2_000).reshape(2, -1)).astype(str).add_prefix("c")
    texts = pd.DataFrame({"t": [f"{SENTINEL} {place}" for place in range(100_000)], "c": "x"})
    for table, declared in (
        (wide, {}),
        (texts, {"t": {"type": "category", "role": "other"}}),
    ):
        path = tmp_path / f"t.{suffix}"
        table.to_csv(path, index=False) if suffix == "csv" else table.to_parquet(path, index=False)
        file, contract = TableFile(str(path)), contract_of(table, **declared)
        expected, _ = of_frame(file, contract)
        found = file.admit(contract, None, tmp_path)
        admitted = found.table if isinstance(found.table, pd.DataFrame) else found.table.frame()
        assert_frame_equal(admitted, stored_as_frame(expected, tmp_path))
        assert fingerprint_of(found.table) == fingerprint(expected)


def parts(tmp_path, *tables):
    (tmp_path / "d").mkdir()
    for place, table in enumerate(tables):
        table.to_parquet(tmp_path / "d" / f"part-{place}.parquet", index=False)
    return TableFile(str(tmp_path / "d"), format="parquet")


def test_bad_parts_are_refused_as_in_the_frame(tmp_path):
    good = pd.DataFrame({"a": [SENTINEL] * 3000, "b": [f"{SENTINEL} {i}" for i in range(3000)]})
    file = parts(tmp_path, good, good, good.rename(columns={"b": "c"}))
    assert_same(file, contract_of(good), tmp_path)
    third = tmp_path / "d" / "part-2.parquet"
    good.assign(b=1).to_parquet(third, index=False)
    assert_same(file, contract_of(good), tmp_path)
    good.to_parquet(third, index=False)
    content = bytearray(third.read_bytes())
    third.write_bytes(content[:-100])
    assert_same(file, contract_of(good), tmp_path)
    # Only the pages of the second column are damaged, and the contract lacks it.
    begin = pq.read_metadata(tmp_path / "d" / "part-0.parquet").row_group(0).column(1).dictionary_page_offset
    content[begin : begin + 200] = b"\xff" * 200
    third.write_bytes(content)
    for contract in (contract_of(good), contract_of(good[["a"]]), contract_of(good.add_prefix("x"))):
        said = outcome(lambda contract=contract: file.admit(contract, None, tmp_path))
        assert said[:2] == outcome(lambda contract=contract: of_frame(file, contract))[:2]
        assert "Part 3 of 3" in said[1]


def test_a_csv_file_that_cannot_be_read_is_refused_as_in_the_frame(tmp_path):
    path = tmp_path / "t.csv"
    for text in (f"a,b\n1,{SENTINEL}\n2\n", f'a,b\n1,"{SENTINEL}\n', f"a,a\n1,{SENTINEL}\n", "a,b\n", "x,y\n1,2\n"):
        path.write_text(text)
        assert_same(TableFile(str(path)), contract_of(pd.DataFrame({"a": [], "b": []})), tmp_path)


def test_a_file_that_changes_between_two_readings_is_refused(tmp_path, monkeypatch):
    table = pd.DataFrame({"a": [SENTINEL, "x"], "b": ["1", "2"]})
    file, contract = parts(tmp_path, table), contract_of(table)
    convert = column_admission.admit_columns

    def changed(contract, names, n_rows, read, directory):
        def read_once(group):
            frame = read(group)
            table[::-1].to_parquet(tmp_path / "d" / "part-0.parquet", index=False)
            return frame

        return convert(contract, names, n_rows, read_once, directory)

    monkeypatch.setattr(column_admission, "admit_columns", changed)
    with in_pieces(1, 1), pytest.raises(InvalidTableError, match="1 of 1 files changed while they were read") as error:
        file.admit(contract, None, tmp_path)
    assert SENTINEL not in str(error.value)
    (tmp_path / "d" / "part-0.parquet").unlink()


def test_checks_of_whole_columns_are_those_of_the_frame(tmp_path):
    table = pd.DataFrame({"a": [1, 2, 2], "b": ["x", "y", "x"]})
    columns = {
        "a": pa.Column(int, [pa.Check(lambda own: own.sum() < 5, name="sum")], unique=True, metadata={"role": "other"}),
        "b": pa.Column(str, unique=True, metadata={"role": "other"}),
    }
    table.to_parquet(tmp_path / "t.parquet", index=False)
    contract = TableContract(pa.DataFrameSchema(columns, metadata={"one_row_per_person": True}))
    assert not needs_frame(contract, ["a", "b"])
    with in_pieces(1, 1):
        assert_same(TableFile(str(tmp_path / "t.parquet")), contract, tmp_path)
        with pytest.raises(ContractError, match="column 'a' fails is_unique in 2 records; .*sum.*column 'b'"):
            TableFile(str(tmp_path / "t.parquet")).admit(contract, None, tmp_path)


@pytest.mark.parametrize(
    "schema",
    [
        {"checks": pa.Check(lambda table: table["a"] > 0, name="positive")},
        {"unique": ["a"]},
    ],
)
def test_checks_of_the_table_need_the_frame(schema):
    columns = {"a": pa.Column(int, metadata={"role": "other"})}
    assert needs_frame(
        TableContract(pa.DataFrameSchema(columns, metadata={"one_row_per_person": True}, **schema)), ["a"]
    )
    grouped = pa.Column(int, pa.Check(lambda groups: True, groupby="b"), metadata={"role": "other"})
    columns = {"a": grouped, "b": pa.Column(str, metadata={"role": "other"})}
    assert needs_frame(TableContract(pa.DataFrameSchema(columns, metadata={"one_row_per_person": True})), ["a", "b"])
