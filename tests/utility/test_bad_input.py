"""Tables that cannot be judged, or only in part: the message says why, without a cell."""

import numpy as np
import pandas as pd
import pytest

from privacy_assets import InvalidSettingError, InvalidTableError, anonymize, assess_utility
from privacy_assets.reidentification import ReleaseModel, Suppressed
from privacy_assets.utility import assess
from privacy_assets.utility.result import FIGURES


def table(n, seed=0, n_columns=3):
    random = np.random.default_rng(seed)
    base = random.normal(size=n)
    return pd.DataFrame({f"c{j}": np.round(base + random.normal(0, 0.5, n), 1) for j in range(n_columns)})


def no_figures(found):
    return all(found.scores[name + end] is None for name in FIGURES for end in ("", "_lower", "_upper"))


@pytest.fixture(autouse=True)
def few_queries(monkeypatch):
    monkeypatch.setattr(assess, "N_QUERIES", 100)


def test_a_control_below_300_judges_nothing_and_says_so():
    found = assess_utility(table(400), table(400, 1), table(299, 2))
    assert no_figures(found)
    assert "299" in found.notes[0] and "300" in found.notes[0]
    assert found.sentence == ""
    assert not no_figures(assess_utility(table(400), table(400, 1), table(300, 2)))


@pytest.mark.parametrize("n", [1, 9])
def test_a_release_of_few_rows_is_not_judged(n):
    found = assess_utility(table(400), table(n, 1), table(400, 2))
    assert no_figures(found)
    assert f"release has {n} records" in found.notes[0]
    assert no_figures(assess_utility(table(n), table(400, 1), table(400, 2)))


def test_one_column_has_only_its_own_figure():
    found = assess_utility(*(table(400, seed, 1) for seed in range(3)))
    assert found.scores["utility_columns"] == pytest.approx(1, abs=0.1)
    assert [found.scores[name] for name in FIGURES if name != "utility_columns"] == [None] * 4
    assert "One column" in found.notes[0]
    assert len(found.pairs) == 0


def test_constant_columns_change_nothing():
    without = [table(1_500, seed) for seed in range(3)]
    added = [each.assign(same=1, none=None) for each in without]
    plain, constant = (assess_utility(*tables).scores for tables in (without, added))
    assert constant["utility_pairs"] == pytest.approx(plain["utility_pairs"], abs=0.005)
    assert constant["utility_prediction"] == pytest.approx(plain["utility_prediction"], abs=0.005)
    alone = assess_utility(*(each[["same", "none"]] for each in added))
    assert no_figures(alone) or alone.scores["utility"] is None
    assert any("are not more dependent than shuffled" in note for note in alone.notes)


def test_columns_that_are_not_related_give_no_utility():
    random = np.random.default_rng(0)
    found = assess_utility(*(pd.DataFrame(random.integers(0, 5, (600, 3)), columns=list("abc")) for _ in range(3)))
    assert found.scores["utility"] is None
    assert found.scores["utility_lower"] is None
    assert "are not more dependent than shuffled" in found.notes[0]


def test_200_columns_are_judged_by_300_pairs_and_in_blocks():
    found = assess_utility(*(table(600, seed, 200).round().clip(-1, 1) for seed in range(3)))
    assert len(found.pairs) == 300
    assert len(found.columns) == 200
    assert (found.columns["explained_of_originals"] > 0.1).all()
    assert found.scores["utility"] == pytest.approx(1, abs=0.2)


def test_other_columns_are_ignored_and_lacking_all_is_refused():
    original, control = table(400), table(400, 2)
    more = assess_utility(original, original.assign(more="x"), control)
    assert more.scores["utility"] == 1
    with pytest.raises(InvalidTableError, match="none of the 3 columns"):
        assess_utility(original, original.add_prefix("x"), control)
    with pytest.raises(InvalidTableError, match=r"control lacks the columns \['c1'\]"):
        assess_utility(original, original, control.drop(columns="c1"))


def test_values_of_another_kind_are_refused_without_a_cell():
    original, control = table(400), table(400, 2)
    with pytest.raises(InvalidTableError, match=r"'c0' has number values in the original and text values") as caught:
        assess_utility(original, original.assign(c0="sentinel-99"), control)
    assert "sentinel" not in str(caught.value)
    with pytest.raises(InvalidTableError, match="cannot be compared") as caught:
        assess_utility(original, original.assign(c0=[["sentinel-99"]] * 400), control)
    assert "sentinel" not in str(caught.value)


def test_suppressed_columns_are_not_part_of_the_worth():
    original, control = (table(400, seed).assign(key=np.arange(400)) for seed in (0, 2))
    made = anonymize(original, quasi_identifiers=["c0", "c1"], direct_identifiers=["key"], k=2)
    found = assess_utility(original, made.table, control, made)
    assert found.settings["columns"] == ["c0", "c1", "c2"]
    assert found.scores["utility"] > 0.8
    only = ReleaseModel({name: Suppressed() for name in original})
    with pytest.raises(InvalidTableError, match="no columns to judge"):
        assess_utility(original, original.add_prefix("x"), control, only)


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"original": [1]}, InvalidTableError, "original table is a list"),
        ({"control": None}, InvalidTableError, "control table is a subclass of object"),
        ({"released": table(400).head(0)}, InvalidTableError, "released table has no rows"),
        ({"original": table(400)[[]]}, InvalidTableError, "no columns"),
        ({"seed": -1}, InvalidSettingError, "seed"),
        ({"seed": True}, InvalidSettingError, "seed"),
        ({"model": {}}, InvalidSettingError, "ReleaseModel"),
    ],
)
def test_bad_arguments_are_refused(change, error, words):
    given = {"original": table(400), "released": table(400, 1), "control": table(400, 2)} | change
    with pytest.raises(error, match=words):
        assess_utility(**given)
