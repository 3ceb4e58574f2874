"""Candidate sets: the originals that each released record can come from, if some columns are known."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from privacy_assets.anonymization.result import Anonymization
from privacy_assets.columns.coding import group_rows
from privacy_assets.columns.hierarchy import Hierarchy
from privacy_assets.columns.masks import ReleaseModel
from privacy_assets.engine.protocol import Engine
from privacy_assets.errors import ConflictError, InvalidSettingError, InvalidTableError
from privacy_assets.reidentification.belief import BeliefFunction
from privacy_assets.reidentification.divided_counts import count_for_many_sets_by, count_in_boxes
from privacy_assets.reidentification.kernels.candidates import count_candidates
from privacy_assets.reidentification.many_known_sets import count_for_many_sets
from privacy_assets.reidentification.masked_columns import (
    MaskedColumn,
    check_model,
    check_tables,
    check_truth,
    make_boxes,
    make_points,
    read_columns,
)
from privacy_assets.reidentification.microaggregation import read_microaggregated
from privacy_assets.reidentification.record_keys import match_keys, number_people, true_positions
from privacy_assets.setting_checks import threads_to_use


class Figures(NamedTuple):
    """Figures over all released records for an attacker who knows some columns of everybody.

    Probabilities are 1 / (number of candidates); their mean is the expected share of correct links if each is drawn
    among the candidates. Singletons have one candidate; ``share_below_k`` is None without k. Nonspecificity is the
    natural logarithm of the number of candidates.
    """

    max_reidentification_probability: float
    mean_reidentification_probability: float
    share_of_singletons: float
    share_below_k: float | None
    mean_nonspecificity: float
    min_nonspecificity: float
    fewest_candidates: int

    @classmethod
    def of(cls, sizes: NDArray[np.int64], k: int | None) -> Figures:
        """Compute the figures of candidate sets of these sizes."""
        logs = np.log(sizes)
        return cls(
            float(1 / sizes.min()),
            float((1 / sizes).mean()),
            float((sizes == 1).mean()),
            None if k is None else float((sizes < k).mean()),
            float(logs.mean()),
            float(logs.min()),
            int(sizes.min()),
        )


class CandidateIndex:
    """The candidate sets of a release.

    Parameters
    ----------
    model : ReleaseModel
        Mask of each column. Columns without a mask are not released.
    original : DataFrame
        All records that a released record may come from.
    released : DataFrame
        The released table; its index is ignored.
    truth : str or array-like of int
        Origin of each released record: the name of a column that identifies the records of both tables, or the position
        in ``original`` of each released row.
    hierarchies : mapping of str to Hierarchy, optional
        Hierarchies that the model names.
    subject : str, optional
        Column of the original with the person of each row; then candidates are people, not records.
    keys : sequence of str
        Released columns that link releases, such as pseudonyms; they do not need a mask.
    n_threads : int, optional
        Number of threads (default: all cores), which does not affect the result.
    on_column : callable, optional
        Called with the number of columns read so far, after each column; an exception that it raises ends the work.

    Attributes
    ----------
    columns : tuple of str
        Columns of the original that the model describes.
    n_original, n_released : int
        Numbers of rows of the tables.
    truth : ndarray of shape (n_released,), dtype=int64
        Position in the original of each released row.
    people : ndarray of shape (n_original,), dtype=int64, or None
        Person of each original; None if candidates are records.
    model : ReleaseModel
        The model; for several releases, that of the first.
    keys : DataFrame
        The key columns.

    Raises
    ------
    MaskError
        If the true original of a released record is not among its candidates. The model then describes the masks
        incorrectly, and every figure would be too low.
    InvalidTableError
        If a mask cannot read released values, a released column has no mask, or keys do not match.
    InvalidSettingError
        If columns or hierarchies are missing.

    Notes
    -----
    Definitions: ``docs/reidentification.md``.
    """

    def __init__(
        self,
        model: ReleaseModel,
        original: pd.DataFrame,
        released: pd.DataFrame,
        truth: str | ArrayLike,
        *,
        hierarchies: Mapping[str, Hierarchy] | None = None,
        subject: str | None = None,
        keys: Sequence[str] = (),
        n_threads: int | None = None,
        on_column: Callable[[int], None] | None = None,
    ) -> None:
        check_tables(original, released)
        check_model(model, original, released, [*keys, *([truth] if isinstance(truth, str) else [])], subject)
        self.n_threads = threads_to_use(n_threads)
        self.n_original, self.n_released = len(original), len(released)
        self.truth = true_positions(truth, original, released)
        self.people = None if subject is None else number_people(original, subject)
        self.model = model
        self.columns = tuple(model.masks)
        # For several releases, a column has the masks of all of them.
        read = read_columns(model, original, released, hierarchies or {}, on_column)
        self._columns = {name: (column,) for name, column in read.items()}
        self._microaggregated = read_microaggregated(model, original, released, self.truth)
        check_truth({name: int(own.excludes(self.truth).sum()) for name, own in read.items()}, self.n_released)
        # Set by callers that divide the work; counts do not depend on it.
        self.engine: Engine | None = None
        self.keys = released[[name for name in keys if name in released.columns]].reset_index(drop=True)

    @classmethod
    def of_anonymization(
        cls,
        original: pd.DataFrame,
        anonymization: Anonymization,
        *,
        hierarchies: Mapping[str, Hierarchy] | None = None,
        keys: Sequence[str] = (),
        n_threads: int | None = None,
        on_column: Callable[[int], None] | None = None,
    ) -> CandidateIndex:
        """Index the result of `anonymize`; ``original`` is its input."""
        truth = anonymization.members["row"].to_numpy()
        n_rows = int(anonymization.stats["n_rows"])
        if len(original) != n_rows:
            raise InvalidTableError(
                f"The anonymization was made from {n_rows} rows, but the original has {len(original)}. Expected "
                "exactly the table that was anonymized, because other rows have other candidates. Nothing was assessed."
            )
        return cls(
            anonymization.model,
            original,
            anonymization.table,
            truth,
            hierarchies={**anonymization.hierarchies, **(hierarchies or {})},
            subject=anonymization.settings.get("subject"),
            keys=keys,
            n_threads=n_threads,
            on_column=on_column,
        )

    def sizes(self, known: Sequence[str], on_wait: Callable[[], None] | None = None) -> NDArray[np.int64]:
        """Count the candidates of each released record.

        Parameters
        ----------
        known : sequence of str
            Columns of the model that the attacker knows about everybody in the original.
        on_wait : callable, optional
            Called about twice a second while candidates are counted in parallel; an exception that it raises ends the
            work.

        Returns
        -------
        sizes : ndarray of shape (n_released,), dtype=int64
            At least 1.
        """
        columns = self.masked(known)
        if not columns:
            return np.full(self.n_released, self.n_units, np.int64)
        if all(column.set_of_code is not None for column in columns):
            return self._sizes_by_group(columns)
        return self._sizes_by_scan(columns, on_wait)

    def sizes_of_sets(
        self,
        known_sets: Sequence[Sequence[str]],
        records: NDArray[np.int64],
        on_share: Callable[[float], None] | None = None,
    ) -> NDArray[np.int64]:
        """Count the candidates of some released records for many sets of known columns at once.

        Parameters
        ----------
        known_sets : sequence of sequence of str
            Sets of columns of the model.
        records : ndarray of shape (n,), dtype=int64
            Positions in the released table, at least one.
        on_share : callable, optional
            Called from time to time with the share of the work that is done; an exception that it raises ends the work.

        Returns
        -------
        sizes : ndarray of shape (n_sets, n), dtype=int64
            As by :meth:`sizes`, which is faster for a single set and all records.
        """
        columns: dict[tuple[object, ...], MaskedColumn] = {}
        numbers: dict[tuple[object, ...], int] = {}
        sets: dict[tuple[int, ...], list[int]] = {}
        for place, known in enumerate(known_sets):
            self.require_known(known)
            own: list[int] = []
            for key, column in self._parts(known, columns):
                columns[key] = column
                own.append(numbers.setdefault(key, len(numbers)))
            sets.setdefault(tuple(sorted(own)), []).append(place)
        sizes = np.full((len(known_sets), len(records)), self.n_units, np.int64)
        counted = [chosen for chosen in sets if chosen]
        if counted:
            every = list(columns.values())
            engine = self._dividing_engine
            if engine is None:
                found = count_for_many_sets(every, counted, records, self.people, self.n_threads, on_share)
            else:
                found = count_for_many_sets_by(engine, every, counted, records, self.people, on_share)
            for chosen, counts in zip(counted, found, strict=True):
                sizes[sets[chosen]] = counts
        return sizes

    def is_grouped(self, known: Sequence[str]) -> bool:
        """Whether the masks of some columns are functions of the original, so that grouping counts candidates."""
        return all(column.set_of_code is not None for column in self.masked(known))

    @property
    def n_units(self) -> int:
        """Number of originals, or of people if these are counted."""
        return self.n_original if self.people is None else int(self.people.max()) + 1

    def members(self, i: int, known: Sequence[str]) -> NDArray[np.int64]:
        """Return the candidates of released record ``i`` as positions in the original, ascending.

        With a subject, each person has one position: the first of the records that are candidates.
        """
        self.require_record(i)
        is_member = np.ones(self.n_original, np.bool_)
        for column in self.masked(known):
            is_inside = np.zeros(column.n_codes, np.bool_)
            is_inside[column.sets.codes_of(int(column.sets.set_of_row[i]))] = True
            is_member &= is_inside[column.codes]
        found = np.flatnonzero(is_member)
        if self.people is not None:
            found = np.sort(found[np.unique(self.people[found], return_index=True)[1]])
        return found.astype(np.int64)

    def belief(self, i: int, known: Sequence[str]) -> BeliefFunction:
        """Return the belief of an attacker about released record ``i``: all mass on its candidates."""
        return BeliefFunction.categorical(self.members(i, known).tolist())

    def report(self, known_sets: Iterable[Sequence[str]], *, k: int | None = None) -> pd.DataFrame:
        """Compute the figures for each set of known columns.

        Returns
        -------
        DataFrame
            One row per set: ``known`` (tuple of str), ``n_known``, and the fields of :class:`Figures`.
        """
        sets = [tuple(known) for known in known_sets]
        rows = [{"known": known, "n_known": len(known), **Figures.of(self.sizes(known), k)._asdict()} for known in sets]
        return pd.DataFrame(rows, columns=["known", "n_known", *Figures._fields])

    def also_with(self, columns: Sequence[str]) -> CandidateIndex:
        """Return the index with columns that only other releases have: they leave the same candidates here."""
        index = copy(self)
        index.columns = tuple(dict.fromkeys([*self.columns, *columns]))
        return index

    def require_known(self, known: Sequence[str]) -> None:
        """Raise InvalidSettingError if the release model does not describe one of these columns."""
        if isinstance(known, str):
            raise InvalidSettingError("`known` is a string. Expected a list of column names. Nothing was assessed.")
        unknown = [name for name in known if name not in self.columns]
        if unknown:
            raise InvalidSettingError(
                f"`known` names columns that the release model does not describe: {unknown}. It has "
                f"{list(self.columns)}. Nothing was assessed."
            )

    def masked(self, known: Sequence[str]) -> list[MaskedColumn]:
        """Return the released parts of some columns, most informative first, without suppressed ones."""
        self.require_known(known)
        columns = [column for _, column in self._parts(known, {})]
        return sorted(columns, key=lambda column: column.mean_share)

    def _parts(
        self, known: Sequence[str], made: Mapping[tuple[object, ...], MaskedColumn]
    ) -> Iterator[tuple[tuple[object, ...], MaskedColumn]]:
        """Yield the released parts of some columns, each with a key; parts that were made before are reused."""
        for name in dict.fromkeys(known):
            for number, column in enumerate(self._columns.get(name, ())):
                yield (name, number), column
        for number, together in enumerate(self._microaggregated):
            names = [name for name in together.codes if name in known]
            if names:
                key = (number, *names)
                yield key, made.get(key) or together.column(names)

    def require_record(self, i: int) -> None:
        """Raise InvalidSettingError if there is no released record ``i``."""
        if not 0 <= i < self.n_released:
            raise InvalidSettingError(
                f"There is no released record {i}. Expected a number from 0 to {self.n_released - 1}."
            )

    @property
    def _dividing_engine(self) -> Engine | None:
        """The engine, if it divides the work."""
        return None if self.engine is None or self.engine.rows_per_task is None else self.engine

    def _sizes_by_group(self, columns: Sequence[MaskedColumn]) -> NDArray[np.int64]:
        """Count originals that are released as the same cells, for masks that are functions of the original."""
        codes, n_codes = [], []
        for column in columns:
            assert column.set_of_code is not None  # noqa: S101 - the caller looked
            own = np.concatenate([column.set_of_code[column.codes], column.sets.set_of_row])
            codes.append(own + 1)
            n_codes.append(column.sets.n_sets + 1)
        groups, n_groups = group_rows(codes, n_codes)
        own = groups[: self.n_original]
        if self.people is not None:
            n_people = int(self.people.max()) + 1
            # Not np.unique, which takes ten times as long, because its hashes of such integers collide.
            own = pd.unique(own * n_people + self.people) // n_people
        return np.bincount(own, minlength=n_groups)[groups[self.n_original :]].astype(np.int64)

    def _sizes_by_scan(self, columns: Sequence[MaskedColumn], on_wait: Callable[[], None] | None) -> NDArray[np.int64]:
        """Count originals inside each released box."""
        boxes, box_of_row = make_boxes(columns)
        if self._dividing_engine is not None:
            return count_in_boxes(self._dividing_engine, columns, boxes, self.people, on_wait)[box_of_row]
        points = make_points(columns, self.people)
        n_codes = max(column.n_codes for column in columns)
        return count_candidates(points, boxes, n_codes, self.n_threads, on_wait)[box_of_row]


def combine(releases: Sequence[CandidateIndex], key: str) -> CandidateIndex:
    """Intersect the candidate sets of several releases of the same people.

    Intersection is always an acceptable combination (Definition 27): the true original stays a candidate, and there are
    never more candidates than in any single release. Dempster's rule is not always acceptable.

    Parameters
    ----------
    releases : sequence of CandidateIndex
        Releases of one original, all with the same key column among their ``keys``.
    key : str
        Column that links the records of the releases, such as a pseudonym.

    Returns
    -------
    CandidateIndex
        Index of the records of the first release, in their order, with the columns of all releases.

    Raises
    ------
    InvalidTableError
        If keys are missing or repeated, or one of the releases lacks some keys.
    ConflictError
        If records with the same key come from different originals, so that the releases contradict each other.
        Probabilities are not renormalized.
    """
    if len(releases) < 2 or not all(isinstance(each, CandidateIndex) for each in releases):
        raise InvalidSettingError("combine needs at least two releases, all of type CandidateIndex.")
    combined = releases[0]
    for number, other in enumerate(releases[1:], start=2):
        rows = match_keys(key, combined.keys, "first release", other.keys, f"release {number}", both_ways=True)
        combined = _intersected(combined, other, rows, f"Release {number}")
    return combined


def _intersected(first: CandidateIndex, other: CandidateIndex, rows: NDArray[np.int64], words: str) -> CandidateIndex:
    """Add the masks of another release; ``rows`` are its rows for the rows of the first one."""
    is_same_unit = (first.people is None) == (other.people is None)
    if first.n_original != other.n_original or not is_same_unit:
        raise InvalidSettingError(
            f"{words} was made from {other.n_original} originals, the first one from {first.n_original}; or one "
            "counts people and the other records. Expected releases of one table, counted in the same way."
        )
    combined = copy(first)
    columns = dict(first._columns)
    for name, masks in other._columns.items():
        taken = (mask.take(rows) for mask in masks)
        columns[name] = (*columns.get(name, ()), *taken)
    combined._columns = columns
    combined._microaggregated = [*first._microaggregated, *(own.take(rows) for own in other._microaggregated)]
    combined.columns = tuple(dict.fromkeys([*first.columns, *other.columns]))
    n_differing = int((first.truth != other.truth[rows]).sum())
    if n_differing:
        n_empty = int((combined.sizes(combined.columns) == 0).sum())
        raise ConflictError(
            f"{words} contradicts the first one: {n_differing} of {first.n_released} keys belong to different "
            f"originals, and {n_empty} of them leave no candidate. Expected the same people under the same "
            "keys. Nothing was assessed; correct the keys."
        )
    return combined
