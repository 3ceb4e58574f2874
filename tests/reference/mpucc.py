"""The mpUCC search by enumeration: slow, obvious, and without anything from the package.

Rows are tuples of plain values, ``None`` for a missing one; a combination is a tuple of column positions.
"""

from collections import Counter
from decimal import Decimal
from itertools import combinations
from math import inf, isnan, log2

import numpy as np
import pandas as pd

from tests.reference.spelling import spelled

UNITS = ("D", "h", "min", "s", "ms", "us", "ns")


def plain_rows(original, synthetic):
    """Both tables as rows of plain values, at the precision of the original, duplicates included."""
    columns = [plain_column(original[name], synthetic[name]) for name in original.columns]
    return list(zip(*(o for o, _ in columns), strict=True)), list(zip(*(s for _, s in columns), strict=True))


def plain_column(original, synthetic):
    first, second = ([None if is_missing(v) else v for v in column.astype(object)] for column in (original, synthetic))
    values = [v for v in first + second if v is not None]
    known = [own for own in ([v for v in side if v is not None] for side in (first, second)) if own]
    if any(isinstance(v, float) for v in values):
        floats = [v for v in first if isinstance(v, float)]
        decimals = max(map(decimals_of, floats), default=10 if set(first) == {None} else 0)
        return tuple([rounded(v, decimals) for v in column] for column in (first, second))
    if any(isinstance(v, pd.Timestamp) for v in values):
        unit = next(u for u in UNITS if all(v.floor(u) == v for v in known[0]))
        return tuple([None if v is None else v.floor(unit) for v in column] for column in (first, second))
    return tuple([as_spelled(v) if isinstance(v, str) else v for v in column] for column in (first, second))


def as_spelled(text):
    """What a text is compared by; None if it stands for a missing value."""
    found = spelled(text)
    return None if found == () else found


def is_missing(value):
    return value is None or value is pd.NaT or value is pd.NA or (isinstance(value, float) and isnan(value))


def decimals_of(value):
    exponent = Decimal(repr(value)).normalize().as_tuple().exponent
    return min(max(-exponent, 0), 10)


def rounded(value, decimals):
    return float(np.round(value, decimals)) if isinstance(value, float) else value


def without_duplicates(rows):
    """Positions of the first of equal rows."""
    return [i for i, row in enumerate(rows) if row not in rows[:i]]


def project(rows, combo):
    return [tuple(row[c] for c in combo) for row in rows]


def search_order(synthetic):
    """Columns by distinct values in the synthetic table, most first; ties in table order."""
    n_columns = len(synthetic[0])
    return sorted(range(n_columns), key=lambda c: -len({row[c] for row in synthetic}))


def all_combinations(order, max_size):
    return [combo for size in range(1, max_size + 1) for combo in combinations(order, size)]


def identified_by(original, synthetic, combo):
    """Synthetic position -> original position of each pair that is alone with its values in both tables."""
    ours, theirs = project(synthetic, combo), project(original, combo)
    n_ours, n_theirs = Counter(ours), Counter(theirs)
    return {s: theirs.index(v) for s, v in enumerate(ours) if n_ours[v] == 1 and n_theirs[v] == 1}


def find(original, synthetic, max_size, is_allowed=lambda combo: True):
    """Synthetic position -> (first combination in search order that identifies it, original position)."""
    found = {}
    for combo in all_combinations(search_order(synthetic), max_size):
        if is_allowed(combo):
            for s, o in identified_by(original, synthetic, combo).items():
                found.setdefault(s, (combo, o))
    return found


def singled_out(original, synthetic, max_size):
    """Positions of originals who are the only one with the values of some synthetic record on a combination."""
    people = set()
    for combo in all_combinations(search_order(synthetic), max_size):
        counts, published = Counter(project(original, combo)), set(project(synthetic, combo))
        people |= {o for o, value in enumerate(project(original, combo)) if counts[value] == 1 and value in published}
    return people


def n_unique(synthetic, combo):
    return sum(count == 1 for count in Counter(project(synthetic, combo)).values())


def entropy(rows, combo, alpha):
    """Renyi entropy in bits over log2 of the number of rows."""
    if len(rows) < 2:
        return 0.0
    shares = [count / len(rows) for count in Counter(project(rows, combo)).values()]
    if alpha == 1:
        bits = -sum(p * log2(p) for p in shares)
    elif alpha == inf:
        bits = -log2(max(shares))
    else:
        bits = log2(sum(p**alpha for p in shares)) / (1 - alpha)
    return bits / log2(len(rows))


def entropy_gain(rows, combo, alpha):
    return entropy(rows, combo, alpha) - (entropy(rows, combo[:-1], alpha) if len(combo) > 1 else 0.0)


def renyi(values, alpha):
    """Renyi entropy in bits of a list of values; 0 of no values."""
    shares = [count / len(values) for count in Counter(values).values()]
    if not shares:
        return 0.0
    if alpha == 1:
        return -sum(p * log2(p) for p in shares)
    return -log2(max(shares)) if alpha == inf else log2(sum(p**alpha for p in shares)) / (1 - alpha)


def mutual_information(rows, combo, alpha):
    """I(X; Y) = H(Y) - H(Y | X), as the source writes it: X is whether a row is unique without the last column, Y."""
    base, added = project(rows, combo[:-1]), [row[combo[-1]] for row in rows]
    counts = Counter(base)
    parts = [[y for x, y in zip(base, added, strict=True) if (counts[x] == 1) == unique] for unique in (True, False)]
    return renyi(added, alpha) - sum(len(own) / len(rows) * renyi(own, alpha) for own in parts)


def follows_information(rows, alpha):
    """Whether a search by the stop of the source looks at a combination: no prefix of it has negative information."""

    def is_allowed(combo):
        return all(mutual_information(rows, combo[:size], alpha) >= -1e-9 for size in range(2, len(combo)))

    return is_allowed


def follows_entropy(rows, alpha, min_gain):
    """Whether a heuristic search looks at a combination: neither it nor a prefix of it gains too little."""

    def is_allowed(combo):
        return all(entropy_gain(rows, combo[:size], alpha) >= min_gain for size in range(2, len(combo) + 1))

    return is_allowed


def find_with_pandas(original, synthetic, max_size):
    """The same search with ``duplicated`` and ``merge``: row number -> size, for frames without duplicates.

    Fast enough to time against: ``benchmarks/mpucc.py`` does.
    """
    original, synthetic = original.reset_index(drop=True), synthetic.reset_index(drop=True)
    order = sorted(synthetic.columns, key=lambda name: -synthetic[name].nunique(dropna=False))
    numbered = synthetic.assign(syn_idx=synthetic.index)
    found = {}
    for combo in all_combinations(order, max_size):
        columns = list(combo)
        ours = numbered.loc[~synthetic.duplicated(columns, keep=False), [*columns, "syn_idx"]]
        ours = ours[~ours["syn_idx"].isin(found)]
        theirs = original.loc[~original.duplicated(columns, keep=False), columns]
        for s in ours.merge(theirs, on=columns)["syn_idx"]:
            found[s] = len(columns)
    return found
