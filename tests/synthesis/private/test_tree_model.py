"""Inference on a forest equals brute force, and the model is the best one that agrees with noisy counts."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacy_assets.synthesis.private.tree_model import (
    Measured,
    Potentials,
    closest_counts,
    fit_tree,
    marginals,
    ways_down,
)
from tests.examples import examples
from tests.reference import private_synthesis as reference


@st.composite
def forests(draw, most_columns=6, largest=4):
    """Class count, sizes and the edges of a forest whose columns may be in any order."""
    n_classes = draw(st.integers(1, 3))
    sizes = draw(st.lists(st.integers(1, largest), min_size=1, max_size=most_columns))
    edges = []
    for column in range(1, len(sizes)):
        if draw(st.integers(0, 5)):
            other = draw(st.integers(0, column - 1))
            edges.append((column, other) if draw(st.booleans()) else (other, column))
    order = draw(st.permutations(range(len(edges))))
    return n_classes, sizes, [edges[place] for place in order], draw(st.integers(0, 10_000))


def tables(seed, n_classes, sizes, edges, scale):
    random = np.random.default_rng(seed)
    columns = [random.normal(0, scale, (n_classes, size)) for size in sizes]
    pairs = [random.normal(0, scale, (n_classes, sizes[a], sizes[b])) for a, b in edges]
    return columns, pairs


@settings(max_examples=examples(60), deadline=None)
@given(forests(largest=3))
def test_marginals_equal_brute_force(forest):
    n_classes, sizes, edges, seed = forest
    columns, pairs = tables(seed, n_classes, sizes, edges, 2.0)
    found = marginals(Potentials(columns, pairs), edges, 1234.5)
    cells = reference.joint(n_classes, sizes, columns, pairs, edges, 1234.5)
    for column, counts in enumerate(found.columns):
        for key, count in reference.marginal(cells, [column]).items():
            assert counts[key] == pytest.approx(count, rel=1e-9)
    for edge, counts in zip(edges, found.pairs, strict=True):
        for key, count in reference.marginal(cells, edge).items():
            assert counts[key] == pytest.approx(count, rel=1e-9)


def test_far_apart_potentials_do_not_overflow():
    found = marginals(
        Potentials([np.array([[900.0, -900.0]]), np.zeros((1, 2))], [np.zeros((1, 2, 2))]), [(0, 1)], 10.0
    )
    np.testing.assert_allclose(found.columns[0], [[10, 0]])
    np.testing.assert_allclose(found.pairs[0], [[[5, 5], [0, 0]]])


@settings(max_examples=examples(30), deadline=None)
@given(forests(most_columns=4))
def test_the_model_is_consistent_and_close_to_the_best(forest):
    n_classes, sizes, edges, seed = forest
    random = np.random.default_rng(seed)
    columns = [random.uniform(0, 60, (n_classes, size)) + random.normal(0, 4, (n_classes, size)) for size in sizes]
    pairs = [random.uniform(0, 20, (n_classes, sizes[a], sizes[b])) for a, b in edges]
    weights = [np.full(size, 1 / 16) for size in sizes]
    total = float(max(1.0, np.mean([each.sum() for each in columns])))
    model = fit_tree(Measured(columns, pairs, weights, 1 / 25), edges, total)
    for (a, b), pair in zip(edges, model.pairs, strict=True):
        np.testing.assert_allclose(pair.sum(axis=2), model.columns[a], rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(pair.sum(axis=1), model.columns[b], rtol=1e-9, atol=1e-9)
        assert (pair >= 0).all()
    assert sum(own.sum() for own in model.columns) == pytest.approx(total * len(sizes))
    loss = sum(float((w * (m - y) ** 2).sum()) for w, m, y in zip(weights, model.columns, columns, strict=True)) / 2
    loss += sum(float(((m - y) ** 2).sum()) for m, y in zip(model.pairs, pairs, strict=True)) / 50
    above = reference.gap(n_classes, sizes, model.columns, model.pairs, edges, (columns, pairs, weights, 1 / 25), total)
    assert above <= 0.02 * loss + 1e-3 * total


def test_every_column_is_visited_once_and_after_its_parent():
    visits = ways_down(5, [(3, 1), (1, 4), (0, 2)])
    assert sorted(visit.column for visit in visits) == [0, 1, 2, 3, 4]
    before = set()
    for column, parent, edge in visits:
        assert (parent < 0) == (edge < 0)
        assert parent < 0 or parent in before
        before.add(column)
    assert sum(visit.parent < 0 for visit in visits) == 2


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(st.floats(-50, 50), min_size=1, max_size=12), st.floats(0.5, 100))
def test_closest_counts_are_a_projection(counts, total):
    counts = np.array(counts)
    found = closest_counts(counts, total)
    assert found.sum() == pytest.approx(total)
    assert (found >= 0).all()
    # A projection onto a convex set makes no acute angle with any direction within the set.
    for corner in np.eye(len(counts)) * total:
        assert (counts - found) @ (corner - found) <= 1e-6 * (1 + total) * (1 + np.abs(counts).max())


def test_a_sample_has_the_frequencies_of_the_model_to_within_rounding():
    edges = [(1, 0), (1, 2)]
    columns, pairs = tables(5, 2, [3, 4, 2], edges, 1.0)
    found = marginals(Potentials(columns, pairs), edges, 5000.0)
    model = fit_tree(Measured(found.columns, found.pairs, [np.ones(3), np.ones(4), np.ones(2)], 1.0), edges, 5000.0)
    classes, codes = model.sample(5000, np.random.default_rng(0))
    drawn = np.zeros(found.columns[1].shape)
    np.add.at(drawn, (classes, codes[:, 1]), 1)
    np.testing.assert_allclose(drawn, found.columns[1], atol=8)
    pair = np.zeros(found.pairs[1].shape)
    np.add.at(pair, (classes, codes[:, 1], codes[:, 2]), 1)
    np.testing.assert_allclose(pair, found.pairs[1], atol=12)
    again = model.sample(5000, np.random.default_rng(0))
    assert (again[1] == codes).all()
