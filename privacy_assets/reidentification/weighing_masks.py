"""Masks that make originals more or less probable: the likelihood of a released cell for each original value."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from math import inf, log
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from privacy_assets.anonymization.quasi_identifiers import read_dimension
from privacy_assets.columns.masks import (
    Exact,
    GaussianNoise,
    HierarchyMapping,
    Pram,
    RankBuckets,
    ReleaseModel,
    WeighingMask,
    columns_of,
)
from privacy_assets.errors import InvalidSettingError, InvalidTableError, MaskError
from privacy_assets.reidentification.belief import MASS_TOLERANCE
from privacy_assets.reidentification.released_values import (
    Original,
    as_categories,
    codes_among,
    plain_values,
    read_released,
    refuse,
    rows_of_values,
    value_texts,
)
from privacy_assets.setting_checks import is_integer, is_number

# From this many records on, the size of the noise is compared with its mask.
ROWS_TO_COMPARE = 100
# Standard deviations must differ by less than this factor. Noise that was rounded, or cut off at 0, is within it.
LARGEST_FACTOR = 2.0
# A number of kept values is refused if a number this far from its mean has a probability below 2 exp(-20) = 4e-9.
EXPONENT = 20
# With fewer records in a bucket, shares of many records are far from those of the bucket.
FEWEST_PER_BUCKET = 20


class WeighedColumn(ABC):
    """A released column whose cells make originals more or less probable.

    The last code is that of the missing value, which stays missing, as is the last cell.
    """

    def __init__(self, original: Original, n_values: int, cell_of_row: NDArray[np.int64]) -> None:
        self.where = original.where
        self.codes, self.n_codes = original.dimension.codes, original.n_values
        self.cell_of_row, self.n_cells = cell_of_row, n_values + 1

    def log_likelihood(self, cell: int) -> NDArray[np.float64]:
        """Return the logarithm of the likelihood of each code."""
        found = np.full(self.n_codes, -inf)
        if cell == self.n_cells - 1:
            found[-1] = 0.0
        else:
            found[:-1] = self._of_values(cell)
        return found

    def excludes(self, truth: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return whether the cell of each released row excludes its true original."""
        codes = self.codes[truth]
        is_possible = (codes == self.n_codes - 1) == (self.cell_of_row == self.n_cells - 1)
        has_value = is_possible & (codes < self.n_codes - 1)
        is_possible[has_value] = self._of_pairs(self.cell_of_row[has_value], codes[has_value]) > -inf
        return np.asarray(~is_possible)

    def check_size(self, truth: NDArray[np.int64]) -> None:
        """Refuse a mask from which the true changes differ greatly; missing values are ignored."""
        has_value = self.codes[truth] < self.n_codes - 1
        if has_value.sum() >= ROWS_TO_COMPARE:
            self._check_pairs(self.cell_of_row[has_value], self.codes[truth][has_value])

    @abstractmethod
    def _of_values(self, cell: int) -> NDArray[np.float64]:
        """Return the logarithm of the likelihood of each code except that of the missing value."""

    @abstractmethod
    def _of_pairs(self, cells: NDArray[np.int64], codes: NDArray[Any]) -> NDArray[np.float64]:
        """Return the same for pairs of a cell and a code, neither of them missing."""

    @abstractmethod
    def _check_pairs(self, cells: NDArray[np.int64], codes: NDArray[Any]) -> None:
        """Refuse a mask that does not fit the pairs of a cell and its true original."""


class _Gaussian(WeighedColumn):
    def __init__(self, original: Original, column: pd.Series[Any], mask: GaussianNoise) -> None:
        if not is_number(mask.sd, 0) or mask.sd == 0:
            raise InvalidSettingError(
                f"{original.where}: the standard deviation of its noise is {mask.sd!r}. Expected a number above 0."
            )
        if original.scale.kind not in ("number", "missing"):
            raise InvalidSettingError(
                f"{original.where} has Gaussian noise, but {original.scale.kind} values. Expected numbers. For times, "
                "use BoundedNoise."
            )
        read, values = read_released(original, column)
        if read.kind not in ("number", "missing"):
            raise InvalidTableError(
                f"{original.where} has Gaussian noise, but {read.description} in the release. Expected numbers."
            )
        super().__init__(original, len(values), rows_of_values(read))
        self.sd = float(mask.sd)
        self._values, self._known = values.astype(np.float64), original.scale.known.astype(np.float64)

    def _of_differences(self, differences: NDArray[np.float64]) -> NDArray[np.float64]:
        with np.errstate(over="ignore"):
            return np.asarray(-((differences / self.sd) ** 2) / 2 - log(self.sd) - log(2 * np.pi) / 2)

    def _of_values(self, cell: int) -> NDArray[np.float64]:
        with np.errstate(over="ignore"):
            return self._of_differences(self._known - self._values[cell])

    def _of_pairs(self, cells: NDArray[np.int64], codes: NDArray[Any]) -> NDArray[np.float64]:
        with np.errstate(over="ignore"):
            return self._of_differences(self._known[codes] - self._values[cells])

    def _check_pairs(self, cells: NDArray[np.int64], codes: NDArray[Any]) -> None:
        with np.errstate(over="ignore"):
            factor = float(np.sqrt((((self._known[codes] - self._values[cells]) / self.sd) ** 2).mean()))
        if not 1 / LARGEST_FACTOR <= factor <= LARGEST_FACTOR:
            raise MaskError(
                f"{self.where}: the standard deviation of its noise is {factor:.3g} times that of its mask. Expected "
                "about the same; otherwise the probabilities are wrong. Nothing was assessed; correct the model."
            )


