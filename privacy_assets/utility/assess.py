"""The utility of a release, judged by a control of real people.

Definitions, measurements and references: ``docs/utility.md``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from privacy_assets.anonymization.result import Anonymization
from privacy_assets.columns.column_names import require_unique_text_names
from privacy_assets.columns.hierarchy import Hierarchy
from privacy_assets.columns.masks import ReleaseModel, Suppressed
from privacy_assets.columns.safe_names import type_name
from privacy_assets.errors import InvalidTableError
from privacy_assets.setting_checks import is_integer, require
from privacy_assets.storage.algorithms import ALGORITHM, algorithm_of
from privacy_assets.utility.counted import (
    ALL,
    ALL_AND_WITHOUT_ONE,
    N_GROUPS,
    ONE_EACH,
    Counts,
    Shared,
    count,
    make_plan,
)
from privacy_assets.utility.drawing import Bounds, draw_records
from privacy_assets.utility.errors_of_figures import (
    column_distances,
    count_errors,
    explained_shares,
    pair_errors,
    relative_count_errors,
)
from privacy_assets.utility.grid import Grid
from privacy_assets.utility.result import (
    FIGURES,
    LOWER,
    MEDIAN_ERROR,
    MEDIAN_ERROR_OF_ORIGINALS,
    N_ORIGINALS,
    PEOPLE,
    UPPER,
    UtilityAssessment,
)

N_QUERIES = 2000
FEWEST_CONTROL = 300
"""Fewest rows of a control that can judge; with fewer, its own sampling noise hides the differences."""
FEWEST_ROWS = N_GROUPS
CONFIDENCE = 0.95
_RELATED = ("utility_pairs", "utility_counts", "utility_prediction")


def assess_utility(
    original: pd.DataFrame,
    released: pd.DataFrame,
    control: pd.DataFrame,
    model: ReleaseModel | Anonymization | None = None,
    *,
    hierarchies: Mapping[str, Hierarchy] | None = None,
    domain: pd.DataFrame | None = None,
    bounds: Bounds = "tight",
    seed: int = 0,
) -> UtilityAssessment:
    """Measure what a release is worth: 1 is as good as the originals, 0 is every column shuffled.

    The control judges: other real people, about whom the release knows nothing. To the control, the originals are like
    any sample of real people, so a copy of them scores 1 and nothing scores more, except by chance.

    Parameters
    ----------
    original : DataFrame
        The records from which the release was made, with the columns to judge: leave out those that nobody analyzes,
        such as keys. For an anonymized release, exactly the records that were released.
    released : DataFrame
        The release. A column of the original that it lacks counts as missing in every record, unless the model
        describes it as suppressed; additional columns are ignored.
    control : DataFrame
        Records of other people with the columns of the original; at least 300, else every figure is None.
    model : ReleaseModel or Anonymization, optional
        How generalized columns are to be read; one record is then drawn per released row (`draw_records`). By default
        the release has plain values.
    hierarchies : mapping of str to Hierarchy, optional
        The hierarchies that the model names.
    domain : DataFrame, optional
        Values that labels can stand for in addition to those of original and control, such as those of the synthetic
        records that were generalized.
    bounds : {"tight", "cell"}
        As for `draw_records`.
    seed : int
        Seed of the queries, pairs and drawn records. Candidates can be compared if they are judged with the same seed.

    Raises
    ------
    InvalidTableError
        If tables have no rows, the control lacks columns of the original, the release does not share any with it, or
        values are of different kinds.
    InvalidSettingError
        If the seed is not an integer of at least 0, or the model or a hierarchy does not fit.

    Notes
    -----
    With squared errors E against the control, a figure is ``(E_shuffled - E) / (E_shuffled - E_originals)``: the
    sampling noise of the control cancels. The time grows with rows times pairs of columns; above 25 columns, 300 pairs
    are drawn.

    Rows count as independent: for tables with several rows per person, the intervals are too narrow.
    """
    judge = Judge(original, control, seed=seed)
    return judge.assess(released, model, hierarchies=hierarchies, domain=domain, bounds=bounds)


class _Errors(NamedTuple):
    """The errors of one table by variant, of shape (n_variants, n_columns, n_pairs or n_queries)."""

    columns: NDArray[np.float64]
    pairs: NDArray[np.float64]
    counts: NDArray[np.float64]
    explained: NDArray[np.float64]


class Judge:
    """All that does not depend on the release, so that many releases can be judged in the same way.

    Without counting queries, their figures are None.
    """

    def __init__(
        self, original: pd.DataFrame, control: pd.DataFrame, *, seed: int = 0, n_queries: int | None = None
    ) -> None:
        require(is_integer(seed, 0), "seed", seed, "an integer of at least 0")
        _check_tables(original, control)
        self.original, self.control, self.seed = original, control, int(seed)
        self.grid = Grid.of(original)
        codes, of_control = self.grid.encode(original, "original"), self.grid.encode(control, "control")
        random = np.random.default_rng(self.seed)
        is_ordered = [bins.is_ordered for bins in self.grid.columns]
        self.plan = make_plan(
            of_control, self.grid.n_bins, is_ordered, N_QUERIES if n_queries is None else n_queries, random
        )
        self.problem = _too_few(len(original), len(control))
        if self.problem:
            return
        counted = count(of_control, self.plan)
        self._judged = counted.of(ALL_AND_WITHOUT_ONE)
        own = count(codes, self.plan)
        shuffled = count(np.stack([random.permutation(np.sort(bins)) for bins in codes]), self.plan)
        self._originals, self._shuffled = self._errors(own), self._errors(shuffled)
        self._median_error = self._median_error_of(own.of(ALL_AND_WITHOUT_ONE))
        self._uniform = self._distances_of_uniform()
        self._tenth = self._loss_of_a_tenth(own, counted)

    def assess(
        self,
        released: pd.DataFrame,
        model: ReleaseModel | Anonymization | None = None,
        *,
        hierarchies: Mapping[str, Hierarchy] | None = None,
        domain: pd.DataFrame | None = None,
        bounds: Bounds = "tight",
        seed: int | None = None,
    ) -> UtilityAssessment:
        """Judge a release; see `assess_utility`. The seed is that of the drawn records, by default the judge's."""
        _check_table("released", released)
        seed = self.seed if seed is None else seed
        left_out: set[str] = set()
        if model is not None:
            known = _known_values([self.original, self.control, *([] if domain is None else [domain])])
            masks = model.model.masks if isinstance(model, Anonymization) else getattr(model, "masks", {})
            left_out = {name for name, mask in masks.items() if isinstance(mask, Suppressed)} - {*released.columns}
            released = draw_records(released, model, seed, domain=known, hierarchies=hierarchies, bounds=bounds)
        if not left_out.isdisjoint(self.grid.names):
            kept = [name for name in self.grid.names if name not in left_out]
            _require_columns(kept)
            return Judge(self.original[kept], self.control[kept], seed=self.seed).assess(released)
        shared = [name for name in self.grid.names if name in released.columns]
        if not shared:
            raise InvalidTableError(
                f"The release has none of the {len(self.grid.names)} columns of the original. Expected at least one. "
                "For a generalized release, pass its model. Nothing was assessed."
            )
        codes = self.grid.encode(released, "release")
        problem = self.problem or _too_few(len(self.original), len(self.control), len(released))
        settings = {
            ALGORITHM: algorithm_of("utility_assessment"),
            "seed": self.seed,
            "columns": self.grid.names,
            "lacked_columns": [name for name in self.grid.names if name not in shared],
            "n_original": len(self.original),
            "n_control": len(self.control),
            "n_released": len(released),
            "n_pairs": len(self.plan.pairs),
            "n_queries": len(self.plan.queries),
        }
        if problem:
            nothing = pd.DataFrame({"column": self.grid.names}), pd.DataFrame({"one": [], "other": []}, dtype=object)
            return UtilityAssessment(dict.fromkeys(_score_names()), *nothing, (problem,), settings)
        return self._assessed(count(codes, self.plan), settings)

    def columns_worth_less_than_independent(self, released: pd.DataFrame) -> list[str]:
        """Return the columns whose pairs are farther from those of people than if no column depended on another.

        The upper end of the worth of a column's pairs is below 0, at 95 % for all columns together. A column counts
        only if the pairs of the originals show that it depends on others. The release has all columns.
        """
        if self.problem or _too_few(len(self.original), len(self.control), len(released)) or not self.plan.pairs:
            return []
        names = self.grid.names
        of_column = np.array([[place in pair for place in range(len(names))] for pair in self.plan.pairs], np.float64)
        errors = self._errors(count(self.grid.encode(released, "release"), self.plan))
        kept = (self._shuffled.pairs - errors.pairs) @ of_column
        best = (self._shuffled.pairs - self._originals.pairs) @ of_column
        n_errors = _t_quantile((1 - CONFIDENCE) / len(names))
        lost = []
        for name, own, whole in zip(names, kept.T, best.T, strict=True):
            if (whole > 0).all() and whole[0] > max(n_errors * _jackknife_error(whole), 1e-12):
                worth = own / whole
                lost += [name] if worth[0] + n_errors * _jackknife_error(worth) < 0 else []
        return lost

    def _errors(self, counts: Counts) -> _Errors:
        return self._errors_of(counts.of(ALL_AND_WITHOUT_ONE), self._judged)

    def _errors_of(self, table: Shared, judged: Shared) -> _Errors:
        return _Errors(
            column_distances(table, judged),
            pair_errors(table, judged, self.plan.pairs),
            count_errors(table, judged),
            explained_shares(table, judged, self.plan),
        )

    def _distances_of_uniform(self) -> NDArray[np.float64]:
        """Return the distances of columns that are uniform."""
        flat = [bins.uniform for bins in self.grid.columns]
        return np.stack(
            [0.5 * np.abs(own - judged).sum(axis=1) for own, judged in zip(flat, self._judged.columns, strict=True)],
            axis=1,
        )

    def _parts(self, errors: _Errors) -> dict[str, tuple[NDArray[np.float64], NDArray[np.float64]]]:
        """Return for each figure the distances of a table and of the originals from its zero, by variant."""
        own, worst = self._originals, self._shuffled
        return {
            "utility_columns": (
                (self._uniform - errors.columns).sum(axis=1),
                (self._uniform - own.columns).sum(axis=1),
            ),
            "utility_pairs": (
                worst.pairs.sum(axis=1) - errors.pairs.sum(axis=1),
                worst.pairs.sum(axis=1) - own.pairs.sum(axis=1),
            ),
            "utility_counts": (
                worst.counts.sum(axis=1) - errors.counts.sum(axis=1),
                worst.counts.sum(axis=1) - own.counts.sum(axis=1),
            ),
            "utility_prediction": (errors.explained.sum(axis=1), own.explained.sum(axis=1)),
        }

    def _figures(self, errors: _Errors) -> dict[str, NDArray[np.float64]]:
        """Return the figures that can be judged, of shape (n_variants,)."""
        figures = {}
        for name, (kept, best) in self._parts(errors).items():
            spread = _t_quantile() * _jackknife_error(best)
            if best[0] > max(spread, 1e-12) and (best > 0).all():
                figures[name] = kept / best
        if set(_RELATED) <= set(figures):
            # As in a prediction, worse than zero counts as zero: counts of Mondrian with k = 500 on adult are -3.
            figures["utility"] = np.mean([np.maximum(figures[name], 0.0) for name in _RELATED], axis=0)
        return figures

    def _loss_of_a_tenth(self, own: Counts, counted: Counts) -> float | None:
        """Return 1 - utility of a random tenth of the originals, the mean of ten; None if it cannot be judged."""
        tenths = self._errors_of(own.of(ONE_EACH), counted.of(ALL))
        # The references are computed from all rows.
        full = self._parts(self._originals)
        if "utility" not in self._figures(self._originals):
            return None
        kept = {
            "utility_pairs": self._shuffled.pairs[0].sum() - tenths.pairs.sum(axis=1),
            "utility_counts": self._shuffled.counts[0].sum() - tenths.counts.sum(axis=1),
            "utility_prediction": tenths.explained.sum(axis=1),
        }
        return float(1 - np.mean([kept[name] / full[name][1][0] for name in _RELATED]))

    def _assessed(self, counts: Counts, settings: dict[str, Any]) -> UtilityAssessment:
        table = counts.of(ALL_AND_WITHOUT_ONE)
        errors = self._errors_of(table, self._judged)
        figures = self._figures(errors)
        scores: dict[str, float | int | None] = {}
        for name in FIGURES:
            values = figures.get(name)
            value, margin = (
                (None, None) if values is None else (float(values[0]), _t_quantile() * _jackknife_error(values))
            )
            scores[name] = value
            scores[name + LOWER] = None if value is None or margin is None else value - margin
            scores[name + UPPER] = None if value is None or margin is None else value + margin
        scores[PEOPLE] = _people(scores["utility"], self._tenth, len(self.original))
        scores[N_ORIGINALS] = len(self.original)
        scores[MEDIAN_ERROR], scores[MEDIAN_ERROR_OF_ORIGINALS] = self._median_error_of(table), self._median_error
        return UtilityAssessment(
            scores,
            self._columns_frame(errors),
            self._pairs_frame(errors, figures),
            _notes(figures, self.grid),
            settings,
        )

    def _median_error_of(self, table: Shared) -> float | None:
        if not self.plan.queries:
            return None
        return float(np.median(relative_count_errors(table, self._judged)[0]))

    def _columns_frame(self, errors: _Errors) -> pd.DataFrame:
        own = self._originals
        best = own.explained[0].sum()
        lost = (own.explained[0] - errors.explained[0]) / best if best > 0 else np.zeros(len(self.grid.names))
        frame = pd.DataFrame(
            {
                "column": self.grid.names,
                "distance": errors.columns[0],
                "distance_of_originals": own.columns[0],
                "distance_of_uniform": self._uniform[0],
                "explained": errors.explained[0],
                "explained_of_originals": own.explained[0],
                "lost": lost,
            }
        )
        return frame.sort_values("lost", ascending=False, kind="stable", ignore_index=True)

    def _pairs_frame(self, errors: _Errors, figures: Mapping[str, NDArray[np.float64]]) -> pd.DataFrame:
        names = self.grid.names
        lost = np.full(len(self.plan.pairs), np.nan)
        if "utility_pairs" in figures:
            best = self._shuffled.pairs[0].sum() - self._originals.pairs[0].sum()
            lost = (errors.pairs[0] - self._originals.pairs[0]) / best
        frame = pd.DataFrame(
            {
                "one": pd.Series([names[i] for i, _ in self.plan.pairs], dtype=object),
                "other": pd.Series([names[j] for _, j in self.plan.pairs], dtype=object),
                "lost": lost,
            }
        )
        return frame.sort_values("lost", ascending=False, kind="stable", ignore_index=True)


