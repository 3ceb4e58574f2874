"""People who are left for an attacker who knows several rows of a person, if a release ties its rows together."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import log
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from privacy_assets.columns.coding import group_rows, people_of_values
from privacy_assets.errors import InvalidSettingError
from privacy_assets.kernels.slices import SlicePool
from privacy_assets.reidentification.candidate_index import Figures
from privacy_assets.reidentification.curve import WITH_INTERVAL, values_of_figure
from privacy_assets.reidentification.kernels.candidates import count_candidates, list_candidates
from privacy_assets.reidentification.kernels.linked_rows import (
    FOUND,
    MOST_ATTACKED,
    OPEN,
    PROVEN,
    RowFits,
    attack,
    count_people,
    search,
)
from privacy_assets.reidentification.masked_columns import MaskedColumn, make_boxes, make_points, point_of_original
from privacy_assets.reidentification.sample_intervals import mean_interval

N_SAMPLES = 10_000
MOST_FITS = 1 << 27
"""Pairs of a known row and a box that it fits, of 24 bytes."""
N_NODES = 1_000_000
"""Steps of the search for the worst rows of a person; all people together have `MOST_WORDS_COMPARED` words of bits."""
MOST_WORDS_COMPARED = 10**11
ENDLESS = sys.maxsize
"""Size of the population of samples that are drawn with replacement."""


class KnownRows(NamedTuple):
    """The box of each released row, its original as a known row, and the boxes that each known row fits."""

    box_of_row: NDArray[np.int64]
    known_of_row: NDArray[np.int64]
    fit_first: NDArray[np.int64]
    fit_box: NDArray[np.int64]


class Share(NamedTuple):
    """A share of the people, estimated from a sample, and the ends of its interval."""

    share: float
    low: float
    high: float


class WorstRows(NamedTuple):
    """The fewest people left by any ``n_rows`` rows of a person: proven, and left by rows that were found.

    ``at_least`` and ``found`` are equal if the fewest is known exactly. ``outcome`` is *admitted* if at least k people
    are proven to be left for everybody, *refused* if an attack leaves fewer, else *not proven*, to be treated as
    refused. ``n_people_below`` are the people for whom an attack was found, ``n_people_open`` those for whom neither
    is proven.
    """

    outcome: Literal["admitted", "refused", "not proven"]
    at_least: int
    found: int
    n_people: int
    n_people_below: int
    n_people_open: int


def link_rows(links: Sequence[NDArray[np.int64]], people: NDArray[np.int64], k: int | None = None) -> NDArray[np.int64]:
    """Find the groups of released rows that share a value of some column, directly or by other rows.

    Parameters
    ----------
    links : sequence of ndarray of shape (n_released,), dtype=int64
        Codes of released columns, at least 0.
    people : ndarray of shape (n_released,), dtype=int64
        Person of each released row, at least 0.
    k : int, optional
        A value of at least this many people does not link rows: which of its rows are one person's is a guess.

    Returns
    -------
    groups : ndarray of shape (n_released,), dtype=int64
        Group of each row, from 0.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    n_released, rows, values = len(people), [], []
    n_nodes = n_released
    for codes in links:
        n_values = int(codes.max(initial=-1)) + 1
        is_few = np.ones(n_values, np.bool_) if k is None else people_of_values(codes, n_values, people) < k
        rows.append(np.flatnonzero(is_few[codes]))
        values.append(n_nodes + codes[rows[-1]])
        n_nodes += n_values
    edges = (np.concatenate(rows), np.concatenate(values)) if links else (np.zeros(0, np.int64),) * 2
    graph = coo_array((np.ones(len(edges[0]), np.bool_), edges), shape=(n_nodes, n_nodes))
    labels = connected_components(graph, directed=False)[1][:n_released]
    return np.asarray(labels, np.int64)


