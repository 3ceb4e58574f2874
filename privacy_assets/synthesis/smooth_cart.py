"""CART that learns from many people at once: sequential trees on classes of values, with smoothed donors.

Like CART [1]_, every column is drawn from a tree on the columns drawn before it. Four differences make the records
follow the population instead of single people:

- **Classes instead of values.** A column is divided into classes of neighboring numbers, or of text values; each has at
  least `min_people` people. Trees see classes only, and a value is drawn within its class from the margin of the
  column, which is that of the Gaussian copula: numbers that few people share are drawn evenly from intervals.
- **Leaves of people.** A leaf has at least `smoothing` times the square root of the number of people, regardless of the
  number of their records. As for the copula's margins, a fixed number would be enough only for small tables: a person
  adds 1 / m to a leaf of m, and the chance error of the control comparison shrinks with the square root.
- **Splits that are not coincidental.** A split must raise the log-likelihood by as much as the number of probabilities
  that it adds (Akaike's criterion [2]_); trees of noise have one leaf.
- **Even draws.** The records in a leaf take the classes of its donors at even steps through the sorted donors, not
  independently. Sampling then adds hardly any noise to the learned model, which compensates for the larger leaves.

Columns of few classes come first, so that trees on the others have something to split.

**Groups.** With a `group` column, the trees remain common, so that relations of columns are learned from everybody. The
group is drawn first, and then multiplies the frequencies of a leaf by factors that give it its own distribution of each
column, as far as that differs from the others' beyond chance (`privacy_assets.synthesis.kernels.raking`).

**Soft leaves**, optional. A coincidence raises the log-likelihood, too, most of all if it is the best of many cuts. A
split must then also raise it by the logarithm of the number of possible cuts (the risk inflation criterion [3]_), and
the shares of classes in a node move towards those of its parent, by what the split had to gain as a share of what it
gains.

What it may reveal: text, categories, booleans, numeric columns of few values and numbers that many people share are
reproduced as *observed values*, text and categories only if `min_atom` people share them (rarer ones are redrawn
first). The ends of intervals are observed values, including the smallest and the largest number. Whole records are
reproduced only by coincidence: all donors of a leaf count equally, and every leaf has many of them.

References
----------
.. [1] J. P. Reiter (2005), "Using CART to generate partially synthetic public use microdata", Journal of Official
   Statistics 21(3), 441-462.
.. [2] H. Akaike (1974), "A new look at the statistical model identification", IEEE Transactions on Automatic Control
   19(6), 716-723, doi:10.1109/TAC.1974.1100705.
.. [3] D. P. Foster, E. I. George (1994), "The risk inflation criterion for multiple regression", Annals of Statistics
   22(4), 1947-1975, doi:10.1214/aos/1176325766.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, inf, log, sqrt
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from privacy_assets.contract.rules import Rule
from privacy_assets.disclosure.rare_values import RareColumn
from privacy_assets.errors import InvalidSettingError
from privacy_assets.setting_checks import is_number
from privacy_assets.synthesis.chunked_scores import chunks_of, generator_of
from privacy_assets.synthesis.groups import check_group
from privacy_assets.synthesis.kept_rules import draw_last_again
from privacy_assets.synthesis.kernels.class_tree import LEAF, ClassTree, find_leaves, grow_tree
from privacy_assets.synthesis.kernels.raking import blocks_of, rake
from privacy_assets.synthesis.margins import (
    DEFAULT_SMOOTHING,
    Enough,
    Margin,
    learn_margins,
    with_dtype,
    without_arrow_moments,
)
from privacy_assets.synthesis.number_lines import shares_of_people
from privacy_assets.synthesis.redraw import MIN_ATOM, redraw_rare_values
from privacy_assets.synthesis.synthesize import REDRAWN_KINDS, Kind, check_kinds, check_setting, is_ordered

MAX_CLASSES: Final = 32
MAX_DISCRETE: Final = 100
LEAST_UNSEEN: Final = 3.0
"""Expected donors whose absence is no coincidence: its probability is 5 %."""
OF_WEIGHTS: Final = np.zeros(0, np.int64)
"""Rows count as many people as their weights say."""


class Divided(NamedTuple):
    """A table without rare values whose columns are divided into classes of neighboring values.

    ``cells``, ``margins`` and ``firsts``, the first cell of each class, are by column.
    """

    table: pd.DataFrame
    redrawn: Mapping[str, RareColumn]
    cells: list[NDArray[np.intp]]
    margins: list[Margin]
    firsts: list[NDArray[np.intp]]

    def classes(self, place: int) -> NDArray[np.uint8]:
        """Return the class of each row in a column."""
        return (np.searchsorted(self.firsts[place], self.cells[place], side="right") - 1).astype(np.uint8)


class SmoothCart:
    """Synthesizer by trees on classes of people; the module describes what it may reveal.

    Parameters
    ----------
    min_people : int
        Smallest number of people in a class of values and in a leaf. A column in which fewer people have values is one
        class.
    smoothing : float
        A leaf has at least this many times the square root of the number of people, and so do the intervals from which
        rare numbers are drawn. 0 or more; with 0, only `min_people` and `min_atom` apply. Larger values lower the risk
        and preserve less.
    min_atom : int
        Text and categories shared by fewer people are redrawn (`redraw_rare_values`); 1 reproduces all of them. Numbers
        and datetimes shared by fewer people are interpolated.
    group : str, optional
        Column of at most 200 values, such as a region, within whose groups the distributions of the other columns are
        to be kept as well. At least half of the people must be in groups of 100; fewer than 300 people per group cause
        a warning. Values are reproduced as observed, and those of fewer than `min_atom` people redrawn, also numbers.
    soft_leaves : bool
        Whether leaves move towards what splits have in common: fewer releases are flagged as leaking, and they are
        worth a little less.
    """

    name = "smooth_cart"

    def __init__(
        self,
        *,
        min_people: int = 20,
        smoothing: float = DEFAULT_SMOOTHING,
        min_atom: int = MIN_ATOM,
        group: str | None = None,
        soft_leaves: bool = False,
    ) -> None:
        self._min_people = check_setting(self.name, "min_people", min_people, at_least=1)
        self._min_atom = check_setting(self.name, "min_atom", min_atom, at_least=1)
        if not is_number(smoothing, 0, inf):
            raise InvalidSettingError(
                f"`smoothing` of {self.name!r} is {smoothing!r}; expected a finite number, 0 or more."
            )
        if not (group is None or (isinstance(group, str) and group)):
            raise InvalidSettingError(f"`group` of {self.name!r} is {group!r}; expected the name of a column, or None.")
        if not isinstance(soft_leaves, bool):
            raise InvalidSettingError(f"`soft_leaves` of {self.name!r} is {soft_leaves!r}; expected true or false.")
        self._smoothing, self._group, self._soft_leaves = float(smoothing), group, soft_leaves
        self.redrawn: Mapping[str, RareColumn] = {}
        self._columns: tuple[Column, ...] = ()
        self._names: pd.Index[Any] = pd.Index([])

    @property
    def settings(self) -> Mapping[str, Any]:
        """Settings in use."""
        return {
            "min_people": self._min_people,
            "smoothing": self._smoothing,
            "min_atom": self._min_atom,
            "group": self._group,
            "soft_leaves": self._soft_leaves,
        }

    def fit(
        self,
        table: pd.DataFrame,
        *,
        seed: int,
        person: Sequence[Any] | None = None,
        progress: Callable[[], None] | None = None,
    ) -> SmoothCart:
        """Grow one tree per column; cost is linear in rows times the depth of the trees, and quadratic in columns.

        `person` is the person of each row, so that a person with many rows counts once; `redrawn` counts the redrawn
        values. `progress` is called before each column; an exception that it raises ends the learning.
        """
        self.learn(table, seed=seed, person=person, progress=progress)
        return self

    def learn(
        self,
        table: pd.DataFrame,
        *,
        seed: int,
        person: Sequence[Any] | None = None,
        progress: Callable[[], None] | None = None,
    ) -> NDArray[np.uint8]:
        """Fit; return the class of each column and row, shape (n_columns, n_rows), in the order of drawing."""
        kinds = check_kinds(table, self.name)
        whose = None if person is None else pd.factorize(np.asarray(person))[0]
        if self._group is not None:
            check_group(table, self._group, whose, self.name)
            kinds[self._group] = "category"
        divided = self.divide(table, kinds, seed=seed, person=person)
        self.redrawn, firsts, margins = divided.redrawn, divided.firsts, divided.margins
        weights = _weights(len(table), whose)
        leaf = self.people_of_leaf(round(weights.sum()))
        order = np.argsort([len(first) for first in firsts], kind="stable").tolist()
        if self._group is not None:
            at = list(kinds).index(self._group)
            firsts[at] = np.arange(margins[at].n_cells)
            order = [at, *(place for place in order if place != at)]
        classes = np.empty((len(order), len(table)), np.uint8)
        made: list[Column] = []
        for i, place in enumerate(order):
            if progress is not None:
                progress()
            classes[i] = divided.classes(place)
            n_classes = len(firsts[place])
            n_cuts = sum(len(firsts[before]) - 1 for before in order[:i])
            min_gain = self.least_gain(n_classes, n_cuts)
            tree = grow_tree(classes[:i], classes[i], weights, float(leaf), min_gain, OF_WEIGHTS)
            leaves = find_leaves(tree, classes[:i])
            donors = _counted(leaves, len(tree.feature), classes[i], n_classes)
            donors = softened(tree, donors, min_gain) if self._soft_leaves else donors
            factors = _factors(donors, leaves, classes[0], classes[i], weights, leaf) if self._group and i else None
            made.append(Column(place, tree, donors, factors, firsts[place], margins[place], table.dtypes.iloc[place]))
        self._names, self._columns = table.columns, tuple(made)
        return classes

    def divide(
        self, table: pd.DataFrame, kinds: Mapping[str, Kind], *, seed: int, person: Sequence[Any] | None
    ) -> Divided:
        """Redraw rare values, and divide each column into classes of enough people."""
        whose = None if person is None else pd.factorize(np.asarray(person))[0]
        dtypes = table.dtypes
        columns = [name for name, kind in kinds.items() if kind in REDRAWN_KINDS]
        table, redrawn = redraw_rare_values(
            table, columns, min_atom=self._min_atom, seed=seed, person=person, synthesizer=self.name
        )
        table = without_arrow_moments(table, kinds)
        n_people = len(table) if whose is None else len(np.unique(whose))
        enough = Enough.of(n_people, self._smoothing, self._min_atom, self._min_people)
        cells, margins = learn_margins(table, kinds, enough, MAX_DISCRETE, whose)
        firsts = [
            _first_cells(shares_of_people(own, whose), margin, is_ordered(kind, dtype), self._min_people)
            for own, margin, kind, dtype in zip(cells, margins, kinds.values(), dtypes, strict=True)
        ]
        return Divided(table, redrawn, cells, margins, firsts)

    def least_gain(self, n_classes: int, n_cuts: int) -> float:
        """Return how much a split must raise the log-likelihood, given how many cuts are possible."""
        return n_classes - 1 + log(max(n_cuts if self._soft_leaves else 1, 1))

    def people_of_leaf(self, n_people: int) -> int:
        """Return the smallest number of people in a leaf, given how many there are."""
        return max(self._min_people, ceil(self._smoothing * sqrt(n_people)))

    def sample(self, n_records: int, *, seed: int, rules: Sequence[Rule] = ()) -> pd.DataFrame:
        """Draw the classes of one column after the other, and values within them; again where they violate a rule."""
        if not self._columns:
            raise InvalidSettingError(f"{self.name!r} cannot sample before it is fitted. Call `fit` first.")
        made = [
            self.draw(rows.stop - rows.start, generator_of(seed, i), rules)[0]
            for i, rows in enumerate(chunks_of(n_records))
        ]
        return pd.concat(made, ignore_index=True)

    def draw(
        self, n_records: int, random: np.random.Generator, rules: Sequence[Rule] = ()
    ) -> tuple[pd.DataFrame, NDArray[np.uint8]]:
        """Return records, again where they violate a rule, and their classes as `learn` does."""
        classes = np.empty((len(self._columns), n_records), np.uint8)
        made: dict[str, pd.Series] = {}
        for i, column in enumerate(self._columns):
            leaves, donors = find_leaves(column.tree, classes[:i]), column.donors
            if column.factors is not None:
                n_groups = len(column.factors)
                pairs, leaves = np.unique(leaves * n_groups + classes[0], return_inverse=True)
                donors = donors[pairs // n_groups] * column.factors[pairs % n_groups]
            classes[i] = draw_classes(leaves, donors, random)
            made[self._names[column.place]] = column.read(classes[i], random)

            def again(rows: NDArray[np.intp], is_within: bool) -> Any:  # in this turn of the loop
                if not is_within:
                    classes[i, rows] = draw_classes(leaves[rows], donors, random)  # noqa: B023
                return column.read(classes[i, rows], random)  # noqa: B023

            draw_last_again(rules, made, self._names[column.place], again)
        return pd.DataFrame({name: made[name] for name in self._names}, columns=self._names), classes


@dataclass(frozen=True)
class Column:
    """The learned model of a column."""

    place: int
    tree: ClassTree
    """On the classes of the columns drawn before it."""
    donors: NDArray[np.float64]
    """By node of the tree and class, in records, of which some are the parents'; inner nodes are without donors."""
    factors: NDArray[np.float64] | None
    """By group and class, if there are groups."""
    first_cells: NDArray[np.intp]
    """First cell of each class."""
    margin: Margin
    dtype: Any

    def classes_of(self, numbers: pd.Series) -> NDArray[np.uint8]:
        """Return the class of each number of a numeric column; missing ones have that of the largest."""
        first = self.margin.observed.iloc[self.first_cells[1:][self.first_cells[1:] < self.margin.n_values]]
        found = np.searchsorted(first.to_numpy(np.float64), numbers.to_numpy(np.float64, na_value=np.nan), side="right")
        return found.astype(np.uint8)

    def read(self, classes: NDArray[np.uint8], random: np.random.Generator) -> pd.Series:
        """Return values of the column, drawn from the margin within each class, also at even steps."""
        ends = self.margin.upper[np.append(self.first_cells[1:], self.margin.n_cells) - 1]
        low, high = self.margin.lower[self.first_cells][classes], ends[classes]
        places = even_places(classes, len(ends), random)
        positions = np.minimum(low + places * (high - low), np.nextafter(high, 0))
        return with_dtype(self.margin.read(positions), self.dtype)


