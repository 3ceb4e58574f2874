"""Figures of the rows of each person, by loops over plain lists of rows (dictionaries), ``None`` for a missing value.

Rows of the same moment must be equal, because their order is not defined here.
"""

from fractions import Fraction


def people_with_figures(people, name, rows, key, order, aggregates):
    """``aggregates`` are pairs of column and figure; ``rows`` counts rows."""
    found = []
    for person in people:
        own = [row for row in rows if row[key] == person[key]]
        if order is not None:
            own.sort(key=lambda row: row[order])
        line = {column: value for column, value in person.items() if column != key}
        for column, figure in aggregates:
            if column == "rows":
                line[f"rows of {name}"] = len(own)
                continue
            known = [row[column] for row in own if row[column] is not None]
            line[f"{figure} {column} of {name}"] = figure_of(figure, known)
        found.append(line)
    return found


def figure_of(figure, known):
    if figure == "count":
        return len(known)
    if figure == "any":
        return True in known
    if figure == "sum":
        return float(sum(Fraction(value) for value in known))
    if not known:
        return None
    if figure == "mean":
        return float(sum(Fraction(value) for value in known)) / len(known)
    if figure in ("min", "max"):
        in_order = sorted(known)
        return in_order[0] if figure == "min" else in_order[-1]
    return known[0] if figure == "first" else known[-1]
