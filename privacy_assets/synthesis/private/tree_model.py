"""A tree of columns within each class: the distribution of largest entropy that agrees with noisy counts.

Its marginals are exact (belief propagation on a forest). Mirror descent moves them towards the noisy counts, and keeps
them consistent with each other and not negative [1]_. Only noisy counts are used here, never records.

References
----------
.. [1] R. McKenna, D. Sheldon, G. Miklau (2019), "Graphical-model based estimation and inference for differential
   privacy", ICML, arXiv:1901.09136; section 4 and algorithm 2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

MAX_STEPS: Final = 1500
LEAST_IMPROVEMENT: Final = 1e-6
N_STALLED: Final = 10
N_HALVINGS: Final = 30


class Visit(NamedTuple):
    """A column on the way from the roots of the forest to its leaves.

    ``parent`` is the column before it, ``edge`` the pair of both; -1 for a root.
    """

    column: int
    parent: int
    edge: int


class Potentials(NamedTuple):
    """Logarithms of the factors of columns and pairs, each with the classes as its first axis."""

    columns: list[Array]
    pairs: list[Array]


class Measured(NamedTuple):
    """Noisy counts, shaped like the marginals, and the weight of each (one over the variance of its noise)."""

    columns: list[Array]
    pairs: list[Array]
    column_weights: list[Array]
    pair_weight: float


@dataclass(frozen=True)
class TreeModel:
    """Marginals of a forest of columns, within classes.

    They are the expected counts of each column, of shape (n_classes, n_codes), and of each pair in ``edges``, of shape
    (n_classes, n_codes of the first, n_codes of the second).
    """

    edges: tuple[tuple[int, int], ...]
    columns: list[Array]
    pairs: list[Array]

    def sample(self, n_records: int, random: np.random.Generator) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Draw the class and the codes of records, each column given its parent.

        Frequencies are met to within one record, so the draw adds little to the noise of the model.
        """
        codes = np.zeros((n_records, len(self.columns)), dtype=np.int64)
        classes = _drawn(self.columns[0].sum(axis=1), n_records, random)
        for column, parent, edge in ways_down(len(self.columns), self.edges):
            n_codes = self.columns[column].shape[1]
            if parent < 0:
                keys, tables = classes, self.columns[column]
            else:
                keys = classes * self.columns[parent].shape[1] + codes[:, parent]
                tables = parent_first(self.pairs[edge], self.edges[edge], parent).reshape(-1, n_codes)
            order = np.argsort(keys, kind="stable")
            bounds = np.searchsorted(keys[order], np.arange(len(tables) + 1))
            for key in np.flatnonzero(np.diff(bounds)):
                rows = order[bounds[key] : bounds[key + 1]]
                codes[rows, column] = _drawn(tables[key], len(rows), random)
        return classes, codes


def fit_tree(measured: Measured, edges: Sequence[tuple[int, int]], total: float) -> TreeModel:
    """Find the marginals of `total` records that are closest to the noisy counts, in weighted least squares.

    Cost is linear in the cells of the pairs for each of at most `MAX_STEPS` steps.
    """
    edges = tuple(edges)
    starts = [np.maximum(counts, 0.0) + 0.5 for counts in measured.columns]
    potentials = Potentials(
        [np.log(start / start.sum(axis=1, keepdims=True)) for start in starts],
        [np.zeros(counts.shape) for counts in measured.pairs],
    )
    of_classes = np.log(np.mean([start.sum(axis=1) for start in starts], axis=0) / total)
    potentials.columns[0] += of_classes[:, None]
    found = marginals(potentials, edges, total)
    loss = _loss(found, measured)
    heaviest = max([measured.pair_weight] * bool(edges) + [float(each.max()) for each in measured.column_weights])
    step, n_stalled = 2 / (total * heaviest), 0
    for _ in range(MAX_STEPS):
        gradient = _gradient(found, measured)
        for _ in range(N_HALVINGS):
            moved = _plus(potentials, gradient, -step)
            new = marginals(moved, edges, total)
            new_loss = _loss(new, measured)
            if loss - new_loss >= 0.5 * _inner(gradient, found, new):
                break
            step /= 2
        else:
            break
        n_stalled = n_stalled + 1 if loss - new_loss < LEAST_IMPROVEMENT * loss else 0
        potentials, found, loss, step = moved, new, new_loss, step * 1.1
        if n_stalled >= N_STALLED:
            break
    return TreeModel(edges, found.columns, found.pairs)


