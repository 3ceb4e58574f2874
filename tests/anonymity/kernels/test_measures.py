"""The measures of each class agree with their definitions."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacy_assets.anonymity.kernels.measures import (
    LARGEST_RECURSIVE_L,
    count_people,
    group_by_class,
    measure_classes,
)
from tests.examples import examples
from tests.reference import anonymity_measures as reference


def measured(class_of_row, values, is_ordered):
    """Measure, after renumbering both from 0 without a gap."""
    classes, class_of_row = np.unique(class_of_row, return_inverse=True)
    _, values = np.unique(values, return_inverse=True)
    grouped = group_by_class(class_of_row, len(classes))
    return (
        measure_classes(grouped, values, np.bincount(values), is_ordered=is_ordered),
        class_of_row,
        values,
    )


@st.composite
def classes_and_values(draw):
    rows = draw(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 12)), min_size=1, max_size=60))
    return [c for c, _ in rows], [v for _, v in rows]


@given(classes_and_values(), st.booleans())
@settings(max_examples=examples(200), deadline=None)
def test_each_class_agrees_with_the_definitions(drawn, is_ordered):
    found, class_of_row, values = measured(*drawn, is_ordered)
    table = values.tolist()
    distance = reference.ordered_distance if is_ordered else reference.equal_distance
    for c in range(class_of_row.max() + 1):
        own = values[class_of_row == c].tolist()
        assert found.n_values[c] == len(set(own))
        assert math.isclose(found.largest_share[c], max(reference.shares(own).values()))
        assert math.isclose(found.entropy[c], reference.entropy(own), abs_tol=1e-12)
        assert math.isclose(found.distance[c], distance(own, table), abs_tol=1e-14)
        assert math.isclose(found.beta[c], reference.beta(own, table), abs_tol=1e-12)
        assert math.isclose(found.enhanced_beta[c], reference.enhanced_beta(own, table), abs_tol=1e-12)
        assert math.isclose(found.delta[c], reference.delta(own, table), abs_tol=1e-12)
        for l_value in range(1, LARGEST_RECURSIVE_L + 1):
            assert math.isclose(found.recursive_c[c, l_value], reference.recursive_c(own, l_value))


@given(classes_and_values(), st.booleans())
@settings(max_examples=examples(60), deadline=None)
def test_measures_keep_their_bounds(drawn, is_ordered):
    found, class_of_row, values = measured(*drawn, is_ordered)
    assert (found.n_values <= np.bincount(class_of_row)).all()
    assert ((found.distance >= 0) & (found.distance <= 1)).all()
    assert (np.exp(found.entropy) <= found.n_values + 1e-9).all()
    assert (found.largest_share >= 1 / found.n_values - 1e-12).all()
    assert (found.enhanced_beta >= found.beta).all()
    whole, *_ = measured([0] * len(values), values, is_ordered)
    assert whole.distance[0] == whole.beta[0] == 0


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 5)), min_size=1, max_size=30))
@settings(max_examples=examples(60), deadline=None)
def test_people_are_counted_once_per_class(rows):
    labels, class_of_row = np.unique([c for c, _ in rows], return_inverse=True)
    people = [person for _, person in rows]
    grouped = group_by_class(class_of_row, len(labels))
    found = count_people(grouped, np.array(people, np.int32), 6)
    expected = {labels[c]: len({p for q, p in rows if q == labels[c]}) for c in range(len(labels))}
    assert dict(zip(labels, found, strict=True)) == expected


@pytest.mark.parametrize("n_values", [2, 11, 1000])
def test_an_equal_copy_of_a_large_table_is_at_no_distance(n_values):
    rng = np.random.default_rng(0)
    values = np.repeat(rng.integers(0, n_values, 20_000), 2)
    for is_ordered in (True, False):
        found, *_ = measured(np.tile([0, 1], 20_000), values, is_ordered)
        assert np.abs(found.distance).max() == 0


def test_many_values_over_many_classes_agree_with_dense_counts():
    rng = np.random.default_rng(1)
    class_of_row, values = rng.integers(0, 300, 20_000), rng.zipf(1.5, 20_000) % 5000
    found, class_of_row, values = measured(class_of_row, values, True)
    dense = np.zeros((300, values.max() + 1))
    np.add.at(dense, (class_of_row, values), 1)
    q, p = dense / dense.sum(axis=1, keepdims=True), dense.sum(axis=0) / len(values)
    expected = np.abs(np.cumsum(q - p, axis=1)).sum(axis=1) / (len(p) - 1)
    assert np.allclose(found.distance, expected, atol=1e-12)
