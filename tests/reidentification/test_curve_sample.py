"""The curve from a random sample of released records: exact for each of them, with intervals that hold."""

from itertools import combinations
from math import log, sqrt
from unittest import mock

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacy_assets import InvalidSettingError, anonymize, assess_reidentification
from privacy_assets.columns.masks import Exact
from privacy_assets.reidentification import CandidateIndex, Microaggregated, ReleaseModel, curve
from privacy_assets.reidentification.candidate_index import Figures
from privacy_assets.reidentification.sample_intervals import mean_interval
from tests.examples import examples

FIGURES = ["mean_reidentification_probability", "share_of_singletons", "share_below_k", "mean_nonspecificity"]


def people_table(n_rows=400, n_columns=5, seed=0):
    rng = np.random.default_rng(seed)
    table = pd.DataFrame({f"q{j}": rng.integers(0, 4 + 20 * (j % 2), n_rows) for j in range(n_columns)})
    table["q2"] = table["q2"].map("abcdefgh".__getitem__)
    return table.assign(person=rng.integers(0, n_rows * 3 // 4, n_rows))


TABLE = people_table()
COLUMNS = [name for name in TABLE if name != "person"]


def released(**options):
    return anonymize(TABLE, quasi_identifiers=COLUMNS, k=3, **options)


@pytest.mark.parametrize("options", [{}, {"subject": "person"}])
def test_all_sets_at_once_have_the_sizes_of_each(options):
    index = CandidateIndex.of_anonymization(TABLE, released(**options))
    sets = [[], *(own for size in range(1, 6) for own in combinations(COLUMNS, size)), ["q1", "q0"]]
    records = np.array([7, 0, 7, 399])
    found = index.sizes_of_sets(sets, records)
    assert (found == [index.sizes(own)[records] for own in sets]).all()


def test_columns_aggregated_together_are_counted_together():
    original = pd.DataFrame({"a": [1, 2, 3, 4, 5, 6, 7, 8, 9], "b": [1, 1, 2, 2, 3, 3, 3, 4, 4], "c": [0, 1, 0] * 3})
    together = original.assign(a=[2, 2, 2, 5, 5, 5, 8, 8, 8], b=[1, 1, 1, 3, 3, 3, 4, 4, 4])
    masks = {name: Microaggregated(name, ("a", "b")) for name in ("a", "b")}
    index = CandidateIndex(ReleaseModel({**masks, "c": Exact("c")}), original, together, range(9))
    sets = [own for size in (1, 2, 3) for own in combinations("abc", size)]
    found = index.sizes_of_sets(sets, np.arange(9))
    assert (found == [index.sizes(own) for own in sets]).all()


def test_a_sample_of_everything_is_the_exact_curve():
    made = released()
    exact = assess_reidentification(TABLE, made, curve_sample=None)
    assert exact.curve.equals(assess_reidentification(TABLE, made, curve_sample=400).curve)
    assert set(exact.curve["n_records"]) == {400}
    for name in FIGURES:
        assert (exact.curve[f"{name}_low"] == exact.curve[name]).all()
        assert (exact.curve[f"{name}_high"] == exact.curve[name]).all()
    index = CandidateIndex.of_anonymization(TABLE, made)
    for row in exact.curve.to_dict("records"):
        assert Figures(*(row[name] for name in Figures._fields)) == Figures.of(index.sizes(row["known"]), 3)


def test_only_the_curve_is_sampled():
    made = released(subject="person")
    named = [["q1", "q3"], ["q0", "q1", "q2", "q3"]]
    exact = assess_reidentification(TABLE, made, known=named, curve_sample=None)
    drawn = assess_reidentification(TABLE, made, known=named, curve_sample=50, seed=3)
    # The greedy chain may be another one.
    assert drawn.scores | {"n_sets_assessed": 0} == exact.scores | {"n_sets_assessed": 0}
    assert drawn.settings == exact.settings | {"curve_sample": 50, "seed": 3}
    assert drawn == assess_reidentification(TABLE, made, known=named, curve_sample=50, seed=3)
    assert drawn != assess_reidentification(TABLE, made, known=named, curve_sample=50, seed=4)
    by_set = drawn.curve.set_index("known")["n_records"]
    is_whole = {frozenset(own) for own in by_set[by_set == 400].index}
    assert {frozenset(own) for own in (*named, COLUMNS)} <= is_whole
    assert by_set[("q1",)] == 50 and set(by_set) == {50, 400}
    for known in named:
        assert drawn.figures(known) == exact.figures(known)
    index = CandidateIndex.of_anonymization(TABLE, made)
    records = np.sort(np.random.default_rng(3).choice(400, 50, replace=False, shuffle=False))
    expected = Figures.of(index.sizes(["q1"])[records], 3)
    assert drawn.figures(["q1"]) == expected._asdict()
    # The records at risk are those of all columns together, which are assessed on every record.
    assert drawn.records[["released", "original", "candidates"]].equals(
        exact.records[["released", "original", "candidates"]]
    )


def test_looking_ahead_of_the_greedy_chain_changes_nothing():
    table = people_table(n_columns=7)
    made = anonymize(table, quasi_identifiers=[f"q{j}" for j in range(7)], k=3)
    options = {"max_known": 2, "curve_sample": 90}
    found = assess_reidentification(table, made, **options)
    with mock.patch.object(curve, "MOST_COUNTED_AHEAD", 0):
        assert assess_reidentification(table, made, **options) == found
    assert (found.curve["chosen_as"] == "greedy").sum() == 5 + 4 + 3 + 2


def test_sets_of_global_recoding_are_never_sampled():
    bands = TABLE[COLUMNS].assign(q1=TABLE["q1"] // 5 * 5)
    model = ReleaseModel.from_labels([], exact=COLUMNS)
    found = assess_reidentification(bands, bands, model, truth=range(400), k=2, curve_sample=10)
    assert set(found.curve["n_records"]) == {400}


@pytest.mark.parametrize("wrong", [{"curve_sample": 0}, {"curve_sample": 2.5}, {"seed": -1}])
def test_a_sample_that_is_no_number_is_refused(wrong):
    with pytest.raises(InvalidSettingError, match=next(iter(wrong))):
        assess_reidentification(TABLE, released(), **wrong)


def test_the_exact_curve_lies_within_the_intervals_and_they_are_narrow_enough_to_tell():
    table = people_table(4000, 4)
    names = [name for name in table if name != "person"]
    made = anonymize(table, quasi_identifiers=names, k=3)
    exact = assess_reidentification(table, made, curve_sample=None).curve.set_index("known")
    n_outside = 0
    for seed in range(12):
        drawn = assess_reidentification(table, made, curve_sample=1500, seed=seed).curve.set_index("known")
        own = exact.loc[drawn.index]
        is_inside = [
            ((drawn[f"{name}_low"] <= own[name] + 1e-12) & (own[name] <= drawn[f"{name}_high"] + 1e-12)).all()
            for name in FIGURES
        ]
        n_outside += not all(is_inside)
        for name in FIGURES:
            assert ((drawn[f"{name}_low"] <= drawn[name]) & (drawn[name] <= drawn[f"{name}_high"])).all()
    assert n_outside <= 1
    width = drawn["mean_nonspecificity_high"] - drawn["mean_nonspecificity_low"]
    assert 0.001 < width.max() < 0.6 and exact["mean_nonspecificity"].max() > 5
    # Nobody is below k if all columns are known, so nobody is for fewer columns.
    assert (drawn["share_below_k_high"] == 0).all()


@given(st.lists(st.sampled_from([0.0, 0.01, 0.5, 1.0]), min_size=2, max_size=9), st.data())
@settings(max_examples=examples(60), deadline=None)
def test_an_interval_contains_the_mean_for_nearly_all_samples(population, data):
    n = data.draw(st.integers(1, len(population)))
    mean = np.mean(population)
    n_outside = n_samples = 0
    for own in combinations(population, n):
        low, high = mean_interval(np.array(own), len(population), 0.0, 1.0, 0.0)
        assert 0 <= low <= np.mean(own) <= high <= 1
        n_samples += 1
        n_outside += not low - 1e-12 <= mean <= high + 1e-12
    assert n_outside <= 0.05 * n_samples


@pytest.mark.parametrize(("n", "n_population"), [(400, 10_000), (800, 1000)])
def test_an_interval_is_the_inequality_of_its_source(n, n_population):
    values = np.linspace(0.2, 0.6, n)
    low, high = mean_interval(values, n_population, 0.1, 0.9, log(7))
    delta = 0.05 / 7 / 2 / 5
    serfling = 1 - (n - 1) / n_population if n <= n_population / 2 else (1 - n / n_population) * (1 + 1 / n)
    reach = np.std(values) * sqrt(2 * serfling * log(1 / delta) / n)
    reach += (7 / 3 + 3 / sqrt(2)) * 0.8 * log(1 / delta) / n
    assert (low, high) == pytest.approx((max(0.4 - reach, 0.1), min(0.4 + reach, 0.9)))