def marginals(potentials: Potentials, edges: Sequence[tuple[int, int]], total: float) -> Potentials:
    """Return the expected counts of columns and pairs (not their logarithms), by messages up and down the forest."""
    visits = ways_down(len(potentials.columns), edges)
    inward = [each.copy() for each in potentials.columns]
    given_parent: dict[int, Array] = {}
    log_sums = np.zeros(len(inward[0]))
    for column, parent, edge in reversed(visits):
        if parent < 0:
            log_sums += _log_sum(inward[column])
            continue
        scores = parent_first(potentials.pairs[edge], edges[edge], parent) + inward[column][:, None, :]
        sums = _log_sum(scores)
        given_parent[column] = np.exp(scores - sums[:, :, None])
        inward[parent] += sums
    of_classes = np.exp(log_sums - _log_sum(log_sums)) * total
    columns: list[Array] = [np.empty(0)] * len(inward)
    pairs: list[Array] = [np.empty(0)] * len(edges)
    for column, parent, edge in visits:
        if parent < 0:
            columns[column] = of_classes[:, None] * np.exp(inward[column] - _log_sum(inward[column])[:, None])
            continue
        joint = columns[parent][:, :, None] * given_parent[column]
        columns[column] = joint.sum(axis=1)
        pairs[edge] = parent_first(joint, (parent, column), edges[edge][0])
    return Potentials(columns, pairs)


def ways_down(n_columns: int, edges: Sequence[tuple[int, int]]) -> list[Visit]:
    """Return all columns, each after its parent."""
    neighbors: list[list[tuple[int, int]]] = [[] for _ in range(n_columns)]
    for edge, (a, b) in enumerate(edges):
        neighbors[a].append((b, edge))
        neighbors[b].append((a, edge))
    visits: list[Visit] = []
    seen: set[int] = set()
    for root in range(n_columns):
        if root in seen:
            continue
        waiting = [Visit(root, -1, -1)]
        while waiting:
            visit = waiting.pop()
            seen.add(visit.column)
            visits.append(visit)
            for column, edge in neighbors[visit.column]:
                if column not in seen:
                    waiting.append(Visit(column, visit.column, edge))
    return visits


def parent_first(table: Array, edge: tuple[int, int], parent: int) -> Array:
    """Return the table of a pair with the axis of `parent` before that of the other column."""
    return table if edge[0] == parent else table.transpose(0, 2, 1)


def closest_counts(counts: Array, total: float) -> Array:
    """Return the closest counts that are not negative and sum to `total` (projection onto a simplex)."""
    descending = np.sort(counts, axis=None)[::-1]
    excess = (np.cumsum(descending) - total) / np.arange(1, descending.size + 1)
    last = np.flatnonzero(descending > excess)[-1]
    closest: Array = np.maximum(counts - excess[last], 0.0)
    return closest


def _log_sum(scores: Array) -> Array:
    greatest = scores.max(axis=-1, keepdims=True)
    summed: Array = np.log(np.exp(scores - greatest).sum(axis=-1)) + greatest[..., 0]
    return summed


def _loss(found: Potentials, measured: Measured) -> float:
    of_columns = (
        float((weights * (own - counts) ** 2).sum())
        for own, counts, weights in zip(found.columns, measured.columns, measured.column_weights, strict=True)
    )
    of_pairs = (float(((own - counts) ** 2).sum()) for own, counts in zip(found.pairs, measured.pairs, strict=True))
    return (sum(of_columns) + measured.pair_weight * sum(of_pairs)) / 2


def _gradient(found: Potentials, measured: Measured) -> Potentials:
    columns = [
        weights * (own - counts)
        for own, counts, weights in zip(found.columns, measured.columns, measured.column_weights, strict=True)
    ]
    pairs = [measured.pair_weight * (own - counts) for own, counts in zip(found.pairs, measured.pairs, strict=True)]
    return Potentials(columns, pairs)


def _plus(potentials: Potentials, gradient: Potentials, step: float) -> Potentials:
    columns = [own + step * change for own, change in zip(potentials.columns, gradient.columns, strict=True)]
    pairs = [own + step * change for own, change in zip(potentials.pairs, gradient.pairs, strict=True)]
    return Potentials(columns, pairs)


def _inner(gradient: Potentials, before: Potentials, after: Potentials) -> float:
    """Return how much a loss with this gradient would fall if it were linear."""
    return sum(
        float((change * (old - new)).sum())
        for changes, olds, news in zip(gradient, before, after, strict=True)
        for change, old, new in zip(changes, olds, news, strict=True)
    )


def _drawn(counts: Array, n_records: int, random: np.random.Generator) -> NDArray[np.int64]:
    """Return codes in random order whose frequencies are proportional to `counts`, rounded at random."""
    total = counts.sum()
    shares = counts / total if total > 0 else np.full(len(counts), 1 / len(counts))
    wanted = shares * n_records
    whole = np.floor(wanted).astype(np.int64)
    n_left = n_records - int(whole.sum())
    if n_left > 0:
        rest = wanted - whole
        whole += random.multinomial(n_left, rest / rest.sum() if rest.sum() > 0 else shares)
    codes = np.repeat(np.arange(len(counts)), whole)
    random.shuffle(codes)
    return codes
