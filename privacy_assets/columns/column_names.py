"""Names of the columns of a table.

A name that neither a contract nor a setting contains can be a cell: that of a file without its header, or of a pivoted
table. Messages give the positions of such columns instead, counted from 0, as in ``table.columns[0]``.
"""

from collections.abc import Sequence
from typing import Final

import pandas as pd

from privacy_assets.columns.safe_names import type_name
from privacy_assets.errors import InvalidTableError

MOST_POSITIONS: Final = 20
"""Positions that a message lists; the others are counted."""


def require_unique_text_names(table: pd.DataFrame) -> None:
    """Raise InvalidTableError unless all column names of a data frame are distinct strings."""
    if not isinstance(table, pd.DataFrame):
        raise InvalidTableError(f"The table is a {type_name(table)}. Expected a pandas DataFrame. Convert it first.")
    require_unique_names(list(table.columns))


def require_unique_names(names: Sequence[object]) -> None:
    """Raise InvalidTableError unless all names of columns are distinct strings."""
    problem = problem_of_names(names)
    if problem:
        raise InvalidTableError(problem)


def problem_of_names(names: Sequence[object]) -> str:
    """Return what is wrong with names that are not distinct strings; names are not shown, because they may be cells."""
    odd, again, known = [], [], set()
    for place, name in enumerate(names):
        if not _is_text(name):
            odd.append(place)
        elif name in known:
            again.append(place)
        known.add(name)
    if not odd and not again:
        return ""
    found = {"are not text": odd, "are repeated": again}
    shown = " and ".join(f"{len(places):,} {what} ({positions(places)})" for what, places in found.items() if places)
    return (
        f"The table has {len(names):,} columns; of their names, {shown}. Expected a different text for each column. "
        "Rename them, for example with `table.columns = [...]`."
    )


def positions(places: Sequence[int]) -> str:
    """List positions of columns in a message."""
    more = f", and {len(places) - MOST_POSITIONS:,} more" if len(places) > MOST_POSITIONS else ""
    return f"positions {', '.join(map(str, places[:MOST_POSITIONS]))}{more}"


def _is_text(name: object) -> bool:
    try:
        return isinstance(name, str) and bool(name.encode() or True)
    except UnicodeEncodeError:
        return False
