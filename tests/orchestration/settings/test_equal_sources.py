"""One table from every kind of source: equal fingerprints after admission, or the same counted refusal."""

import csv
import datetime as dt
import math
from collections import Counter
from decimal import Decimal
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from privacy_assets import (
    ContractError,
    InvalidTableError,
    SqlQuery,
    TableContract,
    TableFile,
    UpstreamAsset,
    draft_contract,
    fingerprint,
)
from privacy_assets.engine.local import LocalEngine
from privacy_assets.orchestration.settings.sources import read_source
from tests.examples import examples
from tests.orchestration.settings.postgresql import require_postgresql, running_server

duckdb = pytest.importorskip("duckdb", reason="needs the extra `sql`")
URL = "TEST_DATABASE_URL"
PARIS = ZoneInfo("Europe/Paris")
DATES = st.dates(dt.date(1, 1, 1), dt.date(9999, 12, 31))
TIMES = st.datetimes(dt.datetime(1, 1, 2), dt.datetime(9999, 12, 30))
AWARE = TIMES.map(lambda time: time.replace(tzinfo=dt.UTC))
TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0\r"), min_size=1, max_size=5)


def whole(bits, is_signed=True):
    top = 2 ** (bits - is_signed)
    near = [
        each for each in (0, 1, 2**53, 2**53 + 1, 2**53 + 2, top - 1, -top) if (-top if is_signed else 0) <= each < top
    ]
    return st.integers(-top if is_signed else 0, top - 1) | st.sampled_from(near)


def decimals(digits, scale):
    return st.integers(1 - 10**digits, 10**digits - 1).map(lambda value: Decimal(value).scaleb(-scale, CONTEXT))


CONTEXT = __import__("decimal").Context(prec=80)
FLOATS = st.floats(allow_nan=False) | st.sampled_from([0.1, -0.0, 2.0**53, 2.0**53 + 2, 2.0**60, 1e300, math.inf])
NUMBERS = ["integer", "float", "boolean"]
KINDS = {
    **{
        f"int{bits}": (getattr(pa, f"int{bits}")(), whole(bits), [*NUMBERS, "text", "category"])
        for bits in (8, 16, 32, 64)
    },
    **{
        f"uint{bits}": (getattr(pa, f"uint{bits}")(), whole(bits, False), [*NUMBERS, "text"])
        for bits in (8, 16, 32, 64)
    },
    "int128": (pa.decimal128(38, 0), decimals(38, 0), [*NUMBERS, "text"]),
    "small int128": (pa.decimal128(38, 0), st.integers(-9, 9).map(Decimal), [*NUMBERS, "text"]),
    "decimal": (pa.decimal128(20, 4), decimals(20, 4), NUMBERS),
    "short decimal": (pa.decimal128(9, 2), decimals(9, 2), NUMBERS),
    "money": (
        pa.decimal128(20, 2),
        st.integers(-(2**54), 2**54).map(lambda value: Decimal(value) + Decimal("0.00")),
        NUMBERS,
    ),
    "double": (pa.float64(), FLOATS, NUMBERS),
    "float": (pa.float32(), st.floats(width=32, allow_nan=False), NUMBERS),
    "bool": (pa.bool_(), st.booleans(), NUMBERS),
    "string": (pa.string(), TEXT, ["text", "category"]),
    "number in text": (
        pa.string(),
        st.from_regex(r"-?[0-9]{1,20}(\.[0-9]{1,18})?", fullmatch=True),
        [*NUMBERS, "text"],
    ),
    "date": (pa.date32(), DATES, ["datetime", "integer"]),
    "seconds": (
        pa.timestamp("s"),
        TIMES.map(lambda time: time.replace(microsecond=0)),
        ["datetime", "datetime64[us, UTC]"],
    ),
    "microseconds": (pa.timestamp("us"), TIMES, ["datetime", "float"]),
    "moment": (pa.timestamp("us", "UTC"), AWARE, ["datetime", "datetime64[us, UTC]", "datetime64[us, Europe/Paris]"]),
    "time": (pa.time64("us"), st.times(), ["text", "category", "integer"]),
    "short time": (pa.time32("s"), st.times().map(lambda time: time.replace(microsecond=0)), ["text"]),
    "uuid": (pa.string(), st.uuids().map(str), ["text"]),
}
SQL_TYPES = {
    pa.int8(): "smallint", pa.int16(): "smallint", pa.int32(): "integer", pa.int64(): "bigint", pa.uint8(): "smallint",
    pa.uint16(): "integer", pa.uint32(): "bigint", pa.uint64(): "numeric(20, 0)", pa.float64(): "double precision",
    pa.float32(): "real", pa.bool_(): "boolean", pa.string(): "text", pa.date32(): "date",
    pa.timestamp("s"): "timestamp",
    pa.timestamp("us"): "timestamp", pa.timestamp("us", "UTC"): "timestamptz", pa.time64("us"): "time",
    pa.time32("s"): "time",
}  # fmt: skip


