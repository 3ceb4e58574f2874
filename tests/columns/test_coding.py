"""Equal values get equal codes, whatever holds them; different values never do."""

import datetime as dt
from decimal import Decimal
from itertools import product
from uuid import UUID

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privacy_assets.columns import coding
from privacy_assets.columns.coding import count_codes, encode_column, group_rows, people_of_values, read_column
from privacy_assets.errors import InvalidTableError

UTC = dt.UTC


def encode(*columns, **precision):
    """Codes of several columns as lists, and the labels."""
    read = [read_column(pd.Series(column) if isinstance(column, list) else column, "Column 'x'") for column in columns]
    encoded = encode_column(read, **precision)
    return [[encoded.labels[code] for code in codes] for codes in encoded.codes], encoded


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (pd.Series([39, 1]), pd.Series([39.0, 1.0])),
        (pd.Series([39, 1], dtype="Int64"), pd.Series([39, 1], dtype="uint8")),
        (pd.Series([39, 1], dtype="int64[pyarrow]"), pd.Series([39, 1], dtype="Float64")),
        (pd.Series([39, 1], dtype=object), pd.Series([Decimal(39), Decimal(1)])),
        (pd.Series([0.0, 0.5]), pd.Series([-0.0, 0.5])),
        (pd.Series([0.1, 0.7]), pd.Series([0.1, 0.7], dtype="float32")),
        (pd.Series([0.1, 0.7]), pd.Series([0.1, 0.7], dtype="Float32")),
        (pd.Series([0.1, 0.7]), pd.Series([0.1, 0.7], dtype="float[pyarrow]")),
        (pd.Series([0.1, None, 0.7]), pd.Series([0.1, None, 0.7], dtype="float[pyarrow]")),
        (pd.Series([0.1, 0.7]), pd.Series([0.1, 0.7], dtype="float16")),
        (pd.Series([0.1, 0.7]), pd.Series(np.array([0.1, 0.7], np.float16), dtype="halffloat[pyarrow]")),
        (pd.Series([0.1, 0.7]), pd.Series([np.float32(0.1), np.float32(0.7)], dtype=object)),
        (pd.Series([0.1, None]), pd.Series([np.float32(0.1), None], dtype=object)),
        (pd.Series([2**60 + 1, 5]), pd.Series([Decimal(2**60 + 1), Decimal(5)])),
        (pd.Series([2**60 + 1, 5]), pd.Series([2**60 + 1, 5.0], dtype=object)),
        (pd.Series([2**70, 2**70 + 1], dtype=object), pd.Series([Decimal(2**70), Decimal(2**70 + 1)])),
        (pd.Series(["a", "b"]), pd.Series(["a", "b"], dtype="category")),
        (pd.Series(["a", "b"], dtype=object), pd.Series(["a", "b"], dtype="string[pyarrow]")),
        (pd.Series(["a", "b"], dtype="string"), pd.Series(["a", "b"], dtype=pd.ArrowDtype(pa.string()))),
        (pd.Series([True, False]), pd.Series([True, False], dtype="boolean")),
        (pd.Series([True, False], dtype=object), pd.Series([True, False], dtype="bool[pyarrow]")),
        (pd.Series([7, 8], dtype="category"), pd.Series([7.0, 8.0])),
        (
            pd.Series(pd.to_datetime(["2020-01-01", "2021-01-01"])),
            pd.Series([dt.date(2020, 1, 1), dt.date(2021, 1, 1)]),
        ),
        (
            pd.Series(pd.to_datetime(["2020-01-01", "2021-01-01"])).astype("datetime64[s]"),
            pd.Series([dt.datetime(2020, 1, 1), dt.datetime(2021, 1, 1)], dtype=object),
        ),
        (
            pd.Series(pd.to_datetime(["2020-01-01", "2021-01-01"], utc=True)),
            pd.Series([dt.datetime(2020, 1, 1, tzinfo=UTC), dt.datetime(2021, 1, 1, tzinfo=UTC)], dtype=object),
        ),
        (
            pd.Series(pd.to_timedelta(["1h", "2h"])),
            pd.Series([dt.timedelta(hours=1), dt.timedelta(hours=2)], dtype=object),
        ),
        (pd.Series([None, None], dtype=object), pd.Series([np.nan, np.nan])),
        (pd.Series([1.0, np.nan]), pd.Series([1, None], dtype="Int64")),
        (pd.Series(["a", None], dtype=object), pd.Series(["a", pd.NA], dtype="string")),
    ],
)
def test_equal_values_in_different_storage_get_equal_codes(first, second):
    (one, two), encoded = encode(first, second)
    assert one == two
    assert len(set(one)) == len(encoded.labels) == first.nunique(dropna=False)


