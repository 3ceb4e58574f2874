"""Fingerprints that are recorded stay valid: the digest of each kind of column is fixed, however it is computed."""

import datetime as dt
import hashlib
import struct

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacy_assets.errors import InvalidTableError
from privacy_assets.storage.fingerprint import fingerprint
from tests.examples import examples

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
    "int8": "83aac3f454017523",
    "int64": "60c6df036c14ce81",
    "uint8": "6946926c738c49c9",
    "uint64": "90e371ed3c7f4f65",
    "Int32": "9f6dcb7f7e315fba",
    "int64[pyarrow]": "9f6dcb7f7e315fba",
    "float16": "05380a801957b64b",
    "float32": "4a0e5c3358a660e9",
    "float64": "18d05ce4d6e3d425",
    "Float64": "70222cc5ad964a62",
    "bool": "ad178248e2fad3b5",
    "boolean": "7b8ace5364ab8dee",
    "bool in objects": "e40e2722c13742a2",
    "str": "407409e7d4c22e3f",
    "string": "407409e7d4c22e3f",
    "string[pyarrow]": "407409e7d4c22e3f",
    "string view": "407409e7d4c22e3f",
    "text in objects": "407409e7d4c22e3f",
    "missing": "782235ddbdb9352a",
    "date": "625cfcca07d3519f",
    "date32[pyarrow]": "625cfcca07d3519f",
    "date64[pyarrow]": "625cfcca07d3519f",
    "datetime64[s]": "b60b4d8e708a1c69",
    "datetime64[us]": "1c72a91a878cb9ec",
    "datetime64[ns]": "1c72a91a878cb9ec",
    "far datetime": "72f510f2bd5fb202",
    "aware datetime": "73624359230163b6",
    "timedelta64[s]": "c3f825012dbbbe1f",
    "category": "407409e7d4c22e3f",
    "ordered category": "443581fdfa7a295b",
    "category of objects": "407409e7d4c22e3f",
    "category with an unused number": "cf9c1449bdd94bf5",
    "category without values": "782235ddbdb9352a",
    "category of which none is used": "8a0a333ede4df696",
    "category of objects of which none is used": "3d17063014d21866",
    "category of integers": "9f6dcb7f7e315fba",
    "category of small integers": "e72e37fb92843bf4",
    "category of Int64": "9f6dcb7f7e315fba",
    "category of floats": "e1c2902fefa81c29",
    "category of booleans": "7b8ace5364ab8dee",
    "category of dates": "625cfcca07d3519f",
    "category of string[pyarrow]": "407409e7d4c22e3f",
    "category without rows": "c04c04d592d391f2",
    "text without rows": "c04c04d592d391f2",
    "slice of text": "407409e7d4c22e3f",
    "slice of category": "407409e7d4c22e3f",
    "chunked text": "407409e7d4c22e3f",
}


@pytest.mark.parametrize("kind", COLUMNS)
def test_the_digest_of_a_kind_of_column_is_fixed(kind):
    assert fingerprint(pd.DataFrame({"own name": COLUMNS[kind]}))[:16] == EXPECTED[kind]


def written_cell_by_cell(name: str, kind: str, values: list) -> str:
    """Compute the fingerprint of one column as its definition reads."""
    data = b"privacy_assets table 1" + struct.pack("<qq", len(values), 1)
    for text in (name, kind):
        data += struct.pack("<q", len(text.encode())) + text.encode()
    data += bytes(value is not None for value in values)
    present = [value for value in values if value is not None]
    if kind == "large_string":
        data += b"".join(struct.pack("<q", len(text.encode())) for text in present)
        data += b"".join(text.encode() for text in present)
    else:
        data += b"".join(struct.pack({"int64": "<q", "double": "<d"}[kind], value) for value in present)
    return hashlib.sha256(data).hexdigest()


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
