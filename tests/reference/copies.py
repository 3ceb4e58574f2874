"""Copies beyond people over all divisions of the people, as their page defines them."""

from itertools import combinations
from math import comb, sqrt


def copies_beyond_people(people, released):
    """Return the shares of unique records of half of the people that others and released records have.

    It imports nothing of the package. ``people`` are sets of distinct records, equally many each; ``released`` is a
    list of records.
    """
    n, size = len(people), len(people[0])
    n_a = n // 2
    n_b = min(n - n_a, len(released) // size)
    unique, in_b, drawn = {}, {}, {}
    n_divisions = 0
    for a in combinations(range(n), n_a):
        for b in combinations(sorted(set(range(n)) - set(a)), n_b):
            n_divisions += 1
            for p in a:
                for record in people[p]:
                    if any(record in people[q] for q in a if q != p):
                        continue
                    key = p, record
                    unique[key] = unique.get(key, 0) + 1 / size
                    in_b[key] = in_b.get(key, 0) + any(record in people[q] for q in b) / size
                    missed = comb(len(released) - released.count(record), n_b * size) / comb(len(released), n_b * size)
                    drawn[key] = drawn.get(key, 0) + (1 - missed) / size
    total = sum(unique.values())
    if total == 0:
        return 0.0, 0.0, 0.0, 0.0
    differences = {key: (drawn[key] - in_b[key]) / total for key in unique}

    def squares(name):
        sums = {}
        for key, value in differences.items():
            sums[name(key)] = sums.get(name(key), 0) + value
        return sum(value**2 for value in sums.values())

    of_records, of_people, of_both = (squares(name) for name in (lambda k: k[1], lambda k: k[0], lambda k: k))
    # One pair of equal people: one is in A, the other in B.
    of_pair = 2 * n_a * n_b / (n * (n - 1)) / (total / n_divisions)
    z = 1.959963984540054
    reach = z * sqrt(max(of_records + of_people - of_both, of_records) + (z * of_pair) ** 2)
    of_others, of_release = sum(in_b.values()) / total, sum(drawn.values()) / total
    return of_others, of_release, of_release - of_others, reach
