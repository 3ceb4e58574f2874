"""Membership by its definitions: slow, obvious, and without anything from the package.

Rows are dicts of plain values, ``None`` for a missing one; a released row has the origin ``row``, the number ``class``,
and the cells of the release.
"""

import json
from itertools import product


def auc(originals, controls):
    """Share of pairs in which the original has the larger score; ties count half."""
    pairs = list(product(originals, controls))
    return sum((a > b) + (a == b) / 2 for a, b in pairs) / len(pairs)


def delong_variance(originals, controls):
    """Variance of the AUC, from the mean of the pairs of each person."""

    def spread(means):
        center = sum(means) / len(means)
        return sum((mean - center) ** 2 for mean in means) / (len(means) - 1) / len(means)

    return spread([auc([a], controls) for a in originals]) + spread([auc(originals, [b]) for b in controls])


def contains(row, x, numbers, sets):
    """Whether the ranges and sets of a released row contain the values of a record."""
    for name, is_closed in numbers.items():
        low, high = row[f"{name}_low"], row[f"{name}_high"]
        if x[name] is None:
            if not row.get(f"{name}_missing"):
                return False
        elif low is None or not (low <= x[name] <= high if is_closed else low <= x[name] < high):
            return False
    return all(x[name] in json.loads(row[f"{name}_values"]) for name in sets)


def fits(row, x, numbers, sets, exact):
    return contains(row, x, numbers, sets) and all(row[name] == x[name] for name in exact)


def stays(x, others, numbers, sets):
    """Whether a record lies in the ranges and sets that others would have without it."""
    for name in numbers:
        known = [other[name] for other in others if other[name] is not None]
        if x[name] is None:
            if len(known) == len(others):
                return False
        elif not known or not min(known) <= x[name] <= max(known):
            return False
    return all(x[name] in [other[name] for other in others] for name in sets)


def people_found(people, is_found):
    """People of whom all records are found."""
    return len(set(people)) - len({who for who, found in zip(people, is_found, strict=True) if not found})


def search(source, people, control, people_of_control, released, numbers, sets, exact):
    """People for whom all records fit: of the source, of the control, and left out, surely and possibly."""
    ways = numbers, sets, exact
    of_source = [any(fits(row, x, *ways) for row in released) for x in source]
    of_control = [any(fits(row, x, *ways) for row in released) for x in control]
    possibly, surely = [], []
    for i, x in enumerate(source):
        others = [row for row in released if people[row["row"]] != people[i]]
        possibly.append(any(fits(row, x, *ways) for row in others))
        own = [row["class"] for row in released if row["row"] == i]
        inside = [row for row in others if row["class"] in own]
        elsewhere = [row for row in others if row["class"] not in own]
        does_stay = stays(x, [source[row["row"]] for row in inside], numbers, sets) if inside else False
        surely.append(
            any(fits(row, x, *ways) for row in elsewhere)
            or (does_stay and any(all(row[name] == x[name] for name in exact) for row in inside))
        )
    return (
        people_found(people, of_source),
        people_found(people_of_control, of_control),
        people_found(people, surely),
        people_found(people, possibly),
    )
