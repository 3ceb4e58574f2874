"""Numbers for people have few digits, and never so few that they say something else."""

import re
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacy_assets.display.numbers import against, apart, in_full, number, percent, yes_or_no
from tests.examples import examples

FIGURES = st.floats(-1e6, 1e6) | st.floats(0, 1)
CLOSE_TO_ONE = st.builds(lambda sign, power: sign * (1 + 10.0**-power), st.sampled_from((-1, 1)), st.integers(2, 15))


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
        (1e6 + 0.4, "1,000,000"),
        (999.6, "1,000"),
        (1e15, "1,000,000,000,000,000"),
        (2e20, "2e+20"),
        (2**60 + 1, "1,152,921,504,606,846,977"),
        (0.0001, "0.0001"),
        (0.00001234, "1.23e-05"),
        (0.9994, "0.999"),
        (0.9996, "0.9996"),
        (0.99999, "0.99999"),
        (1.0004, "1.0004"),
        (-0.9999, "-0.9999"),
        (-1.0, "-1"),
        (-0.0, "0"),
        (float("-inf"), "-inf"),
        (1.0, "1"),
        (-0.00123456, "-0.00123"),
        (float("nan"), "nan"),
    ],
)
def test_a_number_has_three_digits_and_a_count_all(value, shown):
    assert number(value) == shown


@pytest.mark.parametrize(
    ("share", "shown"),
    [
        (0, "0.0%"),
        (0.00001, "<0.01%"),
        (0.012345, "1.23%"),
        (0.788058, "78.8%"),
        (0.9999, ">99.9%"),
        (1, "100.0%"),
        (1.0004, ">100.0%"),
        (-0.0001, "-0.01%"),
        (-0.00001, ">-0.01%"),
        (-0.0, "0.0%"),
        (-0.9999, "<-99.9%"),
    ],
)
def test_a_share_is_written_in_percent(share, shown):
    assert percent(share) == shown


@pytest.mark.parametrize(
    ("share", "limit", "shown"),
    [
        (0.2, 0.2, "20.0%"),
        (0.12345, 0.12345, "12.345%"),
        (1 / 11, 1 / 11, "9.09%"),
        (0.09091, 1 / 11, "9.0910%"),
        (0.2004, 0.2, "20.04%"),
        (0.1004, 0.1, "10.04%"),
        (0.123, 0.2, "12.3%"),
        (0.00001, 0.2, "<0.01%"),
        (0.00001, 0.000001, "0.001%"),
        (0.9999, 0.5, ">99.9%"),
        (0.9992, 0.9995, "99.9%"),
    ],
)
def test_a_share_in_percent_shows_whether_it_is_above_its_limit(share, limit, shown):
    assert percent(share, limit) == shown


@settings(max_examples=examples(300))
@given(st.floats(-1, 1), st.floats(0, 1), st.integers(1, 17))
def test_a_share_in_percent_is_above_below_or_at_its_limit_as_it_is(share, limit, digits):
    for bound in (limit, float(f"{share:.{digits}g}")):
        if share == bound and float(f"{bound:g}") != bound:
            # Both are rounded alike.
            continue
        shown = percent(share, bound)
        read = Decimal(shown.strip("<>%"))
        expected = (share < bound, share > bound)
        assert (read < 100 * Decimal(repr(bound)), read > 100 * Decimal(repr(bound))) == expected
        assert shown[0] not in "<>" or (shown[0] == "<", shown[0] == ">") == expected
        assert shown[0] in "<>" or (read in {0, 100, -100}) == (share in {0, 1, -1})


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
        (1234567.0, 5, ("1,234,567", "5")),
        (12345.678, 20000, ("12,346", "20,000")),
        (12345.678, 12346, ("12,345.7", "12,346")),
        (2_000_000, 2_000_000, ("2,000,000", "2,000,000")),
        (0.99996, 0.5, ("0.99996", "0.5")),
        (0.5, 0.99996, ("0.5", "0.99996")),
        (2**60 + 1, 2**60, ("1,152,921,504,606,846,977", "1,152,921,504,606,846,976")),
    ],
)
def test_a_value_is_written_so_that_it_differs_from_its_limit(value, limit, shown):
    assert against(value, limit) == shown


def test_a_limit_can_be_written_exactly():
    assert against(0.5, 1 / 3, exact=True) == ("0.5", "0.3333333333333333")
    assert against(2_000_000, 1_000_000, exact=True) == ("2000000", "1000000")
    assert against(10**400, 10**400 + 1)[0] == f"{10**400:,}"


@settings(max_examples=examples(300))
@given(FIGURES | CLOSE_TO_ONE, FIGURES | CLOSE_TO_ONE)
def test_a_value_is_shown_above_below_or_at_its_limit_as_it_is(value, limit):
    assert_same_order(value, limit)


def assert_same_order(value, limit):
    for exact in (False, True):
        texts = against(value, limit, exact=exact)
        shown, bound = (Decimal(text.replace(",", "")) for text in texts)
        assert (shown < bound, shown > bound) == (value < limit, value > limit)
        for text, number_shown in zip(texts, (value, limit), strict=True):
            assert_reads_zero_or_one_only_if_it_is(text, number_shown)


def assert_reads_zero_or_one_only_if_it_is(text, value):
    assert (Decimal(text.replace(",", "")) in {0, 1, -1}) == (value in {0, 1, -1})
    assert "e" not in text or not 1e-4 <= abs(value) <= 1e15


@settings(max_examples=examples(300))
@given(FIGURES | CLOSE_TO_ONE | st.floats(allow_nan=False, allow_infinity=False) | st.integers())
def test_a_number_reads_zero_or_one_only_if_it_is(value):
    assert_reads_zero_or_one_only_if_it_is(number(value), value)


@settings(max_examples=examples(300))
@given(st.integers(), st.integers(-2, 2))
def test_integers_of_any_size_are_shown_above_below_or_at_their_limit_as_they_are(value, difference):
    assert_same_order(value, value + difference)
    assert int(in_full(value)) == value
    assert in_full(value, grouped=True) == f"{value:,}"


@settings(max_examples=examples(300))
@given(FIGURES | CLOSE_TO_ONE, st.integers(1, 17))
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
    assert Decimal(in_full(value, grouped=True).replace(",", "")) == Decimal(in_full(value))


def test_a_yes_no_figure_reads_yes_or_no():
    assert [yes_or_no(value) for value in (1.0, 0.0)] == ["yes", "no"]