def test_integers_beyond_float_precision_stay_apart():
    big = 2**53
    (one, two), _ = encode(pd.Series([big, big + 1]), pd.Series([big + 1, None], dtype="Int64"))
    assert one == [str(big), str(big + 1)]
    assert two == [str(big + 1), None]
    (one, two), _ = encode([2**64, 2**64 + 1], pd.Series([2.0**64, 0.5]))
    assert one == [str(2**64), str(2**64 + 1)]
    assert two == [str(2**64), "0"]  # 0.5 has more decimals than the original: rounded half to even
    (one, two), _ = encode(pd.Series([2**64 - 1], dtype="uint64"), pd.Series([2**64 - 1], dtype=object))
    assert one == two
    # Large integers on one side only.
    (one, two), _ = encode(pd.Series([2**64 - 1, 3], dtype="uint64"), pd.Series([3, 4]))
    assert (one, two) == ([str(2**64 - 1), "3"], ["3", "4"])
    (one, two), _ = encode([1, 2], [2, 10**20])
    assert (one, two) == (["1", "2"], ["2", str(10**20)])


def test_decimals_are_those_of_the_first_table():
    (_, two), encoded = encode([0.5, 0.25], [0.251, 0.5, 0.129])
    assert encoded.precision == 2
    assert two == ["0.25", "0.5", "0.13"]
    assert encode([1.0, 2.0], [1.4])[0][1] == ["1"]
    assert encode([1, 2], [1.4])[0][1] == ["1"]
    assert encode([1 / 3], [0.1])[1].precision == 10
    assert encode([np.nan, np.nan], [0.125])[0][1] == ["0.125"]
    assert encode([0.25], [0.27], decimals=1)[0] == [["0.2"], ["0.3"]]


@given(st.integers(0, 9), st.lists(st.integers(-(10**6), 10**6), min_size=1, max_size=20))
def test_decimals_are_found_as_the_shortest_text_shows_them(decimals, integers):
    values = [float(f"{i}e-{decimals}") for i in integers]
    shown = max(max(-Decimal(repr(v)).normalize().as_tuple().exponent, 0) for v in values)
    assert encode(values, values)[1].precision == shown
    assert encode(values, values)[0][0] == [repr(v + 0.0) if v % 1 else str(int(v)) for v in values]


@pytest.mark.parametrize(
    ("text", "unit"),
    [
        ("2020-01-01", "D"),
        ("2020-01-01 05:00", "H"),
        ("2020-01-01 05:10", "T"),
        ("2020-01-01 05:10:07", "s"),
        ("2020-01-01 05:10:07.250", "ms"),
        ("2020-01-01 05:10:07.000250", "us"),
        ("2020-01-01 05:10:07.000000250", "ns"),
    ],
)
def test_the_coarsest_unit_that_loses_nothing_is_found(text, unit):
    late = pd.Series(pd.to_datetime([text, "2020-01-01 23:59:59.999999999"], format="ISO8601"))
    (one, two), encoded = encode(late.iloc[:1], late)
    assert encoded.precision == unit
    assert one[0] == two[0]
    assert encode(late.iloc[:1], late, unit="D")[0] == [["2020-01-01"], ["2020-01-01"] * 2]


def test_days_are_days_of_the_local_clock_and_repeated_hours_stay_two():
    taipei = pd.Series(pd.to_datetime(["2020-01-01", "2020-01-02"])).dt.tz_localize("Asia/Taipei")
    assert encode(taipei, taipei)[1].precision == "D"
    autumn = pd.Series(pd.to_datetime(["2020-11-01 05:00", "2020-11-01 06:00"], utc=True))
    autumn = autumn.dt.tz_convert("America/New_York")
    encoded = encode(autumn, autumn)[1]
    assert encoded.precision == "H"
    assert len(set(encoded.codes[0])) == 2
    assert encode(autumn, autumn, unit="D")[1].codes[0].tolist() == [0, 0]


