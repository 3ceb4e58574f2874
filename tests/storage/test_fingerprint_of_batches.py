import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacy_assets.errors import InvalidTableError
from privacy_assets.storage.fingerprint import (
    ROWS_PER_DIGEST,
    BatchFingerprint,
    RowsDigest,
    digest_of_digests,
    fingerprint,
)
from tests.examples import examples
from tests.reference.fingerprint import reference_fingerprint
from tests.storage.test_fingerprint import every_kind
from tests.storage.test_fingerprints_stay import COLUMNS

KINDS = {
    "int64": (st.integers(-(2**63), 2**63 - 1), [pa.int64()]),
    "uint64": (st.integers(0, 2**64 - 1), [pa.uint64()]),
    "double": (st.floats(), [pa.float64(), pa.dictionary(pa.int32(), pa.float64())]),
    "bool": (st.booleans(), [pa.bool_()]),
    "large_string": (
        st.text("aé\0 ", max_size=3),
        [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())],
    ),
    "date32[day]": (st.integers(-(10**6), 10**6), [pa.date32()]),
    "duration[ns]": (st.integers(-(2**62), 2**62), [pa.duration("ns")]),
    "timestamp": (st.integers(-(2**62), 2**62), [pa.timestamp("ns")]),
    "timestamp[tz=Europe/Paris]": (st.integers(-(2**62), 2**62), [pa.timestamp("ns", "Europe/Paris")]),
    "null": (st.none(), [pa.null()]),
}


@st.composite
def columns_of_batches(draw):
    """Columns as cells, and the same as a table in Arrow."""
    n_rows = draw(st.integers(0, 12))
    cells, arrays = [], []
    for place in range(draw(st.integers(1, 3))):
        kind = draw(st.sampled_from(sorted(KINDS)))
        values, types = KINDS[kind]
        own = draw(st.lists(st.none() | values, min_size=n_rows, max_size=n_rows))
        stored = draw(st.sampled_from(types))
        plain = stored.value_type if pa.types.is_dictionary(stored) else stored
        if pa.types.is_temporal(plain):
            width = pa.int32() if pa.types.is_date32(plain) else pa.int64()
            array = pa.array(own, width).view(plain)
        else:
            array = pa.array(own, plain)
        cells.append((f"é{place}", kind, own))
        arrays.append(array.dictionary_encode().cast(stored) if pa.types.is_dictionary(stored) else array)
    return cells, pa.table(arrays, names=[name for name, _, _ in cells])


def fingerprint_of_batches(schema, batches, rows_per_digest=ROWS_PER_DIGEST):
    """Compute the fingerprint of a table from batches of its rows, in their order."""
    found = BatchFingerprint(schema, rows_per_digest=rows_per_digest)
    for batch in batches:
        found.update(batch)
    return found.hexdigest()


def digest_of_rows(values):
    found = RowsDigest()
    found.update(values)
    return found.digest()


def cut(table: pa.Table, sizes: list[int]) -> list[pa.RecordBatch]:
    """Cut a table into batches of these sizes, again and again, empty ones included."""
    batches, begin = [], 0
    while begin < table.num_rows:
        for size in sizes:
            rows = table.slice(begin, size).combine_chunks()
            batches += rows.to_batches() or [pa.RecordBatch.from_pylist([], schema=table.schema)]
            begin += size
    return [batch.cast(table.schema) for batch in batches]


@settings(max_examples=examples(200), deadline=None)
@given(columns_of_batches(), st.integers(1, 5), st.lists(st.integers(0, 4), min_size=1, max_size=4).filter(any))
def test_the_fingerprint_is_that_of_the_cells_one_by_one_however_the_batches_are_cut(columns, rows_per_digest, sizes):
    cells, table = columns
    expected = reference_fingerprint(cells, rows_per_digest)
    batches = cut(table, sizes)
    assert fingerprint_of_batches(table.schema, batches, rows_per_digest=rows_per_digest) == expected


