"""The columns that rows need to be identified agree with intersections by enumeration."""

from collections import Counter

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from privacy_assets.mpucc.kernels import common_columns
from privacy_assets.mpucc.kernels.common_columns import find_common_columns, narrow_by_levels
from tests.examples import examples
from tests.reference.mpucc import all_combinations, project
from tests.reference.mpucc_people import whose


def needed_by_enumeration(original, people, synthetic, max_size):
    """Synthetic position -> columns in every combination that identifies it."""
    records = {}
    for row, person in zip(original, people, strict=True):
        records.setdefault(person, Counter())[row] += 1
    needed = {}
    for combo in all_combinations(range(len(synthetic[0])), max_size):
        holders, ours = whose(records, combo), project(synthetic, combo)
        together = Counter(ours)
        for s, value in enumerate(ours):
            counts = list(holders.get(value, {}).values())
            if len(counts) == 1 and together[value] <= counts[0]:
                needed[s] = needed.get(s, set(combo)) & set(combo)
    return needed


@given(
    st.integers(0, 2**32),
    st.integers(1, 30),
    st.integers(1, 30),
    st.integers(1, 5),
    st.integers(1, 5),
    st.integers(1, 30),
    st.sampled_from([2, common_columns.BATCH]),
)
@settings(max_examples=examples(80), deadline=None)
def test_needed_columns_are_those_of_every_combination_that_identifies(
    seed, n_original, n_synthetic, n_columns, max_size, n_people, batch
):
    rng = np.random.default_rng(seed)
    n_values = rng.integers(1, 6, n_columns).tolist()
    original, synthetic = (
        np.column_stack([np.minimum(rng.geometric(0.4, n) - 1, most - 1) for most in n_values])
        for n in (n_original, n_synthetic)
    )
    people = rng.integers(0, n_people, n_original)
    asked_for = rng.permutation(n_columns)[: rng.integers(1, n_columns + 1)].tolist()
    before, common_columns.BATCH = common_columns.BATCH, batch
    try:
        is_identified, is_needed = find_common_columns(
            list(np.concatenate([synthetic, original]).T),
            n_values,
            n_synthetic,
            np.ones(n_synthetic + n_original, np.int32),
            np.concatenate([np.full(n_synthetic, -1), people]).astype(np.int32),
            asked_for=asked_for,
            max_size=max_size,
            n_threads=2,
        )
    finally:
        common_columns.BATCH = before
    rows = ([tuple(row) for row in table.tolist()] for table in (original, synthetic))
    original, synthetic = rows
    expected = needed_by_enumeration(original, people.tolist(), synthetic, min(max_size, n_columns))
    assert set(np.flatnonzero(is_identified)) == set(expected)
    for s, columns in enumerate(is_needed.tolist()):
        assert columns == [c in expected.get(s, asked_for) for c in asked_for]


def test_people_who_cannot_be_told_apart_are_not_identified():
    columns = [np.array([0, 1, 0, 1]), np.array([0, 0, 0, 0])]
    arguments = [2, 1], 2, np.ones(4, np.int32)
    subjects = np.array([-1, -1, 0, -1], np.int32)
    is_identified, is_needed = find_common_columns(columns, *arguments, subjects, asked_for=[0, 1], max_size=2)
    assert is_identified.tolist() == [True, False]
    # One column is enough for the first; nothing identifies the second.
    assert is_needed.tolist() == [[True, False], [True, True]]


def test_nothing_is_searched_if_no_row_is_open():
    def search(*_):
        raise AssertionError("a search without open rows")

    is_identified, is_needed = narrow_by_levels(search, 3, np.zeros(4, np.bool_), [0, 2], 3)
    assert not is_identified.any()
    assert is_needed.shape == (4, 2)
    assert is_needed.all()
