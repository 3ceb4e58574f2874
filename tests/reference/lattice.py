"""The sweep over the lattice by enumeration: slow, obvious, and without anything from the package.

A column is a list of paths, one per row: the node of the row on each level. ``loss`` maps (column, node) to a fraction.
"""

import math
from collections import Counter
from fractions import Fraction
from itertools import product

from tests.reference import anonymity_measures as measures


def is_satisfied(values, table, least=1, kind="distinct", c=1.0, t=None, is_ordered=False):
    """Whether a class, given by its sensitive values, keeps its l and its t."""
    counts = sorted(Counter(values).values(), reverse=True)
    if kind == "distinct" and len(counts) < least:
        return False
    if kind == "entropy" and math.exp(measures.entropy(values)) < least - 1e-9:
        return False
    if kind == "recursive" and not measures.recursive_c(values, least) < c:
        return False
    distance = measures.ordered_distance if is_ordered else measures.equal_distance
    return t is None or float(distance(values, table)) <= t + 1e-12


def nodes_in_order(columns, loss):
    """Every combination of levels, by the mean loss of the table; ties by levels."""
    n_rows = len(columns[0])

    def cost(levels):
        losses = (loss[c, path[level]] for c, level in enumerate(levels) for path in columns[c])
        return sum(losses) / Fraction(n_rows)

    return sorted(product(*(range(len(column[0])) for column in columns)), key=lambda levels: (cost(levels), levels))


def sweep(columns, loss, is_class):
    """Classes as a list of (levels, rows), and the rows that are left; ``is_class`` judges a list of rows."""
    left = list(range(len(columns[0])))
    classes = []
    for levels in nodes_in_order(columns, loss):
        groups = {}
        for row in left:
            groups.setdefault(tuple(columns[c][row][level] for c, level in enumerate(levels)), []).append(row)
        found = [rows for rows in groups.values() if is_class(rows)]
        classes += [(levels, rows) for rows in found]
        left = sorted(set(left) - {row for rows in found for row in rows})
    return classes, left
