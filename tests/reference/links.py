"""Links between the rows of a person, pair of rows by pair of rows."""

from itertools import combinations, pairwise


def pairs_of_groups(groups, people, k):
    """Pairs of rows in a group of fewer than k people; a group is a set of rows."""
    found = []
    for rows in groups:
        if len({people[row] for row in rows}) < k:
            found += combinations(sorted(rows), 2)
    return found


def rows_with_several(people):
    return [row for row, person in enumerate(people) if sum(own == person for own in people) > 1]


def measured(pairs, people):
    """Share of the rows that have another row of the person, and share of the pairs that are of one person."""
    same = [pair for pair in pairs if people[pair[0]] == people[pair[1]]]
    linked = {row for pair in same for row in pair}
    return len(linked) / len(rows_with_several(people)), len(same) / len(pairs) if pairs else 0.0


def alone(column, people, k):
    groups = [{row for row, own in enumerate(column) if own == value} for value in set(column) - {None}]
    return measured(pairs_of_groups(groups, people, k), people)


def together(columns, people, k):
    rows = list(zip(*columns, strict=True))
    groups = [{row for row, own in enumerate(rows) if own == value} for value in set(rows)]
    return measured(pairs_of_groups(groups, people, k), people)


def across(one, other, people, k):
    common = (set(one) & set(other)) - {None}
    groups = [{row for row in range(len(people)) if value in (one[row], other[row])} for value in common]
    return measured(pairs_of_groups(groups, people, k), people)


def in_order(column, people, key):
    once = [row for row, value in enumerate(column) if value is not None and column.count(value) == 1]
    once.sort(key=lambda row: key(column[row]))
    return measured(list(pairwise(once)), people)


def changes(column, people):
    """Rows without the most frequent value of their person, and the share of people with several rows without any."""
    by_person = {}
    for value, person in zip(column, people, strict=True):
        if value is not None:
            by_person.setdefault(person, []).append(value)
    several = [own for own in by_person.values() if len(own) > 1]
    steady = sum(len(set(own)) == 1 for own in several) / len(several) if several else 1.0
    return sum(len(own) - max(own.count(value) for value in own) for own in by_person.values()), steady


def components(n_rows, groups):
    """The groups of rows that are connected by shared groups: a number for each row."""
    number = list(range(n_rows))
    for _ in range(n_rows):
        for rows in groups:
            least = min(number[row] for row in rows)
            for row in rows:
                number[row] = least
    return number
