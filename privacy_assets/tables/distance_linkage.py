"""Distance-based record linkage: each released record belongs to the originals that lie nearest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.spatial import KDTree
from scipy.spatial.distance import cdist

from privacy_assets.tables.coding import read_column
from privacy_assets.tables.errors import InvalidSettingError, InvalidTableError
from privacy_assets.tables.release_model import BoundedNoise, Exact, Interval, RankWindow, ReleaseModel, Suppressed

MAX_DENSE_PAIRS = 100_000_000
# Two different categories are at distance 1: each has a dimension of its own, half a squared distance away.
CATEGORY_WEIGHT = 0.5**0.5
# Distances are sums of rounded squares; what is nearest up to this is equally near.
TIE_TOLERANCE = 1e-9


def link_by_distance(
    original: pd.DataFrame,
    released: pd.DataFrame,
    model: ReleaseModel,
    known: Sequence[str],
    *,
    softness: float | None = None,
) -> csr_array | NDArray[np.float64]:
    """Score originals by their distance to each released record.

    Parameters
    ----------
    original, released : DataFrame
        The tables.
    model : ReleaseModel
        Which released columns tell of which original ones. Known columns are exact, noisy, rank-swapped, or intervals
        of numbers (then their middle counts).
    known : sequence of str
        Columns to compare. Numbers are divided by their standard deviation in the original; two different categories
        are at distance 1, as are a missing value and any other.
    softness : float, optional
        None links to the nearest originals, which share the claim if there are several. Above 0, the claim falls with
        exp(-distance / softness).

    Returns
    -------
    sparse array or ndarray of shape (n_released, n_original), dtype=float64
        Claims that add up to 1 in each row.

    Raises
    ------
    InvalidSettingError
        Columns without a model, masks without a value to compare, softness that is not above 0, or more than
        MAX_DENSE_PAIRS pairs with it.
    """
    unknown = [name for name in known if name not in model.masks]
    if unknown or not len(known):
        raise InvalidSettingError(
            f"`known` names no column, or columns that the release model does not describe: {unknown}. It has "
            f"{list(model.masks)}. Nothing was linked."
        )
    parts = [_coordinates(original, released, model, name) for name in known]
    originals, records = (np.column_stack([part[side] for part in parts]) for side in (0, 1))
    if softness is None:
        return _nearest(originals, records)
    if not 0 < softness < np.inf:
        raise InvalidSettingError(f"softness is {softness}. Expected None, or a number above 0. Nothing was linked.")
    if len(original) * len(released) > MAX_DENSE_PAIRS:
        raise InvalidSettingError(
            f"{len(released)} released records and {len(original)} originals make {len(original) * len(released)} "
            f"pairs. Expected at most {MAX_DENSE_PAIRS} with softness. Leave it out, or link fewer records."
        )
    distances = cdist(records, originals)
    claims = np.exp(-(distances - distances.min(axis=1, keepdims=True)) / softness)
    return np.asarray(claims / claims.sum(axis=1, keepdims=True), np.float64)


def _nearest(originals: NDArray[np.float64], records: NDArray[np.float64]) -> csr_array:
    """Share each record among the nearest originals."""
    points, number = np.unique(originals, axis=0, return_inverse=True)
    number = number.ravel()
    order = np.argsort(number, kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.bincount(number, minlength=len(points)))])
    tree = KDTree(points)
    distances, _ = tree.query(records)
    near = tree.query_ball_point(records, distances * (1 + TIE_TOLERANCE) + TIE_TOLERANCE)
    lists = [np.concatenate([order[starts[p] : starts[p + 1]] for p in sorted(own)]) for own in near]
    sizes = np.array([len(own) for own in lists])
    claims = csr_array(
        (np.repeat(1 / sizes, sizes), np.concatenate(lists), np.concatenate([[0], np.cumsum(sizes)])),
        shape=(len(records), len(originals)),
    )
    claims.sort_indices()
    return claims


def _coordinates(
    original: pd.DataFrame, released: pd.DataFrame, model: ReleaseModel, name: str
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return a column of both tables as coordinates, of shape (n_rows, n_dimensions)."""
    mask = model.masks[name]
    if isinstance(mask, Suppressed):
        return np.zeros((len(original), 0)), np.zeros((len(released), 0))
    own = read_column(original[name], f"Column {name!r}")
    if isinstance(mask, Interval) and own.kind in ("number", "missing"):
        ends = [_numbers(released[end], name) for end in (mask.low, mask.high)]
        return _standardized(_numbers(original[name], name), ends[0] / 2 + ends[1] / 2)
    if not isinstance(mask, Exact | BoundedNoise | RankWindow):
        raise InvalidSettingError(
            f"Column {name!r} is released as {type(mask).__name__}, which is no value with a distance to others. "
            "Expected exact, noisy or rank-swapped values, or intervals of numbers. Leave it out of `known`."
        )
    if own.kind in ("number", "missing"):
        return _standardized(_numbers(original[name], name), _numbers(released[mask.column], name))
    both = read_column(
        pd.concat([original[name].astype(object), released[mask.column].astype(object)], ignore_index=True),
        f"Column {name!r} of the original and the release",
    )
    places = np.eye(len(both.distinct) + 1)[both.codes] * CATEGORY_WEIGHT
    return places[: len(original)], places[len(original) :]


def _numbers(column: pd.Series[Any], name: str) -> NDArray[np.float64]:
    read = read_column(column, f"Column {name!r}")
    if read.kind not in ("number", "missing"):
        raise InvalidTableError(
            f"Column {name!r} holds numbers in the original and {read.description} values in the release. Expected "
            "numbers in both. Convert the column."
        )
    values = np.append(read.distinct.astype(np.float64), np.nan)
    return np.asarray(values[read.codes], np.float64)


def _standardized(
    originals: NDArray[np.float64], records: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Divide by the standard deviation; a missing value lies in the middle, and off it in a dimension of its own."""
    known = originals[~np.isnan(originals)]
    mean, deviation = (known.mean(), known.std()) if len(known) else (0.0, 1.0)
    sides = []
    for values in (originals, records):
        scaled = (values - mean) / (deviation if deviation > 0 else 1.0)
        is_missing = np.isnan(values)
        sides.append(np.column_stack([np.where(is_missing, 0.0, scaled), is_missing]))
    return sides[0], sides[1]
