"""Rules row by row: expressions are nested tuples, which are written as text for the package, and evaluated here."""

import math
from collections import Counter, defaultdict
from fractions import Fraction


def as_text(expression):
    """Write an expression in the language of rules."""
    kind, *parts = expression
    if kind == "column":
        return f"`{parts[0]}`"
    if kind == "constant":
        return repr(parts[0])
    if kind == "missing":
        return f"missing(`{parts[0]}`)"
    if kind == "not":
        return f"(not {as_text(parts[0])})"
    if kind == "minus":
        return f"(-{as_text(parts[0])})"
    if kind in ("in", "not in"):
        return f"({as_text(parts[0])} {kind} [{', '.join(map(repr, parts[1]))}])"
    return f"({as_text(parts[0])} {kind} {as_text(parts[1])})"


def value_of(expression, row):
    """Return the value of an expression in a row: a number, a text, True, False, or None if it is unknown."""
    kind, *parts = expression
    if kind == "column":
        return row[parts[0]]
    if kind == "constant":
        return parts[0]
    if kind == "missing":
        return row[parts[0]] is None
    if kind in ("in", "not in"):
        own = value_of(parts[0], row)
        return None if own is None else (own in parts[1]) == (kind == "in")
    values = [value_of(part, row) for part in parts]
    if kind == "and":
        return False if False in values else None if None in values else True
    if kind == "or":
        return True if True in values else None if None in values else False
    if None in values:
        return None
    if kind == "not":
        return not values[0]
    if kind == "minus":
        return -values[0]
    left, right = values
    if kind in "+-*/":
        return computed(kind, float(left), float(right))
    return {
        "==": left == right,
        "!=": left != right,
        "<": left < right,
        "<=": left <= right,
        ">": left > right,
        ">=": left >= right,
    }[kind]


def computed(kind, left, right):
    if kind == "/":
        if right == 0:
            return None
        found = left / right
    else:
        found = {"+": left + right, "-": left - right, "*": left * right}[kind]
    return found if math.isfinite(found) else None


def fewest_to_remove(pairs):
    """Return the fewest rows without which each code has one label; rows with an unknown part do not count."""
    labels = defaultdict(Counter)
    for code, label in pairs:
        if code is not None and label is not None:
            labels[code][label] += 1
    return sum(sum(own.values()) - max(own.values()) for own in labels.values())


def breaks_sum(parts, total, within):
    """Whether the sum of parts differs from the total by more than that, beyond the rounding of floats."""
    if total is None or None in parts:
        return False
    error = abs(sum(map(Fraction, parts)) - Fraction(total))
    scale = sum(abs(Fraction(each)) for each in (*parts, total))
    return error > Fraction(within) + scale / 10**9
