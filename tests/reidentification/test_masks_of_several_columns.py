"""Masks of several columns that depend on one another: one of several models was drawn for each record."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacy_assets import InvalidSettingError, MaskError
from privacy_assets.reidentification import (
    BoundedNoise,
    Exact,
    GaussianNoise,
    Label,
    Pram,
    ReleaseModel,
    Suppressed,
    WeightedCandidates,
)
from tests.examples import examples

AXES = ["a", "b", "c"]
ORIGINAL = pd.DataFrame([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], columns=AXES)
ZERO = pd.DataFrame([[0, 0, 0]], columns=AXES)
EXACT = {name: Exact(name) for name in AXES}


def one_axis(by):
    """Return the three models in which one value changes by a number, each with probability 1/3."""
    shift = {x: {x + by: 1.0} for x in (0, 1)}
    return [(1 / 3, ReleaseModel(EXACT | {name: Pram(name, shift)})) for name in AXES]


def with_coin(models):
    return [(1 / 2, ReleaseModel(EXACT)), *((chance / 2, model) for chance, model in models)]


def test_example_21_of_the_source():
    """With y = x - alpha e_beta: x0 is most probable, and impossible if alpha is known to be 1."""
    weighted = WeightedCandidates(with_coin(one_axis(-1)), ORIGINAL, ZERO, [0])
    assert weighted.probabilities(0, AXES).tolist() == pytest.approx([1 / 2, 1 / 6, 1 / 6, 1 / 6])
    weighted = WeightedCandidates(one_axis(-1), ORIGINAL, ZERO, [2])
    assert weighted.probabilities(0, AXES).tolist() == pytest.approx([0, 1 / 3, 1 / 3, 1 / 3])
    with pytest.raises(MaskError, match="'the masks together': 1"):
        WeightedCandidates(one_axis(-1), ORIGINAL, ZERO, [0])


def test_example_21_as_printed_leaves_one_candidate():
    """With y = x + alpha e_beta nothing but x0 becomes 000, and it is certain if alpha is known to be 0."""
    weighted = WeightedCandidates(with_coin(one_axis(1)), ORIGINAL, ZERO, [0])
    assert weighted.probabilities(0, AXES).tolist() == pytest.approx([1, 0, 0, 0])
    weighted = WeightedCandidates(ReleaseModel(EXACT), ORIGINAL, ZERO, [0])
    assert weighted.probabilities(0, AXES).tolist() == pytest.approx([1, 0, 0, 0])


def test_columns_alone_know_less_than_the_mask_of_all():
    """Column by column, each value falls with probability 1/6 on its own, and two values may."""
    weighted = WeightedCandidates(with_coin(one_axis(-1)), ORIGINAL, ZERO, [0])
    kept = {0: {0: 5 / 6, -1: 1 / 6}, 1: {1: 5 / 6, 0: 1 / 6}}
    apart = WeightedCandidates(ReleaseModel({name: Pram(name, kept) for name in AXES}), ORIGINAL, ZERO, [0])
    assert apart.probabilities(0, AXES).tolist() == pytest.approx([5 / 8, 1 / 8, 1 / 8, 1 / 8])
    for name in AXES:  # in one column they are the same mask
        assert weighted.probabilities(0, [name]) == pytest.approx(apart.probabilities(0, [name]))


MATRICES = [
    None,
    {0: {0: 0.5, 1: 0.5}, 1: {0: 0.25, 1: 0.75}, 2: {2: 0.9, 0: 0.1}},
    {0: {1: 1.0}, 1: {2: 1.0}, 2: {0: 1.0}},
]
CELLS = st.integers(0, 2)


@given(
    st.lists(st.tuples(CELLS, CELLS), min_size=1, max_size=4),
    st.tuples(CELLS, CELLS),
    st.lists(st.tuples(st.sampled_from(range(3)), st.sampled_from(range(3))), min_size=2, max_size=3),
    st.sampled_from([["a"], ["a", "b"]]),
    st.sampled_from([0.0, 0.3]),
)
@settings(max_examples=examples(200), deadline=None)
def test_probabilities_are_those_of_all_ways_to_release(originals, cells, drawn, known, rate):
    original = pd.DataFrame(originals, columns=["a", "b"])
    released = pd.DataFrame([cells], columns=["a", "b"])
    chances = np.arange(1, len(drawn) + 1) / np.arange(1, len(drawn) + 1).sum()

    def of(name, number):
        return Exact(name) if number == 0 else Pram(name, MATRICES[number])

    def chance_of(number, own, cell):
        return float(own == cell) if number == 0 else MATRICES[number][own].get(cell, 0.0)

    models = [
        (chance, ReleaseModel({"a": of("a", first), "b": of("b", second)}))
        for chance, (first, second) in zip(chances, drawn, strict=True)
    ]

    def weigh(record, names, e):
        weight = 0.0
        for chance, numbers in zip(chances, drawn, strict=True):
            for is_wrong in product([False, True], repeat=len(names)):
                for donors in product(*[originals if wrong else [record] for wrong in is_wrong]):
                    each = chance
                    for name, wrong, donor in zip(names, is_wrong, donors, strict=True):
                        place = "ab".index(name)
                        each *= e / len(originals) if wrong else 1 - e
                        each *= chance_of(numbers[place], donor[place], cells[place])
                    weight += each
        return weight

    possible = [x for x, record in enumerate(originals) if weigh(record, ["a", "b"], 0.0) > 0]
    if not possible:
        with pytest.raises(MaskError, match="true original"):
            WeightedCandidates(models, original, released, [0])
        return
    weighted = WeightedCandidates(models, original, released, possible[:1])
    expected = np.array([weigh(record, known, rate) for record in originals])
    got = weighted.probabilities(0, known, error_rates=dict.fromkeys(known, rate))
    np.testing.assert_allclose(got, expected / expected.sum(), atol=1e-12)


def test_noise_of_some_records_only():
    """One record in five has noise ten times as wide: a cell far from everybody is of it."""
    original = pd.DataFrame({"x": [0.0, 5.0]})
    models = [(0.8, ReleaseModel({"x": GaussianNoise("x", 1)})), (0.2, ReleaseModel({"x": GaussianNoise("x", 10)}))]
    got = WeightedCandidates(models, original, pd.DataFrame({"x": [-20.0]}), [0]).probabilities(0, ["x"])
    assert got[0] == pytest.approx(np.exp(-2) / (np.exp(-2) + np.exp(-3.125)))


@pytest.mark.parametrize(
    ("models", "message"),
    [
        ([], "neither a ReleaseModel nor pairs"),
        ([(0.5, ReleaseModel({"x": Exact("x")}))], "sum to 1"),
        ([(1.5, ReleaseModel({"x": Exact("x")})), (-0.5, ReleaseModel({"x": Exact("x")}))], "sum to 1"),
        ([ReleaseModel({"x": Exact("x")})], "neither a ReleaseModel nor pairs"),
        ([(1.0, "x")], "The model is a str"),
        ("xy", "neither a ReleaseModel nor pairs"),
        ([(0.5, ReleaseModel({"x": Exact("x")})), (0.5, ReleaseModel({"x": Suppressed()}))], r"\['x'\] differ"),
        (
            [(0.5, ReleaseModel({"x": Exact("x")})), (0.5, ReleaseModel({"x": GaussianNoise("x", 1)}))],
            r"\['x'\] differ",
        ),
        ([(0.5, ReleaseModel({"x": Exact("x")})), (0.5, ReleaseModel({"x": BoundedNoise("x", 1)}))], r"\['x'\] differ"),
        ([(0.5, ReleaseModel({"x": Exact("x")})), (0.5, ReleaseModel({"x": Label("x")}))], r"\['x'\] differ"),
        (
            [(0.5, ReleaseModel({"x": Exact("x")})), (0.5, ReleaseModel({"x": Exact("x"), "y": Suppressed()}))],
            "describe different columns",
        ),
    ],
)
def test_models_that_are_no_alternatives_are_refused(models, message):
    table = pd.DataFrame({"x": [1.0, 2.0]})
    with pytest.raises(InvalidSettingError, match=message):
        WeightedCandidates(models, table, table, [0, 1])


def test_the_same_mask_in_all_models_may_be_any():
    table = pd.DataFrame({"x": [1, 2], "y": [0, 3]})
    flip = Pram("y", {0: {3: 1.0}, 3: {0: 1.0}})
    models = [
        (0.75, ReleaseModel({"x": BoundedNoise("x", 1), "y": Exact("y")})),
        (0.25, ReleaseModel({"x": BoundedNoise("x", 1), "y": flip})),
    ]
    got = WeightedCandidates(models, table, table, [0, 1]).probabilities(0, ["x", "y"])
    assert got.tolist() == pytest.approx([0.75, 0.25])
    with pytest.raises(MaskError, match=r"\{'x': 1\} of 2"):
        WeightedCandidates(models, table, table.assign(x=[1, 9]), [0, 1])
