import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacy_assets.columns import factorizing
from privacy_assets.errors import InvalidTableError
from privacy_assets.storage.coded_columns import ColumnCoder, code_stored, code_texts
from privacy_assets.storage.table import StoredTable, store
from tests.examples import examples
from tests.mixed_tables import table_pairs


def coded(*batches):
    coder = ColumnCoder()
    for batch in batches:
        coder.add(batch.reset_index(drop=True))
    return coder.finish()


def decoded(column):
    return column.distinct.take(column.codes.astype(np.int64)).reset_index(drop=True)


@settings(max_examples=examples(100), deadline=None)
@given(table_pairs(max_columns=4, max_rows=20), st.integers(1, 5))
def test_the_codes_give_the_table_back(tables, rows_per_batch):
    table = tables[0]
    table = table[[name for name in table if not name.startswith(("date ", "missing"))]]
    found = coded(*(table.iloc[begin : begin + rows_per_batch] for begin in range(0, len(table), rows_per_batch)))
    assert list(found) == list(table.columns)
    for name, column in found.items():
        assert len(column.codes) == len(table)
        rebuilt = decoded(column)
        expected = table[name].reset_index(drop=True)
        assert rebuilt.dtype == expected.dtype
        # A missing text may be None or NaN.
        pd.testing.assert_series_equal(rebuilt.where(rebuilt.notna()), expected.where(expected.notna()))
        assert column.distinct.isna().sum() == table[name].isna().any()
        assert column.codes.dtype == np.uint8


def test_codes_are_as_small_as_the_number_of_values_allows():
    first = pd.DataFrame({"a": np.arange(300), "b": ["x"] * 300, "c": np.arange(300) % 256})
    found = coded(first, pd.DataFrame({"a": np.arange(299, 500), "b": [None] * 201, "c": np.arange(201)}))
    assert found["a"].codes.dtype == np.uint16
    assert found["a"].distinct.tolist() == list(range(500))
    assert found["b"].codes.tolist() == [0] * 300 + [1] * 201
    assert found["c"].codes.dtype == np.uint8
    assert found["c"].codes.tolist() == [*first["c"], *range(201)]


def test_a_table_without_rows_has_codes_without_rows():
    assert len(coded(pd.DataFrame({"a": pd.Series([], dtype="int64")}))["a"].codes) == 0


def test_batches_with_other_columns_are_refused():
    with pytest.raises(InvalidTableError, match="different columns"):
        coded(pd.DataFrame({"a": [1]}), pd.DataFrame({"b": [1]}))


@settings(max_examples=examples(60), deadline=None)
@given(
    st.lists(st.sampled_from(["a", "b", "", "á", "x" * 300, None]), min_size=1, max_size=30),
    st.integers(1, 7),
    st.integers(1, 3),
    st.sampled_from(["str", "category"]),
)
def test_texts_of_a_stored_table_have_equal_codes_where_they_are_equal(
    tmp_path_factory, texts, rows_per_batch, batches_at_once, dtype
):
    table = pd.DataFrame({"text": pd.Series(texts, dtype="str").astype(dtype), "number": range(len(texts))})
    parts = (table.iloc[begin : begin + rows_per_batch] for begin in range(0, len(table), rows_per_batch))
    stored = store(parts, tmp_path_factory.getbasetemp())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(factorizing, "BATCHES_AT_ONCE", batches_at_once)
        codes, found = code_texts(stored, "text")
    assert pd.factorize(codes)[0].tolist() == pd.factorize(table["text"], use_na_sentinel=False)[0].tolist()
    assert [None if code == len(found) else found[int(code)].as_py() for code in codes] == texts
    assert set(found.to_pylist()) == set(texts) - {None}
    assert code_texts(stored, "number") is None
    assert code_texts(stored.astype({"text": object}), "text") is None
    found = decoded(code_stored(stored, "text"))
    pd.testing.assert_series_equal(found.astype(object), table["text"].astype(object), check_names=False)


@pytest.mark.parametrize(
    ("first", "second", "n_values"),
    [
        (pa.dictionary(pa.int8(), pa.string()), pa.dictionary(pa.int8(), pa.string()), 200),
        (pa.dictionary(pa.uint8(), pa.string()), pa.dictionary(pa.uint8(), pa.string()), 200),
        (pa.string(), pa.large_string(), 200),
    ],
)
def test_files_with_narrow_codes_and_both_types_of_texts_are_coded(tmp_path, first, second, n_values):
    files = []
    for place, kind in enumerate((first, second)):
        texts = pa.array([*(f"{place} {number}" for number in range(n_values // 2)), None], pa.string())
        table = pa.table(
            {"text": texts.dictionary_encode().cast(kind) if pa.types.is_dictionary(kind) else texts.cast(kind)}
        )
        pq.write_table(table, tmp_path / f"{place}.parquet")
        files.append((tmp_path / f"{place}.parquet").open("rb"))
    codes, found = code_texts(StoredTable(files), "text")
    assert [None if code == n_values else found[int(code)].as_py() for code in codes] == [
        *(f"0 {number}" for number in range(n_values // 2)),
        None,
        *(f"1 {number}" for number in range(n_values // 2)),
        None,
    ]