def read_known_rows(columns: Sequence[MaskedColumn], truth: NDArray[np.int64], n_threads: int = 1) -> KnownRows:
    """Find the boxes that the original of each released row fits.

    Parameters
    ----------
    columns : sequence of MaskedColumn
        The columns that an attacker knows, as by ``CandidateIndex.masked``; none if all are suppressed.
    truth : ndarray of shape (n_released,), dtype=int64
        Original of each released row.
    n_threads : int
        Number of threads.

    Raises
    ------
    InvalidSettingError
        If the rows fit more than `MOST_FITS` boxes, as with noise in all columns of a large table.
    """
    if not columns:
        nothing = np.zeros(len(truth), np.int64)
        return KnownRows(nothing, nothing, np.array([0, 1]), np.zeros(1, np.int64))
    columns = [replace(column, codes=column.codes[truth]) for column in columns]
    boxes, box_of_row = make_boxes(columns)
    points = make_points(columns, None)
    points = points._replace(weights=np.ones_like(points.weights))
    n_boxes, n_points, n_codes = len(boxes.sets), len(points.weights), max(column.n_codes for column in columns)
    n_of_box = count_candidates(points, boxes, n_codes, n_threads)
    n_fits = int(n_of_box.sum())
    if n_fits == n_points:  # each row fits the box of its own release only
        every = np.arange(n_boxes + 1)
        return KnownRows(box_of_row, box_of_row, every, every[:-1])
    if n_fits > MOST_FITS:
        raise InvalidSettingError(
            f"The {n_points} different known rows fit {n_fits} released records in total, more than {MOST_FITS}. "
            "Whether several rows of a person single the person out cannot be computed with such masks. Leave out the "
            "columns that link the rows of a person, or release intervals that do not overlap. Nothing was assessed."
        )
    listed = list_candidates(points, boxes, n_codes, n_of_box).points
    order = np.argsort(listed, kind="stable")
    fit_first = _starts(np.bincount(listed, minlength=n_points))
    fit_box = np.repeat(np.arange(n_boxes), n_of_box)[order]
    return KnownRows(box_of_row, point_of_original(columns, points), fit_first, fit_box)