def test_far_dates_keep_their_values_unless_the_precision_cannot_hold_them():
    far = pd.Series([dt.datetime(9999, 12, 31), dt.datetime(2020, 1, 1)], dtype=object)
    assert encode(far, far)[0][0] == ["9999-12-31", "2020-01-01"]
    fine = pd.Series(pd.to_datetime(["2020-01-01 00:00:00.000000001"], format="ISO8601")).astype("datetime64[ns]")
    with pytest.raises(InvalidTableError, match="coarser datetime_precision"):
        encode(fine, pd.Series(np.array(["9999-12-31"], "datetime64[s]")))


@pytest.mark.parametrize("in_bits", [False, True])
def test_floats_are_compared_in_single_precision_if_the_second_table_is_in_it(in_bits):
    original = pd.Series(np.exp(np.random.default_rng(0).normal(size=200)) * 1000)
    single = original.astype("float32")
    written = single.astype(str).astype("float64")
    made = single.astype("float64") if in_bits else single
    for first in (original, written, single, single.astype("float64")):
        column = encode(first, made)[1]
        assert (column.codes[0] == column.codes[1]).all()
        assert len(np.unique(column.codes[0])) == 200
    given = encode(original, made, decimals=10)[1]
    assert (given.codes[0] == given.codes[1]).mean() < 0.5
    (one, two), _ = encode([2.0**64, 0.5], [2.0**64, 0.25])
    assert one[0] == two[0]


def test_unused_categories_are_ignored():
    column = pd.Series(["a", "b"], dtype=pd.CategoricalDtype(["zzz", "b", "a"]))
    (one, _), encoded = encode(column, column)
    assert one == ["a", "b"]
    assert "zzz" not in encoded.labels


@pytest.mark.parametrize(
    ("column", "found"),
    [
        (pd.Series([[1], [2], None]), r"cannot be compared \(mixed, by type: \{'list': 2\}\)"),
        (pd.Series([{"a": 1}, {"a": 2}]), "cannot be compared"),
        (pd.Series([1, "a"], dtype=object), r"cannot be compared \(mixed"),
        (pd.Series([UUID(int=1), b"a"], dtype=object), r"cannot be compared \(mixed"),
        (pd.Series([1j]), "cannot be compared"),
        (pd.Series([1.0, np.inf, -np.inf, np.inf]), "3 infinite values"),
        (pd.Series([1.0, np.inf, None], dtype="Float64"), "1 infinite values"),
        (pd.Series([1.0, np.inf], dtype="category"), "1 infinite values"),
        (pd.Series([10**400, 0.5], dtype=object), "1 infinite values, or values beyond|cannot be read"),
        (pd.Series([10**5000, 1], dtype=object), "1 infinite values, or values beyond|cannot be read"),
        (pd.Series([Decimal("1E+2020"), Decimal(1)]), "1 infinite values, or values beyond"),
        (pd.Series(["a2020\ud800", "b"], dtype=object), r"cannot be read \(UnicodeEncodeError\)"),
        (pd.Series([dt.timedelta(days=900_000_000), dt.timedelta(1)], dtype=object), "cannot be read"),
        (pd.Series([Decimal("sNaN2020"), Decimal(1)], dtype=object), "cannot be read"),
        (pd.Series([dt.datetime(2020, 1, 1), dt.datetime(2020, 1, 1, tzinfo=UTC)], dtype=object), "mixes 2 time zones"),
        (
            pd.Series(
                [dt.datetime(2020, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=h))) for h in (1, 2)], dtype=object
            ),
            "mixes 2 time zones",
        ),
    ],
)
def test_what_cannot_be_compared_is_refused_without_showing_it(column, found):
    with pytest.raises(InvalidTableError, match=found) as caught:
        read_column(column, "Column 'x' of the original table")
    assert "Column 'x' of the original table" in str(caught.value)
    assert "2020" not in str(caught.value)
    assert "ud800" not in str(caught.value)
    assert caught.value.__cause__ is caught.value.__context__ is None


