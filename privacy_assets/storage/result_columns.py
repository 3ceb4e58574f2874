"""Columns of results: tuples, and the labels of records."""

from __future__ import annotations

import json
from typing import Any, Final

import numpy as np
import pandas as pd

ROWS_PER_BLOCK: Final = 2**16


def tuples_to_text(column: pd.Series[Any]) -> pd.Series[Any]:
    """Write tuples as JSON for storage; a tuple that several rows of a block share is written once."""
    blocks = [pd.Series([], dtype=str)]
    for begin in range(0, len(column), ROWS_PER_BLOCK):
        values = column.iloc[begin : begin + ROWS_PER_BLOCK].tolist()
        written = {place: json.dumps(value) for place, value in {id(value): value for value in values}.items()}
        blocks.append(pd.Series([written[id(value)] for value in values], dtype=str))
    return pd.concat(blocks, ignore_index=True)


def texts_to_tuples(column: pd.Series[Any]) -> pd.Series[Any]:
    """Read the output of :func:`tuples_to_text`."""
    codes, distinct = pd.factorize(column)
    if (codes < 0).any():
        raise TypeError("a tuple is missing")
    tuples = pd.Series([tuple(json.loads(text)) for text in distinct], dtype=object)
    return tuples.take(codes).reset_index(drop=True)


def labels_at(index: pd.Index[Any], positions: pd.Series[Any]) -> pd.Series[Any]:
    """Return index labels unchanged if a file can store them (numbers, dates and text); others as text.

    Integers become int64 if it can represent all of them, else text.
    """
    labels = index.take(positions.to_numpy())
    is_whole = labels.dtype.kind in "iu" and not labels.hasnans
    if is_whole and (labels.dtype.kind == "i" or len(labels) == 0 or labels.max() <= np.iinfo(np.int64).max):
        return pd.Series(labels.to_numpy(dtype=np.int64))
    if isinstance(labels, pd.DatetimeIndex | pd.TimedeltaIndex) or labels.dtype.kind in "fb":
        return pd.Series(labels.array)
    # Text that UTF-8 cannot represent could neither be stored nor shown.
    texts = [str(label).encode(errors="backslashreplace").decode() for label in labels]
    return pd.Series(texts, dtype=str)
