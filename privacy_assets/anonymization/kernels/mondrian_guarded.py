"""The cut of a Mondrian class with models on people, l-diversity or t-closeness.

It makes the decision of :func:`~privacy_assets.anonymization.kernels.mondrian_cuts.decide` through the same
`weigh_cuts`, but needs more counts, which are computed here, one dimension at a time.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from privacy_assets.anonymization.kernels.models import Evidence, Models
from privacy_assets.anonymization.kernels.mondrian_cuts import (
    DIMENSION,
    IS_COARSE,
    MOST_BINS,
    NO_CUT,
    Box,
    Dimensions,
    Lists,
    can_score,
    list_bins,
    sort_set,
    tighten,
    try_cuts,
)
from privacy_assets.anonymization.kernels.mondrian_rows import PackedRows, list_codes, list_single_codes
from privacy_assets.kernels.compilation import allocating_part
from privacy_assets.kernels.sorting import place_in, sort_ascending

# Sorting one value takes about as long as scanning this many.
VALUES_PER_SORTED = 16


class Guard(NamedTuple):
    """Data of each record other than its dimensions, and scratch for counting.

    ``person`` is numbered from 0, and empty if k counts rows; ``sensitive`` (n_records, n_sensitive) are positions in
    the flat list of ``Models.totals``. The rest is scratch: of each person, whether a row was found (``is_met``, False
    between calls), and the first and last listed bin with one; of each value, the rows on each side (any, if it is not
    in the class), and whether it is in the class (``is_listed``, False between calls).
    """

    person: NDArray[np.int32]
    sensitive: NDArray[np.int32]
    is_met: NDArray[np.bool_]
    first: NDArray[np.int32]
    last: NDArray[np.int32]
    counts: NDArray[np.int64]
    is_listed: NDArray[np.bool_]


def make_guard(
    person: NDArray[np.int32] | None, sensitive: NDArray[np.int32] | None, n_records: int, models: Models
) -> Guard:
    """Return a guard with its own scratch; every thread needs one."""
    person = np.zeros(0, np.int32) if person is None else person
    sensitive = np.zeros((n_records, 0), np.int32) if sensitive is None else sensitive
    n_people = int(person.max(initial=-1)) + 1
    is_met, first, last = np.zeros(n_people, np.bool_), np.zeros(n_people, np.int32), np.zeros(n_people, np.int32)
    n_values = len(models.totals) if models.needs_values else 0
    counts, is_listed = np.zeros((2, n_values), np.int64), np.zeros(n_values, np.bool_)
    return Guard(person, sensitive, is_met, first, last, counts, is_listed)


@allocating_part
def _list_values(rows: PackedRows, begin: int, stop: int, models: Models, guard: Guard) -> NDArray[np.int64]:
    """List the sensitive values in a class, ascending; empty if the models do not need them.

    The cost depends on the rows of the class: all values are scanned only if they are not many more than the rows.
    """
    if not models.needs_values:
        return np.empty(0, np.int64)
    n_values = len(guard.is_listed)
    found = np.empty(min((stop - begin) * guard.sensitive.shape[1], n_values), np.int64)
    n_found = 0
    for i in range(begin, stop):
        record = np.int64(rows.records[i])
        for v in range(guard.sensitive.shape[1]):
            value = guard.sensitive[record, v]
            if not guard.is_listed[value]:
                guard.is_listed[value] = True
                found[n_found] = value
                n_found += 1
    if n_found * VALUES_PER_SORTED < n_values:
        sort_ascending(found[:n_found])
    else:
        n_found = 0
        for value in range(n_values):
            if guard.is_listed[value]:
                found[n_found] = value
                n_found += 1
    for x in range(n_found):
        guard.is_listed[found[x]] = False
    return found[:n_found]


@allocating_part
def _count_people(
    records: NDArray[np.signedinteger[Any]], begin: int, places: NDArray[np.int64], n_listed: int, guard: Guard
) -> tuple[int, NDArray[np.int64], NDArray[np.int64]]:
    """Count people in the class, and on each side of every cut.

    A person is on the left of a cut unless all their rows come after it, on the right unless all come before it.
    """
    first_at, last_at = np.empty(n_listed, np.int64), np.empty(n_listed, np.int64)
    for x in range(n_listed):
        first_at[x] = 0
        last_at[x] = 0
    for i in range(len(places)):
        person = guard.person[records[begin + i]]
        place = places[i]
        if not guard.is_met[person]:
            guard.is_met[person] = True
            guard.first[person] = place
            guard.last[person] = place
        else:
            guard.first[person] = min(guard.first[person], place)
            guard.last[person] = max(guard.last[person], place)
    n_people = 0
    for i in range(len(places)):
        person = guard.person[records[begin + i]]
        if guard.is_met[person]:
            guard.is_met[person] = False
            first_at[guard.first[person]] += 1
            last_at[guard.last[person]] += 1
            n_people += 1
    n_left, n_right = 0, n_people
    for x in range(n_listed):
        n_left += first_at[x]
        n_right -= last_at[x]
        first_at[x] = n_left
        last_at[x] = n_right
    return n_people, first_at, last_at


@allocating_part
def _gather(
    rows: PackedRows,
    begin: int,
    stop: int,
    j: int,
    n_listed: int,
    box: Box,
    lists: Lists,
    place_of_bin: NDArray[np.int64],
    models: Models,
    guard: Guard,
    present: NDArray[np.int64],
) -> Evidence:
    """Count what the models need along one dimension; an empty ``place_of_bin`` means that the bins are ascending."""
    size = stop - begin
    left, right, by_bin = guard.counts[0], guard.counts[1], guard.counts[:0]
    if not models.counts_people and not models.needs_values:
        return Evidence(size, present, present, present, guard.sensitive, left, right, present, by_bin)
    places = np.empty(size, np.int64)
    for x in range(n_listed if len(place_of_bin) > 0 else 0):
        place_of_bin[lists.bins[x]] = x
    for i in range(size):
        b = (np.int64(rows.codes[begin + i, j]) - box.base[j]) >> box.shift[j]
        places[i] = place_of_bin[b] if len(place_of_bin) > 0 else place_in(lists.bins[:n_listed], b)
    n_people = size
    left_people = right_people = places[:0]
    if models.counts_people:
        n_people, left_people, right_people = _count_people(rows.records, begin, places, n_listed, guard)
    arranged = places[:0]
    if models.needs_values:
        arranged = np.empty(size, np.int64)
        for value in present:
            left[value] = 0
            right[value] = 0
        starts = np.empty(n_listed + 1, np.int64)
        starts[0] = 0
        for x in range(n_listed):
            starts[x + 1] = starts[x] + lists.tally[x]
        for i in range(size):
            record = np.int64(rows.records[begin + i])
            arranged[starts[places[i]]] = record
            starts[places[i]] += 1
            for v in range(guard.sensitive.shape[1]):
                right[guard.sensitive[record, v]] += 1
    return Evidence(n_people, left_people, right_people, arranged, guard.sensitive, left, right, present, by_bin)


@allocating_part
def decide_on_rows(
    rows: PackedRows,
    begin: int,
    stop: int,
    histogram: NDArray[np.int64],
    dimensions: Dimensions,
    box: Box,
    lists: Lists,
    models: Models,
    guard: Guard | None,
    cut: NDArray[np.int64],
) -> None:
    """Choose the cut like `decide`, with every model on both sides; like `decide_on_codes` if the cut is coarse.

    It then lists the codes of one dimension at a time, and only those of dimensions that are binned. Numba compiles a
    guard of None as a separate type, without the code that reads people or values: then only rows are counted.
    """
    size = stop - begin
    by_codes = cut[IS_COARSE] == 1
    cut[DIMENSION] = NO_CUT
    cut[IS_COARSE] = 0
    best = -np.inf
    if guard is not None:
        present = _list_values(rows, begin, stop, models, guard)
        # As long as the largest set, so it is made only where it is used.
        is_guarded = models.counts_people or models.needs_values
        place_of_bin = np.empty(len(lists.bins) if is_guarded and not by_codes else 0, np.int64)
    for j in range(len(box.low)):
        is_large = dimensions.is_set[j] and dimensions.n_values[j] > MOST_BINS
        listed = lists
        if by_codes:
            if box.shift[j] == 0:
                continue
            n_listed, listed = list_single_codes(rows.codes, begin, stop, j, lists)
            box.base[j] = 0
            box.shift[j] = 0
        elif is_large and dimensions.nodes.n_levels[j] > 0 and size < dimensions.n_values[j]:
            # Ascending, as a hierarchy needs them.
            n_listed, _ = list_single_codes(rows.codes, begin, stop, j, lists)
            for code in lists.bins[:n_listed]:
                histogram[dimensions.first_bin[j] + code] = 0
        elif is_large and dimensions.nodes.n_levels[j] == 0:
            n_listed = list_codes(rows.codes, begin, stop, j, histogram, dimensions.first_bin[j], lists)
        else:
            n_listed = list_bins(histogram, dimensions.first_bin[j], box.n_bins[j], lists)
        width = tighten(n_listed, j, dimensions, box, listed)
        if not can_score(size, width, best, models):
            continue
        if dimensions.is_set[j]:
            sort_set(n_listed, j, dimensions, listed)
        if guard is not None:
            evidence = _gather(rows, begin, stop, j, n_listed, box, listed, place_of_bin, models, guard, present)
            best = try_cuts(size, width, n_listed, j, dimensions, box, listed, models, evidence, best, cut)
        else:
            best = try_cuts(size, width, n_listed, j, dimensions, box, listed, models, None, best, cut)
