"""Distances from an earlier table, against counts over the values themselves."""

from io import BytesIO

import numpy as np
import pandas as pd
import pytest

from privacy_assets.errors import InvalidTableError
from privacy_assets.release.drift import measure_drift, profile_table
from privacy_assets.storage.artifact import Artifact
from tests.people import every_kind


def stored(profile: Artifact) -> Artifact:
    """What private storage gives back."""
    frames = {}
    for name, frame in profile.frames.items():
        file = BytesIO()
        frame.to_parquet(file)
        frames[name] = pd.read_parquet(file)
    return Artifact(profile.kind, profile.header, frames)


def test_a_table_has_not_moved_from_itself_in_any_column():
    table = every_kind()
    drift = measure_drift(stored(profile_table(table)), table)
    assert set(drift.distances) == set(table.columns)
    assert max(drift.distances.values()) < 1e-12
    assert drift.largest < 1e-12


def test_the_distance_of_numbers_is_that_of_kolmogorov_and_smirnov_at_the_cells():
    random = np.random.default_rng(0)
    before, now = random.normal(0, 1, 4000), random.normal(0.5, 1, 3000)
    drift = measure_drift(profile_table(pd.DataFrame({"a": before})), pd.DataFrame({"a": now}))
    points = np.sort(before)
    exact = max(abs((before <= point).mean() - (now <= point).mean()) for point in points[::7])
    assert drift.distances["a"] == pytest.approx(exact, abs=0.015)
    assert (drift.rows_before, drift.rows_now) == (4000, 3000)


def test_the_distance_of_categories_is_half_the_sum_of_the_differences():
    before = pd.DataFrame({"a": ["x"] * 50 + ["y"] * 30 + [None] * 20})
    now = pd.DataFrame({"a": ["x"] * 40 + ["z"] * 60})
    # x 0.5 -> 0.4, y 0.3 -> 0, missing 0.2 -> 0, z 0 -> 0.6.
    assert measure_drift(profile_table(before), now).distances["a"] == pytest.approx(0.6)


def test_a_column_that_loses_all_values_or_changes_its_kind_has_moved_as_far_as_it_can():
    before = pd.DataFrame({"a": [1.0, 2.0, 3.0], "b": ["x", "y", "z"]})
    now = pd.DataFrame({"a": ["1", "2", "3"], "b": pd.Series([None] * 3, dtype="Int64")})
    assert measure_drift(profile_table(before), now).distances == {"a": 1.0, "b": 1.0}


def test_values_of_another_kind_have_moved_even_where_they_are_stored_alike():
    # A datetime is stored as the number of its microseconds; the column of integers holds the same numbers.
    moments = pd.Series(pd.date_range("2020-01-01", periods=50, unit="us"))
    spans = pd.Series(pd.to_timedelta(np.arange(50), unit="us"))
    flags = pd.Series([True, False] * 25)
    kinds = [
        moments,
        moments.astype("int64"),
        moments.dt.tz_localize("UTC"),
        spans,
        spans.astype("int64"),
        flags,
        flags.astype(str),
        flags.astype("int64"),
    ]
    families = ["moment", "number", "aware", "span", "number", "flag", "text", "number"]
    for before, of_before in zip(kinds, families, strict=True):
        profile = profile_table(pd.DataFrame({"a": before}))
        for now, of_now in zip(kinds, families, strict=True):
            distance = measure_drift(profile, pd.DataFrame({"a": now})).distances["a"]
            if of_before != of_now or before is now:
                assert distance == pytest.approx(float(of_before != of_now), abs=1e-12)
    # How a kind is stored is no kind.
    table = pd.DataFrame({"a": [1, 2], "b": ["x", "y"]})
    again = table.astype({"a": "float32", "b": "category"})
    assert measure_drift(profile_table(table), again).distances == {"a": 0.0, "b": 0.0}


def test_dates_move_like_numbers():
    before = pd.DataFrame({"a": pd.date_range("2020-01-01", periods=100, unit="us")})
    later = pd.DataFrame({"a": pd.date_range("2020-02-20", periods=100, unit="ns")})
    assert measure_drift(profile_table(before), later).distances["a"] == pytest.approx(0.5, abs=0.02)


def test_columns_that_came_and_went_are_named():
    before = pd.DataFrame({"a": [1, 2], "b": [1, 2]})
    drift = measure_drift(profile_table(before), pd.DataFrame({"a": [1, 2], "c": [1, 2]}))
    assert (drift.columns_lost, drift.columns_added, drift.largest) == (["b"], ["c"], 1.0)


def test_an_empty_table_cannot_be_compared():
    before = pd.DataFrame({"a": [1, 2]})
    with pytest.raises(InvalidTableError, match="no rows"):
        measure_drift(profile_table(before), before.iloc[:0])
