"""Cuts along hierarchies: every cut is the best allowable one by enumeration, and no allowable cut is left."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacy_assets.anonymization.kernels.models import row_models
from privacy_assets.anonymization.kernels.mondrian import make_dimensions, partition_rows
from privacy_assets.anonymization.kernels.mondrian_nodes import make_nodes, sort_by_nodes
from privacy_assets.anonymization.kernels.mondrian_rows import pack_rows
from privacy_assets.anonymization.kernels.mondrian_tree import build_tree, route_rows
from tests.anonymization.kernels.mondrian_tables import check_partition, classes_of, even, only_compiled
from tests.anonymization.kernels.test_mondrian import limits, models_of_one
from tests.examples import examples
from tests.reference import mondrian as reference


def tree_of(groups_by_level):
    """Nodes of codes that are numbered depth-first, their losses, and the path of each code for the reference.

    ``groups_by_level`` has for each level above the values the number of its node for each node below, ascending.
    """
    nodes = [np.arange(len(groups_by_level[0]))]
    for groups in groups_by_level:
        nodes.append(np.asarray(groups)[nodes[-1]])
    node = np.array(nodes)
    counts = [np.bincount(level)[level] for level in node]
    loss = (np.array(counts) - 1) / max(node.shape[1] - 1, 1)
    paths = {code: [f"{level} {node[level, code]}" for level in range(len(node))] for code in range(node.shape[1])}
    return (node, loss), paths


@st.composite
def trees(draw, most=12):
    """A hierarchy of one to four levels; some merge nothing."""
    n = draw(st.integers(1, most))
    groups = []
    for _ in range(draw(st.integers(0, 2))):
        steps = draw(st.lists(st.booleans(), min_size=n - 1, max_size=n - 1))
        groups.append(np.concatenate([[0], np.cumsum(steps)]).astype(np.int64))
        n = int(groups[-1][-1]) + 1
    return tree_of([*groups, np.zeros(n, np.int64)])


@st.composite
def coded_tables(draw, max_rows=40):
    n_rows = draw(st.integers(1, max_rows))
    kinds = ["tree", *draw(st.lists(st.sampled_from(["tree", "ordered", "set"]), max_size=2))]
    columns, coordinates, n_values, hierarchies, places = [], [], [], [], []
    for kind in kinds:
        hierarchy, paths = draw(trees()) if kind == "tree" else (None, None)
        most = len(paths) - 1 if kind == "tree" else 9
        codes = np.array(draw(st.lists(st.integers(0, most), min_size=n_rows, max_size=n_rows)))
        if kind != "tree":
            codes = np.unique(codes, return_inverse=True)[1]
        n_values.append(len(paths) if kind == "tree" else int(codes.max()) + 1)
        columns.append(codes)
        coordinates.append(even(n_values[-1]) if kind == "ordered" else None)
        hierarchies.append(hierarchy)
        places.append(paths if kind == "tree" else dict(enumerate(even(n_values[-1]))))
    people = np.unique(draw(st.lists(st.integers(0, 12), min_size=n_rows, max_size=n_rows)), return_inverse=True)[1]
    secret = np.unique(draw(st.lists(st.integers(0, 4), min_size=n_rows, max_size=n_rows)), return_inverse=True)[1]
    dimensions = make_dimensions(coordinates, n_values, hierarchies)
    return kinds, columns, n_values, dimensions, places, people.astype(np.int32), secret.astype(np.int32)


@given(coded_tables(), limits(), st.integers(1, 6), st.booleans(), st.booleans(), st.booleans())
@settings(max_examples=examples(300), deadline=None)
def test_every_cut_is_the_best_allowable_one_and_none_is_left(table, limit, k, is_by_range, by_people, is_plain):
    kinds, columns, n_values, dimensions, places, people, secret = table
    (kind, least, c, most, is_ordered), wanted = limit
    if is_plain:
        wanted, by_people = [], False
    models = row_models(k, is_by_range=is_by_range)
    if not is_plain:
        limit = (kind, least, c, most, is_ordered)
        models = models_of_one(k, secret, *limit, is_by_range=is_by_range, by_people=by_people)
    coded = (kinds, columns, n_values, dimensions, places, people if by_people else None, secret)
    check_partition(coded, models, k, wanted, is_by_range)


@given(trees(), st.data())
@settings(max_examples=examples(100), deadline=None)
def test_values_come_depth_first_the_most_frequent_node_first(tree, data):
    (node, loss), paths = tree
    n = node.shape[1]
    tally = np.array(data.draw(st.lists(st.integers(0, 4), min_size=n, max_size=n).filter(any)))
    bins = np.flatnonzero(tally)
    expected = reference.depth_first({int(code): int(tally[code]) for code in bins}, paths, 0)
    counts = tally[bins]
    sort_by_nodes(len(bins), 0, n, make_nodes([(node, loss)]), bins, counts)
    assert bins.tolist() == expected
    assert (counts == tally[bins]).all()


@only_compiled
def test_many_values_are_cut_the_same_in_classes_of_all_sizes():
    """With more values than bins and words have, small and large classes are counted differently."""
    random = np.random.default_rng(0)
    groups = [np.repeat(np.arange(100), 10), np.repeat(np.arange(10), 10), np.zeros(10, np.int64)]
    hierarchy, paths = tree_of(groups)
    codes, other = np.minimum(random.zipf(1.2, 1500), 1000) - 1, random.integers(0, 4, 1500)
    dimensions = make_dimensions([None, even(4)], [1000, 4], [hierarchy, None])
    known = reference.Table(list(zip(codes.tolist(), other.tolist(), strict=True)), ["tree", "ordered"],
                            [paths, dict(enumerate(even(4)))])  # fmt: skip
    leaves = {level: {v: np.flatnonzero(nodes == v) for v in set(nodes)} for level, nodes in enumerate(hierarchy[0])}

    def width(members):
        own = np.unique(codes[members])
        level = next(level for level, nodes in enumerate(hierarchy[0]) if len(set(nodes[own])) == 1)
        return (len(leaves[level][hierarchy[0][level][own[0]]]) - 1) / 999

    found = partition_rows(pack_rows([codes, other], [1000, 4]), dimensions, row_models(5))
    n_along = n_checked = 0
    for begin, stop, middle, dimension, _ in found.cuts.tolist():
        members, left, right = (found.records[a:b] for a, b in ((begin, stop), (begin, middle), (middle, stop)))
        if dimension == 0:
            n_along += 1
            assert not set(codes[left]) & set(codes[right])
            assert min(width(left), width(right)) < width(members)
        if dimension == 0 and stop - begin < 40 and n_checked < 8:
            n_checked += 1
            ours = [part.tolist() for part in (members, left, right)]
            reference.check_cut(known, *ours, dimension, 5, (), "gain")
    assert n_along > 50 and n_checked == 8
    for members in classes_of(found):
        assert len(members) >= 5


def test_new_rows_of_the_same_codes_find_their_class():
    random = np.random.default_rng(1)
    hierarchy, _ = tree_of([np.repeat(np.arange(10), 8), np.zeros(10, np.int64)])
    codes, other = random.integers(0, 80, 900), random.integers(0, 30, 900)
    dimensions = make_dimensions([None, even(30)], [80, 30], [hierarchy, None])
    found = partition_rows(pack_rows([codes, other], [80, 30]), dimensions, row_models(4))
    tree = build_tree(found, [codes, other], [80, 30], [True, False])
    classes = np.empty(900, np.int64)
    classes[found.records] = np.repeat(np.arange(len(found.begins)), np.diff(found.edges))
    assert (route_rows(tree, np.column_stack([codes, other]).astype(np.int64)) == classes).all()


@pytest.mark.parametrize("n_threads", [1, 2])
def test_the_order_of_rows_and_threads_change_nothing(n_threads):
    random = np.random.default_rng(2)
    hierarchy, _ = tree_of([np.repeat(np.arange(10), 8), np.zeros(10, np.int64)])
    codes, other = random.integers(0, 80, 3000), random.integers(0, 30, 3000)
    dimensions = make_dimensions([None, even(30)], [80, 30], [hierarchy, None])

    def classes(order, **how):
        columns = [codes[order], other[order]]
        found = partition_rows(pack_rows(columns, [80, 30]), dimensions, row_models(4), **how)
        return {frozenset(order[members].tolist()) for members in classes_of(found)}

    assert classes(np.arange(3000)) == classes(random.permutation(3000), n_threads=n_threads, task_rows=200)
