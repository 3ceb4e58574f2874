import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacy_assets.errors import InvalidTableError
from privacy_assets.storage import coded_columns
from privacy_assets.storage.coded_columns import ColumnCoder, unload
from tests.examples import examples
from tests.mixed_tables import table_pairs


def coded(*batches, directory=None):
    with ColumnCoder(directory) as coder:
        for batch in batches:
            coder.add(batch.reset_index(drop=True))
        return coder.finish()


@settings(max_examples=examples(100), deadline=None)
@given(table_pairs(max_columns=4, max_rows=20), st.integers(1, 5))
def test_the_codes_give_the_table_back(tables, rows_per_batch):
    table = tables[0]
    table = table[[name for name in table if not name.startswith(("date ", "missing"))]]
    found = coded(*(table.iloc[begin : begin + rows_per_batch] for begin in range(0, len(table), rows_per_batch)))
    assert list(found) == list(table.columns)
    for name, column in found.items():
        assert len(column) == len(table)
        rebuilt = column.take(np.arange(len(table)))
        expected = table[name].reset_index(drop=True)
        assert rebuilt.dtype == expected.dtype
        # A missing text may be None or NaN.
        pd.testing.assert_series_equal(rebuilt.where(rebuilt.notna()), expected.where(expected.notna()))
        assert column.distinct.isna().sum() == table[name].isna().any()
        assert column.codes.dtype == np.uint8


def test_codes_lie_in_files_without_a_name_and_are_written_block_by_block(tmp_path, monkeypatch):
    monkeypatch.setattr(coded_columns, "ROWS_PER_BLOCK", 3)
    first = pd.DataFrame({"a": np.arange(300), "b": ["x"] * 300})
    found = coded(first, pd.DataFrame({"a": np.arange(299, 500), "b": [None] * 201}), directory=tmp_path)
    assert found["a"].codes.dtype == np.uint16
    assert found["a"].distinct.tolist() == list(range(500))
    assert found["b"].codes.tolist() == [0] * 300 + [1] * 201
    assert type(found["a"].codes) is np.ndarray
    assert isinstance(found["a"].codes.base, np.memmap)
    twice = found["a"].translated(np.arange(500, dtype=np.int32) * 2)
    assert twice.dtype == np.int32
    assert twice.tolist() == [*range(0, 600, 2), *range(598, 1000, 2)]
    assert list(tmp_path.iterdir()) == []


def test_a_table_without_rows_has_codes_without_rows():
    assert len(coded(pd.DataFrame({"a": pd.Series([], dtype="int64")}))["a"]) == 0


def test_batches_with_other_columns_are_refused():
    with pytest.raises(InvalidTableError, match="different columns"):
        coded(pd.DataFrame({"a": [1]}), pd.DataFrame({"b": [1]}))


@settings(max_examples=examples(50), deadline=None)
@given(st.lists(st.sampled_from(["a", "b", "", "á", "[1]", "x" * 300]), min_size=1, max_size=30), st.integers(1, 7))
def test_hashed_texts_have_equal_codes_where_they_are_equal(texts, rows_per_batch):
    table = pd.DataFrame({"text": texts, "place": np.arange(len(texts))})
    with ColumnCoder(hashed=["text"]) as coder:
        for begin in range(0, len(table), rows_per_batch):
            coder.add(table.iloc[begin : begin + rows_per_batch].reset_index(drop=True))
        found = coder.finish()
    assert found["text"].codes.tolist() == pd.factorize(table["text"])[0].tolist()
    assert found["text"].distinct.dtype == np.uint64
    assert len(found["text"].distinct) == len(set(texts))
    assert found["place"].distinct.tolist() == list(range(len(texts)))


def test_two_coders_hash_with_different_keys():
    def hashes():
        with ColumnCoder(hashed=["text"]) as coder:
            coder.add(pd.DataFrame({"text": ["a", "b"]}))
            return set(coder.finish()["text"].distinct)

    assert not hashes() & hashes()


def test_codes_whose_pages_were_let_go_are_still_there(tmp_path):
    codes = coded(pd.DataFrame({"a": np.arange(50_000)}), directory=tmp_path)["a"].codes
    expected = codes.tolist()
    codes[3] = 7
    unload(codes)
    unload(np.arange(3))
    assert codes.tolist() == [*expected[:3], 7, *expected[4:]]
