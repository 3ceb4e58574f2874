"""Brute-force inference on a tree of columns: every cell of the full table, one by one."""

from itertools import product
from math import exp, fsum


def joint(class_sizes, sizes, column_factors, pair_factors, edges, total):
    """Return the expected count of every cell (class, code of each column), by its definition."""
    weights = {}
    for cell in product(range(class_sizes), *(range(size) for size in sizes)):
        group, codes = cell[0], cell[1:]
        score = fsum(column_factors[i][group][code] for i, code in enumerate(codes))
        score += fsum(pair_factors[e][group][codes[a]][codes[b]] for e, (a, b) in enumerate(edges))
        weights[cell] = exp(score)
    whole = fsum(weights.values())
    return {cell: total * weight / whole for cell, weight in weights.items()}


def marginal(cells, columns):
    """Return the count of each class and codes of `columns`."""
    found = {}
    for cell, count in cells.items():
        key = (cell[0], *(cell[1 + column] for column in columns))
        found[key] = found.get(key, 0.0) + count
    return found


def gap(class_sizes, sizes, columns, pairs, edges, measured, total):
    """Return an upper bound on how far a loss is above its least value over all tables of `total` records.

    The loss (weighted least squares) is convex, so it lies above its tangent, whose least value is at a single cell.
    """
    column_counts, pair_counts, column_weights, pair_weight = measured
    slopes = {}
    for cell in product(range(class_sizes), *(range(size) for size in sizes)):
        group, codes = cell[0], cell[1:]
        slope = fsum(
            column_weights[i][code] * (columns[i][group][code] - column_counts[i][group][code])
            for i, code in enumerate(codes)
        )
        slope += fsum(
            pair_weight * (pairs[e][group][codes[a]][codes[b]] - pair_counts[e][group][codes[a]][codes[b]])
            for e, (a, b) in enumerate(edges)
        )
        slopes[cell] = slope
    inner = fsum(
        column_weights[i][code] * (columns[i][group][code] - column_counts[i][group][code]) * columns[i][group][code]
        for i, size in enumerate(sizes)
        for group in range(class_sizes)
        for code in range(size)
    )
    inner += fsum(
        pair_weight * (pairs[e][group][i][j] - pair_counts[e][group][i][j]) * pairs[e][group][i][j]
        for e, (a, b) in enumerate(edges)
        for group in range(class_sizes)
        for i in range(sizes[a])
        for j in range(sizes[b])
    )
    return inner - total * min(slopes.values())
