"""Measures of classes: sizes, and the distribution of a sensitive value in each class.

A class is a set of rows with equal quasi-identifiers. All measures of a class are functions of its counts by sensitive
value and of the counts of the whole table. Only values that occur in a class are visited, so the cost depends on the
rows, not on the number of values and classes.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from privacy_assets.kernels.compilation import kernel, part
from privacy_assets.kernels.numbers import number_type
from privacy_assets.kernels.sorting import sort_ascending

Number = TypeVar("Number", bound=np.signedinteger[Any])
LARGEST_RECURSIVE_L = 10
# -ln(p) and a share of small integers may differ in their last bits although they are equal.
TOLERANCE = 1e-12


class RowsByClass(NamedTuple):
    """Rows sorted by class, ascending within a class: class c has ``rows[starts[c]:starts[c + 1]]``."""

    rows: NDArray[np.integer[Any]]
    starts: NDArray[np.int64]


class ClassMeasures(NamedTuple):
    """Measures of one sensitive column in each class; :func:`measure_classes` defines them.

    All have shape (n_classes,), except ``recursive_c``, which has shape (n_classes, largest_l + 1).
    """

    n_values: NDArray[np.int64]
    largest_share: NDArray[np.float64]
    entropy: NDArray[np.float64]
    recursive_c: NDArray[np.float64]
    distance: NDArray[np.float64]
    beta: NDArray[np.float64]
    enhanced_beta: NDArray[np.float64]
    delta: NDArray[np.float64]


def sort_by_class(class_of_row: NDArray[Number], n_classes: int) -> tuple[NDArray[Number], NDArray[np.int64]]:
    """Sort rows by class, keeping their order; returns the fields of :class:`RowsByClass`."""
    # Arrays are made here, because Numba takes long to compile NumPy's functions.
    rows, starts = np.empty_like(class_of_row), np.zeros(n_classes + 1, np.int64)
    _sort_by_class(class_of_row, rows, starts, np.empty(n_classes, np.int64))
    return rows, starts


@kernel
def _sort_by_class(
    class_of_row: NDArray[Number], rows: NDArray[Number], starts: NDArray[np.int64], place: NDArray[np.int64]
) -> None:
    """Write the result of :func:`sort_by_class`; ``starts`` is 0 before."""
    n_classes = len(place)
    for c in class_of_row:
        starts[c + 1] += 1
    for c in range(n_classes):
        starts[c + 1] += starts[c]
    for c in range(n_classes):
        place[c] = starts[c]
    for row in range(len(class_of_row)):
        c = class_of_row[row]
        rows[place[c]] = row
        place[c] += 1


def count_people(
    classes: RowsByClass, person_of_row: NDArray[np.signedinteger[Any]], n_people: int
) -> NDArray[np.int64]:
    """Count the distinct people, some of 0 to ``n_people - 1``, in each class."""
    people = np.zeros(len(classes.starts) - 1, np.int64)
    _count_people(classes.rows, classes.starts, person_of_row, np.full(n_people, -1, classes.rows.dtype), people)
    return people


@kernel
def _count_people(
    rows: NDArray[np.integer[Any]],
    starts: NDArray[np.int64],
    person_of_row: NDArray[np.signedinteger[Any]],
    last_class: NDArray[np.signedinteger[Any]],
    people: NDArray[np.int64],
) -> None:
    """Write the result of :func:`count_people`, which is 0 before; ``last_class`` of each person is -1."""
    for c in range(len(people)):
        for i in range(starts[c], starts[c + 1]):
            person = person_of_row[rows[i]]
            if last_class[person] != c:
                last_class[person] = c
                people[c] += 1


@part
def entropy_of(counts: NDArray[np.int64], present: NDArray[np.int64], size: int) -> float:
    """Return -sum(q ln q) over the values present."""
    total = 0.0
    for value in present:
        total += counts[value] * np.log(size / counts[value])
    return total / size


@part
def fill_recursive_c(
    counts: NDArray[np.int64],
    present: NDArray[np.int64],
    size: int,
    top: NDArray[np.int64],
    c_of_l: NDArray[np.float64],
) -> None:
    """Write into ``c_of_l[l]``, for each l below its length, r_1 / (r_l + ... + r_m); infinity if m < l.

    r_1 >= r_2 >= ... are the counts of the values present; ``top`` is scratch for the largest ones, one fewer than
    ``c_of_l`` has places.
    """
    n_top = 0
    for value in present:
        count = counts[value]
        place = n_top
        while place > 0 and top[place - 1] < count:
            place -= 1
        if place < len(top):
            n_top = min(n_top + 1, len(top))
            for i in range(n_top - 1, place, -1):
                top[i] = top[i - 1]
            top[place] = count
    tail = size
    c_of_l[0] = 0.0
    for l_value in range(1, len(c_of_l)):
        c_of_l[l_value] = top[0] / tail if tail > 0 else np.inf
        if l_value <= n_top:
            tail -= top[l_value - 1]


@part
def equal_distance(
    counts: NDArray[np.int64], present: NDArray[np.int64], size: int, totals: NDArray[np.int64], n_rows: int
) -> float:
    """Return half the sum of |q - p| over all values: the least mass to move if all values are equally far apart."""
    # Surplus and deficit are equal, so the values of the class suffice; integers are exact.
    surplus = 0
    for value in present:
        surplus += max(counts[value] * n_rows - totals[value] * size, 0)
    return surplus / (float(size) * n_rows)


@part
def ordered_distance(
    counts: NDArray[np.int64],
    present: NDArray[np.int64],
    size: int,
    cumulative: NDArray[np.int64],
    prefix: NDArray[np.float64],
    n_rows: int,
) -> float:
    """Return the sum over values of |Q - P|, the cumulative shares, divided by the number of values minus one.

    ``present`` is ascending. Between two values of the class, Q is constant while P rises: one binary search finds
    where they cross, and ``prefix`` (sums of ``cumulative`` before each value) gives both parts. Numerators are whole
    numbers, exact up to 2**53.
    """
    n_values = len(cumulative)
    if n_values == 1:
        return 0.0
    total = 0.0
    seen = 0
    begin = 0
    for i in range(len(present) + 1):
        end = present[i] if i < len(present) else n_values
        level = seen * n_rows
        low, high = begin, end
        while low < high:
            middle = (low + high) // 2
            if cumulative[middle] * size < level:
                low = middle + 1
            else:
                high = middle
        total += float(level) * (low - begin) - size * (prefix[low] - prefix[begin])
        total += size * (prefix[end] - prefix[low]) - float(level) * (end - low)
        begin = end
        if i < len(present):
            seen += counts[present[i]]
    return total / (float(size) * n_rows * (n_values - 1))


@part
def likeness(
    counts: NDArray[np.int64], present: NDArray[np.int64], size: int, totals: NDArray[np.int64], n_rows: int
) -> tuple[float, float, float]:
    """Return basic beta, enhanced beta and delta of one class."""
    beta = 0.0
    delta = 0.0
    is_bounded = True
    for value in present:
        share_in_table = totals[value] / n_rows
        ratio = counts[value] * n_rows / (float(size) * totals[value])
        gain = ratio - 1.0
        beta = max(beta, gain)
        delta = max(delta, abs(np.log(ratio)))
        if gain > TOLERANCE and gain > -np.log(share_in_table) + TOLERANCE:
            is_bounded = False
    return beta, beta if is_bounded else np.inf, delta


class _Buffers(NamedTuple):
    """Scratch of :func:`_measure`: arrays by value, 0 before (``prefix`` has one more), and of the largest counts."""

    counts: NDArray[np.int64]
    touched: NDArray[np.int64]
    top: NDArray[np.int64]
    cumulative: NDArray[np.int64]
    prefix: NDArray[np.float64]


@kernel
def _measure(
    rows: NDArray[np.integer[Any]],
    starts: NDArray[np.int64],
    value_of_row: NDArray[np.signedinteger[Any]],
    totals: NDArray[np.int64],
    is_ordered: bool,
    measures: ClassMeasures,
    buffers: _Buffers,
) -> None:
    """Write the result of :func:`measure_classes`, which is 0 before."""
    n_values, n_classes = len(totals), len(starts) - 1
    n_values_in, largest, entropy, recursive_c, distance, beta, enhanced, delta = measures
    counts, touched, top, cumulative, prefix = buffers
    n_before = 0
    for value in range(n_values):
        n_before += totals[value]
        cumulative[value] = n_before
        prefix[value + 1] = prefix[value] + n_before
    n_rows = n_before
    for c in range(n_classes):
        size = starts[c + 1] - starts[c]
        if size == 0:
            continue
        n_present = 0
        for i in range(starts[c], starts[c + 1]):
            value = value_of_row[rows[i]]
            if counts[value] == 0:
                touched[n_present] = value
                n_present += 1
            counts[value] += 1
        present = touched[:n_present]
        n_values_in[c] = n_present
        entropy[c] = entropy_of(counts, present, size)
        fill_recursive_c(counts, present, size, top, recursive_c[c])
        largest[c] = recursive_c[c, 1]
        beta[c], enhanced[c], delta[c] = likeness(counts, present, size, totals, n_rows)
        if is_ordered:
            sort_ascending(present)
            distance[c] = ordered_distance(counts, present, size, cumulative, prefix, n_rows)
        else:
            distance[c] = equal_distance(counts, present, size, totals, n_rows)
        for value in present:
            counts[value] = 0


def group_by_class(class_of_row: NDArray[np.signedinteger[Any]], n_classes: int) -> RowsByClass:
    """Sort rows by class, from 0 to ``n_classes - 1``. Not checked here."""
    dtype = number_type(len(class_of_row))
    return RowsByClass(*sort_by_class(class_of_row.astype(dtype, copy=False), n_classes))


def measure_classes(
    classes: RowsByClass,
    value_of_row: NDArray[np.integer[Any]],
    totals: NDArray[np.int64],
    *,
    is_ordered: bool,
    largest_l: int = LARGEST_RECURSIVE_L,
) -> ClassMeasures:
    """Measure each class on one sensitive column.

    ``value_of_row`` is from 0, in the order of the values if that matters (not checked here), and ``totals`` are the
    rows of each in the whole table, at least one. The distance of two values is the number of values from one to the
    other if ``is_ordered``, and otherwise the same for all. ``largest_l`` is that of ``recursive_c``; each takes 8
    bytes per class. Cost: O(n_rows) and, for ordered values, O(present log present + present log n_values) per class.

    With q the shares of the values in a class and p those in the whole table: ``largest_share``: max q. ``entropy``:
    -sum q ln q [1]_. ``recursive_c``: at l from 2, the class is recursively (c, l)-diverse for exactly the c above it
    [1]_; infinity if the class has fewer than l values. ``distance``: earth mover's distance of q from p, in [0, 1]
    [2]_; 0 for a constant column. ``beta``: max of (q - p) / p over values with q > p [3]_; ``enhanced_beta``: the
    same, but infinity if it is above -ln p for one of these, because then no beta suffices [3]_. ``delta``: max of
    |ln(q / p)| over the values *in the class*; strictly by [4]_, it is infinite as soon as one value of the table is
    absent from the class, which ``n_values`` shows.

    .. [1] A. Machanavajjhala, D. Kifer, J. Gehrke, M. Venkitasubramaniam (2007), "l-diversity: privacy beyond
       k-anonymity" (entropy l-diversity; recursive (c, l)-diversity), doi:10.1145/1217299.1217302.
    .. [2] N. Li, T. Li, S. Venkatasubramanian (2007), "t-closeness: privacy beyond k-anonymity and l-diversity",
       section 5, doi:10.1109/ICDE.2007.367856.
    .. [3] J. Cao, P. Karras (2012), "Publishing microdata with a robust privacy guarantee" (basic and enhanced
       beta-likeness), doi:10.14778/2350229.2350255.
    .. [4] J. Brickell, V. Shmatikov (2008), "The cost of privacy: destruction of data-mining utility in anonymized data
       publishing" (delta-disclosure privacy), doi:10.1145/1401890.1401904.
    """
    n_classes, n_values = len(classes.starts) - 1, len(totals)
    largest, entropy, distance, beta, enhanced, delta = (np.zeros(n_classes) for _ in range(6))
    recursive_c = np.zeros((n_classes, largest_l + 1))
    measures = ClassMeasures(
        np.zeros(n_classes, np.int64), largest, entropy, recursive_c, distance, beta, enhanced, delta
    )
    counts, touched, cumulative = (np.zeros(n_values, np.int64) for _ in range(3))
    buffers = _Buffers(counts, touched, np.zeros(largest_l, np.int64), cumulative, np.zeros(n_values + 1))
    numbers = value_of_row.astype(classes.rows.dtype, copy=False)
    _measure(classes.rows, classes.starts, numbers, totals, is_ordered, measures, buffers)
    return measures
