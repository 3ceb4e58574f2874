"""People who are left for an attacker who knows several rows of a person, if a release ties its rows together."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import log
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from privacy_assets.columns.coding import connected
from privacy_assets.errors import InvalidSettingError
from privacy_assets.kernels.slices import SlicePool
from privacy_assets.reidentification.candidate_index import Figures
from privacy_assets.reidentification.curve import WITH_INTERVAL, values_of_figure
from privacy_assets.reidentification.kernels.candidates import count_candidates, list_candidates
from privacy_assets.reidentification.kernels.linked_rows import RowFits, count_people, search_worst
from privacy_assets.reidentification.masked_columns import MaskedColumn, make_boxes, make_points, point_of_original
from privacy_assets.reidentification.sample_intervals import mean_interval

N_SAMPLES = 10_000
ENDLESS = sys.maxsize
"""Size of the population of samples that are drawn with replacement."""
MOST_FITS = 1 << 27
"""Pairs of a known row and a box that it fits, of 24 bytes."""
N_CHOICES, MOST_COMPARED = 10**6, 5 * 10**10
"""Rows that are tried for the worst ones of a person, and words of bits that are compared for all people together."""
STEPS = (1, 2, 3, 4, 8, 16, 32, 64)
CONSTANT = 0.95


class KnownRows(NamedTuple):
    """The box of each released row, its original as a known row, and the boxes that each known row fits."""

    box_of_row: NDArray[np.int64]
    known_of_row: NDArray[np.int64]
    fit_first: NDArray[np.int64]
    fit_box: NDArray[np.int64]


class WorstRows(NamedTuple):
    """The fewest people left by any ``n_rows`` rows of a person: proven, and left by rows that were found.

    An attack leaves fewer than k for ``n_people_below``. For ``n_people_open`` this is open, which counts the same.
    """

    at_least: int
    found: int
    n_people_below: int
    n_people_open: int


def link_rows(links: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    """Find the groups of released rows that have a code in common in some column, directly or by other rows."""
    n_released = len(links[0])
    begins = n_released + np.cumsum([0, *(int(codes.max(initial=0)) + 1 for codes in links)])
    values = np.concatenate([begin + codes for begin, codes in zip(begins, links, strict=False)])
    rows = np.tile(np.arange(n_released), len(links))
    return connected(rows, values, int(begins[-1]))[:n_released]


def read_known_rows(columns: Sequence[MaskedColumn], truth: NDArray[np.int64], n_threads: int = 1) -> KnownRows:
    """Find the boxes that the original of each released row fits, in columns as by ``CandidateIndex.masked``.

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
            f"The {n_points} different known rows fit {n_fits} released records in total. Expected at most "
            f"{MOST_FITS}, to intersect them. Leave out the columns that link the rows of a person, or release "
            "intervals that do not overlap. Nothing was assessed."
        )
    listed = list_candidates(points, boxes, n_codes, n_of_box).points
    fit_box = np.repeat(np.arange(n_boxes), n_of_box)[np.argsort(listed, kind="stable")]
    return KnownRows(box_of_row, point_of_original(columns, points), _starts(np.bincount(listed)), fit_box)


