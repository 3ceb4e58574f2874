"""Noise on dates and durations: the candidates are those within the width, one by one."""

import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacy_assets.columns.masks import BoundedNoise, ReleaseModel
from privacy_assets.errors import InvalidSettingError, InvalidTableError, MaskError
from privacy_assets.reidentification.candidate_index import CandidateIndex
from tests.examples import examples

HOURS = st.integers(0, 200)
KINDS = {
    "dates": lambda hours: pd.Series(pd.Timestamp("2024-03-28") + pd.to_timedelta(hours, unit="h")),
    "across a change of clocks": lambda hours: pd.Series(
        pd.Timestamp("2024-03-28", tz="Europe/Berlin") + pd.to_timedelta(hours, unit="h")
    ),
    "durations": lambda hours: pd.Series(pd.to_timedelta(hours, unit="h")),
    "far dates": lambda hours: pd.Series(
        np.datetime64("0400-01-01", "us") + np.array(hours) * np.timedelta64(3_600_000_000, "us")
    ),
}


def index_of(original, released, width, truth):
    model = ReleaseModel({"day": BoundedNoise("day", width)})
    again = ReleaseModel.from_json(json.loads(json.dumps(model.to_json())))
    assert again == model
    return CandidateIndex(again, pd.DataFrame({"day": original}), pd.DataFrame({"day": released}), truth, n_threads=1)


@given(
    st.sampled_from(sorted(KINDS)), st.lists(st.tuples(HOURS, st.integers(-30, 30)), min_size=1, max_size=8), st.data()
)
@settings(max_examples=examples(80), deadline=None)
def test_candidates_are_those_within_the_width(kind, hours, data):
    make = KINDS[kind]
    original = make([own for own, _ in hours])
    released = make([own + noise for own, noise in hours])
    width = data.draw(st.sampled_from([pd.Timedelta(hours=30), pd.Timedelta("31h").to_pytimedelta(), "PT30H"]))
    index = index_of(original, released, width, range(len(hours)))
    n_hours = 31 if width == pd.Timedelta("31h") else 30
    for i, (own, noise) in enumerate(hours):
        near = [x for x, (other, _) in enumerate(hours) if abs(other - own - noise) <= n_hours]
        assert index.members(i, ["day"]).tolist() == near


def test_missing_dates_stay_missing_and_units_may_differ():
    original = pd.Series(pd.to_datetime(["2024-01-01", None, "2024-01-03"])).astype("datetime64[us]")
    released = pd.Series(pd.to_datetime(["2024-01-02", None, "2024-01-02"])).astype("datetime64[ns]")
    index = index_of(original, released, np.timedelta64(1, "D"), range(3))
    assert [index.members(i, ["day"]).tolist() for i in range(3)] == [[0, 2], [1], [0, 2]]
    assert BoundedNoise("day", np.timedelta64(1, "D")) == BoundedNoise("day", pd.Timedelta("1D"))


def test_a_width_that_is_too_small_is_an_error_and_not_a_low_risk():
    days = pd.Series(pd.to_datetime(["2024-01-01", "2024-01-05"]))
    with pytest.raises(MaskError, match="The true original is not among the candidates"):
        index_of(days, days + pd.Timedelta("2D"), "P1D", range(2))


@pytest.mark.parametrize("width", [2, "2 days", "P", -1.5, "-P2D", pd.NaT, np.timedelta64("NaT"), None, True])
def test_widths_that_are_no_durations_are_refused_for_dates(width):
    days = pd.Series(pd.to_datetime(["2024-01-01", "2024-01-05"]))
    model = ReleaseModel({"day": BoundedNoise("day", width)})
    table = pd.DataFrame({"day": days})
    with pytest.raises(InvalidSettingError, match="has datetime values, and the width of its noise is"):
        CandidateIndex(model, table, table, range(2))


def test_other_kinds_do_not_mix_with_times():
    days = pd.DataFrame({"day": pd.to_datetime(["2024-01-01", "2024-01-05"])})
    numbers = pd.DataFrame({"day": [1, 2]})
    model = ReleaseModel({"day": BoundedNoise("day", pd.Timedelta("2D"))})
    with pytest.raises(InvalidSettingError, match="width of its noise is 'P2DT0H0M0S'. Expected at least 0, a number"):
        CandidateIndex(model, numbers, numbers, range(2))
    with pytest.raises(InvalidTableError, match="datetime values in the original and number in the release"):
        CandidateIndex(model, days, numbers, range(2))
    nothing = pd.DataFrame({"day": pd.Series([None, None], dtype=object)})
    with pytest.raises(InvalidTableError, match="Expected times"):
        CandidateIndex(model, nothing, numbers, range(2))
    assert CandidateIndex(model, nothing, nothing, range(2)).sizes(["day"]).tolist() == [2, 2]
