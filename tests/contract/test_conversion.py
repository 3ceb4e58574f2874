import datetime as dt
import io
from decimal import Decimal
from enum import StrEnum
from fractions import Fraction
from pathlib import PurePosixPath
from uuid import UUID
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pandera.pandas as pandera
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacy_assets import ContractError, InvalidSettingError, TableContract, fingerprint
from privacy_assets.contract.conversion import TEXT_DTYPE, ColumnType, convert
from tests.examples import examples

CATEGORIES = [None, pd.Index(["b", "a", "unused"], dtype=TEXT_DTYPE), pd.Index(["é", "a", "1"], dtype=object)]
HELD_AS = {
    "str": lambda values: pd.Series(values, dtype="str"),
    "string": lambda values: pd.Series(values, dtype="string"),
    "category": lambda values: pd.Series(values, dtype="str").astype("category"),
    "category of objects": lambda values: pd.Series(
        pd.Categorical(values, categories=pd.Index(["unused", "é", "b", "a", "B", "", 7], dtype=object))
    ),
    "category of strings": lambda values: pd.Series(values, dtype="string").astype("category"),
    "ordered category": lambda values: pd.Series(
        pd.Categorical(values, categories=["b", "", "a", "é", "B"], ordered=True)
    ),
}


@settings(max_examples=examples(150), deadline=None)
@given(st.data())
def test_texts_are_converted_as_if_each_cell_were_looked_at(data):
    values = data.draw(st.lists(st.sampled_from(["a", "b", "é", "B", "", None]), min_size=1, max_size=8))
    kind = data.draw(st.sampled_from(["text", "category"]))
    categories = data.draw(st.sampled_from(CATEGORIES)) if kind == "category" else None
    wanted = ColumnType(
        kind, data.draw(st.booleans()), None, categories, kind == "category" and data.draw(st.booleans())
    )
    one_by_one = convert(pd.Series(values, dtype=object), wanted)
    held = HELD_AS[data.draw(st.sampled_from(sorted(HELD_AS)))](values)
    at_once = convert(held, wanted)
    assert at_once.failures == one_by_one.failures
    if all(value is None for value in values) and categories is None:
        return  # Refused as a column without values; objects without a value have categories without a kind.
    pd.testing.assert_series_equal(at_once.column, one_by_one.column)


@pytest.mark.parametrize("held_as", HELD_AS)
def test_the_converted_column_shares_nothing_with_the_given_one(held_as):
    given_column = HELD_AS[held_as](["a", "b", None])
    converted = convert(given_column, ColumnType("text", nullable=True)).column
    converted.iloc[0] = "b"
    assert given_column.tolist()[0] == "a"


def test_times_with_and_without_a_zone_are_counted():
    mixed = pd.Series(["2020-01-01T00:00:00Z", "2020-01-01T00:00:00", "2020-01-01T00:00:00+01:00", None], dtype=object)
    for zone in ("UTC", None):
        assert convert(mixed, ColumnType("datetime", True, zone)).failures == (("has_one_time_zone", 1),)


def test_nanoseconds_are_counted_and_microseconds_are_kept():
    times = pd.Series(
        pd.to_datetime(["2020-01-01 00:00:00.000001", "2020-01-01 00:00:00.000000001", None], format="mixed")
    )
    converted = convert(times.astype("datetime64[ns]"), ColumnType("datetime", nullable=True))
    assert converted.failures == (("has_no_more_than_microseconds", 1),)
    exact = convert(
        times.astype("datetime64[ns]").iloc[[0, 2]].astype("datetime64[us]"), ColumnType("datetime", nullable=True)
    )
    assert exact.failures == ()
    assert str(exact.column.dtype) == "datetime64[us]"
    assert exact.column.isna().tolist() == [False, True]


def contract_of(kind, **more):
    return TableContract.from_mapping({"columns": {"x": {"type": kind, "role": "other", "nullable": True} | more}})