@settings(max_examples=examples(60), deadline=None)
@given(columns_of_batches())
def test_digests_of_rows_can_be_computed_apart(columns):
    cells, table = columns
    digests = [
        [
            digest_of_rows(table.column(place).combine_chunks().slice(begin, 3).cast(_canonical(kind)))
            for begin in range(0, table.num_rows, 3)
        ]
        for place, (_, kind, _) in enumerate(cells)
        if kind != "double"  # The caller makes NaN missing.
    ]
    cells = [each for each in cells if each[1] != "double"]
    if cells:
        kinds = [(name, kind if any(cell is not None for cell in own) else "null") for name, kind, own in cells]
        found = digest_of_digests(kinds, table.num_rows, digests)
        assert found == reference_fingerprint(cells, 3)


def _canonical(kind: str) -> pa.DataType:
    if kind.startswith("timestamp"):
        return pa.timestamp("ns", "Europe/Paris" if "Paris" in kind else None)
    return {"large_string": pa.large_string(), "date32[day]": pa.date32(), "duration[ns]": pa.duration("ns")}.get(
        kind
    ) or pa.type_for_alias(kind)


@pytest.mark.parametrize("kind", COLUMNS)
def test_a_frame_has_the_fingerprint_of_its_parquet_file(kind, tmp_path):
    table = pd.DataFrame({"own name": COLUMNS[kind]})
    if isinstance(table["own name"].dtype, pd.CategoricalDtype):
        table["own name"] = table["own name"].cat.remove_unused_categories()
    table.to_parquet(tmp_path / "table.parquet", index=False)
    file = pq.ParquetFile(tmp_path / "table.parquet")
    found = fingerprint_of_batches(file.schema_arrow, file.iter_batches(1))
    assert found == fingerprint(table)


def test_equal_tables_have_one_fingerprint_and_others_another():
    table = every_kind()
    same = [
        table.convert_dtypes(dtype_backend="pyarrow"),
        table.assign(category=table["category"].astype(str)),
    ]
    others = [
        table.iloc[::-1],
        table.rename(columns={"text": "texts"}),
        table[list(table.columns[::-1])],
        table.assign(text=[None, "x", "yé"]),
        table.assign(aware=table["aware"].dt.tz_convert("UTC")),
    ]
    assert {fingerprint(each) for each in same} == {fingerprint(table)}
    assert len({fingerprint(each) for each in [table, *others]}) == 1 + len(others)


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_the_unit_of_datetimes_does_not_matter_but_nanoseconds_do(unit):
    moments = np.array(["2024-02-29T12:00:00", "NaT", "1900-01-01"], f"datetime64[{unit}]")
    expected = fingerprint(pd.DataFrame({"at": moments.astype("datetime64[us]")}))
    assert fingerprint(pd.DataFrame({"at": moments})) == expected
    finer = moments.astype("datetime64[ns]") + np.timedelta64(1, "ns")
    assert fingerprint(pd.DataFrame({"at": finer})) != expected


def test_the_fingerprint_so_far_does_not_end_the_table():
    table = pa.table({"a": [1, 2, 3, 4, 5]})
    found = BatchFingerprint(table.schema, rows_per_digest=2)
    for batch in table.to_batches(max_chunksize=1):
        found.update(batch)
        found.hexdigest()
    assert found.hexdigest() == reference_fingerprint([("a", "int64", [1, 2, 3, 4, 5])], 2)


def test_the_format_is_fixed():
    table = pd.DataFrame({"a": [1, 2], "b": ["x", None], "c": pd.to_datetime(["2024-02-29", None])})
    assert fingerprint(table)[:16] == "b6aa4af092affd74"
    assert ROWS_PER_DIGEST == 2**20


@pytest.mark.parametrize(
    ("schema", "batch", "message"),
    [
        (pa.schema([("a", pa.list_(pa.int8()))]), None, "'a' has values of a kind without a fingerprint"),
        (pa.schema([("a", pa.int8()), ("a", pa.int8())]), None, "1 are repeated"),
        (pa.schema([("a", pa.int8())]), pa.record_batch({"a": ["SENTINEL"]}), "other columns or types"),
        (
            pa.schema([("a", pa.timestamp("s"))]),
            pa.record_batch({"a": pa.array([2**60]).cast(pa.timestamp("s"))}),
            "'a' has values that its kind cannot store",
        ),
    ],
)
def test_what_has_no_fingerprint_is_named_without_a_cell(schema, batch, message):
    with pytest.raises(InvalidTableError, match=message) as raised:
        fingerprint_of_batches(schema, [] if batch is None else [batch])
    assert "SENTINEL" not in str(raised.value)
    assert raised.value.__context__ is None
