import numpy as np
import pandas as pd
import pytest

from privacy_assets.disclosure.assess import assess_disclosure
from privacy_assets.disclosure.left_out_columns import assess_without_columns
from privacy_assets.disclosure.settings import DisclosureSettings


@pytest.fixture(scope="module")
def tables():
    """Synthetic records of other people whose names are those of originals."""
    random = np.random.default_rng(5)
    made = pd.DataFrame({name: random.integers(0, 6, 900) for name in ("age", "town", "job", "plan")})
    made["name"] = [f"n{number}" for number in range(900)]
    original, control, synthetic = (
        made.iloc[part].reset_index(drop=True) for part in np.split(np.arange(900), [400, 600])
    )
    synthetic = synthetic.assign(name=original["name"].to_numpy()[: len(synthetic)])
    return original, synthetic, control


def assess(tables, **settings):
    return assess_disclosure(*tables, **settings)


def test_the_column_that_leaks_is_the_one_without_which_nothing_does(tables):
    settings = DisclosureSettings(known=("age", "town", "job", "name"), max_known=2)
    whole = assess(tables, known=settings.known, max_known=2)
    assert whole.scores["leakage_detected"] is True
    found = assess_without_columns(*tables, whole, settings, most_columns=5).set_index("without")
    assert set(found.index) == {"age", "town", "job", "plan", "name"}
    assert found["leakage_detected"].to_dict() == {name: name != "name" for name in found.index}
    for name in found.index:
        own = [table.drop(columns=name) for table in tables]
        expected = assess(own, known=[each for each in settings.known if each != name], max_known=2)
        assert found.loc[name, "adjusted_p_value"] == expected.scores["adjusted_p_value"]
        assert found.loc[name, "leakage_detected"] == expected.scores["leakage_detected"]
    assert "rare values" in found.loc["age", "criteria"]
    assert found.loc["name", "criteria"] == ""


def test_only_so_many_columns_are_left_out_as_asked_for_in_the_same_order(tables):
    settings = DisclosureSettings(max_known=1)
    whole = assess(tables, max_known=1)
    every = assess_without_columns(*tables, whole, settings, most_columns=5)
    for most_columns in (0, 1, 3):
        found = assess_without_columns(*tables, whole, settings, most_columns=most_columns)
        pd.testing.assert_frame_equal(found[:most_columns], every[:most_columns], check_dtype=False)
        assert found["without"].tolist() == every["without"].tolist()
        assert found["adjusted_p_value"].isna().tolist() == [number >= most_columns for number in range(5)]
        assert found["leakage_detected"].isna().tolist() == [number >= most_columns for number in range(5)]


def test_figures_are_those_of_tables_without_the_column_for_people_numbers_and_samples():
    random = np.random.default_rng(6)
    number = random.normal(size=900).round(1)
    number[::17] = np.nan
    made = pd.DataFrame({"person": np.arange(900) // 2, "number": number, "day": pd.Timestamp("2020-01-01")})
    made["day"] += pd.to_timedelta(random.integers(0, 40, 900), "D")
    made["kind"] = pd.Categorical(random.choice(["a", "b", "c"], 900))
    original, control = made.iloc[:600], made.iloc[600:].reset_index(drop=True)
    tables = original, original.drop(columns="person"), control
    settings = DisclosureSettings(sample=200, seed=3)
    whole = assess(tables, sample=200, seed=3, person="person")
    found = assess_without_columns(*tables, whole, settings, person="person", most_columns=5)
    assert set(found["without"]) == {"number", "day", "kind"}
    for row in found.itertuples():
        own = [table.drop(columns=row.without) for table in tables]
        expected = assess(own, sample=200, seed=3, person="person")
        assert row.adjusted_p_value == expected.scores["adjusted_p_value"]
        assert row.leakage_detected == expected.scores["leakage_detected"]


def test_one_column_that_is_left_cannot_be_assessed(tables):
    pair = [table[["age", "name"]] for table in tables]
    found = assess_without_columns(*pair, assess(pair), DisclosureSettings(), most_columns=5)
    assert found["leakage_detected"].isna().all()
    assert found["adjusted_p_value"].isna().all()