def admitted(values, kind, **more):
    """The admitted column, or None if the contract refuses it."""
    column = values if isinstance(values, pd.Series) else pd.Series(values, dtype=object)
    try:
        return contract_of(kind, **more).admit(pd.DataFrame({"x": column}))["x"]
    except ContractError as error:
        assert all(column == "x" for column, _, _ in error.failures)
        return None


def meaning(value):
    """What a number or the text of one stands for, exactly; a float is the number that its shortest digits write."""
    return Fraction(repr(value) if isinstance(value, float) else str(value).strip())


near_bounds = st.sampled_from([2**53, 2**63, 2**64, 10**16, 10**17]).flatmap(lambda n: st.integers(n - 3, n + 3))
wholes = st.integers() | near_bounds | near_bounds.map(lambda n: -n)
decimal_numbers = st.decimals(allow_nan=False, allow_infinity=False) | st.builds(
    lambda digits, places: Decimal(digits).scaleb(-places), st.integers(-(10**20), 10**20), st.integers(0, 20)
)
numbers = (
    wholes
    | decimal_numbers
    | st.floats(allow_nan=False, allow_infinity=False)
    | wholes.map(str)
    | decimal_numbers.map(str)
    | st.floats(allow_nan=False, allow_infinity=False).map(repr)
    | st.from_regex(r"[+-]?[0-9]{1,25}(\.[0-9]{0,25})?([eE][+-]?[0-9]{1,2})?", fullmatch=True)
)


@settings(max_examples=examples(400), deadline=None)
@given(numbers, numbers, st.sampled_from(["integer", "float", "category"]))
def test_different_numbers_stay_different_or_are_counted(one, other, kind):
    more = {"categories": [0, 1, 2**53, 2**53 + 1, "0.5", "1e3"]} if kind == "category" else {}
    for values in ([one], [other], [one, other]):
        found = admitted(values, kind, **more)
        if found is not None:
            for value, result in zip(values, found.tolist(), strict=True):
                assert meaning(value) == meaning(result)


@pytest.mark.parametrize("dtype", ["float64", object])
@pytest.mark.parametrize("number", [2**53, -(2**53)])
def test_a_float_that_may_stand_for_two_integers_is_no_integer(number, dtype):
    floats = pd.Series([float(number), 5.0, float(abs(number) - 1)], dtype=dtype)
    kept, failures = convert(floats, ColumnType("integer", nullable=True))
    assert kept.tolist()[1:] == [5, 2**53 - 1]
    assert dict(failures)["has_type_integer"] == 1
    spelled = [number, Decimal(number), Decimal(f"{number}.0"), Decimal(number).normalize()]
    exact, failures = convert(pd.Series(spelled, dtype=object), ColumnType("integer", nullable=True))
    assert exact.tolist() == [number] * 4
    assert not any(dict(failures).values())


CLOSE = [
    ("9223372036854775809", "9223372036854775810"),
    (2**53, 2**53 + 1),
    (str(2**53), str(2**53 + 1)),
    (Decimal(2**53), Decimal(2**53 + 1)),
    ("0.1", "0.10000000000000001"),
    ("0.1", Decimal("0.1000000000000000055511151231257827")),
    (Decimal("0.12345678901234567890"), Decimal("0.12345678901234567891")),
    ("1e-400", "2e-400"),
    ("1e400", "2e400"),
    ("9007199254740993.0", "9007199254740992.0"),
    ("1152921504606846976", "1152921504606846977"),
    (10**400, 10**400 + 1),
    ("1" * 500, "1" * 499 + "2"),
]
KINDS_OF_TYPES = {
    "integer": {},
    "float": {},
    "boolean": {},
    "text": {},
    "category": {},
    "datetime": {},
    "datetime64[us, Europe/Paris]": {},
    "a category of numbers": {"categories": [1, 2, 2**53, 2**53 + 1]},
    "a category of texts": {"categories": ["a", "7", "2**53"]},
}


