"""Frames and figures of an mpUCC assessment from the results of its searches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from statistics import fmean
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from privacy_assets.engine.protocol import Engine
from privacy_assets.mpucc.control import Matches, count_agreements
from privacy_assets.mpucc.divided_search import DividedSearch, find_mpuccs_by
from privacy_assets.mpucc.intervals import Estimate, wilson_interval
from privacy_assets.mpucc.kernels.agree_sets import agree_sets, singles_out
from privacy_assets.mpucc.kernels.closest_rows import find_closest_rows
from privacy_assets.mpucc.kernels.code_blocks import group_by_width
from privacy_assets.mpucc.kernels.common_columns import MOST_COLUMNS, find_common_columns
from privacy_assets.mpucc.kernels.search import LevelProgress, SearchInput, SearchResult, search_levels
from privacy_assets.mpucc.people import Subjects
from privacy_assets.mpucc.placed_tables import PlacedTables, distinguished_people
from privacy_assets.mpucc.preprocess import CodedTable, PreprocessedTables
from privacy_assets.mpucc.settings import MUTUAL_INFORMATION, MpuccSettings, count_combinations

MOST_RECORDS = 400
FEWEST_RECORDS = 50
CELLS_COMPARED = 20_000_000_000
"""Cells that may be compared; this takes about half a minute on one core."""
FEWEST_ALIKE = 3
"""Fewest originals who have the same record for none of them to be a lone one: `release.policy.PEOPLE_PER_VALUE`."""


class AnySizeRate(NamedTuple):
    """Share of the synthetic records of a sample that single out one original by some combination of columns."""

    rate: Estimate
    n_records: int


def sample_any_size(tables: PreprocessedTables, seed: int, confidence_level: float) -> AnySizeRate:
    """Estimate the identification rate over combinations of all sizes, exact for each record of a sample.

    The sample has 400 records; fewer, but at least 50, if more than 2e10 cells would have to be compared; all records
    if the table has no more. Wilson's interval is too wide rather than too narrow if most records are in the sample.
    """
    synthetic, original = tables.synthetic, tables.original
    columns = [np.concatenate(pair) for pair in zip(synthetic.codes, original.codes, strict=True)]
    weights = np.concatenate([synthetic.multiplicities, original.multiplicities])
    affordable = CELLS_COMPARED // max(len(weights) * len(columns), 1)
    n_records = min(MOST_RECORDS, max(affordable, FEWEST_RECORDS), synthetic.n_assessed)
    drawn = np.random.default_rng(seed).choice(synthetic.n_assessed, n_records, replace=False)
    row_of_record = np.repeat(np.arange(synthetic.n_distinct), synthetic.multiplicities)
    is_candidate = (np.arange(len(weights)) >= synthetic.n_distinct) & (weights == 1)
    n_identified = 0
    for row in row_of_record[drawn]:
        if weights[row] == 1:
            others = np.arange(len(weights)) != row
            sets, sizes = agree_sets(columns, int(row))
            n_identified += singles_out(sets[others], sizes[others], is_candidate[others])
    return AnySizeRate(wilson_interval(n_identified, n_records, confidence_level), n_records)


class SearchProgress(NamedTuple):
    """Progress of a search before it continues: sizes are numbers of columns, now and at most.

    ``n_done`` of ``n_candidates`` combinations of this size are done.
    """

    stage: str
    combo_size: int
    max_combo_size: int
    combinations_checked: int
    n_identified: int
    n_done: int
    n_candidates: int

    @property
    def bar(self) -> tuple[str, int, int]:
        """Stage, the amount done, and the total, for a progress bar."""
        return f"{self.stage}, {self.combo_size} of {self.max_combo_size} columns", self.n_done, self.n_candidates


ROWS_AT_ONCE: Final = 2**16
"""Records whose values are described at once."""


class _Joined(Sequence[NDArray[Any]]):
    """Columns of two tables, which are put together whenever they are asked for, because a search copies them."""

    def __init__(self, pairs: Sequence[tuple[NDArray[Any], NDArray[Any]]]) -> None:
        self._pairs = pairs

    def __len__(self) -> int:
        return len(self._pairs)

    def __getitem__(self, c: Any) -> Any:
        """Return a column."""
        return np.concatenate(self._pairs[c])


class SyntheticSearch:
    """The synthetic table, its columns in search order, ready to be searched against other tables.

    With ``only_with``, the position of a column, that column comes first, and only combinations that contain it are
    searched.
    """

    def __init__(
        self,
        tables: PreprocessedTables,
        settings: MpuccSettings,
        n_threads: int,
        progress: Callable[[SearchProgress], None] | None,
        only_with: int | None = None,
        engine: Engine | PlacedTables | None = None,
        name: str = "",
    ) -> None:
        self.tables, self.settings, self.n_threads, self.progress = tables, settings, n_threads, progress
        self.engine, self.name = engine, name
        self.max_size = settings.max_size(len(tables.columns))
        # A stable sort: ties stay in the order of the table.
        self.order = np.argsort(-tables.synthetic.n_values, kind="stable")
        self.only_with_first = only_with is not None
        if only_with is not None:
            self.order = np.concatenate([[only_with], self.order[self.order != only_with]])
        self.names = [tables.columns[c] for c in self.order]
        self.n_distinct_original = tables.original.n_values[self.order].astype(np.float64)

    def of(self, table: CodedTable, name: str = "") -> SyntheticSearch:
        """Return the same search of other records in place of the synthetic ones; progress begins with the name."""
        tables = replace(self.tables, synthetic=table)
        return SyntheticSearch(tables, self.settings, self.n_threads, self.progress, engine=self.engine, name=name)

    def against(
        self,
        other: CodedTable,
        stage: str,
        *,
        with_profile: bool,
        max_size: int | None = None,
        max_combinations: int | None = None,
        is_sought: NDArray[np.bool_] | None = None,
        takes_any: bool = False,
    ) -> SearchResult:
        """Search the synthetic records against another table, by default up to the size of the settings.

        Without ``max_combinations`` it is complete, however long that takes. With ``is_sought``, only these synthetic
        rows are identified; with ``takes_any``, by any number of records of the other table.
        """
        largest = self.max_size if max_size is None else max_size
        settings = self.settings
        needs_entropy = settings.search == "heuristic" or (with_profile and settings.shows_entropy)
        asked = SearchInput(
            *self._coded(other),
            largest,
            subjects=None if takes_any or _are_rows(other) else self._subjects(other),
            is_sought=is_sought,
            takes_any=takes_any,
            only_with_first=self.only_with_first,
            max_combinations=max_combinations,
            alpha=settings.renyi_alpha if needs_entropy else None,
            min_entropy_gain=settings.min_entropy_delta,
            by_information=settings.pruning == MUTUAL_INFORMATION,
            with_profile=with_profile,
        )
        report = self._reporter(stage, largest)
        divided = self._divided(asked, other)
        if divided is not None:
            return search_levels(divided, self.n_threads, report)
        engine = self.engine.engine if isinstance(self.engine, PlacedTables) else self.engine
        return find_mpuccs_by(engine, asked, self.n_threads, report)

    def _divided(self, asked: SearchInput, other: CodedTable) -> DividedSearch | None:
        """Return the search by an engine that has the tables."""
        if not isinstance(self.engine, PlacedTables):
            return None
        view = self.engine.view(self.tables.synthetic, other, self.order.tolist())
        return None if view is None else DividedSearch(self.engine.engine, self.engine.batches, asked, view)

    def count(self, max_size: int, known: NDArray[np.bool_] | None = None) -> int:
        """Count the synthetic records that single out an original; those of known rows are not searched."""
        if known is None:
            known = np.zeros(self.tables.synthetic.n_distinct, np.bool_)
        original = self.tables.original
        found = self.against(original, "against original", with_profile=False, max_size=max_size, is_sought=~known)
        return count_identified(self, known | (found.combo_of_row >= 0))

    def count_of_lone(self, found: SearchResult, lone: CodedTable, rows: NDArray[np.intp] | None = None) -> int:
        """Count the synthetic records that single out a lone original (`lone_originals`).

        They are those of ``found``, or some of its rows, which may single out others, too, because there are fewer.
        """
        of_rows = slice(None) if rows is None else rows
        is_found = (found.combo_of_row >= 0)[of_rows]
        of_row, _, weights = lone.subjects
        # A heuristic search of other originals extends other combinations.
        is_known = is_found & (weights[of_row[found.partner_of_row[of_rows]]] == 1) & (self.settings.search == "exact")
        is_sought = ~is_known & (is_found if rows is None else True)
        others = self.against(
            lone, "against lone originals", with_profile=False, max_size=found.complete_size, is_sought=is_sought
        )
        return count_identified(self, is_known | (others.combo_of_row >= 0))

    def originals_singled_out(self, found: SearchResult) -> NDArray[np.bool_]:
        """Return which rows of the originals some synthetic record singles out, by any combination searched.

        The original is the only one with the record's values on it, however many other records have them, too: what is
        published beside a record protects nobody. Several rows of a person count if a record is identified by them.
        """
        tables = self.tables
        is_singled_out = np.zeros(tables.original.n_distinct, np.bool_)
        is_singled_out[found.partner_of_row[found.combo_of_row >= 0]] = True
        of_row, _, weights = tables.original.subjects
        is_sought = ~is_singled_out & (weights[of_row] == 1)
        if not is_sought.any():
            return is_singled_out
        originals = replace(tables.original, people=None)
        swapped = SyntheticSearch(
            replace(tables, original=tables.synthetic, synthetic=originals),
            self.settings,
            self.n_threads,
            self.progress,
            engine=self.engine,
        )
        others = swapped.against(
            tables.synthetic,
            "originals against synthetic",
            with_profile=False,
            max_size=found.complete_size,
            is_sought=is_sought,
            takes_any=True,
        )
        return is_singled_out | (others.combo_of_row >= 0)

    def share_singled_out(self, is_singled_out: NDArray[np.bool_]) -> float:
        """Return the share of the originals (or people) of rows that are singled out."""
        of_row, _, _ = self.tables.original.subjects
        return len(pd.unique(of_row[is_singled_out])) / self.tables.original.subjects.n_assessed

    def needed_columns(
        self, other: CodedTable, stage: str, places: Sequence[int]
    ) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Return the synthetic rows that are identified at all, and the columns that each of them needs for it.

        The second array, of shape (n_synthetic, n_places), shows whether all combinations that identify the row have
        the column at that position of the table. The search is complete, up to the size of the settings.
        """
        place_in_order = np.argsort(self.order)
        is_identified, needed = np.zeros(self.tables.synthetic.n_distinct, np.bool_), []
        asked = SearchInput(*self._coded(other), self.max_size, subjects=self._subjects(other))
        divided, report = self._divided(asked, other), self._reporter(stage, self.max_size)
        for begin in range(0, len(places), MOST_COLUMNS):
            asked_for = place_in_order[list(places[begin : begin + MOST_COLUMNS])].tolist()
            if divided is not None:
                is_identified, is_needed = divided.common_columns(asked_for, report)
            else:
                is_identified, is_needed = find_common_columns(
                    asked.columns,
                    asked.n_codes,
                    asked.n_synthetic,
                    asked.weights,
                    self._subjects(other),
                    asked_for=asked_for,
                    max_size=self.max_size,
                    n_threads=self.n_threads,
                    on_progress=report,
                )
            needed.append(is_needed)
        return is_identified, np.hstack(needed)

    def _coded(self, other: CodedTable) -> tuple[Sequence[NDArray[Any]], list[int], int, NDArray[np.int32]]:
        """Return the columns of both tables in the search order, and the weights of their rows."""
        synthetic = self.tables.synthetic
        return (
            _Joined([(synthetic.codes[c], other.codes[c]) for c in self.order]),
            [self.tables.n_codes[c] for c in self.order],
            synthetic.n_distinct,
            np.concatenate([synthetic.multiplicities, other.multiplicities]),
        )

    def _subjects(self, other: CodedTable) -> NDArray[np.int32]:
        """Return the person of each row of the other table, -1 for several people and for synthetic rows."""
        nobody = np.full(self.tables.synthetic.n_distinct, -1, np.int32)
        return np.concatenate([nobody, distinguished_people(other)])

    def _reporter(self, stage: str, largest: int) -> Callable[[LevelProgress], None]:
        def report(at: LevelProgress) -> None:
            if self.progress is not None:
                counts = at.n_checked, at.n_identified, at.n_done, at.n_candidates
                self.progress(SearchProgress(f"{self.name}{stage}", at.size, largest, *counts))

        return report

    def matches(self, other: CodedTable, stage: str, max_size: int) -> Matches:
        """Return the row of another table that each synthetic row singles out, and the number of columns needed.

        Of a person's rows it is the one that agrees on most columns.
        """
        found = self.against(other, stage, with_profile=False, max_size=max_size)
        combo_size = np.zeros(len(found.combo_of_row), np.int64)
        # If no combination had a unique row, there are no sizes to look up either.
        identified = np.flatnonzero(found.combo_of_row >= 0)
        combo_size[identified] = found.sizes[found.combo_of_row[identified]]
        return Matches(self.closest_partners(found, other), combo_size)

    def closest_partners(self, found: SearchResult, other: CodedTable) -> NDArray[np.int32]:
        """Return for each synthetic row the partner's row, with its values on X, that agrees with it on most columns.

        Of equally close rows it is the first.
        """
        if other.people is None:
            return found.partner_of_row
        of_row, partners = other.people.of_row, found.partner_of_row.copy()
        columns, n_codes, n_synthetic, _ = self._coded(other)
        starts = np.append(0, np.cumsum(np.bincount(of_row)))
        by_person = np.argsort(of_row, kind="stable")
        find_closest_rows(
            group_by_width(columns, n_codes), n_synthetic, found.combos, found.combo_of_row, of_row, by_person, starts,
            partners
        )  # fmt: skip
        return partners


