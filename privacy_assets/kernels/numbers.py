"""The type of numbers of rows."""

from __future__ import annotations

from typing import Any

import numpy as np


def number_type(n_rows: int) -> np.dtype[np.signedinteger[Any]]:
    """Return the type of numbers of rows, and of what has at most as many: classes, people and values."""
    return np.dtype(np.int32 if n_rows < 1 << 31 else np.int64)