class _Pram(WeighedColumn):
    def __init__(self, original: Original, column: pd.Series[Any], mask: Pram) -> None:
        _check_transitions(original.where, mask)
        if original.scale.kind not in ("text", "category", "boolean", "number", "missing"):
            raise InvalidSettingError(
                f"{original.where} has a transition matrix, but {original.scale.kind} values. Expected text, "
                "categories, booleans or numbers."
            )
        read, _ = read_released(original, column)
        is_ranked = original.scale.kind == "category"
        self._released = [str(v) for v in (as_categories(original.scale, read) if is_ranked else plain_values(read))]
        super().__init__(original, len(self._released), rows_of_values(read))
        self._texts = value_texts(original.scale)
        n_lacking = sum(text not in mask.transitions for text in self._texts)
        if n_lacking:
            raise InvalidSettingError(
                f"{original.where}: its transition matrix lacks {n_lacking} of {len(self._texts)} original values. "
                "Expected the probabilities of each. Nothing was assessed."
            )
        shares = [[mask.transitions[own].get(cell, 0.0) for own in self._texts] for cell in self._released]
        self._shares = np.array(shares, np.float64).reshape(len(self._released), len(self._texts))
        with np.errstate(divide="ignore"):
            self._logs = np.log(self._shares)
        self._kept = np.array([mask.transitions[own].get(own, 0.0) for own in self._texts])

    def _of_values(self, cell: int) -> NDArray[np.float64]:
        return np.asarray(self._logs[cell])

    def _of_pairs(self, cells: NDArray[np.int64], codes: NDArray[Any]) -> NDArray[np.float64]:
        return np.asarray(self._logs[cells, codes])

    def _check_pairs(self, cells: NDArray[np.int64], codes: NDArray[Any]) -> None:
        """Compare the number of kept values with its mean, by Bernstein's inequality."""
        number_of = {text: code for code, text in enumerate(self._texts)}
        own_code = np.array([number_of.get(text, -1) for text in self._released])
        _check_kept(self.where, int((own_code[cells] == codes).sum()), self._kept[codes], "as in the original")


