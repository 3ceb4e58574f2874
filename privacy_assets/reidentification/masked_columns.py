"""Masked columns: originals as codes, the possible codes of each released row, and both as arrays for the kernel."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from privacy_assets.anonymization.quasi_identifiers import read_dimension
from privacy_assets.columns.coding import group_rows
from privacy_assets.columns.column_names import require_unique_text_names
from privacy_assets.columns.hierarchy import Hierarchy
from privacy_assets.columns.masks import Mask, Microaggregated, ReleaseModel, Suppressed, WeighingMask, columns_of
from privacy_assets.columns.safe_names import type_name
from privacy_assets.errors import InvalidSettingError, InvalidTableError, MaskError
from privacy_assets.reidentification.code_sets import CodeSets, coarsen, partition_of, used
from privacy_assets.reidentification.kernels.candidates import Boxes, Points
from privacy_assets.reidentification.mask_sets import read_mask
from privacy_assets.reidentification.released_values import Original

# Up to this many possible keys per record, counting all keys is faster than sorting the occurring ones.
KEYS_PER_ROW = 16


@dataclass(frozen=True)
class MaskedColumn:
    """A column as codes below ``n_codes``, merged if released cells do not distinguish them.

    ``sets`` are the possible codes of each released row. If the mask is a function of the original, ``set_of_code`` is
    the released cell of each code, or -1.
    """

    codes: NDArray[np.int32]
    n_codes: int
    sets: CodeSets
    set_of_code: NDArray[np.int64] | None

    @cached_property
    def mean_share(self) -> float:
        """Mean share of the originals that match the cell of a released row."""
        counts = np.concatenate([[0], np.cumsum(np.bincount(self.codes, minlength=self.n_codes))])
        n_inside = counts[self.sets.high + 1] - counts[self.sets.low]
        rows_of_set = np.bincount(self.sets.set_of_row, minlength=self.sets.n_sets)
        return float(n_inside @ rows_of_set[self.sets.set_of_range] / len(self.sets.set_of_row) / len(self.codes))

    def excludes(self, truth: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return whether the cell of each released row excludes its true original."""
        return ~self.sets.contain(self.codes[truth].astype(np.int64))

    def take(self, rows: NDArray[np.int64]) -> MaskedColumn:
        """Return the column for other released rows."""
        return replace(self, sets=self.sets._replace(set_of_row=self.sets.set_of_row[rows]))


def check_tables(
    original: pd.DataFrame, released: pd.DataFrame, names: tuple[str, str] = ("original", "released")
) -> None:
    """Refuse inputs that are not frames, have no rows, or have repeated or unnamed columns."""
    for words, table in zip(names, (original, released), strict=True):
        if not isinstance(table, pd.DataFrame):
            raise InvalidTableError(
                f"The {words} table is a {type_name(table)}. Expected a pandas DataFrame. Convert it first."
            )
        require_unique_text_names(table)
        if len(table) == 0:
            raise InvalidTableError(f"The {words} table has no rows. Expected at least one. Nothing was assessed.")


def check_model(
    model: ReleaseModel,
    original: pd.DataFrame,
    released: pd.DataFrame,
    keys: Sequence[str],
    subject: str | None,
    *,
    may_weigh: bool = False,
) -> None:
    """Refuse masks of missing columns, released columns without a mask and, unless allowed, masks that weigh."""
    if not isinstance(model, ReleaseModel):
        raise InvalidSettingError(f"The model is a {type_name(model)}. Expected a ReleaseModel.")
    if not model.masks:
        raise InvalidSettingError("The release model has no mask. Expected one per released column.")
    unknown = {name: type(mask).__name__ for name, mask in model.masks.items() if not isinstance(mask, Mask)}
    if unknown:
        raise InvalidSettingError(
            f"These columns' masks are not Mask objects: {unknown}. Expected masks such as Label('age')."
        )
    if not may_weigh:
        refuse_weighing(model)
    problems = []
    used = {name: columns_of(mask) for name, mask in model.masks.items()}
    lost = [name for name, columns in used.items() if columns and name not in original.columns]
    if subject is not None and subject not in original.columns:
        lost.append(subject)
    if lost:
        problems.append(f"The original lacks the columns {lost}; it has {list(original.columns)}.")
    absent = sorted({column for columns in used.values() for column in columns} - set(released.columns))
    if absent:
        problems.append(f"The release lacks the columns {absent}, which masks read; it has {list(released.columns)}.")
    described = {*used, *(column for columns in used.values() for column in columns), *keys}
    silent = [name for name in released.columns if name not in described]
    if silent:
        problems.append(f"The released columns {silent} have no mask.")
    if problems:
        raise InvalidTableError(f"{' '.join(problems)} Correct the release model. Nothing was assessed.")


def refuse_weighing(model: ReleaseModel) -> None:
    """Refuse masks that make originals more or less probable, if all candidates are counted equally."""
    weighing = [name for name, mask in model.masks.items() if isinstance(mask, WeighingMask)]
    if weighing:
        raise InvalidSettingError(
            f"The masks of {weighing} make originals more or less probable; if all counted equally, the risk would "
            "look lower than it is. Expected masks that only determine the possible originals. Use WeightedCandidates."
        )