@cache
def _t_quantile(outside: float = 1 - CONFIDENCE) -> float:
    """Return the number of standard errors from the middle to the end of an interval from this many groups."""
    from scipy.special import stdtrit

    return float(stdtrit(N_GROUPS - 1, 1 - outside / 2))


def _known_values(tables: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Return the values of all tables by column; types may differ from the first table's only without an order."""
    columns = {}
    for name in tables[0].columns:
        parts = [table[name] for table in tables if name in table.columns]
        ranked = isinstance(parts[0].dtype, pd.CategoricalDtype)
        kept = [part for part in parts if not ranked or part.dtype == parts[0].dtype]
        columns[name] = pd.concat(kept, ignore_index=True)
    return pd.DataFrame(columns)


def _jackknife_error(values: NDArray[np.float64]) -> float:
    """Return the standard error of variant 0 from the variants that each lack one group."""
    without = values[1:]
    return float(np.sqrt((len(without) - 1) / len(without) * ((without - without.mean()) ** 2).sum()))


def _people(utility: float | int | None, loss_of_a_tenth: float | None, n_originals: int) -> float | None:
    """Return the m of "worth a random sample of m people": 1 - u is about a (n / m - 1), with a from a tenth."""
    if utility is None or loss_of_a_tenth is None or loss_of_a_tenth <= 0:
        return None
    if utility >= 1:
        return float(n_originals)
    return n_originals / (1 + (1 - utility) * (N_GROUPS - 1) / loss_of_a_tenth)


def _score_names() -> list[str]:
    own = [name + end for name in FIGURES for end in ("", LOWER, UPPER)]
    return [*own, PEOPLE, N_ORIGINALS, MEDIAN_ERROR, MEDIAN_ERROR_OF_ORIGINALS]


def _notes(figures: Mapping[str, Any], grid: Grid) -> tuple[str, ...]:
    notes = []
    if len(grid.columns) == 1:
        notes.append("One column has no pairs, so there is only utility_columns.")
    elif lost := [name for name in _RELATED if name not in figures]:
        notes.append(
            f"{', '.join(lost)} cannot be judged, nor utility: in the originals the columns are not more dependent "
            "than shuffled columns, within the error of the control."
        )
    if "utility_columns" not in figures:
        notes.append(
            "utility_columns cannot be judged: within the error of the control every column of the originals is "
            "uniform or constant."
        )
    return tuple(notes)


def _too_few(n_original: int, n_control: int, n_released: int | None = None) -> str:
    if n_control < FEWEST_CONTROL:
        return (
            f"The control has {n_control:,} records. Expected at least {FEWEST_CONTROL}: with fewer its own sampling "
            "noise hides the differences. Nothing was judged; use a larger control."
        )
    for words, n in (("original", n_original), ("release", n_released)):
        if n is not None and n < FEWEST_ROWS:
            return (
                f"The {words} has {n} records. Expected at least {FEWEST_ROWS}, one for each group from which an "
                "interval is computed. Nothing was judged."
            )
    return ""


def _check_tables(original: pd.DataFrame, control: pd.DataFrame) -> None:
    _check_table("original", original)
    _check_table("control", control)
    _require_columns(list(original.columns))
    lacked = [name for name in original.columns if name not in control.columns]
    if lacked:
        raise InvalidTableError(
            f"The control lacks the columns {lacked} of the original. Expected all of them. Nothing was assessed."
        )


def _check_table(words: str, table: object) -> None:
    if not isinstance(table, pd.DataFrame):
        raise InvalidTableError(f"The {words} table is a {type_name(table)}. Expected a pandas DataFrame.")
    require_unique_text_names(table)
    if len(table) == 0:
        raise InvalidTableError(f"The {words} table has no rows. Expected at least one. Nothing was assessed.")


def _require_columns(names: Sequence[str]) -> None:
    if not names:
        raise InvalidTableError("The original has no columns to judge. Expected at least one. Nothing was assessed.")
