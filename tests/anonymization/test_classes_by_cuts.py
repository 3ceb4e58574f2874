"""The normalization that loses less is kept, by a measure that sees detail under an outlier as well as the range."""

from bisect import bisect_left
from math import ceil

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacy_assets.anonymization.anonymize import anonymize
from privacy_assets.anonymization.information_loss import positions_of_most
from privacy_assets.anonymization.quasi_identifiers import read_dimension
from tests.examples import examples

NUMBERS = st.lists(st.none() | st.integers(0, 6).map(lambda n: 3**n), min_size=1, max_size=40)


def position(value, values, k):
    """Place a value between the records that are `n` from each end."""
    known = sorted(v for v in values if v is not None)
    n = max(k, ceil(0.005 * len(known)))
    low, high = (known[n - 1], known[-n]) if 2 * n <= len(known) else (known[0], known[-1])
    if low == high:
        low, high = known[0], known[-1]
    return 0.0 if low == high else min(max((value - low) / (high - low), 0.0), 1.0)


def loss_of_most(table, found, names, k):
    """Mean loss of the cells, row by row; rows that are left out lose 1."""
    class_of_row = dict(zip(found.members["row"], found.members["class"], strict=True))
    lost = 0.0
    for name in names:
        values = [None if pd.isna(v) else v for v in table[name]]
        for row in range(len(table)):
            own = {values[i] for i in class_of_row if class_of_row[i] == class_of_row.get(row)}
            if row not in class_of_row:
                lost += 1
            elif isinstance(next((v for v in values if v is not None), None), str):
                lost += (len(own) - 1) / max(len(set(values)) - 1, 1)
            elif own == {None}:
                lost += 0
            elif None in own:
                lost += 1
            else:
                lost += position(max(own), values, k) - position(min(own), values, k)
    return lost / len(table) / len(names)


@settings(max_examples=examples(200), deadline=None)
@given(NUMBERS, st.integers(1, 5))
def test_positions_are_between_the_records_that_are_k_from_the_ends(values, k):
    values = [5, *values]
    dimension = read_dimension(pd.Series(values, name="x", dtype="Float64"))
    found = positions_of_most(dimension.scale, dimension.codes, k)
    known = sorted({v for v in values if v is not None})
    assert found == pytest.approx([position(value, values, k) for value in known])


def test_half_a_percent_of_the_records_are_outside():
    values = [*range(990), *[10**6] * 5, *[-(10**6)] * 5]
    dimension = read_dimension(pd.Series(values, name="x"))
    found = positions_of_most(dimension.scale, dimension.codes, 2)
    assert (found[0], found[-1]) == (0, 1)
    # The fifth from each end is still an outlier, so the range is that of the whole table ...
    assert found[bisect_left(sorted(set(values)), 0)] == pytest.approx(0.5)
    # ... and with a record fewer it is not.
    dimension = read_dimension(pd.Series([*range(990), *[10**6] * 4, *[-(10**6)] * 4], name="x"))
    found = positions_of_most(dimension.scale, dimension.codes, 2)
    assert np.diff(found[1:-1]) == pytest.approx(1 / 989)


@pytest.mark.filterwarnings("error")
def test_a_value_far_beyond_the_ends_is_placed_without_an_overflow():
    dimension = read_dimension(pd.Series([1.5, 1.5, 2.0, 1.7e308], name="x"))
    assert positions_of_most(dimension.scale, dimension.codes, 2).tolist() == [0, 1, 1]


@st.composite
def skewed_tables(draw):
    n_rows = draw(st.integers(4, 24))

    def drawn(values):
        return draw(st.lists(values, min_size=n_rows, max_size=n_rows))

    return pd.DataFrame(
        {
            "income": pd.Series(drawn(st.integers(0, 7).map(lambda n: 4**n) | st.none()), dtype="Float64"),
            "age": drawn(st.integers(0, 9)),
            "job": drawn(st.sampled_from(["a", "b", "c"])),
            "illness": drawn(st.sampled_from(["x", "y"])),
        }
    )


@settings(max_examples=examples(80), deadline=None)
@given(skewed_tables(), st.integers(1, 4), st.booleans(), st.sampled_from([0.0, 0.4]))
def test_the_better_normalization_is_kept_and_named(table, k, relaxed, max_suppression):
    names = ["income", "age", "job"]
    chosen = {"quasi_identifiers": names, "k": k, "relaxed": relaxed, "max_suppression": max_suppression}
    if max_suppression:
        table.loc[0, "illness"], table.loc[1, "illness"] = "x", "y"
        chosen |= {"sensitive": ["illness"], "l_diversity": 2}
    tried = {own: anonymize(table, **chosen, normalize=own) for own in ("rank", "range")}
    losses = {own: loss_of_most(table, found, names, k) for own, found in tried.items()}
    best = anonymize(table, **chosen)
    kept = best.settings["normalize"]
    assert losses[kept] <= min(losses.values()) + 1e-12
    # The settings of the result make it again.
    assert best == tried[kept]


def test_what_a_single_outlier_hides_from_its_range_is_seen():
    random = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "age": random.normal(45, 15, 3000).round().clip(17, 90).astype(int),
            "hours": random.normal(40, 12, 3000).round().clip(1, 99).astype(int),
            "gain": np.where(random.random(3000) < 0.9, 0, random.lognormal(8, 1, 3000).round(-1)).astype(int),
        }
    )

    def mean_width(table, normalize):
        found = anonymize(table, quasi_identifiers=list(table), k=10, normalize=normalize)
        own = found.table[found.table["age_high"] < 1000]
        return float((own["age_high"] - own["age_low"]).mean()), found.settings["normalize"]

    with_outlier = table.copy()
    with_outlier.loc[0, "age"] = 1_000_000
    without, by_range = mean_width(table, "best")[0], mean_width(with_outlier, "range")[0]
    best, chosen = mean_width(with_outlier, "best")
    assert chosen == "rank"
    assert best < 1.1 * without < 0.5 * by_range


def test_evenly_spaced_values_are_cut_once():
    seen = []
    table = pd.DataFrame({"age": [*range(20, 40)] * 2})
    found = anonymize(table, quasi_identifiers=["age"], k=3, progress=seen.append)
    assert {each.stage for each in seen} == {"cut by rank"} and found.settings["normalize"] == "rank"


def test_equal_values_are_separated_by_the_other_columns_first():
    # Halves of the most frequent town are cut between the jobs, not by a hash of rows that are all different.
    table = pd.DataFrame({"town": [1] * 40 + [2] * 4, "job": (["cook"] * 20 + ["smith"] * 20) + ["cook"] * 4})
    table["record"] = range(44)
    table["job"] = pd.Categorical(table["job"], ["cook", "smith"], ordered=True)
    found = anonymize(table, quasi_identifiers=["town", "job"], k=5, relaxed=True)
    classes = table.loc[found.members["row"]].reset_index(drop=True).groupby(found.members["class"])
    assert (classes["job"].nunique() == 1).all()
    assert (
        found.stats["information_loss"]
        < anonymize(table, quasi_identifiers=["town", "job"], k=5).stats["information_loss"]
    )