def _weights(n_rows: int, whose: NDArray[np.intp] | None) -> NDArray[np.float64]:
    """Return the weight of each row; those of one person sum to 1."""
    if whose is None:
        return np.ones(n_rows)
    _, own, n_own = np.unique(whose, return_inverse=True, return_counts=True)
    return np.asarray(1 / n_own[own])


def softened(tree: ClassTree, donors: NDArray[np.float64], min_gain: float) -> NDArray[np.float64]:
    """Return the donors of leaves, of shape (n_nodes, n_classes), with shares of classes nearer to the parents'.

    A node takes the share ``min_gain`` / gain of its split from its parent, which moved before. A class without donors
    in the node takes part only if `LEAST_UNSEEN` would be expected there, so that a class that others exclude stays
    excluded.
    """
    counts, inner = donors.copy(), np.flatnonzero(tree.feature != LEAF)
    for node in inner[::-1]:
        counts[node] = counts[tree.left[node]] + counts[tree.left[node] + 1]
    n_donors = counts.sum(axis=1)
    shares = counts / n_donors[:, None]
    for node in inner:
        moved = min(min_gain / tree.gain[node], 1.0)
        for child in (tree.left[node], tree.left[node] + 1):
            is_possible = (counts[child] > 0) | (moved * shares[node] * n_donors[child] >= LEAST_UNSEEN)
            parents = np.where(is_possible, shares[node], 0.0)
            shares[child] += moved * (parents / parents.sum() - shares[child])
    shares[inner] = 0.0
    made: NDArray[np.float64] = shares * n_donors[:, None]
    return made


