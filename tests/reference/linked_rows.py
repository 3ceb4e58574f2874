"""People who are left for an attacker who knows several rows of a person, by trying everything.

A box is a list of sets of codes, one per column; a row is a tuple of codes.
"""

from itertools import combinations, permutations


def fits(row, box):
    return all(code in own for code, own in zip(row, box, strict=True))


def people_left(known, boxes, people, groups):
    """The people with a group in which different rows fit the known rows, if rows of other people do not count."""
    left = set()
    for person, group in set(zip(people, groups, strict=True)):
        own = [b for b, p, g in zip(boxes, people, groups, strict=True) if (p, g) == (person, group)]
        for chosen in permutations(own, len(known)):
            if all(fits(row, box) for row, box in zip(known, chosen, strict=True)):
                left.add(person)
    return left


def values_left(known, boxes, values):
    """The values of which different rows fit the known rows."""
    return people_left(known, boxes, values, [0] * len(values))


def fewest(n_rows, rows, boxes, people, groups):
    """The fewest people left by any ``n_rows`` rows of a group, or by all of a smaller one, for each person."""
    found = {}
    for person, group in set(zip(people, groups, strict=True)):
        own = [row for row, p, g in zip(rows, people, groups, strict=True) if (p, g) == (person, group)]
        sizes = [len(people_left(known, boxes, people, groups)) for known in combinations(own, min(n_rows, len(own)))]
        found[person] = min([*sizes, found.get(person, len(rows))])
    return found


def groups_of(links):
    """Groups of rows that share a value of some column, as sets, by merging them until nothing changes."""
    n = len(links[0]) if links else 0
    groups = [{i} for i in range(n)]
    for i, j in combinations(range(n), 2):
        if any(column[i] == column[j] for column in links):
            one = next(g for g in groups if i in g)
            other = next(g for g in groups if j in g)
            if one is not other:
                groups = [g for g in groups if g is not one and g is not other] + [one | other]
    return {frozenset(g) for g in groups}


def people_left_by_all(known, target, releases, people):
    """The people with a group that fits known originals of a target in each release that has them.

    A release is a list of its rows: the original row, as codes of this release, its number, its box and its group.
    """

    def own(release, one):
        return [each for each in release if (people[each[1]], each[3]) == one]

    left = set()
    for one in {(people[number], group) for release in releases for _, number, _, group in release}:
        is_left = True
        for release in releases:
            rows = [row for row, number, _, _ in own(release, target) if number in known]
            boxes = [box for _, _, box, _ in own(release, one)]
            is_left &= any(
                all(fits(row, box) for row, box in zip(rows, chosen, strict=True))
                for chosen in permutations(boxes, len(rows))
            )
        if is_left:
            left.add(one[0])
    return left


def fewest_by_all(n_rows, releases, people):
    """The fewest people left by any ``n_rows`` originals of a group, or all of a smaller one, for each person."""
    found = {}
    for person, group in {(people[number], group) for release in releases for _, number, _, group in release}:
        own = {number for release in releases for _, number, _, g in release if (people[number], g) == (person, group)}
        for known in combinations(sorted(own), min(n_rows, len(own))):
            size = len(people_left_by_all(known, (person, group), releases, people))
            found[person] = min(size, found.get(person, size))
    return found


def mean_over_known_rows(n_rows, value_of, rows, people, groups):
    """The mean of a value of known rows: people alike, then their rows, then others of the same group and person."""
    means = []
    for person in set(people):
        values = []
        for row in (i for i, own in enumerate(people) if own == person):
            others = [i for i in range(len(rows)) if people[i] == person and groups[i] == groups[row] and i != row]
            # A row and others, each as often, are each set of rows of its group as often.
            chosen = list(combinations(others, min(n_rows - 1, len(others))))
            values.append(sum(value_of([rows[i] for i in (row, *own)]) for own in chosen) / len(chosen))
        means.append(sum(values) / len(values))
    return sum(means) / len(means)