@pytest.mark.parametrize(("n_values", "dtype"), [(1, np.uint8), (256, np.uint8), (257, np.uint16), (65_537, np.uint32)])
def test_codes_are_as_small_as_they_can_be(n_values, dtype):
    assert encode(pd.Series(range(n_values)))[1].codes[0].dtype == dtype


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3), st.integers(0, 1)), min_size=1, max_size=30))
def test_equal_rows_are_one_group(rows):
    columns = [np.array(column) for column in zip(*rows, strict=True)]
    for n_codes, n_at_once in product(([3, 4, 2], [2**40, 2**40, 2**40]), (2**20, 3)):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(coding, "_ROWS_COPIED_AT_ONCE", n_at_once)
            groups, n_groups = group_rows(columns, n_codes)
        assert n_groups == len(set(rows)) == len(set(zip(rows, groups.tolist(), strict=True)))
        assert groups.tolist() == [list(dict.fromkeys(rows)).index(row) for row in rows]


@given(
    st.lists(st.tuples(st.integers(-1, 4), st.integers(-1, 5)), max_size=30),
    st.booleans(),
    st.one_of(st.none(), st.integers(1, 6)),
)
def test_people_of_values_are_counted_or_known_to_be_enough(rows, is_asked, at_least):
    codes, whose = (np.array([row[i] for row in rows], np.int32) for i in (0, 1))
    found = people_of_values(codes, 5, whose if is_asked else None, at_least)
    for value in range(5):
        own = [whose[i] for i in range(len(rows)) if codes[i] == value]
        expected = len(set(own)) if is_asked else len(own)
        assert found[value] == expected or (at_least is not None and at_least <= found[value] <= expected)


def test_a_category_column_without_any_value_is_missing_whatever_its_categories_are():
    for categories in ([], [1, 2], ["a"], [1.5]):
        column = pd.Series(pd.Categorical([None, None], categories=categories, ordered=True))
        read = read_column(column, "Column 'a'")
        assert (read.kind, read.codes.tolist(), len(read.distinct)) == ("missing", [-1, -1], 0)


CLOCK = [dt.time(23, 59), dt.time(9, 30), dt.time(13, 26), None, dt.time(9, 30)]
BANDS = pd.Series(pd.IntervalIndex.from_tuples([(100, 105), (5, 10), (0, 20)]))


@pytest.mark.parametrize(
    ("column", "texts"),
    [
        (pd.Series(CLOCK, dtype=object), ["09:30:00", "13:26:00", "23:59:00"]),
        (pd.Series(CLOCK, dtype=object).astype("category"), ["09:30:00", "13:26:00", "23:59:00"]),
        (
            pd.Series(pd.PeriodIndex(["2020-11", "2019-12", None, "2020-01"], freq="M")),
            ["2019-12", "2020-01", "2020-11"],
        ),
        (BANDS, ["(0, 20]", "(5, 10]", "(100, 105]"]),
        (BANDS.astype(object), ["(0, 20]", "(5, 10]", "(100, 105]"]),
    ],
)
def test_times_of_day_periods_and_intervals_are_texts_in_their_order(column, texts):
    read = read_column(column, "x")
    assert (read.kind, read.is_ranked, read.distinct.tolist()) == ("text", True, texts)
    cells = [None if code < 0 else texts[code] for code in read.codes]
    assert cells == [None if pd.isna(value) else str(value) for value in column]


@pytest.mark.parametrize(
    ("column", "texts"),
    [
        (pd.Series([UUID(int=1), None, UUID(int=0)], dtype=object), [str(UUID(int=1)), str(UUID(int=0))]),
        (pd.Series([b"b\x00", None, b"a"], dtype=object), ["6200", "61"]),
        # Without an order of their own.
        (pd.Series([dt.time(9), dt.time(8, tzinfo=UTC)], dtype=object), ["09:00:00", "08:00:00+00:00"]),
        # In the order that was declared.
        (
            pd.Series(pd.Categorical([dt.time(9), dt.time(8)], [dt.time(9), dt.time(8)], ordered=True)),
            ["09:00:00", "08:00:00"],
        ),
    ],
)
def test_other_cells_are_texts_without_order(column, texts):
    read = read_column(column, "x")
    assert (read.kind, read.is_ranked, read.distinct.tolist()) == ("text", False, texts)


def test_codes_below_the_lowest_are_not_counted_as_the_last_ones():
    assert count_codes(np.array([-1, 0, 1, 1], np.int8), 3, lowest=-1).tolist() == [1, 1, 2]
    with pytest.raises(ValueError, match="a lower one"):
        count_codes(np.array([-1, 0, 1]), 2)
