"""The share of synthetic values that nobody has, value by value, without anything from the package."""

from fractions import Fraction
from math import comb

from tests.reference.rare_values import compared_by

ROUNDING = 0.005


def of_texts(real, synthetic, people=None):
    """Shares of synthetic texts that nobody has, and of real ones that nobody else has; None without texts."""
    people = range(len(real)) if people is None else people
    held = [(person, compared_by(value)) for person, value in zip(people, real, strict=True)]
    # A word for a missing value is missing only if it cannot be told apart from one.
    words = [value for value in real if value is not None and compared_by(value) is None]
    if words and None not in [*real, *synthetic]:
        return "left out"
    held = [(person, value) for person, value in held if value is not None]
    made = [compared_by(value) for value in synthetic if compared_by(value) is not None]
    if not held or not made:
        return None
    unknown = sum(all(value != own for _, own in held) for value in made)
    alone = sum(not any(value == own and person != other for other, own in held) for person, value in held)
    return unknown / len(made), alone / len(held)


def of_numbers(real, synthetic):
    """Shares of synthetic numbers outside the range of real ones, and what is expected of a real one."""
    held, made = ([value for value in values if value is not None] for values in (real, synthetic))
    if not held or not made:
        return None
    margin = ROUNDING * (max(held) - min(held))
    return sum(not min(held) - margin <= value <= max(held) + margin for value in made) / len(made), 2 / len(held)


def is_blind(real, synthetic, unknown, expected):
    """Whether unknown values are many more than expected, and too many for chance if anybody had had any of them."""
    n, n_real = (sum(compared_by(value) is not None for value in values) for values in (synthetic, real))
    n_unknown, n_alone = round(unknown * n), round(expected * n_real)
    all_unknown, ways = n_unknown + n_alone, comb(n + n_real, n)
    as_many = sum(comb(all_unknown, k) * comb(n + n_real - all_unknown, n - k) for k in range(n_unknown, n + 1))
    return unknown - expected > 0.005 and Fraction(as_many, ways) < Fraction(1, 1000)
