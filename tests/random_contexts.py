"""Hypothesis strategy for small contexts, and how a context of the reference becomes one of the package."""

import numpy as np
import pandas as pd
from hypothesis import strategies as st

from privacy_assets.semantic_risk.formal_context import read_formal_context


@st.composite
def contexts(draw, max_records=12, max_attributes=8):
    """Rows as sets of attribute numbers, and all numbers. Some are drawn from few rows, so that rows repeat."""
    n_attributes = draw(st.integers(1, max_attributes))
    row = st.frozensets(st.integers(0, n_attributes - 1))
    rows = st.lists(row, min_size=1, max_size=max_records)
    if draw(st.booleans()):
        few = draw(st.lists(row, min_size=1, max_size=3))
        rows = st.lists(st.sampled_from(few), min_size=1, max_size=max_records)
    return draw(rows), frozenset(range(n_attributes))


def as_table(rows, universe):
    """A table of true and false, a column ``a0, a1, ...`` per attribute."""
    return pd.DataFrame([[a in row for a in sorted(universe)] for row in rows], columns=names(universe), dtype=bool)


def as_context(rows, universe):
    return read_formal_context(as_table(rows, universe), "binary")


def names(attributes):
    return [f"a{a}" for a in sorted(attributes)]


def numbers(some_names):
    return frozenset(int(name[1:]) for name in some_names)


def random_rows(seed, n_records, n_attributes, share):
    """A larger context for comparisons with other programs."""
    random = np.random.default_rng(seed)
    return [frozenset(np.flatnonzero(random.random(n_attributes) < share).tolist()) for _ in range(n_records)]
