"""What synthetic records reveal of real ones, by enumeration: slow, obvious, and without anything from the package.

Tables are lists of rows of plain values, ``None`` for a missing one.
"""

from fractions import Fraction
from itertools import combinations
from math import ceil, floor, log

import pandas as pd

from tests.reference.mpucc import plain_column

BINS = 20


def plain_tables(real, synthetic):
    """Rows of both tables at the precision of the real one, and whether the values of each column have a distance."""
    columns = [plain_column(real[name], synthetic[name]) for name in real.columns]
    has_distance = [any(is_distant(v) for side in column for v in side if v is not None) for column in columns]
    return *(list(zip(*(column[side] for column in columns), strict=True)) for side in (0, 1)), has_distance


def is_distant(value):
    return (
        (isinstance(value, (int, float, pd.Timestamp, pd.Timedelta)) and not isinstance(value, bool))
        or (hasattr(value, "dtype") and value.dtype.kind in "iuf")
        or type(value).__name__ == "date"
    )


def number(value):
    if isinstance(value, pd.Timestamp):
        return value.tz_localize(None).value / 1e9 if value.tzinfo is None else value.tz_convert("UTC").value / 1e9
    if isinstance(value, pd.Timedelta):
        return float(value.value)
    return float(value.toordinal()) if type(value).__name__ == "date" else float(value)


def binned(real, synthetic, has_distance):
    """The rows with numbers of many values replaced by the number of edges below or at them."""
    columns = []
    for j, is_number in enumerate(has_distance):
        sides = [[row[j] for row in rows] for rows in (real, synthetic)]
        known = sorted(number(v) for v in sides[0] if v is not None) if is_number else []
        if len(set(known)) > BINS:
            edges = {known[ceil(Fraction(len(known) * k, BINS)) - 1] for k in range(1, BINS)}
            sides = [[None if v is None else sum(e <= number(v) for e in edges) for v in side] for side in sides]
        columns.append(sides)
    return tuple(list(zip(*(column[side] for column in columns), strict=True)) for side in (0, 1))


def all_sets(columns, max_size):
    return [own for size in range(1, max_size + 1) for own in combinations(columns, size)]


def nearest(real, owners, synthetic, makers, sets):
    """For each synthetic person, in order of their numbers, the nearest real person and the lead over the next."""
    own, made = (
        {p: [row for row, q in zip(t, who, strict=True) if q == p] for p in who}
        for t, who in ((real, owners), (synthetic, makers))
    )
    found = []
    for maker in sorted(made):
        overlap = dict.fromkeys(sorted(own), 0.0)
        for columns in sets:
            for part in {tuple(row[c] for c in columns) for row in made[maker]}:
                holders = [p for p in own if any(tuple(row[c] for c in columns) == part for row in own[p])]
                for p in holders:
                    overlap[p] -= log(len(holders) / len(own))
        first = max(overlap, key=overlap.get)
        found.append((first, overlap[first] - max(v for p, v in overlap.items() if p != first)))
    return found


def agree(one, other, columns):
    return all(one[c] == other[c] for c in columns)


def distinct(rows, keys):
    """The rows whose keys are the first of their kind."""
    return [row for i, row in enumerate(rows) if keys[i] not in keys[:i]]


def is_singled_out(x, real, people, synthetic, sets):
    """Whether a set has the values of x in exactly one synthetic record and of exactly one person (rows are binned)."""
    return any(
        sum(agree(x, s, own) for s in synthetic) == 1
        and len({person for person, r in zip(people, real, strict=True) if agree(x, r, own)}) == 1
        for own in sets
    )


def is_linked(x, synthetic, sets):
    """Whether two disjoint sets match one record each, and the same one."""
    matches = {own: [i for i, s in enumerate(synthetic) if agree(x, s, own)] for own in sets}
    return any(
        not set(one) & set(other) and len(matches[one]) == 1 and matches[one] == matches[other]
        for one, other in combinations(sets, 2)
    )


def claims(real, synthetic, sets):
    """Score, claims and right claims by column of each real record, and the precision by set and column."""
    n_columns = len(real[0])
    score = [Fraction(0) for _ in real]
    n_claims, n_right = ([[0] * n_columns for _ in real] for _ in range(2))
    precision = {}
    for own in sets:
        for j in set(range(n_columns)) - set(own):
            made = {}
            for i, x in enumerate(real):
                values = [s[j] for s in synthetic if agree(x, s, own)]
                if values and len(set(values)) == 1:
                    made[i] = values[0] == x[j]
            for i, is_right in made.items():
                precision[own, j] = Fraction(sum(made.values()), len(made))
                score[i] += is_right - precision[own, j]
                n_claims[i][j] += 1
                n_right[i][j] += is_right
    return score, n_claims, n_right, precision


