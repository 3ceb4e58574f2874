"""Candidate sets: which originals each released record can come from, as far as some columns are known."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from privacy_assets.kernels.candidates import Boxes, Points, count_candidates
from privacy_assets.tables.anonymization import Anonymization
from privacy_assets.tables.belief import BeliefFunction
from privacy_assets.tables.code_sets import CodeSets, coarsen, partition_of
from privacy_assets.tables.coding import group_rows, read_column
from privacy_assets.tables.errors import InvalidSettingError, InvalidTableError, MaskError
from privacy_assets.tables.fingerprint import require_unique_text_names
from privacy_assets.tables.hierarchy import Hierarchy
from privacy_assets.tables.mask_sets import Original, read_mask
from privacy_assets.tables.quasi_identifiers import read_dimension
from privacy_assets.tables.release_model import ReleaseModel, Suppressed, columns_of

# Up to so many possible keys per record, counting them all is faster than sorting those that occur.
KEYS_PER_ROW = 16


class Figures(NamedTuple):
    """What an attacker who knows some columns of everybody can do, over all released records.

    Attributes
    ----------
    max_reidentification_probability : float
        Largest 1 / (number of candidates).
    mean_reidentification_probability : float
        Mean of 1 / (number of candidates): the share of links that come out right if every one is drawn among the
        candidates.
    share_of_singletons : float
        Share of released records with one candidate.
    share_below_k : float or None
        Share with fewer than k candidates; None without k.
    mean_nonspecificity, min_nonspecificity : float
        Natural logarithm of the number of candidates.
    fewest_candidates : int
        Of any released record.
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


@dataclass(frozen=True)
class _Column:
    """A column in codes that no released cell can tell further apart.

    Attributes
    ----------
    codes : ndarray of shape (n_original,), dtype=int32
        Code of each original.
    n_codes : int
        Codes are below it.
    sets : CodeSets
        What each released row leaves possible.
    set_of_code : ndarray of shape (n_codes,), dtype=int64, or None
        If the mask is a function of the original, the released cell it becomes; -1 for none.
    """

    codes: NDArray[np.int32]
    n_codes: int
    sets: CodeSets
    set_of_code: NDArray[np.int64] | None


