"""Local recoding by one sweep over the full-domain lattice.

A node of the lattice is a level for each quasi-identifier. The nodes are visited in ascending order of their loss for
the whole table. At each node the remaining rows are grouped by their ancestors, and every group that satisfies the
models is published as a class; the sweep continues with the other rows. Groups only shrink, so one pass is enough for
k. (Entropy and distance may improve as rows leave, so a later pass could find more classes; every published class
satisfies them in any case.) :mod:`~privacy_assets.anonymization.kernels.lattice_leftovers` handles rows that no node
could publish.

Equal rows are one item with a weight, so that the cost depends on the distinct rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from privacy_assets.anonymization.kernels.lattice_leftovers import Classes, merge_equal, settle
from privacy_assets.anonymization.kernels.lattice_models import Column, Items, Limits, limits_of, satisfies
from privacy_assets.kernels.compilation import kernel, part

NODES_PER_STEP = 64
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)


class Sweep(NamedTuple):
    """Result of :func:`sweep_lattice`.

    ``class_of_item`` is numbered in the order of publication, -1 for suppressed items; ``levels`` (n_classes,
    n_columns) is the node of the lattice at which each class was published.
    """

    class_of_item: NDArray[np.int64]
    levels: NDArray[np.int64]


@part
def _group(
    codes: NDArray[np.int64],
    live: NDArray[np.int64],
    weights: NDArray[np.int64],
    parts: NDArray[np.int64],
    starts: NDArray[np.int64],
    group_of: NDArray[np.int64],
    size_of: NDArray[np.int64],
    table_key: NDArray[np.int64],
    table_group: NDArray[np.int32],
) -> int:
    """Group live items by the sum of the parts of their key; returns the number of groups.

    ``parts[starts[c] + code]`` is the part of column c. Writes the group of each live item and the weight of each
    group. ``table_key`` and ``table_group`` are scratch for open addressing.
    """
    n_columns = codes.shape[1]
    n_slots = 16
    shift = 60
    while n_slots < 2 * len(live):
        n_slots *= 2
        shift -= 1
    table_group[:n_slots] = -1
    n_groups = 0
    for i in range(len(live)):
        item = live[i]
        key = 0
        for c in range(n_columns):
            key += parts[starts[c] + codes[item, c]]
        slot = np.int64((np.uint64(key) * _MULTIPLIER) >> np.uint64(shift))
        while table_group[slot] >= 0 and table_key[slot] != key:
            slot = (slot + 1) & (n_slots - 1)
        group = table_group[slot]
        if group < 0:
            group = n_groups
            table_group[slot] = group
            table_key[slot] = key
            size_of[group] = 0
            n_groups += 1
        group_of[i] = group
        size_of[group] += weights[item]
    return n_groups


@part
def _are_equal(
    group: NDArray[np.int64], codes: NDArray[np.int64], nodes: NDArray[np.int64], starts: NDArray[np.int64]
) -> bool:
    """Whether all items of a group have the same nodes, not just the same key."""
    for item in group:
        for c in range(codes.shape[1]):
            if nodes[starts[c] + codes[item, c]] != nodes[starts[c] + codes[group[0], c]]:
                return False
    return True


@kernel
def _sweep(
    codes: NDArray[np.int64],
    parts: NDArray[np.int64],
    nodes: NDArray[np.int64],
    steps: NDArray[np.int64],
    limits: Limits,
    live: NDArray[np.int64],
    state: NDArray[np.int64],
    class_of_item: NDArray[np.int64],
    node_of_class: NDArray[np.int64],
    scratch: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int32]],
) -> None:
    """Visit some nodes of the lattice, publish the classes found, and remove their items from ``live``.

    ``steps`` has for each node the start of each column in ``parts`` (and ``nodes``). ``state`` has the
    number of live items, their rows, the classes published and the nodes visited.
    """
    group_of, size_of, members, table_key, table_group = scratch
    for starts in steps:
        n_live = state[0]
        if state[1] < limits.k:
            return
        n_groups = _group(
            codes, live[:n_live], limits.weights, parts, starts, group_of, size_of, table_key, table_group
        )
        state[3] += 1
        if size_of[:n_groups].max() < limits.k:
            continue
        _sort_members(live[:n_live], group_of, size_of, n_groups, limits.k, members)
        begin = 0
        for group in range(n_groups):
            end = size_of[group]
            if end < 0:
                continue
            own = members[begin:end]
            begin = end
            if _are_equal(own, codes, nodes, starts) and satisfies(own, limits):
                for item in own:
                    class_of_item[item] = state[2]
                    state[1] -= limits.weights[item]
                node_of_class[state[2]] = state[3] - 1
                state[2] += 1
        n_left = 0
        for i in range(n_live):
            live[n_left] = live[i]
            n_left += class_of_item[live[i]] < 0
        state[0] = n_left


@part
def _sort_members(
    live: NDArray[np.int64],
    group_of: NDArray[np.int64],
    size_of: NDArray[np.int64],
    n_groups: int,
    k: int,
    members: NDArray[np.int64],
) -> None:
    """Write the items of the groups of at least k rows into ``members``, group by group.

    ``size_of`` becomes the position after the last member of each of these groups, and -1 for the others.
    """
    for group in range(n_groups):
        size_of[group] = 0 if size_of[group] >= k else -1
    for i in range(len(live)):
        if size_of[group_of[i]] >= 0:
            size_of[group_of[i]] += 1
    begin = 0
    for group in range(n_groups):
        if size_of[group] >= 0:
            n_own = size_of[group]
            size_of[group] = begin
            begin += n_own
    for i in range(len(live)):
        group = group_of[i]
        if size_of[group] >= 0:
            members[size_of[group]] = live[i]
            size_of[group] += 1


class _Lattice(NamedTuple):
    """All nodes in the order of the visit; see :func:`_sweep`."""

    levels: NDArray[np.int64]
    steps: NDArray[np.int64]
    parts: NDArray[np.int64]
    nodes: NDArray[np.int64]


def count_nodes(columns: Sequence[Column]) -> int:
    """Count the nodes of the lattice."""
    n = 1
    for column in columns:
        n *= len(column.nodes)
    return n


def _lattice(items: Items) -> _Lattice:
    """Order the nodes by their mean loss for the table; a node comes after the nodes below it."""
    n_rows = max(int(items.weights.sum()), 1)
    levels = np.indices([len(column.nodes) for column in items.columns]).reshape(len(items.columns), -1).T
    costs = np.zeros(len(levels))
    starts = []
    parts = []
    n_parts = 0
    stride = 1
    is_exact = True
    for c, column in enumerate(items.columns):
        n_levels, n_values = column.nodes.shape
        of_value = np.bincount(column.codes, items.weights, minlength=n_values)
        # Rounded, so that nodes of equal cost stay in the order of their levels despite rounding errors.
        costs += np.round(column.loss[column.nodes] @ of_value / n_rows, 12)[levels[:, c]]
        starts.append(n_parts + np.arange(n_levels) * n_values)
        n_parts += n_levels * n_values
        n_nodes = int(column.nodes.max(initial=0)) + 1
        parts.append(column.nodes * stride if is_exact else np.zeros(1, np.int64))
        stride *= n_nodes
        is_exact &= stride < 2**62
    if not is_exact:
        # Too many nodes for a key that numbers their combinations: random parts instead, checked before publication.
        rng = np.random.default_rng(0)
        parts = [rng.integers(-(2**62), 2**62, column.nodes.max() + 1)[column.nodes] for column in items.columns]
    order = np.argsort(np.round(costs, 9), kind="stable")
    steps = np.column_stack([starts[c][levels[order, c]] for c in range(len(items.columns))])
    flat = np.concatenate([part.ravel() for part in parts])
    nodes = np.concatenate([column.nodes.ravel() for column in items.columns])
    return _Lattice(np.ascontiguousarray(levels[order]), np.ascontiguousarray(steps), flat, nodes)


def sweep_lattice(
    items: Items, k: int, *, n_allowed: int = 0, progress: Callable[[int, int, int], None] | None = None
) -> Sweep | None:
    """Find classes of at least k rows, or people, that satisfy all models, each at its node of the lattice.

    None if the models cannot be satisfied with at most ``n_allowed`` rows suppressed, which cannot happen if all rows
    together satisfy them. ``progress`` is called every few nodes with nodes visited, nodes in total and rows left, and
    then while leftover rows are put into classes. Cost: O(nodes x items left); the lattice has the product of the
    numbers of levels as nodes.
    """
    lattice = _lattice(items)
    codes = np.ascontiguousarray(np.column_stack([column.codes for column in items.columns]))
    n_items = len(codes)
    n_slots = 16
    while n_slots < 2 * n_items:
        n_slots *= 2
    scratch = (
        np.empty(n_items, np.int64),
        np.empty(n_items, np.int64),
        np.empty(n_items, np.int64),
        np.empty(n_slots, np.int64),
        np.empty(n_slots, np.int32),
    )
    live = np.arange(n_items)
    state = np.array([n_items, items.weights.sum(), 0, 0], np.int64)
    class_of_item = np.full(n_items, -1, np.int64)
    node_of_class = np.zeros(n_items, np.int64)
    limits = limits_of(items, k)
    for begin in range(0, len(lattice.steps), NODES_PER_STEP):
        steps = lattice.steps[begin : begin + NODES_PER_STEP]
        visited = int(state[3])
        _sweep(codes, lattice.parts, lattice.nodes, steps, limits, live, state, class_of_item, node_of_class, scratch)
        if progress is not None:
            progress(int(state[3]), len(lattice.steps), int(state[1]))
        if state[3] - visited < len(steps):
            break
    published = Classes(class_of_item, lattice.levels[node_of_class[: state[2]]])
    n_left = int(state[1])

    def on_tried(tried: NDArray[np.int64]) -> None:
        nonlocal n_left
        n_left -= int(items.weights[tried].sum())
        if progress is not None:
            progress(int(state[3]), len(lattice.steps), n_left)

    classes = settle(items, published, limits, n_allowed, on_tried)
    return None if classes is None else Sweep(*merge_equal(items, classes))
