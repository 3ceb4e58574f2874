import pandas as pd
import pytest

from privacy_assets.release.written_data import write_table
from privacy_assets.storage import table as table_module
from privacy_assets.storage.fingerprint import fingerprint
from privacy_assets.storage.table import store

TABLE = pd.DataFrame(
    {
        "grade": pd.Categorical(list("lhml"), categories=[*"lmh", "never given"], ordered=True),
        "ward": pd.Categorical(["red", "blue", "green", "red"], categories=["blue", "closed ward", "green", "red"]),
        "n": range(4),
    }
)


@pytest.mark.parametrize("n_rows", [1, 2, 3, 4])
def test_a_released_file_has_the_order_of_categories_and_none_that_no_row_has(tmp_path, monkeypatch, n_rows):
    monkeypatch.setattr(table_module, "ROWS_PER_BATCH", n_rows)
    rows = [TABLE.iloc[begin : begin + n_rows] for begin in range(0, 4, n_rows)]
    write_table(tmp_path / "t.parquet", store(rows, tmp_path), 10)
    read = pd.read_parquet(tmp_path / "t.parquet")
    assert read["grade"].cat.ordered
    assert list(read["grade"].cat.categories) == list("lmh")
    assert sorted(read["ward"].cat.categories) == ["blue", "green", "red"]
    assert (read["grade"] >= "m").tolist() == [False, True, True, False]
    assert fingerprint(read) == fingerprint(TABLE)
    written = (tmp_path / "t.parquet").read_bytes()
    assert b"never" not in written
    assert b"closed" not in written
