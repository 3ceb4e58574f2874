"""The worst of some classes: the measures of each, and the largest and smallest figures of all."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from privacy_assets.anonymity.kernels.measures import RowsByClass, count_people, measure_classes

CLASSES_AT_ONCE = 2**16


class CodedValues(NamedTuple):
    """A sensitive column in codes, in the order of the values if that matters.

    ``totals`` are the rows of each value in the whole table, of which these rows may be only a part; ``is_ordered`` and
    ``largest_l`` are as for `measure_classes`.
    """

    codes: NDArray[np.integer[Any]]
    totals: NDArray[np.int64]
    is_ordered: bool
    largest_l: int


class WorstClass(NamedTuple):
    """Figures of the worst of some classes on one sensitive column, as in `ClassMeasures`.

    ``n_values`` and ``entropy`` are the smallest, the others the largest; ``recursive_c`` has shape (largest_l + 1,).
    ``n_incomplete`` classes lack one of the ``n_values_of_table``, and ``n_homogeneous`` rows are in classes of one.
    """

    n_values: float
    entropy: float
    largest_share: float
    distance: float
    beta: float
    enhanced_beta: float
    delta: float
    n_values_of_table: float
    n_incomplete: float
    n_homogeneous: float
    recursive_c: NDArray[np.float64]

    @staticmethod
    def n_figures(largest_l: int) -> int:
        """Return the length of `to_array`."""
        return len(WorstClass._fields) + largest_l

    def to_array(self) -> NDArray[np.float64]:
        """Return all figures in one array."""
        return np.concatenate([np.array(self[:-1], np.float64), self.recursive_c])

    @classmethod
    def of_all(cls, arrays: Sequence[NDArray[np.float64]]) -> WorstClass:
        """Return the worst of several parts of the classes, from their arrays."""
        every = np.stack(arrays)
        smallest, largest, added = every.min(axis=0), every.max(axis=0), every.sum(axis=0)
        plain = [*smallest[:2], *largest[2:8], *added[8:10]]
        return cls._make([*(float(figure) for figure in plain), largest[10:]])


class MeasuredClasses(NamedTuple):
    """The measures of some classes: rows and people of each, whether it has one value of some sensitive column.

    ``worst`` has the worst of them for each sensitive column.
    """

    sizes: NDArray[np.int64]
    people: NDArray[np.int64] | None
    is_homogeneous: NDArray[np.bool_]
    worst: tuple[WorstClass, ...]


def measure_all(
    classes: RowsByClass,
    values: Iterable[CodedValues],
    person_of_row: NDArray[np.signedinteger[Any]] | None,
    n_people: int,
) -> MeasuredClasses:
    """Measure every class of a table, or of the part of it that consists of some classes.

    People, some of 0 to ``n_people - 1``, are counted if given; sensitive columns are read one after the other.
    """
    sizes = np.diff(classes.starts)
    people = None if person_of_row is None else count_people(classes, person_of_row, n_people)
    is_homogeneous = np.zeros(len(sizes), np.bool_)
    worst = []
    for column in values:
        # Once for all parts.
        own = column._replace(codes=column.codes.astype(classes.rows.dtype, copy=False))
        parts = [
            _measure_some(classes, slice(begin, begin + CLASSES_AT_ONCE), own, is_homogeneous).to_array()
            for begin in range(0, max(len(sizes), 1), CLASSES_AT_ONCE)
        ]
        worst.append(WorstClass.of_all(parts))
    return MeasuredClasses(sizes, people, is_homogeneous, tuple(worst))


def _measure_some(
    classes: RowsByClass, some: slice, column: CodedValues, is_homogeneous: NDArray[np.bool_]
) -> WorstClass:
    """Return the worst of some classes on a sensitive column, and mark those that have one value."""
    own = classes._replace(starts=classes.starts[some.start : some.stop + 1])
    found = measure_classes(own, column.codes, column.totals, is_ordered=column.is_ordered, largest_l=column.largest_l)
    has_one = found.n_values == 1
    is_homogeneous[some] |= has_one
    return WorstClass(
        n_values=int(found.n_values.min()),
        entropy=float(found.entropy.min()),
        largest_share=float(found.largest_share.max()),
        distance=float(found.distance.max()),
        beta=float(found.beta.max()),
        enhanced_beta=float(found.enhanced_beta.max()),
        delta=float(found.delta.max()),
        n_values_of_table=len(column.totals),
        n_incomplete=int((found.n_values < len(column.totals)).sum()),
        n_homogeneous=int(np.diff(own.starts)[has_one].sum()),
        recursive_c=found.recursive_c.max(axis=0),
    )
