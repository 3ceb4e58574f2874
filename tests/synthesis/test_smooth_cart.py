"""Trees on classes of people: nothing is learned from few, and structure that many share is kept."""

import math
import subprocess
import sys
from collections import Counter

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacy_assets.errors import InvalidSettingError
from privacy_assets.examples.rand_hie import load_rand_hie
from privacy_assets.mpucc.assess import assess_mpuccs
from privacy_assets.synthesis.chunked_scores import chunks_of
from privacy_assets.synthesis.kernels.class_tree import find_leaves, grow_tree
from privacy_assets.synthesis.smooth_cart import OF_WEIGHTS, SmoothCart, draw_classes, even_places, softened
from privacy_assets.synthesis.split import split_records
from privacy_assets.synthesis.synthesize import synthesize
from privacy_assets.utility.assess import assess_utility
from tests.examples import examples
from tests.extras import NEEDS_TREES
from tests.people import every_kind
from tests.synthesis.fidelity import marginals_and_pairs, verbatim_share
from tests.synthesis.same_groups import same_groups


def fitted(table, person=None, **chosen):
    return SmoothCart(**chosen).fit(table, seed=0, person=person)


def classes_of(table, synthesizer):
    """Return the class of each record, from the table alone; columns are in the order in which they are drawn."""
    classes = np.zeros((len(table), table.shape[1]), dtype=int)
    for i, column in enumerate(synthesizer._columns):
        cell_of = {_key(value): cell for cell, value in enumerate(column.margin.observed)}
        own = [cell_of[_key(value)] for value in table.iloc[:, column.place]]
        classes[:, i] = [sum(cell >= first for first in column.first_cells) - 1 for cell in own]
    return classes


def people_by_class_and_leaf(table, person, synthesizer):
    """Count people by class of each column and by leaf of each tree, from the table alone."""
    whose = list(range(len(table))) if person is None else list(person)
    classes, counted = classes_of(table, synthesizer), []
    for i, column in enumerate(synthesizer._columns):
        leaves = [leaf_of(column.tree, row[:i]) for row in classes.tolist()]
        for groups in (classes[:, i].tolist(), leaves):
            people = Counter(group for group, _ in set(zip(groups, whose, strict=True)))
            counted.append((column.place, people))
    return counted


def leaf_of(tree, codes):
    node = 0
    while tree.feature[node] >= 0:
        node = int(tree.left[node]) + (codes[tree.feature[node]] > tree.threshold[node])
    return node


def _key(value):
    return None if pd.isna(value) else value


@settings(max_examples=examples(25), deadline=None)
@given(
    seed=st.integers(0, 10_000),
    n_rows=st.integers(2, 300),
    n_people=st.integers(1, 200),
    min_people=st.integers(1, 40),
    smoothing=st.sampled_from([0.0, 1.0, 3.0]),
)
def test_no_class_and_no_leaf_has_fewer_people_than_were_asked_for(seed, n_rows, n_people, min_people, smoothing):
    table = every_kind(n_rows, seed)
    person = np.random.default_rng(seed).integers(0, n_people, n_rows)
    made = fitted(table, person, min_people=min_people, smoothing=smoothing, min_atom=1)
    n_present = len(set(person.tolist()))
    for place, people in people_by_class_and_leaf(table, person, made):
        assert len(people) == 1 or min(people.values()) >= min_people, table.columns[place]
    for column in made._columns:
        if len(column.tree.feature) > 1:
            leaves = people_by_class_and_leaf(table, person, made)
            assert min(min(people.values()) for people in dict(leaves[1::2]).values()) >= smoothing * n_present**0.5
            break


def test_people_count_once_in_a_leaf_however_many_records_they_have():
    flag = np.arange(400) < 200
    table = pd.DataFrame({"flag": flag, "code": np.where(flag, 1, 2)})
    kept = synthesize(table, method="smooth_cart", person=range(400))
    assert (kept["code"].eq(1) == kept["flag"]).all()
    few = np.where(flag, np.arange(400) % 5, np.arange(400))
    drawn = synthesize(table, method="smooth_cart", person=few)
    assert abs((drawn["code"].eq(1) == drawn["flag"]).mean() - 0.5) < 0.1


def test_noise_is_not_learned():
    noise = pd.DataFrame(np.random.default_rng(0).integers(0, 8, (3000, 4)), columns=list("abcd"))
    made = fitted(noise, smoothing=0)
    assert sum((column.tree.feature < 0).sum() for column in made._columns) <= 6


