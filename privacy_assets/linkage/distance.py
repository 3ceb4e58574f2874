"""Distance-based record linkage: each released record is linked to the nearest originals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from privacy_assets.anonymization.quasi_identifiers import Scale, read_dimension
from privacy_assets.columns.coding import read_column
from privacy_assets.columns.column_names import require_unique_text_names
from privacy_assets.columns.hierarchy import Hierarchy
from privacy_assets.columns.masks import BoundedNoise, Exact, Interval, Mask, RankWindow, ReleaseModel, Suppressed
from privacy_assets.columns.time_units import align_times
from privacy_assets.errors import InvalidSettingError, InvalidTableError
from privacy_assets.reidentification.code_sets import CodeSets
from privacy_assets.reidentification.mask_sets import TIME_KINDS, read_mask
from privacy_assets.reidentification.released_values import Original, read_released, rows_of_values

if TYPE_CHECKING:
    from scipy.sparse import csr_array

MAX_DENSE_PAIRS = 100_000_000
# In a tree, distinct categories are at distance 1: each has its own dimension, at half a squared distance.
CATEGORY_WEIGHT = 0.5**0.5
# Distances are sums of rounded squares; differences up to this count as equal.
TIE_TOLERANCE = 1e-9
# With more dimensions (one per category) a tree visits all points, so all pairs are compared, block by block.
MAX_TREE_DIMENSIONS = 40
MAX_COMPARED_PAIRS = 5_000_000_000
PAIRS_PER_BLOCK = 4_000_000
# A set of categories is a point with a dimension for each of them.
MAX_CATEGORIES_IN_SETS = 500


class _Places(NamedTuple):
    """Positions of records: coordinates, and categories, whose distance is 0 if they are equal and else 1."""

    numbers: NDArray[np.float64]
    categories: NDArray[np.int64]

    def take(self, rows: Any) -> _Places:
        return _Places(self.numbers[rows], self.categories[rows])

    def distances(self, others: _Places) -> NDArray[np.float64]:
        """Return the distance of every record to every other one."""
        from scipy.spatial.distance import cdist

        squares = np.zeros((len(self.numbers), len(others.numbers)))
        if self.numbers.shape[1]:
            squares += cdist(self.numbers, others.numbers, "sqeuclidean")
        for own, theirs in zip(self.categories.T, others.categories.T, strict=True):
            squares += own[:, None] != theirs
        return np.sqrt(squares)

    def distinct(self) -> tuple[_Places, NDArray[np.int64]]:
        """Return the distinct positions, and the position of each record."""
        joint, number = np.unique(np.column_stack([self.numbers, self.categories]), axis=0, return_inverse=True)
        n_dimensions = self.numbers.shape[1]
        places = _Places(joint[:, :n_dimensions], joint[:, n_dimensions:].astype(np.int64))
        return places, number.ravel().astype(np.int64)

    def in_tree(self, n_categories: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return only coordinates, with a dimension for each category."""
        parts = [np.eye(n)[own] * CATEGORY_WEIGHT for own, n in zip(self.categories.T, n_categories, strict=True)]
        return np.column_stack([self.numbers, *parts])


def link_by_distance(
    original: pd.DataFrame,
    released: pd.DataFrame,
    model: ReleaseModel,
    known: Sequence[str],
    *,
    softness: float | None = None,
    hierarchies: Mapping[str, Hierarchy] | None = None,
) -> csr_array | NDArray[np.float64]:
    """Score originals by their distance to each released record.

    Parameters
    ----------
    original, released : DataFrame
        The tables.
    model : ReleaseModel
        Masks of the released columns. Intervals of numbers are represented by their midpoints, other cells that stand
        for several values by their middle: that of the smallest and the largest original value that is possible if
        values are ordered (values without numbers count by their rank), else the centroid of the possible categories.
    known : sequence of str
        Columns to compare. Numbers and times are divided by their standard deviation in the original; distinct
        categories are at distance 1, and so are a missing value and any other value.
    softness : float, optional
        None links to the nearest originals, which share the claim if there are several. Above 0, the claim falls with
        exp(-distance / softness).
    hierarchies : mapping of str to Hierarchy, optional
        Hierarchies that the model names.

    Returns
    -------
    sparse array or ndarray of shape (n_released, n_original), dtype=float64
        Claims that sum to 1 in each row.

    Raises
    ------
    InvalidSettingError
        If a column has no model, a hierarchy is missing, the softness is not above 0, sets have more than
        MAX_CATEGORIES_IN_SETS categories, or there are more than MAX_DENSE_PAIRS pairs with softness or, for texts of
        many values, more than MAX_COMPARED_PAIRS without it.
    InvalidTableError
        If a released cell cannot be read, or does not stand for any original value.
    """
    for table in (original, released):
        require_unique_text_names(table)
    unknown = [name for name in known if name not in model.masks]
    if unknown or not len(known):
        raise InvalidSettingError(
            f"`known` is empty, or names columns that the release model does not describe: {unknown}. It has "
            f"{list(model.masks)}. Nothing was linked."
        )
    parts = [_coordinates(original, released, model.masks[name], name, hierarchies or {}) for name in known]
    originals, records = (
        _Places(
            np.column_stack([np.zeros((len(table), 0)), *(part[side].numbers for part in parts)]),
            np.column_stack([np.zeros((len(table), 0), np.int64), *(part[side].categories for part in parts)]),
        )
        for side, table in enumerate((original, released))
    )
    if softness is None:
        return _nearest(originals, records)
    if not 0 < softness < np.inf:
        raise InvalidSettingError(f"softness is {softness}. Expected None, or a number above 0. Nothing was linked.")
    if len(original) * len(released) > MAX_DENSE_PAIRS:
        raise InvalidSettingError(
            f"{len(released)} released records and {len(original)} originals give {len(original) * len(released)} "
            f"pairs. Expected at most {MAX_DENSE_PAIRS} with softness. Omit softness, or link fewer records."
        )
    distances = records.distances(originals)
    claims = np.exp(-(distances - distances.min(axis=1, keepdims=True)) / softness)
    return np.asarray(claims / claims.sum(axis=1, keepdims=True), np.float64)


