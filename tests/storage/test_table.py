from io import BytesIO

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from privacy_assets.storage import table as table_module
from privacy_assets.storage.artifact import Artifact
from privacy_assets.storage.artifact_files import read_artifact, write_artifact
from privacy_assets.storage.fingerprint import fingerprint
from privacy_assets.storage.table import (
    StoredTable,
    UnreadableTableError,
    batches_of,
    fingerprint_of,
    frame_of,
    has_missing,
    select_columns,
    store,
    take_rows,
    with_column,
)

N = 7


def every_kind() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "integer": np.arange(N),
            "nullable": pd.array([1, None, 3, 4, 5, 6, 7], dtype="Int64"),
            "float": [1.5, np.nan, -0.0, 2, 3, 4, 5],
            "flag": [True, False] * 3 + [True],
            "text": pd.Series(["x", None, "yé", "x", "z", "z", "x"], dtype="str"),
            "category": pd.Categorical(list("abcabca"), categories=list("abcd")),
            "ranked": pd.Categorical(list("lhlhlhl"), categories=["l", "h"], ordered=True),
            "moment": pd.date_range("2024-01-31", periods=N, freq="h"),
        }
    )


@pytest.fixture
def few_at_once(monkeypatch):
    monkeypatch.setattr(table_module, "ROWS_PER_BATCH", 3)


def pieces(table: pd.DataFrame, n_rows: int = 3) -> list[pd.DataFrame]:
    """Cut a table into frames, each with its own categories."""
    found = [table.iloc[begin : begin + n_rows].reset_index(drop=True) for begin in range(0, len(table), n_rows)]
    return [each.assign(category=each["category"].cat.remove_unused_categories()) for each in found]


def test_a_stored_table_is_the_frame_column_by_column_and_batch_by_batch(tmp_path, few_at_once):
    table = every_kind()
    stored = store(pieces(table), tmp_path)
    assert list(stored.columns) == list(table.columns)
    assert (len(stored), stored.empty) == (N, False)
    assert "float" in stored and "other" not in stored
    assert (
        stored.fingerprint == fingerprint(table) == fingerprint(stored.frame()) == fingerprint_of(StoredTable([stored]))
    )
    for name, column in stored.items():
        expected = table[name].astype(object).where(table[name].notna(), None)
        assert column.astype(object).where(column.notna(), None).tolist() == expected.tolist()
        assert column.dtype == stored.dtypes[name] or name in ("category", "ranked")
        assert has_missing(stored, name) == has_missing(table, name) == bool(table[name].isna().any())
    parts = list(batches_of(stored, ["integer", "category"]))
    assert [len(part) for part in parts] == [3, 3, 1]
    for part, expected in zip(parts, batches_of(table, ["integer", "category"]), strict=True):
        assert part.astype(str).to_numpy().tolist() == expected.astype(str).to_numpy().tolist()


def test_a_file_that_is_stored_has_no_name(tmp_path):
    stored = store([every_kind()], tmp_path)
    assert len(stored) == N
    assert list(tmp_path.iterdir()) == []


def test_one_more_column_is_in_memory(tmp_path):
    table = every_kind().set_axis(list("gfedcba"))
    people = pd.Series([3, 3, 2, 2, 1, 1, 0])
    for each in (table, store([table], tmp_path)):
        found = with_column(each, "person", people)
        assert found["person"].tolist() == people.tolist()
        assert list(found.columns) == [*table.columns, "person"]
        assert "person" not in each
        assert fingerprint_of(found) == fingerprint(table.assign(person=people.to_numpy()))
        assert not has_missing(found, "person") and has_missing(
            with_column(each, "flag", people.where(people > 0)), "flag"
        )
    with pytest.raises(AssertionError):
        next(found.batches())


def test_columns_left_out_or_converted_are_those_of_the_frame(tmp_path, few_at_once):
    table = every_kind()
    stored = store(pieces(table), tmp_path)
    names = ["category", "float", "integer"]
    for each in (table, stored):
        some = select_columns(each, names)
        assert list(some.columns) == names and "text" not in some and "float" in some
        found = with_column(some.drop(columns="float").astype({"category": object}), "person", table["integer"])
        assert list(found.columns) == ["category", "integer", "person"]
        assert found.dtypes["category"] == found["category"].dtype == object
        assert found["category"].tolist()[:2] == table["category"].tolist()[:2]
        assert list(each.columns) == list(table.columns)
        assert (
            frame_of(found)
            .astype(str)
            .equals(table[["category", "integer"]].assign(person=table["integer"]).astype(str))
        )
        assert fingerprint_of(select_columns(each, ["text"])) == fingerprint(table[["text"]])
        assert [list(batch.columns) for batch in batches_of(some, names)] == [names] * 3
    assert [list(batch.columns) for batch in select_columns(stored, names).batches()] == [names] * 3
    with pytest.raises(AssertionError):
        stored.select(names).copy_to(BytesIO())


def test_rows_are_taken_by_their_places(tmp_path):
    table = every_kind()
    rows = pd.Series([4, 0, 4])
    expected = table[["text", "integer"]].iloc[[4, 0, 4]].reset_index(drop=True)
    for each in (table, store([table], tmp_path)):
        pd.testing.assert_frame_equal(take_rows(each, rows, ["text", "integer"]), expected)


