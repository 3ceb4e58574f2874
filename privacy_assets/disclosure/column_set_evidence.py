"""Evidence by small sets of columns: who is singled out, whose records are linked, and which values are claimed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from privacy_assets.disclosure.criteria import Evidence
from privacy_assets.disclosure.kernels.column_sets import (
    COLUMNS_OF_WORD,
    NOBODY,
    ONE,
    count_claims,
    count_equal,
    find_claims,
    find_owners,
    give_matches,
    link,
    mark_singled_out,
    match_uniquely,
)
from privacy_assets.disclosure.pooled_records import PooledRecords
from privacy_assets.disclosure.scores import MATCHES_AT_ONCE, Attack, Workers

BYTES_AT_ONCE: Final = 1 << 27
"""Of what is known of sets."""
FEWEST_ROWS, MOST_ROWS = 1 << 14, 1 << 18
"""Records of a block: each is twice as large as the one before, because fewer and fewer groups are open."""


def single_out_records(records: PooledRecords, attack: Attack, workers: Workers, _: Evidence | None = None) -> Evidence:
    """Return whether each record is ``singled_out``, of shape (n_scored,)."""
    sets, codes, n_codes, distinct = attack.sets, records.binned, records.n_binned, records.distinct
    scored, singled_out = codes.real.take(attack.rows), np.zeros(len(attack.rows), np.uint8)
    n_scored = len(singled_out)
    synthetic, real = list(_blocks(n_scored, len(distinct))), list(_blocks(n_scored, records.n_real))
    workers.begin("singling out", len(sets) * (len(synthetic) + len(real)))
    for own in _some_at_once(sets, n_scored * (np.uint8().nbytes + np.int32().nbytes)):
        n_equal = np.zeros((len(own), n_scored), np.uint8)
        owners = np.full(n_equal.shape, NOBODY, np.int32)
        for rows in synthetic:
            workers.spread(len(own), count_equal, own, scored, codes.synthetic.take(distinct[rows]), n_codes, n_equal)
        for rows in real:
            block = codes.real.take(rows), n_codes, records.people[rows]
            workers.spread(len(own), find_owners, own, scored, *block, n_equal, owners)
        mark_singled_out(0, len(own), own, scored, n_codes, n_equal, owners, singled_out)
    return {"singled_out": singled_out}


def link_records(records: PooledRecords, attack: Attack, workers: Workers, _: Evidence | None = None) -> Evidence:
    """Return whether each record is ``linked``, of shape (n_scored,)."""
    codes, n_codes, distinct = records.exact, records.n_exact, records.distinct
    sets, linked = attack.sets, np.zeros(len(attack.rows), np.uint8)
    columns_of_set = columns_as_bits(attack, len(records.columns))
    n_at_once = max(MATCHES_AT_ONCE // len(sets), 1)
    for first in range(0, len(attack.rows), n_at_once):
        scored = codes.real.take(attack.rows[first : first + n_at_once])
        matches = np.full((len(sets), scored.shape[1]), NOBODY, np.int32)
        own = linked[first : first + n_at_once]
        blocks = list(_blocks(len(own), len(distinct)))
        workers.begin("matching", len(sets) * (len(blocks) + 1))
        for rows in blocks:
            block = codes.synthetic.take(distinct[rows])
            workers.spread(len(sets), match_uniquely, sets, scored, block, n_codes, rows.start, matches)
        workers.spread(len(sets), give_matches, sets, scored, n_codes, matches)
        workers.run("linking", len(own), link, matches, columns_of_set, own)
    return {"linked": linked}


def columns_as_bits(attack: Attack, n_columns: int) -> NDArray[np.uint64]:
    """Return the columns of each set as bits, of shape (n_sets,)."""
    # Known columns are renumbered, so that they fit into a word.
    number = np.zeros(n_columns, np.uint64)
    number[attack.known] = np.arange(len(attack.known), dtype=np.uint64)
    bits = np.where(attack.sets >= 0, np.left_shift(np.uint64(1), number[attack.sets]), np.uint64(0))
    return np.asarray(np.bitwise_or.reduce(bits, axis=1), np.uint64)


def count_claims_on_records(
    records: PooledRecords, attack: Attack, workers: Workers, whole: Evidence | None = None
) -> Evidence:
    """Count claims on the values of each record.

    ``claim_score``, of shape (n_scored,), is right claims beyond the precision of such claims; ``n_claims`` and
    ``n_right`` are of shape (n_columns, n_scored), and ``precision``, the share of right claims among all records,
    (n_sets, n_columns).
    """
    sets, scored, n_codes = attack.sets, records.exact.real.take(attack.rows), records.n_exact
    n_columns, n_scored = scored.shape
    n_words = -(-n_columns // COLUMNS_OF_WORD)
    is_given = whole is not None
    precision = np.zeros((len(sets), n_columns)) if whole is None else whole["precision"]
    blocks = list(_blocks(n_scored, records.n_synthetic))
    found: list[Any] = []

    def state() -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int32]]:
        return np.zeros(n_scored, np.int64), np.zeros(scored.shape, np.int32), np.zeros(scored.shape, np.int32)

    workers.begin("claims", len(sets) * (len(blocks) + 1))
    n_bytes = n_scored * (n_columns * np.int32().nbytes + n_words * np.uint64().nbytes)
    begin = 0
    for own in _some_at_once(sets, n_bytes):
        values = np.full((len(own), n_scored, n_columns), NOBODY, np.int32)
        agreed = np.zeros((len(own), n_scored, n_words), np.uint64)
        for rows in blocks:
            block = records.exact.synthetic.take(rows)
            workers.spread(len(own), find_claims, own, scored, block, n_codes, values, agreed)
        shares = precision[begin : begin + len(own)]
        claims = own, scored, n_codes, values, agreed, shares, is_given
        found += workers.spread(len(own), count_claims, *claims, state=state)
        begin += len(own)
        del values, agreed, claims  # Before the next ones are made.
    score, n_claims, n_right = (sum(own[i] for own in found) for i in range(3))
    return {"claim_score": score / ONE, "n_claims": n_claims, "n_right": n_right, "precision": precision}


def _some_at_once(sets: NDArray[np.int64], n_bytes: int) -> Iterator[NDArray[np.int64]]:
    """Yield as many sets at a time as have little enough state, given the bytes of each."""
    n_at_once = max(BYTES_AT_ONCE // n_bytes, 1)
    return (sets[begin : begin + n_at_once] for begin in range(0, len(sets), n_at_once))


def _blocks(n_scored: int, n_records: int) -> Iterator[slice]:
    """Yield the places of the records of blocks; grouping the scored records takes a part of the time of each."""
    begin, size = 0, max(FEWEST_ROWS, 4 * n_scored)
    while begin < n_records:
        yield slice(begin, min(begin + size, n_records))
        begin, size = begin + size, max(min(2 * size, MOST_ROWS), size)
