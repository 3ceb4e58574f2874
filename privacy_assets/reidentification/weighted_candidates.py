"""How probable each candidate is, if candidates are not all equally probable."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from privacy_assets.columns.coding import group_rows
from privacy_assets.columns.hierarchy import Hierarchy
from privacy_assets.columns.masks import Microaggregated, ReleaseModel, WeighingMask
from privacy_assets.display.notebook import ShowsFigures
from privacy_assets.errors import InvalidSettingError
from privacy_assets.reidentification.belief import MASS_TOLERANCE
from privacy_assets.reidentification.candidate_index import CandidateIndex
from privacy_assets.reidentification.masked_columns import (
    MaskedColumn,
    check_model,
    check_tables,
    check_truth,
    read_columns,
)
from privacy_assets.reidentification.record_keys import true_positions
from privacy_assets.reidentification.weighing_masks import WeighedColumn, check_alternatives, read_weighed_columns
from privacy_assets.setting_checks import is_number

# Probabilities whose ratio differs by less from 1 are equal: they are products of rounded numbers.
TIES = 1e-9


@dataclass(frozen=True, eq=False, repr=False)
class WeightedAssessment(ShowsFigures):
    """Result of :meth:`WeightedCandidates.assess`.

    Attributes
    ----------
    scores : dict
        ``max_reidentification_probability`` and ``mean_reidentification_probability`` (of the largest probability of
        any original: the probability that the best guess is right), ``expected_correct_links`` (share of the best
        guesses that are right, ties at random), ``mean_probability_of_truth``, ``mean_entropy`` and ``min_entropy`` (in
        nats),
        ``n_released``.
    records : DataFrame
        The figures by released record, as ``released, largest_probability, expected_correct, probability_of_truth,
        entropy``. Private.
    """

    main_figures = (
        "max_reidentification_probability",
        "mean_reidentification_probability",
        "expected_correct_links",
        "n_released",
    )

    scores: dict[str, float]
    records: pd.DataFrame


class WeightedCandidates:
    """The probability of each original to be that of a released record.

    Parameters
    ----------
    model : ReleaseModel, or sequence of (float, ReleaseModel)
        Mask of each column. Columns without a mask are not released. For masks that depend on one another: several
        models with their probabilities, which sum to 1; one model was drawn for each record, and all describe the same
        columns.
    original : DataFrame
        All records that a released record may come from, all equally probable before the release is seen.
    released : DataFrame
        The released table; its index is ignored.
    truth : str or array-like of int
        Origin of each released record: the name of a column that identifies the records of both tables, or the position
        in ``original`` of each released row.
    hierarchies : mapping of str to Hierarchy, optional
        Hierarchies that the model names.
    keys : sequence of str
        Released columns that link releases; they do not need a mask.

    Attributes
    ----------
    columns : tuple of str
        Columns of the original that the model describes.
    n_original, n_released : int
        Numbers of rows of the tables.
    truth : ndarray of shape (n_released,), dtype=int64
        Position in the original of each released row.

    Raises
    ------
    MaskError, InvalidTableError, InvalidSettingError
        If `CandidateIndex` would refuse the arguments; if several models do not determine how probable each cell is;
        or if noise differs greatly from its mask in 100 records or more: in the standard deviation by a factor of two,
        or in the number of values that a transition matrix keeps. Masks that differ between several models are not
        compared in this way.

    Notes
    -----
    ``docs/reidentification.md``, section "Weighted candidates". Originals are records, not people. The time grows with
    distinct released rows times distinct originals.
    """

    def __init__(
        self,
        model: ReleaseModel | Sequence[tuple[float, ReleaseModel]],
        original: pd.DataFrame,
        released: pd.DataFrame,
        truth: str | ArrayLike,
        *,
        hierarchies: Mapping[str, Hierarchy] | None = None,
        keys: Sequence[str] = (),
    ) -> None:
        check_tables(original, released)
        given_keys = [*keys, *([truth] if isinstance(truth, str) else [])]
        chances, models = _alternatives(model)
        for each in models:
            check_model(each, original, released, given_keys, None, may_weigh=True)
            _refuse_microaggregated(any(isinstance(mask, Microaggregated) for mask in each.masks.values()))
        varying = check_alternatives(models)
        self.n_original, self.n_released = len(original), len(released)
        self.columns, self.truth = tuple(models[0].masks), true_positions(truth, original, released)
        self._alternatives: list[_Alternative] = []
        is_possible = np.zeros(self.n_released, np.bool_)
        for chance, each in zip(chances, models, strict=True):
            sets = {name: mask for name, mask in each.masks.items() if not isinstance(mask, WeighingMask)}
            possible = read_columns(ReleaseModel(sets), original, released, hierarchies or {})
            weighed = read_weighed_columns(each, original, released)
            excludes = {name: column.excludes(self.truth) for name, column in (possible | weighed).items()}
            alike = {name: int(rows.sum()) for name, rows in excludes.items() if name not in varying}
            check_truth(alike, self.n_released)
            is_possible |= ~np.logical_or.reduce([np.zeros(self.n_released, np.bool_), *excludes.values()])
            for name, column in weighed.items():
                if name not in varying:
                    column.check_size(self.truth)
            parts: dict[str, tuple[_Part, ...]] = dict.fromkeys(self.columns, ())
            parts |= {name: (_SetPart(column),) for name, column in possible.items()}
            parts |= {name: (column,) for name, column in weighed.items()}
            self._alternatives.append(_Alternative(chance, parts))
        check_truth({"the masks together": int((~is_possible).sum())}, self.n_released)

    @classmethod
    def of_index(cls, index: CandidateIndex) -> WeightedCandidates:
        """Weigh the candidates of an index of records, which may combine several releases."""
        if index.people is not None:
            raise InvalidSettingError("The index counts people. Expected an index of records. Nothing was assessed.")
        _refuse_microaggregated(bool(index._microaggregated))
        weighted = cls.__new__(cls)
        weighted.columns, weighted.truth = index.columns, index.truth
        weighted.n_original, weighted.n_released = index.n_original, index.n_released
        parts = {name: tuple(_SetPart(part) for part in index.masked([name])) for name in index.columns}
        weighted._alternatives = [_Alternative(1.0, parts)]
        return weighted

    def probabilities(
        self, i: int, known: Sequence[str], *, error_rates: Mapping[str, float] | None = None
    ) -> NDArray[np.float64]:
        """Return the probability of each original to be that of released record ``i``.

        Parameters
        ----------
        i : int
            Position of the released record.
        known : sequence of str
            Columns of the model that the attacker knows about everybody in the original.
        error_rates : mapping of str to float, optional
            Probability, 0 to 1, that the attacker's value for a person in a known column is wrong; 0 if omitted. A
            wrong value is not informative: the true one is then that of a record drawn from the original.

        Returns
        -------
        ndarray of shape (n_original,), dtype=float64
            They sum to 1.

        Raises
        ------
        InvalidSettingError
            If the record does not exist, a known column is not in the model, or an error rate is not a number from 0 to
            1 or does not belong to a known column.
        """
        if not 0 <= i < self.n_released:
            raise InvalidSettingError(
                f"There is no released record {i}. Expected a number from 0 to {self.n_released - 1}."
            )
        posterior = self._posterior(known, error_rates)
        return posterior.of_row(i)[posterior.point_of]

    def assess(
        self, known: Sequence[str] | None = None, *, error_rates: Mapping[str, float] | None = None
    ) -> WeightedAssessment:
        """Compute the figures of all released records.

        Parameters
        ----------
        known, error_rates
            As for :meth:`probabilities`; by default all columns of the model are known.
        """
        posterior = self._posterior(self.columns if known is None else known, error_rates)
        figures = np.zeros((self.n_released, 4))
        for rows in posterior.rows_with_equal_cells(self.n_released):
            each = posterior.of_row(int(rows[0]))
            own = each[posterior.point_of[self.truth[rows]]]
            largest = each.max()
            is_largest = each >= largest * (1 - TIES)
            is_right = own >= largest * (1 - TIES)
            positive, counts = each[each > 0], posterior.counts[each > 0]
            entropy = -float((counts * positive * np.log(positive)).sum())
            figures[rows, 0] = largest
            figures[rows, 1] = is_right / posterior.counts[is_largest].sum()
            figures[rows, 2] = own
            figures[rows, 3] = max(0.0, entropy)
        names = ["largest_probability", "expected_correct", "probability_of_truth", "entropy"]
        records = pd.DataFrame(figures, columns=names)
        records.insert(0, "released", np.arange(self.n_released))
        scores = {
            "max_reidentification_probability": float(records["largest_probability"].max()),
            "mean_reidentification_probability": float(records["largest_probability"].mean()),
            "expected_correct_links": float(records["expected_correct"].mean()),
            "mean_probability_of_truth": float(records["probability_of_truth"].mean()),
            "mean_entropy": float(records["entropy"].mean()),
            "min_entropy": float(records["entropy"].min()),
            "n_released": self.n_released,
        }
        return WeightedAssessment(scores, records)

    def _posterior(self, known: Sequence[str], error_rates: Mapping[str, float] | None) -> _Posterior:
        rates = dict(error_rates or {})
        if isinstance(known, str):
            raise InvalidSettingError("`known` is a string. Expected a list of column names. Nothing was assessed.")
        unknown = [name for name in known if name not in self.columns]
        without_use = [name for name in rates if name not in known]
        invalid = [name for name, rate in rates.items() if not is_number(rate, 0, 1)]
        problems = []
        if unknown:
            problems.append(f"`known` names columns that the release model does not describe: {unknown}.")
        if without_use:
            problems.append(f"`error_rates` has columns that are not in `known`: {without_use}.")
        if invalid:
            problems.append(f"The error rates of {invalid} are not numbers from 0 to 1.")
        if problems:
            raise InvalidSettingError(
                f"{' '.join(problems)} Expected columns of {list(self.columns)}. Nothing was assessed."
            )
        names = list(dict.fromkeys(known))
        return _Posterior(self._alternatives, {name: float(rates.get(name, 0)) for name in names}, self.n_original)


class _SetPart:
    """A released column whose cells determine the possible originals, all of them equally probable."""

    def __init__(self, column: MaskedColumn) -> None:
        self.codes, self.n_codes = column.codes, column.n_codes
        self.cell_of_row, self.n_cells = column.sets.set_of_row, column.sets.n_sets
        self._sets = column.sets

    def log_likelihood(self, cell: int) -> NDArray[np.float64]:
        """Return the logarithm of the likelihood of each code, up to a constant of the cell."""
        found = np.full(self.n_codes, -np.inf)
        found[self._sets.codes_of(cell)] = 0.0
        return found


_Part = _SetPart | WeighedColumn


class _Alternative(NamedTuple):
    """One way to mask records: its probability, and the released parts of each column."""

    chance: float
    parts: Mapping[str, Sequence[_Part]]


def _refuse_microaggregated(has_some: bool) -> None:
    if has_some:
        raise InvalidSettingError(
            "The model has microaggregated columns, which are possible only together, and are not weighed one by one. "
            "Expected other masks. Use CandidateIndex."
        )


def _alternatives(model: ReleaseModel | Sequence[tuple[float, ReleaseModel]]) -> tuple[list[float], list[ReleaseModel]]:
    """Return the probabilities and the models of the ways to mask records."""
    if isinstance(model, ReleaseModel):
        return [1.0], [model]
    is_read = isinstance(model, Sequence) and all(isinstance(each, Sequence) and len(each) == 2 for each in model)
    chances = [each[0] for each in model] if is_read else []
    if not all(is_number(chance, 0, 1) for chance in chances) or abs(sum(chances) - 1) > MASS_TOLERANCE:
        raise InvalidSettingError(
            "The model is neither a ReleaseModel nor pairs of a probability and a ReleaseModel, with probabilities "
            "that sum to 1. Expected one of the two. Nothing was assessed."
        )
    # A model that is never drawn does not mask any record.
    return [float(chance) for chance in chances if chance > 0], [each[1] for each in model if each[0] > 0]


class _Posterior:
    """Probabilities of originals by Bayes, for some known columns with their error rates, over all ways to mask.

    ``point_of`` numbers the distinct originals, ``counts`` how many each stands for.
    """

    def __init__(self, alternatives: Sequence[_Alternative], rates: Mapping[str, float], n_original: int) -> None:
        self._parts = [part for _, parts in alternatives for name in rates for part in parts[name]]
        self.point_of = np.zeros(n_original, np.int64)
        if self._parts:
            self.point_of, _ = group_rows([part.codes for part in self._parts], [part.n_codes for part in self._parts])
        _, example, self.counts = np.unique(self.point_of, return_index=True, return_counts=True)
        self._alternatives = [
            (log(chance), [(rate, [(own, own.codes[example]) for own in parts[name]]) for name, rate in rates.items()])
            for chance, parts in alternatives
        ]

    def rows_with_equal_cells(self, n_released: int) -> list[NDArray[np.int64]]:
        """Return the released rows that have the same probabilities, in groups."""
        if not self._parts:
            return [np.arange(n_released)]
        groups, n_groups = group_rows([p.cell_of_row for p in self._parts], [p.n_cells for p in self._parts])
        order = np.argsort(groups, kind="stable")
        return np.split(order, np.cumsum(np.bincount(groups, minlength=n_groups))[:-1])

    def of_row(self, i: int) -> NDArray[np.float64]:
        """Return the probability of one original of each number to be that of a released row."""
        log_weights = np.full(len(self.counts), -np.inf)
        for log_chance, columns in self._alternatives:
            of_alternative = np.full(len(self.counts), log_chance)
            for rate, parts in columns:
                own = np.zeros(len(self.counts))
                for part, codes in parts:
                    own += part.log_likelihood(int(part.cell_of_row[i]))[codes]
                of_alternative += own if rate == 0 else self._with_errors(own, rate)
            log_weights = np.logaddexp(log_weights, of_alternative)
        weights = np.exp(log_weights - log_weights.max())
        return np.asarray(weights / (weights @ self.counts))

    def _with_errors(self, log_likelihood: NDArray[np.float64], rate: float) -> NDArray[np.float64]:
        """Mix in the mean likelihood of all originals: the likelihood of the cell if the known value is wrong."""
        largest = log_likelihood.max()
        if largest == -np.inf:  # this way to mask cannot give the cell
            return log_likelihood
        likelihood = np.exp(log_likelihood - largest)
        mean = (likelihood @ self.counts) / self.counts.sum()
        with np.errstate(divide="ignore"):  # the rate may be too small for a float next to the mean
            return np.asarray(np.log((1 - rate) * likelihood + rate * mean) + largest)