def test_an_artifact_with_a_stored_table_is_that_with_the_frame(tmp_path):
    table = every_kind()
    stored = Artifact("Result", {"a": 1}, {"table": store(pieces(table), tmp_path), "more": table[["integer"]]})
    in_frames = Artifact("Result", {"a": 1}, {"table": table, "more": table[["integer"]]})
    assert stored.digest == in_frames.digest
    for place, artifact in enumerate((stored, in_frames)):
        write_artifact(tmp_path / str(place), artifact)
        for is_large in (False, True):
            read = read_artifact(tmp_path / str(place), is_large=is_large)
            assert read.digest == stored.digest
            assert isinstance(read.frames["table"], StoredTable) == is_large
            assert isinstance(read.frames["more"], pd.DataFrame)


def test_a_table_stays_the_same_when_another_takes_its_place(tmp_path):
    write_artifact(tmp_path / "a", Artifact.of_table(every_kind()))
    first = read_artifact(tmp_path / "a", is_large=True).frames["table"]
    write_artifact(tmp_path / "a", Artifact.of_table(every_kind().iloc[::-1]))
    assert first["integer"].tolist() == list(range(N))
    assert fingerprint_of(first) == fingerprint(every_kind())


def test_a_damaged_file_is_one_error_without_its_values(tmp_path):
    secret = "Evelyn-7731"
    pd.DataFrame({"name": [secret] * 50, "n": range(50)}).to_parquet(tmp_path / "t.parquet", index=False)
    whole = (tmp_path / "t.parquet").read_bytes()
    for begin in range(4, 200, 20):
        (tmp_path / "t.parquet").write_bytes(whole[:begin] + b"\xff" * 20 + whole[begin + 20 :])
        stored = StoredTable([(tmp_path / "t.parquet").open("rb")])
        try:
            stored.frame(), stored.fingerprint
        except UnreadableTableError as error:
            assert secret not in str(error)
            assert error.__context__ is None
            break
    else:
        raise AssertionError("no damage was found")
    (tmp_path / "t.parquet").write_bytes(b"no table")
    with pytest.raises(UnreadableTableError, match="Materialize it again"):
        StoredTable([(tmp_path / "t.parquet").open("rb")])


def test_names_with_dots_are_read_by_their_whole_name(tmp_path):
    frame = pd.DataFrame({"a": [1, 2, 3], "a.b": [4, 5, 6]})
    stored = store([frame], tmp_path)
    pd.testing.assert_frame_equal(stored[["a"]], frame[["a"]])
    pd.testing.assert_frame_equal(stored[["a.b", "a"]], frame[["a.b", "a"]])
    (batch,) = stored.batches(["a"])
    pd.testing.assert_frame_equal(batch, frame[["a"]])


def test_a_footer_is_read_once_and_a_column_comes_with_its_own_description_alone(tmp_path, monkeypatch):
    table, opened = every_kind(), []
    file = table_module.pq.ParquetFile
    monkeypatch.setattr(table_module.pq, "ParquetFile", lambda *own, **named: opened.append(1) or file(*own, **named))
    kept = store(pieces(table), tmp_path)
    for name in table.columns:
        assert kept[name].astype(object).equals(table[name].astype(object))
        batch = next(kept.arrow_batches([name]))
        described = batch.schema.pandas_metadata
        assert [each["name"] for each in described["columns"]] == [name]
        assert described["index_columns"] == kept.schema.pandas_metadata["index_columns"]
    assert select_columns(kept, ["flag", "text"]).frame().equals(table[["flag", "text"]])
    assert len(opened) == 1


def in_a_file(table: pa.Table, directory) -> StoredTable:
    pq.write_table(table, directory / "t.parquet")
    return StoredTable([(directory / "t.parquet").open("rb")])


@pytest.mark.parametrize("kind", [pa.int64(), pa.uint8(), pa.float16(), pa.float64()])
@pytest.mark.parametrize("last", [3, None])
def test_numbers_in_several_files_are_read_as_pandas_reads_them(tmp_path, kind, last, few_at_once):
    parts = [pa.table({"a": pa.array(np.array([1, 2, 3], kind.to_pandas_dtype()))}) for _ in range(2)]
    parts[1] = pa.table({"a": pa.array([1, 2, last], pa.float64()).cast(kind)})
    for number, part in enumerate(parts):
        pq.write_table(part, tmp_path / f"{number}.parquet")
    stored = StoredTable([(tmp_path / f"{number}.parquet").open("rb") for number in range(2)])
    pd.testing.assert_series_equal(stored["a"], pa.concat_tables(parts).to_pandas()["a"])


@pytest.mark.parametrize("name", [None, "a", "id"])
def test_columns_beside_an_index_keep_their_dtypes(name, tmp_path):
    frame = pd.DataFrame({"a": pd.array([1, None, 3], dtype="Int64"), "b": [1, 2, 3]})
    frame.index = pd.Index([5, 6, 9], name=name)
    stored = in_a_file(pa.Table.from_pandas(frame), tmp_path)
    assert (str(stored["a"].dtype), stored["b"].tolist()) == ("Int64", [1, 2, 3])


@pytest.mark.parametrize("about", ["[]", "5", "{}", '{"index_columns": []}', "{"])
def test_a_description_that_pandas_did_not_write_is_refused(about, tmp_path):
    stored = in_a_file(pa.table({"a": [1, 2]}).replace_schema_metadata({"pandas": about}), tmp_path)
    for read in (lambda: stored["a"], lambda: list(stored.batches(["a"])), lambda: list(stored.batches())):
        with pytest.raises(UnreadableTableError):
            read()
    assert "b" not in stored.select(["a"])