def even_places(groups: NDArray[np.integer[Any]], n_groups: int, random: np.random.Generator) -> NDArray[np.float64]:
    """Return positions in [0, 1) that are evenly spaced within each group, from a random start, in random order.

    Each single position is uniform, so a draw has the distribution of an independent one; only the noise of the
    frequencies in a group is smaller (systematic sampling).
    """
    n = len(groups)
    order = random.permutation(n)
    order = order[np.argsort(groups[order], kind="stable")]
    own = groups[order]
    counts = np.bincount(groups, minlength=n_groups)
    rank = np.arange(n) - (np.cumsum(counts) - counts)[own]
    places = np.empty(n)
    places[order] = (rank + random.random(n_groups)[own]) / counts[own]
    return np.minimum(places, np.nextafter(1.0, 0.0))


def draw_classes(
    groups: NDArray[np.integer[Any]], donors: NDArray[np.float64], random: np.random.Generator
) -> NDArray[np.intp]:
    """Return a class for each record, at even steps through the donors of its group, which are by group and class."""
    n_groups, n_classes = donors.shape
    ends = np.cumsum(donors)
    each = donors.sum(axis=1)
    places = even_places(groups, n_groups, random) * each[groups] + (ends[n_classes - 1 :: n_classes] - each)[groups]
    last = n_classes - 1 - np.argmax(donors[:, ::-1] > 0, axis=1)  # rounding must not lead to the next group
    found = np.searchsorted(ends, places, side="right") - groups * n_classes
    drawn: NDArray[np.intp] = np.minimum(found, last[groups])
    return drawn


