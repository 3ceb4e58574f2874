import numpy as np
import pandas as pd
import pytest

from privacy_assets.disclosure import left_out_columns
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
    found = assess_without_columns(*tables, whole, settings, time_limit_seconds=300).set_index("without")
    assert set(found.index) == {"age", "town", "job", "plan", "name"}
    assert found["leakage_detected"].to_dict() == {name: name != "name" for name in found.index}
    own = [table.drop(columns="age") for table in tables]
    expected = assess(own, known=["town", "job", "name"], max_known=2)
    assert found.loc["age", "adjusted_p_value"] == expected.scores["adjusted_p_value"]
    assert "rare texts" in found.loc["age", "criteria"]
    assert found.loc["name", "criteria"] == ""


def test_without_time_no_column_is_assessed(tables, monkeypatch):
    settings = DisclosureSettings(max_known=1)
    whole = assess(tables, max_known=1)
    found = assess_without_columns(*tables, whole, settings, time_limit_seconds=0)
    assert found["adjusted_p_value"].isna().all()
    assert found["leakage_detected"].isna().all()
    # Time that ends during an assessment ends it.
    moments = iter([0.0, 0.0, 2.0])
    monkeypatch.setattr(left_out_columns.time, "monotonic", lambda: next(moments, 2.0))
    found = assess_without_columns(*tables, whole, settings, time_limit_seconds=1)
    assert found["adjusted_p_value"].isna().all()
