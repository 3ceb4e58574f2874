"""The utility of a release, judged by a control of real people.

Definitions, measurements and references: ``docs/utility.md``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Any, Final, NamedTuple, TypeVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from privacy_assets.anonymization.result import Anonymization
from privacy_assets.columns.column_names import require_unique_text_names
from privacy_assets.columns.hierarchy import Hierarchy
from privacy_assets.columns.masks import ReleaseModel, Suppressed
from privacy_assets.columns.safe_names import type_name
from privacy_assets.contract.related import RelatedTables, refuse_with_related
from privacy_assets.display.numbers import percent
from privacy_assets.errors import InvalidTableError
from privacy_assets.setting_checks import is_integer, require
from privacy_assets.storage.algorithms import ALGORITHM, algorithm_of
from privacy_assets.utility.by_group import Tables, errors_within, groups_of, require_group
from privacy_assets.utility.counted import (
    ALL,
    ALL_AND_WITHOUT_ONE,
    N_GROUPS,
    ONE_EACH,
    Counts,
    Shared,
    count,
    make_plan,
    places_and_groups,
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
from privacy_assets.utility.related import assess_related
from privacy_assets.utility.result import (
    FIGURES,
    GROUP_FIGURES,
    LOWER,
    MEDIAN_ERROR,
    MEDIAN_ERROR_OF_ORIGINALS,
    MOST_SHOWN,
    N_ORIGINALS,
    PEOPLE,
    UPPER,
    UtilityAssessment,
    frame_of_groups,
)

N_QUERIES = 2000
FEWEST_CONTROL = 300
"""Fewest rows of a control that can judge; with fewer, its own sampling noise hides the differences."""
FEWEST_ROWS = N_GROUPS
CONFIDENCE = 0.95
UNSEEN_NOTED = 0.01
"""Share of the values of a column in no original from which it is noted."""
_NO_GROUPS = (
    "utility_by_group cannot be judged: within the groups of {!r}, the originals are not closer to the control than "
    "they are without regard to groups, beyond chance."
)
_RELATED = ("utility_pairs", "utility_counts", "utility_prediction")


Table = TypeVar("Table", pd.DataFrame, RelatedTables)


def assess_utility(
    original: Table,
    released: Table,
    control: Table,
    model: ReleaseModel | Anonymization | None = None,
    *,
    hierarchies: Mapping[str, Hierarchy] | None = None,
    domain: pd.DataFrame | None = None,
    bounds: Bounds = "tight",
    group: str | None = None,
    seed: int = 0,
) -> UtilityAssessment:
    """Measure what a release is worth: 1 is as good as the originals, 0 is every column shuffled.

    The control judges: other real people, about whom the release knows nothing. To the control, the originals are like
    any sample of real people, so a copy of them scores 1 and nothing scores more, except by chance.

    Related tables are judged by `related_views`, and the figures are those of the lowest view, which the settings name.
    The scores also have ``utility of`` each view and, for each child, ``rows_per_person_distance of`` it (total
    variation), ``lag_1_error of`` it and ``unchanged_error of`` it: how much rank correlations of numbers, and shares
    of unchanged other values, in consecutive rows of a person differ from the control's; and those of the originals.

    Parameters
    ----------
    original : DataFrame or RelatedTables
        The records from which the release was made, with the columns to judge: leave out those that nobody analyzes,
        such as keys. For an anonymized release, exactly the records that were released.
    released : DataFrame or RelatedTables
        The release. A column of the original that it lacks counts as missing in every record, unless the model
        describes it as suppressed; additional columns are ignored.
    control : DataFrame or RelatedTables
        Records of other people with the columns of the original; at least 300, else every figure is None.
    model : ReleaseModel or Anonymization, optional
        How generalized columns are to be read; one record is then drawn per released row (`draw_records`). By default
        the release has plain values.
    hierarchies : mapping of str to Hierarchy, optional
        The hierarchies that the model names; by default those of the anonymization.
    domain : DataFrame, optional
        Values that labels can stand for in addition to those of original and control, such as those of the synthetic
        records that were generalized.
    bounds : {"tight", "cell"}
        As for `draw_records`.
    group : str, optional
        Column of at most 200 values, such as a region, within whose groups the relations of all others are judged.
    seed : int
        Seed of the queries, pairs and drawn records. Candidates can be compared if they are judged with the same seed.

    Raises
    ------
    InvalidTableError
        If tables have no rows, the control lacks columns of the original, the release does not share any with it, or
        values are of different kinds.
    InvalidSettingError
        If the seed is not an integer of at least 0, the group is not a column with at most 200 values, or the model or
        a hierarchy does not fit.

    Notes
    -----
    With squared errors E against the control, a figure is ``(E_shuffled - E) / (E_shuffled - E_originals)``: the
    sampling noise of the control cancels. The time grows with rows times pairs of columns; above 25 columns, 300 pairs
    are drawn.

    Rows count as independent: for tables with several rows per person, the intervals are too narrow.
    """
    if isinstance(original, RelatedTables):
        given = {"model": model, "hierarchies": hierarchies, "domain": domain, "group": group}
        refuse_with_related(**given, bounds=None if bounds == "tight" else bounds)
        require(is_integer(seed, 0), "seed", seed, "an integer of at least 0")
        return assess_related(original, released, control, judge=partial(assess_utility, seed=seed), seed=seed)
    judge = Judge(original, control, group=group, seed=seed)
    return judge.assess(released, model, hierarchies=hierarchies, domain=domain, bounds=bounds)


class _Errors(NamedTuple):
    """The errors of one table by variant, of shape (n_variants, n_columns, n_pairs or n_queries)."""

    columns: NDArray[np.float64]
    pairs: NDArray[np.float64]
    counts: NDArray[np.float64]
    explained: NDArray[np.float64]


LIKELY: Final = 0.999
"""Share of people who are not unlikely."""


class Judge:
    """All that does not depend on the release, so that many releases can be judged in the same way.

    Without counting queries, their figures and those of predictions are None.
    """

    def __init__(
        self,
        original: pd.DataFrame,
        control: pd.DataFrame,
        *,
        group: str | None = None,
        seed: int = 0,
        n_queries: int | None = None,
    ) -> None:
        require(is_integer(seed, 0), "seed", seed, "an integer of at least 0")
        _check_tables(original, control)
        self.original, self.control, self.group, self.seed = original, control, group, int(seed)
        self.grid = Grid.of(original, control)
        if group is not None:
            require_group(group, original, control)
        codes, of_control = self.grid.encode(original, "original"), self.grid.encode(control, "control")
        random = np.random.default_rng(self.seed)
        is_ordered = [bins.is_ordered for bins in self.grid.columns]
        self.plan = make_plan(
            of_control, self.grid.n_bins, is_ordered, N_QUERIES if n_queries is None else n_queries, random
        )
        self.problem = _too_few(len(original), len(control))
        if self.problem:
            return
        self._codes, self._codes_of_control = codes, of_control
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
            group = self.group if self.group in kept else None
            found = Judge(self.original[kept], self.control[kept], group=group, seed=self.seed).assess(released)
            return found if group == self.group else self._without_groups(found)
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
            "group": self.group,
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
            scores = dict.fromkeys(_score_names(self.group is not None))
            return UtilityAssessment(scores, *nothing, frame_of_groups([]), (problem,), settings)
        found = self._assessed(count(codes, self.plan), settings)
        found = replace(found, notes=(*found.notes, *self._note_unseen(codes)))
        return found if self.group is None else self._with_groups(found, self.group, released, codes)

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

    def share_of_unlikely(self, released: pd.DataFrame, columns: Sequence[str]) -> float | None:
        """Return the share of the records that are less likely than 99.9 % of people; None if too few can be compared.

        As if no column depended on another: by the product of the shares, among the originals, of their bins of some
        columns. The release has all columns.
        """
        if self.problem or _too_few(len(self.original), len(self.control), len(released)):
            return None
        n = len(self.original)
        of_people, of_records = np.zeros(len(self.control)), np.zeros(len(released))
        encoded = self._codes, self._codes_of_control, self.grid.encode(released, "release")
        for bins, own, of_control, of_released in zip(self.grid.columns, *encoded, strict=True):
            if bins.name in columns:
                rarity = -np.log((np.bincount(own, minlength=bins.n_bins) + 0.5) / (n + 1))
                of_people += rarity[of_control]
                of_records += rarity[of_released]
        return float((of_records > np.quantile(of_people, LIKELY)).mean())

    def _note_unseen(self, codes: NDArray[np.uint8]) -> list[str]:
        shares = {bins.name: bins.share_unseen(own) for bins, own in zip(self.grid.columns, codes, strict=True)}
        noted = sorted((name for name in shares if shares[name] >= UNSEEN_NOTED), key=lambda name: -shares[name])
        said = [f"{percent(shares[name])} of the values of {name!r}" for name in noted[:MOST_SHOWN]]
        if len(noted) > MOST_SHOWN:
            said.append(f"at least {percent(UNSEEN_NOTED)} of those of {len(noted) - MOST_SHOWN} more columns")
        return [f"{', '.join(said)} occur in no original, beyond what is usual for other people."] if said else []

    def _with_groups(
        self, found: UtilityAssessment, group: str, released: pd.DataFrame, codes: NDArray[np.uint8]
    ) -> UtilityAssessment:
        """Add the figures within groups."""
        tables = Tables(self._codes, codes, self._codes_of_control)
        of, names = groups_of(group, Tables(self.original, released, self.control))
        place = self.grid.names.index(group)
        errors = errors_within(
            tables,
            Tables(*(places_and_groups(own)[1] for own in tables)),
            of,
            len(names),
            self.grid.n_bins,
            [pair for pair in self.plan.pairs if place not in pair],
        )
        kept = (errors.nothing - errors.released) * errors.people
        best = (errors.nothing - errors.original) * errors.people
        of_all = _with_interval(kept.sum(axis=1), best.sum(axis=1))
        of_each = [_with_interval(*own) for own in zip(kept.T, best.T, strict=True)]
        worst = min(filter(None, of_each), key=lambda own: own[2], default=None)
        rows = [
            (name, n_people, *(own or [np.nan] * 3))
            for name, n_people, own in zip(names, errors.people[0].tolist(), of_each, strict=True)
        ]
        nothing: list[float | None] = [None] * 3
        figures = [*(of_all or nothing), *(worst or nothing)]
        scores = dict(found.scores) | dict(zip(_with_ends(GROUP_FIGURES), figures, strict=True))
        found = replace(found, scores=scores, groups=frame_of_groups(rows))
        return found if of_all else self._without_groups(found, _NO_GROUPS.format(group))

    def _without_groups(self, found: UtilityAssessment, note: str = "") -> UtilityAssessment:
        """Say why there are no figures of groups."""
        note = note or f"The release suppresses {self.group!r}, so it has no figures by group."
        scores = {**found.scores, **dict.fromkeys(_with_ends(GROUP_FIGURES))}
        return replace(
            found, scores=scores, notes=(*found.notes, note), settings={**found.settings, "group": self.group}
        )

    def _errors(self, counts: Counts) -> _Errors:
        return self._errors_of(counts.of(ALL_AND_WITHOUT_ONE), self._judged)

    def _errors_of(self, table: Shared, judged: Shared) -> _Errors:
        distances = column_distances(table, judged)
        return _Errors(
            distances,
            pair_errors(table, judged, self.plan.pairs),
            count_errors(table, judged),
            explained_shares(table, judged, self.plan) if self.plan.queries else np.zeros_like(distances),
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
            if _is_beyond_chance(best):
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
            own = _interval_of(figures[name]) if name in figures else [None] * 3
            scores |= dict(zip(_with_ends([name]), own, strict=True))
        scores[PEOPLE] = _people(scores["utility"], self._tenth, len(self.original))
        scores[N_ORIGINALS] = len(self.original)
        scores[MEDIAN_ERROR], scores[MEDIAN_ERROR_OF_ORIGINALS] = self._median_error_of(table), self._median_error
        return UtilityAssessment(
            scores,
            self._columns_frame(errors),
            self._pairs_frame(errors, figures),
            frame_of_groups([]),
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


def _is_beyond_chance(best: NDArray[np.float64]) -> bool:
    """Return whether the originals are better than nothing, in all variants and beyond chance."""
    return bool((best > 0).all() and best[0] > max(_t_quantile() * _jackknife_error(best), 1e-12))


def _interval_of(values: NDArray[np.float64]) -> list[float]:
    """Return a figure and both ends of its interval."""
    margin = _t_quantile() * _jackknife_error(values)
    return [float(values[0]), float(values[0] - margin), float(values[0] + margin)]


def _with_interval(kept: NDArray[np.float64], best: NDArray[np.float64]) -> list[float] | None:
    return _interval_of(kept / best) if _is_beyond_chance(best) else None


def _people(utility: float | int | None, loss_of_a_tenth: float | None, n_originals: int) -> float | None:
    """Return the m of "worth a random sample of m people": 1 - u is about a (n / m - 1), with a from a tenth."""
    if utility is None or loss_of_a_tenth is None or loss_of_a_tenth <= 0:
        return None
    if utility >= 1:
        return float(n_originals)
    return n_originals / (1 + (1 - utility) * (N_GROUPS - 1) / loss_of_a_tenth)


def _score_names(has_groups: bool) -> list[str]:
    own = [PEOPLE, N_ORIGINALS, MEDIAN_ERROR, MEDIAN_ERROR_OF_ORIGINALS]
    return [*_with_ends(FIGURES), *own, *(_with_ends(GROUP_FIGURES) if has_groups else ())]


def _with_ends(figures: Sequence[str]) -> list[str]:
    return [name + end for name in figures for end in ("", LOWER, UPPER)]


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
