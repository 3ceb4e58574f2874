"""Originals, controls and synthetic records as arrays, prepared regardless of who is an original.

Codes, bins, precision and frequencies come from originals and controls together. Only then are scores made from them
independent of the labels, and a test that permutes the labels exact.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from privacy_assets.columns.coding import ORDERED_KINDS, ColumnValues, EncodedColumn, as_numbers, group_rows
from privacy_assets.columns.dependence import ranks_of
from privacy_assets.columns.unknown_values import UnknownValues
from privacy_assets.disclosure.codes import Codes, Sides, WrittenSides
from privacy_assets.disclosure.placed import Placed
from privacy_assets.errors import InvalidTableError
from privacy_assets.mpucc.people import pooled_people
from privacy_assets.mpucc.preprocess import encode_columns
from privacy_assets.storage.table import Table

MOST_BINS: Final = 20
MOST_VALUES: Final = 2_000_000
"""Largest number of distinct values of a column, so that three columns give one integer."""
SCALE: Final = 1_000
LARGEST_INT16: Final = 32_767


@dataclass(frozen=True, eq=False)
class PooledRecords:
    """Real records, originals first, and synthetic records.

    Attributes
    ----------
    exact : Sides
        Codes of values; equal codes are equal values, whatever their spelling (`canonical`). Numbers are rounded, and
        times floored, to the coarsest precision that leaves the real records unchanged.
    bins : tuple of ndarray of shape (n_codes,), or None
        Bin of each exact code of numbers with more than ``MOST_BINS`` values: that many quantiles of the real records.
    n_exact, n_binned : ndarray of shape (n_columns,), dtype=int64
        Upper bounds of the codes (exclusive).
    is_number : ndarray of shape (n_columns,), dtype=bool
        Whether values have a distance: numbers, moments and durations.
    values : tuple of ndarray of shape (n_codes,), dtype=float64
        Number of each exact code, NaN for missing values; empty for other columns.
    ranks : tuple of ndarray of shape (n_codes,), dtype=int64
        Place of each exact code in the order of the values (`ranks_of`).
    missing : ndarray of shape (n_columns,), dtype=int64
        Exact code of missing values, -1 if there are none.
    people : ndarray of shape (n_real,), dtype=int32
        Person of each real record, from 0, originals first.
    precision, unknown_values : mapping of str
        By column, decimals or unit if it has a precision, and the share of synthetic values that nobody has.
    as_written : mapping of str to WrittenSides
        Codes, of shape (n_records,), of values as they are written, of columns in which some are spelled alike.
    synthetic_people : ndarray of shape (n_synthetic,), dtype=int64, or None
        Synthetic person of each synthetic record; None if it is not known.
    placed : Placed or None
        The same records where an engine holds them.
    """

    columns: tuple[str, ...]
    kinds: tuple[str, ...]
    exact: Sides
    bins: tuple[NDArray[np.int32] | None, ...]
    n_exact: NDArray[np.int64]
    n_binned: NDArray[np.int64]
    is_number: NDArray[np.bool_]
    values: tuple[NDArray[np.float64], ...]
    ranks: tuple[NDArray[np.int64], ...]
    missing: NDArray[np.int64]
    people: NDArray[np.int32]
    n_people: int
    n_original_people: int
    precision: dict[str, int | str]
    unknown_values: UnknownValues
    as_written: Mapping[str, WrittenSides]
    synthetic_people: NDArray[np.int64] | None = None
    placed: Placed | None = None

    @property
    def n_real(self) -> int:
        """Number of real records."""
        return self.exact.real.n_records

    @property
    def n_synthetic(self) -> int:
        """Number of synthetic records."""
        return self.exact.synthetic.n_records

    @property
    def binned(self) -> Sides:
        """Codes of values, with numbers of many values in bins."""
        return self.exact.by(self.bins)

    @property
    def distinct(self) -> NDArray[np.int64]:
        """Positions of the distinct synthetic records: anyone can repeat records, so uniqueness is among these."""
        groups, _ = group_rows(self.exact.synthetic.columns, self.n_exact.tolist())
        return np.unique(groups, return_index=True)[1]

    def only(self, columns: Sequence[int]) -> PooledRecords:
        """Return the records with the columns at some places, in this order, as if the tables had no others."""
        kept = list(columns)
        names = [self.columns[j] for j in kept]
        return replace(
            self,
            columns=tuple(names),
            kinds=tuple(self.kinds[j] for j in kept),
            exact=Sides(*(codes.only(kept) for codes in self.exact)),
            bins=tuple(self.bins[j] for j in kept),
            n_exact=self.n_exact[kept],
            n_binned=self.n_binned[kept],
            is_number=self.is_number[kept],
            values=tuple(self.values[j] for j in kept),
            ranks=tuple(self.ranks[j] for j in kept),
            missing=self.missing[kept],
            precision={name: own for name, own in self.precision.items() if name in names},
            unknown_values={name: own for name, own in self.unknown_values.items() if name in names},
            as_written={name: own for name, own in self.as_written.items() if name in names},
            placed=self.placed and self.placed.only(kept),
        )

    def drawn(self, rows: NDArray[np.int64]) -> PooledRecords:
        """Return the records with some of the synthetic ones."""
        whose = None if self.synthetic_people is None else self.synthetic_people[rows]
        written = {name: own._replace(synthetic=own.synthetic[rows]) for name, own in self.as_written.items()}
        exact = self.exact._replace(synthetic=self.exact.synthetic.of_rows(rows))
        return replace(self, exact=exact, as_written=written, synthetic_people=whose, placed=None)


def pool_records(
    frames: Mapping[str, Table], people: Mapping[str, NDArray[np.int64]], invented: Sequence[str] = ()
) -> PooledRecords:
    """Prepare original, control and synthetic table, which have the same columns (not checked here).

    ``people`` has the person of each row of original and control, from 0, and of the synthetic table if it is known;
    it is empty if each row is a person. Columns that cannot be compared, or have more than ``MOST_VALUES`` values, are
    refused.
    """
    columns = tuple(frames["original"].columns)
    original, synthetic, control = (frames[name] for name in ("original", "synthetic", "control"))
    owners = pooled_people(people)
    found: list[_PooledColumn] = []
    unknown_values: UnknownValues = {}

    def both_sides(name: str) -> dict[str, Any]:
        return {"original and control": {name: _joined(original[name], control[name])}, "synthetic": synthetic}

    for _, read, encoded, shares in encode_columns(columns, both_sides, owners, invented):
        unknown_values = {**unknown_values, **shares}
        found.append(_PooledColumn.of(read, encoded))
    too_many = [name for name, own in zip(columns, found, strict=True) if len(own.ranks) > MOST_VALUES]
    if too_many:
        raise InvalidTableError(
            f"Columns {too_many} have more than {MOST_VALUES:,} distinct values. Remove columns that number the "
            "records, or round them. Nothing was assessed."
        )
    owners = np.arange(len(original) + len(control)) if owners is None else owners
    by_name = dict(zip(columns, found, strict=True))
    return PooledRecords(
        columns,
        tuple(own.kind for own in found),
        Sides(*(Codes.of([own.codes[side] for own in found]) for side in (0, 1))),
        tuple(own.bins for own in found),
        np.array([len(own.ranks) for own in found], np.int64),
        np.array([len(own.ranks) if own.bins is None else own.n_bins for own in found], np.int64),
        np.array([len(own.numbers) > 0 for own in found], np.bool_),
        tuple(own.numbers for own in found),
        tuple(own.ranks for own in found),
        np.array([own.missing for own in found], np.int64),
        owners.astype(np.int32),
        int(owners.max()) + 1,
        int(owners[: len(original)].max()) + 1,
        {name: own.precision for name, own in by_name.items() if own.precision is not None},
        unknown_values,
        {name: own.as_written for name, own in by_name.items() if own.as_written is not None},
        people.get("synthetic"),
    )


class _PooledColumn(NamedTuple):
    """One column of both sides; see `PooledRecords`."""

    kind: str
    codes: Sequence[NDArray[Any]]
    bins: NDArray[np.int32] | None
    n_bins: int
    numbers: NDArray[np.float64]
    ranks: NDArray[np.int64]
    missing: int
    precision: int | str | None
    as_written: WrittenSides | None

    @classmethod
    def of(cls, read: list[ColumnValues], encoded: EncodedColumn) -> _PooledColumn:
        codes, values = encoded.all_spelled, _values(read, encoded)
        edges = _edges(values, codes[0]) if len(values) else None
        bins = None if edges is None else _binned(values, edges).astype(np.int32)
        return cls(
            encoded.kind,
            codes,
            bins,
            0 if edges is None else len(edges) + 2,
            values,
            ranks_of(encoded.labels, encoded.kind),
            len(encoded.labels) - 1 if _has_missing(encoded) else -1,
            encoded.precision,
            None if encoded.key_of is None else WrittenSides(*encoded.codes[:2]),
        )


def _has_missing(column: EncodedColumn) -> bool:
    """Whether some record has no value."""
    return len(column.labels) > 0 and column.labels[-1] is None


def _joined(original: pd.Series[Any], control: pd.Series[Any]) -> pd.Series[Any]:
    """Append the controls to the originals; as objects if their storage differs."""
    both = [original, control]
    if original.dtype != control.dtype:
        both = [column.astype(object) for column in both]
    return pd.concat(both, ignore_index=True)


def _values(tables: list[ColumnValues], encoded: EncodedColumn) -> NDArray[np.float64]:
    """Return the number of each code, NaN for missing values; empty if the values have no distance."""
    if encoded.kind not in ORDERED_KINDS:
        return np.zeros(0)
    numbers: NDArray[Any] = np.full(len(encoded.labels), np.nan)
    for table, codes in zip(tables, encoded.codes, strict=True):
        if table.kind != "missing":
            own = np.append(as_numbers(table, encoded.precision), np.nan)
            # -1 is the place of the missing value.
            numbers[codes] = own[table.codes]
    return numbers


def count_values(numbers: NDArray[np.float64], codes: NDArray[Any]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return the distinct numbers of all codes, ascending, and how many records have each; missing ones do not count.

    ``numbers`` are those of the codes, ``codes`` those of the records.
    """
    is_known = ~np.isnan(numbers)
    n_records = np.bincount(codes, minlength=len(numbers))[is_known]
    distinct, place = np.unique(numbers[is_known], return_inverse=True)
    return distinct, np.bincount(place, n_records, len(distinct)).astype(np.int64)


