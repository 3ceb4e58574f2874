"""Values that no original has: they are worth no more than missing ones, unless other people have as many."""

import numpy as np
import pandas as pd
import pytest

from privacy_assets import assess_utility
from privacy_assets.utility import assess

FIGURES = ("utility", "utility_columns", "utility_pairs", "utility_counts", "utility_prediction")


@pytest.fixture(autouse=True)
def few_queries(monkeypatch):
    monkeypatch.setattr(assess, "N_QUERIES", 300)


def towns(n, n_values, seed, skew=1.0):
    random = np.random.default_rng(seed)
    level = random.normal(size=n)
    place = (random.random(n) ** skew * n_values).astype(int)
    return pd.DataFrame(
        {
            "town": np.char.add("town-", place.astype(str)).astype(object),
            "level": np.round(level, 1),
            "other": np.round(level + place / n_values + random.normal(0, 0.5, n), 1),
        }
    )


@pytest.mark.parametrize("missing", [0.0, 0.1])
@pytest.mark.parametrize("n_values", [2, 3, 10, 11, 50, 300, 1_000])
def test_unseen_values_are_worth_at_most_as_much_as_a_missing_column(n_values, missing):
    original, control = towns(3_000, n_values, 0), towns(3_000, n_values, 1)
    for each in (original, control):
        each.loc[np.random.default_rng(2).random(3_000) < missing, "town"] = None
    lacking = assess_utility(original, original.drop(columns="town"), control).scores
    random = np.random.default_rng(3)
    for unseen in ("zzz", [f"zzz {i}" for i in range(3_000)], [f"zzz {i % 7}" for i in random.permutation(3_000)]):
        found = assess_utility(original, original.assign(town=unseen), control)
        for name in FIGURES:
            assert found.scores[name] <= lacking[name] + 1e-9, (name, unseen[0])
        assert found.notes == (
            "100.0% of the values of 'town' occur in no original, beyond what is usual for other people.",
        )


@pytest.mark.parametrize("n_values", [2, 300, 1_000, 10_000])
def test_other_people_are_not_worth_less_for_their_own_values(n_values):
    original, fresh, control = (towns(6_000, n_values, seed, skew=3) for seed in range(3))
    found = assess_utility(original, fresh, control)
    assert found.scores["utility_columns"] == pytest.approx(1, abs=0.02)
    assert found.scores["utility"] == pytest.approx(1, abs=0.02)
    assert assess_utility(original, original, control).scores["utility_columns"] == 1


def test_half_of_unseen_values_cost_half_and_are_noted_without_a_cell():
    original, control = towns(4_000, 20, 0), towns(4_000, 20, 1)
    half = original.copy()
    half.loc[:1_999, "town"] = "sentinel"
    found = assess_utility(original, half, control)
    columns = found.columns.set_index("column")
    assert columns.loc["town", "distance"] == pytest.approx(0.5, abs=0.01)
    assert found.notes[0].startswith("50.0% of the values of 'town' occur in no original")
    assert "sentinel" not in repr(found.notes)
    few = original.copy()
    few.loc[:30, "town"] = "sentinel"
    assert assess_utility(original, few, control).notes == ()


def test_many_columns_are_noted_by_the_first_five():
    original, control = (pd.DataFrame({f"c{j}": towns(400, 3, j + s)["town"] for j in range(8)}) for s in (0, 50))
    found = assess_utility(original, original.map(lambda _: "zzz"), control)
    assert found.notes[-1].count("100.0%") == 5
    assert "at least 1.00% of those of 3 more columns occur in no original" in found.notes[-1]


def test_numbers_outside_of_the_range_stay_in_the_end_bins_and_other_categories_are_unseen():
    original, control = towns(2_000, 5, 0), towns(2_000, 5, 1)
    found = assess_utility(original, original.assign(level=original["level"] + 100), control)
    assert found.notes == ()
    sizes = pd.CategoricalDtype(["s", "m", "l"], ordered=True)
    with_sizes = [
        each.assign(size=pd.Series(np.random.default_rng(i).choice(["s", "m", "l"], 2_000)).astype(sizes))
        for i, each in enumerate((original, control))
    ]
    other = with_sizes[0].assign(size=pd.Categorical(["xl"] * 2_000, [*"sml", "xl"], ordered=True))
    found = assess_utility(with_sizes[0], other, with_sizes[1])
    assert found.columns.set_index("column").loc["size", "distance"] == pytest.approx(1)
    assert "100.0% of the values of 'size'" in found.notes[0]
