"""Numbers for people have few digits, and never so few that they say something else."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacy_assets.shown_numbers import against, apart, in_full, number, percent, yes_or_no
from tests.examples import examples

FIGURES = st.floats(-1e6, 1e6) | st.floats(0, 1)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.788058, "0.788"),
        (0.333333, "0.333"),
        (12.3456, "12.3"),
        (12345.678, "12,346"),
        (1_234_567, "1,234,567"),
        (4.0, "4"),
        (0.0, "0"),
        (0.9994, ">0.999"),
        (1.0, "1"),
        (-0.00123456, "-0.00123"),
        (float("nan"), "nan"),
    ],
)
def test_a_number_has_three_digits_and_a_count_all(value, shown):
    assert number(value) == shown


@pytest.mark.parametrize(
    ("share", "shown"),
    [(0, "0.0%"), (0.00001, "<0.01%"), (0.012345, "1.23%"), (0.788058, "78.8%"), (0.9999, ">99.9%"), (1, "100.0%")],
)
def test_a_share_is_written_in_percent(share, shown):
    assert percent(share) == shown


@pytest.mark.parametrize(
    ("value", "limit", "shown"),
    [
        (0.788058, 0.5, ("0.788", "0.5")),
        (0.1004, 0.1, ("0.1004", "0.1")),
        (0.09996, 0.1, ("0.09996", "0.1")),
        (0.1, 0.1, ("0.1", "0.1")),
        (0.12344, 0.12345, ("0.123", "0.12345")),
        (0.12346, 0.12345, ("0.1235", "0.12345")),
        (1 / 3, 1 / 3, ("0.333", "0.333")),
        (0.3334, 1 / 3, ("0.3334", "0.3333")),
        (3.0, 5, ("3", "5")),
        (1234567.0, 5, ("1234567", "5")),
    ],
)
def test_a_value_is_written_so_that_it_differs_from_its_limit(value, limit, shown):
    assert against(value, limit) == shown


def test_a_limit_can_be_written_exactly():
    assert against(0.5, 1 / 3, exact=True) == ("0.5", "0.3333333333333333")


@settings(max_examples=examples(300))
@given(FIGURES, FIGURES)
def test_a_value_is_shown_above_below_or_at_its_limit_as_it_is(value, limit):
    assert_same_order(value, limit)


def assert_same_order(value, limit):
    for exact in (False, True):
        shown, bound = map(float, against(value, limit, exact=exact))
        assert (shown < bound, shown > bound) == (value < limit, value > limit)


@settings(max_examples=examples(300))
@given(FIGURES, st.integers(3, 17))
def test_a_value_that_rounding_would_make_its_limit_differs_from_it(value, digits):
    assert_same_order(value, float(f"{value:.{digits}g}"))


@settings(max_examples=examples(300))
@given(FIGURES, FIGURES)
def test_two_numbers_that_differ_are_written_differently(one, other):
    shown = apart(one, other)
    assert (shown[0] == shown[1]) == (one == other)
    assert one == other or len(re.sub(r"e.*|\D", "", shown[0]).lstrip("0")) <= 17


@settings(max_examples=examples(300))
@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_number_in_full_reads_back_as_itself(value):
    assert float(in_full(value)) == value


def test_a_yes_no_figure_reads_yes_or_no():
    assert [yes_or_no(value) for value in (1.0, 0.0)] == ["yes", "no"]
