"""What a control could reveal is what the comparison with it reveals."""

from math import sqrt
from statistics import NormalDist

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privacy_assets.errors import InvalidSettingError, InvalidTableError
from privacy_assets.mpucc.control import _compare_copies
from privacy_assets.mpucc.control_size import (
    TRAIN_FRACTIONS,
    ControlPlan,
    ControlSize,
    SharedRecords,
    choose_split,
    count_shared_records,
    judge_control,
    people_in_original,
    plan_by,
    plan_control,
)
from privacy_assets.mpucc.preprocess import preprocess


def unlike(n_people, start=0):
    """Make people no two of whom share a record."""
    return pd.DataFrame({"a": np.arange(n_people) // 50 + start, "b": np.arange(n_people) % 50})


def excess_of(original, synthetic, control, confidence_level=0.95):
    tables = preprocess(original, synthetic, control)
    return _compare_copies(tables, tables.control, min(len(original), len(control)), confidence_level).excess


@pytest.mark.parametrize("level", [0.8, 0.95, 0.99])
@pytest.mark.parametrize(("n_original", "n_control"), [(500, 500), (600, 300), (800, 200), (900, 100), (200, 800)])
def test_the_smallest_number_of_copies_is_the_first_that_the_comparison_detects(n_original, n_control, level):
    size = judge_control(n_original, n_control, confidence_level=level)
    records = unlike(n_original + n_control)
    original, control = records.head(n_original), records.tail(n_control)
    others = unlike(n_original, start=10_000)
    for n_copied in (size.detectable_copies - 1, size.detectable_copies):
        synthetic = pd.concat([original.head(n_copied), others.iloc[n_copied:]])
        is_detected = excess_of(original, synthetic, control, level).low > 0
        assert is_detected == (n_copied == size.detectable_copies)
    # The same by hand: copies k with k p > z sqrt(k p**2 + z**2), where p is the share of the originals that is drawn.
    z, p = NormalDist().inv_cdf(0.5 + level / 2), min(n_original, n_control) / n_original
    assert size.detectable_copies == next(k for k in range(1, 500) if k * p > z * sqrt(k * p * p + z * z))


def test_the_usual_splits_reveal_18_and_7_copies():
    found = {ratio: judge_control(ratio * 200, 200).detectable_copies for ratio in (1, 2, 3, 4, 9)}
    assert found == {1: 7, 2: 10, 3: 14, 4: 18, 9: 37}
    assert judge_control(8, 2).detectable_copies is None
    # People count, not their records: they are copied with all of them.
    assert judge_control(800, 200, SharedRecords(np.ones(5000, np.int64), 1000, 5.0)).detectable_copies == 18


def kinds(random, n_rows):
    """Records that often occur several times, in a tail of single ones."""
    return pd.DataFrame({"a": random.geometric(0.25, n_rows), "b": random.geometric(0.25, n_rows)})


@pytest.mark.parametrize("train_fraction", [0.5, 0.8])
def test_chance_copies_are_allowed_for(train_fraction):
    random = np.random.default_rng(0)
    population = kinds(random, 1000)
    shared = count_shared_records(population)
    assert shared.people_with.sum() == shared.n_people == 1000
    n_original = people_in_original(1000, train_fraction)
    size = judge_control(n_original, 1000 - n_original, shared)
    assert size.detectable_copies > judge_control(n_original, 1000 - n_original).detectable_copies

    def share_detected(n_copied, n_tables=60):
        found = 0
        for _ in range(n_tables):
            records = kinds(random, 1000)
            # Records that nobody else has, and that no draw makes.
            records.loc[: n_copied - 1, "a"] = 1000 + np.arange(n_copied)
            mixed = random.permutation(np.arange(n_copied, 1000))
            original = records.iloc[np.r_[:n_copied, mixed[: n_original - n_copied]]]
            control = records.iloc[mixed[n_original - n_copied :]]
            synthetic = pd.concat([original.head(n_copied), kinds(random, n_original - n_copied)])
            found += excess_of(original, synthetic, control).low > 0
        return found / n_tables

    # Planned for 95 %; 54 of 60 or fewer of such tables are a case of 2 %.
    assert share_detected(size.detectable_copies) >= 0.9
    assert share_detected(size.detectable_copies // 2) < 0.6


def test_people_with_several_records_are_counted_with_their_distinct_records():
    table = pd.DataFrame({"a": [1, 1, 2, 1, 3, 3.04], "who": [0, 0, 0, 1, 1, 2]})
    shared = count_shared_records(table, person="who", numeric_precision=1)
    # Record 1 of 0 and 1; 2 of 0; 3 of 1 and 2.
    assert sorted(shared.people_with.tolist()) == [1, 2, 2]
    assert (shared.n_people, shared.records_per_person) == (3, 5 / 3)


def test_the_recommended_split_leaves_most_to_the_synthesizer_and_reveals_one_percent():
    large = plan_control(unlike(3000))
    assert (large.recommended_fraction, large.recommended) == (0.8, large.planned)
    assert large.planned.detectable_copies == 18
    middle = plan_control(unlike(1550))
    # 18 of 1240 are more than 1 %, and so are 14 of 1085; 10 of 1033 are not.
    assert middle.recommended_fraction == pytest.approx(2 / 3)
    assert middle.recommended.detectable_share <= 0.01 < middle.planned.detectable_share
    small = plan_control(unlike(300), least_control=100)
    # No split reveals 1 %. 8 of 180 are fewer than 7 of 150, or 10 of 200.
    assert (small.recommended_fraction, small.recommended.detectable_copies) == (0.6, 8)
    assert plan_control(unlike(90)).recommended is None
    assert plan_control(unlike(3000), least_control=700).recommended_fraction == 0.75
    assert plan_control(unlike(3000), copied_share=0.1, train_fraction=0.9).recommended_fraction == 0.9


def test_settings_out_of_range_and_single_people_are_refused():
    for wrong in ({"power": 1.0}, {"power": 0.4}, {"confidence_level": 1}, {"n_synthetic": 0}, {"seed": -1}):
        with pytest.raises(InvalidSettingError, match=next(iter(wrong))):
            judge_control(100, 100, **wrong)
    for n_people in ((0, 5), (5, 0)):
        with pytest.raises(InvalidSettingError, match="an integer above 0"):
            judge_control(*n_people)
    with pytest.raises(InvalidTableError, match="has 1 person; a split needs one on each side"):
        plan_by(SharedRecords(np.ones(1, np.int64), 1, 1.0), 0.5)
    for wrong in ({"train_fraction": 1.0}, {"copied_share": 0}, {"least_control": -1}):
        with pytest.raises(InvalidSettingError, match=next(iter(wrong))):
            plan_control(unlike(10), **wrong)


@given(
    st.sampled_from([0.5, 0.65, *TRAIN_FRACTIONS]),
    st.lists(st.none() | st.integers(1, 60), min_size=12, max_size=12),
    st.sampled_from([0.01, 0.05, 0.2]),
    st.sampled_from([1, 250]),
)
def test_the_split_that_is_recommended_is_the_best_of_all_and_no_more_are_judged_than_needed(
    planned, detectable, copied_share, least_control
):
    order = [planned, *TRAIN_FRACTIONS]
    sizes = {}
    for fraction, own in zip(order, detectable, strict=False):
        sizes.setdefault(fraction, ControlSize(round(1000 * fraction), 1000 - round(1000 * fraction), own))
    able = [f for f in order if sizes[f].n_control >= max(least_control, 50) and sizes[f].n_original >= 50]
    share = {f: 2.0 if sizes[f].detectable_copies is None else sizes[f].detectable_share for f in able}
    enough = [f for f in able if share[f] <= copied_share]
    best = enough[0] if enough else min(able, key=lambda f: (share[f], order.index(f)), default=None)
    asked = []

    def judged(fraction):
        asked.append(fraction)
        return sizes[fraction]

    plan = choose_split(judged, planned, copied_share, least_control)
    assert plan == ControlPlan(sizes[planned], best, None if best is None else sizes[best])
    assert asked[0] == planned
    assert len(asked) == len(set(asked))
    assert not enough or asked[-1] in (best, planned)
