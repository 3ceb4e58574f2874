"""Texts are read as the contract says they are written, and what is written otherwise is refused."""

import datetime as dt

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacy_assets import ContractError, InvalidSettingError, TableContract
from tests.examples import examples


def contract(**column):
    return TableContract.from_mapping({"columns": {"a": {"role": "other", "nullable": True} | column}})


def admitted(values, **column):
    return contract(**column).admit(pd.DataFrame({"a": values}))["a"]


def failures(values, **column):
    with pytest.raises(ContractError) as raised:
        admitted(values, **column)
    return set(raised.value.failures)


def grouped(number, decimals, group, mark):
    """Write a number by hand: digits in groups of three from the right."""
    whole, rest = f"{abs(number):.{decimals}f}".split(".") if decimals else (str(abs(int(number))), "")
    groups = []
    while whole:
        groups.insert(0, whole[-3:])
        whole = whole[:-3]
    return ("-" if number < 0 else "") + group.join(groups) + (mark + rest if rest else "")


@settings(max_examples=examples(200), deadline=None)
@given(
    st.lists(st.integers(-(10**9), 10**9), min_size=1, max_size=6),
    st.integers(0, 4),
    st.sampled_from([(",", "."), (",", " "), (",", ""), (".", ","), (".", "'"), (".", "")]),
)
def test_numbers_are_read_whatever_their_marks(wholes, decimals, marks):
    mark, group = marks
    numbers = [whole / 10**decimals if decimals else whole for whole in wholes]
    texts = [grouped(number, decimals, group, mark) for number in numbers]
    assert admitted(texts, type="float", decimal=mark).tolist() == [
        float(f"{number:.{decimals}f}") for number in numbers
    ]


@settings(max_examples=examples(200), deadline=None)
@given(
    st.lists(st.dates(dt.date(1600, 1, 1)), min_size=1, max_size=6),
    st.sampled_from(["%d.%m.%Y", "%m/%d/%Y", "%Y%m%d", "%d %B %Y", "%d-%b-%Y"]),
)
def test_dates_are_read_by_their_format(days, form):
    # Python pads the year on some systems only.
    texts = [f"{day.year:04d}".join(day.strftime(form.replace("%Y", "~")).split("~")) for day in days]
    read = admitted(texts, type="datetime", format=form)
    assert [time.date() for time in read] == days


def test_a_date_or_number_that_is_written_otherwise_is_counted():
    assert failures(["31.12.2020", "2020-12-31", "12/31/2020"], type="datetime", format="%d.%m.%Y") == {
        ("a", "has_type_datetime", 2)
    }
    assert failures(["1,5", "1.5", "1.234", "12.34,5", "x"], type="float", decimal=",") == {("a", "has_type_float", 3)}
    assert failures(["1.234,0", "1,5"], type="integer", decimal=",") == {("a", "has_type_integer", 1)}


def test_values_that_are_not_text_need_no_format():
    day = pd.Timestamp("2020-12-31")
    assert admitted([day, None], type="datetime", format="%d.%m.%Y").tolist()[0] == day
    mixed = pd.Series([day, "30.12.2020"], dtype=object)
    assert admitted(mixed, type="datetime", format="%d.%m.%Y").dt.day.tolist() == [31, 30]
    assert admitted([1.5, 2.0], type="float", decimal=",").tolist() == [1.5, 2.0]


@pytest.mark.parametrize("dtype", ["object", "str", "category"])
@pytest.mark.parametrize("kind", ["integer", "category", "text"])
def test_texts_that_stand_for_a_missing_value_are_missing(dtype, kind):
    given_column = pd.Series(["7", "NA", "8", "?"], dtype="object").astype(dtype)
    read = admitted(given_column, type=kind, missing=["NA", "?"])
    assert read.isna().tolist() == [False, True, False, True]
    assert given_column.tolist() == ["7", "NA", "8", "?"]
    not_nullable = failures(given_column, type=kind, missing=["NA", "?"], nullable=False)
    assert not_nullable == {("a", "is_not_missing", 2)}


def test_zones_of_a_format_are_kept():
    texts = ["31.12.2020 12:00 +0200", "31.12.2020 12:00 +0200"]
    read = admitted(texts, type="datetime64[us, UTC]", format="%d.%m.%Y %H:%M %z")
    assert read.iloc[0] == pd.Timestamp("2020-12-31T10:00", tz="UTC")


@pytest.mark.parametrize(
    ("column", "said"),
    [
        ({"type": "integer", "format": "%d.%m.%Y"}, "which only a datetime column can have"),
        ({"type": "datetime", "format": "%d.%m"}, "not one of strftime"),
        ({"type": "datetime", "format": "%a %d.%m, week %W"}, "not one of strftime"),
        ({"type": "datetime", "format": 3}, "not one of strftime"),
        ({"type": "text", "decimal": ","}, "which only integer and float columns can have"),
        ({"type": "float", "decimal": ";"}, "has the decimal mark ';'"),
        ({"type": "float", "missing": "NA"}, "not a list of texts"),
    ],
)
def test_a_format_that_does_not_fit_is_refused(column, said):
    with pytest.raises(InvalidSettingError, match=said):
        contract(**column)
