"""Re-identification by its definitions: slow, obvious, and without anything from the package.

A mask is a predicate of (released row, original value); candidates are the originals that satisfy those of all known
columns. Rows are dicts of plain values, ``None`` for a missing one.
"""

import json
from itertools import chain, combinations
from math import log

import numpy as np
import pandas as pd
from scipy.optimize import linprog


def candidates(row, originals, predicates, known):
    """Positions of the originals that a released row can come from."""
    return [i for i, x in enumerate(originals) if all(predicates[name](row, x[name]) for name in known)]


def count_in_boxes(points, sets_of_boxes):
    """Points inside each box; a box has one set of codes per column."""
    return [sum(all(code in own for code, own in zip(p, sets, strict=True)) for p in points) for sets in sets_of_boxes]


def count_people_in_boxes(points, people, sets_of_boxes):
    """Different people inside each box."""
    return [
        len({who for p, who in zip(points, people, strict=True) if all(c in s for c, s in zip(p, sets, strict=True))})
        for sets in sets_of_boxes
    ]


def subsets(records):
    """All subsets of some records, the empty one included."""
    records = list(records)
    return [set(own) for own in chain.from_iterable(combinations(records, r) for r in range(len(records) + 1))]


def belief(masses, records):
    return sum(mass for focal, mass in masses.items() if set(focal) <= set(records))


def plausibility(masses, records):
    return sum(mass for focal, mass in masses.items() if set(focal) & set(records))


def pignistic(masses):
    found = {}
    for focal, mass in masses.items():
        for record in focal:
            found[record] = found.get(record, 0) + mass / len(focal)
    return found


def entropy(masses):
    return -sum(p * log(p) for p in pignistic(masses).values() if p > 0)


def nonspecificity(masses):
    return sum(mass * log(len(focal)) for focal, mass in masses.items() if mass > 0)


def is_compatible(truth, claimed):
    """Definition 14 by brute force: some masses of all sets give ``claimed``, with no belief above ``truth``."""
    n = len(truth)
    focal_sets = [own for own in subsets(range(n)) if own]
    shares = np.array([[1 / len(own) if x in own else 0 for own in focal_sets] for x in range(n)])
    inside = np.array([[own <= event for own in focal_sets] for event in subsets(range(n))], float)
    bounds = [sum(truth[x] for x in event) + 1e-12 for event in subsets(range(n))]
    found = linprog(np.zeros(len(focal_sets)), A_ub=inside, b_ub=bounds, A_eq=shares, b_eq=claimed, method="highs")
    return found.status == 0


def least_miss(truth, claimed):
    """By how much any such masses miss ``claimed`` at least, summed over all records."""
    n = len(truth)
    focal_sets = [own for own in subsets(range(n)) if own]
    shares = np.array([[1 / len(own) if x in own else 0 for own in focal_sets] for x in range(n)])
    inside = np.array([[own <= event for own in focal_sets] + [0] * 2 * n for event in subsets(range(n))], float)
    bounds = [sum(truth[x] for x in event) + 1e-12 for event in subsets(range(n))]
    sums = np.column_stack([shares, np.eye(n), -np.eye(n)])
    costs = np.array([0] * len(focal_sets) + [1] * 2 * n)
    masses = np.array([[1] * len(focal_sets) + [0] * 2 * n])
    return linprog(
        costs, A_ub=inside, b_ub=bounds, A_eq=np.vstack([sums, masses]), b_eq=[*claimed, 1], method="highs"
    ).fun


def least_nonspecificity(first, second):
    """Of masses of focal sets and their intersections that no probability compatible with both contradicts.

    Every event is bounded by its smallest probability; None if no probability is compatible with both.
    """
    records = sorted(set().union(*first, *second))
    events = [event for event in subsets(records) if event]
    has = np.array([[x in event for x in records] for event in events], float)
    believed = [-max(belief(first, event), belief(second, event)) + 1e-12 for event in events]
    lowest = []
    for row in has:
        found = linprog(row, A_ub=-has, b_ub=believed, A_eq=[[1] * len(records)], b_eq=[1], method="highs")
        if found.status == 2:
            return None
        lowest.append(found.fun)
    focal = sorted({*first, *second, *(a & b for a in first for b in second)} - {frozenset()}, key=sorted)
    inside = np.array([[own <= event for own in focal] for event in events], float)
    sizes = [log(len(own)) for own in focal]
    return linprog(sizes, A_ub=inside, b_ub=lowest, A_eq=[[1] * len(focal)], b_eq=[1], method="highs").fun


def perfect_matchings(candidates_of_row, n):
    """All ways to give each released row an original of its own."""

    def extend(row, used):
        if row == len(candidates_of_row):
            yield ()
            return
        for x in candidates_of_row[row]:
            if x not in used:
                for rest in extend(row + 1, used | {x}):
                    yield (x, *rest)

    return list(extend(0, frozenset()))


def sizes_with_pandas(original, released, masks, known):
    """Candidates of each released row as somebody would count them with pandas: equal cells and originals once.

    ``masks`` has, by column, ("interval", low, high, includes_high) or ("set", column of JSON arrays of texts).
    """
    weights = original.groupby(known, dropna=False, observed=True).size().reset_index(name="weight")
    columns = [column for name in known for column in masks[name][1:3] if isinstance(column, str)]
    cells = released[columns].drop_duplicates().reset_index(drop=True)
    texts = {name: weights[name].astype(str) for name in known if masks[name][0] == "set"}
    sizes = []
    for cell in cells.to_dict("records"):
        is_inside = pd.Series(True, index=weights.index)
        for name in known:
            kind, *own = masks[name]
            if kind == "set":
                is_inside &= texts[name].isin(json.loads(cell[own[0]]))
            else:
                inclusive = "both" if own[2] else "left"
                is_inside &= weights[name].between(cell[own[0]], cell[own[1]], inclusive=inclusive)
        sizes.append(weights["weight"].to_numpy()[is_inside.to_numpy()].sum())
    return released[columns].merge(cells.assign(size=sizes), how="left", on=columns)["size"].to_numpy()
