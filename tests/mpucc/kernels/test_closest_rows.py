"""The closest row of a person agrees with a comparison of all of the person's rows."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from privacy_assets.mpucc.kernels.closest_rows import find_closest_rows
from privacy_assets.mpucc.kernels.code_blocks import group_by_width
from tests.examples import examples


@given(
    st.integers(0, 2**32 - 1), st.integers(1, 12), st.integers(1, 20), st.integers(1, 5), st.sampled_from([3, 70_000])
)
@settings(max_examples=examples(80), deadline=None)
def test_the_closest_row_of_a_person_is_the_first_that_agrees_on_most_columns(seed, n_synthetic, n_other, n_columns, n):
    random = np.random.default_rng(seed)
    values = random.integers(0, n, 3)
    own, others = (values[random.integers(0, 3, (n_rows, n_columns))] for n_rows in (n_synthetic, n_other))
    persons = random.integers(0, 4, n_other)
    combos = np.full((n_columns, n_columns), -1, np.int16)
    for size in range(1, n_columns + 1):
        combos[size - 1, :size] = np.sort(random.permutation(n_columns)[:size])
    combo_of_row, partners, expected = np.full(n_synthetic, -1), np.full(n_synthetic, -1, np.int32), []
    for row in range(n_synthetic):
        combo = int(random.integers(0, n_columns))
        on = combos[combo][combos[combo] >= 0]
        equal = [other for other in range(n_other) if (own[row][on] == others[other][on]).all()]
        if not equal:
            expected.append(-1)
            continue
        combo_of_row[row], partners[row] = combo, random.choice(equal)
        of_person = [other for other in equal if persons[other] == persons[partners[row]]]
        expected.append(max(of_person, key=lambda other, row=row: ((own[row] == others[other]).sum(), -other)))
    starts = np.append(0, np.cumsum(np.bincount(persons, minlength=4)))
    blocks = group_by_width(list(np.vstack([own, others]).T), [n] * n_columns)
    in_order = np.argsort(persons, kind="stable")
    find_closest_rows(blocks, n_synthetic, combos, combo_of_row, persons, in_order, starts, partners)
    assert partners.tolist() == expected