def check_truth(n_excluded: Mapping[str, int], n_released: int) -> None:
    """Refuse a model that excludes true originals of released records (Lemma 13, Proposition 16)."""
    n_wrong = {name: n for name, n in n_excluded.items() if n}
    if n_wrong:
        raise MaskError(
            f"The true original is not among the candidates of released records, by column: {n_wrong} of "
            f"{n_released}. The masks of these columns differ from the release model, or the truth names the "
            "wrong originals; every figure would be too low. Nothing was assessed; correct the model."
        )


def read_columns(
    model: ReleaseModel,
    original: pd.DataFrame,
    released: pd.DataFrame,
    hierarchies: Mapping[str, Hierarchy],
    on_column: Callable[[int], None] | None = None,
) -> dict[str, MaskedColumn]:
    """Read all columns that are not suppressed or microaggregated; report all unreadable ones at once."""
    columns, problems = {}, []
    for name, mask in model.masks.items():
        if isinstance(mask, Suppressed | Microaggregated):
            continue
        try:
            source = Original(name, original[name], read_dimension(original[name]))
            columns[name] = read_masked(source, released, mask, hierarchies)
        except InvalidTableError as error:
            problems.append(str(error))
            continue
        if on_column is not None:
            on_column(len(columns))
    if problems:
        raise InvalidTableError(f"{' '.join(problems)} Nothing was assessed.")
    return columns


def read_masked(
    source: Original, released: pd.DataFrame, mask: Mask, hierarchies: Mapping[str, Hierarchy]
) -> MaskedColumn:
    """Read the released cells of an original column."""
    sets = used(read_mask(source, released, mask, hierarchies))
    codes, n_codes, sets = coarsen(source.dimension.codes.astype(np.int64), source.n_values, sets)
    return MaskedColumn(codes, n_codes, sets, partition_of(sets, n_codes))


def make_boxes(columns: Sequence[MaskedColumn]) -> tuple[Boxes, NDArray[np.int64]]:
    """Return the distinct boxes of the released rows in lexicographic order, and the box of each row."""
    rows, n_boxes = group_rows([c.sets.set_of_row for c in columns], [c.sets.n_sets for c in columns])
    example = np.zeros(n_boxes, np.int64)
    example[rows] = np.arange(len(rows))
    sets = np.column_stack([column.sets.set_of_row[example] for column in columns])
    order = np.lexsort(sets.T[::-1])
    place = np.empty(n_boxes, np.int64)
    place[order] = np.arange(n_boxes)
    n_sets = np.cumsum([0, *(column.sets.n_sets for column in columns)])
    n_ranges = [np.diff(column.sets.first) for column in columns]
    boxes = Boxes(
        np.ascontiguousarray((sets[order] + n_sets[:-1]).astype(np.int32)),
        np.concatenate([[0], np.cumsum(np.concatenate(n_ranges))]).astype(np.int64),
        np.concatenate([column.sets.low for column in columns]).astype(np.int32),
        np.concatenate([column.sets.high for column in columns]).astype(np.int32),
    )
    return boxes, place[rows]


def make_points(columns: Sequence[MaskedColumn], people: NDArray[np.int64] | None) -> Points:
    """Return the distinct originals, sorted by their codes in the first column and the second."""
    parts = [column.codes for column in columns]
    n_codes = [column.n_codes for column in columns]
    n_people = 0
    if people is not None:
        n_people = int(people.max()) + 1
        parts, n_codes = [*parts, people.astype(np.int32)], [*n_codes, n_people]
    distinct, weights = _distinct(parts, n_codes)
    codes = distinct[: len(columns)]
    starts = np.concatenate([[0], np.cumsum(np.bincount(codes[0], minlength=n_codes[0]))]).astype(np.int64)
    person = np.zeros(0, np.int32) if people is None else np.ascontiguousarray(distinct[-1])
    return Points(np.ascontiguousarray(codes), weights, person, starts, n_people)


def point_of_original(columns: Sequence[MaskedColumn], points: Points) -> NDArray[np.int64]:
    """Return the point of each original."""
    n_points = points.codes.shape[1]
    codes = [np.concatenate([own, column.codes]) for own, column in zip(points.codes, columns, strict=True)]
    groups, _ = group_rows(codes, [column.n_codes for column in columns])
    # Points are distinct, so the number of a group is that of its point.
    return groups[n_points:]


def _distinct(
    parts: Sequence[NDArray[np.int32]], n_codes: Sequence[int]
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Return the distinct rows of coded columns, sorted by the first column and the second, with their counts."""
    n_rows = len(parts[0])
    n_keys = 1
    for n in n_codes:
        n_keys *= n
    if n_keys <= KEYS_PER_ROW * n_rows:
        key = np.zeros(n_rows, np.int64)
        for part, n in zip(parts, n_codes, strict=True):
            key = key * n + part
        counts = np.bincount(key, minlength=n_keys)
        keys = np.flatnonzero(counts)
        weights = counts[keys]
        columns = np.empty((len(parts), len(keys)), np.int32)
        for t in reversed(range(len(parts))):
            keys, columns[t] = np.divmod(keys, n_codes[t])
        return columns, weights.astype(np.int64)
    groups, n_groups = group_rows(list(parts), n_codes)
    example = np.zeros(n_groups, np.int64)
    example[groups] = np.arange(n_rows)
    weights = np.bincount(groups, minlength=n_groups)
    order = np.lexsort([part[example] for part in reversed(parts[:2])])
    return np.stack([part[example[order]] for part in parts]), weights[order].astype(np.int64)
