"""Hypothesis strategies for pairs of small tables with every kind of column."""

import datetime as dt
from io import BytesIO

import pandas as pd
from hypothesis import strategies as st

UNREACHABLE = ("k is ", "l_diversity is more than", "The table as one class does not satisfy l_diversity")
"""How the messages begin that refuse models which a table cannot satisfy."""
NAIVE = [pd.Timestamp("2020-01-01"), pd.Timestamp("2020-01-02 03:00"), pd.Timestamp("2021-05-05 10:30:15.5")]
POOLS = {
    "integer": ([0, 1, 2, 39, -5], "int64"),
    "nullable integer": ([0, 1, 2**53 + 1, 2**53, None], "Int64"),
    "float": ([0.5, 39.0, 0.25, -0.0, 0.0, 0.1234, 1e6, None], "float64"),
    "text": (["a", "b", "bb", "-", None], object),
    "arrow text": (["x", "y", "39", None], "string[pyarrow]"),
    "category": (["low", "high", "mid", None], "category"),
    "boolean": ([True, False], "bool"),
    "nullable boolean": ([True, False, None], "boolean"),
    "datetime": ([*NAIVE, None], "datetime64[ns]"),
    "aware datetime": ([t.tz_localize("UTC") for t in NAIVE] + [None], "datetime64[ns, UTC]"),
    "duration": ([pd.Timedelta("1h"), pd.Timedelta("2h"), None], "timedelta64[ns]"),
    "date": ([dt.date(2020, 1, 1), dt.date(2020, 2, 1), None], object),
    "missing": ([None], object),
}


def through_parquet(frame):
    """What private storage gives back."""
    file = BytesIO()
    frame.to_parquet(file)
    return pd.read_parquet(file)


@st.composite
def table_pairs(draw, max_columns=7, max_rows=12):
    """Original and synthetic of the same columns; few values per column, so that rows meet."""
    kinds = draw(st.lists(st.sampled_from(sorted(POOLS)), min_size=1, max_size=max_columns))
    sizes = [draw(st.integers(1, max_rows)) for _ in range(2)]
    tables = [{}, {}]
    for i, kind in enumerate(kinds):
        pool, dtype = POOLS[kind]
        pool = draw(st.lists(st.sampled_from(pool), min_size=1, max_size=len(pool), unique=True))
        for table, size in zip(tables, sizes, strict=True):
            values = draw(st.lists(st.sampled_from(pool), min_size=size, max_size=size))
            table[f"{kind} {i}"] = pd.Series(values, dtype=dtype)
    return tuple(pd.DataFrame(table) for table in tables)
