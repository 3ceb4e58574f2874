"""One plain record for each released one, with which users of a generalized release can work."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from privacy_assets.anonymization.quasi_identifiers import Scale, read_dimension
from privacy_assets.anonymization.result import Anonymization
from privacy_assets.columns.coding import group_rows
from privacy_assets.columns.column_names import require_unique_text_names
from privacy_assets.columns.hierarchy import Hierarchy
from privacy_assets.columns.masks import (
    HierarchyMapping,
    Interval,
    Label,
    Mask,
    ReleaseModel,
    Suppressed,
    ValueSet,
    columns_of,
)
from privacy_assets.columns.safe_names import type_name
from privacy_assets.errors import InvalidSettingError, InvalidTableError
from privacy_assets.reidentification.code_sets import CodeSets
from privacy_assets.reidentification.mask_sets import read_mask
from privacy_assets.reidentification.released_values import Original
from privacy_assets.setting_checks import is_integer, one_of, require
from privacy_assets.utility.possible_values import possible_values

Bounds = Literal["tight", "cell"]
N_ITERATIONS = 30
"""Iterations of the self-consistent margin; later ones do not change any figure by more than 0.001."""
_CONSEQUENCE = "No record was drawn."
Labeled = Interval | ValueSet | HierarchyMapping | Label
"""Masks whose cells stand for several values; the cells of all others are used as they are."""


class _Column(NamedTuple):
    """A labeled column: its values, those each row can have, and whether all that a label lists occurs in its class."""

    scale: Scale
    dtype: Any
    sets: CodeSets
    is_tight: bool
    is_uniform: bool


def draw_records(
    table: pd.DataFrame,
    model: ReleaseModel | Anonymization,
    seed: int = 0,
    *,
    bounds: Bounds = "tight",
    domain: pd.DataFrame | None = None,
    hierarchies: Mapping[str, Hierarchy] | None = None,
) -> pd.DataFrame:
    """Draw one plain record for each released one, so that any program can analyze a generalized release.

    Each label is replaced by a value that it covers:

    - Ranges that end at values of their class, and sets: in every class each listed value, and both ends, are given to
      at least one record; the others are drawn by the margin of the column.
    - Ranges of cells, and labels of other programs: drawn by the margin.
    - Nodes of hierarchies: each value below a node is as probable as any other.

    The margin is found from the release alone: it is the one that would itself give the labels (Turnbull [1]_).
    All other masks leave one value per cell, such as a number with noise, which is kept. Values in different columns
    are drawn independently within a class, because the release contains nothing more.

    Parameters
    ----------
    table : DataFrame
        The release.
    model : ReleaseModel or Anonymization
        How its columns are to be read. An anonymization also includes the `bounds` that were used.
    seed : int
        Seed of the draws, at least 0.
    bounds : {"tight", "cell"}
        Whether ranges end at values that occur in their class, or where space was cut; the setting of `anonymize`. Sets
        always contain the values that occur, unless they come from an anonymization elsewhere: then use "cell" and
        `Label`.
    domain : DataFrame, optional
        Columns whose values are known to exist, such as those of a code book. Needed if a release does not show what
        its labels cover: ordered categories, and nodes of hierarchies by rule. By default only the release is used:
        values between the ends of ranges are the other ends, and for whole numbers within 10,000 all whole numbers.
    hierarchies : mapping of str to Hierarchy, optional
        The hierarchies that the model names; by default those of the anonymization.

    Returns
    -------
    records : DataFrame
        As many rows as the release, in its order, with a new index: the described columns that it contains, and those
        that masks do not read. It is as private as the release.

    Raises
    ------
    InvalidSettingError
        If a setting does not exist, or a hierarchy or the domain of a column is missing.
    InvalidTableError
        If the release has no rows, lacks columns of the model, or has labels that cannot be read or do not fit any
        value; they are counted.

    References
    ----------
    .. [1] B. W. Turnbull (1976), "The empirical distribution function with arbitrarily grouped, censored and truncated
       data", doi:10.1111/j.2517-6161.1976.tb01597.x.
    """
    require(is_integer(seed, 0), "seed", seed, "an integer of at least 0", _CONSEQUENCE)
    require(bounds in get_args(Bounds), "bounds", bounds, one_of(get_args(Bounds)), _CONSEQUENCE)
    if isinstance(model, Anonymization):
        hierarchies = {**model.hierarchies, **(hierarchies or {})}
        bounds, model = model.settings.get("bounds", bounds), model.model
    _check(table, model)
    labeled = _read(table, model, bounds, domain, hierarchies or {})
    class_of_row = _classes([each.sets.set_of_row for each in labeled.values()], len(table))
    random = np.random.default_rng(seed)
    columns: dict[str, Any] = {}
    for name, mask in model.masks.items():
        if name in labeled:
            codes = _draw(labeled[name], class_of_row, random)
            columns[name] = _values(labeled[name], codes)
        elif not isinstance(mask, Suppressed):
            columns[name] = table[columns_of(mask)[0]].array
        elif name in table.columns:
            columns[name] = table[name].array
    read = {column for mask in model.masks.values() for column in columns_of(mask)} | set(model.masks)
    columns |= {name: table[name].array for name in table.columns if name not in read}
    return pd.DataFrame(columns, index=pd.RangeIndex(len(table)))


def _check(table: object, model: object) -> None:
    if not isinstance(table, pd.DataFrame):
        raise InvalidTableError(f"The release is a {type_name(table)}. Expected a pandas DataFrame. {_CONSEQUENCE}")
    require_unique_text_names(table)
    if len(table) == 0:
        raise InvalidTableError(f"The release has no rows. Expected at least one. {_CONSEQUENCE}")
    if not isinstance(model, ReleaseModel):
        raise InvalidSettingError(f"The model is a {type_name(model)}. Expected a ReleaseModel. {_CONSEQUENCE}")
    unknown = sorted(name for name, mask in model.masks.items() if not isinstance(mask, Mask))
    if unknown:
        raise InvalidSettingError(f"The masks of these columns are not Mask objects: {unknown}. {_CONSEQUENCE}")
    absent = sorted({each for mask in model.masks.values() for each in columns_of(mask)} - set(table.columns))
    if absent:
        raise InvalidTableError(f"The release lacks the columns {absent}, which masks read. {_CONSEQUENCE}")


def _read(
    table: pd.DataFrame,
    model: ReleaseModel,
    bounds: Bounds,
    domain: pd.DataFrame | None,
    hierarchies: Mapping[str, Hierarchy],
) -> dict[str, _Column]:
    """Read all labeled columns; report all unreadable ones at once."""
    labeled, problems = {}, []
    for name, mask in model.masks.items():
        if not isinstance(mask, Labeled):
            continue
        known = None if domain is None or name not in domain.columns else domain[name]
        try:
            values, readable = possible_values(name, table, mask, known, hierarchies)
            dimension = read_dimension(values)
            sets = read_mask(Original(name, values, dimension), table, readable, hierarchies)
        except InvalidTableError as error:
            problems.append(str(error))
            continue
        n_empty = int((np.diff(sets.first)[sets.set_of_row] == 0).sum())
        if n_empty:
            problems.append(f"Column {name!r}: no value fits the labels of {n_empty} rows.")
        is_tight = isinstance(mask, ValueSet) or (isinstance(mask, Interval) and bounds == "tight")
        is_uniform = isinstance(mask, HierarchyMapping)
        labeled[name] = _Column(dimension.scale, values.dtype, sets, is_tight, is_uniform)
    if problems:
        raise InvalidTableError(f"{' '.join(problems)} {_CONSEQUENCE}")
    return labeled


def _classes(sets: list[NDArray[np.int64]], n_rows: int) -> NDArray[np.int64]:
    """Give one number to rows whose labels are equal in all columns."""
    if not sets:
        return np.zeros(n_rows, np.int64)
    return group_rows(sets, [int(each.max()) + 1 for each in sets])[0]


def _draw(column: _Column, class_of_row: NDArray[np.int64], random: np.random.Generator) -> NDArray[np.int64]:
    """Draw a code for each row."""
    sets, n_codes = column.sets, column.scale.n_known + 1
    n_rows = len(sets.set_of_row)
    codes = np.zeros(n_rows, np.int64)
    is_certain = np.zeros(n_rows, np.bool_)
    if column.is_tight:
        listed, first = _listed(column)
        place = _places(class_of_row, random)
        start = first[sets.set_of_row]
        is_certain = place < first[sets.set_of_row + 1] - start
        codes[is_certain] = listed[(start + place)[is_certain]]
    certain = np.bincount(codes[is_certain], minlength=n_codes).astype(np.float64)
    left = np.bincount(sets.set_of_row[~is_certain], minlength=sets.n_sets)
    weights = np.ones(n_codes) if column.is_uniform else _margin(sets, left, certain)
    codes[~is_certain] = _drawn(sets, sets.set_of_row[~is_certain], weights, random)
    return codes


def _listed(column: _Column) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the codes that certainly occur in a class, by set, and where those of each set begin."""
    sets = column.sets
    if not column.scale.is_ordered:
        first = np.concatenate([[0], np.cumsum(sets.high - sets.low + 1)])
        offsets = np.arange(first[-1]) - np.repeat(first[:-1], np.diff(first))
        return offsets + np.repeat(sets.low, np.diff(first)), first[sets.first]
    # Both ends of a range. A range that continues to the missing value ends at two values: the largest and that one.
    missing = column.scale.n_known
    is_joined = (sets.high == missing) & (sets.low < missing)
    last_known = np.where(is_joined, missing - 1, sets.high)
    ends = np.stack([sets.low, last_known, sets.high], axis=1)
    is_new = np.stack([np.ones(len(ends), np.bool_), last_known > sets.low, is_joined], axis=1)
    first = np.concatenate([[0], np.cumsum(is_new.sum(axis=1))])
    return ends[is_new], first[sets.first]