def places(real, synthetic, has_distance, unit):
    """The rows with numbers replaced by their middle rank among the real ones, 0 to the unit; halves go up."""
    columns = []
    for j, is_number in enumerate(has_distance):
        known = [number(row[j]) for row in real if row[j] is not None] if is_number else []

        def place(value, known=known, is_number=is_number):
            if value is None or not is_number:
                return value
            rank = sum(k < number(value) for k in known) + sum(k <= number(value) for k in known)
            return floor(Fraction(rank * unit, 2 * max(len(known), 1)) + Fraction(1, 2))

        columns.append([[place(row[j]) for row in rows] for rows in (real, synthetic)])
    return tuple(list(zip(*(column[side] for column in columns), strict=True)) for side in (0, 1))


def gower(x, s, columns, has_distance, unit):
    def of_column(a, b, is_number):
        if a is None or b is None or not is_number:
            return 0 if a == b else unit
        return abs(a - b)

    return sum(of_column(x[j], s[j], has_distance[j]) for j in columns)


def guess(x, place, places_of_synthetic, synthetic, j, known, has_distance, unit):
    """Probability that the nearest record on the known columns but j has x's value (values are binned)."""
    columns = [c for c in known if c != j]
    distances = [gower(place, s, columns, has_distance, unit) for s in places_of_synthetic]
    nearest = [s for s, d in zip(synthetic, distances, strict=True) if d == min(distances)]
    return Fraction(sum(s[j] == x[j] for s in nearest), len(nearest))


def closeness(x, s, real, has_distance):
    """How surprising the agreement of two records is, in thousandths of a nat, with 4 nats for each equal value."""
    total = 0
    for j, is_number in enumerate(has_distance):
        a, b = x[j], s[j]
        is_number = is_number and a is not None and b is not None
        if is_number:
            a, b = number(a), number(b)
            n = sum(row[j] is not None and abs(number(row[j]) - a) <= abs(b - a) for row in real)
        elif a == b:
            n = sum(row[j] == x[j] for row in real)
        else:
            continue
        total += round(-log(n / len(real)) * 1000) + (4000 if a == b else 0)
    return total


def are_rare(x, real, people, synthetic, is_asked):
    """Which values of x fewer than 3 people and at least one synthetic record have."""
    found = [False] * len(x)
    for j in range(len(x)):
        if is_asked[j] and x[j] is not None:
            owners = {person for person, row in zip(people, real, strict=True) if row[j] == x[j]}
            found[j] = len(owners) < 3 and any(s[j] == x[j] for s in synthetic)
    return found


def relative_distance(i, placed, people, made_placed, has_distance, unit):
    """Logarithm of the distance to the nearest synthetic record, beside that to the nearest of another person."""
    columns = range(len(has_distance))
    to_made = min(gower(placed[i], s, columns, has_distance, unit) for s in made_placed)
    others = (r for r, person in zip(placed, people, strict=True) if person != people[i])
    to_other = min(gower(placed[i], r, columns, has_distance, unit) for r in others)
    return log((to_made + 1) / (to_other + 1))


def exact(value):
    if isinstance(value, (pd.Timestamp, pd.Timedelta)):
        return Fraction(value.value)
    return Fraction(value.toordinal()) if type(value).__name__ == "date" else Fraction(repr(float(value)))


def beyond_opposite(real, people, synthetic, has_distance):
    """Of each real record, the most people who share a difference to synthetic records, beyond the opposite one."""
    subtracted = [
        has_distance[j] and len({number(row[j]) for row in (*real, *synthetic) if row[j] is not None}) >= 3
        for j in range(len(has_distance))
    ]

    def difference(x, s):
        found = []
        for a, b, is_number in zip(x, s, subtracted, strict=True):
            is_known = is_number and a is not None and b is not None
            if not is_known and a != b:
                return None
            if is_number:
                found.append(exact(b) - exact(a) if is_known else 0)
        return tuple(found) if any(found) else None

    whose = {}
    for x, person in zip(real, people, strict=True):
        for s in synthetic:
            if (own := difference(x, s)) is not None:
                whose.setdefault(own, set()).add(person)
    most = []
    for x in real:
        own = [d for s in synthetic if (d := difference(x, s)) is not None]
        most.append(max([0, *(len(whose[d]) - len(whose.get(tuple(-v for v in d), ())) for d in own)]))
    return most


def agreement(x, real, people, synthetic, known, wanted):
    """Whether a synthetic record has x's values on the columns, and how few people share them."""
    columns = [*known, wanted]
    if not any(agree(x, s, columns) for s in synthetic):
        return False, 0.0
    owners = {person for person, row in zip(people, real, strict=True) if agree(x, row, columns)}
    return True, -log(len(owners) / len(set(people)))


def min_p_step_down(sums, weights):
    """Adjusted p values of the first row of sums (of all relabelings), one by one criterion."""
    n, k = len(sums), len(sums[0])
    p = [[weights[j] * Fraction(sum(other[j] >= own[j] for other in sums), n) for j in range(k)] for own in sums]
    order = sorted(range(k), key=lambda j: p[0][j])
    adjusted, least = {}, Fraction(0)
    for place, j in enumerate(order):
        left = order[place:]
        share = Fraction(sum(min(own[i] for i in left) <= p[0][j] for own in p), n)
        least = max(least, share)
        adjusted[j] = least
    return [adjusted[j] for j in range(k)]
