"""Columns that seem to be parts of one: of a date by their names, or of another column by their values."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Final

import numpy as np
import pandas as pd

from privacy_assets.columns.coding import group_rows

UNIT: Final = "(?P<unit>year|month|day|hour|minute)"
OF_A_MOMENT: Final = re.compile(f"(?P<what>.*?)[_. -]?{UNIT}|{UNIT.replace('unit', 'first')}[_. -]of[_. -](?P<of>.+)")
ROWS_COMPARED: Final = 5_000
MOST_COLUMNS: Final = 60
ROWS_PER_VALUE: Final = 4
"""Fewer rows for each value of a column determine other columns by chance."""


def parts_of_moments(names: Sequence[str]) -> dict[str, list[str]]:
    """Return the columns that are parts of a date or time by their names, by a new name for it."""
    units: dict[str, dict[str, str]] = {}
    for name in names:
        found = OF_A_MOMENT.fullmatch(name.casefold())
        if found:
            what = found["what"] or found["of"] or ""
            units.setdefault(what, {})[found["unit"] or found["first"]] = name
    moments = {(what if what.endswith("date") else f"{what}_date".lstrip("_")): own for what, own in units.items()}
    return {name: list(own.values()) for name, own in moments.items() if len(own) > 1 and name not in names}


def parts_by_values(rows: pd.DataFrame) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield each column that two or three others determine together, and that determines them, with these.

    The first 5,000 rows are compared, of tables with up to 60 columns, and columns of which a value has at least four
    rows on average.
    """
    rows = rows.head(ROWS_COMPARED)
    if len(rows.columns) > MOST_COLUMNS:
        return
    codes = {str(name): pd.factorize(rows[name].astype(str))[0].astype(np.int64) for name in rows}
    n_values = {name: int(own.max()) + 1 for name, own in codes.items()}

    def n_joint(*names: str) -> int:
        return group_rows([codes[name] for name in names], [n_values[name] for name in names])[1]

    for name, n_own in n_values.items():
        if ROWS_PER_VALUE * n_own > len(rows):
            continue
        coarser = [each for each, n in n_values.items() if 1 < n < n_own and n_joint(name, each) == n_own]
        for size in (2, 3):
            found = next((own for own in combinations(coarser, size) if n_joint(*own) == n_own), None)
            if found is not None:
                yield name, found
                break
