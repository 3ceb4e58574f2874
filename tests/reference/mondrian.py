"""Mondrian by enumeration: slow, obvious, and without anything from the package.

A row is a tuple of plain values, None for a missing one. A *kind* per column says "ordered", "set" or "tree"; ``place``
maps each ordered value to its place between 0 and 1, and each value of a tree to its path: the names of its nodes from
itself to the root, one per level. A class is a list of row numbers.
"""

from collections import Counter
from math import inf, log

BALANCE_WEIGHT = 0.35


class Table:
    """Rows, and everything that every class is compared with."""

    def __init__(self, rows, kinds, places, *, people=None, sensitive=()):
        self.rows, self.kinds, self.places = rows, kinds, places
        self.people = people
        self.sensitive = sensitive
        self.n_distinct = [len({row[j] for row in rows}) for j in range(len(kinds))]

    def units(self, members):
        return len(members) if self.people is None else len({self.people[i] for i in members})

    def width(self, members, j):
        values = {self.rows[i][j] for i in members}
        if self.kinds[j] == "tree":
            return loss_of_node(common_node(values, self.places[j]), self.places[j])
        if self.kinds[j] == "set":
            return (len(values) - 1) / max(self.n_distinct[j] - 1, 1)
        if None in values:
            return 1.0 if len(values) > 1 else 0.0
        places = [self.places[j][value] for value in values]
        return max(places) - min(places)

    def sides(self, members, j):
        """Every way to cut one dimension: by order, or by frequency in the class (ties by value)."""
        counts = Counter(self.rows[i][j] for i in members)
        if self.kinds[j] == "tree":
            order = depth_first(counts, self.places[j], 0)
        elif self.kinds[j] == "set":
            order = sorted(counts, key=lambda v: (-counts[v], v is None, str(v)))
        else:
            order = sorted(counts, key=lambda v: (v is None, 0 if v is None else self.places[j][v]))
        for n in range(1, len(order)):
            head = set(order[:n])
            yield [i for i in members if self.rows[i][j] in head], [i for i in members if self.rows[i][j] not in head]

    def holds(self, members, k, models=()):
        """Whether a class has k units and satisfies models: (column, kind, l, c) or (column, "t", most, is_ordered)."""
        if self.units(members) < k:
            return False
        return all(self._model_holds(members, *model) for model in models)

    def _model_holds(self, members, column, kind, limit, extra):
        values = self.sensitive[column]
        if kind == "t":
            return closeness([values[i] for i in members], values, extra) <= limit + 1e-9
        return is_diverse([values[i] for i in members], kind, limit, extra)

    def allowable(self, members, k, models=()):
        """All allowable cuts: (dimension, left, right)."""
        return [
            (j, left, right)
            for j in range(len(self.kinds))
            if self.width(members, j) > 0
            for left, right in self.sides(members, j)
            if self.kinds[j] != "tree" or min(self.width(left, j), self.width(right, j)) < self.width(members, j)
            if self.holds(left, k, models) and self.holds(right, k, models)
        ]

    def gain(self, members, j, left, right, k):
        m = len(members)
        most = self.units(members) // k
        lost = max(most - self.units(left) // k - self.units(right) // k, 0)
        loss = m * self.width(members, j) - len(left) * self.width(left, j) - len(right) * self.width(right, j)
        if self.kinds[j] == "tree":
            return loss * (1 - lost / most)
        return loss * (1 - lost / most) * (1 - BALANCE_WEIGHT * abs(len(left) - len(right)) / m)


def nodes_from_root(value, paths):
    """Nodes of a value with their level counted from the root, so that equal names on two levels are two nodes."""
    return list(enumerate(reversed(paths[value])))


def leaves_under(node, paths):
    return {value for value in paths if node in nodes_from_root(value, paths)}


def common_node(values, paths):
    """The lowest node above all values."""
    shared = [node for node in nodes_from_root(next(iter(values)), paths) if values <= leaves_under(node, paths)]
    return shared[-1]


def loss_of_node(node, paths):
    return (len(leaves_under(node, paths)) - 1) / max(len(paths) - 1, 1)


def depth_first(counts, paths, level):
    """Values with their siblings by rows of the class, then by number; ``level`` counts from the root."""
    if len(counts) < 2:
        return list(counts)
    groups = {}
    for value in counts:
        groups.setdefault(nodes_from_root(value, paths)[level], []).append(value)
    ordered = sorted(groups.values(), key=lambda own: (-sum(counts[v] for v in own), min(own)))
    return [v for own in ordered for v in depth_first({v: counts[v] for v in own}, paths, level + 1)]


def is_diverse(values, kind, least, c):
    counts = sorted(Counter(values).values(), reverse=True)
    if kind == "distinct":
        return len(counts) >= least
    if kind == "entropy":
        return entropy(values) >= log(least) - 1e-9
    return counts[0] < c * sum(counts[int(least) - 1 :])


def entropy(values):
    n = len(values)
    return -sum(count / n * log(count / n) for count in Counter(values).values())


def closeness(values, everything, is_ordered):
    """Earth mover's distance to the whole table; missing values come last."""
    order = sorted(set(everything), key=lambda v: (v is None, 0 if v is None else v))
    if len(order) < 2:
        return 0.0
    own, all_ = Counter(values), Counter(everything)
    gaps = [own[v] / len(values) - all_[v] / len(everything) for v in order]
    if not is_ordered:
        return sum(map(abs, gaps)) / 2
    moved, total = 0.0, 0.0
    for gap in gaps:
        moved += gap
        total += abs(moved)
    return total / (len(order) - 1)


def check_cut(table, members, left, right, dimension, k, models, criterion):
    """The cut taken is allowable and the best by its criterion (ties in the last bits are free)."""
    cuts = table.allowable(members, k, models)
    own = [(j, a, b) for j, a, b in cuts if j == dimension and set(a) == set(left) and set(b) == set(right)]
    assert own, "the cut is not allowable"
    if criterion == "gain":
        scores = [table.gain(members, *cut, k) for cut in cuts]
        assert table.gain(members, *own[0], k) >= max(scores) - 1e-9
        return
    widest = max((table.width(members, j) for j, _, _ in cuts), default=-inf)
    assert table.width(members, dimension) >= widest - 1e-9
    best = min(abs(len(a) - len(b)) for j, a, b in cuts if j == dimension)
    assert abs(len(left) - len(right)) == best
