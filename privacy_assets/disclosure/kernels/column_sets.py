"""Disclosure by small sets of columns: people singled out, records linked, values claimed, rows shared.

Records are compared in blocks, in any order, with the real records that are scored. What is known of a set after some
blocks is kept by *group*: scored records with equal values on the set, numbered by their first appearance. Each block
takes one pass for each set: a hash table has the groups, and a filter those of which more records would change what is
known. After few blocks these are few, so that nearly all records of large tables pass only the filter.

All functions take codes of shape (n_columns, n_records), dtype int32 and at least 0, and sets as rows of column
positions, padded with -1. Equal codes mean equal values. The product of the numbers of codes of the columns of a set is
below 2**63. None of this is checked here. Sets from ``begin`` to ``stop`` are examined, so that threads share the rest.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from privacy_assets.kernels.bit_sets import power_above
from privacy_assets.kernels.compilation import allocating_part, kernel, part
from privacy_assets.kernels.sorting import sort_ascending

ONE = 1 << 20
"""Weight of a right claim in `count_claims`, which adds integers so that no sum depends on the order."""
ROWS_AT_ONCE = 16
BLOCK = 4096
"""Records that are looked up at once, so that their keys stay in the nearest cache."""
COLUMNS_OF_WORD = 64
BITS_PER_RECORD, BITS_OF_WORD = 16, 64
"""Bits of the filter, at least, by scored record; and of a word."""
NOBODY, SEVERAL = -1, -2
_FACTOR = -7046029254386353131
_LOWER_HALF = (1 << 32) - 1


class _Groups(NamedTuple):
    """The groups of the scored records on a set: the hash table, the group and key of each record, and the filter."""

    slots: NDArray[np.int64]
    group_of_slot: NDArray[np.int32]
    of_record: NDArray[np.int32]
    keys: NDArray[np.int64]
    bits: NDArray[np.uint64]
    is_open: NDArray[np.bool_]


class _Found(NamedTuple):
    """The records of a part of a block that have a group."""

    keys: NDArray[np.int64]
    records: NDArray[np.int32]
    of_group: NDArray[np.int32]


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


@allocating_part
def _no_groups(n_scored: int) -> _Groups:
    """Return scratch space for `_group_scored`."""
    size = power_above(2 * n_scored)
    return _Groups(
        np.empty(size, np.int64),
        np.empty(size, np.int32),
        np.empty(n_scored, np.int32),
        np.empty(n_scored, np.int64),
        np.empty(power_above(n_scored * BITS_PER_RECORD // BITS_OF_WORD), np.uint64),
        np.empty(n_scored, np.bool_),
    )


@allocating_part
def _none_found() -> _Found:
    """Return scratch space for `_look_up`."""
    # One more than a part has, because the last record is written before it is judged.
    return _Found(np.empty(BLOCK, np.int64), np.empty(BLOCK + 1, np.int32), np.empty(BLOCK, np.int32))


@part
def _bit(key: int, bits: NDArray[np.uint64]) -> int:
    """Return the place of the bit of a key."""
    return ((key * _FACTOR) >> 36) & (BITS_OF_WORD * len(bits) - 1)


@part
def _group_scored(
    scored: NDArray[np.int32], n_codes: NDArray[np.int64], columns: NDArray[np.int64], groups: _Groups
) -> int:
    """Group the scored records on a set, and return how many groups there are."""
    _write_keys(scored, n_codes, columns, 0, groups.keys)
    return _group(groups.keys, groups.slots, groups.group_of_slot, groups.of_record)


@part
def _write_filter(groups: _Groups, n_groups: int) -> bool:
    """Set the bits of the keys of the open groups; return whether there are any."""
    groups.bits[:] = 0
    for x in range(len(groups.keys)):
        if groups.is_open[groups.of_record[x]]:
            place = _bit(groups.keys[x], groups.bits)
            groups.bits[place >> 6] |= np.uint64(1) << np.uint64(place & 63)
    return bool(np.any(groups.is_open[:n_groups]))


@part
def _look_up(
    block: NDArray[np.int32],
    n_codes: NDArray[np.int64],
    columns: NDArray[np.int64],
    begin: int,
    groups: _Groups,
    found: _Found,
) -> int:
    """Write the records of a part of the block that have an open group, and some others; return their number."""
    n: int = min(BLOCK, block.shape[1] - begin)
    _write_keys(block, n_codes, columns, begin, found.keys[:n])
    n_passed = 0
    for i in range(n):
        found.records[n_passed] = i
        place = _bit(found.keys[i], groups.bits)
        n_passed += (groups.bits[place >> 6] >> np.uint64(place & 63)) & np.uint64(1) != 0
    n_found = 0
    for p in range(n_passed):
        i = found.records[p]
        slot = _slot(groups.slots, found.keys[i])
        if groups.slots[slot] >= 0:
            found.records[n_found] = i
            found.of_group[n_found] = groups.group_of_slot[slot]
            n_found += 1
    return n_found


@kernel
def count_equal(
    begin: int,
    stop: int,
    sets: NDArray[np.int64],
    scored: NDArray[np.int32],
    block: NDArray[np.int32],
    n_codes: NDArray[np.int64],
    n_equal: NDArray[np.uint8],
) -> None:
    """Count the records of a block in each group: 0, 1, or 2 for several.

    ``n_equal`` is of shape (n_sets, n_scored); it begins with zeros, and is modified in place.
    """
    groups, found = _no_groups(scored.shape[1]), _none_found()
    for k in range(begin, stop):
        own = n_equal[k]
        n_groups = _group_scored(scored, n_codes, sets[k], groups)
        for g in range(n_groups):
            groups.is_open[g] = own[g] < 2
        if not _write_filter(groups, n_groups):
            continue
        for start in range(0, block.shape[1], BLOCK):
            for i in range(_look_up(block, n_codes, sets[k], start, groups, found)):
                own[found.of_group[i]] = min(own[found.of_group[i]] + 1, 2)


@kernel
def find_owners(
    begin: int,
    stop: int,
    sets: NDArray[np.int64],
    scored: NDArray[np.int32],
    block: NDArray[np.int32],
    n_codes: NDArray[np.int64],
    people: NDArray[np.int32],
    n_equal: NDArray[np.uint8],
    owners: NDArray[np.int32],
) -> None:
    """Find the only person with records in each group of which one other record was counted.

    ``people`` are those of the records of the block. ``owners``, of shape (n_sets, n_scored), begins with
    ``NOBODY``, and is modified in place; it is ``SEVERAL`` for several people, and says nothing of other groups.
    """
    groups, found = _no_groups(scored.shape[1]), _none_found()
    for k in range(begin, stop):
        own = owners[k]
        n_groups = _group_scored(scored, n_codes, sets[k], groups)
        for g in range(n_groups):
            groups.is_open[g] = n_equal[k, g] == 1 and own[g] != SEVERAL
        if not _write_filter(groups, n_groups):
            continue
        for start in range(0, block.shape[1], BLOCK):
            for i in range(_look_up(block, n_codes, sets[k], start, groups, found)):
                g, person = found.of_group[i], people[start + found.records[i]]
                own[g] = person if own[g] == NOBODY or own[g] == person else SEVERAL


@kernel
def mark_singled_out(
    begin: int,
    stop: int,
    sets: NDArray[np.int64],
    scored: NDArray[np.int32],
    n_codes: NDArray[np.int64],
    n_equal: NDArray[np.uint8],
    owners: NDArray[np.int32],
    singled_out: NDArray[np.uint8],
) -> None:
    """Mark the scored records whose group has one synthetic record and one real person, after all blocks.

    ``singled_out``, of shape (n_scored,), is set to 1, which threads may do at once.
    """
    groups = _no_groups(scored.shape[1])
    for k in range(begin, stop):
        _group_scored(scored, n_codes, sets[k], groups)
        for x in range(scored.shape[1]):
            if n_equal[k, groups.of_record[x]] == 1 and owners[k, groups.of_record[x]] >= 0:
                singled_out[x] = 1


@kernel
def match_uniquely(
    begin: int,
    stop: int,
    sets: NDArray[np.int64],
    scored: NDArray[np.int32],
    block: NDArray[np.int32],
    n_codes: NDArray[np.int64],
    first: int,
    matches: NDArray[np.int32],
) -> None:
    """Find the only record in each group; the records of the block are numbered from ``first``.

    ``matches``, of shape (n_sets, n_scored), begins with ``NOBODY``, and gets the record, or ``SEVERAL``, in place.
    """
    groups, found = _no_groups(scored.shape[1]), _none_found()
    for k in range(begin, stop):
        own = matches[k]
        n_groups = _group_scored(scored, n_codes, sets[k], groups)
        for g in range(n_groups):
            groups.is_open[g] = own[g] != SEVERAL
        if not _write_filter(groups, n_groups):
            continue
        for start in range(0, block.shape[1], BLOCK):
            for i in range(_look_up(block, n_codes, sets[k], start, groups, found)):
                g = found.of_group[i]
                own[g] = first + start + found.records[i] if own[g] == NOBODY else SEVERAL


@kernel
def give_matches(
    begin: int,
    stop: int,
    sets: NDArray[np.int64],
    scored: NDArray[np.int32],
    n_codes: NDArray[np.int64],
    matches: NDArray[np.int32],
) -> None:
    """Give each scored record the match of its group, or ``NOBODY`` if it is not the only one, in place."""
    groups, of_group = _no_groups(scored.shape[1]), np.empty(scored.shape[1], np.int32)
    for k in range(begin, stop):
        _group_scored(scored, n_codes, sets[k], groups)
        of_group[:] = matches[k]
        for x in range(scored.shape[1]):
            matches[k, x] = max(of_group[groups.of_record[x]], NOBODY)


@kernel
def link(
    begin: int, stop: int, matches: NDArray[np.int32], columns_of_set: NDArray[np.uint64], linked: NDArray[np.uint8]
) -> None:
    """Mark the real records from ``begin`` to ``stop`` for which two disjoint sets lead to the same synthetic record.

    ``matches`` is the output of :func:`give_matches`; ``columns_of_set`` has the columns of each set as bits.
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
def _keep_agreed(agreed: NDArray[np.uint64], values: NDArray[np.int32], codes: NDArray[np.int32], record: int) -> None:
    """Clear the bits of the columns on which a record does not have these values."""
    for w in range(len(agreed)):
        if agreed[w] == 0:
            continue
        kept, j = agreed[w], w * COLUMNS_OF_WORD
        left = kept
        while left:
            if left & np.uint64(1) and codes[j, record] != values[j]:
                kept ^= np.uint64(1) << np.uint64(j % COLUMNS_OF_WORD)
            left >>= np.uint64(1)
            j += 1
        agreed[w] = kept