class _RankBuckets(WeighedColumn):
    """Equal values may be in several buckets; the shares of their records weigh."""

    def __init__(self, original: Original, column: pd.Series[Any], mask: RankBuckets) -> None:
        scale = original.scale
        counts = np.bincount(original.dimension.codes, minlength=scale.n_known)[: scale.n_known]
        n_records, n_buckets = int(counts.sum()), mask.n_buckets
        if not is_integer(n_buckets, 2, max(n_records // FEWEST_PER_BUCKET, 2)):
            raise InvalidSettingError(
                f"{original.where}: it has {n_buckets!r} buckets of ranks. Expected an integer of at least 2, "
                f"with at least {FEWEST_PER_BUCKET} of its {n_records} values in each."
            )
        if not scale.is_ordered and scale.kind != "missing":
            raise InvalidSettingError(f"{original.where} has buckets of ranks, but {scale.kind} values.")
        read, values = read_released(original, column)
        self._code_of_cell = codes_among(scale, values)
        refuse(original, self._code_of_cell < 0, read.codes, "are not original values", "values swapped by rank")
        super().__init__(original, len(values), rows_of_values(read))
        ends = np.cumsum(counts)
        edges = np.arange(n_buckets + 1) * n_records / n_buckets
        overlap = np.minimum(ends[:, None], edges[1:]) - np.maximum((ends - counts)[:, None], edges[:-1])
        overlap = np.maximum(overlap, 0)
        self._shares = overlap / np.maximum(counts, 1)[:, None]
        self._reached = self._shares @ swapped_shares(n_buckets)
        # A value belongs to the bucket of most of its records; those of a bucket are received at random.
        self._own = self._shares.argmax(axis=1)
        received = overlap.T @ np.eye(n_buckets)[self._own] * (n_buckets / max(n_records, 1))
        self._kept = (self._reached * received[:, self._own].T).sum(axis=1)

    def _of_values(self, cell: int) -> NDArray[np.float64]:
        return np.asarray(np.log(self._reached @ self._shares[self._code_of_cell[cell]]))

    def _of_pairs(self, cells: NDArray[np.int64], codes: NDArray[Any]) -> NDArray[np.float64]:
        return np.asarray(np.log((self._reached[codes] * self._shares[self._code_of_cell[cells]]).sum(axis=1)))

    def _check_pairs(self, cells: NDArray[np.int64], codes: NDArray[Any]) -> None:
        """Compare the number of values that stay in a bucket; both of a pair do, so half as many are independent."""
        n_kept = int((self._own[self._code_of_cell[cells]] == self._own[codes]).sum())
        _check_kept(self.where, n_kept, self._kept[codes], "in their bucket", together=2)


def swapped_shares(n_buckets: int) -> NDArray[np.float64]:
    """Return the share of the records of each bucket that receive a value of each bucket, for many records.

    Bucket after bucket, what others left is divided: with the probability q of its own bucket, a record takes a second
    one out of it. The matrix is symmetric, and its rows sum to 1.
    """
    shares = np.zeros((n_buckets, n_buckets))
    for r in range(n_buckets):
        chosen = 0.5 ** np.arange(1, n_buckets - r + 1)
        chosen /= chosen.sum()
        n_choosing = (1 - shares[r, :r].sum()) / (1 + chosen[0])
        shares[r, r:] = shares[r:, r] = n_choosing * chosen
        shares[r, r] *= 2
    return shares


def _check_kept(where: str, n_kept: int, chances: NDArray[np.float64], words: str, together: int = 1) -> None:
    """Refuse a mask by which another number of values would be kept, by Bernstein's inequality."""
    away = abs(n_kept - float(chances.sum()))
    spread = together * (float((chances * (1 - chances)).sum()) + away / 3)
    if away**2 / 2 > EXPONENT * spread + MASS_TOLERANCE * len(chances):
        raise MaskError(
            f"{where}: {n_kept} of {len(chances)} values are {words}, but {chances.sum():.0f} by the mask would be. "
            "Expected about the same; otherwise the probabilities are wrong. Nothing was assessed; correct the model."
        )


def read_weighed_columns(
    model: ReleaseModel, original: pd.DataFrame, released: pd.DataFrame
) -> dict[str, WeighedColumn]:
    """Read all columns whose masks weigh originals; report all unreadable ones at once."""
    columns: dict[str, WeighedColumn] = {}
    problems = []
    for name, mask in model.masks.items():
        if not isinstance(mask, WeighingMask):
            continue
        source = Original(name, original[name], read_dimension(original[name]))
        try:
            kinds: dict[type[Any], Any] = {Pram: _Pram, GaussianNoise: _Gaussian, RankBuckets: _RankBuckets}
            columns[name] = kinds[type(mask)](source, released[mask.column], mask)
        except InvalidTableError as error:
            problems.append(str(error))
    if problems:
        raise InvalidTableError(f"{' '.join(problems)} Nothing was assessed.")
    return columns


def check_alternatives(models: Sequence[ReleaseModel]) -> frozenset[str]:
    """Refuse models that cannot be alternatives of each other; return the columns whose masks differ.

    If masks differ, each must determine how probable a cell is. `Exact`, `HierarchyMapping` with a level and `Pram`
    give probabilities; `GaussianNoise` gives densities, which cannot be compared with them.
    """
    first = models[0].masks
    if any(set(model.masks) != set(first) for model in models):
        raise InvalidSettingError(
            "The models describe different columns. Expected masks of the same columns in each. Nothing was assessed."
        )
    varying = frozenset(name for name in first if any(model.masks[name] != first[name] for model in models))
    refused = []
    for name in sorted(varying):
        masks = [model.masks[name] for model in models]
        is_probability = [
            isinstance(mask, Exact | Pram) or (isinstance(mask, HierarchyMapping) and mask.level is not None)
            for mask in masks
        ]
        has_one_column = len({columns_of(mask) for mask in masks}) == 1
        are_densities = all(isinstance(mask, GaussianNoise) for mask in masks)
        if not has_one_column or not (all(is_probability) or are_densities):
            refused.append(name)
    if refused:
        raise InvalidSettingError(
            f"The masks of {refused} differ between the models and do not determine how probable each cell is. "
            "Expected, for one released column, GaussianNoise in all models, or Exact, Pram and HierarchyMapping with "
            "a level."
        )
    return varying


def _check_transitions(where: str, mask: Pram) -> None:
    """Refuse a matrix that does not contain probabilities; values are not shown."""
    rows: Any = mask.transitions
    if not isinstance(rows, Mapping) or not all(isinstance(row, Mapping) for row in rows.values()):
        raise InvalidSettingError(f"{where}: its transitions are not a mapping of mappings. Expected a matrix.")
    n_wrong = sum(
        not all(is_number(share, 0, 1) for share in row.values()) or abs(sum(row.values()) - 1) > MASS_TOLERANCE
        for row in rows.values()
    )
    if n_wrong:
        raise InvalidSettingError(
            f"{where}: {n_wrong} of {len(rows)} rows of its transition matrix are not probabilities that sum to 1. "
            "Expected one row for each original value."
        )