def _factors(
    donors: NDArray[np.float64],
    leaves: NDArray[np.int64],
    groups: NDArray[np.uint8],
    target: NDArray[np.uint8],
    weights: NDArray[np.float64],
    pool: int,
) -> NDArray[np.float64]:
    """Return the factors of each group and class, which are those of its block."""
    blocks = blocks_of(donors.sum(axis=0))
    people = np.bincount(groups, weights).astype(np.float64)
    n_blocks, is_leaf = int(blocks.max()) + 1, donors.any(axis=1)
    of_leaves = _counted(leaves, len(donors), blocks[target], n_blocks)[is_leaf]
    of_groups = _counted(groups.astype(np.intp), len(people), leaves, len(donors))[:, is_leaf]
    observed = _counted(groups.astype(np.intp), len(people), blocks[target], n_blocks)
    return rake(of_leaves, of_groups, observed, people, float(pool))[:, blocks]


def _counted(
    one: NDArray[np.integer[Any]], n_one: int, other: NDArray[np.integer[Any]], n_other: int
) -> NDArray[np.float64]:
    """Count the records of each pair of codes, shape (n_one, n_other)."""
    counts = np.bincount(one * n_other + other, minlength=n_one * n_other)
    return counts.reshape(n_one, n_other).astype(np.float64)