def _places(class_of_row: NDArray[np.int64], random: np.random.Generator) -> NDArray[np.int64]:
    """Count the rows of each class from 0 in random order."""
    order = random.permutation(len(class_of_row))
    order = order[np.argsort(class_of_row[order], kind="stable")]
    sizes = np.bincount(class_of_row)
    places = np.empty(len(order), np.int64)
    places[order] = np.arange(len(order)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return places


def _margin(sets: CodeSets, n_of_set: NDArray[np.int64], certain: NDArray[np.float64]) -> NDArray[np.float64]:
    """Find the margin consistent with the labels: each value has its certain rows and its part of each set.

    ``n_of_set`` are the rows of each set whose value is not certain.
    """
    n_codes, n_rows = len(certain), max(float(certain.sum() + n_of_set.sum()), 1.0)
    weights = np.full(n_codes, 1 / n_codes)
    for _ in range(N_ITERATIONS):
        upto = np.concatenate([[0.0], np.cumsum(weights)])
        of_set = np.bincount(sets.set_of_range, upto[sets.high + 1] - upto[sets.low], sets.n_sets)
        factor = (n_of_set / np.maximum(of_set, 1e-300))[sets.set_of_range]
        steps = np.bincount(sets.low, factor, n_codes + 1) - np.bincount(sets.high + 1, factor, n_codes + 1)
        # Differences of sums may be a little below 0; a value that a set needs must not vanish.
        weights = (certain + np.maximum(weights * np.cumsum(steps)[:-1], 0)) / n_rows + 1e-12
    return weights


def _drawn(
    sets: CodeSets, set_of_row: NDArray[np.int64], weights: NDArray[np.float64], random: np.random.Generator
) -> NDArray[np.int64]:
    """Draw a code from the set of each row, by weight."""
    upto = np.concatenate([[0.0], np.cumsum(weights)])
    ends = np.concatenate([[0.0], np.cumsum(upto[sets.high + 1] - upto[sets.low])])
    first, after = sets.first[set_of_row], sets.first[set_of_row + 1]
    at = ends[first] + random.random(len(set_of_row)) * (ends[after] - ends[first])
    chosen = np.clip(np.searchsorted(ends, at, side="right") - 1, first, after - 1)
    at = upto[sets.low[chosen]] + at - ends[chosen]
    codes = np.searchsorted(upto, at, side="right") - 1
    return np.asarray(np.clip(codes, sets.low[chosen], sets.high[chosen]), np.int64)


def _values(column: _Column, codes: NDArray[np.int64]) -> Any:
    """Return codes as values of the column's kind."""
    scale = column.scale
    codes = np.where(codes == scale.n_known, -1, codes)
    if isinstance(column.dtype, pd.CategoricalDtype) and column.dtype.ordered:
        texts = {str(category): place for place, category in enumerate(column.dtype.categories)}
        place_of = np.array([*(texts[text] for text in scale.known), -1], np.int64)
        return pd.Categorical.from_codes(place_of[codes], dtype=column.dtype)
    known: Any = scale.known
    if scale.kind == "aware datetime":
        known = pd.DatetimeIndex(known).tz_localize("UTC").tz_convert(scale.time_zone).array
    elif known.dtype.kind in "ib" and (codes < 0).any():
        known = pd.array(known, dtype="Int64" if known.dtype.kind == "i" else "boolean")
    return pd.api.extensions.take(known, codes, allow_fill=True)
