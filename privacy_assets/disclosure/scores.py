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
from privacy_assets.disclosure.codes import Sides, WrittenSides
from privacy_assets.disclosure.criteria import Criterion, Evidence, criteria_asked
from privacy_assets.disclosure.pooled_records import PooledRecords
from privacy_assets.display.progress_bar import StageProgress
from privacy_assets.kernels.slices import SlicePool

OF_ALL_RECORDS: Final = ("column_set_evidence.", "nearest_evidence.")
"""Modules whose functions compare the examined records with all others: an engine that holds these can do it."""
DIVIDED: Final = "divided_evidence.gather_divided"
MATCHES_AT_ONCE: Final = 32_000_000
"""Matches, one for each set and examined record, that fit into memory here; an engine returns all of them."""
RARE_BELOW: Final = 3
"""A value that fewer people have is rare."""


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

    def spread(
        self, n: int, work: Callable[..., Any], *arguments: Any, state: Callable[[], tuple[Any, ...]] = tuple
    ) -> list[tuple[Any, ...]]:
        """Call ``work(begin, stop, *arguments)`` for slices of ``n`` items; the state of the thread is last."""

        def task(slices: Iterator[tuple[int, int]]) -> tuple[Any, ...]:
            own = state()
            for begin, stop in slices:
                work(begin, stop, *arguments, *own)
                self.at = self.at._replace(n_done=self.at.n_done + stop - begin)
            return own

        return self.pool.run(n, task)

    def run(self, stage: str, n: int, work: Callable[..., Any], *arguments: Any) -> None:
        """Do the same as a stage of its own."""
        self.begin(stage, n)
        self.spread(n, work, *arguments)


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
    places = dict.fromkeys(criterion.needs for criterion in asked)
    if records.placed is not None and len(attack.sets) * len(attack.rows) <= MATCHES_AT_ONCE:
        places = dict.fromkeys(DIVIDED if place.startswith(OF_ALL_RECORDS) else place for place in places)
    for place in places:
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


def count_rare_values(records: PooledRecords, attack: Attack, *_: object) -> Evidence:
    """Return ``is_rare``, (n_columns, n_scored): whether a value is rare, and some synthetic record has it.

    A text counts in either reading: as it is written, and in any spelling.
    """
    found = np.zeros((len(records.columns), len(attack.rows)), np.bool_)
    for j, kind in enumerate(records.kinds):
        if kind == "boolean":
            continue
        readings = [WrittenSides(records.exact.real[j], records.exact.synthetic[j])]
        readings += [own for name, own in records.as_written.items() if name == records.columns[j]]
        for real, synthetic in readings:
            n_people = people_of_values(real, int(records.n_exact[j]), records.people, RARE_BELOW)
            is_rare = (n_people < RARE_BELOW) & (np.bincount(synthetic, minlength=len(n_people)) > 0)
            if records.missing[j] >= 0:
                is_rare[records.missing[j]] = False
            found[j] |= is_rare[real[attack.rows]]
    return {"is_rare": found}


def plant_copies(
    records: PooledRecords, rows: Sequence[int] | NDArray[np.int64], places: Sequence[int] | NDArray[np.int64]
) -> PooledRecords:
    """Replace synthetic records by copies of real ones; those of a real person belong to one new synthetic person."""
    real, synthetic = records.exact
    people = None if records.synthetic_people is None else records.synthetic_people.copy()
    if people is not None:
        people[places] = people.max() + 1 + records.people[rows]
    exact, placed = Sides(real, synthetic.replaced(places, real, rows)), records.placed
    return replace(records, exact=exact, synthetic_people=people, placed=placed and placed.without(places))
