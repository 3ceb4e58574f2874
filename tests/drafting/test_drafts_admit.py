"""A draft, decided as it proposes, admits its table; or drafting refuses with the name of the column."""

import csv
import datetime as dt
import io
from decimal import Decimal
from fractions import Fraction
from uuid import UUID
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from privacy_assets import InvalidTableError, TableContract, TableFile, draft_contract, fingerprint
from tests.examples import examples

LONG = "a name of five thousand characters, " * 140
PARIS = ZoneInfo("Europe/Paris")
N_ROWS = 12
DAYS = pd.date_range("2024-03-01", periods=N_ROWS, freq="30D")


def decided(draft):
    """The contract as drafted, read back from YAML, with each open decision made in every proposed way."""
    mapping = yaml.safe_load(draft.to_yaml())
    del mapping["drafted"]
    for form in ({"decimal": ".", "format": "%d/%m/%Y"}, {"decimal": ",", "format": "%m/%d/%Y"}):
        columns = {}
        for name, own in mapping["columns"].items():
            decisions = {"role": "quasi_identifier", "not_a_person": "Decided in this test", **form}
            # Whether a column has the person of each row is decided by leaving the key out.
            own = {key: value for key, value in own.items() if (key, value) != ("person", "decide")}
            columns[name] = {key: decisions[key] if value == "decide" else value for key, value in own.items()}
        has_person = any("person" in own for own in columns.values())
        yield TableContract.from_mapping({"columns": columns, "one_row_per_person": not has_person})


def require_admitted(table, draft):
    for contract in decided(draft):
        admitted = contract.admit(table)
        assert fingerprint(admitted)