@pytest.mark.parametrize("kind", KINDS_OF_TYPES)
@pytest.mark.parametrize("pair", CLOSE)
@pytest.mark.parametrize("dtype", [object, "category"])
def test_close_numbers_do_not_become_equal(kind, pair, dtype):
    name = "category" if kind.startswith("a category") else kind
    found = admitted(pd.Series(pair, dtype=object).astype(dtype), name, **KINDS_OF_TYPES[kind])
    assert found is None or found.nunique() == 2


def test_one_float_of_a_pair_of_texts_is_counted():
    for pair, n_lost in zip(CLOSE[:6], (2, 1, 1, 1, 1, 1), strict=True):
        lost = convert(pd.Series(pair, dtype=object), ColumnType("float", True)).failures
        assert lost == (("is_exact_as_float", n_lost),)


@settings(max_examples=examples(200), deadline=None)
@given(st.lists(st.integers(-2, 12) | st.integers(-2, 12).map(str) | st.sampled_from(["07", "+7", "7.0"]), min_size=1))
def test_a_number_and_its_text_do_not_become_equal_in_a_text_column(values):
    for kind in ("text", "category"):
        found = admitted(values, kind)
        assert found is None or found.nunique() == len({(type(value), value) for value in values})


class Color(StrEnum):
    RED = "red"
    BLUE = "blue"


PAIRS = {
    "time": [dt.time(1, 2), dt.time(3, 4, 5, 6)],
    "aware time": [dt.time(1, 2, tzinfo=dt.UTC), dt.time(3)],
    "Decimal": [Decimal("1.5"), Decimal(2)],
    "whole Decimal": [Decimal(1), Decimal(2)],
    "signaling Decimal": [Decimal("sNaN"), Decimal(2)],
    "infinite Decimal": [Decimal("Infinity"), Decimal(2)],
    "UUID": [UUID(int=1), UUID(int=2)],
    "bytes": [b"a", b"b"],
    "bytearray": [bytearray(b"a"), bytearray(b"b")],
    "Timedelta": list(pd.to_timedelta([1, 2], unit="D")),
    "timedelta": [dt.timedelta(1), dt.timedelta(2)],
    "Period": list(pd.period_range("2020", periods=2, freq="M")),
    "Interval": list(pd.interval_range(0, 2)),
    "date": [dt.date(1, 1, 1), dt.date(9999, 12, 31)],
    "datetime": [dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31, 23, 59, 59, 999999)],
    "aware datetime": [dt.datetime(2020, 1, 1, tzinfo=dt.UTC), dt.datetime(9999, 12, 31, 23, tzinfo=dt.UTC)],
    "beyond the calendar": [dt.datetime(1, 1, 1, tzinfo=ZoneInfo("Asia/Tokyo")), dt.datetime(2, 1, 1, tzinfo=dt.UTC)],
    "datetime64": [np.datetime64("2020-01-01"), np.datetime64("2020-01-02T03")],
    "far datetime64": [np.datetime64("20000-01-01"), np.datetime64("-0500-01-01")],
    "nanoseconds": [pd.Timestamp(1), pd.Timestamp(2)],
    "complex": [1 + 2j, 3j],
    "Fraction": [Fraction(1, 3), Fraction(1, 2)],
    "bool": [True, False],
    "int": [1, 2],
    "huge int": [2**70, 2**71],
    "float": [0.5, 1.5],
    "long double": [np.longdouble("0.1"), np.longdouble(2)],
    "text": ["a", "b"],
    "empty text": ["", " "],
    "text of a library": [np.str_("a"), np.str_("b")],
    "text of an enumeration": [Color.RED, Color.BLUE],
    "no Unicode": ["a\ud800", "b"],
    "NUL": ["a\0", "a"],
    "mixed": [1, "a"],
    "truth and numbers": [True, 2],
    "numbers and fractions": [1, 2.5],
    "tuple": [(1, 2), (3,)],
    "list": [[1], [2]],
    "set": [frozenset("a"), frozenset("b")],
    "dict": [{"a": 1}, {}],
    "path": [PurePosixPath("a"), PurePosixPath("b")],
    "object": [object(), object()],
}
STORED_AS = {
    "objects": lambda values: pd.Series([*values, None] * 3, dtype=object),
    "a dtype of its own": lambda values: pd.Series([*values, None] * 3).infer_objects(),
    "without missing ones": lambda values: pd.Series(values * 3).infer_objects(),
    "categories": lambda values: pd.Series([*values, None] * 3, dtype=object).astype("category"),
    "Arrow": lambda values: pd.Series(pd.arrays.ArrowExtensionArray(pa.array([*values, None] * 3))),
    "sparse": lambda values: pd.Series(pd.arrays.SparseArray(pd.Series(values * 3).to_numpy())),
}


