"""How far one column determines another, against a count of the rows and of the pairs of rows."""

from collections import Counter
from itertools import combinations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from privacy_assets.kernels.code_pairs import compare_codes
from tests.examples import examples


def compared(rows, most=10**6):
    key, column = np.array(rows, np.int64).reshape(-1, 2).T.copy()
    return compare_codes(key, column, 4, 5, most)


def rows_to_change(rows):
    """For each key, all rows but those with its most frequent value."""
    counted = [Counter(value for own, value in rows if own == key) for key in {key for key, _ in rows}]
    return sum(own.total() - max(own.values()) for own in counted)


@settings(max_examples=examples(200))
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4)), max_size=30), st.integers(0, 10))
def test_rows_to_change_and_equal_pairs_are_counted(rows, most):
    n_pairs = sum(first == second for first, second in combinations(rows, 2))
    assert compared(rows) == (rows_to_change(rows), n_pairs)
    assert (compared(rows, most)[0] > most) == (rows_to_change(rows) > most)