COLUMNS = {
    "int8": np.arange(N_ROWS, dtype="int8"),
    "uint64 beyond int64": np.arange(2**63, 2**63 + N_ROWS, dtype="uint64"),
    "small uint64": np.arange(N_ROWS, dtype="uint64"),
    "integers beyond floats": pd.array([2**53 + place for place in range(N_ROWS - 1)] + [None], dtype="Int64"),
    "the ends of int64": [-(2**63), 2**63 - 1] * 6,
    "integers just above two digits": [10**18 + place for place in range(N_ROWS)],
    "python integers beyond int64": [2**70 + place for place in range(N_ROWS)],
    "whole Decimals of 38 digits": [Decimal(10**37 + place) for place in range(N_ROWS)],
    "Decimals": [Decimal("1.50"), Decimal("2.25")] * 6,
    "Decimals of many digits": [Decimal("0.12345678901234567890"), Decimal(1)] * 6,
    "floats": np.linspace(0, 1, N_ROWS),
    "whole floats": np.arange(N_ROWS) * 1.0,
    "floats beyond 2**53": np.arange(N_ROWS) * 2.0**60,
    "float32": np.arange(N_ROWS, dtype="float32") / 10,
    "float16": np.arange(N_ROWS, dtype="float16") / 10,
    "long double": np.arange(N_ROWS, dtype="longdouble") / 10,
    "infinite": [1.5, np.inf] * 6,
    "complex": [1 + 2j, 3j] * 6,
    "booleans": [True, False] * 6,
    "booleans and missing": [True, None] * 6,
    "booleans and numbers": [True, 2] * 6,
    "durations": pd.to_timedelta(range(N_ROWS), unit="D"),
    "durations as objects": [dt.timedelta(days=place) for place in range(N_ROWS)],
    "months": pd.period_range("2024-01", periods=N_ROWS, freq="M"),
    "intervals": pd.interval_range(0, N_ROWS),
    "times": [dt.time(place) for place in range(N_ROWS)],
    "time32": pd.array([dt.time(place) for place in range(N_ROWS)], dtype=pd.ArrowDtype(pa.time32("s"))),
    "times of microseconds": [dt.time(0, 0, 0, place) for place in range(N_ROWS)],
    "dates": [day.date() for day in DAYS],
    "far dates": [dt.date(1, 1, 1), dt.date(9999, 12, 31)] * 6,
    "datetimes": DAYS,
    "far datetimes": pd.Series(np.array(["0001-01-01", "9999-12-31T23:59:59"] * 6, "datetime64[us]")),
    "beyond the year 9999": pd.Series(np.array(["20000-01-01"] * N_ROWS, "datetime64[s]")),
    "nanoseconds": pd.to_datetime(range(N_ROWS), unit="ns"),
    "a named zone": DAYS.tz_localize(PARIS),
    "the end of a year in a zone": pd.DatetimeIndex(["2023-12-31 23:30", "2024-01-01 00:30"] * 6).tz_localize(PARIS),
    "an offset": DAYS.tz_localize("+01:00"),
    "moments as objects": [day.tz_localize(PARIS).to_pydatetime() for day in DAYS],
    "moments of two zones": [DAYS[0].tz_localize("UTC"), DAYS[1].tz_localize(PARIS)] * 6,
    "with and without a zone": [DAYS[0].tz_localize("UTC"), DAYS[1]] * 6,
    "texts": list("abcdefghijkl"),
    "few texts": ["a", "b", None] * 4,
    "empty texts": ["", " ", "a"] * 4,
    "no Unicode": pd.Series(["a\ud800", "b"] * 6, dtype=object),
    "NUL": ["a\0", "b"] * 6,
    "words for missing": ["NA", "1", "n/a"] * 4,
    "words for missing among texts": ["NA", "a", "?"] * 4,
    "categories": pd.Categorical(["a", "b"] * 6, categories=["b", "unused", "a"], ordered=True),
    "categories of integers": pd.Categorical([2**53, 2**53 + 1, None] * 4),
    "categories of fractions": pd.Categorical([0.5, 1.5] * 6),
    "categories of dates": pd.Categorical(DAYS),
    "categories of durations": pd.Categorical(pd.to_timedelta(range(N_ROWS), unit="D")),
    "bytes": [b"a", b"b"] * 6,
    "UUIDs": [UUID(int=place) for place in range(N_ROWS)],
    "fractions": [Fraction(1, 3)] * N_ROWS,
    "lists": [[1], [2]] * 6,
    "records": [{"a": 1}] * N_ROWS,
    "mixed": [1, "a"] * 6,
    "a number and its text": [1, "1"] * 6,
    "numbers and texts": [1.5, "a"] * 6,
    "dates and texts": [dt.date(2020, 1, 1), "a"] * 6,
    "all missing": [None] * N_ROWS,
    "all NaN": [np.nan] * N_ROWS,
    "all NaT": [pd.NaT] * N_ROWS,
    "sparse": pd.arrays.SparseArray([0, 1] * 6),
    "Arrow's decimals": pd.array([Decimal("1.5")] * N_ROWS, dtype=pd.ArrowDtype(pa.decimal128(5, 1))),
    "Arrow's binary": pd.array([b"a"] * N_ROWS, dtype=pd.ArrowDtype(pa.binary())),
    "Arrow's durations": pd.array(range(N_ROWS), dtype=pd.ArrowDtype(pa.duration("s"))),
    "Arrow's categories": pd.array(["a", "b"] * 6, dtype=pd.ArrowDtype(pa.dictionary(pa.int8(), pa.string()))),
}
REFUSED = {
    *("Decimals of many digits", "infinite", "complex", "booleans and numbers", "durations", "durations as objects"),
    *("months", "intervals", "beyond the year 9999", "nanoseconds", "with and without a zone", "no Unicode"),
    *("categories of durations", "bytes", "fractions", "lists", "records", "a number and its text"),
    *("numbers and texts", "long double", "dates and texts", "Arrow's binary", "Arrow's durations"),
}


@pytest.mark.parametrize("kind", COLUMNS)
@pytest.mark.parametrize("name", ["stay", LONG], ids=["short", "long"])
def test_a_column_of_any_kind_is_drafted_so_that_it_is_admitted_or_refused_by_name(kind, name):
    table = pd.DataFrame({name: pd.Series(COLUMNS[kind]), "age": range(20, 20 + N_ROWS)})
    if kind in REFUSED:
        with pytest.raises(InvalidTableError) as raised:
            draft_contract(table)
        assert repr(name) in str(raised.value)
        assert raised.value.__context__ is None
    else:
        require_admitted(table, draft_contract(table))


