"""The measures of all classes at once agree with their definitions, class by class."""

import math
from itertools import pairwise
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacy_assets.anonymization.kernels import class_measures
from privacy_assets.anonymization.kernels.class_measures import hold_by_class, measure_classes
from privacy_assets.anonymization.kernels.models import DISTINCT, ENTROPY, NO_L, RECURSIVE, Models
from tests.examples import examples
from tests.reference import anonymity_measures as reference
from tests.reference import mondrian

WORDS = {DISTINCT: "distinct", ENTROPY: "entropy", RECURSIVE: "recursive"}


@st.composite
def classes(draw):
    """Sensitive columns of rows sorted by class, and where the classes begin; some values may have no row."""
    n_rows = draw(st.integers(1, 40))
    n_sensitive = draw(st.integers(1, 3))
    n_values = [draw(st.sampled_from([1, 4, 60])) for _ in range(n_sensitive)]
    columns = [draw(st.lists(st.integers(0, n - 1), min_size=n_rows, max_size=n_rows)) for n in n_values]
    inner = draw(st.sets(st.integers(1, n_rows - 1))) if n_rows > 1 else set()
    edges = np.array([0, *sorted(inner), n_rows])
    first = np.cumsum([0, *n_values])
    return columns, np.column_stack(columns).astype(np.int32) + first[:-1].astype(np.int32), first, edges


@given(classes(), st.booleans(), st.sampled_from([1, 7, 1 << 15]))
@settings(max_examples=examples(200), deadline=None)
def test_each_class_agrees_with_the_definitions(drawn, is_ordered, rows_at_a_time):
    columns, codes, first, edges = drawn
    with mock.patch.object(class_measures, "ROWS_AT_A_TIME", rows_at_a_time):
        found = measure_classes(codes, first, np.full(len(columns), is_ordered), edges)
    distance = reference.ordered_distance if is_ordered else reference.equal_distance
    for v, table in enumerate(columns):
        for c, (begin, stop) in enumerate(pairwise(edges)):
            own = table[begin:stop]
            assert found.n_distinct[c, v] == len(set(own))
            assert math.isclose(found.entropy_l[c, v], math.exp(reference.entropy(own)), abs_tol=1e-12)
            assert math.isclose(found.distance[c, v], distance(own, table), abs_tol=1e-14)


@given(classes(), st.data())
@settings(max_examples=examples(200), deadline=None)
def test_classes_hold_as_by_the_definitions_and_are_compared_with_those_kept(drawn, data):
    columns, codes, first, edges = drawn
    n_classes, n_sensitive = len(edges) - 1, len(columns)
    draw_each = lambda values: [data.draw(st.sampled_from(values)) for _ in columns]  # noqa: E731
    kinds, least = draw_each([NO_L, DISTINCT, ENTROPY, RECURSIVE]), draw_each([1.0, 2.0, 3.0])
    factor, most, is_ordered = draw_each([0.5, 1.0, 3.0]), draw_each([np.inf, 0.5, 0.2]), draw_each([False, True])
    is_kept = np.array(data.draw(st.lists(st.booleans(), min_size=n_classes, max_size=n_classes)))
    is_kept[data.draw(st.integers(0, n_classes - 1))] = True
    none = np.zeros(0)
    models = Models(
        1, False, False, True, first, np.array(kinds), np.array(least), np.array(factor), np.array(most),
        np.array(is_ordered), none.astype(np.int64), none.astype(np.int64), none,
    )  # fmt: skip
    found = hold_by_class(models, codes, edges, is_kept)
    for c in range(n_classes):
        expected = bool(is_kept[c])
        for v in range(n_sensitive if expected else 0):
            parts = [columns[v][begin:stop] for begin, stop in pairwise(edges)]
            table = [value for part, kept in zip(parts, is_kept, strict=True) if kept for value in part]
            if kinds[v] != NO_L:
                expected &= mondrian.is_diverse(parts[c], WORDS[kinds[v]], least[v], factor[v])
            distance = reference.ordered_distance if is_ordered[v] else reference.equal_distance
            expected &= distance(parts[c], table) <= most[v] + 1e-9
        assert found[c] == expected


@pytest.mark.parametrize("is_ordered", [False, True])
def test_large_counts_do_not_overflow(is_ordered):
    # Rows times rows times values exceed 64 bits.
    n = 3_000_000
    found = measure_classes(
        np.arange(n, dtype=np.int32)[:, None], np.array([0, n]), np.array([is_ordered]), np.array([0, n // 2, n])
    )
    assert found.distance[:, 0] == pytest.approx([0.25, 0.25] if is_ordered else [0.5, 0.5], rel=1e-6)
    assert found.n_distinct[:, 0].tolist() == [n // 2, n // 2]
