"""Scores of draws of records, cell by cell: slow, obvious, and without anything from the package.

Rows are tuples of integers, texts and ``None``; a row of a draw stands with as many records as it has.
"""

import hashlib
from collections import Counter

import numpy as np
import pandas as pd

from tests.reference.mpucc import find

WORD = 2**64


def scores_of_draws(originals, rows, max_size, *, deduplicate, n_records=None):
    """The share of identified records, and the score, of each draw of no more records than there are originals."""
    n_records = most_records(originals, deduplicate) if n_records is None else n_records
    distinct = list(dict.fromkeys(originals)) if deduplicate else originals
    n_values = [len({row[c] for row in originals}) for c in range(len(originals[0]))]
    baseline = 1 - 1 / np.prod(n_values)
    scores = []
    for drawn in draws(originals, rows, n_records, deduplicate):
        rate = len(find(distinct, drawn, max_size)) / len(drawn)
        scores.append((rate, 1 - (min((1 - rate) / baseline, 1) if baseline else 0)))
    return scores


def most_records(originals, deduplicate):
    """As many records as originals; of distinct ones at most a tenth more than originals have."""
    return min(len(originals), len(set(originals)) * 11 // 10) if deduplicate else len(originals)


def draws(originals, rows, n_records, deduplicate):
    """All rows if there are few enough, otherwise those of three draws, the first of each by hash."""
    counts = Counter(dict.fromkeys(rows, 1)) if deduplicate else Counter(rows)
    if counts.total() <= n_records:
        return [list(counts.elements())]
    order = columns_by_content(originals)
    found = []
    for seed in range(3):
        drawn = []
        for row in sorted(counts, key=lambda row: order_of(row, order, seed)):
            if drawn and len(drawn) + counts[row] > n_records:
                break
            drawn += [row] * counts[row]
        found.append(drawn)
    return found


def columns_by_content(originals):
    """Columns by the sum of the hashes of their values in the distinct originals; ties in order of the table."""
    sums = [sum(of_value(row[c]) for row in set(originals)) % WORD for c in range(len(originals[0]))]
    return sorted(range(len(sums)), key=sums.__getitem__)


def order_of(row, order, seed):
    total = 0
    for place, c in enumerate(order):
        total = mixed(total ^ of_number(of_value(row[c])) ^ half(key_of(0, place)))
    return mixed(of_number(total) ^ half(key_of(seed, 0)))


def of_value(value):
    """SipHash of the text of a value, as pandas computes it, and mixed."""
    key = key_of(0, 0)
    if value is None:
        own = WORD - 1
    else:
        own = int(pd.util.hash_array(np.array([str(value)], object), hash_key=key.hex()[:16], categorize=False)[0])
    return mixed(own ^ half(key))


def of_number(number):
    """The hash of pandas for integers."""
    number = (number ^ (number >> 30)) * 0xBF58476D1CE4E5B9 % WORD
    number = (number ^ (number >> 27)) * 0x94D049BB133111EB % WORD
    return number ^ (number >> 31)


def mixed(number):
    return of_number((number + 0x9E3779B97F4A7C15) % WORD)


def key_of(seed, place):
    return hashlib.sha256(f"privacy_assets row {seed} {place}".encode()).digest()


def half(key):
    return int.from_bytes(key[8:16], "little")