def _nearest(originals: _Places, records: _Places) -> csr_array:
    """Divide the claim of each record among the nearest originals."""
    from scipy.sparse import csr_array
    from scipy.spatial import KDTree

    points, number = originals.distinct()
    order = np.argsort(number, kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.bincount(number, minlength=len(points.numbers)))])
    both = np.concatenate([points.categories, records.categories])
    n_categories = both.max(axis=0, initial=0) + 1
    if 0 < points.numbers.shape[1] + n_categories.sum() <= MAX_TREE_DIMENSIONS:
        tree, places = KDTree(points.in_tree(n_categories)), records.in_tree(n_categories)
        distances, _ = tree.query(places)
        near = tree.query_ball_point(places, distances * (1 + TIE_TOLERANCE) + TIE_TOLERANCE)
    else:
        near = _nearest_of_all(points, records)
    lists = [np.concatenate([order[starts[p] : starts[p + 1]] for p in sorted(own)]) for own in near]
    sizes = np.array([len(own) for own in lists])
    claims = csr_array(
        (np.repeat(1 / sizes, sizes), np.concatenate(lists), np.concatenate([[0], np.cumsum(sizes)])),
        shape=(len(records.numbers), len(number)),
    )
    claims.sort_indices()
    return claims


def _nearest_of_all(points: _Places, records: _Places) -> list[list[int]]:
    """Return the points nearest to each record; all pairs are compared."""
    different, number = records.distinct()
    n_records, n_points = len(different.numbers), len(points.numbers)
    if n_records * n_points > MAX_COMPARED_PAIRS:
        raise InvalidSettingError(
            f"{n_records} distinct released records and {n_points} distinct originals give {n_records * n_points} "
            f"pairs, and texts have so many values that all pairs must be compared. Expected at most "
            f"{MAX_COMPARED_PAIRS}. "
            "Remove text columns with many values, or link fewer records. Nothing was linked."
        )
    block = max(PAIRS_PER_BLOCK // n_points, 1)
    near: list[list[int]] = []
    for begin in range(0, n_records, block):
        distances = different.take(slice(begin, begin + block)).distances(points)
        least = distances.min(axis=1, keepdims=True)
        near += [np.flatnonzero(own).tolist() for own in distances <= least * (1 + TIE_TOLERANCE) + TIE_TOLERANCE]
    return [near[i] for i in number]


def _coordinates(
    original: pd.DataFrame, released: pd.DataFrame, mask: Mask, name: str, hierarchies: Mapping[str, Hierarchy]
) -> tuple[_Places, _Places]:
    """Return the positions of the records of both tables in a column."""
    if isinstance(mask, Suppressed):
        return _of_numbers(np.zeros((len(original), 0)), np.zeros((len(released), 0)))
    own = read_column(original[name], f"Column {name!r}")
    if isinstance(mask, Interval) and own.kind in ("number", "missing"):
        ends = [_numbers(released[end], name) for end in (mask.low, mask.high)]
        return _of_numbers(*_standardized(_numbers(original[name], name), ends[0] / 2 + ends[1] / 2))
    if not isinstance(mask, Exact | BoundedNoise | RankWindow):
        source = Original(name, original[name], read_dimension(original[name]))
        return _middles(source, read_mask(source, released, mask, hierarchies))
    if own.kind in TIME_KINDS:
        return _moments(Original(name, original[name], read_dimension(original[name])), released[mask.column])
    if own.kind in ("number", "missing"):
        return _of_numbers(*_standardized(_numbers(original[name], name), _numbers(released[mask.column], name)))
    both = read_column(
        pd.concat([original[name].astype(object), released[mask.column].astype(object)], ignore_index=True),
        f"Column {name!r} of the original and the release",
    )
    # A missing value is a separate category.
    codes = np.where(both.codes < 0, len(both.distinct), both.codes).astype(np.int64)[:, None]
    nothing = np.zeros((len(codes), 0))
    places = _Places(nothing, codes)
    return places.take(slice(len(original))), places.take(slice(len(original), None))


def _moments(original: Original, column: pd.Series[Any]) -> tuple[_Places, _Places]:
    """Return the positions of moments or durations, as time since the first original one."""
    read, values = read_released(original, column)
    known = original.scale.known
    if len(values):
        known, values = align_times(known, values)
    both = [
        np.append((own - known[0]).astype(np.int64).astype(np.float64) if len(own) else np.zeros(0), np.nan)
        for own in (known, values)
    ]
    return _of_numbers(*_standardized(both[0][original.dimension.codes], both[1][rows_of_values(read)]))


def _middles(original: Original, sets: CodeSets) -> tuple[_Places, _Places]:
    """Return the positions of originals, and of released cells that stand for several values."""
    scale, codes = original.scale, original.dimension.codes.astype(np.int64)
    n_empty = int((np.diff(sets.first) == 0)[sets.set_of_row].sum())
    if n_empty:
        raise InvalidTableError(
            f"{original.where}: {n_empty} released cells do not stand for any value of the original. Expected cells "
            "that contain the value they come from. Correct the release or its model. Nothing was linked."
        )
    if scale.is_ordered:
        values = np.append(_as_numbers(scale), np.nan)
        begin, end = sets.first[:-1], sets.first[1:] - 1
        # The missing value has the last code, and counts if nothing else is possible.
        end = np.where((sets.low[end] == scale.n_known) & (end > begin), end - 1, end)
        low = sets.low[begin]
        high = np.minimum(sets.high[end], np.maximum(scale.n_known - 1, low))
        return _of_numbers(*_standardized(values[codes], (values[low] / 2 + values[high] / 2)[sets.set_of_row]))
    if original.n_values > MAX_CATEGORIES_IN_SETS:
        raise InvalidSettingError(
            f"{original.where} is released as sets of {original.n_values} categories. Expected at most "
            f"{MAX_CATEGORIES_IN_SETS}, because each is a dimension. Remove the column from `known`, or use "
            "link_by_fellegi_sunter. Nothing was linked."
        )
    centroids = np.zeros((sets.n_sets, original.n_values))
    is_possible = np.bincount(codes, minlength=original.n_values) > 0
    for number, own in enumerate(centroids):
        inside = sets.codes_of(number)
        # A missing value in a set counts only if an original has one.
        if is_possible[inside].any():
            inside = inside[is_possible[inside]]
        own[inside] = CATEGORY_WEIGHT / len(inside)
    return _of_numbers(np.eye(original.n_values)[codes] * CATEGORY_WEIGHT, centroids[sets.set_of_row])


def _as_numbers(scale: Scale) -> NDArray[np.float64]:
    """Return ordered values as numbers: moments as time since the first one, values that are not numbers as ranks."""
    if scale.known.dtype.kind in "mM":
        return np.asarray((scale.known - scale.known[:1]).astype(np.int64), np.float64)
    if scale.kind == "number":
        return scale.known.astype(np.float64)
    return np.arange(scale.n_known, dtype=np.float64)


def _of_numbers(*sides: NDArray[np.float64]) -> tuple[_Places, _Places]:
    first, second = (_Places(side, np.zeros((len(side), 0), np.int64)) for side in sides)
    return first, second


def _numbers(column: pd.Series[Any], name: str) -> NDArray[np.float64]:
    read = read_column(column, f"Column {name!r}")
    if read.kind not in ("number", "missing"):
        raise InvalidTableError(
            f"Column {name!r} has numbers in the original and {read.description} values in the release. Expected "
            "numbers in both. Convert the column."
        )
    values = np.append(read.distinct.astype(np.float64), np.nan)
    return np.asarray(values[read.codes], np.float64)


def _standardized(
    originals: NDArray[np.float64], records: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Divide by the standard deviation; a missing value is in the middle, with an offset in a separate dimension."""
    known = originals[~np.isnan(originals)]
    mean, deviation = (known.mean(), known.std()) if len(known) else (0.0, 1.0)
    sides = []
    for values in (originals, records):
        scaled = (values - mean) / (deviation if deviation > 0 else 1.0)
        is_missing = np.isnan(values)
        sides.append(np.column_stack([np.where(is_missing, 0.0, scaled), is_missing]))
    return sides[0], sides[1]
