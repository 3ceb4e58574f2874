"""Views of people and their rows, by loops over plain lists of rows (dictionaries), ``None`` for a missing value.

Rows of the same moment must be equal, because their order is not defined here.
"""

from collections import Counter
from math import fsum


def rows_in_order(person, rows, key, order):
    own = [row for row in rows if row[key] == person[key]]
    return own if order is None else sorted(own, key=lambda row: row[order])


def view_of_people(people, children):
    """``children`` are (name, rows, key, order, columns with numbers, other columns)."""
    found = []
    for person in people:
        line = dict(person)
        for name, rows, key, order, numbers, others in children:
            own = rows_in_order(person, rows, key, order)
            line[f"rows of {name}"] = len(own)
            for column in numbers:
                known = [row[column] for row in own if row[column] is not None]
                line[f"mean {column} of {name}"] = float(f"{fsum(known) / len(known):.6g}") if known else None
            for column in others:
                counted = Counter(row[column] for row in own if row[column] is not None)
                most = max(counted.values(), default=0)
                values = sorted(value for value, n in counted.items() if n == most)
                line[f"most frequent {column} of {name}"] = values[0] if values else None
            if order is not None:
                line[f"first {order} of {name}"] = own[0][order] if own else None
        found.append(line)
    return found


def view_of_rows(people, name, rows, key, order, columns):
    found = []
    for person in people:
        own = rows_in_order(person, rows, key, order)
        before = None
        for row in own or [dict.fromkeys(columns)]:
            line = dict(person)
            for column in columns:
                line[f"{column} of {name}" if column in person else column] = row[column]
            if order is not None:
                line[f"gap of {order}"] = None if before is None else row[order] - before[order]
            before = row
            found.append(line)
    return found


def view_of_histories(people, person_column, rows, key, order, columns):
    found = []
    for person in people:
        own = rows_in_order(person, rows, key, order)
        for i in range(1, len(own)):
            line = {person_column: person[person_column]}
            for column in columns:
                if column != order:
                    line[f"{column} 1"], line[f"{column} 2"] = own[i - 1][column], own[i][column]
            if order is not None:
                line[f"gap of {order}"] = own[i][order] - own[i - 1][order]
            found.append(line)
    return found


def left_join(upper, key, rows, own_key, name):
    """Rows with all columns above; what has none has one of missing values. ``key`` is the number of upper rows."""
    columns = [column for column in rows[0] if column != own_key] if rows else []
    found = []
    for line in upper:
        own = [row for row in rows if line[key] is not None and row[own_key] == line[key]]
        for row in own or [dict.fromkeys(columns)]:
            shown = {f"{column} of {name}" if column in line else column: row[column] for column in columns}
            found.append(line | shown)
    return found
