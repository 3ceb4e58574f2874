"""Searches that an engine and the kernels must agree on in every array."""

import numpy as np
from hypothesis import strategies as st

from privacy_assets.mpucc.divided_search import find_mpuccs_by
from privacy_assets.mpucc.kernels.search import SearchInput, find_mpuccs


@st.composite
def searches(draw):
    """Tables of skewed codes with weights and, half of the time, people; one value may have 90 % of the rows."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_columns = draw(st.integers(1, 6))
    n_rows = draw(st.integers(2, 400))
    n_synthetic = draw(st.integers(1, n_rows - 1))
    columns, n_codes = [], []
    for _ in range(n_columns):
        kind = draw(st.sampled_from(["few", "many", "mostly one", "one", "binary"]))
        n = {"few": 5, "many": 300, "mostly one": 60, "one": 1, "binary": 2}[kind]
        codes = rng.integers(0, n, n_rows)
        if kind == "mostly one":
            codes[rng.random(n_rows) < 0.9] = 3
        columns.append(codes)
        n_codes.append(n)
    weights = np.where(rng.random(n_rows) < draw(st.sampled_from([0.0, 0.3])), 2, 1).astype(np.int32)
    more = {"max_size": draw(st.integers(1, n_columns)), "with_profile": draw(st.booleans())}
    if draw(st.booleans()):
        people = rng.integers(-1, max(n_rows // 3, 1), n_rows)
        more["subjects"] = np.where(np.arange(n_rows) < n_synthetic, -1, people).astype(np.int32)
    if draw(st.booleans()):
        more["is_sought"] = rng.random(n_synthetic) < 0.7
    if draw(st.booleans()):
        more |= {"alpha": 1.0, "min_entropy_gain": draw(st.sampled_from([0.0, 0.05]))}
    if draw(st.booleans()):
        more |= {"alpha": draw(st.sampled_from([1.0, 2.0])), "by_information": True}
    more["only_with_first"] = draw(st.booleans())
    if draw(st.booleans()):
        more["max_combinations"] = draw(st.integers(1, 40))
    return (columns, n_codes, n_synthetic, weights), more


def agree(engine, tables, settings):
    """Compare the search by an engine with that of the kernels."""
    asked = SearchInput(*tables, **settings)
    expected, found = find_mpuccs(asked), find_mpuccs_by(engine, asked)
    for name, own, other in zip(expected._fields, expected, found, strict=True):
        if name == "profile":
            assert (own is None) == (other is None)
            for figure, same in zip(own or (), other or (), strict=True):
                np.testing.assert_array_equal(same, figure, err_msg=name)
        else:
            np.testing.assert_array_equal(other, own, err_msg=name)
            assert np.asarray(other).dtype == np.asarray(own).dtype
