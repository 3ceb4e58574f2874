"""Disclosure by small sets of columns: people singled out, records linked, values claimed, rows shared.

Each set takes one pass over all records with a hash table. The table is built from the real records that are scored,
and synthetic records are looked up in it, so a small sample of real records is cheap even for large tables.

All functions take codes of shape (n_columns, n_records), dtype int32 and at least 0, and sets as rows of column
positions, padded with -1. Equal codes mean equal values. The product of the numbers of codes of the columns of a set is
below 2**63. None of this is checked here.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from privacy_assets.kernels.bit_sets import power_above
from privacy_assets.kernels.compilation import kernel, part
from privacy_assets.kernels.sorting import sort_ascending

ONE = 1 << 20
"""Weight of a right claim in `count_claims`, which adds integers so that no sum depends on the order."""
ROWS_AT_ONCE = 16
BLOCK = 4096
"""Records that are looked up at once, so that their keys stay in the nearest cache."""
COLUMNS_OF_WORD = 64
_FACTOR = -7046029254386353131
_LOWER_HALF = (1 << 32) - 1


@part
def _slot(table: NDArray[np.int64], key: int) -> int:
    """Return the slot of a key, or the empty one where it belongs."""
    mask = len(table) - 1
    slot = ((key * _FACTOR) >> 20) & mask
    while table[slot] >= 0 and table[slot] != key:
        slot = (slot + 1) & mask
    return slot


@part
def _write_keys(
    codes: NDArray[np.int32],
    n_codes: NDArray[np.int64],
    columns: NDArray[np.int64],
    begin: int,
    keys: NDArray[np.int64],
) -> None:
    """Write one integer for the values of each record on a set, starting at a record."""
    keys[:] = 0
    for c in columns:
        if c >= 0:
            own, n = codes[c, begin : begin + len(keys)], n_codes[c]
            for row in range(len(keys)):
                keys[row] = keys[row] * n + own[row]


@part
def _group(
    keys: NDArray[np.int64], table: NDArray[np.int64], group_of_slot: NDArray[np.int32], groups: NDArray[np.int32]
) -> int:
    """Fill an empty table with the keys of all records; write the group of each, and return the number of groups."""
    table[:] = -1
    n_groups = 0
    for x in range(len(keys)):
        slot = _slot(table, keys[x])
        if table[slot] < 0:
            table[slot] = keys[x]
            group_of_slot[slot] = n_groups
            n_groups += 1
        groups[x] = group_of_slot[slot]
    return n_groups


@part
def _look_up(
    codes: NDArray[np.int32],
    n_codes: NDArray[np.int64],
    columns: NDArray[np.int64],
    begin: int,
    table: NDArray[np.int64],
    group_of_slot: NDArray[np.int32],
    keys: NDArray[np.int64],
    found: NDArray[np.int32],
) -> int:
    """Write the groups of a block of records, -1 for records without a group, and return the number of records."""
    n: int = min(BLOCK, codes.shape[1] - begin)
    _write_keys(codes, n_codes, columns, begin, keys[:n])
    for i in range(n):
        slot = _slot(table, keys[i])
        found[i] = group_of_slot[slot] if table[slot] >= 0 else -1
    return n


@kernel
def single_out(
    sets: NDArray[np.int64],
    begin: int,
    stop: int,
    scored: NDArray[np.int32],
    pool: NDArray[np.int32],
    synthetic: NDArray[np.int32],
    n_codes: NDArray[np.int64],
    people: NDArray[np.int32],
    singled_out: NDArray[np.uint8],
) -> None:
    """Mark the real records that some set from ``begin`` to ``stop`` singles out.

    A set singles a record out if exactly one synthetic record and exactly one real person have its values. ``scored``
    are the real records to be marked, ``pool`` all real records, with ``people``; codes of a column are below
    ``n_codes``. ``singled_out`` is set to 1; threads may share it.
    """
    n_scored = scored.shape[1]
    table = np.empty(power_above(2 * n_scored), np.int64)
    group_of_slot = np.empty(len(table), np.int32)
    groups = np.empty(n_scored, np.int32)
    keys = np.empty(n_scored, np.int64)
    block_keys, found = np.empty(BLOCK, np.int64), np.empty(BLOCK, np.int32)
    n_synthetic = np.empty(n_scored, np.int32)
    person = np.empty(n_scored, np.int32)
    for k in range(begin, stop):
        _write_keys(scored, n_codes, sets[k], 0, keys)
        n_groups = _group(keys, table, group_of_slot, groups)
        n_synthetic[:n_groups] = 0
        person[:n_groups] = -1
        for start in range(0, synthetic.shape[1], BLOCK):
            n = _look_up(synthetic, n_codes, sets[k], start, table, group_of_slot, block_keys, found)
            for i in range(n):
                if found[i] >= 0:
                    n_synthetic[found[i]] += 1
        for start in range(0, pool.shape[1], BLOCK):
            n = _look_up(pool, n_codes, sets[k], start, table, group_of_slot, block_keys, found)
            for i in range(n):
                g, owner = found[i], people[start + i]
                if g >= 0:
                    # -2 means several people.
                    person[g] = owner if person[g] == -1 or person[g] == owner else -2
        for x in range(n_scored):
            if n_synthetic[groups[x]] == 1 and person[groups[x]] >= 0:
                singled_out[x] = 1


@kernel
def match_uniquely(
    sets: NDArray[np.int64],
    begin: int,
    stop: int,
    scored: NDArray[np.int32],
    synthetic: NDArray[np.int32],
    n_codes: NDArray[np.int64],
    matches: NDArray[np.int32],
) -> None:
    """For each set, find the only synthetic record with the values of a real record.

    ``matches``, of shape (n_sets, n_scored), gets the record, -1 if there is not exactly one; rows from ``begin`` to
    ``stop`` are written.
    """
    n_scored = scored.shape[1]
    table = np.empty(power_above(2 * n_scored), np.int64)
    group_of_slot = np.empty(len(table), np.int32)
    groups = np.empty(n_scored, np.int32)
    keys = np.empty(n_scored, np.int64)
    block_keys, found = np.empty(BLOCK, np.int64), np.empty(BLOCK, np.int32)
    match = np.empty(n_scored, np.int32)
    for k in range(begin, stop):
        _write_keys(scored, n_codes, sets[k], 0, keys)
        n_groups = _group(keys, table, group_of_slot, groups)
        match[:n_groups] = -1
        for start in range(0, synthetic.shape[1], BLOCK):
            n = _look_up(synthetic, n_codes, sets[k], start, table, group_of_slot, block_keys, found)
            for i in range(n):
                g = found[i]
                if g >= 0:
                    # -2 means several records.
                    match[g] = start + i if match[g] == -1 else -2
        for x in range(n_scored):
            matches[k, x] = max(match[groups[x]], -1)


@kernel
def link(
    matches: NDArray[np.int32], columns_of_set: NDArray[np.uint64], begin: int, stop: int, linked: NDArray[np.uint8]
) -> None:
    """Mark the real records from ``begin`` to ``stop`` for which two disjoint sets lead to the same synthetic record.

    ``matches`` is the output of :func:`match_uniquely`; ``columns_of_set`` has the columns of each set as bits.
    """
    n_sets = len(columns_of_set)
    own = np.empty((ROWS_AT_ONCE, n_sets), np.int32)
    order = np.empty(n_sets, np.int64)
    for start in range(begin, stop, ROWS_AT_ONCE):
        n_rows = min(ROWS_AT_ONCE, stop - start)
        for k in range(n_sets):
            for i in range(n_rows):
                own[i, k] = matches[k, start + i]
        for i in range(n_rows):
            linked[start + i] = _has_disjoint_sets(own[i], columns_of_set, order)


@part
def _has_disjoint_sets(
    matches: NDArray[np.int32], columns_of_set: NDArray[np.uint64], order: NDArray[np.int64]
) -> bool:
    """Whether two sets without a common column match the same record; ``order`` is scratch space for both."""
    n_matching = 0
    for k in range(len(matches)):
        if matches[k] >= 0:
            # Sorted by record; the set is in the lower half.
            order[n_matching] = (np.int64(matches[k]) << 32) | k
            n_matching += 1
    sort_ascending(order[:n_matching])
    begin = 0
    while begin < n_matching:
        stop, record = begin, order[begin] >> 32
        common = ~np.uint64(0)
        while stop < n_matching and order[stop] >> 32 == record:
            common &= columns_of_set[order[stop] & _LOWER_HALF]
            stop += 1
        if common == 0:
            for a in range(begin, stop):
                for b in range(a + 1, stop):
                    if columns_of_set[order[a] & _LOWER_HALF] & columns_of_set[order[b] & _LOWER_HALF] == 0:
                        return True
        begin = stop
    return False


@part
def _keep_agreed(agreed: NDArray[np.uint64], codes: NDArray[np.int32], one: int, other: int) -> None:
    """Clear the bits of the columns on which two records differ."""
    for w in range(len(agreed)):
        if agreed[w] == 0:
            continue
        kept, j = agreed[w], w * COLUMNS_OF_WORD
        left = kept
        while left:
            if left & np.uint64(1) and codes[j, one] != codes[j, other]:
                kept ^= np.uint64(1) << np.uint64(j % COLUMNS_OF_WORD)
            left >>= np.uint64(1)
            j += 1
        agreed[w] = kept


@kernel
def count_claims(
    sets: NDArray[np.int64],
    begin: int,
    stop: int,
    scored: NDArray[np.int32],
    synthetic: NDArray[np.int32],
    n_codes: NDArray[np.int64],
    precision: NDArray[np.float64],
    is_given: bool,
    score: NDArray[np.int64],
    n_claims: NDArray[np.int32],
    n_right: NDArray[np.int32],
) -> None:
    """Count the values that sets claim about real records, and the right claims beyond the precision of such claims.

    A set claims a value of another column of a real record if some synthetic records have the record's values on the
    set, and all of them agree on that column. ``precision``, of shape (n_sets, n_columns), is the share of right claims
    over all ``scored``, 0 without claims; it is written unless it is given. To ``score`` is added, over all claims, (1
    if the claim is right, otherwise 0) - precision, in units of 1 / ``ONE``; to ``n_claims`` and ``n_right``, of shape
    (n_columns, n_scored), claims on each column and right ones.
    """
    n_columns, n_scored = scored.shape
    table = np.empty(power_above(2 * n_scored), np.int64)
    group_of_slot = np.empty(len(table), np.int32)
    groups = np.empty(n_scored, np.int32)
    keys = np.empty(n_scored, np.int64)
    block_keys, found = np.empty(BLOCK, np.int64), np.empty(BLOCK, np.int32)
    first = np.empty(n_scored, np.int32)
    # Columns on which all records of a group agree so far, as bits.
    n_words = (n_columns + COLUMNS_OF_WORD - 1) // COLUMNS_OF_WORD
    agreed, to_claim = np.empty((n_scored, n_words), np.uint64), np.empty(n_words, np.uint64)
    # 0: no claim; 1: a wrong claim; 2: a right claim.
    claim = np.empty(n_scored, np.uint8)
    for k in range(begin, stop):
        _write_keys(scored, n_codes, sets[k], 0, keys)
        n_groups = _group(keys, table, group_of_slot, groups)
        first[:n_groups] = -1
        to_claim[:] = 0
        for j in range(n_columns):
            if j not in sets[k]:
                to_claim[j // COLUMNS_OF_WORD] |= np.uint64(1) << np.uint64(j % COLUMNS_OF_WORD)
        for g in range(n_groups):
            for word in range(n_words):
                agreed[g, word] = to_claim[word]
        for start in range(0, synthetic.shape[1], BLOCK):
            n_looked_up = _look_up(synthetic, n_codes, sets[k], start, table, group_of_slot, block_keys, found)
            for i in range(n_looked_up):
                g = found[i]
                if g >= 0 and first[g] < 0:
                    first[g] = start + i
                elif g >= 0:
                    _keep_agreed(agreed[g], synthetic, start + i, first[g])
        for j in range(n_columns):
            if j in sets[k]:
                continue
            values, word, place = synthetic[j], j // COLUMNS_OF_WORD, np.uint64(j % COLUMNS_OF_WORD)
            n, right = 0, 0
            for x in range(n_scored):
                g = groups[x]
                claim[x] = 0
                if first[g] >= 0 and (agreed[g, word] >> place) & np.uint64(1):
                    is_right = values[first[g]] == scored[j, x]
                    claim[x] = 1 + is_right
                    n += 1
                    right += is_right
            if n == 0:
                continue
            if not is_given:
                precision[k, j] = right / n
            of_wrong = -np.int64(round(precision[k, j] * ONE))
            for x in range(n_scored):
                if claim[x]:
                    n_claims[j, x] += 1
                    n_right[j, x] += claim[x] == 2
                    score[x] += of_wrong + (ONE if claim[x] == 2 else 0)


@kernel
def add_shared_rows(
    columns: NDArray[np.int64],
    scored: NDArray[np.int32],
    owner: NDArray[np.int32],
    synthetic: NDArray[np.int32],
    owner_of_synthetic: NDArray[np.int32],
    n_codes: NDArray[np.int64],
    weight: NDArray[np.int64],
    overlap: NDArray[np.int64],
) -> None:
    """Add to the overlap of each synthetic person with each real person the distinct rows that both have on one set.

    ``overlap`` is of shape (n_synthetic_people, n_people). ``columns`` is the set; ``owner`` and ``owner_of_synthetic``
    have the person of each record, in ascending order. A row of m real people adds ``weight[m]``.
    """
    n_scored = scored.shape[1]
    table = np.empty(power_above(2 * n_scored), np.int64)
    group_of_slot, groups = np.empty(len(table), np.int32), np.empty(n_scored, np.int32)
    keys = np.empty(n_scored, np.int64)
    _write_keys(scored, n_codes, columns, 0, keys)
    n_groups = _group(keys, table, group_of_slot, groups)
    last, begin = np.full(n_groups, -1, np.int32), np.zeros(n_groups + 1, np.int64)
    for x in range(n_scored):
        begin[groups[x] + 1] += last[groups[x]] != owner[x]
        last[groups[x]] = owner[x]
    for g in range(n_groups):
        begin[g + 1] += begin[g]
    people, end = np.empty(begin[n_groups], np.int32), begin[:n_groups].copy()
    for x in range(n_scored):
        g = groups[x]
        if end[g] == begin[g] or people[end[g] - 1] != owner[x]:
            people[end[g]] = owner[x]
            end[g] += 1
    last[:] = -1
    block_keys, found = np.empty(BLOCK, np.int64), np.empty(BLOCK, np.int32)
    for start in range(0, synthetic.shape[1], BLOCK):
        n = _look_up(synthetic, n_codes, columns, start, table, group_of_slot, block_keys, found)
        for i in range(n):
            g, s = found[i], owner_of_synthetic[start + i]
            if g < 0 or last[g] == s:
                continue
            last[g] = s
            added = weight[end[g] - begin[g]]
            if added:
                for at in range(begin[g], end[g]):
                    overlap[s, people[at]] += added