@kernel
def find_claims(
    begin: int,
    stop: int,
    sets: NDArray[np.int64],
    scored: NDArray[np.int32],
    block: NDArray[np.int32],
    n_codes: NDArray[np.int64],
    values: NDArray[np.int32],
    agreed: NDArray[np.uint64],
) -> None:
    """Find the columns on which all records of a group agree, and their values.

    ``values``, of shape (n_sets, n_scored, n_columns), has those of some record of each group; it begins with
    ``NOBODY``. ``agreed``, of shape (n_sets, n_scored, n_words), has the columns as bits. Both are modified in
    place.
    """
    n_columns, n_scored = scored.shape
    groups, found = _no_groups(n_scored), _none_found()
    to_claim = np.empty(agreed.shape[2], np.uint64)
    for k in range(begin, stop):
        own, own_agreed = values[k], agreed[k]
        n_groups = _group_scored(scored, n_codes, sets[k], groups)
        for g in range(n_groups):
            groups.is_open[g] = own[g, 0] == NOBODY
            for w in range(len(to_claim)):
                groups.is_open[g] |= own_agreed[g, w] != 0
        if not _write_filter(groups, n_groups):
            continue
        to_claim[:] = 0
        for j in range(n_columns):
            if j not in sets[k]:
                to_claim[j // COLUMNS_OF_WORD] |= np.uint64(1) << np.uint64(j % COLUMNS_OF_WORD)
        for start in range(0, block.shape[1], BLOCK):
            for i in range(_look_up(block, n_codes, sets[k], start, groups, found)):
                g, record = found.of_group[i], start + found.records[i]
                if own[g, 0] == NOBODY:
                    for j in range(n_columns):
                        own[g, j] = block[j, record]
                    for w in range(len(to_claim)):
                        own_agreed[g, w] = to_claim[w]
                else:
                    _keep_agreed(own_agreed[g], own[g], block, record)


@kernel
def count_claims(
    begin: int,
    stop: int,
    sets: NDArray[np.int64],
    scored: NDArray[np.int32],
    n_codes: NDArray[np.int64],
    values: NDArray[np.int32],
    agreed: NDArray[np.uint64],
    precision: NDArray[np.float64],
    is_given: bool,
    score: NDArray[np.int64],
    n_claims: NDArray[np.int32],
    n_right: NDArray[np.int32],
) -> None:
    """Count the values that sets claim about real records, and the right claims beyond the precision of such claims.

    A set claims a value of another column of a real record if some synthetic records have the record's values on the
    set, and all of them agree on that column (`find_claims`). ``precision``, of shape (n_sets, n_columns), is the share
    of right claims over all ``scored``, 0 without claims; it is written unless it is given. To ``score`` is added, over
    all claims, (1 if the claim is right, otherwise 0) - precision, in units of 1 / ``ONE``; to ``n_claims`` and
    ``n_right``, of shape (n_columns, n_scored), claims on each column and right ones.
    """
    n_columns, n_scored = scored.shape
    groups = _no_groups(n_scored)
    # 0: no claim; 1: a wrong claim; 2: a right claim.
    claim = np.empty(n_scored, np.uint8)
    for k in range(begin, stop):
        _group_scored(scored, n_codes, sets[k], groups)
        own, own_agreed = values[k], agreed[k]
        for j in range(n_columns):
            if j in sets[k]:
                continue
            word, place = j // COLUMNS_OF_WORD, np.uint64(j % COLUMNS_OF_WORD)
            n, right = 0, 0
            for x in range(n_scored):
                g = groups.of_record[x]
                claim[x] = 0
                if (own_agreed[g, word] >> place) & np.uint64(1):
                    is_right = own[g, j] == scored[j, x]
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
    groups, found = _no_groups(n_scored), _none_found()
    n_groups, of_record = _group_scored(scored, n_codes, columns, groups), groups.of_record
    groups.is_open[:] = True
    _write_filter(groups, n_groups)
    last, begin = np.full(n_groups, -1, np.int32), np.zeros(n_groups + 1, np.int64)
    for x in range(n_scored):
        begin[of_record[x] + 1] += last[of_record[x]] != owner[x]
        last[of_record[x]] = owner[x]
    for g in range(n_groups):
        begin[g + 1] += begin[g]
    people, end = np.empty(begin[n_groups], np.int32), begin[:n_groups].copy()
    for x in range(n_scored):
        g = of_record[x]
        if end[g] == begin[g] or people[end[g] - 1] != owner[x]:
            people[end[g]] = owner[x]
            end[g] += 1
    last[:] = -1
    for start in range(0, synthetic.shape[1], BLOCK):
        for i in range(_look_up(synthetic, n_codes, columns, start, groups, found)):
            g, s = found.of_group[i], owner_of_synthetic[start + found.records[i]]
            if last[g] == s:
                continue
            last[g] = s
            added = weight[end[g] - begin[g]]
            if added:
                for at in range(begin[g], end[g]):
                    overlap[s, people[at]] += added
