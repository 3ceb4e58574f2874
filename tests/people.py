"""Tables about invented people, with every kind of column."""

import numpy as np
import pandas as pd

TEXT = pd.Series(["text"]).dtype


def every_kind(n_rows=200, seed=0):
    """One column of each kind, plain and with missing values; later columns depend on the first."""
    random = np.random.default_rng(seed)
    age = random.integers(0, 90, n_rows)
    height = np.round(random.normal(170, 10, n_rows), 1)
    days = pd.to_datetime("2001-01-01") + pd.to_timedelta(age * 30, unit="D")
    some = random.random(n_rows) < 0.2
    grade = np.array(["low", "middle", "high"])[np.minimum(age // 30, 2)]
    town = np.array(["Arles", "Bonn", "Como", "Delft"])[random.integers(0, 4, n_rows)]
    return pd.DataFrame(
        {
            "age": age,
            "age_or_none": pd.Series(age, dtype="Int64").mask(some),
            "small": age.astype("uint8"),
            "height": height,
            "height_or_none": np.where(some, np.nan, height),
            "single": height.astype("float32"),
            "adult": age >= 18,
            "adult_or_none": pd.Series(age >= 18, dtype="boolean").mask(some),
            "town": pd.Series(town, dtype=TEXT),
            "town_or_none": pd.Series(town, dtype=TEXT).mask(some),
            "objects": pd.Series(town, dtype=object).where(~some, None),
            "grade": pd.Categorical(grade, categories=["low", "middle", "high", "top"], ordered=True),
            "site": pd.Categorical(town).set_categories(["Arles", "Bonn", "Como", "Delft", "Essen"]),
            "site_or_none": pd.Series(pd.Categorical(town)).mask(some),
            "day": days.astype("datetime64[us]"),
            "day_or_none": pd.Series(days.astype("datetime64[ns]")).mask(some),
            "moment": (days + pd.to_timedelta(age, unit="h")).tz_localize("UTC").tz_convert("Europe/Berlin"),
            "constant": np.full(n_rows, 7),
            "nothing": np.full(n_rows, np.nan),
            "nobody": pd.Series([None] * n_rows, dtype=object),
        }
    )
