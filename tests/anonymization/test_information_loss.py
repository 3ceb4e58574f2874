"""Losses by their formulas, from membership, compared with plain arithmetic over rows."""

from collections import Counter
from math import isclose, log2

import numpy as np
import pandas as pd
from hypothesis import given, settings
from hypothesis import strategies as st

from privacy_assets.anonymization.generalization import generalize
from privacy_assets.anonymization.information_loss import (
    average_class_ratio,
    certainty_penalty,
    class_widths,
    discernibility,
    non_uniform_entropy,
)
from privacy_assets.anonymization.quasi_identifiers import read_dimension
from tests.examples import examples


@st.composite
def columns(draw):
    """A column and the class of each row; -1 for suppressed."""
    n_rows = draw(st.integers(1, 20))
    pool = draw(st.sampled_from([[1, 2, 5, 10], [0.5, 2.25, None], ["a", "b", "c", None], [None], [True, False]]))
    values = draw(st.lists(st.sampled_from(pool), min_size=n_rows, max_size=n_rows))
    classes = draw(st.lists(st.integers(-1, 3), min_size=n_rows, max_size=n_rows))
    classes[0] = max(classes[0], 0)
    return values, np.unique([-1, *classes], return_inverse=True)[1][1:] - 1


def generalized(values, classes):
    dimension = read_dimension(pd.Series(values, name="column", dtype=object))
    order = np.argsort(classes, kind="stable")[(classes < 0).sum() :]
    sizes = np.bincount(classes[classes >= 0])
    edges = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    return dimension, generalize(dimension.scale, dimension.codes[order], edges), sizes


@given(columns())
@settings(max_examples=examples(200), deadline=None)
def test_penalty_and_entropy_agree_with_sums_over_rows(drawn):
    values, classes = drawn
    dimension, generalization, sizes = generalized(values, classes)
    is_ordered = any(isinstance(v, int | float) and not isinstance(v, bool) for v in values)
    known = [v for v in values if v is not None]
    counts = Counter(values)
    lost, bits, most = 0.0, 0.0, 0.0
    for value, own_class in zip(values, classes, strict=True):
        own = {v for v, c in zip(values, classes, strict=True) if c == own_class}
        covered = set(own)
        if is_ordered and own - {None}:
            low, high = min(own - {None}), max(own - {None})
            covered |= {v for v in known if low <= v <= high}
        if own_class < 0:
            lost += 1
            covered = set(values)
        elif not is_ordered:
            lost += (len(own) - 1) / max(len(counts) - 1, 1)
        elif None in own:
            lost += len(own) > 1
        elif max(known) > min(known):
            lost += (max(own) - min(own)) / (max(known) - min(known))
        bits += -log2(counts[value] / sum(counts[v] for v in covered))
        most += -log2(counts[value] / len(values))
    assert isclose(certainty_penalty(generalization, sizes, len(values)), lost / len(values), abs_tol=1e-12)
    expected = bits / most if most > 0 else 0.0
    assert isclose(non_uniform_entropy(generalization, dimension.codes, sizes), expected, abs_tol=1e-9)


def test_discernibility_and_class_ratio_follow_their_definitions():
    sizes = np.array([3, 5])
    assert discernibility(sizes, 8) == 9 + 25
    assert discernibility(sizes, 10) == 9 + 25 + 2 * 10
    assert average_class_ratio(sizes, 2) == 2


@given(st.lists(st.lists(st.sampled_from(range(0, 90, 3)), min_size=1, max_size=3), min_size=1, max_size=9))
def test_equal_sets_of_many_values_are_one_generalization_in_order_of_appearance(sets):
    # More values than an integer has bits.
    scale = read_dimension(pd.Series([f"v{n:02}" for n in range(90)], name="x")).scale
    codes = np.array([code for own in sets for code in own])
    edges = np.concatenate([[0], np.cumsum([len(own) for own in sets])])
    example, which = generalize(scale, codes, edges).distinct()
    in_order = list(dict.fromkeys(frozenset(own) for own in sets))
    assert [frozenset(sets[i]) for i in example] == in_order
    assert [in_order[i] for i in which] == [frozenset(own) for own in sets]


def test_ranges_of_the_largest_numbers_do_not_overflow():
    for values in ([-1.7e308, 0.0, 1.7e308], [-(2**63), 0, 2**63 - 1], [0, 2**70, 2**71]):
        dimension, generalization, _ = generalized(values, np.array([0, 0, 1]))
        assert dimension.scale.is_ordered
        assert np.allclose(class_widths(generalization), [0.5, 0.0])


def test_labels_that_tell_the_value_lose_exactly_no_entropy():
    # Summed apart, the bits of ten different counts differed by 1.9e-15 of all.
    values = [v for v in range(10) for _ in range(v + 1)]
    for pool in (values, [f"t{v}" for v in values]):
        dimension, generalization, sizes = generalized(pool, np.array(values))
        assert non_uniform_entropy(generalization, dimension.codes, sizes) == 0.0
