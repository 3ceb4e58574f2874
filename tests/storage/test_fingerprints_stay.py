"""Fingerprints that are recorded stay valid: the digest of each kind of column is fixed, however it is computed."""

import datetime as dt

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacy_assets.errors import InvalidTableError
from privacy_assets.storage.fingerprint import ROWS_PER_DIGEST, fingerprint
from tests.examples import examples
from tests.reference.fingerprint import reference_fingerprint

DAY = dt.date(2024, 2, 29)
TEXTS = ["x", None, "yé", "", "x"]
NUMBERS = [3, 1, None, 3]
COLUMNS = {
    "int8": pd.Series([1, -2], dtype="int8"),
    "int64": pd.Series([1, -(2**60)]),
    "uint8": pd.Series([1, 255], dtype="uint8"),
    "uint64": pd.Series([1, 2**63], dtype="uint64"),
    "Int32": pd.Series(NUMBERS, dtype="Int32"),
    "int64[pyarrow]": pd.Series(NUMBERS, dtype=pd.ArrowDtype(pa.int64())),
    "float16": pd.Series([0.5, np.nan], dtype="float16"),
    "float32": pd.Series([0.1, np.nan], dtype="float32"),
    "float64": pd.Series([0.1, -0.0, np.nan, np.inf]),
    "Float64": pd.Series([0.1, None], dtype="Float64"),
    "bool": pd.Series([True, False, True]),
    "boolean": pd.Series([True, None, False], dtype="boolean"),
    "bool in objects": pd.Series([True, None], dtype=object),
    "str": pd.Series(TEXTS, dtype="str"),
    "string": pd.Series(TEXTS, dtype="string"),
    "string[pyarrow]": pd.Series(TEXTS, dtype=pd.ArrowDtype(pa.string())),
    "string view": pd.Series(TEXTS, dtype=pd.ArrowDtype(pa.string_view())),
    "text in objects": pd.Series(TEXTS, dtype=object),
    "missing": pd.Series([None, None], dtype=object),
    "date": pd.Series([DAY, None], dtype=object),
    "date32[pyarrow]": pd.Series([DAY, None], dtype=pd.ArrowDtype(pa.date32())),
    "date64[pyarrow]": pd.Series([DAY, None], dtype=pd.ArrowDtype(pa.date64())),
    "datetime64[s]": pd.Series(np.array(["2024-02-29T12:00:00", "NaT"], "datetime64[s]")),
    "datetime64[us]": pd.Series(np.array(["2024-02-29T12:00:00.5", "NaT"], "datetime64[us]")),
    "datetime64[ns]": pd.Series(np.array(["2024-02-29T12:00:00.5", "NaT"], "datetime64[ns]")),
    "far datetime": pd.Series(np.array(["9999-12-31", "NaT"], "datetime64[us]")),
    "aware datetime": pd.Series(pd.to_datetime(["2024-02-29", None])).dt.tz_localize("Europe/Paris"),
    "timedelta64[s]": pd.Series(np.array([5, -7], "timedelta64[s]")),
    "category": pd.Series(pd.Categorical(TEXTS, categories=["unused", "yé", "x", ""])),
    "ordered category": pd.Series(pd.Categorical(["b", "a"], categories=["b", "a"], ordered=True)),
    "category of objects": pd.Series(pd.Categorical(TEXTS, categories=pd.Index(["yé", "x", ""], dtype=object))),
    "category with an unused number": pd.Series(pd.Categorical(["a"], categories=pd.Index(["a", 1], dtype=object))),
    "category without values": pd.Series(pd.Categorical([None, None])),
    "category of which none is used": pd.Series(pd.Categorical([None], categories=["a"])),
    "category of objects of which none is used": pd.Series(
        pd.Categorical([None], categories=pd.Index(["a"], dtype=object))
    ),
    "category of integers": pd.Series(pd.Categorical(NUMBERS)),
    "category of small integers": pd.Series(pd.Categorical(np.array([3, 1], "int8"))),
    "category of Int64": pd.Series(pd.Categorical(pd.array(NUMBERS, "Int64"))),
    "category of floats": pd.Series(pd.Categorical([0.5, None, -0.0])),
    "category of booleans": pd.Series(pd.Categorical([True, None, False])),
    "category of dates": pd.Series(pd.Categorical([DAY, None])),
    "category of string[pyarrow]": pd.Series(TEXTS, dtype=pd.ArrowDtype(pa.string())).astype("category"),
    "category without rows": pd.Series(pd.Categorical([], categories=["a"])),
    "text without rows": pd.Series([], dtype="str"),
    "slice of text": pd.Series(["before", *TEXTS, "after"], dtype="str").iloc[1:-1],
    "slice of category": pd.Series(["before", *TEXTS, "after"], dtype="category").iloc[1:-1],
    "chunked text": pd.concat([pd.Series(["x", None], dtype="str"), pd.Series(["yé", "", "x"], dtype="str")]),
}
EXPECTED = {
    "int8": "d3bdf898a7651084",
    "int64": "c9dcb4dbbde66073",
    "uint8": "b2c8c3708b7f2f15",
    "uint64": "45e25448adf06e67",
    "Int32": "c953c6cec90a9ace",
    "int64[pyarrow]": "c953c6cec90a9ace",
    "float16": "86f502d2fee2d9cf",
    "float32": "90bc42524cbdf8d7",
    "float64": "91af218f8a0e89d7",
    "Float64": "476ae44c70985bac",
    "bool": "7eedac1a56b97e5c",
    "boolean": "827c81cc71b59b1e",
    "bool in objects": "0280d644f8a02044",
    "str": "ed24060971680ab3",
    "string": "ed24060971680ab3",
    "string[pyarrow]": "ed24060971680ab3",
    "string view": "ed24060971680ab3",
    "text in objects": "ed24060971680ab3",
    "missing": "9677301785556eb1",
    "date": "8e1aa7e5e8669f26",
    "date32[pyarrow]": "8e1aa7e5e8669f26",
    "date64[pyarrow]": "8e1aa7e5e8669f26",
    "datetime64[s]": "97501ad8030bb01f",
    "datetime64[us]": "3f472a25090793b5",
    "datetime64[ns]": "3f472a25090793b5",
    "far datetime": "d61aaf578ffb192d",
    "aware datetime": "c92244a0119926f4",
    "timedelta64[s]": "36308d89303a830d",
    "category": "ed24060971680ab3",
    "ordered category": "09391670fa61823f",
    "category of objects": "ed24060971680ab3",
    "category with an unused number": "5c07bcd68b7fc273",
    "category without values": "9677301785556eb1",
    "category of which none is used": "7e20d3ca2fa79c2a",
    "category of objects of which none is used": "7e20d3ca2fa79c2a",
    "category of integers": "c953c6cec90a9ace",
    "category of small integers": "a72d482dbdae2139",
    "category of Int64": "c953c6cec90a9ace",
    "category of floats": "91c869591d7e27b2",
    "category of booleans": "827c81cc71b59b1e",
    "category of dates": "8e1aa7e5e8669f26",
    "category of string[pyarrow]": "ed24060971680ab3",
    "category without rows": "a5ad70a498946719",
    "text without rows": "a5ad70a498946719",
    "slice of text": "ed24060971680ab3",
    "slice of category": "ed24060971680ab3",
    "chunked text": "ed24060971680ab3",
}


