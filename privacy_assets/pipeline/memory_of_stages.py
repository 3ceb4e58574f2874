"""Memory that the stages of a release need: a line in the cells of the source, measured for each stage.

``benchmarks/pipeline.py --step-processes`` measures the peaks. The line is at most a tenth above each of them, and from
5,000,000 rows on at most a tenth below; smaller tables need more than the line, because some blocks have a fixed size.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

import numpy as np

from privacy_assets.contract.related import PEOPLE, RelatedTables
from privacy_assets.release.metrics import DISCLOSURE, MPUCC
from privacy_assets.setting_checks import require
from privacy_assets.storage.table import Table

UNITS: Final = {"MiB": 2**20, "GiB": 2**30, "TiB": 2**40}
FLOOR: Final = 300 * 2**20
"""Bytes of Python, Dagster and compiled functions."""
WIDEST_MEASURED: Final = 16
"""Columns, with that of the person."""
CELL: Final = 7.3
"""Bytes of a mean cell of the measured table, as admitted: it has columns of every kind."""
BYTES_PER_CELL: Final[Mapping[str, float]] = {
    "synthetic": 21,
    "mpucc_assessment": 21,
    "disclosure_assessment": 18,
    "synthetic_release": 25,
    "anonymized": 6,
    "reidentification_assessment": 41,
    "anonymized_release": 6.5,
}
"""At the peak of a stage, for each cell of the source."""
BYTES_PER_CELL_OF_VIEWS: Final[Mapping[str, float]] = {"synthetic": 20, MPUCC: 65, DISCLOSURE: 175}
"""The same of related tables, for each cell of the views of all people, above what was measured once: 19, 62 and 171 of
78,000 patients with 305,101 rows of two children, and 17 and 118 (mpUCC: not measured) of 128,000 with 504,056 rows."""


def cells_of_views(tables: RelatedTables) -> int:
    """Return how many cells the views of related tables have, without the person."""
    rows, width = {PEOPLE: len(tables.people)}, {PEOPLE: tables.people.shape[1] - len(tables.identifiers)}
    of_people, found = width[PEOPLE], 0
    for name in tables.from_above:
        child, own = tables.children[name], len(tables.children[name].columns)
        is_ordered, n_with_rows = int(child.order is not None), len(np.unique(tables.above[name]))
        # Rows above to which none belongs have one, too; a gap is only in the view itself.
        rows[name], width[name] = len(child.table) + rows[child.of] - n_with_rows, width[child.of] + own + is_ordered
        n_pairs = len(child.table) - len(np.unique(tables.whose[name]))
        found += rows[name] * (width[name] + is_ordered) + n_pairs * (2 * own + is_ordered)
        of_people += 1 + own + is_ordered
    return found + rows[PEOPLE] * of_people


def bytes_of(memory: str | None) -> int | None:
    """Return the bytes of a text such as ``16 GiB``; None for None.

    Raises
    ------
    InvalidSettingError
        If it is another text.
    """
    if memory is None:
        return None
    found = re.fullmatch(r"([0-9]{1,9}(?:\.[0-9]{1,9})?) ?(MiB|GiB|TiB)", str(memory))
    expected = "a number of MiB, GiB or TiB, such as 16 GiB"
    number, unit = ("0", "MiB") if found is None else found.groups()
    n_bytes = int(float(number) * UNITS[unit])
    require(n_bytes > 0, "memory", memory, expected, "Nothing was admitted.")
    return n_bytes


class Needed(NamedTuple):
    """What a stage needs for a table, in bytes: by the line, and at least, by what was measured."""

    expected: float
    at_least: float
    rows_accepted: int


class Size(NamedTuple):
    """Rows, columns and bytes of a table."""

    n_rows: int
    n_columns: int
    n_bytes: int

    @classmethod
    def of(cls, table: Table) -> Size:
        """Measure a table, column by column."""
        return cls(len(table), len(table.columns), sum(own.memory_usage(index=False) for _, own in table.items()))


def memory_needed(stage: str, source: Size, memory: int, share: float = 1.0) -> Needed:
    """Return what a stage needs for a source, and how many of its rows it accepts with this memory.

    More columns than were measured are an extrapolation, and cells may take less memory than the measured ones, so at
    least the measured columns are needed, by the share of memory that the cells take. ``share``, from 0 to 1, is that
    of the measured records that the stage has; 0 if it was not measured.
    """
    (n_rows, n_columns, n_bytes), each = source, BYTES_PER_CELL[stage]
    cell = n_bytes / max(n_rows * n_columns, 1)
    least = share * each * min(n_columns, WIDEST_MEASURED) * min(cell / CELL, 1)
    accepted = max(int((memory - FLOOR) / (each * max(n_columns, 1))), 0)
    return Needed(FLOOR + n_rows * each * n_columns, FLOOR + n_rows * least if share else 0, accepted)
