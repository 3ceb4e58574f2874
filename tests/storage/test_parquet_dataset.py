import datetime as dt

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

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
    write(path / "0.parquet", age=[1], sex=["f"])
    write(path / "1.parquet", age=["SENTINEL"], sex=["f"])


def other_directories(path):
    write(path / "a=SENTINEL" / "0.parquet", age=[1])
    write(path / "1.parquet", age=[1])


def repeated_column(path):
    write(path / "age=SENTINEL" / "0.parquet", age=[1])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (no_part, "no files except those whose names begin with '_' or '.'"),
        (no_parquet, "1 of 2 files are not Parquet files that can be read, the first being number 2"),
        (other_columns, "1 of 2 parts have other columns than the first"),
        (other_types, r"different types in these columns: \['age'\]"),
        (other_directories, "directories that name different columns"),
        (repeated_column, r"named twice: \['age'\]"),
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