@dataclass(frozen=True)
class LinkedRows:
    """Groups of released rows, and targets: rows of a person, ``known[first[t]:first[t + 1]]``, for an attacker.

    ``person`` of each target is ascending. ``on_wait`` is called about twice a second; an exception that it raises ends
    the work.
    """

    fits: RowFits
    first: NDArray[np.int64]
    known: NDArray[np.int64]
    person: NDArray[np.int64]
    n_threads: int = 1
    on_wait: Callable[[], None] | None = None

    @classmethod
    def of_groups(
        cls, rows: KnownRows, people: NDArray[np.int64], groups: NDArray[np.int64], *options: Any
    ) -> LinkedRows:
        """Arrange released rows by group; those of several people in a group are as many groups, each a target.

        ``people`` and ``groups`` are of shape (n_released,); numbers need not be consecutive.
        """
        person, n_groups = np.unique(people, return_inverse=True)[1], int(groups.max()) + 1
        keys, group = np.unique(person * n_groups + groups, return_inverse=True)
        owner = keys // n_groups
        return cls(_fits(rows, group, owner), *_lists(group, rows.known_of_row), owner, *options)

    @classmethod
    def of_values(
        cls, rows: KnownRows, people: NDArray[np.int64], values: NDArray[np.int64], *options: Any
    ) -> LinkedRows:
        """Arrange released rows by their value of a sensitive column, so that values are counted and not people."""
        person = np.unique(people, return_inverse=True)[1]
        distinct, value = np.unique(values, return_inverse=True)
        fits = _fits(rows, value, np.arange(len(distinct)))
        return cls(fits, *_lists(person, rows.known_of_row), np.arange(int(person.max()) + 1), *options)

    @cached_property
    def n_rows(self) -> NDArray[np.int64]:
        """Number of known rows of each target."""
        return np.diff(self.first_row)

    @property
    def first_row(self) -> NDArray[np.int64]:
        """Number of the first known row of each target."""
        return self.first

    @cached_property
    def first_of_person(self) -> NDArray[np.int64]:
        """First target of each person."""
        return np.flatnonzero(np.diff(self.person, prepend=-1))

    def steps(self, n_rows: int | Literal["all"]) -> list[int]:
        """Return the numbers of known rows to report, up to ``n_rows`` or the most that anybody has."""
        most = int(self.n_rows.max())
        last = most if n_rows == "all" else min(n_rows, most)
        return [*(step for step in STEPS if step < last), last]

    def count(self, first: NDArray[np.int64], known: NDArray[np.int64]) -> NDArray[np.int64]:
        """Count the people left by each sample, ``known[first[s]:first[s + 1]]``, ascending and not empty."""
        sizes = np.zeros(len(first) - 1, np.int64)
        self._run(count_people, len(sizes), self.fits, first, known, sizes)
        return sizes

    @cached_property
    def sizes_of_all(self) -> NDArray[np.int64]:
        """People left by all rows of each target: no fewer are left by some of them."""
        return self.count(self.first, self.known)

    @cached_property
    def fewest_of_one(self) -> NDArray[np.int64]:
        """People left by the worst single row of each target."""
        distinct, place = np.unique(self.known, return_inverse=True)
        sizes = self.count(np.arange(len(distinct) + 1), distinct)
        return np.minimum.reduceat(sizes[place], self.first[:-1])

    def sample(self, steps: Sequence[int], n_samples: int, seed: int) -> Iterator[NDArray[np.int64]]:
        """Yield the numbers of people left by so many known rows of targets drawn at random, by all if these are fewer.

        A person is drawn uniformly, then one of the person's rows, and others of its target. The rows of a step include
        those of the steps before it.
        """
        random = np.random.default_rng(seed)
        begins = np.append(self.first_row[self.first_of_person], self.first_row[-1])
        person = random.integers(len(begins) - 1, size=n_samples)
        row = random.integers(begins[person], begins[person + 1])
        target = np.searchsorted(self.first_row, row, side="right") - 1
        n_rows = self.n_rows[target]
        most = max((step for step in steps if step < n_rows.max()), default=0)
        drawn = [random.choice(n, min(n, most), replace=False) for n in n_rows]
        for step in steps:
            sizes, some = self.sizes_of_all[target], np.flatnonzero(n_rows > step)
            if len(some):
                rows = self.first_row[target[some], None] + np.stack([drawn[s][:step] for s in some])
                sizes[some] = self.count_rows(rows)
            yield sizes

    def count_rows(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Count the people left by samples of known rows, by number, of shape (n_samples, n_rows)."""
        n_samples, n_rows = rows.shape
        return self.count(np.arange(n_samples + 1) * n_rows, np.sort(self.known[rows], axis=1).ravel())

    def worst(self, n_rows: int | Literal["all"], k: int, fewest: NDArray[np.int64] | None = None) -> WorstRows:
        """Bound the number of people left by the worst ``n_rows`` known rows of each person.

        Whether k are left is proven by all rows of the person together, or by a search, unless its steps run out. So is
        the fewest of all people, if it is below k or up to two rows are known. ``fewest`` people left by up to so many
        rows of each target, as found before, are lowered in place to those found now.
        """
        most = self.steps(n_rows)[-1]
        at_least, found = self.sizes_of_all.copy(), self.fewest_of_one.copy() if fewest is None else fewest
        if most == 1:
            at_least = found
        is_short = self.n_rows <= most
        found[is_short] = at_least[is_short]
        limit, is_open = k, np.zeros(len(found), np.bool_)
        while True:
            targets = np.flatnonzero((at_least < limit) & (found >= limit) & ~is_open)
            own, is_proven = found[targets], np.zeros(len(targets), np.bool_)
            n_steps = min(N_CHOICES * (len(self.fits.owner) // 64 + 1), MOST_COMPARED // max(len(targets), 1))
            limits = (targets, most, limit, n_steps)
            self._run(search_worst, len(targets), self.fits, self.first, self.known, *limits, own, is_proven)
            found[targets], at_least[targets[is_proven]] = own, limit
            is_open[targets] = ~is_proven & (own >= limit)
            least = int(found.min())
            if limit == least or (most > 2 and least >= limit):
                break
            limit = least  # for the exact number of people
        at_least, found = (np.minimum.reduceat(sizes, self.first_of_person) for sizes in (at_least, found))
        n_below, n_open = int((found < k).sum()), int(((at_least < k) & (found >= k)).sum())
        return WorstRows(int(at_least.min()), int(found.min()), n_below, n_open)

    def _run(self, compute: Callable[..., None], n_items: int, *arguments: object) -> None:
        """Call a kernel for slices of the items."""
        with SlicePool(self.n_threads, self.on_wait) as pool:

            def task(slices: Iterator[tuple[int, int]]) -> None:
                for begin, stop in slices:
                    compute(begin, stop, *arguments)

            pool.run(n_items, task)


def linked_curve(
    rows: LinkedRows, n_rows: int | Literal["all"], k: int | None, *, n_samples: int = N_SAMPLES, seed: int = 0
) -> list[dict[str, Any]]:
    """Compute the figures for an attacker who knows several rows of a person.

    Returns
    -------
    list of dict
        By number of known rows: ``n_rows``; the fields of ``Figures``, of which the extremes are those of
        :meth:`LinkedRows.worst` (proven, so that a probability is never too low) and means and shares estimates from
        ``n_records`` samples; the ends of their intervals; and the fields of `WorstRows`.
    """
    found, steps, n_people, fewest = [], rows.steps(n_rows), len(rows.first_of_person), rows.fewest_of_one.copy()
    for step, sizes in zip(steps, rows.sample(steps, n_samples, seed), strict=True):
        worst = rows.worst(step, max(k or 2, 2), fewest)
        figures = Figures.of(sizes, k)._replace(
            max_reidentification_probability=1 / worst.at_least,
            min_nonspecificity=log(worst.at_least),
            fewest_candidates=worst.at_least,
        )
        row = {"n_rows": step, **figures._asdict(), "n_records": n_samples, **worst._asdict()}
        for name in WITH_INTERVAL:
            ends: tuple[float | None, float | None] = (None, None)
            if row[name] is not None:
                extremes = values_of_figure(name, np.array([worst.at_least, n_people]), k)
                values, log_n_means = values_of_figure(name, sizes, k), log(len(WITH_INTERVAL) * len(steps))
                ends = mean_interval(values, ENDLESS, float(extremes.min()), float(extremes.max()), log_n_means)
            row[f"{name}_low"], row[f"{name}_high"] = ends
        found.append(row)
    return found


def share_certain_by_rows(
    rows: LinkedRows, n_rows: int | Literal["all"], *, n_samples: int = N_SAMPLES, seed: int = 0
) -> tuple[float, float, float]:
    """Estimate the share of people whose value alone fits ``n_rows`` of their rows; return it and its interval.

    ``rows`` are arranged by :meth:`LinkedRows.of_values`, for a column that :func:`is_constant`.
    """
    (sizes,) = rows.sample(rows.steps(n_rows)[-1:], n_samples, seed)
    is_certain = (sizes == 1).astype(np.float64)
    return (float(is_certain.mean()), *mean_interval(is_certain, ENDLESS, 0.0, 1.0, 0.0))


def is_constant(people: NDArray[np.int64], values: NDArray[np.int64]) -> bool:
    """Whether a column has one value in all rows of nearly all people who have several rows."""
    person = np.unique(people, return_inverse=True)[1]
    n_codes = int(values.max()) + 1
    n_values = np.bincount(np.unique(person * n_codes + values) // n_codes)
    n_values = n_values[np.bincount(person) > 1]
    return len(n_values) > 0 and bool((n_values == 1).mean() >= CONSTANT)


def _starts(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


def _lists(of_row: NDArray[np.int64], values: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return where the list of each number begins, and the values of all lists, each ascending."""
    order = np.argsort(of_row * (int(values.max()) + 1) + values, kind="stable")
    return _starts(np.bincount(of_row)), values[order].astype(np.int64)


def _fits(rows: KnownRows, group: NDArray[np.int64], owner: NDArray[np.int64]) -> RowFits:
    box, box_group = np.divmod(np.unique(rows.box_of_row * len(owner) + group), len(owner))
    lists = (_starts(np.bincount(box)), box_group, *_lists(group, rows.box_of_row))
    return RowFits(rows.fit_first, rows.fit_box, *lists, owner)