@dataclass(frozen=True)
class LinkedRows:
    """Groups of released rows, and the rows of targets that an attacker may know.

    Attributes
    ----------
    fits : RowFits
        Boxes that known rows fit, and groups by box.
    first, known : ndarray of dtype=int64
        Known rows of target t: ``known[first[t]:first[t + 1]]``, ascending.
    person : ndarray of shape (n_targets,), dtype=int64
        Person of each target, ascending.
    n_threads : int
        Number of threads, which does not affect any figure.
    on_wait : callable, optional
        Called about twice a second; an exception that it raises ends the work.
    """

    fits: RowFits
    first: NDArray[np.int64]
    known: NDArray[np.int64]
    person: NDArray[np.int64]
    n_threads: int = 1
    on_wait: Callable[[], None] | None = None

    @classmethod
    def of_groups(
        cls,
        rows: KnownRows,
        people: NDArray[np.int64],
        groups: NDArray[np.int64],
        n_threads: int = 1,
        on_wait: Callable[[], None] | None = None,
    ) -> LinkedRows:
        """Arrange released rows by group; those of several people in a group are as many groups, each a target.

        ``people`` and ``groups`` are of shape (n_released,); numbers need not be consecutive.
        """
        person = np.unique(people, return_inverse=True)[1]
        keys, group = np.unique(person * (int(groups.max()) + 1) + groups, return_inverse=True)
        owner = keys // (int(groups.max()) + 1)
        return cls(_fits(rows, group, owner), *_lists(group, rows.known_of_row), owner, n_threads, on_wait)

    @classmethod
    def of_values(
        cls,
        rows: KnownRows,
        people: NDArray[np.int64],
        values: NDArray[np.int64],
        n_threads: int = 1,
        on_wait: Callable[[], None] | None = None,
    ) -> LinkedRows:
        """Arrange released rows by their value of a sensitive column, so that values are counted and not people."""
        person = np.unique(people, return_inverse=True)[1]
        distinct, value = np.unique(values, return_inverse=True)
        fits = _fits(rows, value, np.arange(len(distinct)))
        return cls(fits, *_lists(person, rows.known_of_row), np.arange(int(person.max()) + 1), n_threads, on_wait)

    @property
    def n_rows(self) -> NDArray[np.int64]:
        """Number of known rows of each target."""
        return np.diff(self.first)

    @property
    def first_of_person(self) -> NDArray[np.int64]:
        """First target of each person."""
        return np.flatnonzero(np.diff(self.person, prepend=-1))

    def count(self, first: NDArray[np.int64], known: NDArray[np.int64]) -> NDArray[np.int64]:
        """Count the people left by each sample, ``known[first[s]:first[s + 1]]``, ascending and not empty."""
        sizes = np.zeros(len(first) - 1, np.int64)
        self._run(count_people, len(sizes), self.fits, first, known, sizes)
        return sizes

    @cached_property
    def sizes_of_all(self) -> NDArray[np.int64]:
        """People left by all rows of each target: the lower bound for any of them."""
        return self.count(self.first, self.known)

    @cached_property
    def fewest_of_one(self) -> NDArray[np.int64]:
        """People left by the worst single row of each target."""
        distinct, place = np.unique(self.known, return_inverse=True)
        sizes = self.count(np.arange(len(distinct) + 1), distinct)
        return np.minimum.reduceat(sizes[place], self.first[:-1])

    def sample(self, steps: Sequence[int], n_samples: int, seed: int) -> Iterator[NDArray[np.int64]]:
        """Yield the numbers of people left by so many known rows of targets drawn at random, each of all rows if fewer.

        A person is drawn uniformly, then one of the person's rows and others of the same group. The rows of a step
        include those of the steps before it.
        """
        random = np.random.default_rng(seed)
        begins = np.append(self.first[self.first_of_person], len(self.known))
        person = random.integers(len(begins) - 1, size=n_samples)
        row = random.integers(begins[person], begins[person + 1])
        target = np.searchsorted(self.first, row, side="right") - 1
        first, n_rows = self.first[target], self.n_rows[target]
        most = max((step for step in steps if step < n_rows.max()), default=0)
        drawn = [random.choice(n, min(n, most), replace=False) for n in n_rows]
        for step in steps:
            sizes = self.sizes_of_all[target]
            some = np.flatnonzero(n_rows > step)
            if len(some):
                rows = np.stack([first[s] + drawn[s][:step] for s in some])
                known = np.sort(self.known[rows], axis=1).ravel()
                sizes[some] = self.count(np.arange(len(some) + 1) * step, known)
            yield sizes

    def worst(self, n_rows: int | Literal["all"], k: int) -> WorstRows:
        """Bound the number of people left by the worst ``n_rows`` known rows of each person.

        One row and pairs are compared all. Beyond them, a greedy attack is the upper bound and all rows together are
        the lower bound; if k lies between them, branch and bound decides, unless its steps run out.
        """
        most = int(self.n_rows.max()) if n_rows == "all" else n_rows
        at_least, found = self.sizes_of_all.copy(), self.fewest_of_one.copy()
        if most == 1:
            at_least = found
        is_short = self.n_rows <= most
        found[is_short] = at_least[is_short]
        targets = np.flatnonzero(at_least < found)
        if len(targets):
            chosen = np.full((len(targets), max(min(most, MOST_ATTACKED), 2)), -1, np.int64)
            is_worst = np.zeros(len(targets), np.bool_)
            self._run(attack, len(targets), self.fits, self.first, self.known, targets, most, chosen, is_worst)
            found[targets] = np.minimum(found[targets], self._count_chosen(chosen))
            if most == 2:
                at_least[targets[is_worst]] = found[targets[is_worst]]
        if most > 2:
            self._search(most, k, at_least, found)
        begins = self.first_of_person
        at_least, found = np.minimum.reduceat(at_least, begins), np.minimum.reduceat(found, begins)
        n_below, n_open = int((found < k).sum()), int(((at_least < k) & (found >= k)).sum())
        outcome: Literal["admitted", "refused", "not proven"] = "not proven" if n_open else "admitted"
        return WorstRows(
            "refused" if n_below else outcome, int(at_least.min()), int(found.min()), len(begins), n_below, n_open
        )

    def _search(self, most: int, k: int, at_least: NDArray[np.int64], found: NDArray[np.int64]) -> None:
        """Prove that everybody has as many people left as the worst attack leaves, or k, or find a worse attack."""
        is_open = np.zeros(len(found), np.bool_)
        while True:
            least = min(int(found.min()), k)
            targets = np.flatnonzero((at_least < least) & (found >= least) & ~is_open)
            if not len(targets):
                return
            n_words = len(self.fits.owner) // 64 + 1
            n_steps = min(N_NODES * n_words, MOST_WORDS_COMPARED // len(targets))
            chosen = np.full((len(targets), most), -1, np.int64)
            status = np.full(len(targets), OPEN)
            limits = (most, least, n_steps)
            self._run(search, len(targets), self.fits, self.first, self.known, targets, *limits, chosen, status)
            at_least[targets[status == PROVEN]] = least
            worse = targets[status == FOUND]
            found[worse] = np.minimum(found[worse], self._count_chosen(chosen[status == FOUND]))
            is_open[targets[status == OPEN]] = True
            is_open[worse[found[worse] >= least]] = True

    def _count_chosen(self, chosen: NDArray[np.int64]) -> NDArray[np.int64]:
        """Count the people left by rows chosen for targets; -1 for no row."""
        known = np.sort(chosen, axis=1)
        is_row = known >= 0
        return self.count(_starts(is_row.sum(axis=1)), known[is_row])

    def _run(self, compute: Callable[..., None], n_items: int, *arguments: object) -> None:
        """Call a kernel for slices of the items."""
        with SlicePool(self.n_threads, self.on_wait) as pool:

            def task(slices: Iterator[tuple[int, int]]) -> None:
                for begin, stop in slices:
                    compute(begin, stop, *arguments)

            pool.run(n_items, task)


def steps_of(n_rows: int | Literal["all"], most: int) -> list[int]:
    """Return the numbers of known rows to report, up to ``n_rows`` or the most that anybody has: 1 to 4, 8, ... 64."""
    last = most if n_rows == "all" else min(n_rows, most)
    return sorted({step for step in (1, 2, 3, 4, 8, 16, 32, 64) if step < last} | {last})


def linked_curve(
    rows: LinkedRows, n_rows: int | Literal["all"], k: int | None, *, n_samples: int = N_SAMPLES, seed: int = 0
) -> pd.DataFrame:
    """Compute the figures for an attacker who knows several rows of a person.

    Returns
    -------
    DataFrame
        One row per number of known rows: ``n_rows``; the fields of ``Figures``, of which the extremes are those of
        :meth:`LinkedRows.worst` (proven, so that a probability is never too low) and means and shares estimates from
        ``n_records`` samples; the ends of their intervals; ``outcome``, ``n_people_below`` and ``n_people_open``.
    """
    found, steps = [], steps_of(n_rows, int(rows.n_rows.max()))
    n_people, limit = len(rows.first_of_person), max(k or 2, 2)
    for step, sizes in zip(steps, rows.sample(steps, n_samples, seed), strict=True):
        worst = rows.worst(step, limit)
        figures = Figures.of(sizes, k)._replace(
            max_reidentification_probability=1 / worst.at_least,
            min_nonspecificity=log(worst.at_least),
            fewest_candidates=worst.at_least,
        )
        row: dict[str, Any] = {"n_rows": step, **figures._asdict(), "n_records": n_samples}
        for name in WITH_INTERVAL:
            ends: tuple[float | None, float | None] = (None, None)
            if row[name] is not None:
                extremes = values_of_figure(name, np.array([worst.at_least, n_people]), k)
                least, most = float(extremes.min()), float(extremes.max())
                values = values_of_figure(name, sizes, k)
                ends = mean_interval(values, ENDLESS, least, most, log(len(WITH_INTERVAL) * len(steps)))
            row[f"{name}_low"], row[f"{name}_high"] = ends
        found.append({**row, **worst._asdict()})
    return pd.DataFrame(found)


def share_certain_by_rows(
    rows: LinkedRows, n_rows: int | Literal["all"], *, n_samples: int = N_SAMPLES, seed: int = 0
) -> Share:
    """Estimate the share of people whose value is the only one that fits ``n_rows`` of their rows.

    ``rows`` are arranged by :meth:`LinkedRows.of_values`, for a column by :func:`is_constant`.
    """
    most = int(rows.n_rows.max())
    step = most if n_rows == "all" else min(n_rows, most)
    (sizes,) = rows.sample([step], n_samples, seed)
    is_certain = (sizes == 1).astype(np.float64)
    return Share(float(is_certain.mean()), *mean_interval(is_certain, ENDLESS, 0.0, 1.0, 0.0))


def is_constant(people: NDArray[np.int64], values: NDArray[np.int64], least_share: float = 0.95) -> bool:
    """Whether a column has one value in all rows of nearly all people who have several rows."""
    person = np.unique(people, return_inverse=True)[1]
    has_several = np.bincount(person) > 1
    pairs, _ = group_rows([person, values], [int(person.max()) + 1, int(values.max()) + 1])
    n_values = np.bincount(person[np.unique(pairs, return_index=True)[1]])
    return bool(has_several.any() and (n_values[has_several] == 1).mean() >= least_share)


def _starts(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


def _lists(of_row: NDArray[np.int64], values: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return where the list of each number begins, and the values of all lists, each ascending."""
    order = np.argsort(of_row * (int(values.max()) + 1) + values, kind="stable")
    return _starts(np.bincount(of_row)), values[order].astype(np.int64)


def _fits(rows: KnownRows, group: NDArray[np.int64], owner: NDArray[np.int64]) -> RowFits:
    n_groups = len(owner)
    pairs, counts = np.unique(rows.box_of_row * n_groups + group, return_counts=True)
    box, box_group = np.divmod(pairs, n_groups)
    group_first, group_box = _lists(group, rows.box_of_row)
    return RowFits(
        rows.fit_first, rows.fit_box, _starts(np.bincount(box)), box_group, counts, group_first, group_box, owner
    )
