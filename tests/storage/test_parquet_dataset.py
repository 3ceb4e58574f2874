import datetime as dt
import os
import socket
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacy_assets.drafting.draft import draft_contract
from privacy_assets.errors import InvalidTableError
from privacy_assets.orchestration.settings.sources import TableFile
from privacy_assets.storage.parquet_dataset import open_parquet_dataset
from tests.examples import examples


def write(path, **columns):
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path)


def test_parts_are_read_in_the_order_of_their_paths(tmp_path):
    write(tmp_path / "part-2.parquet", age=[3, None])
    write(tmp_path / "part-10.parquet", age=[1, 2])
    write(tmp_path / "part-3" / "more.parquet", age=pa.array([], pa.int64()))
    (tmp_path / "_SUCCESS").write_text("")
    (tmp_path / ".part-2.parquet.crc").write_text("x")
    dataset = open_parquet_dataset(tmp_path)
    assert (dataset.n_rows, len(dataset.parts)) == (4, 3)
    assert dataset.read()["age"].tolist() == [1, 2, 3, pd.NA]
    assert [frame["age"].dtype for frame in dataset.frames(1)] == [pd.Int64Dtype()] * 4


def test_directories_are_columns_of_text(tmp_path):
    write(tmp_path / "zip=01000" / "town=B%2FC" / "a.parquet", age=[1])
    write(tmp_path / "zip=__HIVE_DEFAULT_PARTITION__" / "town=A" / "a.parquet", age=[2])
    table = TableFile(str(tmp_path), format="parquet").read(None)
    assert table["zip"].tolist()[0] == "01000"
    assert table["zip"].isna().tolist() == [False, True]
    assert table["town"].tolist() == ["B/C", "A"]


def test_a_part_without_values_and_categories_of_any_width_fit_the_others(tmp_path):
    parts = [
        pd.DataFrame({"note": [None], "plan": pd.Categorical(["a"])}),
        pd.DataFrame({"note": ["x"] * 300, "plan": pd.Categorical([f"{number}" for number in range(300)])}),
    ]
    for place, part in enumerate(parts):
        part.to_parquet(tmp_path / f"{place}.parquet", index=False)
    read = open_parquet_dataset(tmp_path).read()
    assert read["plan"].tolist() == ["a", *map(str, range(300))]
    assert read["note"].isna().sum() == 1


@settings(max_examples=examples(40), deadline=None)
@given(st.lists(st.lists(st.none() | st.integers(-(2**63), 2**63 - 1), max_size=6), min_size=1, max_size=4), st.data())
def test_batches_of_any_size_are_the_table(tmp_path_factory, parts, data):
    directory = tmp_path_factory.mktemp("dataset")
    for place, own in enumerate(parts):
        days = [None if value is None else dt.date(2024, 1, 1) for value in own]
        write(
            directory / f"{place}.parquet",
            n=pa.array(own, pa.int64()),
            t=pa.array([None if value is None else str(value) for value in own], pa.string()),
            d=pa.array(days, pa.date32()),
        )
    dataset = open_parquet_dataset(directory)
    batches = list(dataset.batches(data.draw(st.integers(1, 7))))
    expected = [value for own in parts for value in own]
    assert pa.Table.from_batches(batches, schema=dataset.schema)["n"].to_pylist() == expected
    assert dataset.n_rows == len(expected)
    assert [None if pd.isna(value) else int(value) for value in dataset.read()["n"]] == expected


def no_part(path):
    (path / "_SUCCESS").write_text("")


def no_parquet(path):
    write(path / "a=SENTINEL" / "0.parquet", age=[1])
    (path / "a=SENTINEL" / "SENTINEL.csv").write_text("SENTINEL")


def other_columns(path):
    write(path / "0.parquet", age=[1])
    write(path / "1.parquet", age=[1], sex=["SENTINEL"])


def other_types(path):
    write(path / "0.parquet", SENTINEL=[1], sex=["f"])
    write(path / "1.parquet", SENTINEL=["SENTINEL"], sex=["f"])


def other_directories(path):
    write(path / "a=SENTINEL" / "0.parquet", age=[1])
    write(path / "1.parquet", age=[1])