def _first_cells(people: NDArray[np.float64], margin: Margin, is_ordered: bool, min_people: int) -> NDArray[np.intp]:
    """Divide the cells of a column into classes of neighbors; return the first cell of each.

    ``people`` are those of each cell; each person counts once over all cells. Cells are in their order if `is_ordered`,
    else by frequency; the missing value is the last.
    """
    if not is_ordered:
        kept = np.flatnonzero(np.append(people[: margin.n_values] < min_people, True))[0]
        wanted = np.full(len(people), float(min_people))
        wanted[min(kept, MAX_CLASSES - 1) : margin.n_values] = inf  # the rare ones are one class
    else:
        few = margin.n_values <= MAX_CLASSES
        wanted = np.full(len(people), min_people if few else max(min_people, people.sum() / MAX_CLASSES))
    firsts, have = [0], 0.0
    for cell in range(1, len(people)):
        have += people[cell - 1]
        is_missing = cell == margin.n_values
        is_full = have >= wanted[cell - 1] or ((is_missing or people[cell] >= wanted[cell]) and have >= min_people)
        if is_full:
            firsts.append(cell)
            have = 0.0
    have += people[-1]
    if have < min_people and len(firsts) > 1:
        firsts.pop()
    return np.array(firsts, dtype=np.intp)