def test_a_column_without_values_is_left_out():
    table = pd.DataFrame({"note": [None] * 5, "age": range(5)})
    (contract, _) = decided(draft_contract(table))
    assert list(contract.admit(table).columns) == ["age"]


CELLS = {
    "integers": st.integers(),
    "small integers": st.integers(-9, 99),
    "large integers": st.integers(2**53 - 2, 2**53 + 2) | st.integers(2**63 - 2, 2**63 + 1),
    "floats": st.floats(),
    "short floats": st.integers(-99, 99).map(lambda value: value / 4),
    "decimals": st.decimals(allow_nan=False, allow_infinity=False),
    "booleans": st.booleans(),
    "texts": st.text(max_size=3),
    "dates": st.dates(),
    "datetimes": st.datetimes(),
    "moments": st.datetimes(timezones=st.just(PARIS)),
    "times": st.times(),
    "durations": st.timedeltas(),
    "bytes": st.binary(max_size=2),
    "missing": st.none(),
}


@st.composite
def columns(draw, cells):
    kinds = draw(st.lists(st.sampled_from(sorted(cells)), min_size=1, max_size=2))
    pool = draw(st.lists(st.one_of([cells[kind] for kind in kinds]), min_size=1, max_size=5))
    return draw(st.lists(st.none() | st.sampled_from(pool), min_size=1, max_size=14))


@settings(max_examples=examples(400), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(columns(CELLS), st.sampled_from([None, "category", "infer"]))
def test_what_is_drafted_of_a_frame_is_admitted(values, dtype):
    column = pd.Series(values, dtype=object)
    table = pd.DataFrame({"x": column.infer_objects() if dtype == "infer" else column.astype(dtype or object)})
    try:
        draft = draft_contract(table)
    except InvalidTableError as error:
        assert "'x'" in str(error)
        return
    require_admitted(table, draft)


TEXTS = {
    "whole numbers": st.integers().map(str),
    "long numbers": st.from_regex(r"-?[0-9]{1,20}(\.[0-9]{1,20})?", fullmatch=True),
    "exponents": st.from_regex(r"[0-9]\.[0-9]{1,17}[eE]-?[0-9]{1,3}", fullmatch=True),
    "grouped numbers": st.integers(0, 10**7).map(lambda value: f"{value:,}"),
    "numbers with a comma": st.integers(0, 9999).map(lambda value: f"{value / 10:.1f}".replace(".", ",")),
    "dates": st.dates().map(str),
    "days first": st.dates(dt.date(1900, 1, 1), dt.date(2100, 1, 1)).map(lambda day: day.strftime("%d/%m/%Y")),
    "datetimes": st.datetimes().map(str),
    "nanoseconds": st.datetimes().map(lambda time: f"{time:%H:%M:%S}.123456789").map(lambda time: f"2024-01-01 {time}"),
    "moments": st.datetimes(timezones=st.just(PARIS)).map(str),
    "moments of UTC": st.datetimes().map(lambda time: time.isoformat() + "Z"),
    "truth values": st.sampled_from(["true", "FALSE", "True"]),
    "missing": st.sampled_from(["NA", "-", "?", "nan", ""]),
    "words": st.text(st.characters(codec="utf-8", exclude_characters="\0\r\n"), max_size=4),
    "infinite": st.sampled_from(["inf", "-Infinity", "1e999"]),
}


@settings(max_examples=examples(400), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(columns(TEXTS))
def test_what_is_drafted_of_a_csv_file_is_admitted(tmp_path_factory, values):
    path = tmp_path_factory.mktemp("draft") / "people.csv"
    text = io.StringIO()
    csv.writer(text).writerows(
        [["a column", "row"], *([value or "", f"row {place}"] for place, value in enumerate(values))]
    )
    path.write_text(text.getvalue(), encoding="utf-8", newline="")
    require_admitted(TableFile(str(path)).read(None), draft_contract(path))