@pytest.mark.parametrize("kind", KINDS_OF_TYPES)
@pytest.mark.parametrize("values", PAIRS)
def test_what_is_admitted_can_be_stored(values, kind):
    name = "category" if kind.startswith("a category") else kind
    for stored in STORED_AS.values():
        try:
            column = stored(PAIRS[values])
        except Exception:  # noqa: BLE001 - pandas or Arrow cannot store them so
            continue
        found = admitted(column, name, **KINDS_OF_TYPES[kind])
        if found is None:
            continue
        table, file = found.to_frame("x"), io.BytesIO()
        digest = fingerprint(table)
        table.to_parquet(file)
        read = pd.read_parquet(file)
        pd.testing.assert_frame_equal(read, table)
        assert fingerprint(read) == digest
        assert found.nunique() == (1 if values == "nanoseconds" else 2)


ADMITTED_AS = {
    ("time", "text"): ["01:02:00", "03:04:05.000006"],
    ("UUID", "category"): [str(UUID(int=1)), str(UUID(int=2))],
    ("whole Decimal", "text"): ["1", "2"],
    ("whole Decimal", "integer"): [1, 2],
    ("Decimal", "float"): [1.5, 2.0],
    ("huge int", "text"): [str(2**70), str(2**71)],
    ("date", "datetime"): [dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31)],
    ("empty text", "text"): ["", " "],
    ("int", "category"): ["1", "2"],
    ("int", "a category of numbers"): ["1", "2"],
    ("mixed", "text"): ["1", "a"],
}


@pytest.mark.parametrize(("values", "kind"), ADMITTED_AS)
def test_values_with_one_way_to_be_written_are_admitted(values, kind):
    name = "category" if kind.startswith("a category") else kind
    assert admitted(PAIRS[values], name, **KINDS_OF_TYPES[kind]).tolist() == ADMITTED_AS[values, kind]


YEAR = pd.date_range("2024-01-01", periods=366 * 24, freq="h", tz="Europe/Paris")
SPELLINGS = {
    "texts with two offsets": YEAR.map(str),
    "ISO 8601": YEAR.map(lambda time: time.isoformat()),
    "texts of UTC": YEAR.tz_convert("UTC").map(lambda time: time.isoformat().replace("+00:00", "Z")),
    "Z and +00:00": [text.replace("+00:00", "Z" * (place % 2) or "+00:00")
                     for place, text in enumerate(YEAR.tz_convert("UTC").map(str))],
    "without a colon": YEAR.map(lambda time: time.strftime("%Y-%m-%d %H:%M%z")),
    "a named zone": YEAR,
    "another zone": YEAR.tz_convert("America/New_York"),
    "objects": YEAR.astype(object),
    "objects of several zones": [time.astimezone(dt.timezone(dt.timedelta(minutes=30 * (place % 5))))
                                 for place, time in enumerate(YEAR.to_pydatetime())],
    "Arrow": pd.array(YEAR, dtype=pd.ArrowDtype(pa.timestamp("s", "Asia/Tokyo"))),
}  # fmt: skip


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_instants_are_compared_however_they_are_spelled(spelling):
    column = pd.Series(SPELLINGS[spelling])
    zoned = admitted(column, "datetime64[us, Europe/Paris]")
    assert str(zoned.dtype) == "datetime64[us, Europe/Paris]"
    assert (zoned == YEAR).all()
    assert zoned.nunique() == len(YEAR)  # both hours of the night of 27 October
    plain = admitted(column, "datetime")
    assert str(plain.dtype) == "datetime64[us]"
    assert (plain.dt.tz_localize("UTC") == YEAR).all()