@pytest.mark.parametrize("kind", COLUMNS)
def test_the_digest_of_a_kind_of_column_is_fixed(kind):
    assert fingerprint(pd.DataFrame({"own name": COLUMNS[kind]}))[:16] == EXPECTED[kind]


def written_cell_by_cell(name: str, kind: str, values: list) -> str:
    """Compute the fingerprint of one column as its definition reads."""
    return reference_fingerprint([(name, kind, values)], ROWS_PER_DIGEST)


KINDS = {
    "large_string": ["str", "string", "object"],
    "int64": ["Int64", pd.ArrowDtype(pa.int64())],
    "double": ["float64", "Float64"],
}
VALUES = {
    "large_string": st.text("aé\0 ", max_size=3),
    "int64": st.integers(-(2**62), 2**62),
    "double": st.floats(1, 2),
}


@pytest.mark.parametrize("dtype", KINDS["int64"])
def test_large_integers_in_categories_with_missing_ones_are_not_merged(dtype):
    values = [None, 0, -9_007_199_254_740_993]
    column = pd.Series(values, dtype=dtype).astype("category")
    assert fingerprint(pd.DataFrame({"é": column})) == written_cell_by_cell("é", "int64", values)


@settings(max_examples=examples(60), deadline=None)
@given(st.data(), st.sampled_from(sorted(KINDS)), st.booleans())
def test_the_fingerprint_is_that_of_the_cells_one_by_one(data, kind, as_category):
    values = data.draw(st.lists(st.none() | VALUES[kind], max_size=8))
    column = pd.Series(values, dtype=data.draw(st.sampled_from(KINDS[kind])))
    if as_category and column.notna().any():
        column = column.astype("category")
    elif kind == "large_string" and not column.notna().any():
        return  # Objects without a value have no kind.
    start = data.draw(st.integers(0, len(values)))
    if kind == "large_string" and not column.iloc[start:].notna().any():
        return
    assert fingerprint(pd.DataFrame({"é": column.iloc[start:]})) == written_cell_by_cell("é", kind, values[start:])


@pytest.mark.parametrize(
    "categories",
    [
        pd.to_datetime(["2024-02-29"]),
        pd.to_timedelta([1], unit="s"),
        pd.Index([("a",)], tupleize_cols=False),
        pd.Index([1, "a"], dtype=object),
        pd.Index([b"a"], dtype=object),
    ],
    ids=["datetimes", "durations", "tuples", "several kinds", "bytes"],
)
def test_categories_of_other_kinds_are_still_refused(categories):
    column = pd.Categorical.from_codes(range(len(categories)), categories)
    with pytest.raises(InvalidTableError, match="several kinds"):
        fingerprint(pd.DataFrame({"a": column}))
