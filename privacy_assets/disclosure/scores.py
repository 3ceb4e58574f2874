"""Evidence on real records: what the synthetic records reveal about each, whether it is an original or not.

No score uses who is an original. Definitions: ``docs/disclosure.md``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from itertools import combinations
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from privacy_assets.columns.coding import group_rows, people_of_values
from privacy_assets.disclosure.criteria import Criterion, Evidence, criteria_asked, number_of_closest
from privacy_assets.disclosure.kernels.column_sets import ONE, count_claims, link, match_uniquely, single_out
from privacy_assets.disclosure.kernels.nearest import MISSING_BIN, find_closest, guess_values, nearest_distances
from privacy_assets.disclosure.pooled_records import PooledRecords, Sides, distance_codes
from privacy_assets.display.progress_bar import StageProgress
from privacy_assets.kernels.slices import SlicePool

RARE_BELOW: Final = 3
"""A value that fewer people have is rare."""
EQUALITY: Final = 4.0
"""Closeness of an equal value beyond that of its frequency, in nats; a copy loses it for each different value."""
UNITS_PER_NAT: Final = 1_000
MATCHES_AT_ONCE: Final = 32_000_000


class Workers:
    """Threads that report their progress, at the start of each stage and about twice a second.

    Exceptions of ``progress`` end the work.
    """

    def __init__(self, n_threads: int, progress: Callable[[StageProgress], None] | None) -> None:
        self.progress = progress
        self.at = StageProgress("", 0, 0)
        self.pool = SlicePool(n_threads, self.report)

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *_: object) -> None:
        self.pool.__exit__()

    def report(self) -> None:
        """Report the progress of the work."""
        if self.progress is not None:
            self.progress(self.at)

    def begin(self, stage: str, n: int) -> None:
        """Start a stage."""
        self.at = StageProgress(stage, 0, n)
        self.report()

    def counter(self, stage: str, n: int) -> Callable[[int], None]:
        """Start a stage whose work is done by the caller, and return a function to call with the number done."""
        self.begin(stage, n)

        def count(n_done: int) -> None:
            self.at = self.at._replace(n_done=n_done)
            self.report()

        return count

    def run(self, stage: str, n: int, work: Callable[..., Any], state: Callable[[], Any] | None = None) -> list[Any]:
        """Call ``work(begin, stop)`` for slices of ``n`` items; with ``state``, the state of the thread is first."""
        self.begin(stage, n)

        def task(slices: Iterator[tuple[int, int]]) -> Any:
            own = state() if state is not None else None
            for begin, stop in slices:
                work(*(() if state is None else (own,)), begin, stop)
                self.at = self.at._replace(n_done=self.at.n_done + stop - begin)
            return own

        return self.pool.run(n, task)


@dataclass(frozen=True, eq=False)
class Attack:
    """Columns that an attacker knows, the size of the largest sets of them, and the real records to score.

    Who knows columns that are not ``named`` wants to learn each of those. ``earlier`` are the records together with
    those that were published before, if there are some. ``is_counted`` if only the share of copied people is asked.
    """

    known: NDArray[np.int64]
    max_known: int
    rows: NDArray[np.int64]
    named: tuple[int, ...] = ()
    earlier: PooledRecords | None = None
    is_counted: bool = False

    @property
    def sets(self) -> NDArray[np.int64]:
        """All sets, those with fewer columns first, padded with -1; of shape (n_sets, max_size)."""
        size = min(self.max_known, len(self.known))
        found = [own for n in range(1, size + 1) for own in combinations(self.known.tolist(), n)]
        return np.array([[*own, *[-1] * (size - len(own))] for own in found], np.int64)

    def criteria(self, records: PooledRecords) -> dict[str, Criterion]:
        """Return the criteria that are asked of these records."""
        asked = criteria_asked(
            has_synthetic_people=records.synthetic_people is not None,
            has_named_columns=bool(self.named),
            has_earlier_records=self.earlier is not None,
        )
        return {name: own for name, own in asked.items() if own.counts_copies or not self.is_counted}


def gather_evidence(
    records: PooledRecords, attack: Attack, workers: Workers, whole: Evidence | None = None
) -> Evidence:
    """Examine real records for all criteria of one release.

    If there is evidence on more records, ``whole``, these are copied ones: only criteria that find copies are asked.
    """
    found: dict[str, NDArray[Any]] = {}
    asked = [each for each in attack.criteria(records).values() if whole is None or each.finds_copies]
    asked = [each for each in asked if not each.is_of_all_releases]
    for place in dict.fromkeys(criterion.needs for criterion in asked):
        module, _, function = place.rpartition(".")
        found |= getattr(import_module(f"privacy_assets.disclosure.{module}"), function)(
            records, attack, workers, whole
        )
    return found


def score_all(records: PooledRecords, attack: Attack, evidence: Evidence, workers: Workers) -> NDArray[np.float64]:
    """Return the scores of all criteria, also of those that are asked of all releases together."""
    asked = attack.criteria(records).values()
    if attack.earlier is None:
        return score_records(asked, evidence, evidence)
    alone = replace(attack, named=(), earlier=None)
    of_all = gather_evidence(attack.earlier, alone, workers)
    sources = [of_all if each.is_of_all_releases else evidence for each in asked]
    return np.column_stack([score_records([own], of, of) for own, of in zip(asked, sources, strict=True)])


def score_records(asked: Iterable[Criterion], own: Evidence, whole: Evidence) -> NDArray[np.float64]:
    """Return the scores of criteria, of shape (n_scored, n_scores), given the evidence on all records.

    The agreement on named columns has one score for each, and is the last criterion.
    """
    return np.column_stack([np.asarray(each.score(own, whole), np.float64) for each in asked])


def single_out_records(records: PooledRecords, attack: Attack, workers: Workers, _: Evidence | None = None) -> Evidence:
    """Return whether each record is ``singled_out``, of shape (n_scored,)."""
    sets, codes = attack.sets, records.binned
    synthetic = np.ascontiguousarray(codes.synthetic[:, records.distinct])
    scored, singled_out = codes.take(attack.rows), np.zeros(len(attack.rows), np.uint8)

    def work(begin: int, stop: int) -> None:
        single_out(sets, begin, stop, scored, codes.real, synthetic, records.n_binned, records.people, singled_out)

    workers.run("singling out", len(sets), work)
    return {"singled_out": singled_out}


def link_records(records: PooledRecords, attack: Attack, workers: Workers, _: Evidence | None = None) -> Evidence:
    """Return whether each record is ``linked``, of shape (n_scored,)."""
    synthetic = np.ascontiguousarray(records.exact.synthetic[:, records.distinct])
    sets, linked = attack.sets, np.zeros(len(attack.rows), np.uint8)
    # Known columns are renumbered, so that they fit into a word.
    number = np.zeros(len(records.columns), np.uint64)
    number[attack.known] = np.arange(len(attack.known), dtype=np.uint64)
    bits = np.where(sets >= 0, np.left_shift(np.uint64(1), number[sets]), np.uint64(0))
    columns_of_set = np.bitwise_or.reduce(bits, axis=1)
    n_at_once = max(MATCHES_AT_ONCE // len(sets), 1)
    for first in range(0, len(attack.rows), n_at_once):
        scored = records.exact.take(attack.rows[first : first + n_at_once])
        matches = np.empty((len(sets), scored.shape[1]), np.int32)
        own = np.zeros(scored.shape[1], np.uint8)

        def match(begin: int, stop: int, scored: Any = scored, matches: Any = matches) -> None:
            match_uniquely(sets, begin, stop, scored, synthetic, records.n_exact, matches)

        def compare(begin: int, stop: int, matches: Any = matches, own: Any = own) -> None:
            link(matches, columns_of_set, begin, stop, own)

        workers.run("matching", len(sets), match)
        workers.run("linking", len(own), compare)
        linked[first : first + len(own)] = own
    return {"linked": linked}


def count_claims_on_records(
    records: PooledRecords, attack: Attack, workers: Workers, whole: Evidence | None = None
) -> Evidence:
    """Count claims on the values of each record.

    ``claim_score``, of shape (n_scored,), is right claims beyond the precision of such claims; ``n_claims`` and
    ``n_right`` are of shape (n_columns, n_scored), and ``precision``, the share of right claims among all records,
    (n_sets, n_columns).
    """
    sets, scored = attack.sets, records.exact.take(attack.rows)
    is_given = whole is not None
    shares = np.zeros((len(sets), len(records.columns))) if whole is None else whole["precision"]

    def state() -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int32]]:
        return np.zeros(scored.shape[1], np.int64), np.zeros(scored.shape, np.int32), np.zeros(scored.shape, np.int32)

    tables = scored, records.exact.synthetic, records.n_exact, shares, is_given

    def work(own: Any, begin: int, stop: int) -> None:
        count_claims(sets, begin, stop, *tables, *own)

    found = workers.run("claims", len(sets), work, state)
    score, n_claims, n_right = (sum(own[i] for own in found) for i in range(3))
    return {"claim_score": score / ONE, "n_claims": n_claims, "n_right": n_right, "precision": shares}


def guess_from_nearest(
    records: PooledRecords, attack: Attack, workers: Workers, whole: Evidence | None = None
) -> Evidence:
    """Return the probability that the nearest record guesses each value right: ``guessed``, (n_columns, n_scored).

    If it is also asked who is missing, the ``relative_distance``, of shape (n_scored,), is the logarithm of the
    distance to the nearest synthetic record, plus one unit, minus that of the distance to the nearest record of another
    real person.
    """
    codes, unit = distance_codes(records)
    is_known = np.zeros(len(records.columns), np.bool_)
    is_known[attack.known] = True
    real, values = codes.take(attack.rows), records.binned.take(attack.rows)
    right, to_synthetic = np.zeros(values.shape), np.empty(len(attack.rows), np.int64)

    columns = records.is_number, is_known, unit

    def work(begin: int, stop: int) -> None:
        made = records.binned.synthetic
        guess_values(begin, stop, real, codes.synthetic, *columns, values, made, right, to_synthetic)

    workers.run("guessing", len(attack.rows), work)
    if whole is not None or attack.is_counted:
        return {"guessed": right}

    person, rows = records.people[attack.rows], np.argsort(records.people, kind="stable")

    def distance(
        stage: str, real: NDArray[Any], others: NDArray[Any], owners: tuple[Any, NDArray[np.int64]]
    ) -> NDArray[np.int64]:
        found = np.empty(len(attack.rows), np.int64)

        def work(begin: int, stop: int) -> None:
            nearest_distances(begin, stop, real, others, records.is_number, unit, *owners, rows, found)

        workers.run(stage, len(found), work)
        return found

    if not is_known.all():
        of_nobody = np.zeros_like(person), np.zeros(2, np.int64)
        to_synthetic = distance("nearest synthetic record", real, codes.synthetic, of_nobody)
    # Categories that only real people have equal no synthetic one, but differ from each other.
    among_real = np.where(records.is_number[:, None], codes.real, records.exact.real)
    first = np.searchsorted(records.people[rows], np.arange(records.n_people + 1))
    own = np.ascontiguousarray(among_real[:, attack.rows])
    to_others = distance("nearest other person", own, among_real, (person, first))
    return {"guessed": right, "relative_distance": np.log(to_synthetic + 1) - np.log(to_others + 1)}


def find_agreement(records: PooledRecords, attack: Attack, *_: object) -> Evidence:
    """Find synthetic records that have what an attacker knows of a person together with a named column.

    ``agreed`` and ``agreement`` are of shape (n_named, n_scored): whether there is one, and then minus the logarithm of
    the share of real people with these values.
    """
    known = [int(j) for j in attack.known if j not in attack.named]
    agreed = np.zeros((len(attack.named), len(attack.rows)), np.bool_)
    agreement = np.zeros(agreed.shape)
    for place, wanted in enumerate(attack.named):
        columns = [*known, wanted]
        both = [np.concatenate([codes[j] for codes in records.exact]) for j in columns]
        groups, n_groups = group_rows(both, records.n_exact[columns].tolist())
        real, made = groups[: records.n_real], groups[records.n_real :]
        shares = people_of_values(real, n_groups, records.people) / records.n_people
        own = real[attack.rows]
        agreed[place] = np.bincount(made, minlength=n_groups)[own] > 0
        agreement[place] = np.where(agreed[place], -np.log(shares[own]), 0.0)
    return {"agreed": agreed, "agreement": agreement}


def find_closest_records(
    records: PooledRecords, attack: Attack, workers: Workers, _: Evidence | None = None
) -> Evidence:
    """Return the ``closeness`` of the closest synthetic record, of shape (n_scored,), and how many count as closest."""
    n_columns = len(records.columns)
    counts = np.arange(1, records.n_real + 1)
    weights = np.rint(-np.log(counts / records.n_real) * UNITS_PER_NAT).astype(np.int32)
    weights = np.concatenate([weights[:1], weights])
    places = Sides(records.exact.real.copy(), records.exact.synthetic.copy())
    equal = np.zeros((n_columns, len(attack.rows)), np.int32)
    grids, below = [np.zeros(0)], [np.zeros(0, np.int64)]
    bins = np.full(places.synthetic.shape, MISSING_BIN, np.uint8)
    first_of_bin, n_bins = np.zeros((n_columns, MISSING_BIN + 1), np.int64), np.zeros(n_columns, np.int64)
    for j, numbers in enumerate(records.values):
        if records.is_number[j]:
            grid = np.unique(numbers[~np.isnan(numbers)])
            place = np.where(np.isnan(numbers), -1, np.searchsorted(grid, numbers))
            for side, codes in zip(places, records.exact, strict=True):
                side[j] = place[codes[j]]
            edges = np.unique(np.linspace(0, len(grid), min(len(grid), MISSING_BIN) + 1).astype(np.int64))
            n_bins[j] = len(edges) - 1
            first_of_bin[j, : len(edges)] = edges
            bin_of_place = np.append(np.searchsorted(edges, np.arange(len(grid)), side="right") - 1, MISSING_BIN)
            bins[j] = bin_of_place[places.synthetic[j]]
        else:
            grid = np.zeros(0)
        n_with = np.bincount(places.real[j] + 1, minlength=max(len(grid), records.n_exact[j]) + 1)
        equal[j] = weights[n_with[places.real[j, attack.rows] + 1]] + round(EQUALITY * UNITS_PER_NAT)
        grids.append(grid)
        below.append(np.concatenate([[0], np.cumsum(n_with[1 : len(grid) + 1])]))
    first_of_grid = np.cumsum([len(grid) for grid in grids])
    all_grids, all_below = np.concatenate(grids), np.concatenate(below)
    real, closeness = places.take(attack.rows), np.zeros(len(attack.rows), np.int32)

    by_grid = equal, weights, all_grids, all_below, first_of_grid
    by_bin = bins, first_of_bin, n_bins

    def work(begin: int, stop: int) -> None:
        find_closest(begin, stop, real, places.synthetic, records.is_number, *by_grid, *by_bin, closeness)

    workers.run("near copies", len(attack.rows), work)
    n_closest = number_of_closest(len(attack.rows), records.n_original_people / records.n_people)
    return {"closeness": closeness, "n_closest": np.array(n_closest)}


def count_rare_values(records: PooledRecords, attack: Attack, *_: object) -> Evidence:
    """Return ``is_rare``, (n_columns, n_scored): whether a value is rare, and some synthetic record has it.

    A text counts in either reading: as it is written, and in any spelling.
    """
    found = np.zeros((len(records.columns), len(attack.rows)), np.bool_)
    for j, kind in enumerate(records.kinds):
        if kind == "boolean":
            continue
        readings = [Sides(records.exact.real[j], records.exact.synthetic[j])]
        readings += [own for name, own in records.as_written.items() if name == records.columns[j]]
        for real, synthetic in readings:
            n_people = people_of_values(real, int(records.n_exact[j]), records.people)
            is_rare = (n_people < RARE_BELOW) & (np.bincount(synthetic, minlength=len(n_people)) > 0)
            if records.missing[j] >= 0:
                is_rare[records.missing[j]] = False
            found[j] |= is_rare[real[attack.rows]]
    return {"is_rare": found}


def plant_copies(
    records: PooledRecords, rows: Sequence[int] | NDArray[np.int64], places: Sequence[int] | NDArray[np.int64]
) -> PooledRecords:
    """Replace synthetic records by copies of real ones; those of a real person belong to one new synthetic person."""
    sides = []
    for codes in (records.exact, records.binned):
        synthetic = codes.synthetic.copy()
        synthetic[:, places] = codes.real[:, rows]
        sides.append(Sides(codes.real, synthetic))
    people = None if records.synthetic_people is None else records.synthetic_people.copy()
    if people is not None:
        people[places] = people.max() + 1 + records.people[rows]
    return replace(records, exact=sides[0], binned=sides[1], synthetic_people=people)
