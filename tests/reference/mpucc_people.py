"""The mpUCC search by person, by enumeration: dictionaries of people, and nothing from the package.

Rows are tuples of plain values, people are plain values; a combination is a tuple of column positions.
"""

from collections import Counter

from tests.reference.mpucc import all_combinations, project, search_order


def records_of(originals, people, deduplicate):
    """Person -> Counter of their records; of people with the same records only the first, if duplicates count once."""
    records = {}
    for row, person in zip(originals, people, strict=True):
        records.setdefault(person, Counter())[row] += 1
    if not deduplicate:
        return records
    distinct = {}
    for person, own in records.items():
        distinct.setdefault(frozenset(own), person)
    return {person: Counter(set(records[person])) for person in distinct.values()}


def whose(records, combo):
    """Values on a combination -> {person: number of records with these values}."""
    holders = {}
    for person, own in records.items():
        for row, count in own.items():
            of_value = holders.setdefault(tuple(row[c] for c in combo), {})
            of_value[person] = of_value.get(person, 0) + count
    return holders


def find(records, synthetic, max_size):
    """Synthetic position -> (first combination that identifies it, the person, the synthetic records together)."""
    found = {}
    for combo in all_combinations(search_order(synthetic), max_size):
        holders, ours = whose(records, combo), project(synthetic, combo)
        together = Counter(ours)
        for s, value in enumerate(ours):
            people = holders.get(value, {})
            if len(people) == 1:
                [(person, count)] = people.items()
                if together[value] <= count:
                    found.setdefault(s, (combo, person, together[value]))
    return found


def singled_out(records, synthetic, max_size):
    """People of whom one record has values on a combination that synthetic records have, too, and nobody else."""
    people = set()
    for combo in all_combinations(search_order(synthetic), max_size):
        published = set(project(synthetic, combo))
        for value, own in whose(records, combo).items():
            if value in published and list(own.values()) == [1]:
                people.update(own)
    return people