class CandidateIndex:
    """The candidate sets of a release.

    Parameters
    ----------
    model : ReleaseModel
        How each column was masked. Columns that are not in it are not released.
    original : DataFrame
        All records that a released one may come from.
    released : DataFrame
        The released table; its index does not count.
    truth : str or array-like of int
        Where each released record comes from: the name of a column that identifies the records of both tables, or the
        position in ``original`` of each released row.
    hierarchies : mapping of str to Hierarchy, optional
        Those that the model names.
    subject : str, optional
        Column of the original that says whose record a row is. Then candidates are people, not records.
    n_threads : int, optional
        Threads (default: all cores); they change nothing.

    Raises
    ------
    MaskError
        The true original of a released record is not among its candidates: the masks are not what the model says, so
        every figure would be wrong, and too low.
    InvalidTableError
        Released values that their mask cannot read, released columns without a mask, keys that do not match.
    InvalidSettingError
        Columns that are not there, or hierarchies that are not given.

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
        n_threads: int | None = None,
    ) -> None:
        _check_tables(original, released)
        _check_model(model, original, released, truth if isinstance(truth, str) else None, subject)
        self.n_threads = _threads(n_threads)
        self.n_original, self.n_released = len(original), len(released)
        self.truth = _positions(truth, original, released)
        self.people = None if subject is None else _people(original, subject)
        self.model = model
        self.columns = tuple(model.masks)
        self._columns = _read_columns(model, original, released, hierarchies or {})
        self._check_truth()

    @classmethod
    def of_anonymization(
        cls,
        original: pd.DataFrame,
        anonymization: Anonymization,
        *,
        hierarchies: Mapping[str, Hierarchy] | None = None,
        n_threads: int | None = None,
    ) -> CandidateIndex:
        """Take what :func:`~privacy_assets.tables.anonymize.anonymize` returned; ``original`` is what it was given."""
        truth = anonymization.members["row"].to_numpy()
        if len(truth) and int(truth.max()) >= len(original):
            raise InvalidTableError(
                f"The anonymization was made of at least {int(truth.max()) + 1} rows, the original has {len(original)}."
                " Expected the very table that was anonymized. Nothing was assessed."
            )
        return cls(
            anonymization.model,
            original,
            anonymization.table,
            truth,
            hierarchies=hierarchies,
            subject=anonymization.settings.get("subject"),
            n_threads=n_threads,
        )

    def sizes(self, known: Sequence[str]) -> NDArray[np.int64]:
        """Count the candidates of each released record.

        Parameters
        ----------
        known : sequence of str
            Columns that the attacker knows of everybody in the original; columns of the model.

        Returns
        -------
        sizes : ndarray of shape (n_released,), dtype=int64
            At least 1.
        """
        columns = self._known(known)
        if not columns:
            everybody = self.n_original if self.people is None else int(self.people.max()) + 1
            return np.full(self.n_released, everybody, np.int64)
        if all(column.set_of_code is not None for column in columns):
            return self._sizes_by_group(columns)
        return self._sizes_by_scan(columns)

    def members(self, i: int, known: Sequence[str]) -> NDArray[np.int64]:
        """Return the candidates of released record ``i`` as positions in the original, ascending.

        With a subject, one position stands for each person: the first of the records that are candidates.
        """
        self._check_record(i)
        is_member = np.ones(self.n_original, np.bool_)
        for column in self._known(known):
            is_inside = np.zeros(column.n_codes, np.bool_)
            is_inside[column.sets.codes_of(int(column.sets.set_of_row[i]))] = True
            is_member &= is_inside[column.codes]
        found = np.flatnonzero(is_member)
        if self.people is not None:
            found = np.sort(found[np.unique(self.people[found], return_index=True)[1]])
        return found.astype(np.int64)

    def belief(self, i: int, known: Sequence[str]) -> BeliefFunction:
        """Return what an attacker believes of released record ``i``: all mass on its candidates."""
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

    def require_known(self, known: Sequence[str]) -> None:
        """Raise InvalidSettingError if the release model does not describe one of these columns."""
        if isinstance(known, str):
            raise InvalidSettingError("`known` is a text. Expected a list of column names. Nothing was assessed.")
        unknown = [name for name in known if name not in self.model.masks]
        if unknown:
            raise InvalidSettingError(
                f"`known` names columns that the release model does not describe: {unknown}. It has "
                f"{list(self.columns)}. Nothing was assessed."
            )

    def _known(self, known: Sequence[str]) -> list[_Column]:
        """Return the columns that tell something."""
        self.require_known(known)
        return [self._columns[name] for name in dict.fromkeys(known) if name in self._columns]

    def _check_record(self, i: int) -> None:
        if not 0 <= i < self.n_released:
            raise InvalidSettingError(
                f"There is no released record {i}. Expected a number from 0 to {self.n_released - 1}."
            )

    def _check_truth(self) -> None:
        """Refuse a model that excludes the true original of a released record (Lemma 13, Proposition 16)."""
        n_wrong = {}
        for name, column in self._columns.items():
            n = int((~column.sets.contain(column.codes[self.truth].astype(np.int64))).sum())
            if n:
                n_wrong[name] = n
        if n_wrong:
            raise MaskError(
                f"The true original is not among the candidates of released records, by column: {n_wrong} of "
                f"{self.n_released}. The masks of these columns are not what the release model says, or the truth "
                "names the wrong originals; any figure would be too low. Nothing was assessed; correct the model."
            )

    def _sizes_by_group(self, columns: Sequence[_Column]) -> NDArray[np.int64]:
        """Count originals that are released as the same cells; for masks that are functions of the original."""
        codes, n_codes = [], []
        for column in columns:
            assert column.set_of_code is not None  # noqa: S101 - the caller looked
            own = np.concatenate([column.set_of_code[column.codes], column.sets.set_of_row])
            codes.append(own + 1)
            n_codes.append(column.sets.n_sets + 1)
        groups, n_groups = group_rows(codes, n_codes)
        own = groups[: self.n_original]
        if self.people is not None:
            pairs, n_people = np.unique(own * (int(self.people.max()) + 1) + self.people), int(self.people.max()) + 1
            own = pairs // n_people
        return np.bincount(own, minlength=n_groups)[groups[self.n_original :]].astype(np.int64)

    def _sizes_by_scan(self, columns: Sequence[_Column]) -> NDArray[np.int64]:
        """Count originals inside each released box."""
        columns = sorted(columns, key=_mean_share)
        boxes, box_of_row = _boxes(columns)
        points = _points(columns, self.people)
        n_codes = max(column.n_codes for column in columns)
        return count_candidates(points, boxes, n_codes, self.n_threads)[box_of_row]


def _threads(n_threads: int | None) -> int:
    if n_threads is not None and (isinstance(n_threads, bool) or not isinstance(n_threads, int) or n_threads < 1):
        raise InvalidSettingError(f"n_threads is {n_threads!r}. Expected None or an integer above 0.")
    return n_threads or (len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)


def _check_tables(original: pd.DataFrame, released: pd.DataFrame) -> None:
    for words, table in (("original", original), ("released", released)):
        if not isinstance(table, pd.DataFrame):
            raise InvalidTableError(
                f"The {words} table is a {type(table).__name__}. Expected a pandas DataFrame. Convert it first."
            )
        require_unique_text_names(table)
        if len(table) == 0:
            raise InvalidTableError(f"The {words} table has no rows. Expected at least one. Nothing was assessed.")


def _check_model(
    model: ReleaseModel, original: pd.DataFrame, released: pd.DataFrame, key: str | None, subject: str | None
) -> None:
    """Refuse masks of columns that are not there, and released columns of which nobody says what they tell."""
    if not isinstance(model, ReleaseModel):
        raise InvalidSettingError(f"The model is a {type(model).__name__}. Expected a ReleaseModel.")
    if not model.masks:
        raise InvalidSettingError("The release model has no mask. Expected one per released column.")
    problems = []
    used = {name: columns_of(mask) for name, mask in model.masks.items()}
    lost = [name for name, columns in used.items() if columns and name not in original.columns]
    if subject is not None and subject not in original.columns:
        lost.append(subject)
    if lost:
        problems.append(f"The original lacks columns {lost}, and has {list(original.columns)}.")
    absent = sorted({column for columns in used.values() for column in columns} - set(released.columns))
    if absent:
        problems.append(f"The release lacks columns {absent} that masks read, and has {list(released.columns)}.")
    described = {*used, *(column for columns in used.values() for column in columns), key}
    silent = [name for name in released.columns if name not in described]
    if silent:
        problems.append(f"No mask says what the released columns {silent} tell of the original.")
    if problems:
        raise InvalidTableError(f"{' '.join(problems)} Correct the release model. Nothing was assessed.")


def _read_columns(
    model: ReleaseModel, original: pd.DataFrame, released: pd.DataFrame, hierarchies: Mapping[str, Hierarchy]
) -> dict[str, _Column]:
    """Read all columns that tell something; report all that cannot be read at once."""
    columns, problems = {}, []
    for name, mask in model.masks.items():
        if isinstance(mask, Suppressed):
            continue
        try:
            source = Original(name, original[name], read_dimension(original[name]))
            sets = read_mask(source, released, mask, hierarchies)
        except InvalidTableError as error:
            problems.append(str(error))
            continue
        codes, n_codes, sets = coarsen(source.dimension.codes.astype(np.int64), source.n_values, sets)
        columns[name] = _Column(codes, n_codes, sets, partition_of(sets, n_codes))
    if problems:
        raise InvalidTableError(f"{' '.join(problems)} Nothing was assessed.")
    return columns


def _positions(truth: str | ArrayLike, original: pd.DataFrame, released: pd.DataFrame) -> NDArray[np.int64]:
    """Return the position in the original of each released row."""
    if isinstance(truth, str):
        return match_keys(truth, released, "release", original, "original")
    positions = np.asarray(truth)
    n_original, n_released = len(original), len(released)
    if positions.shape != (n_released,) or positions.dtype.kind not in "iu":
        raise InvalidSettingError(
            f"`truth` has the shape {positions.shape} and the dtype {positions.dtype}. Expected one position in the "
            f"original per released row, so {n_released} integers, or the name of a key column. Nothing was assessed."
        )
    n_outside = int(((positions < 0) | (positions >= n_original)).sum())
    if n_outside:
        raise InvalidSettingError(
            f"`truth` has {n_outside} positions outside the original, which has {n_original} rows. Nothing was "
            "assessed."
        )
    return positions.astype(np.int64)


def match_keys(key: str, table: pd.DataFrame, words: str, other: pd.DataFrame, other_words: str) -> NDArray[np.int64]:
    """Return the row of ``other`` with the key of each row of ``table``.

    Raises
    ------
    InvalidTableError
        No such column, keys that are missing or repeated, keys that the other table lacks; counted.
    """
    tables = {words: table, other_words: other}
    lacking = [name for name, each in tables.items() if key not in each.columns]
    if lacking:
        raise InvalidTableError(
            f"The key column {key!r} is not in: {lacking}. Expected it in both tables. Nothing was assessed."
        )
    problems = []
    for name, each in tables.items():
        read = read_column(each[key], f"The key column {key!r} of the {name}")
        n_missing = int((read.codes < 0).sum())
        n_repeated = len(each) - n_missing - len(np.unique(read.codes[read.codes >= 0]))
        if n_missing or n_repeated:
            problems.append(f"The key column {key!r} of the {name} has {n_missing} missing and {n_repeated} repeated.")
    places = np.zeros(0, np.int64)
    if not problems:
        places = _find(other[key], table[key])
        n_lost = int((places < 0).sum())
        if n_lost:
            problems.append(f"{n_lost} of {len(table)} keys {key!r} of the {words} are not in the {other_words}.")
    if problems:
        raise InvalidTableError(
            f"{' '.join(problems)} Expected one key per record, and every one in both. Nothing was assessed."
        )
    return places


def _find(keys: pd.Series[Any], wanted: pd.Series[Any]) -> NDArray[np.int64]:
    """Return the place of each wanted key; -1 for none."""
    index = pd.Index(keys.astype(object))
    return np.asarray(index.get_indexer(pd.Index(wanted.astype(object))), np.int64)


def _people(original: pd.DataFrame, subject: str) -> NDArray[np.int64]:
    """Give each person a number; a row without one is a person of its own."""
    read = read_column(original[subject], f"Column {subject!r}")
    people = read.codes.astype(np.int64)
    nobody = people < 0
    people[nobody] = len(read.distinct) + np.arange(int(nobody.sum()))
    return people


def _mean_share(column: _Column) -> float:
    """Mean share of the originals that a released cell leaves possible; the smallest first makes short lists."""
    counts = np.concatenate([[0], np.cumsum(np.bincount(column.codes, minlength=column.n_codes))])
    sets = column.sets
    n_inside = np.zeros(sets.n_sets + 1)
    np.add.at(n_inside, sets.set_of_range, counts[sets.high + 1] - counts[sets.low])
    return float(n_inside[:-1].mean())


def _boxes(columns: Sequence[_Column]) -> tuple[Boxes, NDArray[np.int64]]:
    """Return the different boxes of the released rows in lexicographic order, and that of each row."""
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


def _points(columns: Sequence[_Column], people: NDArray[np.int64] | None) -> Points:
    """Return the different originals, sorted by their code in the first column."""
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


def _distinct(
    parts: Sequence[NDArray[np.int32]], n_codes: Sequence[int]
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Return the different rows of coded columns, sorted by the first column, and how often each occurs."""
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
    order = np.argsort(parts[0][example], kind="stable")
    return np.stack([part[example[order]] for part in parts]), weights[order].astype(np.int64)
