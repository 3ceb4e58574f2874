"""Trees are those of a search that tries every split, and those of scikit-learn."""

from math import log

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from privacy_assets.synthesis.kernels.class_tree import find_leaves, grow_tree
from privacy_assets.synthesis.smooth_cart import OF_WEIGHTS
from tests.examples import examples
from tests.extras import NEEDS_TREES
from tests.reference.class_tree import possible_splits
from tests.synthesis.same_groups import same_groups

TIE = 1e-6


@st.composite
def tables(draw, most_rows=120):
    """Return codes, classes and weights: of people with one row or several, or all different."""
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_rows, n_features = draw(st.integers(1, most_rows)), draw(st.integers(0, 4))
    spread = draw(st.sampled_from([1, 2, 5, 40]))
    codes = random.integers(0, spread, (n_features, n_rows)) * draw(st.sampled_from([1, 3]))
    follows = codes.sum(axis=0) + random.integers(0, draw(st.integers(1, 4)), n_rows)
    target = np.unique(follows % draw(st.integers(1, 6)), return_inverse=True)[1]
    n_rows_each = random.integers(1, 4, n_rows)
    weights = {"one": np.ones(n_rows), "several": 1 / n_rows_each, "different": random.uniform(0.5, 2, n_rows)}
    return codes.astype(np.uint8), target.astype(np.uint8), weights[draw(st.sampled_from(sorted(weights)))]


def rows_of_nodes(tree, codes):
    """Return the rows of each node, found from the root down."""
    rows = {0: np.arange(codes.shape[1])}
    for node, feature in enumerate(tree.feature.tolist()):
        if feature >= 0:
            is_below = codes[feature, rows[node]] <= tree.threshold[node]
            rows[int(tree.left[node])] = rows[node][is_below]
            rows[int(tree.left[node]) + 1] = rows[node][~is_below]
    return [rows[node] for node in range(len(tree.feature))]


@settings(max_examples=examples(150), deadline=None)
@given(table=tables(), min_people=st.sampled_from([1.0, 2.5, 10.0]), min_gain=st.sampled_from([0.5, 1.0, 3.0]))
def test_every_node_has_the_best_of_all_splits_or_there_is_none(table, min_people, min_gain):
    codes, target, weights = table
    tree = grow_tree(codes, target, weights, min_people, min_gain, OF_WEIGHTS)
    for node, rows in enumerate(rows_of_nodes(tree, codes)):
        found = possible_splits(codes[:, rows].tolist(), target[rows].tolist(), weights[rows].tolist(), min_people)
        best = max(found.values(), default=0.0)
        if tree.feature[node] < 0:
            assert best <= min_gain + TIE
            assert tree.gain[node] == 0
        else:
            taken = found[int(tree.feature[node]), int(tree.threshold[node])]
            assert taken > min_gain - TIE
            assert taken > best - TIE
            assert abs(taken - tree.gain[node]) < TIE


@settings(max_examples=examples(150), deadline=None)
@given(table=tables(), n_people=st.integers(1, 60), min_people=st.sampled_from([1.0, 2.0, 7.0]), data=st.data())
def test_a_side_has_enough_different_people(table, n_people, min_people, data):
    codes, target, _ = table
    random = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    whose = np.sort(random.integers(0, n_people, len(target)))
    ones, min_gain = np.ones(len(target)), data.draw(st.sampled_from([0.5, 2.0]))
    tree = grow_tree(codes, target, ones, min_people, min_gain, whose)
    for node, rows in enumerate(rows_of_nodes(tree, codes)):
        own = whose[rows].tolist()
        assert node == 0 or len(set(own)) >= min_people
        found = possible_splits(codes[:, rows].tolist(), target[rows].tolist(), ones[rows].tolist(), min_people, own)
        best = max(found.values(), default=0.0)
        if tree.feature[node] < 0:
            assert best <= min_gain + TIE
        else:
            assert found[int(tree.feature[node]), int(tree.threshold[node])] > max(min_gain, best) - TIE


@settings(max_examples=examples(50), deadline=None)
@given(table=tables())
def test_the_leaf_of_a_row_is_the_one_in_which_it_was_learned(table):
    codes, target, weights = table
    tree = grow_tree(codes, target, weights, 2.0, 0.5, OF_WEIGHTS)
    leaves = find_leaves(tree, codes)
    for node, rows in enumerate(rows_of_nodes(tree, codes)):
        if tree.feature[node] < 0:
            assert np.flatnonzero(leaves == node).tolist() == rows.tolist()


def test_of_equally_good_splits_the_first_is_taken():
    codes = np.array([[0, 0, 4, 4], [0, 0, 4, 4]], dtype=np.uint8)
    tree = grow_tree(codes, np.array([0, 0, 1, 1], dtype=np.uint8), np.ones(4), 1.0, 1.0, OF_WEIGHTS)
    assert (tree.feature.tolist(), tree.threshold.tolist()) == ([0, -1, -1], [2, 0, 0])


@NEEDS_TREES
@settings(max_examples=examples(150), deadline=None)
@given(table=tables(most_rows=400), min_people=st.sampled_from([1.0, 5.3, 20.0]), data=st.data())
def test_leaves_are_those_of_scikit_learn(table, min_people, data):
    from sklearn.tree import DecisionTreeClassifier

    codes, target, weights = table
    n_classes, n_people = int(target.max()) + 1, float(weights.sum())
    assume(len(codes) and n_classes > 1 and 2 * min_people <= n_people)
    tree = grow_tree(codes, target, weights, min_people, n_classes - 1.0, OF_WEIGHTS)
    # Equally good splits divide differently; scikit-learn takes one at random. Gains at the limit depend on rounding.
    for rows in rows_of_nodes(tree, codes):
        found = possible_splits(codes[:, rows].tolist(), target[rows].tolist(), weights[rows].tolist(), min_people)
        best = max(found.values(), default=0.0)
        assume(sum(gain > best - TIE for gain in found.values()) <= 1)
        assume(abs(best - (n_classes - 1)) > TIE)
    theirs = DecisionTreeClassifier(
        criterion="entropy",
        min_weight_fraction_leaf=(min_people - TIE) / n_people,
        min_impurity_decrease=(n_classes - 1) / n_people / log(2),
        random_state=0,
    ).fit(codes.T.astype(np.float32), target, sample_weight=weights)
    unseen = np.random.default_rng(0).integers(0, int(codes.max()) + 2, (len(codes), 300)).astype(np.uint8)
    everyone = np.hstack([codes, unseen])
    assert same_groups(find_leaves(tree, everyone).tolist(), theirs.apply(everyone.T.astype(np.float32)).tolist())