def _edges(numbers: NDArray[np.float64], codes: NDArray[Any]) -> NDArray[np.float64] | None:
    """Return the inner edges of the bins of a column; None if it has few values, each of which is a bin."""
    distinct, n_records = count_values(numbers, codes)
    distinct, up_to = distinct[n_records > 0], np.cumsum(n_records[n_records > 0])
    if len(distinct) <= MOST_BINS:
        return None
    # The smallest values that at least one twentieth, two twentieths, and so on of the records do not exceed.
    wanted = -(-int(up_to[-1]) * np.arange(1, MOST_BINS) // MOST_BINS)
    return np.unique(distinct[np.searchsorted(up_to, wanted)])


def _binned(numbers: NDArray[np.float64], edges: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the bin of each number; missing values are in the last bin."""
    return np.where(np.isnan(numbers), len(edges) + 1, np.searchsorted(edges, numbers, side="right"))


def distance_codes(records: PooledRecords) -> tuple[Sides, int]:
    """Return codes for Gower's distance, and the largest distance of a column.

    Numbers become their middle rank among the real records, from 0 to the largest distance, so that every column is
    spread equally; missing values have the largest distance from all others. A category that only one side has equals
    no category of the other side.
    """
    unit = min(SCALE, 65_535 // len(records.columns))
    tables: list[list[NDArray[np.int32]]] = [[], []]
    for numbers, is_number, *columns in zip(records.values, records.is_number, *records.exact, strict=True):
        if is_number:
            distinct, n_records = count_values(numbers, columns[0])
            up_to = np.cumsum(n_records)
            # Of each value, the records below it and those up to it. Half a step is rounded up.
            rank = np.append((2 * up_to - n_records) * unit + up_to[-1:], 0) // (2 * max(int(up_to[-1:].sum()), 1))
            place = np.where(np.isnan(numbers), -unit - 1, rank[np.searchsorted(distinct, numbers)])
            of_sides = [place, place]
        else:
            n_codes = max(int(own.max()) for own in columns) + 1
            is_shared = np.bincount(columns[0], minlength=n_codes) > 0
            is_shared &= np.bincount(columns[1], minlength=n_codes) > 0
            place = np.cumsum(is_shared)
            of_sides = [np.where(is_shared, place, 0), np.where(is_shared, place, -1)]
        for side, own in zip(tables, of_sides, strict=True):
            side.append(own.astype(np.int32))
    largest = max(int(own.max(initial=0)) for side in tables for own in side)
    dtype = np.int16 if largest <= LARGEST_INT16 else np.int32
    return Sides(*(codes.by(side, dtype) for codes, side in zip(records.exact, tables, strict=True))), unit
