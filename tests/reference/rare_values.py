"""Rare values by their definition: who has what, counted in dictionaries, without anything from the package.

Values are plain, ``None`` for a missing one; a table is a list of records, a record a dictionary.
"""

from tests.reference.spelling import spelled


def compared_by(value):
    """What a value is compared by; None for a missing one."""
    found = spelled(value) if isinstance(value, str) else value
    return None if found == () else found


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
        alike = [record | {column: compared_by(record[column])} for record in people]
        rare, rare_in_any_spelling = (
            {value for value, own in holders(each, column, person).items() if 1 <= len(own) < least}
            for each in (people, alike)
        )
        shown = {}
        for row, record in enumerate(released):
            written = [own[column] for own in people]
            value = compared_by(record[column])
            if record[column] in rare:
                shown[row] = record[column]
            elif record[column] not in written and value in rare_in_any_spelling:
                shown[row] = next(own for own in written if compared_by(own) == value)
        rows = list(shown)
        by_column[column] = (set(shown.values()), len(rows))
        showing.update(rows)
    return by_column, len(showing)
