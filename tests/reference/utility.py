"""The figures of `assess_utility` as their page defines them, row by row; it imports nothing of the package."""

import math
from collections import Counter
from itertools import combinations, product

import numpy as np

MISSING, OTHER, UNSEEN = "missing", "other", "unseen"


def bins_of(values, is_ordered, categories=None):
    """Return the bins of one column, the bin of each value, and the places of quantiles that cut it.

    OTHER is a bin where values can be joined, UNSEEN that of values that no original has, MISSING the last one. Places
    are from 0 (smallest value) to 1; None if the column was not cut. Values are plain; None is the missing value.
    `categories` are in their order.
    """
    known = [value for value in values if value is not None]
    counts = Counter(known)
    if categories is not None:
        rank = {category: place for place, category in enumerate(categories)}
        bins, find, cuts = bins_of([None if value is None else rank[value] for value in values], True)
        return [*bins[:-1], UNSEEN, MISSING], lambda value: MISSING if value is None else find(rank[value]), cuts
    if not is_ordered:
        frequent = sorted(counts, key=lambda value: (-counts[value], value))
        frequent = frequent[: 9 if len(frequent) > 10 else 10]

        def find_text(value):
            return MISSING if value is None else value if value in frequent else OTHER

        return [*frequent, OTHER, UNSEEN, MISSING], find_text, None
    distinct = sorted(counts)
    cuts = None
    if len(distinct) <= 10:
        begins = distinct[1:]
    else:
        in_order = sorted(known)
        begins = {in_order[i * len(known) // 10] for i in range(1, 10)}
        for place, value in enumerate(distinct):
            if counts[value] * 10 > len(known):
                begins |= {value, *distinct[place + 1 : place + 2]}
        begins = sorted(begins - {distinct[0]})
        cuts = [(begin - distinct[0]) / (distinct[-1] - distinct[0]) for begin in begins]

    def find(value):
        return MISSING if value is None else sum(value >= begin for begin in begins)

    return [*range(len(begins) + 1), MISSING], find, cuts


def unseen_of(original, control, table):
    """Return the values of one column of a table that count as UNSEEN; the others that no original has are OTHER.

    The share of the values that is OTHER is at most that of the control, less of it if there are more unseen values,
    and the values that the table has least often come first.
    """

    def new_values(values):
        known = [value for value in values if value is not None]
        return [value for value in known if value not in original], max(len(known), 1)

    of_control, of_table = new_values(control), new_values(table)
    natural, own = (len(values) / n for values, n in (of_control, of_table))
    left = min(own, max(2 * natural - own, 0)) * of_table[1] + 1e-6
    counts = Counter(of_table[0])
    unseen = set()
    for value in sorted(counts, key=lambda value: (counts[value], value)):
        left -= counts[value]
        if left < 0:
            unseen.add(value)
    return unseen


def _share(rows, *conditions):
    return sum(all(row[j] in kept for j, kept in conditions) for row in rows) / len(rows)


def column_distance(rows, judge, j, bins):
    return sum(abs(_share(rows, (j, {b})) - _share(judge, (j, {b}))) for b in bins) / 2


def uniform(values, bins, cuts):
    """Share of each bin if nothing is known: by width where quantiles were cut, one for each where not."""
    shares = dict.fromkeys(bins, 1.0)
    if cuts is not None:
        ends, n = [0.0, *cuts, 1.0], len(cuts) + 1
        shares = {b: (ends[b + 1] - ends[b]) * n if isinstance(b, int) else 0.0 for b in bins}
    if OTHER in shares:  # Of ordered categories, nothing is joined.
        shares[UNSEEN] = 0.0
    shares[MISSING] = float(None in values)
    return {b: share / sum(shares.values()) for b, share in shares.items()}


def uniform_distance(judge, j, shares):
    return sum(abs(share - _share(judge, (j, {b}))) for b, share in shares.items()) / 2


def pair_error(rows, judge, i, j, bins):
    def association(table, a, b):
        return _share(table, (i, {a}), (j, {b})) - _share(table, (i, {a})) * _share(table, (j, {b}))

    return sum((association(rows, a, b) - association(judge, a, b)) ** 2 for a, b in product(bins[i], bins[j]))


def count_error(rows, judge, query):
    return (math.sqrt(_share(rows, *query)) - math.sqrt(_share(judge, *query))) ** 2


def relative_count_error(rows, judge, query):
    truth = _share(judge, *query)
    return abs(_share(rows, *query) - truth) / max(truth, 0.005)


def explained(rows, judge, j, bins):
    """Learn a linear rule with a small penalty on the rows, by least squares; test it on the judge."""

    def one_hot(table, columns):
        return np.array([[float(row[c] == b) for c in columns for b in bins[c]] for row in table])

    others = [c for c in range(len(bins)) if c != j]
    if not others:
        return 0.0
    x, y = one_hot(rows, others), one_hot(rows, [j])
    weight = math.sqrt(1e-4 * len(rows) + 1)
    x = np.vstack([x, weight * np.eye(x.shape[1])])
    y = np.vstack([y, np.zeros((x.shape[1], y.shape[1]))])
    rule = np.linalg.lstsq(x, y, rcond=None)[0]
    truth = one_hot(judge, [j])
    variance = ((truth - truth.mean(axis=0)) ** 2).sum() / len(judge)
    # The mean of squares is not centered by the rule's own mean, but by that of the judge.
    left = ((truth - one_hot(judge, others) @ rule) ** 2).sum() / len(judge)
    return max(1 - left / variance, 0.0) if variance > 1e-12 else 0.0


def figures(released, control, original, shuffled, bins, flat, queries):
    """Return the five figures; a figure whose originals are not better than its zero is NaN."""

    def ratio(worst, own, best):
        return (worst - own) / (worst - best) if worst != best else math.nan

    columns = range(len(bins))
    pairs = list(combinations(columns, 2))
    found = {}
    distances = [sum(column_distance(t, control, j, bins[j]) for j in columns) for t in (released, original)]
    found["utility_columns"] = ratio(sum(uniform_distance(control, j, flat[j]) for j in columns), *distances)
    found["utility_pairs"] = ratio(
        *(sum(pair_error(t, control, *pair, bins) for pair in pairs) for t in (shuffled, released, original))
    )
    found["utility_counts"] = ratio(
        *(sum(count_error(t, control, query) for query in queries) for t in (shuffled, released, original))
    )
    own, best = (sum(explained(t, control, j, bins) for j in columns) for t in (released, original))
    found["utility_prediction"] = own / best if best else math.nan
    related = [found[name] for name in ("utility_pairs", "utility_counts", "utility_prediction")]
    found["utility"] = math.nan if any(map(math.isnan, related)) else sum(max(each, 0.0) for each in related) / 3
    return found


def within_groups(released, original, control, groups, bins):
    """Squared errors of the cells of all pairs, by group: of the release, the originals, and no regard to groups.

    ``groups`` are, for each of the tables, the group of each row, None for none.
    """
    pairs = list(combinations(range(len(bins)), 2))
    found = {}
    for g in sorted({group for group in groups[2] if group is not None}, key=str):
        tables = []
        for table, of in zip((released, original, control), groups, strict=True):
            tables.append([row for row, group in zip(table, of, strict=True) if group == g])
        everybody = [row for row, group in zip(original, groups[1], strict=True) if group is not None]
        errors = [0.0, 0.0, 0.0]
        for i, j in pairs:
            for a, b in product(bins[i], bins[j]):
                truth, *others = (
                    _share(rows or everybody, (i, {a}), (j, {b}))
                    for rows in (tables[2], tables[0], tables[1], everybody)
                )
                for place, own in enumerate(others):
                    errors[place] += (own - truth) ** 2
        found[g] = (len(tables[2]), *errors)
    return found


def jackknife_error(values):
    """Standard error from the figures without one group each."""
    mean = sum(values) / len(values)
    return math.sqrt((len(values) - 1) / len(values) * sum((value - mean) ** 2 for value in values))
