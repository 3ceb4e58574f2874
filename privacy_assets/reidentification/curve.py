"""The sets of columns that an attacker may know: which to assess, and the figures of each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import combinations
from math import comb, log
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from privacy_assets.display.progress_bar import StageProgress
from privacy_assets.reidentification.candidate_index import CandidateIndex, Figures
from privacy_assets.reidentification.sample_intervals import mean_interval

_LARGER_IS_WORSE = (
    "max_reidentification_probability",
    "mean_reidentification_probability",
    "share_of_singletons",
    "share_below_k",
)
_SMALLER_IS_WORSE = ("mean_nonspecificity", "min_nonspecificity", "fewest_candidates")
WITH_INTERVAL = ("mean_reidentification_probability", "share_of_singletons", "share_below_k", "mean_nonspecificity")
INTERVAL_COLUMNS = tuple(f"{name}_{end}" for name in WITH_INTERVAL for end in ("low", "high"))

# Counts, by set and record, that are made before it is known whether all are needed: 32 MiB.
MOST_COUNTED_AHEAD = 1 << 22


class CurveSearch:
    """Assesses sets of known columns, and keeps for each record the set that leaves the fewest candidates.

    The ``named`` sets, and the ``columns`` of the curve together, are assessed for every record, the others for
    ``curve_sample`` of them, drawn at random; None for all. ``k`` is the smallest number of candidates that a record
    should have, ``n_sets`` the number of sets to report.
    """

    def __init__(
        self,
        index: CandidateIndex,
        k: int | None,
        named: Sequence[tuple[str, ...]],
        columns: tuple[str, ...],
        curve_sample: int | None,
        seed: int,
        progress: Callable[[StageProgress], None] | None,
        n_sets: int,
    ) -> None:
        self.index, self.k, self.named, self.columns = index, k, named, columns
        self.progress, self.n_sets, self.n_done = progress, n_sets, 0
        self.drawn = np.arange(index.n_released)
        if curve_sample is not None and curve_sample < index.n_released:
            drawn = np.random.default_rng(seed).choice(index.n_released, curve_sample, replace=False, shuffle=False)
            self.drawn = np.sort(drawn)
        self.on_every_record = {frozenset(columns), *map(frozenset, named)}
        self.rows: dict[frozenset[str], dict[str, Any]] = {}
        self.counted: dict[frozenset[str], NDArray[np.int64]] = {}
        self.fewest = np.full(index.n_released, np.iinfo(np.int64).max)
        self.best_set = np.full(index.n_released, -1, np.int64)
        self.best_size = np.zeros(index.n_released, np.int64)

    def run(self, max_known: int) -> None:
        """Assess all sets of up to ``max_known`` columns, a greedy chain to all columns, and the named sets."""
        columns, largest = self.columns, min(max_known, len(self.columns))
        self._report(0)
        self.sizes_of_all = self._sizes(columns)
        self.n_done = 1
        self.assess([known for size in range(1, largest + 1) for known in combinations(columns, size)], "subset")
        chain = self._worst_of_size(largest)
        self._look_ahead(chain)
        while len(chain) < len(columns) - 1:
            tried = self.assess([(*chain, name) for name in columns if name not in chain], "greedy")
            chain = max(tried, key=lambda row: float(row["mean_reidentification_probability"]))["known"]
        self.assess([columns], "all")
        self.assess(self.named, "named")
        self._report(0)

    def assess(self, sets: Sequence[tuple[str, ...]], chosen_as: str) -> list[dict[str, Any]]:
        """Compute the figures of some sets, each once."""
        new = [known for known in sets if frozenset(known) not in self.rows]
        drawn = [known for known in new if not self._is_counted_on_every_record(known)]
        self._count([known for known in drawn if frozenset(known) not in self.counted], len(drawn))
        self.n_done += len(drawn)
        for known in new:
            if known in drawn:
                self._add(known, chosen_as, self.drawn, self.counted.pop(frozenset(known)))
            elif frozenset(known) == frozenset(self.columns):
                self._add(known, chosen_as, np.arange(self.index.n_released), self.sizes_of_all)
            else:
                self._report(0)
                self._add(known, chosen_as, np.arange(self.index.n_released), self._sizes(known))
                self.n_done += 1
        return [self.rows[frozenset(known)] for known in sets]

    def _count(self, sets: Sequence[tuple[str, ...]], n_reported: int) -> None:
        """Count the candidates of the records drawn for some sets, and keep them until their figures are computed."""
        if sets:
            sizes = self.index.sizes_of_sets(sets, self.drawn, lambda share: self._report(int(share * n_reported)))
            self.counted |= zip(map(frozenset, sets), sizes, strict=True)

    def _sizes(self, known: tuple[str, ...]) -> NDArray[np.int64]:
        return self.index.sizes(known, lambda: self._report(0))

    def _look_ahead(self, chain: tuple[str, ...]) -> None:
        """Count all sets that the greedy chain may try, if they are few: that takes less time than in steps."""
        left = [name for name in self.columns if name not in chain]
        if len(left) > 2 and len(self.drawn) << len(left) <= MOST_COUNTED_AHEAD:
            sizes = range(1, len(left))
            ahead = [(*chain, *added) for size in sizes for added in combinations(left, size)]
            self._count([known for known in ahead if not self._is_counted_on_every_record(known)], 0)

    def _is_counted_on_every_record(self, known: tuple[str, ...]) -> bool:
        """Whether a set is counted for all records: as required, or as fast as a sample because rows are grouped."""
        return frozenset(known) in self.on_every_record or self.index.is_grouped(known)

    def report_waiting(self) -> None:
        """Report the same progress again, so that the work can be ended."""
        self._report(0)

    def _report(self, n_more: int) -> None:
        if self.progress is not None:
            self.progress(StageProgress("sets of known columns", self.n_done + n_more, self.n_sets))

    def _add(self, known: tuple[str, ...], chosen_as: str, rows: NDArray[np.int64], sizes: NDArray[np.int64]) -> None:
        """Keep the figures of a set whose candidates were counted for some records."""
        figures = Figures.of(sizes, self.k)._asdict()
        fewest, best_size = self.fewest[rows], self.best_size[rows]
        is_better = (sizes < fewest) | ((sizes == fewest) & (len(known) < best_size))
        better = rows[is_better]
        self.fewest[better], self.best_size[better] = sizes[is_better], len(known)
        self.best_set[better] = len(self.rows)
        self.rows[frozenset(known)] = {
            "known": known,
            "n_known": len(known),
            **figures,
            "chosen_as": chosen_as,
            "n_records": len(rows),
            **self._intervals(sizes, figures),
        }

    def _intervals(self, sizes: NDArray[np.int64], figures: dict[str, Any]) -> dict[str, float | None]:
        """Return the ends of the intervals; a record never has fewer candidates than if all columns are known."""
        found: dict[str, float | None] = {}
        if len(sizes) == self.index.n_released:
            for name in WITH_INTERVAL:
                found[f"{name}_low"] = found[f"{name}_high"] = figures[name]
            return found
        for name in WITH_INTERVAL:
            if figures[name] is None:
                found[f"{name}_low"] = found[f"{name}_high"] = None
                continue
            # For any set of the columns, however it was chosen.
            log_n_means = log(len(WITH_INTERVAL)) + len(self.columns) * log(2)
            least, most, mean_of_all = self.bounds[name]
            low, high = mean_interval(
                values_of_figure(name, sizes, self.k), self.index.n_released, least, most, log_n_means
            )
            if name in _SMALLER_IS_WORSE:
                low = max(low, min(mean_of_all, figures[name]))
            else:
                high = min(high, max(mean_of_all, figures[name]))
            found[f"{name}_low"], found[f"{name}_high"] = low, high
        return found

    @cached_property
    def bounds(self) -> dict[str, tuple[float, float, float]]:
        """Smallest and largest value of a record for any set, and the mean if all columns are known, by figure."""
        found = {}
        for name in WITH_INTERVAL:
            of_all, of_none = (
                values_of_figure(name, own, self.k) for own in (self.sizes_of_all, np.array([self.index.n_units]))
            )
            ends = (of_all.min(), of_all.max(), of_none[0])
            found[name] = (float(min(ends)), float(max(ends)), float(of_all.mean()))
        return found

    def _worst_of_size(self, size: int) -> tuple[str, ...]:
        rows = [row for row in self.rows.values() if row["n_known"] == size]
        worst: tuple[str, ...] = max(rows, key=lambda row: float(row["mean_reidentification_probability"]))["known"]
        return worst

    def of_named(self) -> list[dict[str, Any]]:
        """Return the figures of the named sets, for one known row."""
        return [{**self.rows[frozenset(known)], "n_rows": 1} for known in self.named]

    def worst(self, several_rows: Sequence[Mapping[str, Any]] = ()) -> dict[str, Any]:
        """Return the worst of each figure over the named sets, and over those of several known rows."""
        rows = [*self.of_named(), *several_rows]
        found: dict[str, Any] = {}
        for name in _LARGER_IS_WORSE:
            values = [row[name] for row in rows]
            found[name] = None if None in values else max(values)
        for name in _SMALLER_IS_WORSE:
            found[name] = min(row[name] for row in rows)
        return found

    def curve(self, several_rows: Sequence[Mapping[str, Any]] = ()) -> pd.DataFrame:
        """Return one row per set, smaller sets first, and those of several known rows."""
        rows = [{**row, "n_rows": 1} for row in sorted(self.rows.values(), key=lambda row: int(row["n_known"]))]
        columns = ["known", "n_known", "n_rows", *Figures._fields, "chosen_as", "n_records", *INTERVAL_COLUMNS]
        frame = pd.DataFrame([*rows, *several_rows], columns=columns)
        frame[[*INTERVAL_COLUMNS, "share_below_k"]] = frame[[*INTERVAL_COLUMNS, "share_below_k"]].astype(np.float64)
        return frame.astype({"chosen_as": object})

    @property
    def is_at_risk(self) -> NDArray[np.bool_]:
        """Return the released records that have too few candidates for some set."""
        return np.asarray(self.fewest < max(self.k or 2, 2))

    def records(self) -> pd.DataFrame:
        """Return the records at risk, fewest candidates first."""
        rows = np.flatnonzero(self.is_at_risk)
        rows = rows[np.argsort(self.fewest[rows], kind="stable")]
        sets = [row["known"] for row in self.rows.values()]
        return pd.DataFrame(
            {
                "released": rows.astype(np.int64),
                "original": self.index.truth[rows],
                "candidates": self.fewest[rows],
                "known": pd.Series([sets[number] for number in self.best_set[rows]], dtype=object),
            }
        )


def values_of_figure(name: str, sizes: NDArray[np.int64], k: int | None) -> NDArray[np.float64]:
    """Return the value of each record whose mean a figure is."""
    if name == "mean_reidentification_probability":
        return np.asarray(1 / sizes, np.float64)
    if name == "mean_nonspecificity":
        return np.asarray(np.log(sizes), np.float64)
    return np.asarray(sizes < (2 if name == "share_of_singletons" else k or 0), np.float64)


def count_sets(named: Sequence[tuple[str, ...]], n_columns: int, max_known: int) -> int:
    """Count the sets to be assessed; named sets may be among the others."""
    n_subsets = sum(comb(n_columns, size) for size in range(1, min(max_known, n_columns) + 1))
    return n_subsets + sum(_chain_lengths(n_columns, max_known)) + len(named)


def _chain_lengths(n_columns: int, max_known: int) -> Iterator[int]:
    """Yield the number of sets tried for each step of the greedy chain, and one for all columns."""
    yield from range(n_columns - max_known, 1, -1)
    yield int(n_columns > max_known)