def test_numbers_of_few_people_are_drawn_from_intervals():
    original = pd.DataFrame({"income": np.arange(3000) * 7, "high": np.arange(3000) > 1500})
    synthetic = synthesize(original, method="smooth_cart", seed=2)
    assert synthetic["income"].between(0, 2999 * 7).all()
    assert synthetic["income"].nunique() > 1500
    assert (synthetic["high"] == (synthetic["income"] > 1500 * 7)).mean() > 0.97


def test_margins_are_kept_better_than_a_resample_keeps_them():
    original = every_kind(2000)[["adult", "adult_or_none", "town", "grade", "site_or_none"]]
    resample = original.sample(len(original), replace=True, random_state=1, ignore_index=True)
    synthetic = synthesize(original, method="smooth_cart", seed=1)
    assert marginals_and_pairs(original, synthetic)[0] > marginals_and_pairs(original, resample)[0]


@settings(max_examples=examples(50), deadline=None)
@given(groups=st.lists(st.integers(0, 4), min_size=1, max_size=60), seed=st.integers(0, 99))
def test_even_places_have_one_in_each_step_of_a_group(groups, seed):
    places = even_places(np.array(groups), 5, np.random.default_rng(seed))
    assert ((places >= 0) & (places < 1)).all()
    for group in set(groups):
        own = sorted(place for place, g in zip(places.tolist(), groups, strict=True) if g == group)
        assert [int(place * len(own) + 1e-9) for place in own] == list(range(len(own)))


def test_each_place_alone_is_uniform():
    random = np.random.default_rng(0)
    first = [even_places(np.zeros(3, int), 1, random)[0] for _ in range(3000)]
    assert abs(np.mean(first) - 0.5) < 0.02
    assert abs(np.var(first) - 1 / 12) < 0.005


@settings(max_examples=examples(50), deadline=None)
@given(
    donors=st.lists(st.lists(st.integers(0, 9), min_size=3, max_size=3).filter(any), min_size=1, max_size=4),
    n_records=st.integers(1, 80),
    seed=st.integers(0, 99),
)
def test_classes_are_drawn_as_often_as_their_donors(donors, n_records, seed):
    random = np.random.default_rng(seed)
    groups = random.integers(0, len(donors), n_records)
    drawn = draw_classes(groups, np.array(donors, dtype=float), random)
    for group, own in enumerate(donors):
        found = np.bincount(drawn[groups == group], minlength=3)
        expected = np.array(own) / sum(own) * (groups == group).sum()
        assert (np.abs(found - expected) < 1).all()  # systematic sampling: floor or ceiling
        assert not found[np.array(own) == 0].any()


def test_a_place_at_the_end_of_a_group_stays_in_it():
    class Last:
        permutation = staticmethod(np.arange)
        random = staticmethod(lambda n: np.full(n, 1 - 2**-53))

    donors = np.array([[3.0, 1e6, 0.0], [0.0, 0.0, 1e9], [5.0, 0.0, 0.0]])
    assert draw_classes(np.array([0, 1, 2]), donors, Last()).tolist() == [1, 2, 0]


def softened_by_path(tree, donors, min_gain):
    """Return the shares of a leaf by walking to it from the root, with plain lists."""
    parent = {int(tree.left[node]) + side: node for node in np.flatnonzero(tree.feature >= 0) for side in (0, 1)}

    def below(node):
        if tree.feature[node] < 0:
            return list(donors[node])
        return [a + b for a, b in zip(below(tree.left[node]), below(tree.left[node] + 1), strict=True)]

    def shares(node):
        counts = below(node)
        own = [count / sum(counts) for count in counts]
        if node not in parent:
            return own
        moved = min(1.0, min_gain / tree.gain[parent[node]])
        parents = [
            share if count > 0 or moved * share * sum(counts) >= 3 else 0.0
            for share, count in zip(shares(parent[node]), counts, strict=True)
        ]
        return [(1 - moved) * a + moved * b / sum(parents) for a, b in zip(own, parents, strict=True)]

    made = np.zeros(donors.shape)
    for leaf in np.flatnonzero(tree.feature < 0):
        made[leaf] = np.array(shares(int(leaf))) * donors[leaf].sum()
    return made


@settings(max_examples=examples(50), deadline=None)
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(2, 400), n_classes=st.integers(1, 6), least=st.floats(0, 20))
def test_leaves_move_towards_their_parents_as_by_walking_down(seed, n, n_classes, least):
    random = np.random.default_rng(seed)
    codes = random.integers(0, 5, (3, n)).astype(np.uint8)
    target = ((codes.sum(axis=0) + random.integers(0, 3, n)) % n_classes).astype(np.uint8)
    tree = grow_tree(codes, target, np.ones(n), 5.0, 1.0, OF_WEIGHTS)
    leaves = find_leaves(tree, codes)
    donors = np.zeros((len(tree.feature), n_classes))
    np.add.at(donors, (leaves, target), 1.0)
    made = softened(tree, donors, least)
    np.testing.assert_allclose(made, softened_by_path(tree, donors, least), atol=1e-9)
    np.testing.assert_allclose(made.sum(axis=1), donors.sum(axis=1))
    np.testing.assert_allclose(softened(tree, donors, 0.0), donors)