def repeated_column(path):
    write(path / "a=1" / "SENTINEL=2" / "0.parquet", SENTINEL=[1])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (no_part, "no files except those whose names begin with '_' or '.'"),
        (no_parquet, "1 of 2 files are not Parquet files that can be read, the first being number 2"),
        (other_columns, "1 of 2 parts have other columns than the first"),
        (other_types, r"different types in 1 columns \(positions 0\)"),
        (other_directories, "directories that name different columns"),
        (repeated_column, r"named twice, at the levels \[2\]"),
    ],
)
def test_a_directory_that_is_no_table_is_refused_without_a_value(tmp_path, make, message):
    make(tmp_path)
    with pytest.raises(InvalidTableError, match=message) as raised:
        TableFile(str(tmp_path), format="parquet").read(None)
    assert "SENTINEL" not in str(raised.value)
    assert raised.value.__context__ is None
    assert "Nothing was read" in str(raised.value)


def test_a_part_whose_pages_are_damaged_is_refused_by_its_number(tmp_path):
    write(tmp_path / "0.parquet", age=[1])
    write(tmp_path / "1.parquet", age=list(range(10_000)))
    data = bytearray((tmp_path / "1.parquet").read_bytes())
    data[4:200] = bytes(196)
    (tmp_path / "1.parquet").write_bytes(data)
    with pytest.raises(InvalidTableError, match="Part 2 of 2 .* cannot be read completely") as raised:
        open_parquet_dataset(tmp_path).read()
    assert raised.value.__context__ is None


def test_a_directory_is_not_a_csv_file(tmp_path):
    with pytest.raises(InvalidTableError, match="but a directory, which only Parquet files can be in"):
        TableFile(str(tmp_path), format="csv").read(None)


def socket_at(path):
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(path))


NO_FILES = {
    "pipe": os.mkfifo,
    "socket": socket_at,
    "link to a file": lambda path: path.symlink_to(path.with_name("0.parquet")),
    "link to a directory": lambda path: path.symlink_to(path.parent.parent, target_is_directory=True),
    "link to a device": lambda path: path.symlink_to("/dev/zero"),
    "link to nothing": lambda path: path.symlink_to("nothing"),
    "link in a circle": lambda path: path.symlink_to(path.name),
}


@pytest.mark.parametrize("kind", NO_FILES)
@pytest.mark.parametrize("name", ["1.parquet", "SENTINEL", "a=SENTINEL"])
def test_a_part_that_is_no_file_is_refused_without_waiting_for_it(tmp_path, monkeypatch, kind, name):
    directory = tmp_path / "table"
    write(directory / "0.parquet", age=[1])
    monkeypatch.chdir(directory)  # The path of a socket is short.
    NO_FILES[kind](directory.relative_to(directory) / name if kind == "socket" else directory / name)
    expected = r"has entries that are links, pipes, sockets or devices \(1\).*Nothing was read"
    with pytest.raises(InvalidTableError, match=expected) as raised:
        TableFile(str(directory), format="parquet").read(None)
    assert "SENTINEL" not in str(raised.value)
    (directory / name).rename(directory / f"_{name}")
    assert len(TableFile(str(directory), format="parquet").read(None)) == 1


def test_a_directory_of_a_table_that_cannot_be_listed_is_refused(tmp_path, monkeypatch):
    write(tmp_path / "0.parquet", age=[1])
    write(tmp_path / "closed" / "1.parquet", age=[2])
    list_directory = os.scandir

    def closed(path):
        if str(path).endswith("closed"):
            raise PermissionError(13, "Permission denied")
        return list_directory(path)

    monkeypatch.setattr(os, "scandir", closed)
    with pytest.raises(PermissionError):
        open_parquet_dataset(tmp_path)


@pytest.mark.parametrize("kind", ["pipe", "socket", "link to a device"])
@pytest.mark.parametrize("data_format", ["csv", "parquet"])
def test_a_table_that_is_no_file_is_not_waited_for(tmp_path, monkeypatch, kind, data_format):
    monkeypatch.chdir(tmp_path)
    NO_FILES[kind](Path("table"))
    with pytest.raises(InvalidTableError, match="but a pipe, a socket or a device, which is not read"):
        TableFile("table", format=data_format).read(None)
    with pytest.raises(InvalidTableError, match="is a pipe, a socket or a device"):
        draft_contract("table")
