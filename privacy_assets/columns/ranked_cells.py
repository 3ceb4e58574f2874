"""The order of cells that are coded as text: times of day, periods and intervals."""

from __future__ import annotations

from datetime import time
from typing import Any

import pandas as pd


def text_of_cell(cell: Any) -> str:
    """Write a cell that is not text; bytes in hexadecimal digits."""
    return cell.hex() if isinstance(cell, bytes) else str(cell)


def order_of_cells(cells: list[Any], as_text: list[str]) -> list[int] | None:
    """Order times of day, periods or intervals; None for other values, and for values without an order."""
    if all(isinstance(value, pd.Interval) for value in cells):
        keys: list[Any] = [(value.left, value.right, text) for value, text in zip(cells, as_text, strict=True)]
    elif all(isinstance(value, pd.Period) for value in cells) or all(isinstance(value, time) for value in cells):
        keys = cells
    else:
        return None
    if len(set(as_text)) < len(as_text):
        return None
    try:
        return sorted(range(len(keys)), key=keys.__getitem__)
    except (TypeError, ValueError):  # naive and aware times, intervals of several kinds, periods of several lengths
        return None
