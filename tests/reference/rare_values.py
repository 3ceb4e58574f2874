"""Rare values by their definition: who has what, counted in dictionaries, without anything from the package.

Values are plain, ``None`` for a missing one; a table is a list of records, a record a dictionary.
"""


def holders(records, column, person=None):
    """The people of each value of a column; without a person each record is one."""
    found = {}
    for number, record in enumerate(records):
        value = record[column]
        if value is not None:
            found.setdefault(value, set()).add(number if person is None else record[person])
    return found


def rare_values(released, people, columns, least, person=None):
    """By column the rare values that appear and how many records show one; and how many records show any."""
    by_column, showing = {}, set()
    for column in columns:
        rare = {value for value, own in holders(people, column, person).items() if 1 <= len(own) < least}
        rows = [row for row, record in enumerate(released) if record[column] in rare]
        by_column[column] = ({released[row][column] for row in rows}, len(rows))
        showing.update(rows)
    return by_column, len(showing)