def test_what_others_exclude_stays_excluded():
    random = np.random.default_rng(0)
    sex, age = random.choice(["m", "f"], 3000), random.integers(18, 90, 3000)
    births = np.where((sex == "f") & (age < 45), random.integers(0, 5, 3000), 0)
    table = pd.DataFrame({"sex": sex, "age": age, "births": births})
    made = synthesize(table, method="smooth_cart", seed=0, settings={"soft_leaves": True})
    assert not (made["sex"].eq("m") & made["births"].gt(0)).any()


@NEEDS_TREES
@pytest.mark.parametrize("is_soft", [False, True])
def test_a_table_has_the_leaves_of_scikit_learn(is_soft):
    from sklearn.tree import DecisionTreeClassifier

    table = every_kind(3000)
    made, n_leaves = fitted(table, smoothing=0.3, soft_leaves=is_soft), []
    leaf, classes = max(20, math.ceil(0.3 * 3000**0.5)), classes_of(table, made)
    for i, column in enumerate(made._columns):
        n_classes, predictors = len(column.first_cells), classes[:, :i].astype(np.float32)
        n_cuts = max(1, sum(len(each.first_cells) - 1 for each in made._columns[:i])) if is_soft else 1
        leaves = [leaf_of(column.tree, row[:i]) for row in classes.tolist()]
        n_leaves.append(len(set(leaves)))
        if i == 0 or n_classes == 1:
            assert n_leaves[-1] == 1
            continue
        theirs = DecisionTreeClassifier(
            criterion="entropy",
            min_weight_fraction_leaf=leaf / 3000,
            min_impurity_decrease=(n_classes - 1 + math.log(n_cuts)) / 3000 / math.log(2),
            random_state=0,
        ).fit(predictors, classes[:, i])
        assert same_groups(leaves, theirs.apply(predictors).tolist())
    assert sum(n_leaves) > 3 * len(n_leaves)


def test_it_works_without_scikit_learn():
    script = """
import sys
sys.modules["sklearn"] = None  # an import of it fails
import pandas as pd, privacy_assets
table = pd.DataFrame({"flag": [True, False] * 200, "code": [1, 2] * 200})
made = privacy_assets.synthesize(table, method="smooth_cart")
assert (made["code"].eq(1) == made["flag"]).all()
assert not [name for name in sys.modules if name.startswith("sklearn.")]
"""
    subprocess.run([sys.executable, "-c", script], check=True)


def test_chunks_follow_the_model_like_one(monkeypatch):
    original = every_kind(2000)[["adult", "town", "grade"]]
    made = fitted(original)
    whole = made.sample(6000, seed=0)
    monkeypatch.setattr("privacy_assets.synthesis.smooth_cart.chunks_of", lambda n: chunks_of(n, 1000))
    parts = made.sample(6000, seed=0)
    assert parts.dtypes.equals(whole.dtypes) and not parts.equals(whole)
    for name in original:
        shares = [each[name].value_counts(normalize=True, dropna=False) for each in (whole, parts)]
        assert shares[0].sub(shares[1], fill_value=0).abs().max() < 0.01


@NEEDS_TREES
def test_fewer_records_are_copied_than_by_cart():
    original = every_kind(1000)[["age", "height", "town", "grade", "day"]]
    copied = [verbatim_share(original, synthesize(original, method=method)) for method in ("cart", "smooth_cart")]
    assert copied[1] < copied[0] / 2


def test_it_cannot_sample_before_it_is_fitted():
    with pytest.raises(InvalidSettingError, match="before it is fitted"):
        SmoothCart().sample(3, seed=0)


def test_rand_is_worth_far_more_than_by_the_copula_and_meets_the_limits_of_internal_analytics():
    pytest.importorskip("statsmodels")
    table = load_rand_hie(banded=True).drop(columns="person_id")
    original, control = split_records(table, train_fraction=0.8, seed=0)
    synthetic = synthesize(original, method="smooth_cart", seed=0)
    assert assess_utility(original, synthetic, control).scores["utility"] > 0.9
    found = assess_mpuccs(original, synthetic, control, max_baseline_cols=3)
    assert found.scores["privacy_risk_score"] < 0.2
    assert found.control.leakage_detected is False
