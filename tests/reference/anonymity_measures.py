"""The measures of anonymity by their definitions: slow, obvious, and without anything from the package.

Labels and values are plain, ``None`` for a missing one; shares are fractions, so nothing is rounded but logarithms.
"""

import math
from collections import Counter
from fractions import Fraction

import pandas as pd


def plain(column):
    """A column as plain values; missing ones are None, whatever pandas calls them."""
    return [None if pd.isna(value) else value for value in column.astype(object)]


def classes_of(labels):
    """Positions of the rows of each class; ``labels`` are one tuple per row."""
    classes = {}
    for row, label in enumerate(labels):
        classes.setdefault(label, []).append(row)
    return list(classes.values())


def in_order(values):
    """Distinct values, ascending, a missing one last."""
    known = sorted({value for value in values if value is not None})
    return [*known, *([None] if None in values else [])]


def shares(values):
    return {value: Fraction(count, len(values)) for value, count in Counter(values).items()}


def entropy(values):
    return -sum(float(q) * math.log(q) for q in shares(values).values())


def recursive_c(values, l_value):
    """What c must be above: r_1 / (r_l + ... + r_m)."""
    counts = sorted(Counter(values).values(), reverse=True)
    return Fraction(counts[0], sum(counts[l_value - 1 :])) if len(counts) >= l_value else math.inf


def equal_distance(values, table):
    q, p = shares(values), shares(table)
    return sum(abs(q.get(value, 0) - p[value]) for value in p) / 2


def ordered_distance(values, table):
    q, p, order = shares(values), shares(table), in_order(table)
    if len(order) == 1:
        return Fraction(0)
    steps = [abs(sum(q.get(v, 0) - p[v] for v in order[: i + 1])) for i in range(len(order))]
    return sum(steps) / (len(order) - 1)


def beta(values, table):
    q, p = shares(values), shares(table)
    return max(max((q[v] - p[v]) / p[v] for v in q), 0)


def enhanced_beta(values, table):
    q, p = shares(values), shares(table)
    gains = {v: (q[v] - p[v]) / p[v] for v in q if q[v] > p[v]}
    is_bounded = all(float(gain) <= -math.log(p[v]) for v, gain in gains.items())
    return max(gains.values(), default=0) if is_bounded else math.inf


def delta(values, table):
    q, p = shares(values), shares(table)
    return max(abs(math.log(q[v] / p[v])) for v in q)


def measure(labels, table, is_ordered):
    """All measures of one sensitive column, as a mapping with the names of the report."""
    classes = [[table[row] for row in rows] for rows in classes_of(labels)]
    l_distinct = min(len(set(values)) for values in classes)
    distance = ordered_distance if is_ordered else equal_distance
    n_homogeneous = sum(len(values) for values in classes if len(set(values)) == 1)
    return {
        "alpha": max(max(shares(values).values()) for values in classes),
        "l_distinct": l_distinct,
        "l_entropy": min(math.exp(entropy(values)) for values in classes),
        "l_recursive_c": {
            l_value: max(recursive_c(values, l_value) for values in classes)
            for l_value in range(2, min(l_distinct, 10) + 1)
        },
        "t": max(distance(values, table) for values in classes),
        "beta": max(beta(values, table) for values in classes),
        "enhanced_beta": max(enhanced_beta(values, table) for values in classes),
        "delta": max(delta(values, table) for values in classes),
        "n_classes_lacking_values": sum(set(values) != set(table) for values in classes),
        "share_in_homogeneous_classes": Fraction(n_homogeneous, len(table)),
        "n_values": len(set(table)),
    }


def people_in_classes(labels, people):
    return [len({people[row] for row in rows}) for rows in classes_of(labels)]