@settings(max_examples=examples(200), deadline=None)
@given(st.lists(st.datetimes(timezones=st.timezones()), min_size=1, max_size=4), st.booleans())
def test_moments_of_any_zone_are_their_instants(times, as_texts):
    cells = [time.isoformat() for time in times] if as_texts else times
    found = convert(pd.Series(cells, dtype=object), ColumnType("datetime", True, "UTC"))
    for time, result in zip(times, found.column, strict=True):
        seconds = (time.replace(tzinfo=None) - dt.datetime(1970, 1, 1)) - time.utcoffset()
        if pd.isna(result):
            assert not dt.timedelta(days=-719162) <= seconds < dt.timedelta(days=2932897)  # the years 1 to 9999
        else:
            assert result.to_pydatetime() - dt.datetime(1970, 1, 1, tzinfo=dt.UTC) == seconds


@pytest.mark.parametrize(
    ("text", "is_read"),
    [
        ("9999-12-31T23:59:59.999999", True),
        ("0001-01-01", True),
        ("2024-02-29 12:00", True),
        ("2020-01-01 00:00:00.123456000", True),
        ("9999-12-31 00:00:00.000000001", False),
        ("2020-01-01 00:00:00.000000001", False),
        ("10000-01-01", False),
        ("0000-01-01", False),
        ("2023-02-29", False),
        ("2020-01", False),
        ("2020", False),
        ("2020-W01-1", False),
        ("2020-01-01 24:00", False),
        ("2020-01-01 00:00:60", False),
    ],
)
def test_texts_that_are_no_whole_datetime_are_counted(text, is_read):
    others = ["9999-01-01", "2020-01-01 00:00:00.5", None]
    assert (admitted([text, *others], "datetime") is not None) == is_read


def test_a_column_that_is_removed_may_be_without_values():
    table = pd.DataFrame({"empty": [None, None], "age": [1, 2]})
    own = {"type": "text", "role": "direct_identifier", "nullable": True}
    contract = {"empty": own, "age": {"type": "integer", "role": "other"}}
    assert TableContract.from_mapping({"columns": contract}).admit(table).to_dict("list") == {"age": [1, 2]}
    for change in ({"role": "other"}, {"nullable": False}, {"person": True}):
        with pytest.raises(ContractError, match="column 'empty' fails is_not"):
            TableContract.from_mapping({"columns": contract | {"empty": own | change}}).admit(table)


@pytest.mark.parametrize(
    "categories", [[1, "1"], [dt.date(2020, 1, 1)], [True, 2], [Decimal(1)], [b"a"], [None, "a"], [1.5]]
)
def test_categories_that_cannot_be_stored_are_refused_with_the_contract(categories):
    with pytest.raises(InvalidSettingError, match="has 'categories' that are not different texts or whole numbers"):
        contract_of("category", categories=categories)


def test_categories_of_a_schema_are_texts():
    column = pandera.Column(pandera.Category(categories=[1, 2]), metadata={"role": "other"})
    with pytest.raises(InvalidSettingError, match="has categories that are not text"):
        TableContract(pandera.DataFrameSchema({"x": column}))
