"""Replacement of rare text and category values before a synthesizer learns, so that it cannot reproduce them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from privacy_assets.columns.coding import people_of_values
from privacy_assets.disclosure.rare_values import RareColumn, most_rare_values_first
from privacy_assets.errors import InvalidTableError

MIN_ATOM: Final = 5
"""Default number of people who must share a text or category value for it to be reproduced."""
MOST_COLUMNS_NAMED: Final = 40


class Redrawn(NamedTuple):
    """A table without rare values, and by column the redrawn distinct values and records, if there are any."""

    table: pd.DataFrame
    by_column: Mapping[str, RareColumn]


def redraw_rare_values(
    table: pd.DataFrame,
    columns: Sequence[str],
    *,
    min_atom: int,
    seed: int,
    person: Sequence[Any] | pd.Series[Any] | NDArray[Any] | None = None,
    synthesizer: str = "synthesize",
) -> Redrawn:
    """Replace values that fewer than `min_atom` people share by others of the same column.

    Each cell of these columns of text and categories is drawn separately from the records with frequent values,
    regardless of the other columns. Missing values stay missing. Types and categories of the columns are kept. Rows
    without a ``person`` count as one person; by default each row counts as one. A column without any value that enough
    people share is refused.
    """
    if person is not None and len(person) != len(table):
        raise InvalidTableError(
            f"`person` has {len(person):,} values, but the table has {len(table):,} records. Give one person per "
            "record. Nothing was synthesized."
        )
    whose = None if person is None else pd.factorize(np.asarray(person))[0]
    by_column: dict[str, RareColumn] = {}
    hopeless: dict[str, int] = {}
    changed = {}
    for place, name in enumerate(columns):
        codes, values = pd.factorize(table[name])
        is_rare = people_of_values(codes, len(values), whose, min_atom) < min_atom
        rows = np.flatnonzero(np.append(is_rare, False)[codes])
        if not len(rows):
            continue
        donors = np.flatnonzero(np.append(~is_rare, False)[codes])
        if not len(donors):
            hopeless[name] = len(values)
            continue
        random = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(place,)))
        taken = np.arange(len(table))
        taken[rows] = donors[random.integers(0, len(donors), len(rows))]
        changed[name] = pd.Series(table[name].array.take(taken), index=table.index, dtype=table[name].dtype)
        by_column[name] = RareColumn(int(is_rare.sum()), len(rows))
    if hopeless:
        shown = dict(list(hopeless.items())[:MOST_COLUMNS_NAMED])
        more = f" and {len(hopeless) - len(shown):,} columns more" if len(hopeless) > len(shown) else ""
        raise InvalidTableError(
            f"{synthesizer!r} redraws text and category values that fewer than min_atom={min_atom} people share from "
            f"the others of their column, but all values of these columns are rare: {shown}{more} (counts of values). "
            "Coarsen or drop them, or set min_atom=1 to reproduce every value. Nothing was synthesized."
        )
    return Redrawn(table.assign(**changed) if changed else table, by_column)


def shown_redrawn(by_column: Mapping[str, RareColumn]) -> dict[str, Any]:
    """Return the counts of redrawn values as JSON values: the totals, and those of the columns with the most values."""
    return {
        "n_columns": len(by_column),
        "n_values": sum(own.n_values for own in by_column.values()),
        "by_column": {name: asdict(own) for name, own in most_rare_values_first(by_column)[:MOST_COLUMNS_NAMED]},
    }