def written(value):
    """A cell as another program writes it into a CSV file."""
    if value is None:
        return ""
    return str(value)


def cells_of(table, name):
    """The cells of a column; narrow floats stay narrow, because other programs write their own shortest digits."""
    narrow = np.float32 if pa.types.is_float32(table[name].type) else lambda value: value
    return [None if value is None else narrow(value) for value in table[name].to_pylist()]


@st.composite
def tables(draw):
    columns, described = {}, {}
    for place, kind in enumerate(draw(st.lists(st.sampled_from(sorted(KINDS)), min_size=1, max_size=3))):
        arrow, values, types = KINDS[kind]
        pool = draw(st.lists(values, min_size=1, max_size=4))
        cells = draw(st.lists(st.none() | st.sampled_from(pool), min_size=1, max_size=6))
        columns[f"c{place}"] = (arrow, cells)
        described[f"c{place}"] = {"type": draw(st.sampled_from(types)), "role": "other", "nullable": True}
    n_rows = max(len(cells) for _, cells in columns.values())
    arrays = {name: pa.array((cells * n_rows)[:n_rows], arrow) for name, (arrow, cells) in columns.items()}
    arrays["row"] = pa.array(range(n_rows), pa.int64())
    described["row"] = {"type": "integer", "role": "other"}
    coded = draw(st.booleans())
    for name, array in arrays.items():
        if coded and pa.types.is_string(array.type):
            arrays[name] = array.dictionary_encode()
    return pa.table(arrays), described


def in_a_file(table, directory):
    pq.write_table(table, directory / "people.parquet", row_group_size=2)
    return TableFile(str(directory / "people.parquet")).read(None)


def in_a_directory(table, directory):
    (directory / "parts").mkdir()
    for place, begin in enumerate(range(0, table.num_rows, 2)):
        pq.write_table(table.slice(begin, 2), directory / "parts" / f"{place}.parquet")
    return TableFile(str(directory / "parts"), format="parquet").read(None)


