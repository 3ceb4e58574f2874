"""Records that are copies but for a constant: people who share one difference to some synthetic record."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from privacy_assets.columns.coding import group_rows_of
from privacy_assets.disclosure.criteria import Evidence
from privacy_assets.disclosure.kernels.differences import count_beyond_opposite, write_differences
from privacy_assets.disclosure.pooled_records import PooledRecords
from privacy_assets.disclosure.scores import Attack, Workers

FEWEST_VALUES: Final = 3
MOST_DIFFERENCES: Final = 20_000_000
"""With more, people and synthetic records are drawn, whoever is an original."""
BITS_OF_PART: Final = 3
EXACT: Final = 2.0**53
"""Numbers that are larger in units of their precision are rounded to multiples of more of them."""


def count_shared_differences(records: PooledRecords, attack: Attack, workers: Workers, _: object = None) -> Evidence:
    """Count the people who share a difference to some synthetic record, beyond those who share its opposite.

    ``n_beyond_opposite``, of shape (n_scored,), is the largest count of each record, at least 0. ``compared_share`` is
    the share of people, and of synthetic records, that were compared.
    """
    workers.begin("shifted copies", 1)
    is_subtracted = records.is_number & (_numbers_of_values(records) >= FEWEST_VALUES)
    subtracted = np.flatnonzero(is_subtracted)
    n = len(attack.rows)
    real, made = records.exact.real.take(attack.rows), records.exact.synthetic

    def parts() -> Iterator[tuple[NDArray[Any], int]]:
        # Others must be equal, and missing values are subtracted from missing ones.
        for j, is_asked in enumerate(is_subtracted):
            codes = np.concatenate([real[j].astype(made[j].dtype), made[j]])
            yield (codes == records.missing[j], 2) if is_asked else (codes, int(records.n_exact[j]))

    groups, n_groups = group_rows_of(parts(), n + records.n_synthetic)
    of_real, of_made = groups[:n], groups[n:]
    rows, columns, share = _compared(records, attack, of_real, of_made, n_groups)
    found = np.zeros(n, np.int64)
    if len(subtracted) and len(rows) and len(columns):
        rows = rows[np.argsort(records.people[attack.rows[rows]], kind="stable")]
        columns = columns[np.argsort(of_made[columns], kind="stable")]
        both = real[:, rows], made.take(columns)
        numbers = [np.array([_whole_numbers(records, j)[codes[j]] for j in subtracted]) for codes in both]
        first = np.searchsorted(of_made[columns], np.arange(n_groups + 1))[of_real[rows] + np.array([[0], [1]])]
        # Odd multipliers, which mix the bits of a difference into one number.
        mixers = np.random.default_rng(1).integers(0, 2**63, len(subtracted), np.uint64) * np.uint64(2) + np.uint64(1)
        n_pairs = int((first[1] - first[0]).sum())
        keys, whose = np.empty(n_pairs, np.uint64), np.empty(n_pairs, np.int32)
        n_pairs = write_differences(first[0], first[1], numbers[0], numbers[1], mixers, keys, whose)
        keys, beyond = keys[:n_pairs], np.zeros(len(rows), np.int64)
        # A difference and its opposite have the same first bits; sorting all keys at once would take more memory.
        for part in range(1 << BITS_OF_PART):
            least, most = (np.uint64(((part + more) << (64 - BITS_OF_PART)) - more) for more in (0, 1))
            order = np.flatnonzero((keys >= least) & (keys <= most))
            order = order[np.argsort(keys[order], kind="stable")]
            count_beyond_opposite(keys[order], whose[order], records.people[attack.rows[rows]], beyond)
        found[rows] = beyond
    return {"n_beyond_opposite": found, "compared_share": np.array(share)}


def _compared(
    records: PooledRecords, attack: Attack, of_real: NDArray[np.int64], of_made: NDArray[np.int64], n_groups: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], float]:
    """Return the real and the synthetic records of which pairs of one group are compared, and the share drawn."""
    rows, columns = np.arange(len(of_real)), np.arange(len(of_made))
    n_made = np.bincount(of_made, minlength=n_groups).astype(float)
    n_differences = float(np.bincount(of_real, minlength=n_groups) @ n_made)
    if n_differences <= MOST_DIFFERENCES:
        return rows, columns, 1.0
    share, rng = float(np.sqrt(MOST_DIFFERENCES / n_differences)), np.random.default_rng(0)
    rows = np.flatnonzero(rng.random(records.n_people)[records.people[attack.rows]] < share)
    columns = np.flatnonzero(rng.random(len(of_made)) < share)
    # One person can have most of the records.
    n_drawn = float(np.bincount(of_real[rows], minlength=n_groups) @ n_made) * share
    return rows, columns[rng.random(len(columns)) * n_drawn < MOST_DIFFERENCES], share


def _numbers_of_values(records: PooledRecords) -> NDArray[np.int64]:
    return np.array([len(np.unique(own[~np.isnan(own)])) for own in records.values])


def _whole_numbers(records: PooledRecords, j: Any) -> NDArray[np.int64]:
    """Return the number of each code in units of the column's precision; 0 for missing values."""
    numbers = np.nan_to_num(records.values[j], nan=0.0)
    precision = records.precision.get(records.columns[j], 0)
    scale = 10.0**precision if isinstance(precision, int) else 1.0
    # Floats that are too large for units are multiples of a power of two.
    fits = 2.0 ** np.floor(np.log2(EXACT / max(float(np.abs(numbers).max()), 1.0)))
    scaled = numbers * min(scale, fits)
    return np.asarray(np.rint(scaled), np.int64)
