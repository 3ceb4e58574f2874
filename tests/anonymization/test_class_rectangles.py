"""Rectangles of classes against a count of the values below each end."""

import numpy as np
import pandas as pd
import pytest

from privacy_assets.anonymization.anonymize import anonymize
from privacy_assets.anonymization.result import class_rectangles, columns_in_order
from privacy_assets.errors import InvalidSettingError


def people(n_rows: int = 80) -> pd.DataFrame:
    random = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "age": pd.array(random.choice([None, *range(20, 40)], n_rows), dtype="Int64"),
            "weight": np.round(random.normal(70, 9, n_rows), 1),
            "job": random.choice(["cook", "nurse"], n_rows),
            "born": pd.Timestamp("1980-01-01") + pd.to_timedelta(random.integers(0, 900, n_rows), unit="D"),
        }
    )


@pytest.mark.parametrize(("x", "y"), [("age", "weight"), ("born", "age"), ("weight", "born")])
def test_ends_are_shares_of_the_values_below_and_rows_are_counted(x, y):
    table = people()
    anonymization = anonymize(table, quasi_identifiers=list(table.columns), k=6)
    rectangles = class_rectangles(anonymization, table, x, y)
    expected: dict[tuple, int] = {}
    rows = anonymization.members["row"].to_numpy()
    for own in anonymization.members["class"].unique():
        members = table.iloc[rows[anonymization.members["class"] == own]]
        if members[[x, y]].isna().any(axis=None):
            continue
        ends = []
        for name in (x, y):
            known = table[name].dropna()
            ends += [(known < members[name].min()).mean(), (known <= members[name].max()).mean()]
        key = tuple(np.round(np.array(ends, float), 12))
        expected[key] = expected.get(key, 0) + len(members)
    found = {
        tuple(np.round(np.array(row[:4], float), 12)): row[4]
        for row in rectangles[["x_low", "x_high", "y_low", "y_high", "rows"]].itertuples(index=False)
    }
    assert found == expected
    assert found


def test_columns_without_intervals_are_refused():
    table = people()
    anonymization = anonymize(table, quasi_identifiers=list(table.columns), k=6)
    assert columns_in_order(anonymization.model, table) == ["age", "weight", "born"]
    with pytest.raises(InvalidSettingError, match=r"\['job'\] do not have intervals"):
        class_rectangles(anonymization, table, "age", "job")