def _are_rows(table: CodedTable) -> bool:
    """Return whether every person has one record, so that people are found by counting rows."""
    people = table.people
    return people is None or (
        len(people.of_row) == len(people.weights)
        and bool((table.multiplicities == people.weights[people.of_row]).all())
    )


def _baseline_protection(n_distinct: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return 1 - 1 / product over the last axis."""
    with np.errstate(over="ignore"):
        return np.asarray(1.0 - 1.0 / np.prod(n_distinct, axis=-1))


def describe_tree(search: SyntheticSearch, found: SearchResult) -> pd.DataFrame:
    """Describe every combination checked."""
    assert found.profile is not None  # noqa: S101 - the caller requests it
    n_checked = len(found.sizes)
    rows = np.flatnonzero(found.combo_of_row >= 0)
    together = rows[found.together_of_row[rows] > 1]
    weights = search.tables.synthetic.multiplicities
    n_collisions, n_together = (
        np.bincount(found.combo_of_row[own], weights[own], n_checked).astype(np.int64) for own in (rows, together)
    )
    # Several records that together single out one person are not unique, but identify the person as if they were.
    n_unique = found.profile.n_unique + n_together
    # The position after the last column has one distinct value, so that the padding -1 does not change products.
    baseline = _baseline_protection(np.append(search.n_distinct_original, 1.0)[found.combos])
    protection = 1.0 - n_collisions / np.maximum(n_unique, 1)
    ratio = np.minimum(np.divide(protection, baseline, out=np.zeros(n_checked), where=baseline > 0), 1.0)
    pruned_by = np.full(n_checked, None, object)
    pruned_by[found.was_exhausted] = "exhausted"
    pruned_by[found.was_stopped] = MUTUAL_INFORMATION
    pruned_by[~found.was_searched] = "entropy"
    tree = pd.DataFrame(
        {
            "check_order": np.arange(1, n_checked + 1),
            "field_combo": _field_combos(search, found),
            "combo_size": found.sizes,
            "is_pruned": found.was_exhausted | found.was_stopped | ~found.was_searched,
            "pruned_by": pd.Series(pruned_by, dtype=object),
            "mpuccs_cnt": n_unique,
            "mpuccs_collision_cnt": n_collisions,
            "baseline_protection": baseline,
            "overall_protection": np.where(n_collisions > 0, ratio, 1.0),
        }
    )
    if search.settings.shows_entropy:
        weight = search.settings.field_decay_factor ** (found.sizes - 1.0)
        tree["entropy"] = found.profile.entropy
        tree["entropy_gain"] = found.profile.entropy - _base_entropies(found)
        tree["field_weight"] = weight
        tree["weighted_collision"] = n_collisions * weight
    return tree


def _field_combos(search: SyntheticSearch, found: SearchResult) -> pd.Series[Any]:
    names = search.names
    combos = found.combos.tolist()
    sizes = found.sizes.tolist()
    return pd.Series(
        [tuple([names[c] for c in combo[:n]]) for combo, n in zip(combos, sizes, strict=True)], dtype=object
    )


def _base_entropies(found: SearchResult) -> NDArray[np.float64]:
    """Return the entropy of each combination without its last column, 0 for single columns."""
    assert found.profile is not None  # noqa: S101 - the caller requests it
    entropy_of: dict[tuple[int, ...], float] = {(): 0.0}
    base = []
    for combo, size, entropy in zip(found.combos.tolist(), found.sizes.tolist(), found.profile.entropy, strict=True):
        base.append(entropy_of[tuple(combo[: size - 1])])
        entropy_of[tuple(combo[:size])] = entropy
    return np.array(base)


def describe_details(search: SyntheticSearch, found: SearchResult, tree: pd.DataFrame) -> pd.DataFrame:
    """Describe every identified record."""
    tables = search.tables
    rows = np.flatnonzero(found.combo_of_row >= 0)
    rows = rows[np.argsort(found.combo_of_row[rows], kind="stable")]
    combos = found.combo_of_row[rows]
    partners = search.closest_partners(found, tables.original)[rows]
    sizes = found.sizes[combos]
    # Without a baseline the ratio is the share of unique rows that are not identified.
    n_unique, n_collisions = tree["mpuccs_cnt"].to_numpy()[combos], tree["mpuccs_collision_cnt"].to_numpy()[combos]
    ratio = tree["overall_protection"].to_numpy()[combos]
    if not search.settings.calculate_baseline:
        ratio = 1.0 - n_collisions / n_unique
    risk = np.where((ratio < 0.3) | (sizes <= 2), "high", np.where((ratio <= 0.7) | (sizes <= 4), "medium", "low"))
    return pd.DataFrame(
        {
            "risk_level": pd.Series(risk.tolist(), dtype=str),
            "syn_idx": tables.synthetic.positions[rows],
            "ori_idx": tables.original.positions[partners],
            "combo_size": sizes,
            "field_combo": tree["field_combo"].to_numpy()[combos],
            "value_combo": _value_combos(search, found, rows),
            "baseline_protection": tree["baseline_protection"].to_numpy()[combos],
            "agreement": count_agreements(tables.synthetic, tables.original, rows, partners),
        }
    )


def _value_combos(search: SyntheticSearch, found: SearchResult, rows: NDArray[np.int64]) -> pd.Series[Any]:
    """Return the text of the values that identify each row; the rows are sorted by combination."""
    labels, codes = search.tables.labels, search.tables.synthetic.codes
    combos = found.combo_of_row[rows]
    begins = np.union1d(np.flatnonzero(np.diff(combos, prepend=-1)), np.arange(0, len(rows), ROWS_AT_ONCE))
    values: list[tuple[Any, ...]] = []
    for own in np.split(rows, begins[1:]) if len(rows) else ():
        combo = found.combo_of_row[own[0]]
        columns = search.order[found.combos[combo, : found.sizes[combo]]]
        values += zip(*(labels[c][codes[c][own]] for c in columns), strict=True)
    return pd.Series(values, dtype=object)


def lone_originals(original: CodedTable) -> CodedTable | None:
    """Return the originals in which nobody is singled out whose record 3 or more have; None if that is nobody.

    Without duplicates a record is unique however many people have it; here such records are there twice.
    """
    of_row, n_alike, weights = original.subjects
    is_shared = n_alike >= FEWEST_ALIKE
    if not is_shared.any():
        return None
    weights = np.where(is_shared, 2, weights).astype(np.int32)
    people = None if original.people is None else Subjects(of_row, n_alike, weights)
    return replace(
        original, people=people, multiplicities=np.where(is_shared[of_row], 2, original.multiplicities).astype(np.int32)
    )


def _of_any_size(search: SyntheticSearch, found: SearchResult, drawn: CodedTable) -> dict[str, Any]:
    """Estimate the rate over all combinations, if there were too many to search."""
    if found.complete_size == search.max_size or not _are_rows(search.tables.original):
        return {}
    sampled = sample_any_size(
        replace(search.tables, synthetic=drawn), search.settings.seed, search.settings.confidence_level
    )
    return {
        "any_size_identification_rate": sampled.rate.value,
        "any_size_interval_low": sampled.rate.low,
        "any_size_interval_high": sampled.rate.high,
        "any_size_records": sampled.n_records,
    }


def _of_originals(search: SyntheticSearch, is_singled_out: NDArray[np.bool_]) -> dict[str, Any]:
    """Count the originals that are singled out."""
    original = search.tables.original
    of_row, _, _ = original.subjects
    n_originals, n_identified = original.subjects.n_assessed, len(pd.unique(of_row[is_singled_out]))
    counts = {} if original.people is None else {"people_identified": n_identified, "people_assessed": n_originals}
    share = wilson_interval(n_identified, n_originals, search.settings.confidence_level)
    return {
        **counts,
        "originals_singled_out": share.value,
        "originals_singled_out_interval_low": share.low,
        "originals_singled_out_interval_high": share.high,
    }


def overall_protection(main: float, baseline: float) -> float:
    """Return the main protection as a share of the baseline protection, at most 1; 0 without a baseline."""
    return min(main / baseline, 1.0) if baseline > 0 else 0.0


def count_identified(search: SyntheticSearch, is_identified: NDArray[np.bool_]) -> int:
    """Count the synthetic records of the rows that are identified."""
    return int(search.tables.synthetic.multiplicities[is_identified].sum(dtype=np.int64))


def protection_scores(search: SyntheticSearch, identification_rate: float) -> dict[str, float]:
    """Score the table by the share of identified records; without a baseline it has one score."""
    main = 1.0 - identification_rate
    if not search.settings.calculate_baseline:
        return {"main_protection": main}
    baseline = float(_baseline_protection(search.n_distinct_original))
    overall = overall_protection(main, baseline)
    return {
        "privacy_risk_score": 1.0 - overall,
        "overall_protection": overall,
        "main_protection": main,
        "baseline_protection": baseline,
    }


def score(search: SyntheticSearch, found: SearchResult, draws: Sequence[tuple[CodedTable, int]] = ()) -> dict[str, Any]:
    """Score the whole table, with the names and order of the source.

    ``draws`` of the synthetic records, whose mean scores count, come with the identified records of each; without them
    all records are scored together.
    """
    tables, settings = search.tables, search.settings
    is_identified = found.combo_of_row >= 0
    n_identified = count_identified(search, is_identified)
    draws = draws or [(tables.synthetic, n_identified)]
    n_records = fmean(drawn.n_assessed for drawn, _ in draws)
    interval = wilson_interval(fmean(n for _, n in draws), n_records, settings.confidence_level)
    rates = [n / drawn.n_assessed for drawn, n in draws]
    of_draws = [{**protection_scores(search, rate), "identification_rate": rate} for rate in rates]
    n_searched = int(found.was_searched.sum())
    return {
        **{name: fmean(each[name] for each in of_draws) for name in of_draws[0]},
        "total_identified": n_identified,
        "total_syn_records": tables.synthetic.n_assessed,
        "identification_rate_interval_low": interval.low,
        "identification_rate_interval_high": interval.high,
        **_range_of_draws(of_draws, round(n_records)),
        **_of_originals(search, search.originals_singled_out(found)),
        **_of_any_size(search, found, draws[0][0]),
        "search": settings.search,
        "max_combo_size": found.complete_size,
        "columns_assessed": len(tables.columns),
        "combinations_checked": n_searched,
        "combinations_pruned": count_combinations(len(tables.columns), found.complete_size) - n_searched,
        **{f"{name}_duplicates_dropped": table.n_duplicates_dropped for name, table in tables.tables.items()},
    }


def _range_of_draws(of_draws: Sequence[dict[str, float]], n_records: int) -> dict[str, Any]:
    """Return the size of the draws, and the range of their scores; empty if all records are scored."""
    if len(of_draws) == 1:
        return {}
    scores: dict[str, Any] = {"records_per_draw": n_records}
    for name in ("privacy_risk_score", "identification_rate"):
        values = [each[name] for each in of_draws if name in each]
        if values:
            scores |= {f"{name}_lowest": min(values), f"{name}_highest": max(values)}
    return scores