def in_csv(table, directory):
    with (directory / "people.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(table.column_names)
        columns = [map(written, cells_of(table, name)) for name in table.column_names]
        writer.writerows(zip(*columns, strict=True))
    return TableFile(str(directory / "people.csv")).read(None)


def by_query(url, query):
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv(URL, url)
        return SqlQuery(query, URL).read(None)


def in_duckdb(table, directory):
    pq.write_table(table, directory / "people.parquet")
    return by_query("duckdb://", f"SELECT * FROM '{directory / 'people.parquet'}' ORDER BY \"row\"")


def upstream(table, directory):
    frame = table.to_pandas(types_mapper=pd.ArrowDtype)
    return read_source("source", UpstreamAsset("people"), None, {"source_upstream": frame}, LocalEngine(), "people")


def by_a_function(table, directory):
    frame = pd.DataFrame({name: pd.Series(cells_of(table, name), dtype=object) for name in table.column_names})
    return read_source("source", lambda: frame, None, {}, LocalEngine(), "people")


SOURCES = [in_a_file, in_a_directory, in_csv, in_duckdb, upstream, by_a_function]


def decision(contract, frame):
    try:
        return fingerprint(contract.admit(frame))
    except ContractError as error:
        return Counter(error.failures)


@settings(max_examples=examples(300), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(tables())
def test_every_source_gives_the_same_table_or_the_same_refusal(tmp_path_factory, given_table):
    table, described = given_table
    contract = TableContract.from_mapping({"columns": described})
    found = {}
    for source in SOURCES:
        directory = tmp_path_factory.mktemp("source")
        found[source.__name__] = decision(contract, source(table, directory))
    assert len(set(map(str, found.values()))) == 1, found


@pytest.fixture(scope="module")
def postgresql():
    require_postgresql()
    with running_server() as url:
        yield url


@settings(max_examples=examples(100), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(tables())
def test_postgresql_gives_what_a_file_gives(postgresql, tmp_path_factory, given_table):
    import psycopg

    table, described = given_table
    types = [SQL_TYPES.get(kind, f"numeric({getattr(kind, 'precision', 0)}, {getattr(kind, 'scale', 0)})")
             for kind in (getattr(each, "value_type", each) for each in table.schema.types)]  # fmt: skip
    columns = ", ".join(f'"{name}" {kind}' for name, kind in zip(table.column_names, types, strict=True))
    with psycopg.connect(postgresql) as connection:
        connection.execute(f"DROP TABLE IF EXISTS people; CREATE TABLE people ({columns})")
        places = ", ".join(["%s"] * table.num_columns)
        rows = [list(row.values()) for row in table.to_pylist()]
        connection.cursor().executemany(f"INSERT INTO people VALUES ({places})", rows)
    contract = TableContract.from_mapping({"columns": described})
    expected = decision(contract, in_a_file(table, tmp_path_factory.mktemp("source")))
    assert decision(contract, by_query(postgresql, 'SELECT * FROM people ORDER BY "row"')) == expected


WITHOUT_A_TYPE = {
    "binary": pa.array([b"a", b"b"]),
    "large binary": pa.array([b"a", None], pa.large_binary()),
    "durations": pa.array([dt.timedelta(1), None], pa.duration("us")),
    "lists": pa.array([[1], [2]]),
    "records": pa.array([{"a": 1}, None]),
    "periods": pa.array(pd.period_range("2024", periods=2, freq="M")),
    "intervals": pa.array(pd.interval_range(0, 2)),
}


@pytest.mark.parametrize("kind", ["text", "category", "integer", "float", "boolean", "datetime"])
@pytest.mark.parametrize("cells", WITHOUT_A_TYPE)
def test_values_without_a_type_are_refused_with_one_count(tmp_path_factory, cells, kind):
    array = WITHOUT_A_TYPE[cells]
    table = pa.table({"row": [0, 1], "x": array})
    described = {"row": {"type": "integer", "role": "other"}, "x": {"type": kind, "role": "other", "nullable": True}}
    contract = TableContract.from_mapping({"columns": described})
    sources = [in_a_file, in_a_directory]
    sources += [by_a_function, upstream] if not isinstance(array, pa.ExtensionArray) else [lambda t, _: t.to_pandas()]
    sources += [in_duckdb] if cells in ("binary", "lists") else []
    for source in sources:
        found = decision(contract, source(table, tmp_path_factory.mktemp("source")))
        assert found == Counter([("x", f"has_type_{kind}", len(array) - array.null_count)])


def test_bytes_in_a_csv_file_are_refused(tmp_path):
    pd.DataFrame({"age": [1, 2], "photo": [b"a'", b'b"']}).to_csv(tmp_path / "people.csv", index=False)
    for read in (
        lambda: TableFile(str(tmp_path / "people.csv")).read(None),
        lambda: draft_contract(tmp_path / "people.csv"),
    ):
        with pytest.raises(InvalidTableError, match=r"1 columns of .* have bytes in Python's notation \(positions 1\)"):
            read()


def test_a_named_index_of_pandas_is_a_column_like_in_every_other_reader(tmp_path):
    frame = pd.DataFrame({"patient": ["a", "b"], "age": [1, 2]}).set_index("patient")
    frame.to_parquet(tmp_path / "people.parquet")
    for query in (TableFile(str(tmp_path / "people.parquet")), TableFile(str(tmp_path), format="parquet")):
        assert sorted(query.read(None).columns) == ["age", "patient"]
    assert sorted(by_query("duckdb://", f"SELECT * FROM '{tmp_path / 'people.parquet'}'").columns) == ["age", "patient"]
    assert list(draft_contract(tmp_path / "people.parquet").mapping["columns"]) == ["age", "patient"]
