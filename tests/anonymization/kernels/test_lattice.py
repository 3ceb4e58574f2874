"""The sweep publishes what enumeration publishes, and every class satisfies the models."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacy_assets.anonymization.kernels import lattice, lattice_leftovers
from privacy_assets.anonymization.kernels.lattice import count_nodes, sweep_lattice
from privacy_assets.anonymization.kernels.lattice_models import Column, Items, Sensitive, limits_of
from privacy_assets.anonymization.kernels.models import DISTINCT, ENTROPY, NO_L, RECURSIVE
from tests.examples import examples
from tests.reference import lattice as reference

KINDS = {NO_L: "none", DISTINCT: "distinct", ENTROPY: "entropy", RECURSIVE: "recursive"}


def tree(parents_by_level, n_values):
    """Nodes of each value by level, and the loss of each node, from lists of parents; the top is added."""
    levels = [np.arange(n_values)]
    n_nodes = n_values
    for parents in [*parents_by_level, [0] * n_values]:
        _, number = np.unique(np.array(parents)[np.unique(levels[-1], return_inverse=True)[1]], return_inverse=True)
        levels.append(n_nodes + number)
        n_nodes += number.max() + 1
    nodes = np.array(levels)
    loss = np.zeros(n_nodes)
    for own in nodes:
        for node in np.unique(own):
            loss[node] = ((own == node).sum() - 1) / max(n_values - 1, 1)
    return nodes, loss


@st.composite
def columns(draw, n_rows):
    n_values = draw(st.integers(1, 6))
    parents = draw(st.lists(st.lists(st.integers(0, 2), min_size=6, max_size=6), max_size=2))
    codes = draw(st.lists(st.integers(0, n_values - 1), min_size=n_rows, max_size=n_rows))
    return Column(np.array(codes, np.int64), *tree(parents, n_values))


@st.composite
def problems(draw, with_sensitive=True):
    n_rows = draw(st.integers(1, 24))
    own = tuple(draw(columns(n_rows)) for _ in range(draw(st.integers(1, 3))))
    people = draw(st.none() | st.lists(st.integers(0, 6), min_size=n_rows, max_size=n_rows))
    sensitive = []
    for _ in range(draw(st.integers(0, 2)) if with_sensitive else 0):
        values = draw(st.lists(st.integers(0, 3), min_size=n_rows, max_size=n_rows))
        distinct, codes = np.unique(values, return_inverse=True)
        kind = draw(st.sampled_from(sorted(KINDS)))
        least = draw(st.integers(1, len(distinct)))
        closeness = draw(st.sampled_from([np.inf, 0.5, 0.3, 0.1]))
        is_ordered = draw(st.booleans())
        sensitive.append(Sensitive(codes.astype(np.int64), len(distinct), is_ordered, kind, least, 3.0, closeness))
    people = None if people is None else np.unique(people, return_inverse=True)[1].astype(np.int64)
    return Items(own, np.ones(n_rows, np.int64), people, tuple(sensitive)), draw(st.integers(1, 5))


def is_class(items, k, rows, table=None):
    """Whether some rows satisfy all models by the reference."""
    n = len(rows) if items.people is None else len(set(items.people[rows].tolist()))
    table = range(len(items.weights)) if table is None else table
    return n >= k and all(
        reference.is_satisfied(
            s.codes[rows].tolist(),
            s.codes[list(table)].tolist(),
            s.least,
            KINDS[s.diversity],
            s.c,
            None if s.closeness == np.inf else s.closeness,
            s.is_ordered,
        )
        for s in items.sensitive
    )


def enumerated(items, k):
    paths = [[tuple(column.nodes[:, code].tolist()) for code in column.codes] for column in items.columns]
    loss = {
        (c, node): Fraction(float(value)).limit_denominator(10)
        for c, column in enumerate(items.columns)
        for node, value in enumerate(column.loss)
    }
    return reference.sweep(paths, loss, lambda rows: is_class(items, k, rows))


def check(items, k, found, n_allowed=0):
    """Certificate: classes are cells of their node, satisfy the models, and cover the rows."""
    kept = np.flatnonzero(found.class_of_item >= 0)
    assert items.weights[found.class_of_item < 0].sum() <= n_allowed
    labels = []
    for c, levels in enumerate(found.levels):
        rows = np.flatnonzero(found.class_of_item == c)
        assert len(rows)
        nodes = [column.nodes[level, column.codes[rows]] for column, level in zip(items.columns, levels, strict=True)]
        assert all(len(set(own.tolist())) == 1 for own in nodes)
        labels.append(tuple(own[0] for own in nodes))
        assert is_class(items, k, rows.tolist(), kept)
    assert len(set(labels)) == len(labels)


def loss_of(items, found):
    """Loss summed over columns and rows, 1 for what is suppressed."""
    total = 0.0
    for item, own in enumerate(found.class_of_item):
        for c, column in enumerate(items.columns):
            total += 1.0 if own < 0 else column.loss[column.nodes[found.levels[own, c], column.codes[item]]]
    return total


@given(problems())
@settings(max_examples=examples(120), deadline=None)
def test_the_sweep_publishes_what_enumeration_publishes(problem):
    items, k = problem
    if not is_class(items, k, list(range(len(items.weights)))):
        return
    found = sweep_lattice(items, k)
    check(items, k, found)
    classes, left = enumerated(items, k)
    # Placing what is left widens classes and joins some, but takes none apart.
    assert all(len(set(found.class_of_item[rows].tolist())) == 1 for _, rows in classes)
    if not left:
        published = {tuple(np.flatnonzero(found.class_of_item == c).tolist()) for c in range(len(found.levels))}
        assert published == {tuple(rows) for _, rows in classes}


@given(problems(), st.integers(0, 8))
@settings(max_examples=examples(60), deadline=None)
def test_no_more_is_suppressed_than_may_be_and_the_rest_satisfies_the_models(problem, n_allowed):
    items, k = problem
    n_allowed = min(n_allowed, len(items.weights) - 1)
    found = sweep_lattice(items, k, n_allowed=n_allowed)
    is_satisfied = is_class(items, k, list(range(len(items.weights))))
    if found is not None:
        check(items, k, found, n_allowed)
        whole = sweep_lattice(items, k)
        assert (whole is not None) == is_satisfied
        assert whole is None or loss_of(items, found) <= loss_of(items, whole) + 1e-9
    else:
        assert not is_satisfied


@given(problems(), st.lists(st.integers(1, 4), min_size=24, max_size=24))
@settings(max_examples=examples(30), deadline=None)
def test_an_item_of_some_weight_is_as_many_rows(problem, weights):
    items, k = problem
    weights = np.array(weights[: len(items.weights)])
    rows = np.repeat(np.arange(len(weights)), weights)
    repeated = Items(
        tuple(column._replace(codes=column.codes[rows]) for column in items.columns),
        np.ones(len(rows), np.int64),
        None if items.people is None else items.people[rows],
        tuple(own._replace(codes=own.codes[rows]) for own in items.sensitive),
    )
    if not is_class(repeated, k, list(range(len(rows)))):
        return
    found = sweep_lattice(items._replace(weights=weights), k)
    check(repeated, k, found._replace(class_of_item=found.class_of_item[rows]))
    expanded = sweep_lattice(repeated, k)
    check(repeated, k, expanded)
    if not enumerated(repeated, k)[1]:
        assert np.array_equal(found.class_of_item[rows], expanded.class_of_item)


def test_many_nodes_of_many_columns_are_told_apart():
    # The numbers of nodes multiply beyond 64 bits: keys are random and classes are checked.
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 40, (200, 14))
    codes[100:] = codes[:100]
    own = tuple(Column(codes[:, c], np.arange(40)[None, :], np.zeros(40)) for c in range(13))
    own += (Column(codes[:, 13], *tree([], 40)),)
    assert np.prod([float(column.nodes.max()) for column in own]) > 2**63
    items = Items(own, np.ones(200, np.int64), None, ())
    found = sweep_lattice(items, 2)
    check(items, 2, found)
    assert len(found.levels) == 100
    assert not found.levels.any()


def test_equal_keys_of_different_rows_make_no_class(monkeypatch):
    # Were all random parts equal, every group would be mixed: none is published but where the nodes are equal.
    class Zeros:
        def integers(self, low, high, size):
            return np.zeros(size, np.int64)

    rng = np.random.default_rng(1)
    codes = rng.integers(0, 1000, (50, 8))
    items = Items(tuple(Column(c, *tree([], 1000)) for c in codes.T), np.ones(50, np.int64), None, ())
    monkeypatch.setattr(lattice.np.random, "default_rng", lambda seed: Zeros())
    check(items, 2, sweep_lattice(items, 2))


def test_progress_is_told_and_may_end_the_sweep():
    rng = np.random.default_rng(2)
    items = Items(
        tuple(Column(c, *tree([[0, 0, 1, 1, 2, 2]] * 2, 6)) for c in rng.integers(0, 6, (5, 300))),
        np.ones(300, np.int64),
        None,
        (),
    )
    seen = []
    sweep_lattice(items, 40, progress=lambda *state: seen.append(state))
    assert [n for n, _, _ in seen] == sorted(n for n, _, _ in seen)
    assert seen[-1][0] <= count_nodes(items.columns) == seen[-1][1]

    def stop(*state):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sweep_lattice(items, 40, progress=stop)


def test_progress_is_told_while_what_is_left_is_placed_and_steps_change_nothing(monkeypatch):
    rng = np.random.default_rng(3)
    values = np.where(rng.random(600) < 0.8, 0, rng.integers(1, 5, 600))
    items = Items(
        tuple(Column(np.sort(rng.integers(0, 12, 600)), *tree([np.arange(12) // 3], 12)) for _ in range(3)),
        np.ones(600, np.int64),
        None,
        (Sensitive(values, 5, False, ENTROPY, 1.5, 1.0, np.inf),),
    )
    found = sweep_lattice(items, 3)
    monkeypatch.setattr(lattice_leftovers, "PLACED_PER_STEP", 2)
    seen = []
    again = sweep_lattice(items, 3, progress=lambda *state: seen.append(state))
    assert again.class_of_item.tolist() == found.class_of_item.tolist()
    while_placing = [left for visited, _, left in seen if visited == seen[-1][0]]
    assert len(while_placing) > 3 and while_placing == sorted(while_placing, reverse=True) and while_placing[-1] == 0

    def stop(_visited, _n_nodes, n_left):
        if n_left < while_placing[0]:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sweep_lattice(items, 3, progress=stop)


def test_a_value_that_is_suppressed_altogether_is_no_value_of_the_released_table():
    own = Column(np.array([0, 0, 0, 0, 1, 1, 1, 1, 2]), *tree([], 3))
    values = np.array([0, 0, 2, 2, 0, 0, 2, 2, 1])
    items = Items((own,), np.ones(9, np.int64), None, (Sensitive(values, 3, True, NO_L, 1.0, 1.0, 0.09),))
    found = sweep_lattice(items, 2, n_allowed=1)
    assert (found.class_of_item < 0).tolist() == [False] * 8 + [True]
    check(items, 2, found, 1)
    limits = limits_of(items, 2, found.class_of_item >= 0)
    assert (limits.n_values.tolist(), limits.totals[0, :2].tolist()) == ([2], [4, 4])
    assert limits.values[0, :8].tolist() == [0, 0, 1, 1, 0, 0, 1, 1]


def test_classes_too_far_from_the_table_without_suppressed_rows_become_one():
    # 7 of 10, 20 of 40 and 5 of 5 rows have the first value: 0.118, 0.082 and 0.418 from the table's share of 32 / 55.
    # Without the last five, too far to be published as a class, the first class is 0.16 from 27 / 50.
    own = Column(np.repeat([0, 1, 2], [10, 40, 5]), *tree([[0, 0] + [1] * 18], 20))
    values = np.repeat([0, 1, 0, 1, 0], [7, 3, 20, 20, 5])
    items = Items((own,), np.ones(55, np.int64), None, (Sensitive(values, 2, False, NO_L, 1.0, 1.0, 0.13),))
    found = sweep_lattice(items, 6, n_allowed=5)
    assert found.class_of_item.tolist() == [0] * 50 + [-1] * 5
    assert found.levels.tolist() == [[1]]
    check(items, 6, found, 5)
    # If no row may be left out, the second class takes them.
    assert sweep_lattice(items, 6).class_of_item.tolist() == [0] * 10 + [1] * 45
